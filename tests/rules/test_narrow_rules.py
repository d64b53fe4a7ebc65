"""Rules of operators whose scales are operands, against Fractions and integers that know nothing of ours."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise

import ml_dtypes
import numpy as np
import pytest

from bittrue.arithmetic.narrow_float import FORMATS, nearest
from bittrue.rules import dynamic_range, narrow, quantize, quotient, rules, to_integer, zero_points
from support.narrow_oracle import SHAPES, code_of, numbers, sign_bit, to_precision

F32 = np.float32
# NaN without sign: quiet, and of ones alone
QUIET = {"f16": 0x7E00, "bf16": 0x7FC0, "f8e5m2": 0x7E, "f8e4m3fn": 0x7F, "f8e4m3fnuz": 0x80, "f8e5m2fnuz": 0x80}
ONES = {**QUIET, "f8e5m2": 0x7F}
ARRAYS = {
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "f6e2m3": ml_dtypes.float6_e2m3fn,
    "f6e3m2": ml_dtypes.float6_e3m2fn,
    "f4e2m1": ml_dtypes.float4_e2m1fn,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
}
EIGHT = [name for name in SHAPES if name.startswith("f8")]


def critical(name: str) -> np.ndarray:
    """Numbers of the format, middles of neighbours, numbers beyond, and what lies beside all of these in binary32."""
    grid = numbers(name)
    if len(grid) > 300:
        grid = [*grid[:40], *grid[1000 : len(grid) : 997], *grid[-40:]]
    middles = [(a + b) / 2 for a, b in pairwise(grid)]
    step = numbers(name)[-1] - numbers(name)[-2]
    beyond = [numbers(name)[-1] + step * Fraction(k, 4) for k in range(1, 14)]
    with np.errstate(over="ignore"):
        exact = np.array([float(v) for v in (*grid, *middles, *beyond)], np.float64).astype(F32)
        around = [np.nextafter(exact, F32(np.inf)), np.nextafter(exact, F32(-np.inf))]
    values = np.concatenate([exact, *around, F32([1e-40, 1e30, np.inf, np.nan])])
    return np.concatenate([values, -values])


def expected(rule: str, name: str, value: float) -> int:
    """The quantized value that a rule gives, from the table of the specification."""
    kind, sign = SHAPES[name][3], sign_bit(name)
    negative = math.copysign(1, value) < 0
    largest = len(numbers(name)) - 1
    missing = (ONES if "ones" in rule or "carry" in rule else QUIET).get(name, sign)
    if math.isnan(value):
        code = missing
    else:
        found = None if math.isinf(value) else code_of(name, Fraction(value))
        if found is not None:
            code = found
        elif "saturate" in rule or kind == "none":
            code = largest
        else:
            code = largest + 1 if kind == "both" else missing
            if rule == "even_overflow_by_carry" and name == "f8e5m2" and abs(value) < 65536:
                code = 0x7F
            if rule == "even_overflow_by_carry" and name == "f8e4m3fn" and 480 <= abs(value) < 496:
                code = 0x7E
    if code >= sign or (kind == "negative zero" and code == 0):
        return code
    return code | sign if negative else code


@pytest.mark.parametrize("rule", narrow.RULES)
@pytest.mark.parametrize("name", SHAPES)
def test_narrow_rules_against_fractions(rule: str, name: str) -> None:
    if name not in EIGHT and rule not in ("even_overflow", "even_saturate"):
        return
    values = critical(name)
    found = narrow.RULES[rule](values, name)
    for value, code in zip(values, found, strict=True):
        assert int(code) == expected(rule, name, float(value)), (value, hex(int(code)))


@pytest.mark.parametrize("name", SHAPES)
def test_decoding_is_what_arrays_mean(name: str) -> None:
    grid = numbers(name)
    codes = np.arange(len(grid)).astype(np.uint16 if sign_bit(name) > 128 else np.uint8)
    assert [Fraction(float(v)) for v in codes.view(ARRAYS[name]).astype(np.float64)] == grid
    assert Fraction(FORMATS[name].maximum) == grid[-1]


def test_narrow_rules_to_binary32_and_binary16() -> None:
    x = np.array([65519.999, 65520.0, 1e39, -1e39, np.nan, 1 + 2**-24, 1 + 2**-24 + 2**-50])
    with np.errstate(over="ignore"):
        assert narrow.even_overflow(x, "f32").view(F32).tobytes() == x.astype(F32).tobytes()
        assert narrow.even_overflow(x, "f16").view(np.float16).tobytes() == x.astype(np.float16).tobytes()
    largest = float(np.finfo(F32).max)
    assert narrow.even_saturate(x[2:4], "f32").view(F32).tolist() == [largest, -largest]
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    assert (
        nearest(half.astype(np.float64), FORMATS["f16"]).astype(np.float16)[:31745].tobytes() == half[:31745].tobytes()
    )


def apart(slot: str, results: Callable[[str], object]) -> None:
    for one, other in combinations(rules(slot), 2):
        assert results(one) != results(other), (slot, one, other)


def test_narrow_rules_are_told_apart() -> None:
    def results(name: str) -> list[object]:
        x = F32([490, 500, 63000, np.nan])
        return [narrow.RULES[name](x, kind).tolist() for kind in ("f8e4m3fn", "f8e5m2")]

    apart("narrow", results)


@pytest.mark.parametrize("name", quotient.RULES)
def test_quotients_against_fractions(name: str) -> None:
    precision = {"binary16": "f16", "binary32": "f32", "binary64": "f64", "brain16": "bf16"}[name]
    rng = np.random.default_rng(3)
    x = np.concatenate([(rng.standard_normal(500) * 100).astype(F32), rng.integers(-(2**31), 2**31, 200)]).astype(float)
    scale = np.concatenate([np.exp2(rng.uniform(-9, 5, 600)).astype(F32), rng.integers(1, 2**31, 100)]).astype(float)
    found = quotient.RULES[name].divide(x, scale)
    moved = quotient.RULES[name].add(found, np.full(found.shape, 1.5))
    for a, b, result, sum_ in zip(x, scale, found, moved, strict=True):
        operands = [to_precision(Fraction(v), precision) for v in (a, b)]
        if None in operands:
            assert not np.isfinite(result) or result == 0
            continue
        exact = to_precision(operands[0] / operands[1], precision)
        if exact is None:
            assert np.isinf(result)
        else:
            assert Fraction(float(result)) == exact, (a, b)
            assert Fraction(float(sum_)) == to_precision(exact + Fraction(3, 2), precision)


def test_quotients_of_zeros_and_infinities() -> None:
    x, scale = np.array([0.0, np.inf, np.nan, 1.0, -1.0, -0.0]), np.array([0.0, np.inf, 1.0, 0.0, 0.0, 2.0])
    for name, rule in quotient.RULES.items():
        result = rule.divide(x, scale)
        assert np.isnan(result[:3]).all(), name
        assert np.signbit(result).tolist() == [True, True, False, False, True, True], name
        assert result[3:5].tolist() == [np.inf, -np.inf]
        two = rule.divide(np.array([np.nan, -np.nan]), np.array([-np.nan, np.nan]))
        assert np.signbit(two).tolist() == [False, True]


def test_quotient_rules_are_told_apart() -> None:
    x, scale = np.array([1.0, 300.7]), np.array([3.0, 0.1])
    apart("quotient", lambda name: quotient.RULES[name].divide(x, scale).astype(float).tolist())


@pytest.mark.parametrize(("low", "high"), [(-128, 127), (0, 255), (0, 65535), (-32768, 32767), (-8, 7), (0, 3)])
def test_integers_of_quotients_against_fractions(low: int, high: int) -> None:
    wholes = np.array([*range(low - 3, low + 4), *range(-3, 4), *range(high - 3, high + 4)], F32)
    ties = (wholes[:, None] + F32([0, 0.5])).reshape(-1)
    values = np.concatenate([ties, np.nextafter(ties, F32(np.inf)), np.nextafter(ties, F32(-np.inf))])
    values = np.concatenate([values, F32([2.0**31, -(2.0**31), 2147483520, 3e38, np.inf, -np.inf, np.nan])])
    for zero_point in {low, 0, high, (low + high) // 2}:
        points = np.int64(zero_point)
        clamped = to_integer.clamp_even(values, points, low, high)
        wrapped = to_integer.even_wrap(values, points, low, high)
        for value, one, other in zip(values, clamped, wrapped, strict=True):
            if np.isnan(value):
                whole, register = low - zero_point, -(2**31)
            elif np.isinf(value):
                whole, register = (2**40 if value > 0 else -(2**40)), -(2**31)
            else:
                whole = round(Fraction(float(value)))
                register = whole if -(2**31) <= whole < 2**31 else -(2**31)
            assert int(one) == min(max(whole + zero_point, low), high)
            total = (register + zero_point + 2**31) % 2**32 - 2**31
            assert int(other) == min(max(total, low), high)


def test_to_integer_rules_are_told_apart() -> None:
    apart("to_integer", lambda name: to_integer.RULES[name](F32([np.inf, 0.5]), np.int64(0), -128, 127).tolist())


def test_products_against_fractions() -> None:
    rng = np.random.default_rng(11)
    q = np.concatenate(
        [rng.integers(-(2**31), 2**31, 300), rng.integers(-(2**25), 2**25, 300), rng.integers(-9, 9, 50)]
    )
    zero_point = np.concatenate([np.zeros(300), rng.integers(-128, 128, 350)]).astype(np.int64)
    scale = np.exp2(rng.uniform(-30, 10, q.size)).astype(F32)
    two, odd = (quantize.DEQUANTIZE[name](q, scale, zero_point) for name in ("binary32_multiply", "exact_multiply_odd"))
    differ = 0
    for a, s, z, double, exact in zip(q, scale, zero_point, two, odd, strict=True):
        difference, step = Fraction(int(a) - int(z)), Fraction(float(s))
        first = to_precision(difference, "f32")
        assert Fraction(float(double)) == to_precision(first * step, "f32")
        for precision in ("f32", "f16", "bf16"):
            wanted = to_precision(difference * step, precision)
            code = narrow.even_overflow(np.array([exact]), precision)
            found = code.view({"f32": F32, **ARRAYS}[precision]).astype(np.float64)[0]
            assert (np.isinf(found) and wanted is None) or Fraction(found) == wanted
        differ += float(double) != float(F32(exact))
    assert differ > 10
    wrapped = quantize.binary32_multiply(np.int32([-(2**31)]), F32([1]), np.int64([1]))
    assert wrapped.tolist() == [2.0**31]


def test_products_of_zeros_and_infinities() -> None:
    for name in ("binary32_multiply", "exact_multiply_odd"):
        rule = quantize.DEQUANTIZE[name]
        result = rule(np.array([0, -1, 1, 5, 0]), F32([np.inf, np.inf, np.inf, np.nan, -2]), np.int64(0))
        assert np.isnan(result).tolist() == [True, False, False, True, False]
        assert np.signbit(result).tolist() == [True, True, False, False, True]
        infinite = rule(np.array([np.inf, -np.inf, np.inf, -np.nan]), F32([2, 2, 0, 1]), np.int64(0))
        assert infinite[:2].tolist() == [np.inf, -np.inf]
        assert np.isnan(infinite[2:]).all()
        assert np.signbit(infinite[2:]).all()
        two = rule(np.array([np.nan, -np.nan]), F32([-np.nan, np.nan]), np.int64(0))
        assert np.signbit(two).tolist() == [False, True]


def lanes(x: list[float], larger: bool) -> float:
    """Vectors of 8 one number at a time; a register takes what comes unless it holds more (or less)."""

    def pick(old: float, new: float) -> float:
        return old if (old > new if larger else old < new) else new

    start = -float(np.finfo(F32).max) if larger else float(np.finfo(F32).max)
    result, done = start, 0
    if len(x) >= 8:
        registers = [[start] * 8 for _ in range(4)]
        while len(x) - done >= 32:
            for number in range(32):
                lane = registers[number // 8]
                lane[number % 8] = pick(lane[number % 8], x[done + number])
            done += 32
        if done:
            front = [pick(a, b) for a, b in zip(registers[0], registers[1], strict=True)]
            back = [pick(a, b) for a, b in zip(registers[2], registers[3], strict=True)]
            registers[0] = [pick(a, b) for a, b in zip(front, back, strict=True)]
        while len(x) - done >= 8:
            registers[0] = [pick(a, b) for a, b in zip(registers[0], x[done : done + 8], strict=True)]
            done += 8
        row = registers[0]
        while len(row) > 1:
            row = [pick(a, b) for a, b in zip(row[: len(row) // 2], row[len(row) // 2 :], strict=True)]
        result = row[0]
    for value in x[done:]:
        result = value if (value > result if larger else value < result) else result
    return result


def test_dynamic_ranges_against_fractions_and_lanes() -> None:
    rng = np.random.default_rng(2)
    for number in range(400):
        size = int(rng.integers(1, 120))
        x = (rng.standard_normal(size) * np.exp2(rng.integers(-20, 20))).astype(F32)
        if number % 2:
            x[rng.integers(0, size, rng.integers(1, 4))] = np.nan
        scale, zero_point = dynamic_range.binary32_over_255_by_eights(x)
        low, high = (lanes([float(v) for v in x], larger) for larger in (False, True))
        low, high = (0.0 if low > 0 else low), (0.0 if high < 0 else high)
        if math.isnan(low) or math.isnan(high):
            assert np.isnan(scale)
            assert zero_point == 255
            continue
        width = to_precision(Fraction(high) - Fraction(low), "f32")
        step = to_precision(width / 255, "f32") if width else Fraction(1)
        assert Fraction(float(scale)) == step
        point = to_precision(-to_precision(Fraction(low) / step, "f32"), "f32")
        assert zero_point == round(min(max(point, Fraction(0)), Fraction(255)))
        if not number % 2 and width:
            assert dynamic_range.binary32_over_255(x) == (scale, zero_point)


def test_dynamic_ranges_without_meaning() -> None:
    by_eights = dynamic_range.binary32_over_255_by_eights
    assert by_eights(np.zeros(5, F32)) == (1, 0) == by_eights(np.zeros(0, F32))
    assert by_eights(F32([1e-45, 0])) == (0, 255)
    for x in ([0, 0], [], [1, np.nan], [np.inf], [3e38, -3e38], [1e-45]):
        with pytest.raises(OverflowError):
            dynamic_range.binary32_over_255(F32(x))


def test_dynamic_range_rules_are_told_apart() -> None:
    x = F32([np.nan, -1, 2, 3, 4])
    apart = [dynamic_range.RULES[f"binary32_over_255_by_{lanes}"](x) for lanes in ("eights", "fours")]
    assert apart[0] == (F32(5) / F32(255), 51)
    assert (np.isnan(apart[1][0]), apart[1][1]) == (True, 255)
    assert dynamic_range.binary32_over_255_by_eights(F32([0])) == (1, 0)
    with pytest.raises(OverflowError):
        dynamic_range.RULES["binary32_over_255"](F32([0]))


def test_zero_points_are_told_apart() -> None:
    given = np.array([0, 5])
    assert zero_points.RULES["used"](given).tolist() == [0, 5]
    assert zero_points.RULES["ignored"](given).tolist() == [0, 0]
    for wrong in (given, F32([-0.0])):
        with pytest.raises(ValueError, match="must be 0"):
            zero_points.RULES["zero"](wrong)
