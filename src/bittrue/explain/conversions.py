"""Between real numbers and quantized values, on paper: quantize, dequantize and their forms with operands."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..operators.core.granularity import split_pairs, spread
from ..rules import formula, narrow, quotient, to_integer
from ..rules import quantize as rules
from .decimals import TIES, decimal, integer, nearness, place, real, rounded, signed
from .elementwise import rules_here
from .site import Number, Site, Work


def _exact(work: Work, x: np.floating, scale: np.floating, zero_point: int) -> Fraction | None:
    """x / scale in real numbers."""
    if not np.isfinite(x) or not np.isfinite(scale) or not scale:
        return None
    exact = Fraction(float(x)) / Fraction(float(scale))
    work.add("exact quotient", decimal(exact), f"{real(x)} / {real(scale)}; {nearness(exact, 'for ties see the rule')}")
    work.exact(exact)
    work.numbers["zero_point"] = zero_point
    return exact


def _quotient(rule: str, x: np.floating, scale: np.floating) -> tuple[np.floating, str, str] | None:
    """The number that a rule rounds, how it comes about, and where ties go; None for rules that round a sum."""
    x32, s32 = np.float32(x), np.float32(scale)
    with np.errstate(all="ignore"):
        if rule == "binary64_divide_away":
            return np.float64(x32) / np.float64(s32), "the quotient in binary64", "away"
        if rule in ("binary32_divide_away", "binary32_divide_even"):
            return x32 / s32, "the quotient in binary32", rule.rpartition("_")[2]
        if rule in ("binary32_reciprocal_even", "binary32_reciprocal_even_wrap"):
            inverse = np.float32(1.0 / np.float64(s32)) if rule.endswith("wrap") else np.float32(1) / s32
            return x32 * inverse, f"{real(x32)} * {real(inverse)} (the scale's inverse), in binary32", "even"
    return None


def _parameters(site: Site) -> tuple[np.floating, np.integer]:
    """Scale and zero point of the element."""
    scale, zero_point = (np.broadcast_to(site.step.arrays[n], site.shape) for n in ("scales", "zero_points"))
    return scale[site.element], zero_point[site.element]


def quantize(site: Site, work: Work) -> Number | None:
    """quantize of a real number."""
    site = rules_here(site)
    step = site.step
    if "scales" not in step.arrays or "quantize" not in step.rules:
        return None
    x = site.array(0)[site.element]
    scale, zero_point = _parameters(site)
    work.add("input", real(x), f"'{site.name(0)}' {place(site.element)}")
    _exact(work, x, scale, int(zero_point))
    rule, low, high = step.rules["quantize"], int(step["low"]), int(step["high"])
    found = _quotient(rule, x, scale)
    if found is not None and np.isfinite(found[0]):
        value, how, ties = found
        work.add("quotient", decimal(Fraction(float(value))), how)
        work.add("rounding", integer(_rounded(value, ties)), nearness(Fraction(float(value)), TIES[ties]))
    stored = int(rules.QUANTIZE[rule](np.asarray(x), np.asarray(scale), np.asarray(zero_point), low, high))
    work.add(
        "zero point, clamp",
        integer(stored),
        f"{signed(int(zero_point))}, into [{low}, {high}]: {formula('quantize', rule)}",
    )
    work.numbers |= {"low": low, "high": high}
    return stored


def _rounded(value: np.floating, ties: str) -> int:
    return rounded(Fraction(float(value)), ties)


def dequantize(site: Site, work: Work) -> Number | None:
    """dequantize of an integer."""
    site = rules_here(site)
    step = site.step
    if "scales" not in step.arrays or "narrow" in step.rules:
        return None
    q = int(site.array(0)[site.element])
    scale, zero_point = _parameters(site)
    result = rules.DEQUANTIZE[step.rules["dequantize"]](np.asarray(q), np.asarray(scale), np.asarray(zero_point))
    return _made_real(site, work, q, scale, int(zero_point), result)


def _made_real(site: Site, work: Work, q: Any, scale: np.floating, zero_point: int, result: Any) -> float:
    rule = site.step.rules["dequantize"]
    work.add("input", str(q), f"'{site.name(0)}' {place(site.element)}")
    work.add("less zero point", str(q - zero_point), f"{q} {signed(-zero_point)}")
    if np.isfinite(float(scale)) and np.isfinite(float(q)):
        exact = Fraction(float(scale)) * Fraction(q - zero_point)
        work.add("exact product", decimal(exact), f"times the scale {real(scale)}")
    value = np.float32(result)
    work.add("rounded", real(value), f"{rule}: {formula('dequantize', rule)}")
    return float(value)


def quantize_by_operands(site: Site, work: Work) -> Number | None:
    """quantize to integers, the scale being an operand that is known at plan time."""
    step = site.step
    if "to_integer" not in step.rules or step["late"] or "low" not in step.parameters:
        return None
    array = site.array(0)
    x = np.float64(array[site.element])
    axis, block = step["axis"], step["block_size"]
    scale, zero_point = (
        np.broadcast_to(spread(step.arrays[name], array.shape, axis, block), array.shape)[site.element]
        for name in ("scales", "zero_points")
    )
    work.add("input", real(array[site.element]), f"'{site.name(0)}' {place(site.element)}")
    _exact(work, x, scale, int(zero_point))
    slot = "to_integer"
    if "to_integer_tail" in step.rules and site.flat in set(np.asarray(split_pairs(array.shape, axis, block)).tolist()):
        slot = "to_integer_tail"
    division = quotient.RULES[step.rules["quotient"]]
    value = division.divide(np.asarray(x), np.asarray(np.float64(scale)))
    finite = bool(np.isfinite(value))
    ties = "away" if step.rules[slot] == "away_sum_clamp" else "even"
    near = nearness(Fraction(float(value)), TIES[ties]) if finite else ""
    work.add("quotient", decimal(Fraction(float(value))) if finite else str(value), f"{division.formula}; {near}")
    low, high = int(step["low"]), int(step["high"])
    finish = to_integer.RULES[step.rules[slot]]
    stored = int(finish(np.asarray(value), np.asarray(zero_point).astype(np.int64), low, high))
    remark = f"{signed(int(zero_point))}, into [{low}, {high}]: {formula('to_integer', step.rules[slot])}"
    work.add("rounding, zero point, clamp", integer(stored), remark)
    work.numbers |= {"low": low, "high": high}
    return stored


def dequantize_by_operands(site: Site, work: Work) -> Number | None:
    """dequantize of integers to binary32, the scale being an operand that is known at plan time."""
    step = site.step
    array = site.array(0)
    if "narrow" not in step.rules or step["late"] or step["dtype"] != "f32" or array.dtype.kind not in "iu":
        return None
    axis, block = step["axis"], step["block_size"]
    scale, zero_point = (
        np.broadcast_to(spread(step.arrays[name], array.shape, axis, block), array.shape)[site.element]
        for name in ("scales", "zero_points")
    )
    q = int(array[site.element])
    real_product = rules.DEQUANTIZE[step.rules["dequantize"]](np.asarray(q), np.asarray(scale), np.asarray(zero_point))
    quantized = narrow.RULES[step.rules["narrow"]](np.asarray(real_product), "f32")
    result = np.asarray(quantized).astype(np.uint32).view(np.float32)
    return _made_real(site, work, q, scale, int(zero_point), result)
