"""quantize: from real numbers to stored integers, or from one scale and zero point to another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arithmetic import fixed_point
from ..graph import DATA_TYPES, Quantization
from ..rules import quantize as quantize_rules
from ..rules import rescale, store
from .accumulator import multiplier_arrays
from .base import Call, Lowered, Operator, Step, same_shape
from .elementwise import blockwise


def per_axis_arrays(quantization: Quantization, rank: int) -> dict[str, np.ndarray]:
    """`scales` (f32) and `zero_points` (s64) in a shape that broadcasts over the tensor."""
    shape = [1] * rank
    if quantization.axis is not None:
        shape[quantization.axis] = quantization.scales.size
    return {
        "scales": quantization.scales.astype(np.float32).reshape(shape),
        "zero_points": quantization.zero_points.astype(np.int64).reshape(shape),
    }


def rescale_input(call: Call) -> Lowered:
    """One multiplier from input to output scale, both zero points, and the whole range of the output type."""
    source, output = call.input(0), call.output
    return Lowered(
        parameters={
            "input_zero_point": source.zero_point,
            "output_zero_point": output.zero_point,
            "low": output.type.minimum,
            "high": output.type.maximum,
            "dtype": output.dtype,
        },
        arrays=multiplier_arrays(call, source.scale, 1),
    )


def rescale_blocks(step: Step, x: np.ndarray) -> np.ndarray:
    """store(rescale(wrap32(q - input zero point))), block by block."""
    apply, finish = rescale.RULES[step.rules["rescale"]].apply, store.RULES[step.rules["store"]]
    zero_point, output_zero_point = step["input_zero_point"], step["output_zero_point"]
    low, high = step["low"], step["high"]

    def one(block: np.ndarray) -> np.ndarray:
        return finish(apply(fixed_point.wrap_s32(block - zero_point), step.arrays), output_zero_point, low, high)

    return blockwise(one, [x], DATA_TYPES[step["dtype"]].numpy)


def lower(call: Call) -> Lowered:
    """The output's scales and zero points for real input, else one multiplier."""
    if call.input(0).type.is_integer:
        return rescale_input(call)
    output = call.output
    if output.quantization.per_axis and output.type.bits < 8:
        raise call.invalid(
            "BT-QUANT-PER-AXIS", f"{output.type.title} output '{output.name}' cannot have several scales"
        )
    return Lowered(
        parameters={"low": output.type.minimum, "high": output.type.maximum, "dtype": output.dtype},
        arrays=per_axis_arrays(output.quantization, output.rank),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Element by element."""
    if "scales" not in step.arrays:
        return [rescale_blocks(step, inputs[0])]
    rule, low, high = quantize_rules.QUANTIZE[step.rules["quantize"]], step["low"], step["high"]

    def one(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
        # binary64 carries the binary32 numbers and the 32-bit zero points exactly.
        return rule(x, scale, zero_point.astype(np.int64), low, high)

    arrays = [inputs[0], step.arrays["scales"], step.arrays["zero_points"]]
    return [blockwise(one, arrays, DATA_TYPES[step["dtype"]].numpy, np.dtype(np.float64))]


OPERATOR = Operator(
    "quantize",
    ("quantize", "scale_form", "rescale", "store"),
    same_shape,
    lower,
    reference,
    "real numbers to integers, or a change of scale",
)
