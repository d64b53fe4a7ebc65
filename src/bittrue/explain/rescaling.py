"""The slot `rescale` on paper: how each of its rules turns an accumulator into a rescaled value, rounding by rounding.

Every narrator shows the intermediate values that the rule itself has; `rescale` compares the last one with what the
rule gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from ..arithmetic import fixed_point, floats
from ..errors import InternalError
from ..rules import rescale as rules
from .decimals import TIES, decimal, factor, integer, nearness, real, rounded
from .explanation import Line

# One value per name: prepared arrays of one channel.
Values = Mapping[str, Any]


@dataclass
class Rescaled:
    """An accumulator's way to a rescaled value.

    Attributes:
        value: the rescaled value, before the zero point; real where the rule leaves rounding to the slot `store`.
        exact: accumulator times the multiplier that the plan holds, without any rounding.
        lines: the way.
        numbers: multiplier, exponent and real multiplier, as far as the rule has them.
    """

    value: int | np.floating
    exact: Fraction | None
    lines: list[Line]
    numbers: dict[str, int | float] = field(default_factory=dict)


# (accumulator, values) to the lines behind the exact product, and the rescaled value.
Told = tuple[list[Line], int | np.floating]
Narrator = Callable[[int, Values], Told]


def _round(label: str, value: Fraction, ties: str, formula: str) -> tuple[Line, int]:
    result = rounded(value, ties)
    return Line(label, integer(result), f"{formula} = {decimal(value)}; {nearness(value, TIES[ties])}"), result


def _shifted(acc: int, exponent: int) -> tuple[list[Line], int]:
    """The accumulator after the left shift of a multiplier of 1 or more, in 32 bits."""
    if exponent <= 0:
        return [], acc
    shifted = int(fixed_point.wrap_s32(np.left_shift(np.int64(acc), min(exponent, 32))))
    wraps = "" if shifted == acc << exponent else "; the product leaves 32 bits and wraps"
    return [Line("left shift", integer(shifted), f"{factor(acc)} * 2^{exponent}, in 32 bits{wraps}")], shifted


def _first_high(acc: int, values: Values) -> tuple[list[Line], int]:
    multiplier, exponent = int(values["multiplier"]), int(values["exponent"])
    lines, shifted = _shifted(acc, exponent)
    product = Fraction(shifted * multiplier, 2**31)
    line, _ = _round("first rounding", product, "up", f"{factor(shifted)} * {factor(multiplier)} / 2^31")
    high = int(fixed_point.doubling_high_multiply_up(shifted, multiplier))
    return [*lines, Line(line.label, integer(high), line.remark)], high


def _two_steps(ties: str, divide: Callable[..., np.ndarray]) -> Narrator:
    def narrate(acc: int, values: Values) -> tuple[list[Line], int]:
        lines, high = _first_high(acc, values)
        right = max(-int(values["exponent"]), 0)
        result = int(divide(high, right))
        if not right:
            return [
                *lines,
                Line("second rounding", integer(result), "nothing to divide by: the exponent is not < 0"),
            ], high
        line, _ = _round("second rounding", Fraction(high, 2**right), ties, f"{factor(high)} / 2^{right}")
        return [*lines, Line(line.label, integer(result), line.remark)], result

    return narrate


def _one_step(acc: int, values: Values) -> tuple[list[Line], int]:
    multiplier, right = int(values["multiplier"]), 31 - int(values["exponent"])
    formula = f"{factor(acc)} * {factor(multiplier)} / 2^{right}"
    line, result = _round("one rounding", Fraction(acc * multiplier, 2 ** max(right, 1)), "up", formula)
    return [line], result


def _one_step_shifted(acc: int, values: Values) -> tuple[list[Line], int]:
    exponent = int(values["exponent"])
    lines, shifted = _shifted(acc, exponent + 1)
    last, result = _one_step(shifted, {**values, "exponent": min(exponent, -1)})
    return [*lines, *last], result


def _whole(ties: str) -> Narrator:
    """One rounding of a 64-bit product, kept in 32 bits."""

    def narrate(acc: int, values: Values) -> tuple[list[Line], int]:
        multiplier, exponent = int(values["multiplier"]), int(values["exponent"])
        left, right = max(exponent, 0), 31 + max(-exponent, 0)
        product = acc * 2**left * multiplier
        formula = f"{factor(acc)} * {f'2^{left} * ' if left else ''}{factor(multiplier)} / 2^{right}"
        line, result = _round("one rounding", Fraction(product, 2**right), ties, formula)
        # The sum with half of the divisor may leave 64 bits: the rule itself says what remains.
        if abs(product) < 2**62 and _wrapped(result) == result:
            return [line], result
        return _overflowing(line, acc, values, ties)

    return narrate


def _overflowing(line: Line, acc: int, values: Values, ties: str) -> tuple[list[Line], int]:
    name = "q31_one_step_up_wrap" if ties == "up" else "q31_one_step_away"
    kept = int(rules.RULES[name].apply(np.int64(acc), values))  # type: ignore[arg-type]
    return [
        line,
        Line("kept in 32 bits", integer(kept), "two's complement: the product modulo 2^64, then modulo 2^32"),
    ], kept


def _wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def _shift_or_one_step(acc: int, values: Values) -> Told:
    if int(values["multiplier"]) != 2**30:
        return _whole("up")(acc, values)
    power = int(values["exponent"]) - 1
    if power >= 0:
        result = _wrapped(_wrapped(acc) << power)
        return [Line("left shift", integer(result), f"a power of two: {factor(acc)} * 2^{power}, in 32 bits")], result
    right = -power
    total = _wrapped(acc + 2 ** (right - 1))
    wraps = "" if total == acc + 2 ** (right - 1) else "; the sum leaves 32 bits and wraps"
    line, _ = _round("one rounding", Fraction(acc, 2**right), "up", f"a power of two: {factor(acc)} / 2^{right}")
    result = total >> right
    return [Line(line.label, integer(result), line.remark + wraps)], result


def _q15(ties: str) -> Narrator:
    def narrate(acc: int, values: Values) -> tuple[list[Line], int]:
        multiplier, right = int(values["multiplier"]), 15 - int(values["exponent"])
        formula = f"{factor(acc)} * {factor(multiplier)} / 2^{right}"
        line, result = _round("one rounding", Fraction(acc * multiplier, 2**right), ties, formula)
        kept = _wrapped(result) if ties == "up" else result
        if kept == result:
            return [line], result
        return [line, Line("kept in 32 bits", integer(kept), "two's complement, modulo 2^32")], kept

    return narrate


def _q8(acc: int, values: Values) -> tuple[list[Line], int]:
    multiplier = int(values["factor"])
    formula = f"{factor(acc)} * {factor(multiplier)} / 2^8"
    line, result = _round("one rounding", Fraction(acc * multiplier, 256), "up", formula)
    return [line], result


def _floor_plus_one(acc: int, values: Values) -> tuple[list[Line], int]:
    multiplier = int(values["multiplier"])
    right = min(max(30 - int(values["exponent"]), 0), 62)
    exact = Fraction(acc * multiplier, 2**right)
    floor = math.floor(exact)
    return [
        Line("floor", integer(floor), f"{factor(acc)} * {factor(multiplier)} / 2^{right} = {decimal(exact)}"),
        Line("plus one", integer(floor + 1), "as the document prints it"),
    ], floor + 1


def _to_s32(kind: str) -> Callable[[np.floating], tuple[int, str]]:
    """A whole real number as a 32-bit integer, and what happens to those that do not fit."""
    convert = floats.saturate_to_s32 if kind == "saturate" else floats.truncate_to_s32

    def one(value: np.floating) -> tuple[int, str]:
        kept = int(convert(np.asarray(value)))
        fits = bool(np.isfinite(value)) and kept == int(value)
        return kept, "" if fits else (
            "does not fit 32 bits: saturated" if kind == "saturate" else "does not fit 32 bits"
        )

    return one


def _convert(lines: list[Line], whole: np.floating, kind: str) -> tuple[list[Line], int]:
    kept, remark = _to_s32(kind)(whole)
    return ([*lines, Line("as a 32-bit integer", integer(kept), remark)] if remark else lines), kept


def _real_rounding(label: str, product: np.floating, ties: str) -> tuple[Line, np.floating]:
    """One rounding of a real number to a whole one, kept as a real number."""
    whole = type(product)(np.rint(product) if ties == "even" else floats.round_away(product))
    if not np.isfinite(product):
        return Line(label, str(whole), TIES[ties]), whole
    return Line(label, integer(int(whole)), f"{nearness(Fraction(float(product)), TIES[ties])}"), whole


def _as_real(acc: int, kind: type[np.floating]) -> tuple[list[Line], np.floating]:
    moved = kind(acc)
    if int(moved) == acc:
        return [], moved
    name = "binary32" if kind is np.float32 else "binary64"
    return [
        Line(f"accumulator as {name}", integer(int(moved)), "the accumulator has more bits: rounded, ties to even")
    ], moved


def _product(acc: int, scale: Any, kind: type[np.floating]) -> tuple[list[Line], np.floating]:
    """The accumulator and the factor in a type, and their product, each rounded to it."""
    lines, moved = _as_real(acc, kind)
    name = "binary32" if kind is np.float32 else "binary64"
    with np.errstate(all="ignore"):
        product = moved * kind(scale)
    return [
        *lines,
        Line(f"product in {name}", _shown(product), f"{real(moved)} * {real(kind(scale))}, rounded to {name}"),
    ], product


def _shown(value: np.floating) -> str:
    return decimal(Fraction(float(value))) if np.isfinite(value) else str(value)


def _multiply(kind: type[np.floating], ties: str, keep: str) -> Narrator:
    def narrate(acc: int, values: Values) -> tuple[list[Line], int]:
        lines, product = _product(acc, values["factor"], kind)
        line, whole = _real_rounding("rounding", product, ties)
        if keep == "wide":
            return [*lines, line], int(whole)
        return _convert([*lines, line], whole, keep)

    return narrate


def _multiply_alone(kind: type[np.floating]) -> Narrator:
    def narrate(acc: int, values: Values) -> tuple[list[Line], np.floating]:
        return _product(acc, values["factor"], kind)

    return narrate


def _add_multiply(twice: bool) -> Narrator:
    def narrate(acc: int, values: Values) -> tuple[list[Line], int]:
        lines, moved = _as_real(acc, np.float32)
        addend, scale = np.float32(values.get("addend", 0)), np.float32(values["factor"])
        with np.errstate(all="ignore"):
            total = moved + addend
            product = total * scale
        lines = [
            *lines,
            Line("plus addend", real(total), f"{real(moved)} + {real(addend)}, rounded to binary32"),
            Line("product in binary32", _shown(product), f"{real(total)} * {real(scale)}, rounded to binary32"),
        ]
        if twice:
            second = np.float32(values.get("second", 1))
            with np.errstate(all="ignore"):
                again = product * second
            lines.append(
                Line("second product", _shown(again), f"{real(product)} * {real(second)}, rounded to binary32")
            )
            product = again
        line, whole = _real_rounding("rounding", product, "even")
        return _convert([*lines, line], whole, "saturate")

    return narrate


def _two_step_real(kind: type[np.floating]) -> Narrator:
    def narrate(acc: int, values: Values) -> tuple[list[Line], int]:
        fraction, exponent = np.frexp(kind(values["factor"]))
        lines, product = _product(acc, fraction, kind)
        line, whole = _real_rounding("first rounding", product, "away")
        high = np.float32(whole)
        scaled = np.ldexp(high, exponent)
        second, result = _real_rounding("second rounding", scaled, "away")
        divided = f"{integer(int(high))} * 2^{int(exponent)} = {_shown(scaled)}; "
        cut = [] if float(high) == float(whole) else [Line("as binary32", real(high), "rounded, ties to even")]
        return [*lines, line, *cut, Line(second.label, second.value, divided + second.remark)], int(result)

    return narrate


def _binary64_then_binary32(acc: int, values: Values) -> tuple[list[Line], int]:
    lines, product = _product(acc, values["factor"], np.float64)
    narrow = np.float32(product)
    line, whole = _real_rounding("rounding", narrow, "away")
    return [*lines, Line("as binary32", _shown(narrow), "rounded, ties to even"), line], int(whole)


NARRATORS: dict[str, Narrator] = {
    "q31_two_step_up_away": _two_steps("away", fixed_point.divide_by_power_of_two_away),
    "q31_two_step_up_up": _two_steps("up", fixed_point.divide_by_power_of_two_up),
    "q31_one_step_up": _one_step,
    "q31_one_step_up_shift_wraps": _one_step_shifted,
    "q31_one_step_up_wrap": _whole("up"),
    "q31_shift_or_one_step_up": _shift_or_one_step,
    "q31_one_step_away": _whole("away"),
    "q15_one_step_up": _q15("up"),
    "q15_one_step_even": _q15("even"),
    "q8_one_step_up": _q8,
    "q30_floor_plus_one": _floor_plus_one,
    "binary64_multiply_away": _multiply(np.float64, "away", "truncate"),
    "binary64_multiply_even": _multiply(np.float64, "even", "wide"),
    "binary64_multiply": _multiply_alone(np.float64),
    "binary64_two_step_away_away": _two_step_real(np.float64),
    "binary64_product_binary32_away": _binary64_then_binary32,
    "binary32_multiply_even": _multiply(np.float32, "even", "saturate"),
    "binary32_multiply_even_overflow_lowest": _multiply(np.float32, "even", "truncate"),
    "binary32_multiply_even_wide": _multiply(np.float32, "even", "wide"),
    "binary32_multiply": _multiply_alone(np.float32),
    "binary32_two_step_away_away": _two_step_real(np.float32),
    "binary32_add_multiply_even": _add_multiply(False),
    "binary32_add_multiply_twice_even": _add_multiply(True),
}


def multiplier_of(values: Values, rule: str = "") -> Fraction | None:
    """The multiplier that a plan holds for one channel, exactly; None where it is not finite or there is none.

    >>> multiplier_of({"multiplier": 2**30, "exponent": -1}), multiplier_of({"factor": 0.25})
    (Fraction(1, 4), Fraction(1, 4))
    """
    if "multiplier" in values and "exponent" in values:
        bits = 15 if rule.startswith("q15") else 31
        return int(values["multiplier"]) * Fraction(2) ** (int(values["exponent"]) - bits)
    if "factor" not in values or not np.isfinite(values["factor"]):
        return None
    scale = Fraction(float(values["factor"]))
    if rule == "q8_one_step_up":
        return scale / 256
    return scale * Fraction(float(values["second"])) if "second" in values and rule.endswith("twice_even") else scale


def _encoded(values: Values, rule: str) -> list[Line]:
    if "multiplier" not in values:
        return []
    bits = 15 if rule.startswith("q15") else 31
    multiplier, exponent = int(values["multiplier"]), int(values["exponent"])
    scale = multiplier * 2.0 ** (exponent - bits)
    remark = f"the same as multiplier * 2^(exponent - {bits}) = {scale!r}"
    return [Line("multiplier, exponent", f"{integer(multiplier)}, {exponent}", remark)]


def rescale(rule: str, acc: int, values: Values, quantity: str = "accumulator") -> Rescaled:
    """How `rule` rescales `acc` with the prepared `values` of one channel.

    Raises:
        InternalError: the lines do not end at what the rule gives.
    """
    found = rules.RULES[rule]
    with np.errstate(all="ignore"):
        expected = np.asarray(found.apply(np.asarray(acc, np.int64), {k: np.asarray(v) for k, v in values.items()}))[()]
    scale = multiplier_of(values, rule)
    exact, lines = None, _encoded(values, rule)
    if scale is not None:
        addend = (
            Fraction(float(np.float32(values["addend"]))) if "addend" in values and "addend" in found.operands else 0
        )
        exact = (acc + addend) * scale
        lines.append(Line("exact product", decimal(exact), f"{quantity} * multiplier: what real numbers would give"))
    more, value = NARRATORS[rule](acc, values)
    same = value == expected or (not found.integral and np.isnan(expected) and np.isnan(value))
    if not same:
        raise InternalError("BT-EXPLAIN", f"{rule} of {acc} gives {expected}, its explanation {value}")
    numbers: dict[str, int | float] = {}
    if "multiplier" in values:
        numbers |= {"multiplier": int(values["multiplier"]), "exponent": int(values["exponent"])}
    if scale is not None:
        numbers["real_multiplier"] = float(scale)
    return Rescaled(value if not isinstance(value, np.integer) else int(value), exact, lines + more, numbers)
