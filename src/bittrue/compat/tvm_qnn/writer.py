"""A graph in the making: tensors with scales and zero points, nodes of our operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...graph import Attribute, Graph, Node, Quantization, Tensor, data_type
from .expr import Expr


def quantization(scale: np.ndarray, zero_point: np.ndarray, axis: int | None = None) -> Quantization:
    """Scales and zero points of a tensor; `axis` counts only where there are several."""
    scales, points = np.broadcast_arrays(np.atleast_1d(scale), np.atleast_1d(zero_point))
    several = scale.ndim == 1 or zero_point.ndim == 1
    return Quantization(
        np.ascontiguousarray(scales, np.float32), np.ascontiguousarray(points, np.int64), axis if several else None
    )


# Operators whose results are values of their operands, quantized values of one scale.
_MOVED = frozenset(("clip", "max_pool", "pad", "reshape", "slice", "transpose"))
# Attributes of borders of one value, with widths [rank, 2].
ONE_VALUE: Mapping[str, Attribute] = {"mode": "constant", "widths": "pairs"}


class Writer:
    """Collects tensors and nodes; every method gives the index of a tensor."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.nodes: list[Node] = []
        self.inputs: list[int] = []
        self._names: dict[str, int] = {}
        self._writers: dict[int, Node] = {}

    def name(self, wanted: str) -> str:
        """`wanted`, with a number behind it where it is taken."""
        count = self._names.get(wanted, 0)
        self._names[wanted] = count + 1
        if not count:
            return wanted
        return self.name(f"{wanted}_{count}")

    def tensor(
        self,
        name: str,
        dtype: str,
        shape: Sequence[int],
        given: Quantization | None = None,
        data: np.ndarray | None = None,
    ) -> int:
        """A new tensor."""
        flat = None if data is None else np.ascontiguousarray(data).reshape(-1)
        self.tensors.append(Tensor(self.name(name), dtype, tuple(shape), quantization=given, data=flat))
        return len(self.tensors) - 1

    def variable(self, expr: Expr) -> int:
        """An input of the graph."""
        index = self.tensor(expr.name, expr.dtype, expr.shape)
        self.inputs.append(index)
        return index

    def constant(self, array: np.ndarray, dtype: str, name: str = "constant", given: Quantization | None = None) -> int:
        """A constant."""
        return self.tensor(name, dtype, array.shape, given, np.asarray(array, data_type(dtype).numpy))

    def node(
        self,
        operator: str,
        source: str,
        inputs: Sequence[int | None],
        dtype: str,
        shape: Sequence[int],
        attributes: Mapping[str, Attribute] | None = None,
        given: Quantization | None = None,
        name: str = "",
    ) -> int:
        """A node and its output."""
        index = self.tensor(name or source, dtype, shape, given)
        node = Node(len(self.nodes), operator, source, 1, dict(attributes or {}), tuple(inputs), (index,))
        self.nodes.append(node)
        self._writers[index] = node
        return index

    def quantized(self, index: int, given: Quantization) -> int:
        """Tensor `index` with these parameters: itself, unless it has others already, then the same by another name."""
        found = self.tensors[index].quantization
        if found is None:
            self._give(index, given)
            return index
        if found.same_as(given) and found.axis == given.axis:
            return index
        tensor = self.tensors[index]
        if tensor.data is not None:
            return self.tensor(tensor.name, tensor.dtype, tensor.shape, given, tensor.data)
        return self.reshape(index, tensor.shape, "other parameters", given)

    def _give(self, index: int, given: Quantization) -> None:
        """Tensor `index` and what it was moved from get these parameters, as far as they have none."""
        waiting = [index]
        while waiting:
            index = waiting.pop()
            tensor = self.tensors[index]
            if tensor.quantization is not None:
                continue
            self.tensors[index] = replace(tensor, quantization=given)
            writer = self._writers.get(index)
            if writer is not None and writer.operator in _MOVED and not given.per_axis:
                waiting += [i for i in writer.inputs if i is not None and self.tensors[i].dtype == tensor.dtype]

    def reshape(self, index: int, shape: Sequence[int], source: str, given: Quantization | None = None) -> int:
        """The same numbers in another shape."""
        tensor = self.tensors[index]
        target = self.constant(np.array(shape, np.int32).reshape(len(shape)), "s32", "shape")
        attributes: dict[str, Attribute] = {"new_shape": tuple(int(e) for e in shape), "zeros": "counted"}
        return self.node("reshape", source, (index, target), tensor.dtype, shape, attributes, given)

    def transpose(self, index: int, axes: Sequence[int], source: str = "transpose") -> int:
        """Axes in another order; constants are turned at once."""
        tensor = self.tensors[index]
        if list(axes) == list(range(len(axes))):
            return index
        shape = [tensor.shape[a] for a in axes]
        if tensor.data is not None:
            return self.constant(tensor.values().transpose(axes), tensor.dtype, tensor.name, tensor.quantization)
        order = self.constant(np.array(axes, np.int32), "s32", "permutation")
        return self.node("transpose", source, (index, order), tensor.dtype, shape, {}, tensor.quantization)

    def graph(self, outputs: Sequence[int]) -> Graph:
        """What was collected."""
        return Graph("qnn", tuple(self.tensors), tuple(self.nodes), tuple(self.inputs), tuple(outputs))
