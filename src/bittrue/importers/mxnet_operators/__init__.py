"""MXNet operators to ours: one table per theme, from MXNet's name to what a node becomes.

An operator without an entry is read under a name that no numerics knows: planning then names all of
them at once. An attribute that no mapping reads is an error, because it might change results.

Quantized operators give their result and the two ends of its range. A mapping makes the result of one node, and the
range of another (or of constants, for calibrated ranges), so that ranges that follow from constants are folded by the
planner, and what is prepared from them is prepared once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ..mapping import collected, unmapped
from .base import GraphBuilder, Inner, Mapper, Source

_THEMES = ("floating", "fused", "layers", "pointwise", "quantized")


@cache
def _table() -> Mapping[str, Mapper]:
    return collected(__name__, _THEMES)


def mapper_of(operator: str) -> Mapper | None:
    """The mapping of an operator; None when it has none."""
    return _table().get(operator)


def map_node(source: Source, outputs: int) -> None:
    """Adds what the node means to the graph; `outputs`: how many of its results are asked for.

    Raises:
        InvalidModelError, UnsupportedError: attributes or operands that do not fit; attributes that nobody reads.
    """
    mapper = mapper_of(source.operator)
    if mapper is None:
        names = [f"_output{number}" for number in range(outputs)]
        source.give(*source.emit(unmapped(source.operator), source.inputs, ["f32"] * outputs, names))
        return
    mapper(source)
    source.check_attributes()


__all__ = ["GraphBuilder", "Inner", "Source", "map_node", "mapper_of"]
