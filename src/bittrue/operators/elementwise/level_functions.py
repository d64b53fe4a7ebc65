"""Functions of one quantized value of a quantized tensor: y = levels(f(scale * (x - zero point))), limited.

Scales are binary64 attributes. Quantized values are binary32 or 8-bit integers; for the latter, and for results of
8 bits, the step holds a table with an entry per value.

- quantize: f(x) = x.
- scale_levels: levels(x) of quantized values, with `factor` as the scale and `addend` as the zero point of the rule.
- power_levels: x^`exponent` of quantized values, as the C library has it in binary32.
- relu: f(x) = max(x, 0) + slope * min(x, 0), 0 where that is NaN, then at most `most` and at least `least`.
- leaky_levels: x >= zero point: R(x - z, scale / output scale), else R(x - z, scale * slope / output scale), plus the
  output's zero point; all in integers.
- logistic: f(x) = f32(0.5 * tanh(0.5 * x) + 0.5) in binary64.
- limit_levels: quantized values between `low` and `high`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...arithmetic import elementary, floats, hyperbolic
from ...graph import DATA_TYPES
from ...rules import level_sum, levels
from ..core.base import Call, Lowered, Operator, Shape, Step, same_shape
from ..quantization.level_storage import at_plan_time, check, codes, limits, pair, scale_and_zero_point, stored_blocks

# (rules, parameters, arrays, quantized values in binary32) to numbers before limits.
Function = Callable[[Mapping[str, str], Mapping[str, Any], Mapping[str, np.ndarray], np.ndarray], np.ndarray]


def _levels(rules: Mapping[str, str], known: Mapping[str, Any], y: np.ndarray) -> np.ndarray:
    return levels.RULES[rules["levels"]].apply(y, *pair(known, "output"))


def _relevel(
    rules: Mapping[str, str], known: Mapping[str, Any], arrays: Mapping[str, np.ndarray], x: np.ndarray
) -> np.ndarray:
    return _levels(rules, known, levels.real(x, *pair(known, "input")))


def _scale(
    rules: Mapping[str, str], known: Mapping[str, Any], arrays: Mapping[str, np.ndarray], x: np.ndarray
) -> np.ndarray:
    return levels.RULES[rules["levels"]].apply(x, known["factor"], known["addend"])


def _power(
    rules: Mapping[str, str], known: Mapping[str, Any], arrays: Mapping[str, np.ndarray], x: np.ndarray
) -> np.ndarray:
    return elementary.power(x, np.float32(known["exponent"]))


def _rectify(
    rules: Mapping[str, str], known: Mapping[str, Any], arrays: Mapping[str, np.ndarray], x: np.ndarray
) -> np.ndarray:
    zero, slope = np.float32(0), np.float32(known["slope"])
    y = levels.real(x, *pair(known, "input"))
    with np.errstate(all="ignore"):
        # Comparisons with NaN are false: it stays until the sum, which is then 0.
        y = np.where(y < zero, zero, y) + slope * np.where(zero < y, zero, y)
    y = np.where(np.isnan(y), zero, y)
    return _levels(rules, known, np.maximum(np.minimum(y, np.float32(known["most"])), np.float32(known["least"])))


def _leaky(
    rules: Mapping[str, str], known: Mapping[str, Any], arrays: Mapping[str, np.ndarray], x: np.ndarray
) -> np.ndarray:
    moved = level_sum.integers(x, floats.round_away) - known["input_zero_point"]
    out = np.empty(moved.shape, np.int64)
    for prefix, part in (("identity_", moved >= 0), ("slope_", moved < 0)):
        prepared = {key: arrays[prefix + key] for key in ("multiplier", "exponent")}
        out[part] = level_sum.rescaled(moved[part], prepared)
    return out + known["output_zero_point"]


def _sigmoid(
    rules: Mapping[str, str], known: Mapping[str, Any], arrays: Mapping[str, np.ndarray], x: np.ndarray
) -> np.ndarray:
    y = levels.real(x, *pair(known, "input")).astype(np.float64)
    return _levels(rules, known, (0.5 * hyperbolic.tanh(0.5 * y) + 0.5).astype(np.float32))


def _limit(
    rules: Mapping[str, str], known: Mapping[str, Any], arrays: Mapping[str, np.ndarray], x: np.ndarray
) -> np.ndarray:
    return x


def _slopes(call: Call) -> dict[str, np.ndarray]:
    """Both multipliers, in binary64; the slope is a binary32 number."""
    (scale, _), (output, _) = (pair(scale_and_zero_point(call, name), name) for name in ("input", "output"))
    slope = float(np.float32(call.attribute("slope")))

    def prepare() -> dict[str, np.ndarray]:
        if not output:
            raise ValueError("the output scale is 0")
        return {
            **level_sum.prepare_defined(scale / output, "identity_"),
            **level_sum.prepare_defined(scale * slope / output, "slope_"),
        }

    found: dict[str, np.ndarray] = check(call, prepare)
    return found


_FUNCTIONS: dict[str, Function] = {
    "quantize": _relevel,
    "scale_levels": _scale,
    "power_levels": _power,
    "relu": _rectify,
    "leaky_levels": _leaky,
    "logistic": _sigmoid,
    "limit_levels": _limit,
}
_ATTRIBUTES = {
    "relu": ("slope", "most", "least"),
    "scale_levels": ("factor", "addend"),
    "power_levels": ("exponent",),
}
# Those whose numbers are taken as they are stored.
_AS_STORED = frozenset({"scale_levels", "power_levels", "limit_levels"})


def infer(call: Call) -> list[Shape]:
    """The input's shape."""
    return same_shape(call)


def lower(call: Call, stem: str) -> Lowered:
    """Scales, zero points and limits, multipliers of `leaky_levels`, and the table for 8-bit inputs."""
    parameters = limits(call)
    if stem not in _AS_STORED:
        parameters |= {**scale_and_zero_point(call, "input"), **scale_and_zero_point(call, "output")}
    parameters |= {name: float(call.attribute(name)) for name in _ATTRIBUTES.get(stem, ())}
    arrays = _slopes(call) if stem == "leaky_levels" else {}
    source = call.input(0)
    if source.type.is_integer:
        parameters["minimum"] = source.type.minimum

        def table() -> np.ndarray:
            return _evaluate(stem, call.rules, parameters, arrays, codes(source.dtype), call.place)

        entries = at_plan_time(call, table)
        return Lowered(parameters, {"table": entries.astype(np.int64) if entries.dtype.kind != "f" else entries})
    return Lowered(parameters, arrays)


def _evaluate(
    stem: str,
    rules: Mapping[str, str],
    known: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    x: np.ndarray,
    place: str,
) -> np.ndarray:
    return stored_blocks(partial(_FUNCTIONS[stem], rules, known, arrays), [x], known, place)


def reference(step: Step, inputs: Sequence[np.ndarray], stem: str) -> list[np.ndarray]:
    """Looked up, or evaluated block by block."""
    x = inputs[0]
    if "table" in step.arrays:
        dtype = DATA_TYPES[step["dtype"]].numpy
        return [step.arrays["table"].astype(dtype)[x.astype(np.intp) - step["minimum"]]]
    return [_evaluate(stem, step.rules, step.parameters, step.arrays, x, step.place)]


def _operator(stem: str, slots: tuple[str, ...], summary: str) -> Operator:
    return Operator(
        stem, slots, infer, partial(lower, stem=stem), partial(reference, stem=stem), summary, elementwise=1
    )


OPERATORS = (
    _operator("scale_levels", ("levels",), "quantized values times a factor, plus an addend"),
    _operator("power_levels", (), "a power of quantized values"),
    _operator("leaky_levels", ("rescale",), "x where it is positive, else slope * x, of levels, in integers"),
    _operator("limit_levels", (), "levels between two limits"),
)
