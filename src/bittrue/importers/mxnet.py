"""MXNet models to graphs: the symbol JSON, and the parameters beside it.

Nodes name their attributes `attrs`, `attr` or `param`, by the version that wrote them; all values are texts. Variables
that the parameters hold are constants, the others are inputs. Files seldom say the shapes of inputs: what follows from
weights is declared, all else is left open, and plans ask for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidModelError, ModelFormatError
from ..graph import Graph, ModelFile, Tensor, find_disorder
from ..records import dataclass, replace
from .mxnet_operators import GraphBuilder, Inner, Source, map_node
from .mxnet_operators.base import literal
from .mxnet_params import TYPES, read_params

_MOST_NODES = 100_000
_MOST_INNER = 64
_ADVICE = "the file is damaged or no symbol of MXNet; fetch or export it again"


def read_mxnet(content: np.ndarray, weights: np.ndarray | None = None) -> ModelFile:
    """Reads a model.

    Args:
        content: the bytes of the symbol JSON.
        weights: those of the .params file; None: every variable is an input.

    Raises:
        ModelFormatError: one of the files is damaged.
        InvalidModelError: the model contradicts itself.
        UnsupportedError: it uses something that bittrue does not read.
    """
    return _reader(content, weights).read(content.size)


@dataclass(frozen=True)
class Symbol:
    """The operators of a symbol as they are read, none of them mapped.

    Attributes:
        operators: in the order of the file; their `results` have no type.
        tensors: parameters with their values, inputs, results.
        inputs, outputs: indices of tensors.
    """

    operators: tuple[Source, ...]
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def read_operators(content: np.ndarray, weights: np.ndarray | None = None) -> Symbol:
    """The operators of a symbol, whether or not bittrue maps them; errors as `read_mxnet`."""
    found: list[Source] = []

    def keep(source: Source, used: int) -> None:
        source.give(*(source.builder.add(Tensor(f"{source.label}_output{i}", "f32", ())) for i in range(used)))
        found.append(source)

    reader = _reader(content, weights, keep)
    outputs = reader.walk()
    return Symbol(tuple(found), tuple(reader.builder.tensors), tuple(reader.inputs), tuple(outputs))


def _reader(content: np.ndarray, weights: np.ndarray | None, take: Callable[[Source, int], None] = map_node) -> _Reader:
    try:
        symbol = json.loads(content.tobytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _damaged(f"no JSON: {error}", "") from None
    if not isinstance(symbol, dict):
        raise _damaged("the symbol is no JSON object", "")
    return _Reader(symbol, {} if weights is None else _parameters(weights), take)


def _damaged(message: str, place: str) -> ModelFormatError:
    return ModelFormatError("BT-MXNET-FORMAT", message, place=place or "symbol", advice=_ADVICE)


def _parameters(weights: np.ndarray) -> dict[str, Tensor]:
    """Parameters by the names of their variables: ``arg:`` and ``aux:`` tell what they are in training."""
    found: dict[str, Tensor] = {}
    for name, tensor in read_params(weights).items():
        bare = name.removeprefix("arg:") if name.startswith("arg:") else name.removeprefix("aux:")
        if bare in found:
            raise ModelFormatError(
                "BT-MXNET-PARAMS", f"two parameters are called '{bare}'", place="weights", advice=_ADVICE
            )
        found[bare] = replace(tensor, name=bare)
    return found


class _Reader:
    """State of one reading."""

    def __init__(
        self, symbol: Mapping[str, Any], parameters: Mapping[str, Tensor], take: Callable[[Source, int], None]
    ) -> None:
        self.symbol, self.parameters, self.take = symbol, parameters, take
        self.builder = GraphBuilder()
        self.inputs: list[int] = []
        # Per node, the tensors that it gives.
        self.results: list[list[int]] = []

    def walk(self) -> list[int]:
        """Takes all nodes; the tensors of the outputs."""
        nodes = self._nodes(self.symbol, "symbol", _MOST_NODES)
        heads = self._entries(self.symbol.get("heads"), "heads", len(nodes))
        used = self._used(nodes, heads)
        for position, node in enumerate(nodes):
            if node["op"] == "null":
                self.results.append([self._variable(node, position in used)])
            else:
                self.results.append(self._node(position, node, used.get(position, 1)))
        outputs = [self._result(entry, "heads") for entry in heads]
        if not outputs:
            raise InvalidModelError("BT-MXNET-OUTPUT", "the symbol has no output", place="heads", advice=_ADVICE)
        return outputs

    def read(self, size: int) -> ModelFile:
        outputs, builder = self.walk(), self.builder
        self._declare()
        disorder = find_disorder(builder.tensors, builder.nodes, self.inputs, outputs)
        if disorder is not None:
            name = builder.tensors[disorder.tensor].name
            raise InvalidModelError(disorder.code, disorder.message, place=f"{disorder.where}, tensor '{name}'")
        graph = Graph("symbol", tuple(builder.tensors), tuple(builder.nodes), tuple(self.inputs), tuple(outputs))
        return ModelFile("mxnet", self._producer(), (graph,), {}, tuple(builder.notes), size)

    def _producer(self) -> str:
        attributes = self.symbol.get("attrs")
        version = attributes.get("mxnet_version") if isinstance(attributes, dict) else None
        number = version[1] if isinstance(version, list) and len(version) == 2 else None
        if type(number) is not int or not 0 < number < 10**6:
            return "MXNet"
        return f"MXNet {number // 10000}.{number // 100 % 100}.{number % 100}"

    # -- structure -------------------------------------------------------------------------------------------------
    def _nodes(self, symbol: Mapping[str, Any], place: str, most: int) -> list[dict[str, Any]]:
        nodes = symbol.get("nodes")
        if not isinstance(nodes, list) or not nodes:
            raise _damaged("'nodes' is no list of nodes", place)
        if len(nodes) > most:
            raise _damaged(f"{len(nodes):,} nodes, at most {most:,} are read", place)
        for position, node in enumerate(nodes):
            if not isinstance(node, dict) or not all(isinstance(node.get(key), str) for key in ("op", "name")):
                raise _damaged("a node is an object with an 'op' and a 'name'", f"{place}, node {position}")
        return nodes

    def _entries(self, entries: Any, place: str, limit: int) -> list[tuple[int, int]]:
        """Outputs of nodes before `limit`: [node, number of the output] and, in newer files, a version."""
        if not isinstance(entries, list):
            raise _damaged("a list of outputs of nodes is expected", place)
        found = []
        for entry in entries:
            if (
                not isinstance(entry, list)
                or len(entry) not in (2, 3)
                or not all(type(number) is int and number >= 0 for number in entry)
            ):
                raise _damaged(f"{str(entry)[:60]} is no output of a node", place)
            if entry[0] >= limit:
                raise InvalidModelError(
                    "BT-NODE-ORDER", f"node {entry[0]} is read before it is computed", place=place, advice=_ADVICE
                )
            found.append((entry[0], entry[1]))
        return found

    def _used(self, nodes: Sequence[Mapping[str, Any]], heads: Sequence[tuple[int, int]]) -> dict[int, int]:
        """How many outputs of every node are asked for."""
        found: dict[int, int] = {}
        lists = [self._entries(node.get("inputs", []), _place(i, node), i) for i, node in enumerate(nodes)]
        for entries in (heads, *lists):
            for node, number in entries:
                found[node] = max(found.get(node, 1), min(number, _MOST_INNER) + 1)
        return found

    def _result(self, entry: tuple[int, int], place: str) -> int:
        node, number = entry
        if number >= len(self.results[node]):
            raise InvalidModelError(
                "BT-MXNET-OUTPUT",
                f"output {number} of node {node} is asked for, it has {len(self.results[node])}",
                place=place,
                advice=_ADVICE,
            )
        return self.results[node][number]

    def _attributes(self, node: Mapping[str, Any], place: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for spelling in ("param", "attr", "attrs"):
            given = node.get(spelling)
            if given is None:
                continue
            if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
                raise _damaged(f"'{spelling}' is no object of texts", place)
            found.update(given)
        return found

    # -- nodes -----------------------------------------------------------------------------------------------------
    def _variable(self, node: Mapping[str, Any], used: bool) -> int:
        name = node["name"]
        place = f"variable '{name}'"
        if name in self.builder.names:
            raise InvalidModelError("BT-MXNET-NAME", "two nodes have this name", place=place, advice=_ADVICE)
        if name in self.parameters:
            return self.builder.add(self.parameters[name])
        attributes = self._attributes(node, place)
        try:
            kind = literal(attributes.get("__dtype__", "-1"))
            sizes = literal(attributes.get("__shape__", "None"))
        except ValueError:
            raise _damaged("'__dtype__' or '__shape__' cannot be read", place) from None
        known = type(kind) is int and 0 <= kind < len(TYPES)
        index = self.builder.add(Tensor(name, TYPES[kind] if known else "f32", ()))
        if not known:
            self.builder.untyped.add(index)
        sizes = list(sizes) if isinstance(sizes, (tuple, list)) else None
        if sizes is not None:
            if len(sizes) > 32 or not all(type(e) is int and -1 <= e < 1 << 31 for e in sizes):
                raise _damaged(f"'__shape__' is {str(sizes)[:60]}, no shape", place)
            # 0 stands for a dimension that is not known yet.
            self.builder.shapes[index] = tuple(e or -1 for e in sizes)
        if used:
            self.inputs.append(index)
        return index

    def _node(self, position: int, node: Mapping[str, Any], used: int) -> list[int]:
        place = _place(position, node)
        entries = self._entries(node.get("inputs", []), place, position)
        source = Source(
            node["op"],
            node["name"],
            [self._result(entry, place) for entry in entries],
            self._attributes(node, place),
            self._inner(node, place),
            self.builder,
            position,
        )
        self.take(source, used)
        return source.results

    def _inner(self, node: Mapping[str, Any], place: str) -> list[Inner]:
        """The operators of a fused node; each of them reads the one before it, but for its other operands."""
        graphs = node.get("subgraphs", [])
        if not isinstance(graphs, list) or len(graphs) > 1 or not all(isinstance(graph, dict) for graph in graphs):
            raise _damaged("'subgraphs' is no list of a symbol", place)
        found = []
        for graph in graphs:
            inside = f"{place}, subgraph"
            nodes = self._nodes(graph, inside, _MOST_INNER)
            before = -1
            for number, inner in enumerate(nodes):
                entries = self._entries(inner.get("inputs", []), inside, number)
                if inner["op"] == "null":
                    continue
                reads = [(at, output) for at, output in entries if nodes[at]["op"] != "null"]
                if (before >= 0 and reads != [(before, 0)]) or (before < 0 and reads):
                    raise InvalidModelError(
                        "BT-MXNET-SUBGRAPH", "the operators of a fused node form no chain", place=inside
                    )
                before = number
                found.append(Inner(inner["op"], self._attributes(inner, inside)))
        return found

    # -- shapes ----------------------------------------------------------------------------------------------------
    def _declare(self) -> None:
        """Gives inputs what is known of their shapes; dimensions that nothing tells are left open, the batch is 1."""
        builder = self.builder
        for index in self.inputs:
            tensor, sizes = builder.tensors[index], builder.shapes.get(index, (-1,))
            signature = sizes if -1 in sizes else None
            shape = tuple((1 if i == 0 and len(sizes) > 1 else 0) if e == -1 else e for i, e in enumerate(sizes))
            builder.tensors[index] = replace(tensor, shape=shape, shape_signature=signature)
            if 0 in shape:
                shown = str(list(sizes)).replace("-1", "?")
                builder.notes.append(
                    f"the shape of input '{tensor.name}' is not in the file, but for what weights tell: {shown}"
                )


def _place(position: int, node: Mapping[str, Any]) -> str:
    operator = re.sub(r"[^\x20-\x7e]", "?", node["op"][:80])
    return f"node {position} ({operator} '{node['name'][:80]}')"
