"""reverse_sequence: the beginning of one axis backwards, as long as another axis says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ..core.base import Call, Lowered, Operator, Shape, Step


def infer(call: Call) -> list[Shape]:
    """The input's shape; one length per position of the batch axis."""
    call.expect(2)
    source, lengths = call.input(0), call.input(1, "lengths")
    along, batch = int(call.attribute("seq_dim")), int(call.attribute("batch_dim"))
    if not (0 <= along < source.rank and 0 <= batch < source.rank and along != batch):
        raise call.invalid(
            "BT-REVERSE-SEQUENCE",
            f"seq_dim {along} and batch_dim {batch} must be two axes of {list(source.shape)}, counted from the front",
        )
    if lengths.shape != (source.shape[batch],):
        raise call.invalid(
            "BT-REVERSE-SEQUENCE", f"lengths must be [{source.shape[batch]}], found {list(lengths.shape)}"
        )
    return [source.shape]


def lower(call: Call) -> Lowered:
    """Both axes."""
    return Lowered(
        parameters={"along": int(call.attribute("seq_dim")), "batch": int(call.attribute("batch_dim"))},
        scratch=8 * call.input(0).size + 8 * call.input(1).size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """out[b, i] = in[b, length[b] - 1 - i] for i < length[b], in[b, i] elsewhere. Lengths below 0 count as 0."""
    x, lengths = inputs[0], inputs[1].astype(np.int64)
    along, batch = step["along"], step["batch"]
    size = x.shape[along]
    bad = lengths[(lengths > size) | (lengths < 1 - 2**31)]
    if bad.size:
        raise RunError(
            "BT-REVERSE-SEQUENCE-LENGTH", f"length {int(bad[0])} must be at most {size}", advice="shorten the length"
        )
    shape = [1] * x.ndim
    shape[along], shape[batch] = size, lengths.size
    place = np.arange(size)[:, None]
    index = np.where(place < lengths, lengths - 1 - place, place)
    index = (index if along < batch else index.T).reshape(shape)
    return [np.take_along_axis(x, np.broadcast_to(index, x.shape), axis=along)]


OPERATOR = Operator("reverse_sequence", (), infer, lower, reference, "the beginning of one axis backwards", moves=True)
