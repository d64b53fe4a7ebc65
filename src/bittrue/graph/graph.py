"""The graph that importers produce and the planner reads: plain, immutable data in bittrue's own words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from ..names import brief
from ..records import dataclass, field, replace
from .types import DataType, data_type

Attribute = bool | int | float | str | tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Quantization:
    """real = scale * (q - zero_point), per tensor or per slice of one axis.

    Attributes:
        scales: binary32 array of shape [1] or [size of `axis`].
        zero_points: int64 array of the same shape.
        axis: the axis that the scales belong to; None for per-tensor parameters.
        declared_axis: what the file says instead, where the tensor has no such axis and the reader took another one.
    """

    scales: np.ndarray
    zero_points: np.ndarray
    axis: int | None = None
    declared_axis: int | None = None

    @property
    def per_axis(self) -> bool:
        return self.axis is not None

    @cached_property
    def zero_point_ends(self) -> tuple[int, int]:
        """The least and the greatest zero point; (0, 0) where there are none."""
        points = self.zero_points
        if points.size == 1:
            return (int(points[0]),) * 2
        return (int(points.min()), int(points.max())) if points.size else (0, 0)

    def zero_point_outside(self, low: int, high: int) -> int | None:
        """The first zero point that is not `low` to `high`; None when all are."""
        least, greatest = self.zero_point_ends
        if low <= least and greatest <= high:
            return None
        points = self.zero_points
        return int(points[(points < low) | (points > high)][0])

    def same_as(self, other: Quantization) -> bool:
        """Equal scales (bit for bit) and equal zero points."""
        return np.array_equal(self.scales, other.scales) and np.array_equal(self.zero_points, other.zero_points)

    def __repr__(self) -> str:
        return f"Quantization({self})"

    def __str__(self) -> str:
        if self.axis is not None:
            low, high = float(self.scales.min()), float(self.scales.max())
            return f"scale {low:.6g}..{high:.6g} per axis {self.axis} ({self.scales.size})"
        return f"scale {float(self.scales[0]):.9g} zero point {int(self.zero_points[0])}"


@dataclass(frozen=True, eq=False)
class Tensor:
    """One edge of the graph.

    Attributes:
        name: unique within its graph.
        dtype: short type name (see `bittrue.graph.types`).
        shape: the shape that the file declares. The planner infers shapes anew and never allocates by this one.
        shape_signature: like `shape` with -1 for free dimensions; None when the file has none; () where a file
            that may leave even their number open declares a scalar.
        quantization: None when the tensor carries no scale.
        data: constant content as a one-dimensional array that views the file's bytes (sub-byte types stay packed,
            one uint8 per byte); None for computed tensors.
        is_variable: keeps its value from one run to the next.
        symbols: names of the free dimensions, "" of the others; the same name is the same dimension.
        is_default: callers of the runtime may give another value than `data`, so its optimiser takes this for no
            constant.
        outside: how many graphs further out the value is. The optimiser does not find a constant there where it
            looks among those of the graph at hand, and products are prepared for those of the next graph alone.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...] | None = None
    quantization: Quantization | None = None
    data: np.ndarray | None = None
    is_variable: bool = False
    symbols: tuple[str, ...] | None = None
    is_default: bool = False
    outside: int = 0

    @cached_property
    def type(self) -> DataType:
        return data_type(self.dtype)

    @property
    def is_constant(self) -> bool:
        return self.data is not None

    @property
    def is_open(self) -> bool:
        """The file leaves dimensions open without a number to take for them: they are 0 in `shape`."""
        pairs = zip(self.shape, self.shape_signature or self.shape, strict=False)
        return any(size == 0 and free == -1 for size, free in pairs)

    @property
    def is_unranked(self) -> bool:
        """The file does not say even how many dimensions there are, or its format cannot: `shape` is ()."""
        return not self.shape and self.shape_signature is None

    def __repr__(self) -> str:
        kind = "constant " if self.is_constant else "variable " if self.is_variable else ""
        quantization = f", {self.quantization}" if self.quantization is not None else ""
        return f"Tensor({brief(self.name)}, {kind}{self.dtype}{list(self.shape_signature or self.shape)}{quantization})"

    def values(self) -> np.ndarray:
        """Constant content in the declared shape, sub-byte integers widened to one byte each.

        Low bits come first: element 0 of a 4-bit tensor is the low nibble of byte 0.
        """
        if self.data is None:
            raise ValueError(f"tensor '{self.name}' is not a constant")
        if not self.type.is_packed:
            return self.data.reshape(self.shape)
        return unpack_integers(self.data, self.type, math.prod(self.shape)).reshape(self.shape)


def unpack_integers(packed: np.ndarray, dtype: DataType, count: int) -> np.ndarray:
    """The first `count` sub-byte integers of a uint8 array, one byte each, low bits first.

    Source: LiteRT schema and kernels (INT4: low nibble first), read and run.

    >>> [int(v) for v in unpack_integers(np.array([0xF1], np.uint8), data_type("s4"), 2)]
    [1, -1]
    """
    per_byte = 8 // dtype.bits
    shifts = np.arange(per_byte, dtype=np.uint8) * dtype.bits
    fields = ((packed[:, None] >> shifts) & ((1 << dtype.bits) - 1)).reshape(-1)[:count].astype(np.int16)
    if dtype.minimum < 0:
        fields = np.where(fields > dtype.maximum, fields - (1 << dtype.bits), fields)
    return fields.astype(dtype.numpy)


# Attribute of nodes whose results may differ from the runtime's in bits, whatever their rows say.
UNREPRODUCED = "unreproduced"
# Attribute of nodes for which the runtime has a kernel of binary16 numbers that it does not have on every processor.
HALF_KERNEL = "half_kernel"


@dataclass(frozen=True, eq=False)
class Node:
    """One operator.

    Attributes:
        index: position in execution order.
        operator: stem, as in `bittrue.operators`; a stem without a file there is refused by the planner, not here.
        source: what the file calls it, for example ``"CONV_2D"``.
        version: operator version given by the file (1 when the format has none).
        attributes: attribute name to value, in bittrue's words, fully resolved (no missing defaults).
        inputs: tensor indices; None for an absent optional input.
        outputs: tensor indices.
        intermediates: tensors that carry only quantization parameters (recurrent operators).
    """

    index: int
    operator: str
    source: str
    version: int
    attributes: Mapping[str, Attribute]
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"Node({self.index}, {brief(self.source)}, inputs {list(self.inputs)}, outputs {list(self.outputs)})"

    def __str__(self) -> str:
        return f"node {self.index} ({self.source})"


@dataclass(frozen=True, eq=False)
class Graph:
    """One executable graph: nodes in execution order, every input computed before it is used.

    Attributes:
        inputs, outputs: tensor indices.
        aliases: further names for inputs and outputs (a signature's argument names) to tensor index.
        version: of the format's operators as the file asks for them; 0 where it does not, and in plan files.
        is_sorted: the nodes stood in another order in the file; False in plan files.
        called: another graph calls it; said before it is rewritten.
        inlined: nodes of a graph that it called stand in it.
        widened: rewriting made constants of binary16 wider in it or in the graph that calls it.
    """

    name: str
    tensors: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    signature: str = ""
    aliases: Mapping[str, int] = field(default_factory=dict)
    version: int = 0
    is_sorted: bool = False
    called: bool = False
    inlined: bool = False
    widened: bool = False

    def __repr__(self) -> str:
        return f"Graph({brief(self.name)}, {len(self.nodes):,} nodes, {len(self.tensors):,} tensors)"

    def cut(self, outputs: Sequence[int]) -> Graph:
        """The part of the graph that computes `outputs` (tensor indices), without other nodes and unused inputs.

        Nodes that may change state stay: those without outputs, and those that get a handle.
        """
        needed = set(outputs)
        kept = []
        for node in reversed(self.nodes):
            handles = any(i is not None and self.tensors[i].dtype == "resource" for i in node.inputs)
            if handles or not node.outputs or needed.intersection(node.outputs):
                kept.append(node)
                needed.update(index for index in node.inputs if index is not None)
        inputs = tuple(index for index in self.inputs if index in needed)
        aliases = {name: index for name, index in self.aliases.items() if index in inputs or index in outputs}
        return replace(self, nodes=tuple(reversed(kept)), inputs=inputs, outputs=tuple(outputs), aliases=aliases)


@dataclass(frozen=True, eq=False)
class ModelFile:
    """Everything read from one model file.

    Attributes:
        format: short name of the file format.
        producer: free text from the file that says who wrote it.
        graphs: all subgraphs; the first is the main one.
        metadata: name to bytes, as found.
        notes: deviations from the format that were accepted, each saying what was done about it.
        size: length of the file in bytes.
    """

    format: str
    producer: str
    graphs: tuple[Graph, ...]
    metadata: Mapping[str, bytes]
    notes: tuple[str, ...]
    size: int

    def __repr__(self) -> str:
        nodes = sum(len(graph.nodes) for graph in self.graphs)
        graphs = "" if len(self.graphs) == 1 else f" in {len(self.graphs):,} graphs"
        return f"ModelFile({self.format}, {self.size:,} bytes, {nodes:,} operators{graphs})"


def pack_integers(values: np.ndarray, dtype: DataType) -> np.ndarray:
    """What `unpack_integers` undoes.

    >>> pack_integers(np.array([1, -1], np.int8), data_type("s4")).tolist()
    [241]
    """
    per_byte = 8 // dtype.bits
    fields = np.zeros(-(-values.size // per_byte) * per_byte, np.uint8)
    fields[: values.size] = values.reshape(-1).astype(np.uint8) & ((1 << dtype.bits) - 1)
    shifts = np.arange(per_byte, dtype=np.uint8) * dtype.bits
    return np.bitwise_or.reduce(fields.reshape(-1, per_byte) << shifts, axis=1)
