"""Numbers as a person writes them: as many digits as a decision needs, and ties by their distance."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

HALF = Fraction(1, 2)
# Digits behind the point at least, and at most.
_LEAST, _MOST = 6, 24


def tie_distance(value: Fraction) -> Fraction:
    """How far `value` is from the nearest tie, a number whose fraction is 1/2; 0 for a tie, at most 1/2.

    >>> tie_distance(Fraction(5, 2)), tie_distance(Fraction(-9, 4)), tie_distance(Fraction(3))
    (Fraction(0, 1), Fraction(1, 4), Fraction(1, 2))
    """
    return abs(value - math.floor(value) - HALF)


def decimal(value: Fraction | float) -> str:
    """`value` cut off behind enough digits to tell it from the nearest integer and tie; ``…`` where digits are left.

    >>> decimal(Fraction(5, 2)), decimal(Fraction(1, 3)), decimal(Fraction(5, 2) - Fraction(1, 10**9)), decimal(-0.25)
    ('2.5', '0.333333…', '2.4999999989…', '-0.25')
    """
    if not isinstance(value, Fraction):
        if not math.isfinite(value):
            return str(value)
        value = Fraction(value)
    near = min((d for d in (tie_distance(value), HALF - tie_distance(value)) if d), default=HALF)
    digits = min(_MOST, max(_LEAST, 2 - math.floor(math.log10(near)) if near < 1 else _LEAST))
    scaled = abs(value) * 10**digits
    cut = int(scaled)
    whole, behind = divmod(cut, 10**digits)
    text = f"{whole:,}.{behind:0{digits}d}"
    if scaled != cut:
        text += "…"
    else:
        text = text.rstrip("0").rstrip(".")
    return f"-{text}" if value < 0 and text != "0" else text


def integer(value: int) -> str:
    """With separators between thousands."""
    return f"{value:,}"


def real(value: float | np.floating) -> str:
    """The shortest decimal that gives this number of its type back.

    >>> real(np.float32(0.1)), real(0.1), real(np.float32(2))
    ('0.1', '0.1', '2.0')
    """
    if isinstance(value, np.floating):
        return str(value)
    return repr(float(value))


def signed(value: int) -> str:
    """``+ 3`` or ``- 3``.

    >>> signed(3), signed(-3)
    ('+ 3', '- 3')
    """
    return f"- {-value:,}" if value < 0 else f"+ {value:,}"


def factor(value: int) -> str:
    """As one factor of a product: negative numbers in brackets.

    >>> factor(3), factor(-3)
    ('3', '(-3)')
    """
    return f"({value:,})" if value < 0 else f"{value:,}"


def place(index: tuple[int, ...]) -> str:
    """An element's index.

    >>> place((0, 2, 1))
    '[0, 2, 1]'
    """
    return f"[{', '.join(str(int(i)) for i in index)}]"


def nearness(value: Fraction, ties: str) -> str:
    """What to say of a rounding: whether it is a tie, and where that goes, or how far the nearest tie is.

    >>> nearness(Fraction(5, 2), "ties to even"), nearness(Fraction(9, 4), "ties up")
    ('exactly a tie: ties to even', 'ties up; the nearest tie is 0.25 away')
    """
    distance = tie_distance(value)
    return f"exactly a tie: {ties}" if not distance else f"{ties}; the nearest tie is {decimal(distance)} away"


TIES = {
    "even": "ties to even",
    "away": "ties away from zero",
    "up": "ties up",
    "down": "ties down",
    "trunc": "cut off",
}


def rounded(value: Fraction, ties: str) -> int:
    """`value` to an integer; `ties` as in `TIES`.

    >>> [rounded(Fraction(-5, 2), ties) for ties in ("even", "away", "up", "down", "trunc")]
    [-2, -3, -2, -3, -2]
    """
    if ties == "even":
        return round(value)
    if ties == "trunc":
        return math.trunc(value)
    low = math.floor(value)
    behind = value - low
    if behind != HALF:
        return low + (behind > HALF)
    return low + (ties == "up" or (ties == "away" and value > 0))
