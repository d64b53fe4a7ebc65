"""leaky_relu: x where it is not negative, alpha * x elsewhere.

The rules of a row decide the arithmetic: `table` has an entry for every 8-bit value; `rescale` has a multiplier for
each side, quantized values that are stored as real numbers too; `slope_rescale` rescales all values and then those
below the zero point. Inputs are those of `logistic`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ...arithmetic import fixed_point
from ...graph import DATA_TYPES, Attribute
from ...records import replace
from ...rules import center, rescale, scale_form, sign, slope, store
from ...rules.table import TableRule
from ..core.accumulator import multiplier_arrays
from ..core.base import Call, Lowered, Operator, Step
from ..core.elementwise import blockwise
from ..core.late import Prepared, Values, prepare_late, prepare_now
from ..core.roles import OPERAND_UNARY
from ..core.scalar_operands import pair, unary_shape
from . import level_functions
from .logistic import operands_lowered, read_table, table_lowered, with_table


def _bent(x: np.ndarray, alpha: np.float32) -> np.ndarray:
    """x where x >= 0, else f32(alpha * x), in binary32."""
    real = np.asarray(x, np.float32)
    return np.where(real >= 0, real, alpha * real)


def _exactly_bent(x: Fraction, alpha: Fraction) -> Fraction:
    return x if x >= 0 else alpha * x


def _function(rule: TableRule, known: Mapping[str, Any]) -> Any:
    # Files hold a binary32 number; a default that they leave out is one, too.
    alpha = np.float32(known["alpha"])
    return partial(_exactly_bent, alpha=Fraction(float(alpha))) if rule.exact else partial(_bent, alpha=alpha)


def _prepare_slope(rules: Mapping[str, str], known: Mapping[str, Any], given: Values) -> Prepared:
    """With r = rescale(q) in 32 bits, the output's zero point z included: r where q >= input zero point, else
    r * alpha + z * (1 - alpha), their sum modulo 2^32; then clamped.
    """
    (scale, point), (output_scale, output_point) = pair(given, 1, 2), pair(given, 3, 4)
    values = np.arange(known["minimum"], known["maximum"] + 1)
    moved = values
    if scale != output_scale or point != output_point:
        centered = center.RULES[rules["center"]](values, np.int64(point))
        prepared = rescale.prepare(rules["rescale"], scale_form.form(rules["scale_form"], scale, 1, output_scale))
        rescaled = rescale.apply(rules["rescale"], centered, prepared)
        moved = store.RULES[rules["store"]](rescaled, output_point, fixed_point.S32_MIN, fixed_point.S32_MAX)
    rule, alpha = rules["slope_rescale"], known["alpha"]
    below, share = (
        rescale.apply(rule, part, rescale.prepare(rule, factor))
        for part, factor in ((moved, alpha), (np.asarray(output_point, np.int64), 1 - alpha))
    )
    results = np.where(values < point, fixed_point.wrap_s32(below + share), moved)
    return {}, {"table": np.clip(results, known["minimum"], known["maximum"])}


def _slope_after_rescaling(call: Call, alpha: float) -> Lowered:
    """A table, made while running where only that tells a zero point."""
    if not np.isfinite(alpha) or alpha == 1:
        raise call.invalid(
            "BT-NODE-ATTRIBUTE", f"alpha is {alpha}: its shift would be undefined", "a slope of 1 needs no operator"
        )
    kind = call.output.type
    known: dict[str, Attribute] = {"dtype": kind.name, "minimum": kind.minimum, "maximum": kind.maximum, "alpha": alpha}
    parameters, arrays = prepare_now(call, (1, 2, 3, 4), known, _prepare_slope, OPERAND_UNARY)
    return Lowered(parameters, arrays, inputs=None if parameters["late"] else (0,))


def lower(call: Call) -> Lowered:
    """A table where the row has a rule for it.

    Else two multipliers; the negative side's is that of |alpha|, and the rule of the slot `sign` says where its sign
    enters, unless the rule of `rescale` takes negative multipliers.
    """
    if len(call.inputs) > 1 and "table" not in call.rules:
        return level_functions.lower(call, "leaky_relu")
    source, output, alpha = call.input(0), call.output, float(call.attribute("alpha"))
    if not output.type.is_integer:
        return Lowered(parameters={"alpha": alpha})
    if "table" in call.rules:
        if "slope_rescale" in call.rules:
            lowered = _slope_after_rescaling(call, alpha)
        elif len(call.inputs) > 1:
            lowered = operands_lowered(call, _function, alpha=alpha)
        else:
            lowered = table_lowered(call, partial(_bent, alpha=np.float32(alpha)))
        # A lookup like any other.
        return replace(lowered, operator="logistic") if lowered.arrays else lowered
    signed = rescale.RULES[call.rules["rescale"]].signed
    return Lowered(
        parameters={
            "input_zero_point": source.zero_point,
            "output_zero_point": output.zero_point,
            "low": output.type.minimum,
            "high": output.type.maximum,
            "negated": alpha < 0 and not signed,
            "dtype": output.dtype,
        },
        arrays={
            **multiplier_arrays(call, source.scale, 1, "identity_"),
            **multiplier_arrays(call, source.scale, alpha if signed else abs(alpha), "alpha_"),
        },
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Both sides are computed, the sign of the centred input selects."""
    if level_functions.made(step):
        return level_functions.reference(step, inputs, "leaky_relu")
    if "slope_rescale" in step.rules:
        return [read_table(prepare_late(step, inputs, _prepare_slope), inputs[0])]
    if "table" in step.rules:
        return [read_table(with_table(step, inputs, _function), inputs[0])]
    if not step.arrays:
        alpha, scaled = np.float32(step["alpha"]), slope.RULES[step.rules["slope"]]
        return [blockwise(lambda x: scaled(x, alpha), [inputs[0]], np.dtype(np.float32), np.dtype(np.float32))]
    rule, finish = step.rules["rescale"], store.RULES[step.rules["store"]]
    zero_point, low, high = step["output_zero_point"], step["low"], step["high"]

    def below(x: np.ndarray) -> np.ndarray:
        return rescale.apply(rule, x, step.arrays, "alpha_")

    if step["negated"]:
        below = partial(sign.RULES[step.rules["sign"]], below)

    def one(block: np.ndarray) -> np.ndarray:
        x = block - step["input_zero_point"]
        negative = below(x)
        rescaled = np.where(x >= 0, rescale.apply(rule, x, step.arrays, "identity_"), negative)
        return finish(rescaled, zero_point, low, high)

    return [blockwise(one, [inputs[0]], DATA_TYPES[step["dtype"]].numpy)]


OPERATOR = Operator(
    "leaky_relu",
    ("center", "scale_form", "rescale", "shift_count", "sign", "slope", "slope_rescale", "store", "table"),
    unary_shape,
    lower,
    reference,
    "x where x >= 0, else alpha * x",
    roles=OPERAND_UNARY,
    elementwise=1,
)
