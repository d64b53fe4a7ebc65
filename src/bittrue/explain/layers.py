"""Accumulating layers on paper: the products, the bias, the accumulator, and its way to the quantized value."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import InternalError
from ..operators.core.lanes import tail_rules
from ..rules import accumulate, formula, scale_back, scale_form
from ..rules import requantize as requantize_rules
from ..rules import rescale as rescale_rules
from .accumulators import accumulators
from .decimals import TIES, decimal, factor, integer, nearness, place, real, signed
from .rescaling import rescale
from .site import Number, Site, Work, pick, scale_of, shown_name
from .storing import store
from .terms import Terms, terms_of

# Products that are written out; the others are counted.
_SHOWN = 6


def layer(site: Site, work: Work) -> Number | None:
    """One element of an accumulating layer; None where this file does not know the step."""
    terms = terms_of(site.step, site.inputs, site.element)
    if terms is None or "accumulate" not in site.step.rules or terms.products.dtype != np.int64:
        return None
    if site.step.rules["accumulate"] == "binary32":
        return _integers_as_reals(site, work, terms)
    site = site.with_rules(_rules_here(site, terms))
    if "first_scale" in site.step.arrays:
        return _made_real(site, work, terms)
    if "rescale" not in site.step.rules and "requantize" not in site.step.rules:
        if set(site.step.rules) - {"accumulate"}:
            return None
        acc = _accumulator(site, work, terms)
        return acc
    acc = _accumulator(site, work, terms)
    values = pick(site.step.arrays, terms.channel)
    if "requantize" in site.step.rules:
        rescaled: int | np.floating = _requantized(work, site.step.rules["requantize"], acc, values)
    elif "open_factor" in values:
        return None
    else:
        _real_multiplier(site, work, terms, values)
        found = rescale(site.step.rules["rescale"], acc, values)
        work.extend(found.lines)
        work.numbers |= found.numbers
        work.exact(found.exact)
        rescaled = found.value
    return _stored(site, work, rescaled)


# Below it, sums of integers are exact in binary32, in any order.
_EXACT = 2**24


def _integers_as_reals(site: Site, work: Work, terms: Terms) -> Number | None:
    """A layer whose integers lie in binary32; None where its sums may depend on their order."""
    step = site.step
    bias = int(terms.bias or 0)
    placed = step.rules.get("channel_parameters", "of_axis") == "of_axis" or all(
        a.size == 1 for a in step.arrays.values()
    )
    known = {"low", "high", "output_zero_point"} <= step.parameters.keys()
    if int(np.abs(terms.products).sum()) + abs(bias) >= _EXACT or not (placed and known):
        return None
    _window(site, work, terms)
    _products(site, work, terms)
    total = int(terms.products.sum())
    work.add("sum", integer(total), f"{_count(len(terms.products), 'product')}, exact in binary32")
    if terms.bias is not None:
        work.add("bias", integer(bias), f"'{site.name(terms.bias_input)}' {place(terms.bias_place)}")
    work.add("accumulator", integer(total + bias), f"|sum| < {integer(_EXACT)}: nothing is lost")
    work.numbers["accumulator"] = total + bias
    result = np.float32(total + bias)
    if "rescale" in step.rules:
        found = rescale(step.rules["rescale"], total + bias, pick(step.arrays, terms.channel))
        work.extend(found.lines)
        work.numbers |= found.numbers
        work.exact(found.exact)
        result = np.float32(found.value)
    if step["output_zero_point"]:
        result = np.float32(result + np.float32(step["output_zero_point"]))
        work.add("zero point", real(result), f"{signed(int(step['output_zero_point']))}")
    low, high = np.float32(step["low"]), np.float32(step["high"])
    result = min(max(result, low), high)
    work.add("clamp", real(result), f"to {real(low)} .. {real(high)}")
    return float(result)


def real_layer(site: Site, work: Work) -> Number | None:
    """One element of a layer of real numbers: products, what they add up to exactly, and what is stored."""
    if any(array is not None and array.dtype.kind == "f" and not np.isfinite(array).all() for array in site.inputs):
        return None
    terms = terms_of(site.step, site.inputs, site.element)
    if terms is None or terms.x.dtype.kind != "f" or terms.w.dtype.kind != "f":
        return None
    products = [Fraction(float(x)) * Fraction(float(w)) for x, w in zip(terms.x, terms.w, strict=True)]
    _window(site, work, terms)
    order = sorted(range(len(products)), key=lambda at: -abs(products[at]))[:_SHOWN]
    for at in order:
        where = f"input {place(tuple(terms.x_places[at]))}" if terms.inside[at] else "padding"
        remark = f"{real(terms.x[at])} * {real(terms.w[at])}: {where}, weight {place(tuple(terms.w_places[at]))}"
        work.add("product", decimal(products[at]), remark)
    if len(products) > len(order):
        rest = sum(products, Fraction(0)) - sum((products[at] for at in order), Fraction(0))
        work.add(f"... and {len(products) - len(order):,} more", decimal(rest), "their sum")
    exact = sum(products, Fraction(0))
    if terms.bias is not None:
        work.add("bias", real(terms.bias), f"'{site.name(terms.bias_input)}' {place(terms.bias_place)}")
        exact += Fraction(terms.bias)
    work.add("exact sum", decimal(exact), "what real numbers would give")
    for slot, rule in site.step.rules.items():
        work.add(slot, rule, formula(slot, rule))
    work.add("rounded sum", real(site.stored), "as the rules round, then the clamp")
    work.numbers["exact"] = float(exact)
    return float(site.stored)


def _made_real(site: Site, work: Work, terms: Terms) -> float | None:
    """The sum times both scales, and a real addend; None where a scale is no factor of whole columns."""
    step = site.step
    names = ("first_scale", "second_scale")
    if not (step["first_in_multiplier"] and step["second_in_multiplier"]) or any(
        step.arrays[name].ndim > 1 for name in names
    ):
        return None
    addend = terms.bias if isinstance(terms.bias, float) else None
    acc = _accumulator(site, work, terms if addend is None else replace(terms, bias=None))
    values, rule = pick(step.arrays, terms.channel), step.rules["scale_back"]
    scales = [np.float32(values[name]) for name in names]
    moved = np.float32(acc)
    if int(moved) != acc:
        work.add("accumulator as binary32", integer(int(moved)), "rounded, ties to even")
    factors = f"{integer(int(moved))} * {real(scales[0])} * {real(scales[1])}"
    added = f"+ {real(addend)}: '{site.name(terms.bias_input)}' {place(terms.bias_place)}" if addend is not None else ""
    if addend is not None and rule in scale_back.WITH_START:
        # The addend is part of the last rounding.
        result = np.float32(scale_back.RULES[rule](np.asarray(acc), *scales, np.float32(addend)))
        work.add("product and bias", real(result), f"{factors} {added} ({rule})")
        return float(result)
    result = np.float32(scale_back.RULES[rule](np.asarray(acc), *scales))
    work.add("product", real(result), f"{factors} ({rule})")
    if addend is not None:
        result = np.float32(result + np.float32(addend))
        work.add("bias", real(result), added)
    return float(result)


def _stored(site: Site, work: Work, rescaled: int | np.floating) -> int:
    zero_point, low, high = (int(site.step[name]) for name in ("output_zero_point", "low", "high"))
    lines, stored = store(site.step.rules["store"], rescaled, zero_point, low, high)
    work.extend(lines)
    work.numbers |= {"zero_point": zero_point, "low": low, "high": high}
    return stored


def _rules_here(site: Site, terms: Terms) -> dict[str, str]:
    """The step's rules, or those of the tail where the element lies behind the whole blocks."""
    step = site.step
    if "rescale_tail" not in step.rules:
        return dict(step.rules)
    flat = "flat_body" in step.parameters
    inside = site.flat < step["flat_body"] if flat else terms.channel < step["body"]
    return dict(step.rules) if inside else tail_rules(step)


def _accumulator(site: Site, work: Work, terms: Terms) -> int:
    products = terms.products
    total = int(products.sum())
    _window(site, work, terms)
    _products(site, work, terms)
    work.add("sum", integer(total), f"{_count(len(products), 'product')}, exact")
    if terms.bias is not None:
        total += int(terms.bias)
        work.add("bias", integer(int(terms.bias)), f"'{site.name(terms.bias_input)}' {place(terms.bias_place)}")
    rule = accumulate.RULES[site.step.rules["accumulate"]]
    acc = _held(site, terms, total)
    bound = site.step.accumulator
    proven = f"|accumulator| <= {integer(bound.magnitude)} is proven" if bound is not None and not bound.wraps else ""
    if acc == total:
        remark = f"sum {signed(int(terms.bias))}" if terms.bias is not None else "the sum"
        work.add("accumulator", integer(acc), f"{remark}; {proven or 'nothing is lost'}")
    else:
        work.add("accumulator", integer(acc), f"of {integer(total)}: {rule.formula}")
    work.numbers["accumulator"] = acc
    return acc


def _held(site: Site, terms: Terms, total: int) -> int:
    """What the register holds: from the reference where the accumulator loses something on the way."""
    rule = accumulate.RULES[site.step.rules["accumulate"]]
    if rule.lost is not None:
        found = accumulators(site.plan, site.step, site.inputs)
        if found is None:
            raise InternalError("BT-EXPLAIN", "no accumulator", place=site.step.place)
        return int(found[site.element])
    bound = site.step.accumulator
    if bound is not None and not bound.wraps:
        return total
    return int(rule.finish(np.asarray(total, np.int64)))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _sizes(places: np.ndarray) -> str:
    """The box around places, as ranges of indices: [0, 3..5, 2..4, 0..15]."""
    parts = []
    for axis in places.T:
        low, high = int(axis.min()), int(axis.max())
        parts.append(str(low) if low == high else f"{low}..{high}")
    return f"[{', '.join(parts)}]"


def _window(site: Site, work: Work, terms: Terms) -> None:
    x, w = site.source(terms.x_input), site.source(terms.w_input)
    padded = int((~terms.inside).sum())
    behind = f", {_count(padded, 'position')} of padding" if padded else ""
    parts = (("inputs", x, terms.x_places, behind, terms.x), ("weights", w, terms.w_places, "", terms.w))
    points = terms.x_zero_point, terms.w_zero_point
    for (label, tensor, places, more, quantized), zero_point in zip(parts, points, strict=True):
        if len(places):
            moved = f"; zero point {zero_point}" if quantized.dtype.kind in "iu" else ""
            shape = f"{tensor.dtype}{list(tensor.shape)}"
            work.add(label, _sizes(places), f"of '{shown_name(tensor.name)}' {shape}{more}{moved}")


def _products(site: Site, work: Work, terms: Terms) -> None:
    products = terms.products
    order = np.argsort(-np.abs(products), kind="stable")[:_SHOWN]
    if products.any():
        order = order[products[order] != 0]
    for at in order:
        x, w = int(terms.x[at]), int(terms.w[at])
        what = f"({x} {signed(-terms.x_zero_point)})" if terms.x_zero_point else factor(x)
        times = f"({w} {signed(-terms.w_zero_point)})" if terms.w_zero_point else factor(w)
        where = f"input {place(tuple(terms.x_places[at]))}" if terms.inside[at] else "padding"
        work.add(
            "product",
            integer(int(products[at])),
            f"{what} * {times}: {where}, weight {place(tuple(terms.w_places[at]))}",
        )
    left = len(products) - len(order)
    if left > 0:
        rest = int(products.sum()) - int(products[order].sum())
        work.add(f"... and {left:,} more", integer(rest), "their sum")


def _real_multiplier(site: Site, work: Work, terms: Terms, values: dict[str, Any]) -> None:
    """Scales of both factors over the output's, where that is what the plan has encoded."""
    x, w, y = site.source(terms.x_input), site.source(terms.w_input), site.tensor
    scales = [scale_of(x.quantization), scale_of(w.quantization, terms.channel), scale_of(y.quantization)]
    if any(scale is None for scale in scales):
        return
    rules = site.step.rules
    forms = [rules[name] for name in ("scale_form", "scale_form_per_axis") if name in rules]
    for form in forms:
        found = scale_form.form(form, *scales)  # type: ignore[arg-type]
        try:
            prepared = rescale_rules.prepare(rules["rescale"], found)
        except ValueError:
            continue
        if all(name in values and np.array_equal(array, values[name]) for name, array in prepared.items()):
            first, second, output = (real(scale) for scale in scales if scale is not None)
            work.add(
                "real multiplier",
                real(float(found)),
                f"{first} * {second} / {output}: scales of input, weights and output ({form})",
            )
            return


def _requantized(work: Work, rule: str, acc: int, values: dict[str, Any]) -> int:
    numerator, denominator = Fraction(float(values["numerator"])), Fraction(float(values["denominator"]))
    exact = acc * numerator / denominator
    result = int(requantize_rules.RULES[rule].apply(np.asarray(acc), {k: np.asarray(v) for k, v in values.items()}))
    work.add("real multiplier", real(float(numerator / denominator)), "scales of both factors over that of the output")
    work.add("exact product", decimal(exact), "accumulator * real multiplier")
    far = abs(exact) >= 2**40
    work.add("rounding", integer(result), "far outside of what can be stored" if far else nearness(exact, TIES["even"]))
    if not far and result != round(exact):
        raise InternalError("BT-EXPLAIN", f"{rule} of {acc} gives {result}, its explanation {round(exact)}")
    work.numbers["real_multiplier"] = float(numerator / denominator)
    work.exact(exact)
    return result
