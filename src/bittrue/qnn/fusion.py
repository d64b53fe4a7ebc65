"""Nodes that belong together: a layer, its bias, its requantization and its clamp as one operator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from .expr import Expr
from .writer import Writer


@dataclass(frozen=True, eq=False)
class Group:
    """Nodes that become one operator.

    Attributes:
        inputs: operands from outside.
        inside: identities (`id`) of the nodes that are computed nowhere else: all of the group but the last one, and
            constants that it takes in another form.
        emit: writes the operator and gives its output.
    """

    inputs: Sequence[Expr]
    inside: Collection[int]
    emit: Callable[[Writer, Sequence[int]], int]


def find_group(last: Expr, uses: Mapping[int, int], kept: Collection[int]) -> Group | None:
    """The largest group that ends in `last`; None where it stands alone.

    `uses`: how many operands each node is, by identity; `kept`: outputs of the graph, which stay.
    """
    return None
