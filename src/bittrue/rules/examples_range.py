"""Examples that tell apart rules between codes of a range, sums and real numbers, for `examples`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from .range_levels import Ends
from .range_quantize import DEQUANTIZE, QUANTIZE, REQUANTIZE

# What is given in words, and the results of both rules.
Found = Iterator[tuple[str, tuple[str, str]]]

_RANGES = ((-127.0, 127.0), (-1.0, 1.0), (0.0, 255.0), (-0.3, 0.7), (-1.5, 6.0))


def _ends(given: tuple[float, float]) -> Ends:
    return np.float32(given[0]), np.float32(given[1])


def _first(one: np.ndarray, other: np.ndarray) -> int | None:
    places = np.flatnonzero(one != other)
    return int(places[0]) if places.size else None


def quantized(first: str, second: str) -> Found:
    """Multiples of 1/512 of the range, as s8 and as u8."""
    for given, dtype in product(_RANGES, ("s8", "u8")):
        numbers = np.arange(-512, 513).astype(np.float32) * np.float32(max(map(abs, given)) / 512)
        one, other = (QUANTIZE[name](numbers, _ends(given), dtype) for name in (first, second))
        place = _first(one, other)
        if place is not None:
            yield f"{numbers[place]} of the range {given}, as {dtype}", (str(one[place]), str(other[place]))


def dequantized(first: str, second: str) -> Found:
    """Every code."""
    for given, (dtype, low) in product(_RANGES, (("s8", -128), ("u8", 0))):
        codes = np.arange(low, low + 256)
        one, other = (DEQUANTIZE[name](codes, _ends(given), dtype) for name in (first, second))
        place = _first(one, other)
        if place is not None:
            results = str(float(one[place])), str(float(other[place]))
            yield f"{dtype} code {codes[place]} of the range {given}", results


def requantized(first: str, second: str) -> Found:
    """Small sums, whose range is 2^31 units."""
    sums = np.arange(-2000, 2001)
    for unit, given in product((1.0, 2.0**-10, 0.003), _RANGES):
        reach = np.float32(2.0**31 * unit)
        one, other = (REQUANTIZE[name](sums, (-reach, reach), _ends(given), "s8") for name in (first, second))
        place = _first(one, other)
        if place is not None:
            yield f"sum {sums[place]} of units of {unit}, to the range {given}", (str(one[place]), str(other[place]))
