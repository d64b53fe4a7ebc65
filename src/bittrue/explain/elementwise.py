"""Element-wise operators on paper: sums, products, changes of scale, activations, comparisons."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..arithmetic import fixed_point, floats
from ..operators import find
from ..operators.core.lanes import tail_rules
from ..rules import affine_product, affine_sum, align, center, compare, formula, product
from .decimals import TIES, decimal, factor, integer, nearness, place, real, rounded, signed
from .explanation import Line
from .rescaling import multiplier_of, rescale
from .site import Number, Site, Work, pick, scale_of
from .storing import store


def place_in(shape: tuple[int, ...], element: tuple[int, ...]) -> tuple[int, ...]:
    """The index in an operand of `shape` that broadcasts to the element.

    >>> place_in((3, 1), (5, 2, 7)), place_in((), (1,))
    ((2, 0), ())
    """
    aligned = element[len(element) - len(shape) :]
    return tuple(0 if size == 1 else i for size, i in zip(shape, aligned, strict=True))


def operand(site: Site, work: Work, position: int, label: str, zero_point: int = 0) -> int:
    """A line for one stored input, and the input less its zero point."""
    array = site.array(position)
    index = place_in(array.shape, site.element)
    q = int(array[index])
    scale = scale_of(site.source(position).quantization)
    worth = ""
    if scale is not None:
        value = decimal(Fraction(float(scale)) * (q - zero_point))
        worth = f"; real value {real(scale)} * {factor(q - zero_point)} = {value}"
    work.add(label, integer(q), f"'{site.name(position)}' {place(index)}, zero point {zero_point}{worth}")
    return q - zero_point


def _finish(site: Site, work: Work, rescaled: int | np.floating) -> int:
    zero_point, low, high = (int(site.step[name]) for name in ("output_zero_point", "low", "high"))
    lines, stored = store(site.step.rules["store"], rescaled, zero_point, low, high)
    work.extend(lines)
    work.numbers |= {"zero_point": zero_point, "low": low, "high": high}
    return stored


def rules_here(site: Site) -> Site:
    """The site with the rules that hold for its element, where blocks and their tails have different ones."""
    step = site.step
    if "lanes" not in step.rules or "body" not in step.parameters:
        return site
    at = site.flat % step["run"] if "run" in step.parameters else site.flat
    return site if at < step["body"] else site.with_rules(tail_rules(step))


def _in_real_numbers(site: Site, work: Work, terms: list[Fraction | None], what: str) -> Fraction | None:
    """What real numbers would give in steps of the output; None where a scale is missing."""
    output = scale_of(site.tensor.quantization)
    if output is None or not output or any(term is None for term in terms):
        return None
    total = sum((term for term in terms if term is not None), Fraction(0)) / Fraction(float(output))
    work.add("exact result", decimal(total), f"{what} / {real(output)}: what real numbers would give")
    return total


def _worth(site: Site, position: int, centered: int) -> Fraction | None:
    scale = scale_of(site.source(position).quantization)
    return None if scale is None else Fraction(float(scale)) * centered


def _prefixed(arrays: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name[len(prefix) :]: value for name, value in arrays.items() if name.startswith(prefix)}


def _aligned(site: Site, work: Work, centered: int, prefix: str) -> int:
    """One input in the common scale of both, with the roundings on the way."""
    rule, name = align.RULES[site.step.rules["align"]], prefix.removesuffix("_")
    values = _prefixed(pick(site.step.arrays, 0), prefix)
    zero_point = int(site.step[f"{prefix}zero_point"])
    if rule.exponent:
        result = int(
            align.apply(
                site.step.rules["align"],
                np.asarray(centered + zero_point, np.int64),
                zero_point,
                site.step.rules["rescale"],
                {k: np.asarray(v) for k, v in pick(site.step.arrays, 0).items()},
                prefix,
            )
        )
        encoded = f"M = {integer(int(values['multiplier']))}, e = {int(values['exponent'])}"
        work.add(f"{name} aligned", integer(result), f"{rule.formula}, {encoded}")
        return result
    moved = int(fixed_point.wrap_s32(centered << rule.left))
    work.add(f"{name} * 2^{rule.left}", integer(moved), f"{factor(centered)} * {integer(2**rule.left)}")
    found = rescale(site.step.rules["rescale"], moved, values, f"{name} * 2^{rule.left}")
    work.extend([Line(f"{name}: {line.label}", line.value, line.remark) for line in found.lines])
    return int(found.value)


def add(site: Site, work: Work) -> Number | None:
    """add and sub in all their forms."""
    site = rules_here(site)
    step, form, operator = site.step, site.step["form"], find(site.step.operator)
    sign = operator.signs[1] if operator is not None else 1
    if form == "operands":
        return _operands(site, work)
    if form in ("plain", "of_many", "ranges") or site.array(0).dtype.kind not in "iu":
        return None
    if form == "affine":
        return _affine(site, work, affine_sum.RULES[step.rules["affine_sum"]].apply, "affine_sum")
    points = [int(step.parameters.get(f"{which}_zero_point", 0)) for which in ("first", "second")]  # type: ignore[arg-type]
    if form == "tables":
        points = _own_points(site)
    one, two = (operand(site, work, i, which, points[i]) for i, which in ((0, "first"), (1, "second")))
    worth = _worth(site, 1, two)
    exact = _in_real_numbers(
        site, work, [_worth(site, 0, one), None if worth is None else sign * worth], "the two real values"
    )
    if form == "rescaled":
        a, b = _aligned(site, work, one, "first_"), _aligned(site, work, two, "second_")
        total = a + sign * b
        work.add("difference" if sign < 0 else "sum", integer(total), f"{integer(a)} {signed(sign * b)}")
        found = rescale(step.rules["rescale"], total, _own(step), "sum")
        work.extend(found.lines)
        work.numbers |= {"accumulator": total, **found.numbers}
        stored = _finish(site, work, found.value)
    elif form in ("weighted", "weighted_away"):
        a, b, right = one * step["first_weight"], two * step["second_weight"], step["right_shift"]
        total, ties = a + sign * b, "away" if form == "weighted_away" else "up"
        work.add("first weighted", integer(a), f"{factor(one)} * {integer(step['first_weight'])}")
        work.add("second weighted", integer(b), f"{factor(two)} * {integer(step['second_weight'])}")
        work.add("difference" if sign < 0 else "sum", integer(total), f"{integer(a)} {signed(sign * b)}")
        value = Fraction(total, 2**right)
        divided = rounded(value, ties)
        work.add("one rounding", integer(divided), f"/ 2^{right} = {decimal(value)}; {nearness(value, TIES[ties])}")
        work.numbers["accumulator"] = total
        stored = _finish(site, work, divided)
    else:
        total = _simple_sum(site, work, form, one + points[0], two + points[1], sign)
        stored = min(max(total, step["low"]), step["high"])
        work.add("clamp", integer(stored), f"into [{step['low']}, {step['high']}]")
    work.exact(exact)
    return stored


def _own_points(site: Site) -> list[int]:
    found = [site.source(position).quantization for position in (0, 1)]
    return [0 if q is None else int(q.zero_points[0]) for q in found]


def _own(step: Any) -> dict[str, Any]:
    """Prepared values of the result, without those of the inputs."""
    return {k: v for k, v in pick(step.arrays, 0).items() if not k.startswith(("first_", "second_"))}


def _simple_sum(site: Site, work: Work, form: str, first: int, second: int, sign: int) -> int:
    step = site.step
    if form == "power_of_two":
        parts = []
        for q, which in ((first, "first"), (second, "second")):
            right = step[f"{which}_right_shift"]
            value = Fraction(q, 2**right)
            parts.append(rounded(value, "away"))
            work.add(
                f"{which} divided",
                integer(parts[-1]),
                f"/ 2^{right} = {decimal(value)}; {nearness(value, TIES['away'])}",
            )
        total = parts[0] + sign * parts[1]
        work.add("sum", integer(total), f"{integer(parts[0])} {signed(sign * parts[1])}")
        return total
    entries = [
        int(step.arrays[f"{which}_table"][q - step["minimum"]]) for q, which in ((first, "first"), (second, "second"))
    ]
    for entry, which in zip(entries, ("first", "second"), strict=True):
        work.add(f"{which} rescaled", integer(entry), "to the output's scale, from a table of all quantized values")
    total = entries[0] + sign * entries[1] + int(step["output_zero_point"])
    work.add(
        "sum",
        integer(total),
        f"{integer(entries[0])} {signed(sign * entries[1])} {signed(int(step['output_zero_point']))}",
    )
    return int(fixed_point.wrap_s32(total))


def _affine(site: Site, work: Work, apply: Any, slot: str) -> Number:
    """Rules that work on real numbers: what goes in, the formula, what comes out."""
    step = site.step
    points = _own_points(site)
    one, two = (operand(site, work, i, which, points[i]) for i, which in ((0, "first"), (1, "second")))
    worths = [_worth(site, 0, one), _worth(site, 1, two)]
    if slot == "affine_product" and None not in worths:
        worths = [worths[0] * worths[1]]  # type: ignore[operator]
    exact = _in_real_numbers(site, work, worths, "their sum" if slot == "affine_sum" else "their product")
    quantized = [site.array(i)[place_in(site.array(i).shape, site.element)] for i in (0, 1)]
    for name, array in sorted(step.arrays.items()):
        work.add(name.replace("_", " "), np.array2string(np.asarray(array), separator=", "), "prepared")
    if slot == "affine_sum" and step.rules[slot] == "binary32_fused_even":
        _fused(work, quantized, step.arrays)
    low, high = int(step["low"]), int(step["high"])
    stored = int(apply(np.asarray(quantized[0], np.int64), np.asarray(quantized[1], np.int64), step.arrays, low, high))
    tie = "" if exact is None else f"; of the exact result: {nearness(exact, 'see the rule for ties')}"
    work.add(step.rules[slot], integer(stored), f"{formula(slot, step.rules[slot])}{tie}")
    work.numbers |= {"low": low, "high": high}
    work.exact(exact)
    return stored


def _fused(work: Work, quantized: list[Any], arrays: Any) -> None:
    a, b = (np.float32(code) for code in quantized)
    one, two, constant = (np.float32(arrays[name]) for name in ("first_factor", "second_factor", "constant"))
    with np.errstate(all="ignore"):
        inner = np.float32(floats.fused_multiply_add(b, two, constant))
        outer = np.float32(floats.fused_multiply_add(a, one, inner))
    work.add("second part", real(inner), f"{real(b)} * {real(two)} + {real(constant)}, rounded once to binary32")
    tie = f"; {nearness(Fraction(float(outer)), TIES['even'])}" if np.isfinite(outer) else ""
    work.add("both parts", real(outer), f"{real(a)} * {real(one)} + {real(inner)}, rounded once to binary32{tie}")


def _operands(site: Site, work: Work) -> Number | None:
    """Sums and products of tensors whose scales are operands, constant ones."""
    if site.step["late"]:
        return None
    if "affine_sum" in site.step.rules:
        return _affine(site, work, affine_sum.RULES[site.step.rules["affine_sum"]].apply, "affine_sum")
    return _affine(site, work, affine_product.RULES[site.step.rules["affine_product"]].apply, "affine_product")


def mul(site: Site, work: Work) -> Number | None:
    """mul of quantized numbers."""
    site = rules_here(site)
    step = site.step
    if step["form"] == "operands":
        return _operands(site, work)
    if step["form"] in ("plain", "ranges"):
        return None
    one, two = (operand(site, work, i, w, int(step[f"{w}_zero_point"])) for i, w in ((0, "first"), (1, "second")))
    if not product.RULES[step.rules["product"]].rescaled:
        rule = product.RULES[step.rules["product"]]
        rescaled = int(rule.apply(np.asarray(one), np.asarray(two), "", {}))
        work.add(step.rules["product"], integer(rescaled), formula("product", step.rules["product"]))
        return _finish(site, work, rescaled)
    total = int(fixed_point.wrap_s32(one * two))
    wraps = "" if total == one * two else "; wraps to 32 bits"
    worths = [_worth(site, 0, one), _worth(site, 1, two)]
    exact = None
    if None not in worths:
        exact = _in_real_numbers(site, work, [worths[0] * worths[1]], "their product")  # type: ignore[operator]
    work.add("product", integer(total), f"{factor(one)} * {factor(two)}{wraps}")
    found = rescale(step.rules["rescale"], total, _own(step), "product")
    work.extend(found.lines)
    work.numbers |= {"accumulator": total, **found.numbers}
    work.exact(found.exact if found.exact is not None else exact)
    return _finish(site, work, found.value)


def squared_difference(site: Site, work: Work) -> Number | None:
    """squared_difference of quantized numbers."""
    step = site.step
    if step["form"] == "plain":
        return None
    one, two = (operand(site, work, i, w, int(step[f"{w}_zero_point"])) for i, w in ((0, "first"), (1, "second")))
    a, b = _aligned(site, work, one, "first_"), _aligned(site, work, two, "second_")
    work.add("difference", integer(a - b), f"{integer(a)} {signed(-b)}")
    square = int(fixed_point.wrap_s32((a - b) ** 2))
    work.add("square", integer(square), "in 32 bits" + ("" if square == (a - b) ** 2 else ": wraps"))
    found = rescale(step.rules["rescale"], square, _own(step), "square")
    work.extend(found.lines)
    work.numbers |= {"accumulator": square, **found.numbers}
    work.exact(found.exact)
    return _finish(site, work, found.value)


def change_of_scale(site: Site, work: Work) -> Number | None:
    """quantize of integers, and the ReLU family: one multiplier between two scales."""
    site = rules_here(site)
    step = site.step
    if "rescale" not in step.rules or not step.arrays or site.array(0).dtype.kind not in "iu":
        return None
    arrays, channel = dict(step.arrays), 0
    if "axis" in step.parameters:
        channel = site.element[step["axis"]]
        points = arrays.pop("input_zero_points").reshape(-1)
        zero_point = int(points[channel if points.size > 1 else 0])
    else:
        zero_point = int(step["input_zero_point"])
    centered = operand(site, work, 0, "input", zero_point)
    kept = int(fixed_point.wrap_s32(centered))
    if "center" in step.rules:
        rule = center.RULES[step.rules["center"]]
        kept = int(rule(np.asarray(centered + zero_point, np.int64), np.asarray(zero_point, np.int64)))
    if kept != centered:
        work.add("input - zero point", integer(kept), f"of {integer(centered)}: kept in fewer bits")
    values = pick(arrays, channel)
    _multiplier_of_scales(site, work, values, channel)
    found = rescale(step.rules["rescale"], kept, values, "(input - zero point)")
    work.extend(found.lines)
    work.numbers |= {"accumulator": kept, **found.numbers}
    work.exact(found.exact)
    return _finish(site, work, found.value)


def _multiplier_of_scales(site: Site, work: Work, values: dict[str, Any], channel: int) -> None:
    """Input scale over output scale, where that is what the plan has (within the bits of its encoding)."""
    first, output = scale_of(site.source(0).quantization, channel), scale_of(site.tensor.quantization)
    held = multiplier_of(values, site.step.rules["rescale"])
    if first is None or output is None or held is None or not output:
        return
    exact = Fraction(float(first)) / Fraction(float(output))
    if exact and abs(held / exact - 1) < Fraction(1, 2**14):
        work.add(
            "real multiplier", real(float(exact)), f"{real(first)} / {real(output)}: input scale over output scale"
        )


def leaky_relu(site: Site, work: Work) -> Number | None:
    """leaky_relu of quantized numbers: the sign of the input chooses between two multipliers."""
    step = site.step
    if not step.arrays or "negated" not in step.parameters or "rescale" not in step.rules:
        return None
    centered = operand(site, work, 0, "input", int(step["input_zero_point"]))
    prefix = "identity_" if centered >= 0 else "alpha_"
    work.add("side", "not negative" if centered >= 0 else "negative", f"the multiplier of {prefix.removesuffix('_')}")
    negated = centered < 0 and step["negated"]
    if negated and step.rules["sign"] == "before_rounding":
        centered, negated = -centered, False
        work.add("negated", integer(centered), "alpha is negative")
    found = rescale(step.rules["rescale"], centered, _prefixed(pick(step.arrays, 0), prefix), "(input - zero point)")
    work.extend(found.lines)
    value = found.value
    if negated:
        value = -value
        work.add("negated", integer(int(value)), "alpha is negative")
    work.numbers |= {"accumulator": centered, **found.numbers}
    work.exact(found.exact)
    return _finish(site, work, value)


def extreme(site: Site, work: Work) -> Number | None:
    """maximum and minimum of the integers as stored."""
    operator = find(site.step.operator)
    if site.step.rules or operator is None:
        return None
    values = []
    for position, label in ((0, "first"), (1, "second")):
        array = site.array(position)
        index = place_in(array.shape, site.element)
        values.append(array[index])
        work.add(label, str(array[index]), f"'{site.name(position)}' {place(index)}")
    first, second = values
    larger = bool(operator.largest)
    with np.errstate(invalid="ignore"):
        taken = first if (first > second if larger else first < second) else second
    which = "larger" if larger else "smaller"
    work.add(site.step.operator, str(taken), f"the {which} integer as stored; scales play no part")
    return taken.item()


def comparison(site: Site, work: Work) -> Number | None:
    """Truth values of two numbers, rescaled first where the rule says so."""
    step, operator = site.step, find(site.step.operator)
    if operator is None or operator.truth is None:
        return None
    sides = []
    for position, label in ((0, "first"), (1, "second")):
        array = site.array(position)
        index = place_in(array.shape, site.element)
        value = array[index]
        if step["form"] == "plain":
            work.add(label, str(value), f"'{site.name(position)}' {place(index)}")
        else:
            zero_point = int(step[f"{label}_zero_point"])
            operand(site, work, position, label, zero_point)
            arrays = {k: np.asarray(v) for k, v in pick(step.arrays, 0).items()}
            rule, multiply = step.rules["compare"], step.rules["rescale"]
            value = compare.RULES[rule](np.asarray(value, np.int64), zero_point, multiply, arrays, f"{label}_")[()]
            work.add(f"{label} rescaled", integer(int(value)), formula("compare", rule))
        sides.append(value)
    with np.errstate(invalid="ignore"):
        result = bool(operator.truth(*sides))
    work.add(step.operator.replace("_", " "), str(result), f"{sides[0]} and {sides[1]}")
    return result


def pointwise(site: Site, work: Work) -> Number | None:
    """The elements that one result is made of, the rules, and the result; the rules' roundings are not told apart."""
    operator = find(site.step.operator)
    assert operator is not None
    positions = {*range(operator.elementwise)}
    if site.step.parameters.get("late") and operator.roles:
        # Scales that are operands stand between the inputs that are looked at.
        positions = {role.position for role in operator.roles}
    looked_at = [
        (position, array)
        for position, array in enumerate(site.inputs)
        if array is not None and (position in positions or array.size == 1)
    ]
    if not looked_at:
        return None
    if np.broadcast_shapes(*(array.shape for _, array in looked_at), site.shape) != site.shape:
        return None
    for position, array in looked_at:
        index = place_in(array.shape, site.element)
        work.add(f"input {position}", str(array[index]), f"'{site.name(position)}' {place(index)}")
    for slot, rule in site.step.rules.items():
        work.add(slot, rule, formula(slot, rule))
    work.add(site.step.operator, str(site.stored), "of these numbers")
    return site.stored.item()
