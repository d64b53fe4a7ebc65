"""What is checked of the local functions of an ONNX model before anything is made of it.

The package expands functions, and a small file may call for endless work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..errors import InvalidModelError, UnsupportedError

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, NodeProto

_DEEPEST = 100

Key = tuple[str, str, str]


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
