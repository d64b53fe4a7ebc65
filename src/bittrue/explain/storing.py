"""The slot `store` on paper: zero point and clamp, from the rescaled value to the quantized value."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..arithmetic import floats
from ..errors import InternalError
from ..rules import store as rules
from .decimals import TIES, decimal, integer, nearness, real, signed
from .explanation import Line


def _clamp(value: int, low: int, high: int) -> tuple[Line, int]:
    kept = min(max(value, low), high)
    what = "inside" if kept == value else f"{integer(value)} is outside"
    return Line("clamp", integer(kept), f"{what} [{integer(low)}, {integer(high)}]"), kept


def _wrapping(bits: int, rescaled: int, zero_point: int, low: int, high: int) -> tuple[list[Line], int]:
    total = rescaled + zero_point
    moved = (total + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    # Nothing is added for a zero point of 0, so nothing wraps to 32 bits either.
    moved = total if bits == 32 and not zero_point else moved
    wraps = "" if moved == total else f"; {integer(total)} leaves {bits} bits and wraps"
    line, kept = _clamp(moved, low, high)
    return [Line("zero point", integer(moved), f"{integer(rescaled)} {signed(zero_point)}{wraps}"), line], kept


def _clamp_first(rescaled: int, zero_point: int, low: int, high: int) -> tuple[list[Line], int]:
    line, kept = _clamp(rescaled, low - zero_point, high - zero_point)
    moved = kept + zero_point
    return [
        line,
        Line("zero point", integer(moved), f"{integer(kept)} {signed(zero_point)}: added after the clamp"),
    ], moved


def _clamp_alone(rescaled: int, zero_point: int, low: int, high: int) -> tuple[list[Line], int]:
    line, kept = _clamp(rescaled, low, high)
    return [line], kept


def _saturating(rescaled: int, zero_point: int, low: int, high: int) -> tuple[list[Line], int]:
    short = min(max(rescaled, -(2**15)), 2**15 - 1)
    lines = [] if short == rescaled else [Line("as a 16-bit integer", integer(short), "saturated")]
    more, kept = _wrapping(16, short, zero_point, low, high)
    return [*lines, *more], kept


def _plus_half(rescaled: np.floating, zero_point: int, low: int, high: int) -> tuple[list[Line], int]:
    value = np.float64(rescaled) if isinstance(rescaled, int) else rescaled
    with np.errstate(all="ignore"):
        addend = type(value)(zero_point) + type(value)(0.5)
        moved = value + addend
        whole = np.floor(moved)
    kept = int(floats.truncate_to_s32(np.asarray(whole)))
    fits = bool(np.isfinite(whole)) and kept == int(whole)
    lines = [
        Line(
            "zero point",
            decimal(Fraction(float(moved))) if np.isfinite(moved) else str(moved),
            f"{real(value)} + {real(addend)}, the zero point and 1/2",
        ),
        Line("rounding", integer(kept), "floor" + ("" if fits else "; does not fit 32 bits: -2^31")),
    ]
    line, stored = _clamp(kept, low, high)
    return [*lines, line], stored


def _real(
    ties: str, rescaled: np.floating, zero_point: int, low: int, high: int, raised: bool = True
) -> tuple[list[Line], int]:
    """`raised`: whether 1/2 is added in the type of `rescaled` and the rest cut off."""
    value = np.float64(rescaled) if isinstance(rescaled, int) else rescaled
    with np.errstate(all="ignore"):
        moved = value + type(value)(zero_point)
        half = type(value)(0.5) if ties == "up" else np.copysign(type(value)(0.5), moved)
        cut = np.floor if ties == "up" else np.trunc
        whole = cut(moved + half) if raised else np.asarray(floats.round_away(moved))[()]
    kept = int(floats.truncate_to_s32(np.asarray(whole)))
    tie = nearness(Fraction(float(moved)), TIES[ties]) if np.isfinite(moved) else TIES[ties]
    how = f"{cut.__name__}({real(moved)} {'-' if half < 0 else '+'} 0.5), the sum rounded, too; " if raised else ""
    fits = bool(np.isfinite(whole)) and kept == int(whole)
    lines = [
        Line(
            "zero point",
            decimal(Fraction(float(moved))) if np.isfinite(moved) else str(moved),
            f"{real(value)} {signed(zero_point)}, a real number",
        ),
        Line("rounding", integer(kept), how + tie + ("" if fits else "; does not fit 32 bits: -2^31")),
    ]
    line, stored = _clamp(kept, low, high)
    return [*lines, line], stored


def store(rule: str, rescaled: int | np.floating, zero_point: int, low: int, high: int) -> tuple[list[Line], int]:
    """The lines from the rescaled value to the quantized value, and that.

    Raises:
        InternalError: the lines do not end at what the rule gives.
    """
    whole = rescaled if isinstance(rescaled, int) else 0
    lines, stored = {
        "zero_point_then_clamp": lambda: _wrapping(32, whole, zero_point, low, high),
        "clamp_then_zero_point": lambda: _clamp_first(whole, zero_point, low, high),
        "clamp_alone": lambda: _clamp_alone(whole, zero_point, low, high),
        "wrap_s16_then_clamp": lambda: _wrapping(16, whole, zero_point, low, high),
        "saturate_s16_then_clamp": lambda: _saturating(whole, zero_point, low, high),
        "zero_point_half_up_then_clamp": lambda: _real("up", rescaled, zero_point, low, high),  # type: ignore[arg-type]
        "zero_point_plus_half_up_then_clamp": lambda: _plus_half(rescaled, zero_point, low, high),  # type: ignore[arg-type]
        "zero_point_away_then_clamp": lambda: _real("away", rescaled, zero_point, low, high, raised=False),  # type: ignore[arg-type]
        "zero_point_half_away_then_clamp": lambda: _real("away", rescaled, zero_point, low, high),  # type: ignore[arg-type]
    }[rule]()
    with np.errstate(all="ignore"):
        expected = int(rules.RULES[rule](np.asarray(rescaled), zero_point, low, high))
    if stored != expected:
        raise InternalError("BT-EXPLAIN", f"{rule} of {rescaled} gives {expected}, its explanation {stored}")
    return lines, stored
