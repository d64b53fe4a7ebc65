"""Functions of one quantized value that is stored as a real number or in 8 bits; scales are binary64 numbers.

y = levels(f(scale * (x - zero point))), limited. For inputs of 8 bits the step holds a table with an entry per value.

- quantize: f(x) = x.
- relu: f(x) = max(x, 0) + slope * min(x, 0), 0 where that is NaN, then at most `most` and at least `least`.
- leaky_relu: x >= zero point: R(x - z, scale / output scale), else R(x - z, scale * alpha / output scale), plus the
  output's zero point; all in integers, R by the slot `rescale`.
- logistic: f(x) = f32(0.5 * tanh(0.5 * x) + 0.5) in binary64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...arithmetic import floats, hyperbolic
from ...graph import DATA_TYPES
from ...rules import level_sum, levels
from ..core.base import Call, Lowered, Role, Step
from ..core.roles import OPERAND_UNARY
from ..quantization.level_storage import at_plan_time, check, limits, pair, quantized, scales_of, stored_blocks

# (rules, parameters, arrays, quantized values in binary32) to numbers before limits.
Function = Callable[[Mapping[str, str], Mapping[str, Any], Mapping[str, np.ndarray], np.ndarray], np.ndarray]


def _levels(rules: Mapping[str, str], known: Mapping[str, Any], y: np.ndarray) -> np.ndarray:
    return levels.RULES[rules["levels"]].apply(y, *pair(known, "output"))


def _relevel(
    rules: Mapping[str, str], known: Mapping[str, Any], arrays: Mapping[str, np.ndarray], x: np.ndarray
) -> np.ndarray:
    return _levels(rules, known, levels.real(x, *pair(known, "input")))


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


def _slopes(call: Call, known: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Both multipliers, in binary64; the slope is a binary32 number."""
    scale, output = known["input_scale"], known["output_scale"]
    slope = float(np.float32(call.attribute("alpha")))

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
    "relu": _rectify,
    "leaky_relu": _leaky,
    "logistic": _sigmoid,
}
_ATTRIBUTES = {"relu": ("slope", "most", "least")}
# The parameter `form` of the steps that are made here.
FORM = "stored values"


def lower(call: Call, stem: str, roles: Sequence[Role] = OPERAND_UNARY) -> Lowered:
    """Scales and zero points of the roles, limits, multipliers of `leaky_relu`, and the table for 8-bit inputs."""
    parameters = {**limits(call), **scales_of(call, roles), "form": FORM}
    parameters |= {name: float(call.attribute(name)) for name in _ATTRIBUTES.get(stem, ())}
    arrays = _slopes(call, parameters) if stem == "leaky_relu" else {}
    source = call.input(0)
    if source.type.is_integer:
        parameters["minimum"] = source.type.minimum

        def table() -> np.ndarray:
            return _evaluate(stem, call.rules, parameters, arrays, quantized(source.dtype), call.place)

        entries = at_plan_time(call, table)
        arrays = {"table": entries.astype(np.int64) if entries.dtype.kind != "f" else entries}
    return Lowered(parameters, arrays, inputs=(0,))


def _evaluate(
    stem: str,
    rules: Mapping[str, str],
    known: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    x: np.ndarray,
    place: str,
) -> np.ndarray:
    return stored_blocks(partial(_FUNCTIONS[stem], rules, known, arrays), [x], known, place)


def made(step: Step) -> bool:
    """Whether `lower` has made the step."""
    return step.parameters.get("form") == FORM


def reference(step: Step, inputs: Sequence[np.ndarray], stem: str) -> list[np.ndarray]:
    """Looked up, or evaluated block by block."""
    x = inputs[0]
    if "table" in step.arrays:
        dtype = DATA_TYPES[step["dtype"]].numpy
        return [step.arrays["table"].astype(dtype)[x.astype(np.intp) - step["minimum"]]]
    return [_evaluate(stem, step.rules, step.parameters, step.arrays, x, step.place)]
