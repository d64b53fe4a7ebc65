"""add and sub: first + second, first - second, with NumPy broadcasting; scales may be operands (`operand_pairs`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...arithmetic import fixed_point
from ...arithmetic.powers import nearly_power_of_two
from ...graph import Attribute
from ...rules import affine_sum, affine_sum_of_many, align, plain_range, rescale, scale_form, store
from ..core.accumulator import fused_range, prepare_rescale
from ..core.base import Call, Lowered, Operand, Operator, Shape, Step, broadcast_shape
from ..core.elementwise import blockwise
from ..core.lanes import run_parameters, zip_in_runs
from ..core.roles import OPERAND_PAIR, PAIR
from . import operand_pairs, range_pairs, stored_sums


def has_operands(call: Call) -> bool:
    """Whether scales or ranges are operands."""
    return len(call.inputs) > 2


def infer(call: Call) -> list[Shape]:
    """NumPy broadcasting of two inputs, or what `operand_pairs` makes of several."""
    return operand_pairs.infer(call) if has_operands(call) else broadcast_shape(call)


def reals_below_one(call: Call, reals: Mapping[str, tuple[np.float64, str]]) -> rescale.Prepared:
    """Prepared rescale parameters of real multipliers that must lie in (0, 1) and stay there when encoded.

    `reals`: prefix to the multiplier and what it is.
    """
    fit = all(0 < real < 1 for real, _ in reals.values())
    prepared = rescale.prepare(call.rules["rescale"], [real for real, _ in reals.values()]) if fit else {}
    for place, (real, what) in enumerate(reals.values()):
        if not 0 < real < 1 or (fit and prepared["exponent"][place] > 0):
            raise call.invalid(
                "BT-MULTIPLIER",
                f"the multiplier {what} must lie above 0 and below 1, found {float(real)!r}",
                "the kernels abort, or shift by a negative amount, outside; the scales are orders of magnitude apart",
            )
    places = {prefix: slice(place, place + 1) for place, prefix in enumerate(reals)}
    return {prefix + key: array[place] for prefix, place in places.items() for key, array in prepared.items()}


def aligned_arrays(call: Call, power: int = 1) -> rescale.Prepared:
    """Multipliers that align both inputs, and the one from the aligned sum (to the power `power`) to the output."""
    rule = call.rules["align"]
    first, second, output = (float(o.scale) for o in (call.input(0), call.input(1), call.output))
    unit = align.unit(first, second)
    with np.errstate(invalid="ignore"):
        shares = np.float64(first) / unit, np.float64(second) / unit
    result = align.result_multiplier(rule, first, second, output, power)
    return reals_below_one(
        call,
        {
            "first_": (shares[0], "first scale / (2 * larger scale)"),
            "second_": (shares[1], "second scale / (2 * larger scale)"),
            "": (result, "from the aligned inputs to the output's scale"),
        },
    )


def plain_parameters(call: Call) -> dict[str, Attribute]:
    """`form` and the clamp of an operator on numbers without scales."""
    rule = plain_range.RULES[call.rules["plain_range"]]
    low, high = rule(str(call.node.attributes.get("activation", "none")), call.output.type.numpy)
    return {"form": "plain", "low": low, "high": high}


def plain(step: Step, function: Any, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """function(first, second) in the inputs' own type, wrapped or rounded there, then the fused clamp."""
    dtype = first.dtype
    clamp = plain_range.CLAMPS[step.rules["plain_range"]]

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            result = function(a, b)
        if dtype in (np.float32, np.float16):
            result = plain_range.with_first_nan(result, a, b)
        return clamp(result, step["low"], step["high"])

    return blockwise(block, [first, second], dtype, dtype)


def equal_counts(call: Call) -> None:
    """Both inputs hold as many elements as the output: these forms walk them side by side and do not broadcast."""
    if {call.input(0).size, call.input(1).size} != {call.output.size}:
        raise call.invalid(
            "BT-SHAPE-BROADCAST",
            f"shapes {list(call.input(0).shape)} and {list(call.input(1).shape)} differ, "
            "and this form of the operator does not broadcast",
            "broadcast the smaller input ahead of the operator",
        )


def lower(call: Call) -> Lowered:
    """Multipliers of both inputs and of the result, or right shifts when all scales are powers of two."""
    if "levels" in call.rules or "level_sum" in call.rules:
        return stored_sums.lower(call)
    if has_operands(call):
        return operand_pairs.lower(call, "affine_sum")
    first, second = call.input(0), call.input(1)
    if "affine_sum" in call.rules or "affine_sum_of_many" in call.rules:
        return _affine(call)
    unquantized = first.tensor.quantization is None and call.output.tensor.quantization is None
    if "align" not in call.rules and "rescale" in call.rules:
        tables = {f"{name}_table": rescaled_values(call, o) for name, o in (("first", first), ("second", second))}
        return Lowered(parameters={**fused_range(call), "minimum": first.type.minimum, "form": "tables"}, arrays=tables)
    if "align" not in call.rules or ("plain_range" in call.rules and unquantized and call.node.operator == "add"):
        return Lowered(parameters=plain_parameters(call))
    rule = call.rules["align"]
    scales = [float(o.scale) for o in (first, second, call.output)]
    common = {
        **fused_range(call),
        "first_zero_point": first.zero_point,
        "second_zero_point": second.zero_point,
    }
    if align.RULES[rule].shared_bits:
        one, two, right_shift = align.shared_weights(rule, *scales)
        weights: dict[str, Attribute] = {"first_weight": one, "second_weight": two, "right_shift": right_shift}
        form = "weighted" if align.RULES[rule].shared_ties == "up" else "weighted_away"
        return Lowered(parameters={**common, **weights, "form": form})
    if align.RULES[rule].powers_of_two and call.attribute("pot_scale_int16"):
        logs = [nearly_power_of_two(scale) for scale in scales]
        if all(exact_enough for _, exact_enough in logs):
            shifts = _right_shifts(call, [log2 for log2, _ in logs])
            return Lowered(parameters={**common, "form": "power_of_two", **shifts})
    return Lowered(parameters={**common, **run_parameters(call), "form": "rescaled"}, arrays=aligned_arrays(call))


def pair_of(operand: Operand) -> affine_sum.Pair:
    """Scale and zero point of a tensor."""
    return float(operand.scale), operand.zero_point


def _affine(call: Call) -> Lowered:
    """What the rules for real numbers make of scales and zero points."""
    first, second, output = call.input(0), call.input(1), call.output
    scales = [pair_of(operand) for operand in (first, second, output)]
    if "affine_sum_of_many" in call.rules:
        many = affine_sum_of_many.RULES[call.rules["affine_sum_of_many"]]
        return Lowered({**fused_range(call), "form": "of_many"}, prepared_or_refused(call, many.prepare, scales))
    # One set of numbers serves all rules that a row may combine.
    return Lowered(
        {**fused_range(call), **run_parameters(call), "form": "affine"},
        affine_sum.RULES[call.rules["affine_sum"]].prepare(*scales),
    )


def prepared_or_refused(call: Call, prepare: Any, scales: Sequence[affine_sum.Pair]) -> affine_sum.Prepared:
    """`prepare` of a rule for many inputs; a typed error for scales without a meaning."""
    ends = call.output.type.minimum, call.output.type.maximum
    try:
        prepared: affine_sum.Prepared = prepare(scales[:-1], scales[-1], *ends)
    except ValueError as error:
        raise call.invalid("BT-QUANT-SCALE", str(error), "check the scales of inputs and output") from None
    return prepared


def rescaled_values(call: Call, operand: Operand) -> np.ndarray:
    """What every quantized value of an 8- or 16-bit operand is worth in the output's scale and 32 bits, without zero
    point.
    """
    finish, zero_point = store.RULES[call.rules["store"]], call.output.zero_point
    quantized = np.arange(operand.type.minimum, operand.type.maximum + 1, dtype=np.int64) - operand.zero_point
    real = scale_form.form(call.rules["scale_form"], operand.scale, 1, call.output.scale)
    rescaled = rescale.RULES[call.rules["rescale"]].apply(quantized, prepare_rescale(call, real))
    stored = finish(rescaled, zero_point, fixed_point.S32_MIN, fixed_point.S32_MAX)
    return fixed_point.wrap_s32(stored - zero_point).astype(np.int32)


def _right_shifts(call: Call, logs: list[int]) -> dict[str, Attribute]:
    shifts = [logs[2] - logs[0], logs[2] - logs[1]]
    if 0 not in shifts or min(shifts) < 0:
        raise call.invalid(
            "BT-ADD-POWERS",
            f"scales 2^{logs[0]} and 2^{logs[1]} for an output of 2^{logs[2]}: "
            "one input must have the output's scale, the other none larger",
            "clear pot_scale_int16 when converting",
        )
    if max(shifts) > 15:
        raise call.invalid("BT-ADD-POWERS", f"dividing a 16-bit integer by 2^{max(shifts)} is undefined in the kernels")
    if call.node.operator == "add":
        equal_counts(call)
    return {"first_right_shift": shifts[0], "second_right_shift": shifts[1]}


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Align, add or subtract in 32 bits, rescale and store."""
    if step["form"] == "stored values":
        return stored_sums.reference(step, inputs)
    if step["form"] == "ranges":
        return range_pairs.reference(step, inputs)
    if step["form"] == "operands":
        return operand_pairs.reference(step, inputs, "affine_sum")
    first, second = inputs
    combine = np.subtract if step.operator == "sub" else np.add
    if step["form"] == "plain":
        return [plain(step, combine, first, second)]
    low, high, zero_point = step["low"], step["high"], step["output_zero_point"]
    if step["form"] == "of_many":
        many = affine_sum_of_many.RULES[step.rules["affine_sum_of_many"]].apply
        return [blockwise(lambda a, b: many([a, b], step.arrays, low, high), [first, second], first.dtype)]
    if step["form"] == "affine":

        def affine(rules: Mapping[str, str]) -> Callable[..., np.ndarray]:
            apply = affine_sum.RULES[rules["affine_sum"]].apply
            return lambda a, b: apply(a, b, step.arrays, low, high)

        return [zip_in_runs(step, affine, [first, second], first.dtype)]
    finish = store.RULES[step.rules["store"]]

    def tabled(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        one, two = (step.arrays[f"{name}_table"].astype(np.int64) for name in ("first", "second"))
        total = combine(one[a - step["minimum"]], two[b - step["minimum"]])
        return np.minimum(np.maximum(fixed_point.wrap_s32(total + zero_point), low), high)

    def rescaled(rules: Mapping[str, str]) -> Callable[..., np.ndarray]:
        rule, multiply, finish = rules["align"], rules["rescale"], store.RULES[rules["store"]]

        def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            one = align.apply(rule, a, step["first_zero_point"], multiply, step.arrays, "first_")
            two = align.apply(rule, b, step["second_zero_point"], multiply, step.arrays, "second_")
            return finish(rescale.apply(multiply, combine(one, two), step.arrays), zero_point, low, high)

        return function

    def shifted(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        # Saturating the sum to 16 bits first would change nothing: [low, high] lies inside.
        one = align.apply_power_of_two(a, step["first_right_shift"])
        two = align.apply_power_of_two(b, step["second_right_shift"])
        return np.minimum(np.maximum(combine(one, two), low), high)

    def weighted(divide: Callable[..., np.ndarray], a: np.ndarray, b: np.ndarray) -> np.ndarray:
        # Both products stay below 255 * 2^22, so the sum fits 32 bits.
        one = (a - step["first_zero_point"]) * step["first_weight"]
        two = (b - step["second_zero_point"]) * step["second_weight"]
        divided = divide(combine(one, two), np.int64(step["right_shift"]))
        return finish(divided, zero_point, low, high)

    if step["form"] == "rescaled":
        return [zip_in_runs(step, rescaled, [first, second], first.dtype)]
    forms: dict[str, Callable[..., np.ndarray]] = {
        "power_of_two": shifted,
        "weighted": partial(weighted, fixed_point.divide_by_power_of_two_up),
        "weighted_away": partial(weighted, fixed_point.divide_by_power_of_two_away),
        "tables": tabled,
    }
    return [blockwise(forms[step["form"]], [first, second], first.dtype)]


_SLOTS = (
    "align",
    "align_tail",
    "scale_form",
    "rescale",
    "store",
    "store_tail",
    "lanes",
    "activation_range",
    "plain_range",
)
_AFFINE = ("affine_sum", "affine_sum_tail", "affine_sum_of_many", "range_sum", "level_sum", "levels")

OPERATORS = (
    Operator(
        "add",
        (*_SLOTS, *_AFFINE),
        infer,
        lower,
        reference,
        "element-wise sum",
        roles=OPERAND_PAIR,
        signs=(1, 1),
        elementwise=2,
        mistaken_for=("sub", "mul", "maximum", "minimum"),
    ),
    Operator(
        "sub",
        _SLOTS,
        broadcast_shape,
        lower,
        reference,
        "element-wise difference",
        roles=PAIR,
        signs=(1, -1),
        elementwise=2,
        mistaken_for=("add", "mul", "maximum", "minimum"),
    ),
)
