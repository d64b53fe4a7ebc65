"""Elements that vector loops, workers and batches forget."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .case import Case, Hypothesis
from .common import Array, of_result

_BLOCKS = (2, 4, 8, 16, 32, 64)


def blocks(case: Case) -> Iterator[Hypothesis]:
    """Results whose last elements, rows or images are not written, or written from the first ones."""
    shape = case.theirs[0].shape
    size = int(np.prod(shape))
    for block in _BLOCKS:
        if size > block and size % block:
            name = f"elements beyond whole blocks of {block} not written"
            yield of_result(name, f"{name} and left at 0", _flat(size - size % block, lambda y, first: 0))
    for block in _BLOCKS:
        if len(shape) > 1 and shape[-1] > block and shape[-1] % block:
            name = f"elements of rows beyond whole blocks of {block} not written"
            yield of_result(name, f"{name} and left at 0", _rows(shape[-1] - shape[-1] % block))
    if size > 1:
        yield of_result("last element not written", "the last element is left at 0", _flat(size - 1, lambda y, f: 0))
        text = "the last element repeats the one before"
        yield of_result("last element repeated", text, _flat(size - 1, lambda y, first: y[first - 1]))
    for block in (256, 1024, 4096):
        if size > block:
            name = f"elements beyond {block} not written"
            yield of_result(name, f"{name} and left at 0", _flat(block, lambda y, first: 0))
    for axis, dimension in enumerate(shape):
        if dimension > 1 and len(shape) > 1:
            yield of_result(
                f"last index of axis {axis} not written",
                f"what lies at the last index of axis {axis} is left at 0",
                _index(axis, -1, None),
            )
            yield of_result(
                f"axis {axis} repeats its first index",
                f"all indices of axis {axis} hold what belongs to the first",
                _first(axis),
            )
            yield of_result(f"axis {axis} reversed", f"axis {axis} comes in reversed order", _reversed(axis))


def _flat(first: int, value: Callable[[Array, int], object]) -> Callable[[Array], Array]:
    def change(y: Array) -> Array:
        flat = y.reshape(-1).copy()
        flat[first:] = value(flat, first)
        return flat.reshape(y.shape)

    return change


def _rows(first: int) -> Callable[[Array], Array]:
    def change(y: Array) -> Array:
        found = y.copy()
        found[..., first:] = 0
        return found

    return change


def _index(axis: int, low: int, high: int | None) -> Callable[[Array], Array]:
    def change(y: Array) -> Array:
        found = y.copy()
        np.moveaxis(found, axis, 0)[low:high] = 0
        return found

    return change


def _first(axis: int) -> Callable[[Array], Array]:
    return lambda y: np.broadcast_to(y.take([0], axis), y.shape).copy()


def _reversed(axis: int) -> Callable[[Array], Array]:
    return lambda y: np.flip(y, axis).copy()
