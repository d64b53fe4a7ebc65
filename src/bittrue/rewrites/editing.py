"""A graph while it is rewritten: who writes and who reads every tensor, kept up to date by every change."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ..graph import HALF_KERNEL, UNREPRODUCED, Attribute, Graph, Node, Tensor, data_type, pack_integers
from ..operators import find
from ..records import replace
from . import Shapes

Edge = tuple[Node, int]
Kept = TypeVar("Kept")


class Editor:
    """Nodes and tensors of one graph, open for changes; `finish` gives the new graph.

    Tensors keep their indices, new ones follow them. Nodes are replaced, never changed; those in place of one that is
    `UNREPRODUCED` or has a `HALF_KERNEL` are and have so, too.
    """

    def __init__(self, graph: Graph, shapes: Shapes) -> None:
        self.graph = graph
        self._shapes = shapes
        self.tensors: list[Tensor] = list(graph.tensors)
        self.results = frozenset(graph.outputs)
        self.changed = self.touched = False
        self._names = {tensor.name for tensor in graph.tensors}
        self._writer: dict[int, Node] = {}
        self._readers: dict[int, list[Edge]] = {}
        # Where a node stands among those that could run at the same time.
        self._rank: dict[Node, float] = {}
        # In which order nodes came into the graph.
        self._number: dict[Node, int] = {}
        self._count = 0
        # Until a node comes or goes.
        self._kept: dict[str, Any] = {}
        for position, node in enumerate(graph.nodes):
            # A sorted graph has been visited from its newest nodes on.
            self._enter(node, float(position), -position if graph.is_sorted else None)
        # Other editors of the same graph begin where this one does.
        self._kept = shapes.kept
        self._settled = self.kept("settled", lambda: _perhaps_settled(graph))

    # -- asking ----------------------------------------------------------------------------------------------------
    def rounds(self, most: int) -> Iterator[int]:
        """Counts rounds of a loop until one of them changes nothing; what a loop inside changes counts for both."""
        changed = self.changed
        for number in range(most):
            self.changed = False
            yield number
            if not self.changed:
                break
            changed = True
        self.changed = changed

    def nodes(self) -> list[Node]:
        """All nodes, in an order in which they can run."""
        return list(self.kept("nodes", lambda: tuple(self._order())))

    def kept(self, name: str, make: Callable[[], Kept]) -> Kept:
        """What `make` gives, which follows from the graph as it is now alone and is worked out once for it."""
        if name not in self._kept:
            self._kept[name] = make()
        found: Kept = self._kept[name]
        return found

    def nodes_from_the_end(self) -> list[Node]:
        """All nodes in an order in which they can run: depth first from what nothing reads, the newest first."""
        ends = [node for node in self._rank if not self.edges(node)]
        stack = [(node, False) for node in sorted(ends, key=self._number.__getitem__)]
        order: list[Node] = []
        seen: set[Node] = set()
        while stack:
            node, left = stack.pop()
            if left:
                order.append(node)
            elif node not in seen:
                seen.add(node)
                before = {w for w in map(self.writer, node.inputs) if w is not None and w not in seen}
                stack.append((node, True))
                stack += [(w, False) for w in sorted(before, key=self._number.__getitem__)]
        return order

    def alive(self, node: Node) -> bool:
        """Whether the node still stands as it was."""
        return node in self._rank

    def writer(self, tensor: int | None) -> Node | None:
        """The node that computes a tensor."""
        return None if tensor is None else self._writer.get(tensor)

    def readers(self, tensor: int) -> tuple[Edge, ...]:
        """Nodes and input positions that read a tensor."""
        return tuple(self._readers.get(tensor, ()))

    def edges(self, node: Node) -> int:
        """How many inputs of other nodes read what the node computes."""
        return sum(len(self._readers.get(index, ())) for index in node.outputs)

    def gives_result(self, node: Node) -> bool:
        """Whether an output of the node is an output of the graph."""
        return not self.results.isdisjoint(node.outputs)

    def only_reader(self, node: Node) -> Node | None:
        """The one node that reads what `node` computes, when nothing else does and it is no result of the graph."""
        if self.gives_result(node) or self.edges(node) != 1:
            return None
        return next(reader for index in node.outputs for reader, _ in self.readers(index))

    def type(self, tensor: int | None) -> str:
        """Element type; empty for an absent tensor."""
        return "" if tensor is None else self.tensors[tensor].dtype

    def value(self, tensor: int | None) -> np.ndarray | None:
        """The content of a constant, or of what follows from constants and shapes; None for anything else."""
        if tensor is None:
            return None
        if self.tensors[tensor].is_constant:
            return self.tensors[tensor].values()
        return self._shapes().values.get(tensor) if tensor in self._settled else None

    def stored(self, tensor: int | None) -> np.ndarray | None:
        """The content of a constant; None for what is computed, though its values may follow from shapes."""
        return self.value(tensor) if tensor is not None and self.tensors[tensor].is_constant else None

    # -- changing --------------------------------------------------------------------------------------------------
    def constant(self, array: Any, name: str, dtype: str) -> int:
        """A new constant."""
        array = np.asarray(array)
        return self._tensor(Tensor(self._unique(name), dtype, array.shape, data=_content(array, dtype)))

    def settle(self, node: Node, values: Sequence[np.ndarray | None]) -> None:
        """Takes a node out whose results become constants under their own names; None for one that nothing reads."""
        self.remove(node)
        for index, value in zip(node.outputs, values, strict=True):
            if value is not None:
                tensor = self.tensors[index]
                data = _content(value, tensor.dtype)
                self.tensors[index] = Tensor(tensor.name, tensor.dtype, value.shape, data=data)

    def computed(self, like: int | None, name: str, dtype: str, sizes: Sequence[int | str] | None = None) -> int:
        """A new tensor to be computed, with `sizes` (numbers or symbols), or with the declared shape of another one.

        With neither, not even the number of its dimensions is known.
        """
        if sizes is None:
            pattern = Tensor("", dtype, ()) if like is None else self.tensors[like]
            shape, signature, symbols = pattern.shape, pattern.shape_signature, pattern.symbols
        else:
            shape = tuple(size if isinstance(size, int) and size > 0 else 0 for size in sizes)
            signature = tuple(size if isinstance(size, int) else -1 for size in sizes)
            symbols = tuple("" if isinstance(size, int) else size for size in sizes)
        return self._tensor(Tensor(self._unique(name), dtype, shape, signature, symbols=symbols))

    def add(
        self,
        near: Node,
        operator: str,
        inputs: Sequence[int | None],
        outputs: Sequence[int],
        attributes: Mapping[str, Attribute] | None = None,
        *,
        source: str = "",
        version: int = 1,
    ) -> Node:
        """A new node; `near` tells where it stands, and what it came from when `source` does not."""
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        attributes = _inherited(near, attributes or {})
        node = Node(0, operator, source or near.source, version, attributes, tuple(given), tuple(outputs))
        self._enter(node, self._rank.get(near, 0.0))
        self.changed = self.touched = True
        return node

    def remove(self, *nodes: Node) -> None:
        """Takes nodes out; what they wrote has no writer then."""
        for node in nodes:
            self._leave(node)
        self.changed = self.touched = True

    def change(self, node: Node, **changes: Any) -> Node:
        """The node with other fields, at the same place."""
        rank, number = self._leave(node)
        if "attributes" in changes:
            changes["attributes"] = _inherited(node, changes["attributes"])
        new = replace(node, **changes)
        self._enter(new, rank, number)
        self.changed = self.touched = True
        return new

    def redirect(self, node: Node, position: int, tensor: int) -> Node:
        """The node with another tensor at an input."""
        return self.change(node, inputs=(*node.inputs[:position], tensor, *node.inputs[position + 1 :]))

    def replace_reads(self, old: int, new: int) -> None:
        """Every reader of `old` reads `new`."""
        while self._readers.get(old):
            node, position = self._readers[old][0]
            self.redirect(node, position, new)

    def drop_unread(self, nodes: Iterable[Node | None]) -> None:
        """Takes those out that nothing reads any more, and then what only they read, as far as it is without effect."""
        queue = [node for node in nodes if node is not None]
        while queue:
            node = queue.pop()
            if not self.alive(node) or self.edges(node) or self.gives_result(node):
                continue
            self.remove(node)
            queue.extend(w for w in map(self.writer, node.inputs) if w is not None and w.operator in _PAIR)

    def finish(self) -> Graph:
        """The new graph."""
        nodes = tuple(replace(node, index=index) for index, node in enumerate(self.nodes()))
        return replace(self.graph, tensors=tuple(self.tensors), nodes=nodes)

    # -- inside ----------------------------------------------------------------------------------------------------
    def _order(self) -> Iterable[Node]:
        waiting = {n: sum(i in self._writer for i in n.inputs if i is not None) for n in self._rank}
        ready = [(rank, number, n) for number, (n, rank) in enumerate(self._rank.items()) if not waiting[n]]
        heapq.heapify(ready)
        number = len(waiting)
        while ready:
            _, _, node = heapq.heappop(ready)
            yield node
            for index in node.outputs:
                for reader, _ in self._readers.get(index, ()):
                    waiting[reader] -= 1
                    if not waiting[reader]:
                        number += 1
                        heapq.heappush(ready, (self._rank[reader], number, reader))

    def _enter(self, node: Node, rank: float, number: int | None = None) -> None:
        self._kept = {}
        self._rank[node] = rank
        self._number[node] = self._count if number is None else number
        self._count += number is None
        for index in node.outputs:
            self._writer[index] = node
        for position, read in enumerate(node.inputs):
            if read is not None:
                self._readers.setdefault(read, []).append((node, position))

    def _leave(self, node: Node) -> tuple[float, int]:
        self._kept = {}
        for index in node.outputs:
            if self._writer.get(index) is node:
                del self._writer[index]
        for read in {i for i in node.inputs if i is not None}:
            self._readers[read] = [edge for edge in self._readers[read] if edge[0] is not node]
        return self._rank.pop(node), self._number.pop(node)

    def _tensor(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def _unique(self, name: str) -> str:
        found, number = name, 1
        while found in self._names:
            number += 1
            found = f"{name}#{number}"
        self._names.add(found)
        return found


def _inherited(node: Node, attributes: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
    """Attributes of a node in place of another one."""
    kept = {name: True for name in (HALF_KERNEL, UNREPRODUCED) if node.attributes.get(name)}
    return {**attributes, **kept} if kept else attributes


def _content(values: np.ndarray, dtype: str) -> np.ndarray:
    """Values as a constant's data."""
    kind = data_type(dtype)
    return pack_integers(values, kind) if kind.is_packed else np.ascontiguousarray(values).reshape(-1)


# Operators that are taken out with the last one that reads them.
_PAIR = ("quantize", "dequantize")


def _perhaps_settled(graph: Graph) -> frozenset[int]:
    """Tensors that constants or shapes alone may decide.

    Runtimes leave dequantized constants to the fusion, and so what an attribute `computed` marks.
    """
    known = {index for index, tensor in enumerate(graph.tensors) if tensor.is_constant}
    constants = frozenset(known)
    for node in graph.nodes:
        operator = find(node.operator)
        if operator is None or operator.worldly or operator.dequantizes or node.attributes.get("computed"):
            continue
        if operator.needs_only_shapes or all(index is None or index in known for index in node.inputs):
            known.update(node.outputs)
    return frozenset(known - constants)
