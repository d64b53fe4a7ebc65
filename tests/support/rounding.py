"""Roundings of exact numbers, for oracles on fractions."""

from __future__ import annotations

from fractions import Fraction

from bittrue.arithmetic import exact


def f32(value: Fraction | float) -> Fraction:
    """The nearest binary32 number, ties to even; OverflowError beyond the largest one."""
    return Fraction(exact.nearest_binary(Fraction(value)))
