"""What runtimes do to a graph before they run it: graph in, graph out, by names that a numerics lists."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from os.path import dirname
from typing import Any, Protocol

import numpy as np

from ..errors import MISFITS, InvalidModelError
from ..graph import Attribute, Graph, Node, Tensor
from ..records import dataclass, replace


@dataclass(frozen=True)
class Settled:
    """What a file settles about the tensors that a graph computes, by index.

    Attributes:
        shapes: -1 for a size that is free.
        values: of what follows from constants and shapes alone.
    """

    shapes: Mapping[int, tuple[int, ...]]
    values: Mapping[int, np.ndarray]


class Shapes(Protocol):
    """Gives what a file settles about a graph, and computes what follows from constants.

    Attributes:
        kept: what else was worked out of the graph as it is, by name.
    """

    kept: dict[str, Any]

    def __call__(self) -> Settled: ...

    def compute(self, node: Node, tensors: Sequence[Tensor], values: Sequence[np.ndarray | None], held: int) -> Values:
        """What a node makes of known values; None where that is not known, or takes too much.

        Args:
            node: of the graph or not.
            tensors: that its indices are of.
            values: of its operands.
            held: bytes of earlier results that are still held.
        """
        ...


Values = list[np.ndarray] | None
# A number or a symbol per dimension, as far as they are known.
KnownSizes = Callable[[int | None], tuple[int | str, ...] | None]


@cache
def _modules() -> dict[str, str]:
    """Rewrites and their modules, each in the room of the runtime whose way it is."""
    from glob import glob

    paths = (path.removesuffix(".py").split("/") for path in glob("*/*.py", root_dir=dirname(__file__)))
    return {stem: f"{__name__}.{room}.{stem}" for room, stem in paths}


def rewrite(graph: Graph, names: Sequence[str], shapes: Callable[[Graph], Shapes]) -> tuple[Graph, tuple[str, ...]]:
    """`graph` after the rewrites `names`, in order, and what they have to say about it.

    Behind a colon stand settings: a number is the channels of a block (`block`), where the runtime lays images out in
    such, a word the type that pairs must have to be fused (`pairs`).

    Its inputs and outputs stay; other tensors may disappear, new ones follow the old ones.

    Raises:
        InvalidModelError: nodes have other operands or attributes than their operators ask for.
    """
    notes: list[str] = []
    before, graph = graph, _without_defaults(graph)
    known = shapes(graph)
    for name in names:
        stem, *words = name.split(":")
        settings = {"block" if word.isdigit() else "pairs": int(word) if word.isdigit() else word for word in words}
        module = importlib.import_module(_modules()[stem])
        try:
            rewritten, found = module.rewrite(graph, known, **settings)
        except MISFITS as error:
            # Patterns are looked for before nodes are checked one by one.
            raise InvalidModelError(
                "BT-GRAPH-PATTERN",
                f"{name} met a node that does not fit its operator: {type(error).__name__}: {error}",
                place=f"graph '{graph.name}'",
                advice="some node has too few inputs or an attribute of another kind; export the model again",
            ) from error
        notes += found
        if rewritten is not graph:
            graph, known = rewritten, shapes(rewritten)
    if graph.inputs != before.inputs:
        old = {index: tensor for index, tensor in enumerate(before.tensors) if tensor.is_default}
        tensors = tuple(old.get(index, tensor) for index, tensor in enumerate(graph.tensors))
        graph = replace(graph, tensors=tensors, inputs=before.inputs)
    return _with_unprepared(graph), tuple(notes)


def known_sizes(graph: Graph, shapes: Callable[[Graph], Shapes]) -> KnownSizes:
    """Gives the sizes of a graph's tensors as a runtime's optimiser knows them, None where it knows nothing."""
    known: KnownSizes = importlib.import_module(_modules()["free_dimensions"]).sizes_of(graph, shapes(graph))
    return known


def share_sizes(graph: Graph, shapes: Callable[[Graph], Shapes]) -> Graph:
    """The graph whose equal nodes of sizes and places are one each."""
    shared: Graph = importlib.import_module(_modules()["join_reshapes"]).share_sizes(graph, shapes(graph))
    return shared


def settle_reshapes(graph: Graph, shapes: Callable[[Graph], Shapes]) -> Graph:
    """The graph whose Reshapes read constants where they alone read sizes of other tensors."""
    settled: Graph = importlib.import_module(_modules()["join_reshapes"]).settle_reshapes(graph, shapes(graph))
    return settled


def _with_unprepared(graph: Graph) -> Graph:
    """The graph whose nodes say which of their constants runtimes do not prepare (`computed_weights`): those that
    callers may replace, and those of two graphs further out or more.

    Source: ONNX Runtime 1.31.1, which looks for constants in the graph at hand and in the next one.
    """
    far = {index for index, tensor in enumerate(graph.tensors) if tensor.is_default or tensor.outside > 1}
    nodes = list(graph.nodes)
    for position, node in enumerate(nodes):
        found = [place for place, index in enumerate(node.inputs) if index in far]
        if found:
            marked = node.attributes.get("computed_weights", ())
            assert isinstance(marked, tuple)
            attributes: dict[str, Attribute] = {**node.attributes, "computed_weights": tuple(sorted({*marked, *found}))}
            nodes[position] = replace(node, attributes=attributes)
    return replace(graph, nodes=tuple(nodes)) if far else graph


def _without_defaults(graph: Graph) -> Graph:
    """The graph as an optimiser sees it: values that callers may replace are inputs."""
    defaults = [index for index, tensor in enumerate(graph.tensors) if tensor.is_default]
    tensors = tuple(
        replace(tensor, data=None, shape_signature=tensor.shape) if tensor.is_default else tensor
        for tensor in graph.tensors
    )
    return replace(graph, tensors=tensors, inputs=(*graph.inputs, *defaults)) if defaults else graph
