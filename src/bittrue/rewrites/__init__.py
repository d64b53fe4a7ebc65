"""What runtimes do to a graph before they run it: graph in, graph out, by names that a numerics lists."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import MISFITS, InvalidModelError
from ..graph import Graph


@dataclass(frozen=True)
class Settled:
    """What a file settles about the tensors that a graph computes, by index.

    Attributes:
        shapes: -1 for a size that is free.
        values: of what follows from constants and shapes alone.
    """

    shapes: Mapping[int, tuple[int, ...]]
    values: Mapping[int, np.ndarray]


Shapes = Callable[[], Settled]

# name -> module of this folder; its function `rewrite` does it
REWRITES: dict[str, str] = {
    "fold_constants": "fold_constants",
    "fold_reals": "fold_reals",
    "fuse_quantized": "fuse_quantized",
    "fuse_reals": "fuse_reals",
    "keep_planes": "keep_planes",
    "mark_planes": "mark_planes",
    "move_transposes": "move_transposes",
    "prepare_pairs": "prepare_pairs",
}


def rewrite(graph: Graph, names: Sequence[str], shapes: Callable[[Graph], Shapes]) -> tuple[Graph, tuple[str, ...]]:
    """`graph` after the rewrites `names`, in order, and what they have to say about it.

    Its inputs and outputs stay; other tensors may disappear, new ones follow the old ones.

    Raises:
        InvalidModelError: nodes have other operands or attributes than their operators ask for.
    """
    notes: list[str] = []
    known = shapes(graph)
    for name in names:
        module = importlib.import_module(f"{__name__}.{REWRITES[name]}")
        try:
            rewritten, found = module.rewrite(graph, known)
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
    return graph, tuple(notes)
