"""dequantize with scales and zero points that are operands: (q - zero_point) * scale.

Inputs: q (integers of 2 to 16 or 32 bits, floats of 4 to 8 bits), scale, zero point (may be absent: 0). Output: f32,
f16 or bf16. Attributes: `axis` and `block_size`.

A step has the arrays and parameters of `quantize_operands` (`scales`, `zero_points`, `axis`, `block_size`, `late`);
`dtype` is the output's type. Rules: `dequantize` multiplies, `narrow` rounds to the output's type; from binary32 to f32
it does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import DATA_TYPES
from ...rules import narrow
from ...rules.quantize import DEQUANTIZE
from ..core.base import Call, Lowered, Step
from ..core.elementwise import blockwise
from ..core.granularity import granularity, prepare, spread
from ..core.late import prepare_late, prepare_now


def lower(call: Call) -> Lowered:
    """Scales and zero points."""
    axis, block = granularity(call)
    parameters, arrays = prepare_now(
        call, (1, 2), {"axis": axis, "block_size": block, "dtype": call.output.dtype}, prepare
    )
    return Lowered(parameters, arrays, scratch=24 * call.output.size if block else 0)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Element by element; binary64 carries all operands exactly."""
    step = prepare_late(step, inputs, prepare)
    q, name = inputs[0], step["dtype"]
    if q.dtype.kind not in "iu":
        q = q.astype(np.float32)
    scales, zero_points = (
        spread(step.arrays[array], q.shape, step["axis"], step["block_size"]) for array in ("scales", "zero_points")
    )
    multiply, finish = DEQUANTIZE[step.rules["dequantize"]], narrow.RULES[step.rules["narrow"]]
    quantized = np.dtype(np.uint32 if name == "f32" else np.uint16)

    def one(q: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
        return finish(multiply(q, scale, zero_point), name)

    return [blockwise(one, [q, scales, zero_points], quantized, np.dtype(np.float64)).view(DATA_TYPES[name].numpy)]
