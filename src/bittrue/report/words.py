"""Numbers and names for people: the same words in every report."""

from __future__ import annotations

import math


def count(number: int) -> str:
    """An integer in groups of three.

    >>> count(401408)
    '401,408'
    """
    return f"{number:,}"


def plural(number: int, noun: str) -> str:
    """A number with its noun.

    >>> plural(1, "tensor"), plural(0, "tensor")
    ('1 tensor', '0 tensors')
    """
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def percent(part: int | float, whole: int | float = 1) -> str:
    """A share; 0 and 100 only where it is just that.

    >>> percent(0, 5), percent(5, 5), percent(80, 51200), percent(1, 10**9), percent(999999, 1000000)
    ('0 %', '100 %', '0.156 %', '< 0.001 %', '> 99.9 %')
    """
    if not whole or not part:
        return "0 %"
    if part == whole:
        return "100 %"
    share = 100 * part / whole
    if share < 0.001:
        return "< 0.001 %"
    return "> 99.9 %" if share >= 99.9 else f"{share:.3g} %"


def number(value: float | int | bool | str | None) -> str:
    """A value as it is stored, as short as it is exact enough to read.

    >>> number(3.0), number(-0.25), number(None), number(1234567), number(float("inf"))
    ('3', '−0.25', '', '1,234,567', '∞')
    """
    if value is None or isinstance(value, (bool, str)):
        return "" if value is None else str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "∞" if value > 0 else "−∞"
        if value.is_integer() and abs(value) < 1e15:
            value = int(value)
    if isinstance(value, int):
        return count(value).replace("-", "−")
    return f"{value:.6g}".replace("-", "−")


def shape(sizes: list[int]) -> str:
    """The shape of a tensor.

    >>> shape([1, 112, 112, 32]), shape([])
    ('1×112×112×32', 'scalar')
    """
    return "×".join(map(str, sizes)) or "scalar"


def index(element: list[int]) -> str:
    """Coordinates, as `bittrue explain --element` takes them.

    >>> index([0, 12, 7, 33])
    '0,12,7,33'
    """
    return ",".join(map(str, element))
