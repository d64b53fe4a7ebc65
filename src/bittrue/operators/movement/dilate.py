"""Elements spread apart, with one value between and around them; negative borders crop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Shape, Step
from ..core.indexing import bounded

_MOST_AXES = 8


def _by_factors(call: Call) -> list[tuple[int, int, int]]:
    """The second input: how far apart elements come; nothing around them."""
    source, factors = call.input(0), call.integers(1, "factors")
    call.rank(call.input(1), 1)
    if source.rank < 1 or len(factors) != source.rank or any(factor < 1 for factor in factors):
        raise call.invalid("BT-DILATE", f"factors {factors} must be {source.rank} numbers of at least 1")
    if not source.size:
        raise call.invalid("BT-DILATE", f"nothing to spread in a tensor of shape {list(source.shape)}")
    return [(0, 0, factor - 1) for factor in factors]


def _paddings(call: Call) -> list[tuple[int, int, int]]:
    """(low, high, interior) per axis."""
    if call.has(1):
        return _by_factors(call)
    source = call.input(0)
    found = [tuple(call.attribute(name)) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")]
    call.rank(source, 1, _MOST_AXES)
    if any(len(padding) != source.rank for padding in found) or any(inner < 0 for inner in found[2]):
        raise call.invalid(
            "BT-PAD", f"paddings {found} must be {source.rank} numbers each, those between elements at least 0"
        )
    return list(zip(*found, strict=True))


def infer(call: Call) -> list[Shape]:
    """Negative paddings at the edges crop; when nothing is left along one axis, every size becomes 0."""
    call.expect(3)
    if call.input(2, "value").size < 1:
        raise call.invalid("BT-DILATE", "the value between elements is empty")
    shape = [
        size + max(size - 1, 0) * inner + low + high
        for size, (low, high, inner) in zip(call.input(0).shape, _paddings(call), strict=True)
    ]
    return [bounded(call, shape if min(shape) > 0 else [0] * len(shape))]


def lower(call: Call) -> Lowered:
    """Where the first element goes, and the distance between elements."""
    paddings = _paddings(call)
    return Lowered(
        parameters={
            "low": tuple(low for low, _, _ in paddings),
            "factors": tuple(inner + 1 for _, _, inner in paddings),
            "shape": call.output.shape,
        },
        inputs=(0, 2),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Element i goes to low + i * factor; elements outside are dropped."""
    x, out = inputs[0], np.full(step["shape"], inputs[1].reshape(-1)[0], inputs[0].dtype)
    source, target = [], []
    for size, room, low, factor in zip(x.shape, step["shape"], step["low"], step["factors"], strict=True):
        first = max(0, -(low // factor))
        end = max(first, min(size, -((low - room) // factor)))
        source.append(slice(first, end))
        target.append(slice(low + first * factor, low + (end - 1) * factor + 1 if end > first else 0, factor))
    if all(part.stop > part.start for part in source):
        out[tuple(target)] = x[tuple(source)]
    return [out]
