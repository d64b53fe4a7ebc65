"""Mutants of results that are known without running the model: the shape of a tensor, for example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

_WAYS: tuple[tuple[str, str, Callable[[np.ndarray], np.ndarray]], ...] = (
    ("result is all zeros", "the tensor holds zeros alone", np.zeros_like),
    ("result is all ones", "the tensor holds ones alone", np.ones_like),
    ("result reversed", "the values come in reversed order", lambda y: y.reshape(-1)[::-1].reshape(y.shape)),
    ("result moved on by one", "every value is one place further on", lambda y: np.roll(y, 1)),
    ("result moved back by one", "every value is one place further back", lambda y: np.roll(y, -1)),
    ("every value one too large", "every value is one too large", lambda y: y + y.dtype.type(1)),
    ("every value one too small", "every value is one too small", lambda y: y - y.dtype.type(1)),
    ("quantized values doubled", "every value is doubled", lambda y: y + y),
    ("cut to 8 bits", "values are cut to 8 bits", lambda y: y.astype(np.int8).astype(y.dtype)),
    ("cut to unsigned 8 bits", "values are cut to 8 bits", lambda y: y.astype(np.uint8).astype(y.dtype)),
    ("cut to 16 bits", "values are cut to 16 bits", lambda y: y.astype(np.int16).astype(y.dtype)),
    ("first dimension is 1", "the first value is 1, as for one image at a time", lambda y: _put(y, 0, 1)),
    ("last value left out", "the last value is 0", lambda y: _put(y, -1, 0)),
    ("last value is 1", "the last value is 1", lambda y: _put(y, -1, 1)),
    ("first two swapped", "the first two values are swapped", lambda y: _exchanged(y, 0, 1)),
    ("last two swapped", "the last two values are swapped", lambda y: _exchanged(y, -1, -2)),
    ("channels first", "channels come behind the first value", lambda y: np.concatenate([y[:1], y[-1:], y[1:-1]])),
    ("values sorted", "the values come in ascending order", np.sort),
    ("running product", "values are multiplied with those before", np.cumprod),
    ("bytes swapped", "the bytes of every value are swapped", lambda y: y.byteswap()),
    ("at most 4 values", "what lies beyond the fourth value is 1", lambda y: np.where(np.arange(y.size) < 4, y, 1)),
)


def known_results(expected: Mapping[str, np.ndarray]) -> Iterator[tuple[str, str, Mapping[str, np.ndarray] | None]]:
    """Name, text and outputs; None where a change makes no sense or gives another type or shape."""
    for name, text, change in _WAYS:
        yield name, text, _changed(expected, change)


def _changed(
    expected: Mapping[str, np.ndarray], change: Callable[[np.ndarray], np.ndarray]
) -> Mapping[str, np.ndarray] | None:
    changed: dict[str, np.ndarray] = {}
    for output, value in expected.items():
        try:
            changed[output] = np.ascontiguousarray(change(value)).astype(value.dtype)
        except (ValueError, IndexError):
            return None
        if changed[output].shape != value.shape:
            return None
    return changed


def _put(values: np.ndarray, place: int, value: int) -> np.ndarray:
    found = values.copy()
    found[place] = value
    return found


def _exchanged(values: np.ndarray, one: int, two: int) -> np.ndarray:
    found = values.copy()
    found[one], found[two] = values[two], values[one]
    return found
