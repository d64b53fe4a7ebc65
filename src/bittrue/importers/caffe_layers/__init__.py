"""Layers to bittrue's operators: one table per theme. Layers that no table names keep their name and find no row."""

from __future__ import annotations

import re
from functools import cache

from .base import Blob, Builder, Layer, Mapper

# Modules of this folder, each with a table MAPPERS.
_THEMES = ("convolutions", "elementwise", "movement", "pooling")


@cache
def _table() -> dict[str, Mapper]:
    import importlib

    found: dict[str, Mapper] = {}
    for theme in _THEMES:
        mappers = importlib.import_module(f"{__name__}.{theme}").MAPPERS
        double = found.keys() & mappers.keys()
        if double:
            raise RuntimeError(f"two mappings for {sorted(double)}")
        found.update(mappers)
    return found


def stem(layer_type: str) -> str:
    """The stem of a layer that no table names.

    >>> [stem(name) for name in ("LRN", "BatchNorm", "PriorBox")]
    ['lrn', 'batch_norm', 'prior_box']
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", layer_type).lower()


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
        layer.emit(stem(layer.type), "f32", top=top)


__all__ = ["Blob", "Builder", "Layer", "map_layer"]
