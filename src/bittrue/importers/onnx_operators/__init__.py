"""ONNX operators to bittrue's: one table per theme. Operators that no table names keep their name and find no row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ..mapping import collected, snake_case
from .base import Arrange, Called, GraphBuilder, Mapper, Source

# Modules of this folder, each with a table MAPPERS.
_THEMES = (
    "arithmetic",
    "control",
    "convolutions",
    "floating",
    "indexing",
    "layers",
    "linear",
    "movement",
    "quantized",
    "recurrent",
    "reductions",
)


@cache
def _table() -> Mapping[tuple[str, str], Mapper]:
    return collected(__name__, _THEMES)


def map_node(source: Source) -> None:
    """Adds what the node means to the graph.

    Raises:
        InvalidModelError, UnsupportedError: attributes or operands that do not fit; attributes that nobody reads.
    """
    mapper = _table().get((source.domain, source.op_type))
    if mapper is None:
        from .schema_types import UNKNOWN, result_types

        claims = source.builder.claims
        types = [
            claims[name].dtype if kind == UNKNOWN and name in claims else kind
            for name, kind in zip(source.outputs, result_types(source), strict=True)
        ]
        source.emit(snake_case(source.op_type), types)
        return
    mapper(source)
    unread = sorted(set(source.attributes) - source.read)
    if unread:
        raise source.unsupported(
            "BT-ONNX-ATTRIBUTE",
            f"attribute '{unread[0]}' is not known for {source.op_type} version {source.version}",
            "remove it, or export the model for an opset that has it",
        )


__all__ = ["Arrange", "Called", "GraphBuilder", "Source", "map_node"]
