"""What came of nodes in walks over a graph: rewriting changes few nodes at a time, so later walks repeat the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_

import numpy as np

from ..graph import Node, Tensor
from ..operators import Step
from ..records import dataclass

# Values that follow again are compared with earlier ones up to so many bytes: shapes and indices are small.
_SMALL = 4096


@dataclass(frozen=True, eq=False)
class Came:
    """What came of a node.

    Attributes:
        node: as it was.
        tensors: what it reads and writes.
        values: of what it reads and what is no constant.
        unpacked: what its tensors were unpacked from; None where nothing is.
        fits: whether there was no error.
        shapes, folded: shapes and values of what it writes, as far as they became known.
        asked: step, bytes of its results and of its operands that the decision about folding was of, if there was one.
        folded_bytes, folded_work: what folding took.
    """

    node: Node
    tensors: Sequence[Tensor]
    values: Sequence[np.ndarray | None]
    unpacked: Sequence[str | None] | None
    fits: bool
    shapes: Mapping[int, tuple[int, ...]]
    folded: Mapping[int, np.ndarray]
    asked: tuple[Step, int, int] | None
    folded_bytes: int
    folded_work: int


class Recalled:
    """What came of the nodes of a file's graphs in all walks so far."""

    def __init__(self) -> None:
        self._came: dict[tuple[object, ...], Came] = {}
        self._values: dict[tuple[object, ...], np.ndarray] = {}

    def find(
        self,
        node: Node,
        tensors: Sequence[Tensor],
        shapes: Sequence[tuple[int, ...] | None],
        values: Sequence[np.ndarray | None],
        unpacked: Sequence[str | None] | None,
    ) -> Came | None:
        """What came of an equal node of the same tensors, whose operands had these shapes and values."""
        came = self._came.get(_key(node, shapes, values))
        if came is None or came.node.attributes is not node.attributes or came.node.inputs != node.inputs:
            return None
        before = came.node
        same = (before.operator, before.source, before.version) == (node.operator, node.source, node.version)
        same = same and before.intermediates == node.intermediates and came.unpacked == unpacked
        return came if same and all(map(is_, came.tensors, tensors)) else None

    def keep(self, came: Came, shapes: Sequence[tuple[int, ...] | None]) -> None:
        """Remembers what came of a node whose operands had these shapes."""
        self._came[_key(came.node, shapes, came.values)] = came

    def one(self, value: np.ndarray) -> np.ndarray:
        """The first of all equal values, by which what reads it is found again."""
        if value.nbytes > _SMALL:
            return value
        return self._values.setdefault((value.dtype, value.shape, value.tobytes()), value)


def _key(
    node: Node, shapes: Sequence[tuple[int, ...] | None], values: Sequence[np.ndarray | None]
) -> tuple[object, ...]:
    # What is kept holds the values, so that no other array gets their numbers.
    return (node.outputs, *shapes, *map(id, values))
