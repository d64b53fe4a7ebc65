"""pad: a border around a tensor, or pieces cut off where its width is negative.

The border holds one value (`mode` constant: the third input as it is stored, else real zero in the output's
parameters), the tensor mirrored (reflect: without its edge, symmetric: with it), its edge repeated (edge), or its other
end (wrap); or one value stands between elements, too (gaps, `dilate.py`). `widths` says how the second input holds the
widths: `pairs` [rank, 2] of (before, after), none negative; a `list` of all before, then all after, of the axes that
the fourth input names or of all; or that list, possibly as the one row of a matrix (`list_or_row`); or of what sizes
are to become `multiples`, behind them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded, parameters_or_zero
from . import dilate

_LARGEST = 2**31 - 1
_MODES = ("constant", "reflect", "symmetric", "edge", "wrap")


def _paired(call: Call) -> bool:
    return bool(call.attribute("widths") == "pairs")


def _widths(call: Call) -> list[tuple[int, int]]:
    """(before, after) per axis; axes that the fourth input does not name have no border."""
    source, widths = call.input(0), call.input(1, "widths")
    if _paired(call):
        if widths.shape != (source.rank, 2):
            raise call.invalid("BT-PAD", f"paddings must have the shape [{source.rank}, 2], found {list(widths.shape)}")
        values = call.integers(1, "widths")
        if any(value < 0 for value in values):
            raise call.invalid("BT-PAD", f"paddings {values} must not be negative")
        return list(zip(values[0::2], values[1::2], strict=True))
    if call.attribute("widths") == "multiples":
        return [(0, -size % most) for size, most in zip(source.shape, call.integers(1, "widths"), strict=True)]
    call.rank(widths, 1, 2 if call.attribute("widths") == "list_or_row" else 1)
    values = call.integers(1, "widths")
    axes = list(range(source.rank))
    if call.has(3):
        call.rank(call.input(3, "axes"), 1)
        axes = [call.axis(axis, source.rank) for axis in call.integers(3, "axes")]
        if len(set(axes)) != len(axes) or (axes and not source.rank):
            raise call.invalid("BT-SHAPE-AXIS", f"axes {axes} of a tensor of rank {source.rank} must be different")
    if len(values) != 2 * len(axes) or any(abs(value) > _LARGEST for value in values):
        raise call.invalid("BT-PAD", f"widths {values} must be {2 * len(axes)} numbers: all before, then all after")
    found = [(0, 0)] * source.rank
    for at, axis in enumerate(axes):
        found[axis] = (values[at], values[at + len(axes)])
    return found


def infer(call: Call) -> list[Shape]:
    """Each dimension grows by the widths before and after it."""
    if call.attribute("mode") == "gaps":
        return dilate.infer(call)
    call.expect((2, 4))
    mode, source = call.attribute("mode"), call.input(0)
    if mode not in _MODES or (mode == "wrap" and not source.size):
        raise call.invalid("BT-PAD", f"a tensor of shape {list(source.shape)} has no border of mode '{mode}'")
    if call.has(2) and call.input(2).size != 1:
        raise call.invalid("BT-PAD", f"the value must be one number, found {call.input(2).size}")
    widths = _widths(call)
    for axis, (size, pair) in enumerate(zip(source.shape, widths, strict=True)):
        if size + sum(pair) < 0 or (mode != "constant" and not _has_border(call, mode, size, pair)):
            raise call.invalid(
                "BT-PAD",
                f"a dimension of {size} (axis {axis}) cannot get a border of {pair[0]} and {pair[1]} ({mode})",
            )
    return [bounded(call, [size + sum(pair) for size, pair in zip(source.shape, widths, strict=True)])]


def _has_border(call: Call, mode: str, size: int, pair: tuple[int, int]) -> bool:
    """Whether there is enough to mirror or to repeat along an axis."""
    if _paired(call):
        return max(pair) <= size - (mode == "reflect")
    # What negative widths leave is what is mirrored or repeated.
    kept = size + min(pair[0], 0) + min(pair[1], 0)
    if not call.input(0).size:
        # Only along an axis without elements must an empty tensor stay empty.
        return size > 0 or sum(pair) <= 0
    enough = mode != "reflect" or max(pair) <= max(kept - 1, 0)
    return enough and (kept > 0 or pair == (0, 0))


def lower(call: Call) -> Lowered:
    """A box and a value, a mirror, or the source position of every position of each axis."""
    if call.attribute("mode") == "gaps":
        return dilate.lower(call)
    mode, source, out, widths = call.attribute("mode"), call.input(0), call.output, _widths(call)
    before = tuple(pair[0] for pair in widths)
    grows = all(width >= 0 for pair in widths for width in pair)
    size = out.size * out.type.numpy.itemsize
    if grows and (mode == "constant" or not out.size):
        return _with_value(call, before)
    if grows and mode in ("reflect", "symmetric"):
        parameters: dict[str, Attribute] = {
            "before": before,
            "after": tuple(pair[1] for pair in widths),
            "edge": int(mode == "reflect"),
        }
        return Lowered(parameters, inputs=(0, 1), scratch=size)
    arrays = {}
    for axis, (dimension, (ahead, behind)) in enumerate(zip(source.shape, widths, strict=True)):
        first, last = max(-ahead, 0), dimension - max(-behind, 0)
        at = np.arange(-ahead, dimension + behind, dtype=np.int64)
        inside = np.clip(at, first, last - 1)
        if mode == "wrap" and last > first:
            inside = first + (at - first) % (last - first)
        if mode == "reflect" and last > first:
            mirrored = np.where(at < first, 2 * first - at, np.where(at >= last, 2 * (last - 1) - at, at))
            inside = np.clip(mirrored, first, last - 1)
        if mode == "constant":
            inside = np.where((at < first) | (at >= last), -1, at)
        arrays[f"positions_{axis}"] = inside
    return Lowered(arrays=arrays, scratch=2 * size)


def _with_value(call: Call, before: tuple[int, ...]) -> Lowered:
    """Widths before each axis, and the value unless it is an input."""
    source, out = call.input(0), call.output
    parameters: dict[str, Attribute] = {"before": before, "shape": out.shape, "value_is_input": call.has(2)}
    # s8 and s16 without quantization are plain integers; u8 always has a zero point, 0 when none is written.
    quantized = out.dtype == "u8" or (out.dtype in ("s8", "s16") and source.tensor.quantization is not None)
    if quantized and call.has(2) and parameters_or_zero(call.input(2)) != parameters_or_zero(out):
        raise call.invalid(
            "BT-QUANT-SAME",
            f"the value '{call.input(2).name}' must have the scale and zero point of the output",
            "the value is stored as it is, without conversion",
        )
    if not call.has(2):
        value = parameters["value"] = parameters_or_zero(out)[1] if quantized else 0
        if quantized and not out.type.minimum <= value <= out.type.maximum:
            raise call.invalid("BT-QUANT-ZERO-POINT", f"zero point {value} lies outside {out.type.title}")
    return Lowered(parameters)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A filled array with the input in the middle; or one axis after the other, by position."""
    if "factors" in step.parameters:
        return dilate.reference(step, inputs)
    out = inputs[0]
    if "value_is_input" in step.parameters:
        value = inputs[2].reshape(()) if step["value_is_input"] else step["value"]
        box = tuple(slice(start, start + size) for start, size in zip(step["before"], out.shape, strict=True))
        out = np.full(step["shape"], value, out.dtype)
        out[box] = inputs[0]
        return [out]
    value = inputs[2].reshape(()) if len(inputs) > 2 and inputs[2] is not None else out.dtype.type(0)
    for axis, size in enumerate(inputs[0].shape):
        positions = step.arrays[f"positions_{axis}"] if step.arrays else _mirror(step, axis, size)
        outside = positions < 0
        if outside.any() and not size:
            shape = (*out.shape[:axis], positions.size, *out.shape[axis + 1 :])
            out = np.full(shape, value, out.dtype)
            continue
        out = np.take(out, np.where(outside, 0, positions), axis=axis)
        if outside.any():
            out[(slice(None),) * axis + (outside,)] = value
    return [out.copy() if out is inputs[0] else out]


def _mirror(step: Step, axis: int, size: int) -> np.ndarray:
    """The position that each element of the axis comes from."""
    before, after, edge = step["before"][axis], step["after"][axis], step["edge"]
    ahead = np.arange(before - 1 + edge, edge - 1, -1)
    behind = np.arange(size - 1 - edge, size - 1 - edge - after, -1)
    return np.concatenate([ahead, np.arange(size), behind])


OPERATOR = Operator(
    "pad",
    (),
    infer,
    lower,
    reference,
    "a border around a tensor, or pieces cut off",
    moves=True,
    layout="border",
)
