"""Statistics of two arrays, taken piece by piece so that mapped files of any size never become temporaries.

Equality is equality of bytes. Differences of integers are exact for all types up to 64 bits; real numbers are counted
in units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from .result import Statistics, Worst

# Elements per piece, entries of a histogram, largest size of `per_channel`, and of `plane` along each axis.
_PIECE = 1 << 18
_ENTRIES = 32
_CHANNELS = 4096
_PLANE = 64

Convert = Callable[[np.ndarray], np.ndarray]


def statistics(a: np.ndarray, b: np.ndarray, channel_axis: int = -1) -> Statistics:
    """How `b` stands to `a`.

    >>> found = statistics(np.int8([[1, 2], [3, 4]]), np.int8([[1, 4], [3, 3]]))
    >>> found.differing, found.largest, found.bias, found.histogram, found.worst.element
    (2, 2.0, 0.25, {'-1': 1, '2': 1}, (0, 1))
    """
    collector = Collector(a.shape, channel_axis)
    collector.add(a, b)
    return collector.result()


class Collector:
    """Statistics of one tensor over several inputs.

    Args:
        shape: of the tensor.
        channel_axis: what `per_channel` counts along; of tensors with four axes the second or last one, so that the
            other two of the last three are rows and columns of images.
    """

    def __init__(self, shape: tuple[int, ...], channel_axis: int = -1) -> None:
        self.shape = shape
        rank = len(shape)
        self._channel = channel_axis % rank if rank else 0
        self._rows = (1, 2) if self._channel == 3 else (2, 3) if (rank, self._channel) == (4, 1) else None
        self._elements = self._differing = 0
        self._largest: int | float | None = 0
        self._sum: Fraction | None = Fraction(0)
        self._histogram: dict[str, int] = {}
        self._counts: dict[int, int] = {}
        self._other = 0
        self._worst: tuple[float, Worst] | None = None
        channels = shape[self._channel] if rank else 0
        self._channels = np.zeros(channels if 0 < channels <= _CHANNELS else 0, np.int64)
        self._plane = np.zeros([min(shape[i], _PLANE) for i in self._rows] if self._rows else (0, 0), np.int64)

    def add(
        self, a: np.ndarray, b: np.ndarray, convert: Convert | None = None, convert_a: Convert | None = None
    ) -> int:
        """Count one more pair of values and return how many elements differ.

        Args:
            a, b: of this tensor's shape; views of files are read piece by piece.
            convert, convert_a: what makes a piece of `b` (of `a`) an array of the type that is compared.
        """
        before = self._differing
        for start, place in pieces(self.shape):
            one, two = (np.ascontiguousarray(x[place]).reshape(-1) for x in (a, b))
            one = one if convert_a is None else convert_a(one)
            two = two if convert is None else convert(two)
            self._elements += one.size
            changed = np.flatnonzero(_bits(one) != _bits(two))
            if changed.size:
                self._count(start + changed, one[changed], two[changed])
        return self._differing - before

    def add_equal(self) -> None:
        """Count one more pair of values that are known to be equal."""
        self._elements += math.prod(self.shape)

    def result(self) -> Statistics:
        """What was counted up to now."""
        if not self._differing:
            return Statistics(self._elements, 0)
        counts = {str(key): self._counts[key] for key in sorted(self._counts)}
        histogram = {**counts, **self._histogram, **({"other": self._other} if self._other else {})}
        sets = self._elements // max(math.prod(self.shape), 1)
        per_channel = self._channels / max(self._elements // max(len(self._channels), 1), 1)
        return Statistics(
            self._elements,
            self._differing,
            None if self._largest is None else float(self._largest),
            None if self._sum is None else float(self._sum / self._elements),
            histogram,
            None if self._worst is None else self._worst[1],
            tuple(float(share) for share in per_channel),
            tuple(tuple(float(share) for share in row) for row in self._plane / self._cells(sets))
            if self._plane.size
            else (),
        )

    def _count(self, flat: np.ndarray, one: np.ndarray, two: np.ndarray) -> None:
        self._differing += flat.size
        self._places(flat)
        if one.dtype.kind in "iub":
            negative, magnitude = _distances(one, two)
            self._count_integers(negative, magnitude)
            at = int(magnitude.argmax())
            self._keep(float(magnitude[at]), flat[at], one[at], two[at])
        elif one.dtype.kind == "c":
            self._count_complex(flat, one, two)
        else:
            self._count_reals(flat, one, two)

    def _count_integers(self, negative: np.ndarray, magnitude: np.ndarray) -> None:
        largest = int(magnitude.max())
        self._largest = None if self._largest is None else max(self._largest, largest)
        # 32-bit halves: their sums stay within 64 bits.
        low, high = magnitude & np.uint64(0xFFFFFFFF), magnitude >> np.uint64(32)
        if self._sum is not None:
            for sign, which in ((-1, negative), (1, ~negative)):
                self._sum += sign * (int(low[which].sum()) + (int(high[which].sum()) << 32))
        for sign, which in ((-1, negative), (1, ~negative)):
            values, counts = _occurrences(magnitude[which])
            # Only the nearest matter. One that is dropped never comes back: as many nearer ones stay.
            self._other += int(counts[_ENTRIES:].sum())
            for value, count in zip(values[:_ENTRIES].tolist(), counts[:_ENTRIES].tolist(), strict=True):
                self._counts[sign * value] = self._counts.get(sign * value, 0) + count
        self._shorten()

    def _shorten(self) -> None:
        for key in sorted(self._counts, key=lambda d: (abs(d), d))[_ENTRIES:]:
            self._other += self._counts.pop(key)

    def _count_reals(self, flat: np.ndarray, one: np.ndarray, two: np.ndarray) -> None:
        with np.errstate(all="ignore"):
            x, y = one.astype(np.float64), two.astype(np.float64)
            apart = np.abs(y - x)
        strange = np.isnan(x) | np.isnan(y)
        endless = ~strange & ~(np.isfinite(x) & np.isfinite(y))
        if strange.any() or endless.any() or not np.isfinite(apart).all():
            self._largest = self._sum = None
        else:
            self._largest = None if self._largest is None else max(self._largest, float(apart.max()))
            if self._sum is not None:
                self._sum += Fraction(math.fsum((y - x).tolist()))
        self._bump("nan", int(strange.sum()))
        self._bump("infinite", int(endless.sum()))
        plain = ~(strange | endless)
        negative, magnitude = _distances(_ordered(one[plain]), _ordered(two[plain]))
        exponent = np.frexp(magnitude.astype(np.float64))[1] - 1
        for sign, which in (("-", negative), ("", ~negative)):
            for value, count in zip(*np.unique(exponent[which & (magnitude > 0)], return_counts=True), strict=True):
                self._bump(f"{sign}{1 << int(value)}", int(count))
        # Zeros of different sign.
        self._bump("0", int((magnitude == 0).sum()))
        rank = np.where(strange, np.inf, np.where(endless, np.inf, apart))
        at = int(rank.argmax())
        self._keep(float(rank[at]), flat[at], one[at], two[at])

    def _count_complex(self, flat: np.ndarray, one: np.ndarray, two: np.ndarray) -> None:
        """Distances in the plane; there is no order to count steps in. The worst element shows magnitudes."""
        self._sum = None
        with np.errstate(all="ignore"):
            apart = np.abs(two.astype(np.complex128) - one.astype(np.complex128))
        good = np.isfinite(apart).all() and self._largest is not None
        self._largest = max(self._largest, float(apart.max())) if good and self._largest is not None else None
        at = int(np.where(np.isnan(apart), np.inf, apart).argmax())
        self._keep(float(apart[at]) if good else math.inf, flat[at], np.abs(one[at]), np.abs(two[at]))

    def _bump(self, key: str, count: int) -> None:
        if count:
            self._histogram[key] = self._histogram.get(key, 0) + count

    def _keep(self, distance: float, flat: np.integer, a: np.generic, b: np.generic) -> None:
        if self._worst is None or distance > self._worst[0]:
            element = tuple(int(i) for i in np.unravel_index(int(flat), self.shape)) if self.shape else ()
            values = (v.item() if v.dtype.kind in "iu" else float(v) for v in (a, b))
            self._worst = distance, Worst(element, *values)

    def _places(self, flat: np.ndarray) -> None:
        if not self._channels.size and not self._plane.size:
            return
        index = np.unravel_index(flat, self.shape)
        if self._channels.size:
            self._channels += np.bincount(index[self._channel], minlength=self._channels.size)
        if self._plane.size and self._rows:
            row, column = (self._cell(index[axis], axis) for axis in self._rows)
            height, width = self._plane.shape
            self._plane += np.bincount(row * width + column, minlength=height * width).reshape(height, width)

    def _cell(self, position: np.ndarray, axis: int) -> np.ndarray:
        return position * min(self.shape[axis], _PLANE) // self.shape[axis]

    def _cells(self, sets: int) -> np.ndarray:
        """Elements per cell of the plane."""
        assert self._rows is not None
        rows, columns = (np.bincount(self._cell(np.arange(self.shape[axis]), axis)) for axis in self._rows)
        rest = math.prod(self.shape) // max(self.shape[self._rows[0]] * self.shape[self._rows[1]], 1)
        return np.maximum(np.outer(rows, columns) * rest * sets, 1)


def pieces(shape: tuple[int, ...], limit: int = _PIECE) -> Iterator[tuple[int, tuple[int | slice, ...]]]:
    """(flat position, index) of the blocks of at most `limit` elements that make up an array, in C order.

    >>> list(pieces((2, 5), 3))
    [(0, (0, slice(0, 3, None))), (3, (0, slice(3, 5, None))), (5, (1, slice(0, 3, None))), (8, (1, slice(3, 5, None)))]
    """
    if math.prod(shape) == 0:
        return
    if math.prod(shape) <= limit:
        yield 0, (...,)  # type: ignore[misc]
        return
    axis = next(i for i in range(len(shape)) if math.prod(shape[i + 1 :]) <= limit)
    inner = math.prod(shape[axis + 1 :])
    step = max(limit // inner, 1)
    start = 0
    for outer in np.ndindex(*shape[:axis]):
        for first in range(0, shape[axis], step):
            last = min(first + step, shape[axis])
            yield start, (*outer, slice(first, last))
            start += (last - first) * inner


def _bits(values: np.ndarray) -> np.ndarray:
    """The bits as unsigned integers."""
    size = values.dtype.itemsize
    if size <= 8 and values.dtype.kind != "c":
        return values.view(f"u{size}")
    return values.view(np.dtype((np.void, size)))


def _distances(one: np.ndarray, two: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether two - one is negative, and its magnitude as u64; exact for all integers."""
    if one.dtype.itemsize < 8:
        one, two = one.astype(np.int64), two.astype(np.int64)
    negative = two < one
    low, high = np.where(negative, two, one), np.where(negative, one, two)
    # Modulo 2^64, in which the difference fits.
    return negative, high.view(np.uint64) - low.view(np.uint64)


def _occurrences(magnitude: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values that occur, smallest first, and how often."""
    if magnitude.size and magnitude.max() >= 1 << 16:
        return np.unique(magnitude, return_counts=True)
    counts = np.bincount(magnitude.astype(np.int64))
    values = np.flatnonzero(counts)
    return values, counts[values]


def _ordered(values: np.ndarray) -> np.ndarray:
    """Integers in the order of the real numbers, neighbours one apart; both zeros are 0."""
    size = values.dtype.itemsize
    if values.dtype.name == "float8_e8m0fnu":
        # Powers of two without a sign.
        return values.view(np.uint8).astype(np.int64)
    bits = values.view(f"i{size}").astype(np.int64)
    least = -(1 << (8 * size - 1))
    return np.where(bits < 0, np.int64(least) - bits, bits)
