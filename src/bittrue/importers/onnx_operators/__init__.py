"""ONNX operators to bittrue's: one table per theme. Operators that no table names keep their name and find no row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ...errors import MISFITS
from ...graph import Attribute
from ...records import replace
from ..mapping import collected, unmapped
from .base import MICROSOFT, Arrange, Called, GraphBuilder, Mapper, Source

# Modules of this folder, each with a table MAPPERS.
_THEMES = (
    "arithmetic",
    "attention",
    "channel_blocks",
    "classical",
    "control",
    "convolutions",
    "einsum",
    "floating",
    "indexing",
    "layers",
    "linear",
    "movement",
    "quantized",
    "recurrent",
    "reductions",
    "sequences",
    "signal",
    "streams",
    "trees",
)
# Domains whose operators are the same for everyone. Those of others are defined by the program that registers them.
_KNOWN = ("", "ai.onnx.ml", "ai.onnx.preview.training", MICROSOFT)


@cache
def _table() -> Mapping[tuple[str, str], Mapper]:
    return collected(__name__, _THEMES)


def check_schema(source: Source) -> None:
    """Refuses a node whose operands or attributes its operator's schema does not have.

    Raises:
        InvalidModelError, UnsupportedError: attributes or numbers of operands that do not fit.
    """
    from .schema_types import check_arity, check_attributes

    check_arity(source)
    check_attributes(source)


def map_node(source: Source) -> None:
    """Adds what the node means to the graph.

    Raises:
        InvalidModelError, UnsupportedError: attributes or operands that do not fit; attributes that nobody reads.
    """
    from .schema_types import UNKNOWN, check_arity, check_attributes, result_types, unknown_attribute

    mapper = _table().get((source.domain, source.op_type))
    check_arity(source)
    if mapper is None:
        claims = source.builder.claims
        types = [
            claims[name].dtype if kind == UNKNOWN and name in claims else kind
            for name, kind in zip(source.outputs, result_types(source), strict=True)
        ]
        name = f"{source.domain}.{source.op_type}" if source.domain else source.op_type
        operator = unmapped(name) if source.domain in _KNOWN else "custom"
        source.emit(operator, types, source=(name, source.version))
        return
    check_attributes(source)
    first = len(source.builder.nodes)
    try:
        mapper(source)
    except MISFITS as error:
        # Operators outside the standard have no schema that says how many operands there are.
        raise source.invalid(
            "BT-NODE-ARITY", f"operands or attributes do not fit the operator ({type(error).__name__}: {error})"
        ) from error
    _mark(source, first)
    unread = sorted(set(source.attributes) - source.read)
    if unread:
        raise unknown_attribute(source, unread[0])


def _mark(source: Source, first: int) -> None:
    """What the nodes from one node of the file say besides.

    Of binary16 numbers, that they belong together: a runtime widens all of them or none. Of its own domain a runtime
    computes everything but quantizations in every run, of constants, too.
    """
    builder = source.builder
    marks: dict[str, Attribute] = {}
    if len(builder.nodes) - first > 1 and any(
        i is not None and builder.tensors[i].dtype == "f16" for i in source.inputs
    ):
        marks["whole"] = next((name for name in source.outputs if name), source.label)
    if source.domain == MICROSOFT and source.op_type != "QuantizeLinear":
        marks["computed"] = True
    if marks:
        builder.nodes[first:] = [replace(one, attributes={**one.attributes, **marks}) for one in builder.nodes[first:]]


__all__ = ["Arrange", "Called", "GraphBuilder", "Source", "check_schema", "map_node"]
