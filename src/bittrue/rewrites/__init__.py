"""What runtimes do to a graph before they run it: graph in, graph out, by names that a numerics lists."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence

from ..graph import Graph

# Gives the shapes of a graph's tensors by index, as far as the file settles them; -1 for an extent that is free.
Shapes = Callable[[], Mapping[int, tuple[int, ...]]]

# name -> module of this folder; its function `rewrite` does it
REWRITES: dict[str, str] = {
    "fold_reals": "fold_reals",
    "fuse_quantized": "fuse_quantized",
    "fuse_reals": "fuse_reals",
    "mark_planes": "mark_planes",
    "move_transposes": "move_transposes",
}


def rewrite(graph: Graph, names: Sequence[str], shapes: Callable[[Graph], Shapes]) -> tuple[Graph, tuple[str, ...]]:
    """`graph` after the rewrites `names`, in order, and what they have to say about it.

    Its inputs and outputs stay; other tensors may disappear, new ones follow the old ones.
    """
    notes: list[str] = []
    for name in names:
        graph, found = importlib.import_module(f"{__name__}.{REWRITES[name]}").rewrite(graph, shapes(graph))
        notes += found
    return graph, tuple(notes)
