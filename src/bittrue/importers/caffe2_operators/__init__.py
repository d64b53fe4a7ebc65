"""How Caffe2 operators become ours: one table per theme."""

from __future__ import annotations

from . import elementwise, fills, layers, movement
from .base import GraphBuilder, Mappers, Source

MAPPERS: Mappers = {**elementwise.MAPPERS, **layers.MAPPERS, **movement.MAPPERS}

__all__ = ["MAPPERS", "GraphBuilder", "Source", "fills", "map_operator"]


def map_operator(source: Source) -> None:
    """Adds the nodes of one operator.

    Raises:
        InvalidModelError: the operator contradicts itself, or the runtime refuses it.
        UnsupportedError: the operator, or one of its arguments, is not known.
    """
    mapper = MAPPERS.get(source.type)
    if mapper is None:
        raise source.unsupported(
            "BT-CAFFE2-OPERATOR", f"the operator '{source.type}' is not read", f"known: {', '.join(sorted(MAPPERS))}"
        )
    mapper(source)
    source.finish()
