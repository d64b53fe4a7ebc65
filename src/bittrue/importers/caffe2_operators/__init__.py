"""How Caffe2 operators become ours: one table per theme."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ..mapping import collected
from . import fills
from .base import GraphBuilder, Mapper, Source

# Modules of this folder, each with a table MAPPERS.
_THEMES = ("elementwise", "layers", "movement")

__all__ = ["GraphBuilder", "Source", "fills", "map_operator"]


@cache
def _table() -> Mapping[str, Mapper]:
    return collected(__name__, _THEMES)


def map_operator(source: Source) -> None:
    """Adds the nodes of one operator.

    Raises:
        InvalidModelError: the operator contradicts itself, or the runtime refuses it.
        UnsupportedError: the operator, or one of its arguments, is not known.
    """
    mapper = _table().get(source.type)
    if mapper is None:
        raise source.unsupported(
            "BT-CAFFE2-OPERATOR", f"the operator '{source.type}' is not read", f"known: {', '.join(sorted(_table()))}"
        )
    mapper(source)
    source.finish()
