"""Graphs read from plan files, which are untrusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..graph import Graph, Node, Quantization, Tensor, data_type, find_disorder
from ..operators import find

# Model files have at most 32 bits for sizes and indices, and 64 for attributes.
_MOST = 2**31 - 1
_WIDEST = 2**64


def read_graph(entry: Any, arrays: Mapping[str, np.ndarray]) -> Graph:
    """The graph of an entry of `description.graph_entry`.

    Members are converted without complaint: the caller describes the graph again and compares.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: the entry contradicts itself, or breaks what importers promise
            of graphs.
    """
    tensors = tuple(_tensor(one, arrays) for one in entry["tensors"])
    nodes = tuple(
        Node(
            _index(n["index"], _MOST),
            str(n["operator"]),
            str(n["source"]),
            _index(n["version"], _MOST),
            {str(key): _attribute(value) for key, value in n["attributes"].items()},
            tuple(None if i is None else _index(i, len(tensors)) for i in n["inputs"]),
            tuple(_index(i, len(tensors)) for i in n["outputs"]),
            tuple(_index(i, len(tensors)) for i in n["intermediates"]),
        )
        for n in entry["nodes"]
    )
    graph = Graph(
        str(entry["name"]),
        tensors,
        nodes,
        tuple(_index(i, len(tensors)) for i in entry["inputs"]),
        tuple(_index(i, len(tensors)) for i in entry["outputs"]),
        str(entry["signature"]),
        {str(name): _index(index, len(tensors)) for name, index in entry["aliases"].items()},
    )
    for node in nodes:
        if find(node.operator) is None:
            raise ValueError(f"unknown operator '{node.operator}'")
    disorder = find_disorder(tensors, nodes, graph.inputs, graph.outputs)
    if disorder is not None:
        raise ValueError(f"{disorder.where}, tensor {disorder.tensor}: {disorder.message}")
    return graph


def _index(value: Any, end: int) -> int:
    if type(value) is not int or not 0 <= value < end:
        raise ValueError(f"{value!r} is no index below {end}")
    return value


def _tensor(entry: Any, arrays: Mapping[str, np.ndarray]) -> Tensor:
    name, kind = str(entry["name"]), data_type(entry["dtype"])
    shape = tuple(_index(e, _MOST + 1) for e in entry["shape"])
    signature = entry["shape_signature"]
    if signature is not None:
        signature = tuple(-1 if e == -1 else _index(e, _MOST + 1) for e in signature)
        if len(signature) != len(shape):
            raise ValueError(f"the shape signature of '{name}' does not fit its shape")
    return Tensor(
        name,
        kind.name,
        shape,
        signature,
        _quantization(entry, name, shape, arrays),
        None if entry["data"] is None else _content(arrays[entry["data"]], name, kind.name, shape),
        bool(entry["variable"]),
    )


def _content(found: np.ndarray, name: str, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Constant content as a graph keeps it: one dimension, and the type that `dtype` has in files."""
    kind = data_type(dtype)
    if kind.bits and isinstance(kind.array, str) and found.dtype == f"u{kind.numpy.itemsize}":
        found = found.view(kind.numpy)
    expected = kind.numpy if kind.bits >= 8 else np.dtype(np.uint8)
    wanted = shape if kind.bits >= 8 else ((math.prod(shape) * kind.bits + 7) // 8,) if kind.bits else (found.size,)
    if found.dtype != expected or found.shape != wanted:
        raise ValueError(f"content of '{name}' does not fit its shape and type")
    return found.reshape(-1)


def _quantization(
    entry: Any, name: str, shape: tuple[int, ...], arrays: Mapping[str, np.ndarray]
) -> Quantization | None:
    """One scale, or one per slice of an axis; as many zero points."""
    if entry["scales"] is None:
        return None
    scales, points, axis = arrays[entry["scales"]], arrays[entry["zero_points"]], entry["axis"]
    count = 1 if axis is None else shape[_index(axis, len(shape))]
    if (
        not count
        or scales.shape != (count,)
        or points.shape != (count,)
        or scales.dtype != np.float32
        or points.dtype != np.int64
    ):
        raise ValueError(f"the quantization of '{name}' does not fit its shape")
    return Quantization(scales, points, axis)


def _attribute(value: Any) -> Any:
    """Lists of JSON are tuples in graphs; `description.plain` says what stands for numbers that are not finite."""
    if isinstance(value, list):
        return tuple(_attribute(v) for v in value)
    if isinstance(value, dict):
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[value["float"]]
    if type(value) is int and abs(value) > _WIDEST:
        raise ValueError("an attribute has more than 64 bits")
    return value
