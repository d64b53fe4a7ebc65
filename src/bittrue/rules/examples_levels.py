"""Examples that tell apart rules on levels with binary64 scales, for `examples`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from . import level_sum, levels, window_levels

# What is given in words, and the results of both rules.
Found = Iterator[tuple[str, tuple[str, str]]]

_SCALES = (0.5, 2.0, 1.0, 0.1, 0.3, 0.0123)
_CODES = np.arange(-128, 128, dtype=np.int64)


def of_real(first: str, second: str) -> Found:
    """`levels`: quarters, as numbers that are quantized or stored."""
    x = (np.arange(-400, 401) / 4).astype(np.float32)
    for scale in _SCALES:
        for zero_point in (0, 3):
            one, other = (levels.RULES[name].apply(x, scale, zero_point) for name in (first, second))
            for place in np.flatnonzero(one != other)[:1]:
                given = f"{x[place]}, scale or factor {scale}, zero point or addend {zero_point}"
                yield given, (f"{one[place]:g}", f"{other[place]:g}")


def of_two(first: str, second: str) -> Found:
    """`level_sum`: every pair of 8-bit levels."""
    a, b = _CODES[:, None], _CODES[None, :]
    for scale in _SCALES:
        for output in _SCALES:
            pairs = (scale, 0), (0.1, 0), (output, 0)
            one, other = (
                level_sum.RULES[name].apply(a, b, level_sum.RULES[name].prepare(*pairs)) for name in (first, second)
            )
            for i, j in zip(*np.nonzero(one != other), strict=True):
                given = f"{_CODES[i]} of scale {scale} and {_CODES[j]} of scale 0.1, to scale {output}"
                yield given, (str(one[i, j]), str(other[i, j]))


def of_window(first: str, second: str) -> Found:
    """`window_levels`: sums of a few stored numbers."""
    total = np.arange(-400, 401).astype(np.float32)
    for scale, output in ((1.0, 1.0), *((one, two) for one in _SCALES for two in _SCALES)):
        for count in (2, 3, 4, 6, 9):
            source, result = (scale, 0), (output, 0)
            one, other = (
                window_levels.RULES[name].apply(total, np.array([count]), source, result) for name in (first, second)
            )
            for place in np.flatnonzero(one != other)[:1]:
                given = f"sum {total[place]:g} of {count} numbers, scale {scale} to {output}"
                yield given, (f"{one[place]:g}", f"{other[place]:g}")
