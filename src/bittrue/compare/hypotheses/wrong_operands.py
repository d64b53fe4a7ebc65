"""Operands that are no data: axes, permutations, pads, sizes, indices; and the operator itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np

from ... import numerics as numerics_tables
from ...graph import Graph, Node, Tensor
from ...operators import find, registry
from .case import Case, Hypothesis, change_tensors
from .common import Array, cause

# Attributes about the shape of the result alone.
_SHAPES = ("keep_dims", "keep_num_dims")
# Up to so many numbers every order of them is tried.
_MOST_ORDERED = 5


def wrong_operands(case: Case) -> Iterator[Hypothesis]:
    """Every constant of integers changed, and other operators."""
    node = case.segment.node
    graph = case.segment.graph
    operator = find(node.operator)
    if operator is None:
        return
    windows = "pad_top" in case.step.parameters
    for position, index in enumerate(node.inputs):
        if index is None or operator.keeps_order:
            continue
        tensor = graph.tensors[index]
        if tensor.is_constant and tensor.quantization is None and tensor.dtype in ("s32", "s64"):
            for title, text, change in _numbers(tensor.values(), operator.reduces):
                what = f"operand {position + 1}"
                yield _constant(index, f"{what} {title}", f"{what}: {text}", change)
    truths = [o.stem for o in registry().values() if o.truth and operator.truth and o is not operator]
    for other in truths:
        yield _operator(node, other)
    for name, value in node.attributes.items():
        if name in _SHAPES or (windows and name.startswith(("stride_", "dilation_", "filter_"))):
            continue
        if isinstance(value, bool):
            yield _attribute(node, name, not value, f"{name} is {not value}")
        elif isinstance(value, int):
            yield _attribute(node, name, value + 1, f"{name} one too large")
            yield _attribute(node, name, value - 1, f"{name} one too small")


def _numbers(values: Array, is_set: bool) -> Iterator[tuple[str, str, Callable[[Array], Array]]]:
    flat = values.reshape(-1)
    for by in (1, -1):
        words = "one too large" if by > 0 else "one too small"
        yield f"{words} everywhere", f"every number is {words}", lambda v, by=by: v + by  # type: ignore[misc]
        if flat.size > 1:
            for place in range(min(flat.size, 8)):
                yield f"number {place} {words}", f"number {place} is {words}", _at(place, by)
    yield "zero everywhere", "every number is 0", lambda v: v * 0
    if values.ndim == 2 and values.shape[1] == 2:
        yield "before and behind swapped", "amounts before and behind are swapped", lambda v: v[:, ::-1]
        yield "all before", "everything is put before", lambda v: np.stack([v.sum(1), v[:, 1] * 0], 1)
        yield "all behind", "everything is put behind", lambda v: np.stack([v[:, 0] * 0, v.sum(1)], 1)
        yield "in column order", "the amounts lie column by column", lambda v: v.reshape(2, -1).T
        yield "of reversed axes", "amounts are those of the axes in reversed order", lambda v: v[::-1]
    elif is_set:
        return
    elif 2 <= flat.size <= _MOST_ORDERED and values.ndim == 1:
        for order in permutations(range(flat.size)):
            if order != tuple(range(flat.size)):
                text = f"the numbers come in the order {list(order)}"
                yield f"in the order {list(order)}", text, lambda v, order=order: v[list(order)]  # type: ignore[misc]
        if sorted(flat.tolist()) == list(range(flat.size)):
            yield "inverted", "it is taken for the inverse permutation", lambda v: np.argsort(v)
    elif flat.size > 1:
        yield "reversed", "the numbers come in reversed order", lambda v: v.reshape(-1)[::-1].reshape(v.shape)
        yield "moved by one", "the numbers are moved by one", lambda v: np.roll(v, 1)


def _at(place: int, by: int) -> Callable[[Array], Array]:
    def change(values: Array) -> Array:
        found = values.copy()
        found.reshape(-1)[place] += by
        return found

    return change


def _constant(index: int, name: str, text: str, change: Callable[[Array], Array]) -> Hypothesis:
    def changed(tensor: Tensor) -> Tensor:
        old = tensor.values()
        new = np.ascontiguousarray(change(old)).astype(old.dtype).reshape(old.shape)
        return replace(tensor, data=new.reshape(-1) if tensor.data is not None and tensor.data.ndim == 1 else new)

    def graph(old: Graph) -> Graph:
        return change_tensors(old, {index: changed})

    return Hypothesis(cause(name, text), "operand", graph=graph)


def _operator(node: Node, other: str) -> Hypothesis:
    def graph(old: Graph) -> Graph:
        changed = tuple(replace(n, operator=other) if n.index == node.index else n for n in old.nodes)
        return replace(old, nodes=changed)

    return Hypothesis(
        cause(f"{other} instead of {node.operator}", f"it is a {other}, no {node.operator}", "order"),
        "operator",
        # The row of the other operator is that of the same numerics.
        numerics=lambda old: numerics_tables.find(old.name),
        graph=graph,
    )


def _attribute(node: Node, name: str, value: object, title: str) -> Hypothesis:
    def graph(old: Graph) -> Graph:
        attributes = {**node.attributes, name: value}
        changed = tuple(replace(n, attributes=attributes) if n.index == node.index else n for n in old.nodes)  # type: ignore[arg-type]
        return replace(old, nodes=changed)

    return Hypothesis(cause(title, f"the attribute {title}", "order"), "attribute", graph=graph)
