"""rotary_embedding: pairs of numbers of every head turned by angles that belong to the position in the sequence.

Operands: x [B, S, N * H] or [B, N, S, H], cosines and sines [positions, pairs] or, without positions, [B, S, pairs];
positions [B, S], or one number, the first of them; lengths and the length of the cache, from which positions follow
where sequences lie in a cache (see `attention`): they end with the last key.

Attributes: `heads` (0: as many as have twice the columns of the cosines), `turned_heads` (0: all; others stay as they
are), `unit` (of the numbers of a head), `turned` (numbers of a head that are turned; 0: as many as there are cosines
for; -1: all, and then `heads` is known), `interleaved` (the two numbers of a pair are neighbours; else they are half of
what is turned apart), `streams` (there are three positions each, [3, B, S], and this says of every pair which one it
takes; missing: one position).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...rules import rotation
from ..core.base import Call, Lowered, Operator, Shape, Step

_X, _COS, _SIN, _POSITIONS, _LENGTHS, _TOTAL = range(6)


def _sizes(call: Call) -> tuple[int, int, int, int, int]:
    """B, S, N, H, numbers that are turned."""
    x, cos, sin = call.input(_X), call.input(_COS, "cosines"), call.input(_SIN, "sines")
    call.rank(x, 3, 4)
    heads = int(call.attribute("heads"))
    if heads < 0:
        raise call.invalid("BT-ROTARY-HEADS", f"there are {heads} heads")
    turned = int(call.attribute("turned")) or 2 * cos.shape[-1]
    if x.rank == 4:
        batch, heads, length, size = x.shape
    else:
        batch, length, columns = x.shape
        size = columns // heads if heads else turned
        if size < 1 or columns % size or (heads and size * heads != columns):
            raise call.invalid("BT-ROTARY-HEADS", f"'{x.name}' has {columns} columns for {heads} heads")
        heads = columns // size
    if turned == -1:
        turned = size
    unit = int(call.attribute("unit"))
    if size % unit:
        raise call.invalid("BT-ROTARY-HEADS", f"heads have {size} numbers, expected a multiple of {unit}")
    if cos.shape != sin.shape or turned % 2 or not 0 < turned <= size or turned != 2 * cos.shape[-1]:
        shapes = f"cosines {list(cos.shape)} and sines {list(sin.shape)}"
        raise call.invalid("BT-ROTARY-SHAPE", f"{shapes} do not turn {turned} of {size} numbers")
    if call.has(_POSITIONS) or call.has(_LENGTHS):
        call.rank(cos, 2)
    elif cos.shape[:2] != (batch, length):
        raise call.invalid("BT-ROTARY-SHAPE", f"cosines have shape {list(cos.shape)} without positions")
    streams = call.node.attributes.get("streams")
    if streams is not None:
        assert isinstance(streams, tuple)
        if len(streams) != cos.shape[-1] or call.input(_POSITIONS).shape != (3, batch, length):
            raise call.invalid(
                "BT-ROTARY-SHAPE",
                f"positions {list(call.input(_POSITIONS).shape)} of {len(streams)} pairs do not fit {cos.shape[-1]}",
            )
        return batch, length, heads, size, turned
    if call.has(_POSITIONS) and call.input(_POSITIONS).size != 1 and call.input(_POSITIONS).shape != (batch, length):
        raise call.invalid("BT-ROTARY-SHAPE", f"positions have shape {list(call.input(_POSITIONS).shape)}")
    if call.has(_LENGTHS) and call.input(_LENGTHS).size != batch:
        raise call.invalid("BT-ROTARY-SHAPE", f"there are {call.input(_LENGTHS).size} lengths for {batch} sequences")
    return batch, length, heads, size, turned


def infer(call: Call) -> list[Shape]:
    """The input's shape."""
    call.expect((3, 6))
    _sizes(call)
    return [call.input(_X).shape]


def lower(call: Call) -> Lowered:
    """Sizes, and where positions come from."""
    batch, length, heads, size, turned = _sizes(call)
    begins = call.has(_TOTAL) and call.integers(_TOTAL, "length") == [length]
    streams = call.node.attributes.get("streams", ())
    single = call.has(_POSITIONS) and not streams and call.input(_POSITIONS).shape != (batch, length)
    return Lowered(
        {
            "batch": batch,
            "length": length,
            "heads": heads,
            "size": size,
            "turned": turned,
            "turned_heads": int(call.attribute("turned_heads")) or heads,
            "interleaved": bool(call.attribute("interleaved")),
            "by_heads": call.input(_X).rank == 4,
            "counts": begins or single,
            "streams": streams,
        },
        scratch=32 * call.input(_X).size,
    )


def _positions(step: Step, inputs: Sequence[np.ndarray | None]) -> np.ndarray:
    """Of every element [B, S]."""
    places, (positions, lengths) = np.arange(step["length"]), inputs[_POSITIONS : _LENGTHS + 1]
    if step["counts"]:
        first = 0 if positions is None else int(positions.reshape(-1)[0])
        return np.broadcast_to(first + places, (step["batch"], step["length"]))
    if positions is not None:
        return positions
    assert lengths is not None
    return lengths.reshape(-1, 1).astype(np.int64) + 1 - step["length"] + places


def _rows(step: Step, inputs: Sequence[np.ndarray | None]) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines [B, 1, S, pairs]."""
    cos, sin = inputs[_COS], inputs[_SIN]
    assert cos is not None
    assert sin is not None
    if inputs[_POSITIONS] is not None or inputs[_LENGTHS] is not None:
        found = _positions(step, inputs)
        if ((found < 0) | (found >= cos.shape[0])).any():
            raise RunError(
                "BT-ROTARY-POSITION", f"a position is outside of the {cos.shape[0]} that are known", place=step.place
            )
        if step["streams"]:
            # One position of three for every pair.
            found = found[np.array(step["streams"], np.int64)].transpose(1, 2, 0)
            pairs = np.arange(cos.shape[1])
            cos, sin = cos[found, pairs], sin[found, pairs]
        else:
            cos, sin = cos[found], sin[found]
    return cos[:, None], sin[:, None]


def reference(step: Step, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """Pair by pair."""
    inputs = [*inputs, *[None] * (6 - len(inputs))]
    x = inputs[_X]
    assert x is not None
    shape = (step["batch"], step["length"], step["heads"], step["size"])
    result = x.copy() if step["by_heads"] else x.reshape(shape).transpose(0, 2, 1, 3).copy()
    turned, half = step["turned"], step["turned"] // 2
    one, two = slice(0, half), slice(half, turned)
    if step["interleaved"]:
        one, two = slice(0, turned, 2), slice(1, turned, 2)
    part = result[:, : step["turned_heads"]]
    rule = rotation.RULES[step.rules["rotation"]]
    part[..., one], part[..., two] = rule.apply(
        part[..., one].copy(), part[..., two].copy(), *_rows(step, inputs), step["interleaved"]
    )
    return [result if step["by_heads"] else np.ascontiguousarray(result.transpose(0, 2, 1, 3)).reshape(x.shape)]


OPERATOR = Operator(
    "rotary_embedding",
    ("rotation",),
    infer,
    lower,
    reference,
    "pairs of numbers of every head turned by the angles of their positions",
)
