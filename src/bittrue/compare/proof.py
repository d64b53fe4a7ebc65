"""Whether that in which two files differ gives B's bits: proven by computing with B's parameters, and named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..errors import BittrueError
from ..graph import Graph, Tensor
from ..numerics import Numerics
from .files import Difference, tensor_index
from .hypotheses import Case, Hypothesis
from .hypotheses.constants import constants
from .hypotheses.zero_points import zero_points
from .result import Cause


def of_files(
    case: Case, own: Numerics, files: Sequence[Difference], bases: Sequence[tuple[Hypothesis, ...]]
) -> tuple[Hypothesis, ...] | None:
    """The fewest differences of the files that together give every bit of B's tensor; None where they do not.

    Args:
        own: A's numerics.
        files: in what the files differ in the case's segment.
        bases: arithmetics to try them on: A's own, and what is said to be B's.
    """
    usable = [difference for difference in files if difference.change is not None]
    made = {d: _named(case, d, d.hypothesis(own)) for d in usable}
    for base in bases:
        chosen = list(usable)
        if not chosen or not case.holds(*base, *(made[d] for d in chosen)):
            continue
        if base and case.holds(*base):
            # That arithmetic alone explains it: nothing of the files is needed.
            return None
        for difference in usable:
            fewer = [d for d in chosen if d is not difference]
            if fewer and case.holds(*base, *(made[d] for d in fewer)):
                chosen = fewer
        return (*base, *(made[d] for d in chosen))
    return None


def _named(case: Case, difference: Difference, hypothesis: Hypothesis) -> Hypothesis:
    """The hypothesis with the name of the known fault that changes a file in just this way, if one does."""
    if not difference.tensor or difference.change is None:
        return hypothesis
    graph = case.segment.graph
    index = tensor_index(graph, difference.tensor)
    try:
        wanted = difference.change(graph).tensors[index]
    except (BittrueError, ValueError):
        return hypothesis
    for known in _known(case):
        assert known.graph is not None
        try:
            changed = known.graph(graph)
        except (BittrueError, ValueError, IndexError):
            continue
        if _same(changed, graph, index, wanted):
            text = known.cause.text.removesuffix(": a fault")
            cause = Cause(known.cause.name, f"{text} ({difference.facts}): a fault", known.cause.kind, False)
            return replace(hypothesis, cause=cause)
    return hypothesis


def _known(case: Case) -> Iterator[Hypothesis]:
    for family in (zero_points, constants):
        for h in family(case):
            if h.graph is not None and not (h.layer or h.plan or h.result or h.values or h.numerics or h.compute):
                yield h


def _same(changed: Graph, graph: Graph, index: int, wanted: Tensor) -> bool:
    """Whether a changed graph has that tensor as wanted, and is as it was besides."""
    if any(a is not b for k, (a, b) in enumerate(zip(changed.tensors, graph.tensors, strict=True)) if k != index):
        return False
    found = changed.tensors[index]
    if found is graph.tensors[index] or found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if (found.data is None) != (wanted.data is None):
        return False
    if found.data is not None and wanted.data is not None and not np.array_equal(found.data, wanted.data):
        return False
    one, two = found.quantization, wanted.quantization
    return one is two or (one is not None and two is not None and one.axis == two.axis and one.same_as(two))
