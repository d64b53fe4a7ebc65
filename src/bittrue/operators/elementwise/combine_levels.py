"""bias_levels and combine_levels: functions of several tensors of quantized values.

- bias_levels: levels(f32(real(x) + real(b))) (slot `levels`); b lies along the axes of x from `axis` on.
- combine_levels: quantized values as they are, `operation` sum (with `coefficients`, powers of two), product, quotient,
  largest or smallest; the second tensor lies along the axes of the first from `axis` on, further ones have its size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...rules import levels
from ..core.base import Call, Lowered, Operand, Operator, Shape, Step
from ..quantization.level_storage import limits, pair, scale_and_zero_point, stored_blocks

_OPERATIONS = ("sum", "product", "quotient", "largest", "smallest")


def _placed(call: Call, first: Operand, second: Operand) -> Shape:
    """The second shape with 1s behind it, so that it lies along the axes of the first one from `axis` on."""
    axis = call.axis(int(call.attribute("axis")), first.rank) if second.rank else 0
    behind = first.rank - axis - second.rank
    if behind < 0 or first.shape[axis : axis + second.rank] != second.shape:
        raise call.invalid(
            "BT-SHAPE-BROADCAST",
            f"shape {list(second.shape)} does not lie along the axes of {list(first.shape)} from axis {axis} on",
        )
    return (*second.shape, *(1,) * behind)


def infer_bias(call: Call) -> list[Shape]:
    """The first shape."""
    call.expect(2)
    _placed(call, call.input(0), call.input(1, "bias"))
    return [call.input(0).shape]


def lower_bias(call: Call) -> Lowered:
    """Scales, and the bias's shape."""
    parameters = {**limits(call), "bias_shape": _placed(call, call.input(0), call.input(1))}
    for name in ("input", "bias", "output"):
        parameters |= scale_and_zero_point(call, name)
    return Lowered(parameters)


def reference_bias(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Real numbers are added, and their sum is quantized."""
    rule = levels.RULES[step.rules["levels"]]
    bias = levels.real(inputs[1].astype(np.float32), *pair(step, "bias")).reshape(step["bias_shape"])

    def apply(x: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return rule.apply(levels.real(x, *pair(step, "input")) + b, *pair(step, "output"))

    return [stored_blocks(apply, [inputs[0], bias], step.parameters, step.place)]


def infer_combine(call: Call) -> list[Shape]:
    """The first shape; the second one may be shorter, further ones have as many elements."""
    call.expect((1, max(1, len(call.inputs))))
    first = call.input(0)
    if len(call.inputs) > 1:
        _placed(call, first, call.input(1))
    for position in range(2, len(call.inputs)):
        if call.input(position).size != first.size:
            raise call.invalid(
                "BT-SHAPE-BROADCAST",
                f"input {position} has shape {list(call.input(position).shape)}, the first one {list(first.shape)}",
            )
    return [first.shape]


def lower_combine(call: Call) -> Lowered:
    """The operation, coefficients and the second shape."""
    operation, count = str(call.attribute("operation")), len(call.inputs)
    if operation not in _OPERATIONS or (operation == "quotient" and count != 2):
        raise call.invalid("BT-NODE-ATTRIBUTE", f"no operation '{operation}' of {count} tensors")
    parameters = {**limits(call), "operation": operation}
    if operation == "sum":
        for position in range(count):
            coefficient = float(call.attribute(f"coefficient_{position}"))
            if coefficient and (not math.isfinite(coefficient) or abs(math.frexp(coefficient)[0]) != 0.5):
                raise call.unsupported(
                    "BT-COEFFICIENT",
                    f"coefficient {coefficient!r} of input {position} is no power of two",
                    "whether its product is rounded before the sum depends on the processor; scale the layer before",
                )
            parameters[f"coefficient_{position}"] = coefficient
    if count > 1:
        parameters["second_shape"] = _placed(call, call.input(0), call.input(1))
        limited = math.isfinite(call.attribute("low")) or math.isfinite(call.attribute("high"))
        if operation == "quotient" and call.input(0).shape != call.input(1).shape and limited:
            raise call.unsupported(
                "BT-SHAPE-BROADCAST",
                "a quotient by a shorter tensor with limits: the runtime limits what lies behind its result in memory",
                "limit it by a layer of its own",
            )
    return Lowered(parameters)


def _combined(step: Step, parts: Sequence[np.ndarray], broadcasts: bool) -> np.ndarray:
    operation = step["operation"]
    with np.errstate(all="ignore"):
        if operation == "sum":
            scaled = [np.float32(step[f"coefficient_{i}"]) * part for i, part in enumerate(parts)]
            total = np.float32(0) + scaled[0]
            for part in scaled[1:]:
                total = total + part
            return total
        if len(parts) == 1:
            return parts[0]
        first, second = parts[:2]
        if operation == "quotient":
            return (np.float32(1) / second) * first if broadcasts else first / second
        if operation == "product":
            total = first * second
            for part in parts[2:]:
                total = total * part
            return total
        beyond = np.greater if operation == "largest" else np.less
        total = np.where(beyond(first, second), first, second)
        for part in parts[2:]:
            total = np.where(beyond(part, total), part, total)
        return total


def reference_combine(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Left to right, in binary32."""
    shape = inputs[0].shape
    parts = [inputs[0], *(part.reshape(shape) for part in inputs[2:])]
    broadcasts = len(inputs) > 1 and inputs[1].shape != shape
    if len(inputs) > 1:
        parts.insert(1, inputs[1].reshape(step["second_shape"]))
    return [stored_blocks(lambda *p: _combined(step, p, broadcasts), parts, step.parameters, step.place)]


OPERATORS = (
    Operator(
        "bias_levels", ("levels",), infer_bias, lower_bias, reference_bias, "sum of real numbers as levels, by channel"
    ),
    Operator(
        "combine_levels",
        (),
        infer_combine,
        lower_combine,
        reference_combine,
        "sum, product, quotient, largest or smallest of quantized values as they are",
    ),
)
