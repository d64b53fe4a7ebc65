"""What is checked of an ONNX model before anything is made of it: texts, and local functions.

The package expands functions, and a small file may call for endless work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..errors import InvalidModelError, ModelFormatError, UnsupportedError

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

_DEEPEST = 100

Key = tuple[str, str, str]


def check_texts(model: ModelProto) -> None:
    """Refuses names that are no UTF-8, which the protobuf package hands out as bytes.

    Raises:
        ModelFormatError: there is one.
    """
    for text in _texts(model):
        if not isinstance(text, str):
            raise ModelFormatError(
                "BT-ONNX-FORMAT", f"the name {text[:40]!r} is no UTF-8 text", advice="the file is damaged"
            )


def _texts(model: ModelProto) -> Iterator[str | bytes]:
    yield from (model.producer_name, model.producer_version, model.graph.name)
    for prop in model.metadata_props:
        yield from (prop.key, prop.value)
    for function in model.functions:
        yield from (function.name, function.domain, function.overload, *function.input, *function.output)
        yield from (entry.domain for entry in function.opset_import)
        yield from _texts_of_nodes(function.node)
    yield from (entry.domain for entry in model.opset_import)
    yield from _texts_of_graph(model.graph)


def _texts_of_graph(graph: GraphProto) -> Iterator[str | bytes]:
    for info in (*graph.input, *graph.value_info, *graph.output):
        yield info.name
        yield from (dim.dim_param for dim in info.type.tensor_type.shape.dim)
    for tensor in graph.initializer:
        yield tensor.name
        yield from (text for entry in tensor.external_data for text in (entry.key, entry.value))
    yield from _texts_of_nodes(graph.node)


def _texts_of_nodes(nodes: Iterable[NodeProto]) -> Iterator[str | bytes]:
    for node in _all_nodes(nodes, 0):
        yield from (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
        for attribute in node.attribute:
            yield from (attribute.name, attribute.ref_attr_name)
            yield from (text for entry in attribute.t.external_data for text in (entry.key, entry.value))


def check_functions(model: ModelProto, most_nodes: int) -> None:
    """Refuses functions that call themselves, and those that would become too many nodes.

    Raises:
        InvalidModelError: a function calls itself, or there are two of a name.
        UnsupportedError: more nodes than `most_nodes`, or calls nested too deep.
    """
    functions: dict[Key, FunctionProto] = {}
    for function in model.functions:
        key = (function.domain, function.name, function.overload)
        if key in functions:
            raise InvalidModelError("BT-ONNX-FUNCTION", f"function '{function.name}' is given twice")
        functions[key] = function
    sizes: dict[Key, int] = {}

    def size(nodes: Iterable[NodeProto], callers: tuple[Key, ...]) -> int:
        total = 0
        for node in _all_nodes(nodes, 0):
            key = (node.domain, node.op_type, node.overload)
            total += called(key, callers) if key in functions else 1
            if total > most_nodes:
                raise UnsupportedError("BT-NODES", f"more than {most_nodes:,} nodes, counting those of functions")
        return total

    def called(key: Key, callers: tuple[Key, ...]) -> int:
        if key in callers:
            raise InvalidModelError("BT-ONNX-FUNCTION", f"function '{key[1]}' calls itself")
        if len(callers) >= _DEEPEST:
            raise UnsupportedError("BT-ONNX-FUNCTION", f"more than {_DEEPEST} functions within each other")
        if key not in sizes:
            # A call costs the expansion something even where the function is empty.
            sizes[key] = 1 + size(functions[key].node, (*callers, key))
        return sizes[key]

    for key in functions:
        called(key, ())
    size(model.graph.node, ())


def _all_nodes(nodes: Iterable[NodeProto], deep: int) -> Iterator[NodeProto]:
    """The nodes and those of graphs in their attributes."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                if graph.node and deep < _DEEPEST:
                    yield from _all_nodes(graph.node, deep + 1)
