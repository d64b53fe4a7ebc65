"""Graphs inside of plan files, for what is planned while running."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..graph import Graph, Node, Quantization, Tensor, data_type


class ArrayWriter(Protocol):
    """Keeps arrays and gives them names."""

    def array(self, value: np.ndarray | None) -> str | None: ...

    def quantization(self, value: Quantization | None) -> dict[str, Any]: ...


def graph_entry(graph: Graph, writer: ArrayWriter) -> dict[str, Any]:
    """A graph as JSON."""
    return {
        "name": graph.name,
        "signature": graph.signature,
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "aliases": dict(graph.aliases),
        "tensors": [
            {
                "name": t.name,
                "dtype": t.dtype,
                "shape": t.shape,
                "shape_signature": t.shape_signature,
                "data": writer.array(t.data),
                "variable": t.is_variable,
                **writer.quantization(t.quantization),
            }
            for t in graph.tensors
        ],
        "nodes": [
            {
                "index": n.index,
                "operator": n.operator,
                "source": n.source,
                "version": n.version,
                "attributes": dict(n.attributes),
                "inputs": n.inputs,
                "outputs": n.outputs,
                "intermediates": n.intermediates,
            }
            for n in graph.nodes
        ],
    }


def read_graph(
    entry: dict[str, Any],
    array: Callable[[str | None, object], np.ndarray | None],
    quantization: Callable[[dict[str, Any]], Quantization | None],
) -> Graph:
    """The graph of an entry. KeyError, TypeError or ValueError when the entry contradicts itself."""
    tensors = tuple(
        Tensor(
            str(t["name"]),
            data_type(t["dtype"]).name,
            tuple(int(e) for e in t["shape"]),
            None if t["shape_signature"] is None else tuple(int(e) for e in t["shape_signature"]),
            quantization(t),
            array(t["data"], t["dtype"]),
            bool(t["variable"]),
        )
        for t in entry["tensors"]
    )
    for tensor in tensors:
        _check_tensor(tensor)
    nodes = tuple(
        Node(
            int(n["index"]),
            str(n["operator"]),
            str(n["source"]),
            int(n["version"]),
            {str(key): attribute(value) for key, value in n["attributes"].items()},
            tuple(None if i is None else int(i) for i in n["inputs"]),
            tuple(int(i) for i in n["outputs"]),
            tuple(int(i) for i in n["intermediates"]),
        )
        for n in entry["nodes"]
    )
    graph = Graph(
        str(entry["name"]),
        tensors,
        nodes,
        tuple(int(i) for i in entry["inputs"]),
        tuple(int(i) for i in entry["outputs"]),
        str(entry["signature"]),
        {str(name): int(index) for name, index in entry["aliases"].items()},
    )
    used = [*graph.inputs, *graph.outputs, *graph.aliases.values()]
    for node in nodes:
        used += [*(i for i in node.inputs if i is not None), *node.outputs, *node.intermediates]
    if any(not 0 <= index < len(tensors) for index in used):
        raise ValueError("a tensor index of a graph is out of range")
    return graph


def _check_tensor(tensor: Tensor) -> None:
    if any(extent < 0 for extent in tensor.shape):
        raise ValueError(f"'{tensor.name}' has a negative extent")
    signature = tensor.shape_signature
    if signature is not None and (len(signature) != len(tensor.shape) or min(signature, default=0) < -1):
        raise ValueError(f"the shape signature of '{tensor.name}' does not fit its shape")
    if tensor.quantization is not None:
        check_quantization(tensor.name, tensor.quantization, tensor.shape)
    if tensor.data is None or not tensor.type.bits:
        return
    kind = np.dtype(np.uint8) if tensor.type.is_packed else tensor.type.numpy
    size = math.prod(tensor.shape)
    if tensor.data.dtype != kind or tensor.data.shape != ((size * tensor.type.bits + 7) // 8 // kind.itemsize,):
        raise ValueError(f"content of '{tensor.name}' does not fit its shape and type")


def check_quantization(name: str, quantization: Quantization, shape: tuple[int, ...] | None = None) -> None:
    """One scale, or one per slice of an axis of `shape` (None: it may have changed); as many zero points."""
    scales, points = quantization.scales, quantization.zero_points
    count = 1 if quantization.axis is None else scales.size if shape is None else shape[quantization.axis]
    if (
        not scales.size
        or scales.shape != (count,)
        or points.shape != (count,)
        or scales.dtype != np.float32
        or points.dtype != np.int64
    ):
        raise ValueError(f"the quantization of '{name}' does not fit its shape")


def attribute(value: Any) -> Any:
    """Lists of JSON are tuples here."""
    return tuple(attribute(v) for v in value) if isinstance(value, list) else value
