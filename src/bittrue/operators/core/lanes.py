"""Where an element lies in the vector loops of a runtime: runs of neighbours, whole blocks, what is left behind.

An element-wise operator on two tensors of one shape is a single run over all elements. Broadcasting is cut into runs
over which both inputs advance, or one advances and the other stands still.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...graph import Attribute
from ...rules import lanes, store
from .base import Call, Shape, Step
from .elementwise import blockwise


def broadcast_runs(first: Shape, second: Shape) -> tuple[str, int]:
    """(form, elements of a run) of a broadcast that is walked in at most five nested loops.

    ``"rows"``: both inputs advance along a run; ``"scalars"``: one of them stands still; ``"none"``: the loops do not
    suffice, so that every element is on its own.

    >>> broadcast_runs((4, 8), (4, 8)), broadcast_runs((4, 8), (8,)), broadcast_runs((4, 8), (4, 1))
    (('rows', 32), ('rows', 8), ('scalars', 8))
    """
    rank = max(len(first), len(second))
    a, b = ((1,) * (rank - len(shape)) + tuple(shape) for shape in (first, second))
    if a == b:
        return "rows", math.prod(a)
    differing = next(i for i in reversed(range(rank)) if a[i] != b[i])
    if a[differing] != 1:
        a, b = b, a
    axis, sizes = rank - 1, []
    # From inside: equal sizes, the first input stands still, equal, the second stands still, equal.
    for holds in (
        lambda i: a[i] == b[i],
        lambda i: a[i] == 1,
        lambda i: a[i] == b[i],
        lambda i: b[i] == 1,
        lambda i: a[i] == b[i],
    ):
        size = 1
        while axis >= 0 and holds(axis):
            size *= max(a[axis], b[axis]) if 0 not in (a[axis], b[axis]) else 0
            axis -= 1
        sizes.append(size)
    if axis >= 0:
        return "none", 1
    return ("rows", sizes[0]) if sizes[0] > 1 else ("scalars", sizes[1])


def run_parameters(call: Call) -> dict[str, Attribute]:
    """`run` and `body` of a binary operator: element i has the body's rules where i mod run < body."""
    if "lanes" not in call.rules:
        return {}
    _, run = broadcast_runs(call.input(0).shape, call.input(1).shape)
    return {"run": max(1, run), "body": lanes.RULES[call.rules["lanes"]].body(run)}


def tail_rules(step: Step) -> dict[str, str]:
    """The step's rules with every slot that has a `_tail` replaced by that."""
    tails = {slot.removesuffix("_tail"): rule for slot, rule in step.rules.items() if slot.endswith("_tail")}
    return {**step.rules, **tails}


def zip_in_runs(
    step: Step,
    make: Callable[[dict[str, str]], Callable[..., np.ndarray]],
    arrays: Sequence[np.ndarray],
    dtype: np.dtype,
) -> np.ndarray:
    """`blockwise` of make(rules): with the step's rules for elements in whole blocks, its tail rules elsewhere."""
    body = make(dict(step.rules))
    if "lanes" not in step.rules:
        return blockwise(body, arrays, dtype)
    tail, run, inside = make(tail_rules(step)), step["run"], step["body"]
    if inside in (0, run):
        return blockwise(body if inside else tail, arrays, dtype)
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    vector = (np.arange(math.prod(shape)) % run < inside).reshape(shape)
    return blockwise(lambda a, b, v: np.where(v != 0, body(a, b), tail(a, b)), [*arrays, vector], dtype)


def stored_in_lanes(step: Step, total: np.ndarray, body: int, dtype: np.dtype) -> np.ndarray:
    """Sums rescaled and stored; along the last axis, those from `body` on by the tail's rules where the row has any."""
    if "rescale_tail" not in step.rules:
        return store.rescale_and_store(total, step.rules, step.arrays, step.parameters, dtype)
    parts = []
    for rules, part in ((step.rules, slice(0, body)), (tail_rules(step), slice(body, None))):
        arrays = {name: a[part] if a.ndim and a.size > 1 else a for name, a in step.arrays.items()}
        parts.append(store.rescale_and_store(total[..., part], rules, arrays, step.parameters, dtype))
    return np.concatenate(parts, axis=-1)
