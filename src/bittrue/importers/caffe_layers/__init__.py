"""Layers to bittrue's operators: one table per theme. Layers that no table names keep their name and find no row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ..mapping import collected, unmapped
from .base import Blob, Builder, Layer, Mapper

# Modules of this folder, each with a table MAPPERS.
_THEMES = ("convolutions", "elementwise", "movement", "pooling")


@cache
def _table() -> Mapping[str, Mapper]:
    return collected(__name__, _THEMES)


def map_layer(layer: Layer) -> None:
    """Adds what the layer means to the graph.

    Raises:
        InvalidModelError, UnsupportedError: parameters or blobs that do not fit.
    """
    mapper = _table().get(layer.type)
    if mapper is not None:
        mapper(layer)
        return
    for top in range(len(layer.tops)):
        layer.emit(unmapped(layer.type), "f32", top=top)


__all__ = ["Blob", "Builder", "Layer", "map_layer"]
