"""Estimates of 1 / x and 1 / sqrt(x) in binary32 that x86-64 processors have an instruction for.

One is defined to the bit by its maker: straight lines. Those of 12 bits differ from maker to maker; these are AMD's,
the difference of two small tables. Square roots are made of them in one step, in which nothing is fused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bittrue.arithmetic.fused import flush

F32 = npt.NDArray[np.float32]


def _codes(text: str) -> npt.NDArray[np.int64]:
    """Small numbers, one for each character: "]" is 0, "a" is 4."""
    return np.frombuffer(text.encode(), np.uint8).astype(np.int64) - ord("]")


# What is to be added to the whole part of 2^19 / sqrt(x) in the middle of 32 lines, for x from 1 and from 2 on.
_ABOVE_THE_ROOT = _codes("sspomlmjjjhihigfeedddfdcbdddddccnnkkjihjggfefeefc`bcbccbcbbcbcba").reshape(2, 32)
_MIDDLES = np.outer([1.0, 2.0], 1 + (np.arange(32) + 0.5) / 32)
_VALUES = np.floor(2.0**19 / np.sqrt(_MIDDLES)).astype(np.int64) + _ABOVE_THE_ROOT
_FALLS = 2 * np.floor(512 * np.array([[1.0], [2.0]]) / (_MIDDLES * np.sqrt(_MIDDLES))).astype(np.int64) + 1


class _TwoTables:
    """first - step: `first` by the upper 8 of 12 bits, `step` by the upper 4 and the lower 4."""

    def __init__(self, first: int, falls: str, steps: str) -> None:
        self._first = first - np.cumsum(np.insert(_codes(falls), 0, 0))
        self._steps = np.cumsum(np.insert(_codes(steps).reshape(16, 15), 0, 0, axis=1), axis=1).reshape(-1)

    def look_up(self, place: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """13 bits for 12."""
        return np.asarray(self._first[place >> 4] - self._steps[place >> 8 << 4 | place & 15])


# fmt: off
_EVEN = _TwoTables(
    8191,
    "mmlmmllmllllllkllklkkkkkkkkkjkjkjkjjjjjjjijjijijijiiiiiiihiihihjhhihhhhhhhhhhghhghghghggghgggggggggg"
    "fggfgfgfgffgffgfffffffffeffeffefefefefeefeefeeeeeeeeeeeedeeeedeedededededdeddddedddddddddddeddcddddc"
    "ddcddcdcdcdcdcdccdccdccdccccccdcccccccccccccbccccbcccbc",
    "^^^^^^^]^^^^^^^^^^]^^^^^^^]^^^^^]^^^^]^^^^^]^^^]^^]^^^]^^^]^]^^]^^^]^^]^^]^^]^^]^^]^]^^]^^]^^]^]^]^^"
    "]^^]^]^]^]^^]^]^]^^]^]^]^]^]^]^]^]^]^]^]^]^]^]^]^]]^]^]^]]^]^]^]^^]^]]^]^]^]^]]^]^]]^]^]]^]^]^]]^]^]"
    "]^]^]]^]]^]^]]^]^]]^]^]]^]]^]]^]^]]^]]^]",
)
_ODD = _TwoTables(
    5792,
    "hhihghhhhghhghghgghgggggfgggfgfggffgffffffffffffeffefefeefeefeeeeeeeeeeeedeedededededdedddeddddddddd"
    "dddcdddcddcdcdcdcdccdccdcccdccccccccccccccbcccbcccbcbccbcbcbbcbcbbcbbcbbbbcbbbbbbbbbbbbbbbbcabbbbbab"
    "bbabbabbababbababababaababaabaabaaabaaabaaaaaabaaaaaaaa",
    "^]^^]^^]^^]^^]^]^^]^]^^]^^]^^]]^^]^]^]^^]^]^]]^^]^]^]^]^]^]^]^]^]^]^]^]^]^]^]]^]^]^]^]^]]^]^]^]]^]^]"
    "^]]^]]^]^]]^]^]]^]^]]]^]^]]^]]^]^]]]^]]^]]^]]^]]^]]^]]^]]^]]^]]^]^]]^]]^]]^]]]^]]]^]]^]]]^]]^]]]]^]]"
    "^]]]^]]^]]]^]]]^]]]^]]]^]]^]]]^]]]^]]]^]",
)
_INVERSE = _TwoTables(
    8190,
    "}|}{||{{{{zzzzz{yyxyxxxxxwwwwwvxvvvuvuuuututtttustsssssrsrrrrrqsqqqqqqpqpqppppopopoooooonononnnonmnn"
    "mmnmmmmmlmmmlmlllllllklklklkklkjkkkjkkjjkjjkjjjijjjijijiijiiiiiiiihiihihihhihhhhhhhhhhghghhhgghggggh"
    "gggfggggfggfgfgfgfffgffgfffffeffffeffefefefeefeeefeeeee",
    "_^_______^_____^__^__^__^__^__^_^^_^_^_^_^_^_^^_^^_^^_^^_^^_^^^^_^^^_^^^^_^^^_^^^^^^^^_^^^^^^^^^^^^^"
    "^^^^^^^^^^]^^^^^^^^^^^]^^^^^^]^^^^^^]^^^^]^^^^]^^^^^]^^]^^^]^^^]^^]^^]^^]^^]^^]^]^^]^]^^]^^]^]^]^^]^"
    "]^^]^]^^]^]^]^]^]^^]^]^]^]^]^]^^]^]^]^]^",
)
# fmt: on


def _inverse_root(x: F32, significands: npt.NDArray[np.int64], bits: int) -> F32:
    """The estimate from its significand, whose unit is 2^-bits, of x brought between 1 and 4; what is no number."""
    scale = (x.view(np.uint32).astype(np.int64) >> 23) - 127 >> 1
    with np.errstate(all="ignore"):
        found = np.ldexp(significands.astype(np.float32), -bits - scale.astype(np.int32)).astype(np.float32)
        found = np.where(x == 0, np.copysign(np.float32(np.inf), x), np.where(np.isinf(x), np.float32(0), found))
        found = np.where(x < 0, np.array([0xFFC00000], np.uint32).view(np.float32), found)
        return np.where(np.isnan(x), x + x, found)


def inverse_root_of_lines(x: npt.ArrayLike) -> F32:
    """The instruction RSQRT14PS: 64 straight lines over x between 1 and 4, cut off below 2^-17; 1 of whole powers of 4.

    Domain: normal numbers, zeros, infinities and NaN. Subnormal numbers must have been flushed.
    Source: docs/facts/xnnpack.md 3.8; every fraction of two exponents run on an AMD processor.

    >>> inverse_root_of_lines(np.float32([1.0, 2.0, 3.0, 0.0, np.inf])).tolist()
    [1.0, 0.7070693969726562, 0.5773391723632812, inf, 0.0]
    """
    x = np.asarray(x, np.float32)
    bits = x.view(np.uint32).astype(np.int64)
    from_two, place = 1 - (bits >> 23 & 1), bits >> 8 & 0x7FFF
    line = place >> 10
    value = _VALUES[from_two, line] * 128 - _FALLS[from_two, line] * (place - (2 * line + 1) * 512) >> 9
    return _inverse_root(x, np.where((from_two == 0) & (bits & 0x7FFFFF == 0), 1 << 17, value), 17)


def inverse_root_of_tables(x: npt.ArrayLike) -> F32:
    """The instruction RSQRTPS of AMD's processors: 13 bits, from the exponent's last bit and 12 bits of the fraction.

    Domain: as `inverse_root_of_lines`.
    Source: docs/facts/xnnpack.md 3.8; every fraction of two exponents, run.

    >>> inverse_root_of_tables(np.float32([1.0, 2.0, 3.0, 0.0, np.inf])).tolist()
    [0.9998779296875, 0.70703125, 0.5772705078125, inf, 0.0]
    """
    x = np.asarray(x, np.float32)
    bits = x.view(np.uint32).astype(np.int64)
    place = bits >> 11 & 0xFFF
    return _inverse_root(x, np.where(bits >> 23 & 1, _EVEN.look_up(place), _ODD.look_up(place)), 13)


def inverse_of_tables(x: npt.ArrayLike) -> F32:
    """The instruction RCPPS of AMD's processors: 13 bits, from 12 bits of the fraction.

    Domain: 1 <= x <= 2, and NaN. Source: docs/facts/xnnpack.md 3.9; every fraction, run.

    >>> inverse_of_tables(np.float32([1.0, 1.5, 2.0])).tolist()
    [0.999755859375, 0.6666259765625, 0.4998779296875]
    """
    x = np.asarray(x, np.float32)
    bits = x.view(np.uint32).astype(np.int64)
    found = np.ldexp(_INVERSE.look_up(bits >> 11 & 0xFFF).astype(np.float32), -13 - (bits >> 23 == 128))
    return np.where(np.isnan(x), x, found.astype(np.float32))


def refined_inverse_root(x: npt.ArrayLike, estimate: Callable[[F32], F32]) -> F32:
    """e + (e / 2) (1 - x (e e)), e the estimate; subnormal numbers, e e among them, count as zeros. Zeros give NaN.

    >>> refined_inverse_root([2.0, 4.0, 0.0, np.inf], inverse_root_of_lines).tolist()
    [0.7071067690849304, 0.5, nan, 0.0]
    """
    x = flush(np.asarray(x, np.float32))
    with np.errstate(all="ignore"):
        e = estimate(x)
        found = e + e * np.float32(0.5) * (np.float32(1) - x * flush(e * e))
        found = np.where(x == 0, np.array([0xFFC00000], np.uint32).view(np.float32), found)
        return np.where(x == np.inf, np.float32(0), found)


def refined_root(x: npt.ArrayLike, estimate: Callable[[F32], F32]) -> F32:
    """x times `refined_inverse_root`; zeros, infinity and NaN stay.

    >>> refined_root([2.0, 4.0, 0.0, np.inf], inverse_root_of_lines).tolist()
    [1.4142135381698608, 2.0, 0.0, inf]
    """
    x = flush(np.asarray(x, np.float32))
    with np.errstate(all="ignore"):
        found = x * refined_inverse_root(x, estimate)
        return np.where((x == 0) | (x == np.inf), x, np.where(np.isnan(x), x + x, found))
