"""quantize: from real numbers to quantized values, or from one scale and zero point to another.

Scales and zero points belong to the tensors, are operands (`quantize_operands`, of integers `rescale_operands`), or
follow from ranges that are operands (`quantize_ranges`). The output's come first among the operands: real numbers have
none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...arithmetic import fixed_point
from ...graph import DATA_TYPES, Attribute
from ...rules import center, lanes, rescale, store
from ...rules import quantize as quantize_rules
from ..core.accumulator import multiplier_arrays
from ..core.base import Call, Lowered, Operand, Operator, Role, Shape, Step, same_shape
from ..core.elementwise import blockwise, in_lanes
from ..core.functions import IDENTITY
from ..core.indexing import MAX_DIMENSION
from ..core.scalar_operands import unary_shape
from ..elementwise import level_functions
from . import quantize_in_reals, quantize_operands, quantize_ranges, rescale_operands

_ROLES = (Role("output", -1, 1, 2), Role("input", 0, 3, 4))


def per_axis_arrays(call: Call, operand: Operand) -> dict[str, np.ndarray]:
    """`scales` (f32) and `zero_points` (s64) of a tensor in a shape that broadcasts over it.

    Where a file declares more slices than the inferred shape has, kernels never read the parameters that are left over;
    fewer send them beyond the list. Found by running.
    """
    given, shape = operand.quantization, [1] * operand.rank
    scales, zero_points = given.scales.astype(np.float32), given.zero_points.astype(np.int64)
    if given.axis is not None:
        if not operand.size:
            raise call.invalid(
                "BT-SHAPE-EMPTY",
                f"'{operand.name}' of shape {list(operand.shape)} has several scales and no elements",
                "the kernel goes past the end of such a tensor",
            )
        size = operand.shape[given.axis] if given.axis < operand.rank else MAX_DIMENSION
        if size > scales.size:
            raise call.invalid(
                "BT-QUANT-AXIS",
                f"'{operand.name}' has {scales.size} scales for axis {given.axis} of shape {list(operand.shape)}",
                "the kernel would read beyond them; declare the shape that the tensor has",
            )
        shape[given.axis] = size
        scales, zero_points = scales[:size], zero_points[:size]
    return {"scales": scales.reshape(shape), "zero_points": zero_points.reshape(shape)}


def body_parameter(call: Call) -> dict[str, Attribute]:
    """`body`, the number of elements that lie in whole vectors, where the row says that it matters."""
    if "lanes" not in call.rules:
        return {}
    return {"body": lanes.RULES[call.rules["lanes"]].body(call.input(0).size)}


def rescale_input(call: Call) -> Lowered:
    """One multiplier from input to output scale, both zero points, and the whole range of the output type.

    Rules of the slot `center` take inputs with a scale and a zero point per slice of an axis, too.
    """
    source, output = call.input(0), call.output
    common: dict[str, Attribute] = {
        "output_zero_point": output.zero_point,
        "low": output.type.minimum,
        "high": output.type.maximum,
        "dtype": output.dtype,
        **body_parameter(call),
    }
    given = source.quantization
    if "center" in call.rules and given.axis is not None:
        axis = call.axis(given.axis, source.rank, "axis of the scales")
        if given.scales.size != source.shape[axis]:
            raise call.invalid(
                "BT-QUANT-AXIS", f"{given.scales.size} scales for axis {axis} of shape {list(source.shape)}"
            )
        arrays = {**multiplier_arrays(call, given.scales, 1), "input_zero_points": given.zero_points.astype(np.int64)}
        return Lowered(parameters={**common, "axis": axis}, arrays=arrays, scratch=32 * source.size)
    return Lowered(
        parameters={"input_zero_point": source.zero_point, **common}, arrays=multiplier_arrays(call, source.scale, 1)
    )


def _rescale_slices(step: Step, x: np.ndarray) -> np.ndarray:
    """As `rescale_blocks`, with a multiplier and a zero point per slice of an axis."""
    axis, dtype = step["axis"], DATA_TYPES[step["dtype"]].numpy
    moved = np.moveaxis(x, axis, -1)
    centered = center.RULES[step.rules["center"]](moved.astype(np.int64), step.arrays["input_zero_points"])
    arrays = {name: array for name, array in step.arrays.items() if name != "input_zero_points"}
    stored = store.rescale_and_store(centered, step.rules, arrays, step.parameters, dtype)
    return np.ascontiguousarray(np.moveaxis(stored, -1, axis))


def rescale_blocks(step: Step, x: np.ndarray) -> np.ndarray:
    """store(rescale(wrap32(q - input zero point))), block by block; rules of the slot `center` may subtract instead."""
    if "axis" in step.parameters:
        return _rescale_slices(step, x)
    finish = store.RULES[step.rules["store"]]
    zero_point, output_zero_point = step["input_zero_point"], step["output_zero_point"]
    low, high, dtype = step["low"], step["high"], DATA_TYPES[step["dtype"]].numpy

    def one(slot: str) -> Callable[[np.ndarray], np.ndarray]:
        apply = rescale.RULES[step.rules[slot]].apply
        if "center" in step.rules:
            remove = center.RULES[step.rules["center"]]
            return lambda block: finish(
                apply(remove(block, np.int64(zero_point)), step.arrays), output_zero_point, low, high
            )
        return lambda block: finish(
            apply(fixed_point.wrap_s32(block - zero_point), step.arrays), output_zero_point, low, high
        )

    if "rescale_tail" in step.rules:
        return in_lanes(one("rescale"), one("rescale_tail"), step["body"], [x], dtype)
    return blockwise(one("rescale"), [x], dtype)


def infer(call: Call) -> list[Shape]:
    """The shape of the input."""
    if len(call.inputs) == 1:
        return same_shape(call)
    if call.node.attributes.get("ranged"):
        return quantize_ranges.infer(call)
    if call.node.attributes.get("in_reals"):
        return quantize_in_reals.infer(call)
    if rescale_operands.asked(call):
        return rescale_operands.infer(call)
    return unary_shape(call) if len(call.inputs) > 3 else quantize_operands.infer(call)


def lower(call: Call) -> Lowered:
    """The output's scales and zero points for real input, else one multiplier."""
    if call.node.attributes.get("in_reals"):
        return quantize_in_reals.lower(call)
    if "levels" in call.rules:
        return level_functions.lower(call, "quantize", _ROLES)
    if "quotient" in call.rules:
        return quantize_operands.lower(call)
    if "range_quantize" in call.rules or "range_requantize" in call.rules:
        return quantize_ranges.lower(call)
    if rescale_operands.asked(call):
        return rescale_operands.lower(call)
    if call.input(0).type.is_integer:
        return rescale_input(call)
    output = call.output
    if output.quantization.per_axis and output.type.bits < 8:
        raise call.invalid(
            "BT-QUANT-PER-AXIS", f"{output.type.title} output '{output.name}' cannot have several scales"
        )
    return Lowered(
        parameters={
            "low": output.type.minimum,
            "high": output.type.maximum,
            "dtype": output.dtype,
            **body_parameter(call),
        },
        arrays=per_axis_arrays(call, output),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Element by element."""
    if "in_reals" in step.parameters:
        return quantize_in_reals.reference_quantize(step, inputs)
    if "levels" in step.rules:
        return level_functions.reference(step, inputs, "quantize")
    if "quotient" in step.rules:
        return quantize_operands.reference(step, inputs)
    if "ranged" in step.parameters:
        return quantize_ranges.reference(step, inputs)
    if "scales" not in step.arrays:
        return [rescale_blocks(rescale_operands.prepared(step, inputs), inputs[0])]
    low, high, dtype = step["low"], step["high"], DATA_TYPES[step["dtype"]].numpy

    def one(slot: str) -> Callable[..., np.ndarray]:
        rule = quantize_rules.QUANTIZE[step.rules[slot]]
        return lambda x, scale, zero_point: rule(x, scale, zero_point.astype(np.int64), low, high)

    arrays = [inputs[0], step.arrays["scales"], step.arrays["zero_points"]]
    # binary64 carries the binary32 numbers and the 32-bit zero points exactly.
    compute = np.dtype(np.float64)
    if "quantize_tail" in step.rules:
        return [in_lanes(one("quantize"), one("quantize_tail"), step["body"], arrays, dtype, compute)]
    return [blockwise(one("quantize"), arrays, dtype, compute)]


OPERATOR = Operator(
    "quantize",
    (
        "quantize",
        "quantize_tail",
        "center",
        "scale_form",
        "rescale",
        "shift_count",
        "rescale_tail",
        "lanes",
        "store",
        "levels",
        "zero_points",
        "quotient",
        "to_integer",
        "to_integer_tail",
        "narrow",
        "range_quantize",
        "range_requantize",
    ),
    infer,
    lower,
    reference,
    "real numbers to integers or narrow floats, or a change of scale",
    roles=_ROLES,
    elementwise=1,
    function=IDENTITY,
    quantizes=True,
)
