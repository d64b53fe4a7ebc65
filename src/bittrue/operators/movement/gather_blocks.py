"""What `gather` does with weights of 2, 4 or 8 bits in blocks along an axis, with a scale and a zero point each.

Operands: q, positions, scales, zero points (absent: the middle of u8 data, else 0). u8 data and zero points hold
8 / bits numbers per byte along the last axis, the first one in the lowest bits; s4 and u4 are numbers of their own.
Attributes: `axis`, `block_axis`, `block_size`, `bits`. What is picked becomes real,
f32((q - zero point) * scale). Positions count from either end; beyond both, slices are 0.
Floats of 8 and 4 bits have no zero points; a block size of 0 means the whole axis, and scales broadcast along others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules.quantize import DEQUANTIZE
from ..core.base import Call, Lowered, Shape, Step
from ..core.indexing import bounded
from ..core.packed import unpacked
from ..core.role_quantization import at


def _is_float(call: Call) -> bool:
    return call.input(0).dtype[0] == "f"


def _block(call: Call, along: int) -> int:
    """How many numbers a block holds."""
    return int(call.attribute("block_size")) or max(1, call.input(0).shape[along])


def _axes(call: Call) -> tuple[int, int, int]:
    """The axes along which slices are picked and blocks lie, and how many numbers an element of the data holds."""
    data = call.input(0)
    call.rank(data, 2, max(2, data.rank))
    axis, along = (call.axis(call.attribute(name), data.rank) for name in ("axis", "block_axis"))
    bits, block = int(call.attribute("bits")), int(call.attribute("block_size"))
    packed = data.dtype == "u8"
    if _is_float(call):
        if call.has(3):
            raise call.invalid("BT-BLOCK-POINTS", f"{data.dtype} data has no zero points", "leave them out")
        if block and (block < 16 or block & (block - 1)):
            raise call.invalid("BT-BLOCK-SIZE", f"block_size {block} is neither 0 nor a power of 2 of 16 or more")
        return axis, along, 1
    if bits not in ((2, 4, 8) if packed else (4,)):
        raise call.invalid("BT-BLOCK-BITS", f"{data.dtype} data holds numbers of {bits} bits", "give their bits")
    if block < 16 or block & (block - 1):
        raise call.invalid("BT-BLOCK-SIZE", f"block_size {block} is no power of 2 of 16 or more")
    if packed and (axis != 0 or along != data.rank - 1 or axis == along):
        raise call.invalid(
            "BT-BLOCK-AXIS",
            f"u8 data of rank {data.rank} is picked along axis {axis}, its blocks lie along axis {along}",
            "pick along the first axis, with blocks along the last one",
        )
    return axis, along, 8 // bits if packed else 1


def infer(call: Call) -> list[Shape]:
    """The axis gives way to the positions' axes; packed numbers take the place of bytes."""
    call.expect((3, 4))
    axis, along, each = _axes(call)
    data, block = call.input(0).shape, _block(call, along)
    blocks = -(-data[along] * each // block)
    for position, role, per_block in ((2, "the scales", 1), (3, "the zero points", each)):
        if call.has(position):
            wanted = tuple(-(-blocks // per_block) if i == along else size for i, size in enumerate(data))
            shape = list(call.input(position).shape)
            # Along which axes a scale may stand for all.
            alike = tuple(
                w if _is_float(call) and i != along and size == 1 else size
                for i, (size, w) in enumerate(zip(shape, wanted, strict=False))
            )
            if len(shape) != len(wanted) or alike != wanted:
                raise call.invalid("BT-BLOCK-SHAPE", f"{role} have shape {shape}, expected {list(wanted)}")
    whole = tuple(size * each if i == along else size for i, size in enumerate(data))
    return [bounded(call, whole[:axis] + call.input(1).shape + whole[axis + 1 :])]


def lower(call: Call) -> Lowered:
    """Axes counted from the front."""
    axis, along, each = _axes(call)
    block, bits = _block(call, along), int(call.attribute("bits")) if each > 1 else 0
    middle = 1 << (int(call.attribute("bits")) - 1) if call.input(0).dtype == "u8" else 0
    return Lowered(
        {
            "axis": axis,
            "block_axis": along,
            "block_size": block,
            "packed_bits": bits,
            "middle": middle,
            "floats": _is_float(call),
        },
        scratch=40 * call.output.size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Slices are picked first; where blocks lie along the same axis, their scales are those of each position."""
    (data, positions, scales), points = inputs[:3], at(inputs, 3)
    axis, along, block, bits = (step[name] for name in ("axis", "block_axis", "block_size", "packed_bits"))
    scales = np.broadcast_to(scales, (*data.shape[:along], scales.shape[along], *data.shape[along + 1 :]))
    size = data.shape[axis]
    places = positions.astype(np.int64)
    outside = (places < -size) | (places >= size)
    places = np.where(outside, 0, np.where(places < 0, places + size, places))
    if not size:
        shape = data.shape[:axis] + positions.shape + data.shape[axis + 1 :]
        return [np.zeros(shape, np.float32)]

    def picked(array: np.ndarray, packed: bool, per: int) -> np.ndarray:
        """Slices of an array with one number per `per` elements of the data's blocked axis."""
        found = np.take(array, places // per if axis == along else places, axis=axis)
        found = unpacked(found, bits) if packed and bits else found
        if per == 1 or axis == along:
            return found
        place = along if along < axis else along + positions.ndim - 1
        return found.take(np.arange(data.shape[along] * (8 // bits if bits else 1)) // per, axis=place)

    q = picked(data, True, 1)
    zero_points = np.int64(step["middle"]) if points is None else picked(points, True, block).astype(np.int64)
    result = DEQUANTIZE[step.rules["dequantize"]](q, picked(scales, False, block), np.asarray(zero_points))
    hidden = outside.reshape((1,) * axis + outside.shape + (1,) * (result.ndim - axis - outside.ndim))
    return [np.where(hidden, np.float32(0), result)]
