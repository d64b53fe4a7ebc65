"""What runtimes do to a graph before they run it: graph in, graph out, by names that a numerics lists."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from ..graph import Graph

# name -> module of this folder; its function `rewrite` does it
REWRITES: dict[str, str] = {}


def rewrite(graph: Graph, names: Sequence[str]) -> Graph:
    """`graph` after the rewrites `names`, in order. Its inputs and outputs stay; other tensors may disappear."""
    for name in names:
        graph = importlib.import_module(f"{__name__}.{REWRITES[name]}").rewrite(graph)
    return graph
