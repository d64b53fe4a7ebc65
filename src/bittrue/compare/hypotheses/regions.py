"""Faults of a part of the result: rows or channels that nobody wrote, or wrote twice; buffers that end too early."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...plan import Plan
from ..result import Cause
from .case import Case, Hypothesis

Array = np.ndarray
# Fewer differing elements hold one value by chance.
_LEAST = 8
# Slices of an axis whose order is looked for.
_MOST_SLICES = 4096


def regions(case: Case) -> Iterator[Hypothesis]:
    """B is A but for a part at some indices of an axis, or from some element on, that holds one quantized value or
    repeats.
    """
    if case.differing >= _LEAST:
        yield from permuted(case)
    shape = case.theirs[0].shape
    for axis in range(len(shape)):
        reach = span(case, axis)
        if reach is None or shape[axis] < 2:
            continue
        low, high = reach
        if high - low + 1 == shape[axis]:
            continue
        where = words(axis, low, high, shape[axis])
        yield from _part(case, axis, low, high, where)
    if len(shape) != 1:
        first = min((int(np.argmax(mask)) for mask in case.differs if mask.any()), default=0)
        if first:
            yield from _part(case, None, first, case.theirs[0].size - 1, f"every element from number {first} on")


def permuted(case: Case) -> Iterator[Hypothesis]:
    """B is A with the slices of an axis in another order, which is read off B."""
    for axis, size in enumerate(case.theirs[0].shape):
        if 2 <= size <= _MOST_SLICES:
            order = _order(case, axis, size)
            if order is not None:
                moved = [i for i, k in enumerate(order) if i != k]
                shown = ", ".join(f"{i} holds {order[i]}" for i in moved[:4]) + (" ..." if len(moved) > 4 else "")
                cause = Cause(
                    "slices of the result in another order", f"along axis {axis} {shown}: a fault", "data", False
                )
                yield Hypothesis(cause, "result", result=lambda y, plan, o=order, k=axis: y.take(o, k))  # type: ignore[misc]


def _order(case: Case, axis: int, size: int) -> list[int] | None:
    """Which of A's slices each of B's is; None where that is not told, or they are where they should be."""
    keys = []
    for arrays in (case.ours, case.theirs):
        moved = [np.moveaxis(a, axis, 0) for a in arrays]
        keys.append([b"".join(np.ascontiguousarray(m[i]).tobytes() for m in moved) for i in range(size)])
    if keys[0] == keys[1] or sorted(keys[0]) != sorted(keys[1]):
        return None
    places: dict[bytes, list[int]] = {}
    for i, key in enumerate(keys[0]):
        places.setdefault(key, []).append(i)
    # Slices that are alike stay where they are if they can.
    order = [i if keys[0][i] == key else -1 for i, key in enumerate(keys[1])]
    free = {key: [i for i in found if i not in order] for key, found in places.items()}
    return [k if k >= 0 else free[keys[1][i]].pop(0) for i, k in enumerate(order)]


def span(case: Case, axis: int) -> tuple[int, int] | None:
    """First and last index of an axis at which elements differ, over all input sets."""
    found = [
        np.flatnonzero(np.moveaxis(mask, axis, 0).reshape(mask.shape[axis], -1).any(axis=1)) for mask in case.differs
    ]
    both = np.concatenate(found)
    return (int(both.min()), int(both.max())) if both.size else None


def words(axis: int, low: int, high: int, size: int) -> str:
    """Where that is, for people."""
    if low == high:
        last = ", the last" if high == size - 1 else ""
        return f"index {low} of axis {axis}{last}"
    return f"indices {low} to {high} of axis {axis}"


def _part(case: Case, axis: int | None, low: int, high: int, where: str) -> Iterator[Hypothesis]:
    def cut(values: Array, start: int = low, stop: int = high) -> Array:
        flat = values.reshape(-1)[start : stop + 1] if axis is None else values.take(range(start, stop + 1), axis)
        return np.asarray(flat)

    def put(change: Callable[[Array], Array]) -> Callable[[Array, Plan], Array]:
        def result(y: Array, plan: Plan) -> Array:
            out = y.copy()
            view = out.reshape(-1)[low : high + 1] if axis is None else np.moveaxis(out, axis, 0)[low : high + 1]
            new = change(y)
            view[...] = new if axis is None or new.ndim == 0 else np.moveaxis(new, axis, 0)
            return out

        return result

    parts = [cut(b) for b in case.theirs]
    held = parts[0].reshape(-1)[:1]
    if case.differing >= _LEAST and all((p == held[0]).all() for p in parts):
        value = held[0]
        text = f"{where} holds {value} alone: a fault"
        yield _hypothesis("part of the result not written", text, put(lambda y: np.asarray(value)))
    if axis is not None and low == high and low:
        text = f"{where} repeats the one before: a fault"
        yield _hypothesis("part of the result repeated", text, put(lambda y: cut(y, low - 1, low - 1)))
    if axis is not None and high == low and low + 1 < case.theirs[0].shape[axis]:
        text = f"{where} repeats the one behind: a fault"
        yield _hypothesis("part of the result repeated", text, put(lambda y: cut(y, low + 1, low + 1)))


def _hypothesis(name: str, text: str, change: Callable[[Array, Plan], Array]) -> Hypothesis:
    return Hypothesis(Cause(name, text, "data", False), "result", result=change)
