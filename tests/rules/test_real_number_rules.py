"""Rules of real numbers: correctly rounded ones against fractions and decimals, ordered ones against single operations.

Slots: real_product, real_sum, real_normalization, power, multiply_add; and the rules of real_function, real_gelu and
real_softmax that round once.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from bittrue.arithmetic.floats import fused_multiply_add
from bittrue.rules import (
    divide,
    elimination,
    multiply_add,
    power,
    real_function,
    real_gelu,
    real_normalization,
    real_product,
    real_softmax,
    real_sum,
    rotation,
)
from bittrue.rules.real_product import Layout
from bittrue.rules.real_sum import Way

F32 = np.float32
ONCE = "rounded_once"


def nearest(value: Fraction | Decimal) -> np.float32:
    """The binary32 number nearest to a value, found among neighbours; ties to the even one. Within the range."""
    exact = Fraction(value)
    guess = F32(float(exact))
    candidates = [guess, np.nextafter(guess, F32(np.inf)), np.nextafter(guess, F32(-np.inf))]
    finite = [c for c in candidates if np.isfinite(c)]
    return min(finite, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(np.uint32)) & 1))


def numbers(seed: int, shape: tuple[int, ...], spread: float = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * np.exp2(rng.uniform(-spread, spread, shape))).astype(F32)


def same(ours: np.ndarray, expected: list[Any]) -> None:
    theirs = np.array(expected, F32).reshape(ours.shape)
    assert ours.dtype == F32
    # Zeros of either sign are the same real number.
    assert np.array_equal(ours + F32(0), theirs + F32(0))


def _expm1(x: Decimal) -> Decimal:
    return x.exp() - 1


def _tanh(x: Decimal) -> Decimal:
    return 1 - 2 / ((2 * x).exp() + 1)


def _erf(x: Decimal) -> Decimal:
    """The alternating series; 400 digits outlast its cancellation."""
    with localcontext() as context:
        context.prec = 400
        term, total, n = x, x, 0
        while term and abs(term) > Decimal("1e-120"):
            n += 1
            term = -term * x * x / n
            total += term / (2 * n + 1)
        return 2 * total / _PI.sqrt()


_PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651"
)
_A, _G, _Q = F32(1.6732632), F32(1.0507010), F32(1.702)
ORACLES: dict[str, tuple[Any, dict[str, float]]] = {
    "celu": (lambda x, a: max(x, Decimal(0)) + min(Decimal(0), a * _expm1(x / a)), {"alpha": 0.75}),
    "erf": (_erf, {}),
    "exp": (lambda x: x.exp(), {}),
    "gelu": (lambda x: x * (1 + _erf(x / Decimal(2).sqrt())) / 2, {}),
    "gelu_tanh": (
        lambda x: x * (1 + _tanh((2 / _PI).sqrt() * (x + Decimal("0.044715") * x**3))) / 2,
        {},
    ),
    "hard_sigmoid": (lambda x, a, b: min(Decimal(1), max(Decimal(0), a * x + b)), {"alpha": 0.25, "beta": 0.5}),
    "hard_swish": (lambda x: x * min(Decimal(6), max(Decimal(0), x + 3)) / 6, {}),
    "logistic": (lambda x: 1 / (1 + (-x).exp()), {}),
    "mish": (lambda x: x * _tanh((1 + x.exp()).ln()), {}),
    "parametric_elu": (lambda x, a: x if x >= 0 else a * _expm1(x), {"alpha": 1.25}),
    "quick_gelu": (lambda x, a: x / (1 + (-a * x).exp()), {"alpha": float(_Q)}),
    "selu": (
        lambda x, a, g: g * x if x > 0 else g * a * _expm1(x),
        {"alpha": float(_A), "gamma": float(_G)},
    ),
    "softplus": (lambda x: (1 + x.exp()).ln(), {}),
    "softsign": (lambda x: x / (1 + abs(x)), {}),
    "tanh": (_tanh, {}),
}


@pytest.mark.parametrize("name", ORACLES)
def test_functions_are_rounded_once(name: str) -> None:
    oracle, parameters = ORACLES[name]
    x = np.concatenate([numbers(1, (150,), 3), F32([0.0, 1.0, -1.0, 3.0, -3.0, 1e-6, -1e-6])])
    x = x[np.abs(x) < 12]
    ours = real_function.RULES[ONCE].functions[name](x, **parameters)
    with localcontext() as context:
        context.prec = 120
        given = [Decimal(float(F32(v))) for v in parameters.values()]
        same(ours, [nearest(oracle(Decimal(float(v)), *given)) for v in x])


def _sine(a: Decimal, start: int) -> Decimal:
    """The sine, or the cosine, of a small angle by its series."""
    term = total = a if start else Decimal(1)
    n = start
    while abs(term) > Decimal("1e-70"):
        term = -term * a * a / ((n + 1) * (n + 2))
        n, total = n + 2, total + term
    return total


def test_logarithm_and_circle_functions_are_rounded_once() -> None:
    x = np.abs(numbers(2, (200,), 8)) + F32(1e-9)
    functions = real_function.RULES[ONCE].functions
    with localcontext() as context:
        context.prec = 80
        same(functions["log"](x), [nearest(Decimal(float(v)).ln()) for v in x])
        angles = numbers(3, (100,), 2)
        for name, start in (("sin", 1), ("cos", 0)):
            same(functions[name](angles), [nearest(_sine(Decimal(float(v)), start)) for v in angles])


# Rising functions; arc cosine falls.
INVERSES: dict[str, tuple[Any, Any]] = {
    "acos": (lambda y: -_sine(y, 0), lambda x: -x),
    "acosh": (lambda y: (y.exp() + (-y).exp()) / 2, lambda x: x),
    "asin": (lambda y: _sine(y, 1), lambda x: x),
    "asinh": (lambda y: (y.exp() - (-y).exp()) / 2, lambda x: x),
    "atan": (lambda y: _sine(y, 1) / _sine(y, 0), lambda x: x),
    "atanh": (_tanh, lambda x: x),
}


@pytest.mark.parametrize("name", INVERSES)
def test_inverse_functions_are_rounded_once(name: str) -> None:
    """What they are the inverses of lies on both sides of the argument, half a unit before and behind the result."""
    forward, turned = INVERSES[name]
    x = np.clip(numbers(8, (80,), 3), -20, 20)
    x = np.concatenate([x, F32([1e-6, -1e-6, 0.999999, 1 / 3])])
    x = np.abs(x) + 1 if name == "acosh" else x / F32(21) if name in ("acos", "asin", "atanh") else x
    ours = real_function.RULES[ONCE].functions[name](x)
    with localcontext() as context:
        context.prec = 80
        for value, result in zip(x, ours, strict=True):
            below, above = (Decimal(float(np.nextafter(result, F32(end)))) for end in (-np.inf, np.inf))
            middle, sought = Decimal(float(result)), turned(Decimal(float(value)))
            assert forward((below + middle) / 2) <= sought <= forward((middle + above) / 2), value


def test_tangent_and_hyperbolic_functions_are_rounded_once() -> None:
    x = numbers(9, (80,), 2)
    functions = real_function.RULES[ONCE].functions
    with localcontext() as context:
        context.prec = 80
        exact = [Decimal(float(v)) for v in x]
        same(functions["tan"](x), [nearest(_sine(v, 1) / _sine(v, 0)) for v in exact])
        same(functions["sinh"](x), [nearest((v.exp() - (-v).exp()) / 2) for v in exact])
        same(functions["cosh"](x), [nearest((v.exp() + (-v).exp()) / 2) for v in exact])


def test_gelu_is_the_function_of_its_form() -> None:
    x = numbers(4, (50,), 2)
    functions = real_function.RULES[ONCE].functions
    rule = real_gelu.RULES[ONCE]
    assert np.array_equal(rule.apply(x, False), functions["gelu"](x))
    assert np.array_equal(rule.apply(x, True), functions["gelu_tanh"](x))


def test_ties_and_near_ties_of_functions() -> None:
    """Products of two 24-bit numbers end in ties; one more unit in the 48th bit decides."""
    x = F32([4097, 8193, 3, 2.0**-70])
    assert power.RULES[ONCE].apply(x, F32([2, 2, 3, 2]), False).tolist() == [16785408.0, 67125248.0, 27.0, 2.0**-140]


@pytest.mark.parametrize("depth", [1, 3, 40])
def test_products_are_rounded_once(depth: int) -> None:
    a, b, c = numbers(5, (4, depth), 12), numbers(6, (depth, 5), 12), numbers(7, (5,), 12)
    a[0] = np.where(np.arange(depth) % 2, a[0], -a[0])
    for added, alpha, beta in ((None, 1.0, 1.0), (c, 1.0, 1.0), (c, 0.3, -2.5)):
        ours = real_product.RULES[ONCE].apply(a, b, added, float(F32(alpha)), beta, Layout())
        expected = [
            nearest(
                Fraction(float(F32(alpha)))
                * sum(Fraction(float(p)) * Fraction(float(q)) for p, q in zip(a[m], b[:, n], strict=True))
                + (0 if added is None else Fraction(beta) * Fraction(float(added[n])))
            )
            for m in range(4)
            for n in range(5)
        ]
        same(ours, expected)


@pytest.mark.parametrize("depth", [5, 130, 600])
@pytest.mark.parametrize("columns", [3, 40])
def test_blocks_are_chains_of_fused_operations(depth: int, columns: int) -> None:
    a, b = numbers(8, (2, depth)), numbers(9, (depth, columns))
    for packed, turned in ((False, False), (True, False), (False, True)):
        # 16384 numbers of the second factor are held at a time, 16 columns or more of them.
        width = 128
        while not turned and columns < depth and width > 16 and width // 2 >= columns:
            width //= 2
        block = 256 if packed else 16384 // width
        ours = real_product.RULES["binary32_fused_blocks"].apply(a, b, None, 1.0, 1.0, Layout(packed, turned_a=turned))
        total = None
        for begin in range(0, depth, block):
            part = np.zeros((2, columns), F32)
            for k in range(begin, min(depth, begin + block)):
                part = fused_multiply_add(a[:, k, None], b[k], part)
            total = part if total is None else total + part
        assert np.array_equal(ours, total)


@pytest.mark.parametrize("depth", [5, 16, 45])
@pytest.mark.parametrize("count", [8, 16])
def test_a_single_row_in_fused_lanes(depth: int, count: int) -> None:
    """Columns in fours fold neighbours first, those left over fold halves, and of 8 lanes neighbours then."""
    a, b, c = numbers(31, (1, depth)), numbers(32, (depth, 7)), numbers(33, (7,))
    layout = Layout(split=depth, added_last=True, fused_lanes=True)
    name = "binary32_fused_blocks" if count == 16 else "binary32_fused_blocks_of_8"
    ours = real_product.RULES[name].apply(a, b, c, 1.0, 1.0, layout)
    for column in range(7):
        lane = [F32(0)] * count
        for k in range(depth):
            lane[k % count] = fused_multiply_add(a[:, k], b[k, column : column + 1], np.array([lane[k % count]]))[0]
        if column < 4:
            parts = [((lane[q] + lane[q + 1]) + lane[q + 2]) + lane[q + 3] for q in range(0, count, 4)]
            total = parts[0] + parts[1] if count == 8 else (parts[0] + parts[2]) + (parts[1] + parts[3])
        elif count == 8:
            halves = [lane[i] + lane[i + 4] for i in range(4)]
            total = (halves[0] + halves[1]) + (halves[2] + halves[3])
        else:
            for width in (8, 4, 2, 1):
                lane = [lane[i] + lane[i + width] for i in range(width)]
            total = lane[0]
        assert ours[0, column] == total + c[column]


def test_windows_of_7_go_down_their_columns_inside_of_an_image() -> None:
    """Elsewhere they go along their rows, from what is added on."""
    a, b, c = numbers(34, (2, 49)), numbers(35, (49, 5)), numbers(36, (2, 5))
    rule = real_product.RULES["binary32_fused_windows_of_7"]
    assert rule.inside is not None
    turn, last = (rule.apply(a, b, c, 1.0, 1.0, Layout(added_last=added)) for added in (False, True))
    inside = rule.inside(a, b, c)
    for m, n in np.ndindex(2, 5):
        begun, total, down = c[m : m + 1, n], np.zeros(1, F32), [np.zeros(1, F32)] * 8
        for k in range(49):
            begun = fused_multiply_add(a[m, k : k + 1], b[k, n : n + 1], begun)
            total = fused_multiply_add(a[m, k : k + 1], b[k, n : n + 1], total)
            down[k % 7] = fused_multiply_add(a[m, k : k + 1], b[k, n : n + 1], down[k % 7])
        halves = [down[i] + down[i + 4] for i in range(4)]
        assert turn[m, n] == begun[0]
        assert last[m, n] == total[0] + c[m, n]
        assert inside[m, n] == ((halves[0] + halves[2]) + (halves[1] + halves[3]))[0] + c[m, n]


def test_single_rows_and_columns_are_not_fused() -> None:
    rule = real_product.RULES["binary32_fused_blocks"].apply
    a, b = numbers(10, (1, 7)), numbers(11, (7, 3))
    total = np.zeros(3, F32)
    for part in (slice(0, 4), slice(4, 6), slice(6, 7)):
        terms = a[0, part, None] * b[part]
        group = terms[0]
        for term in terms[1:]:
            group = group + term
        total = group + total
    assert np.array_equal(rule(a, b, None, 1.0, 1.0, Layout())[0], total)
    rows, x = numbers(12, (7, 11)), numbers(13, (11, 1))
    lanes = np.zeros((7, 8), F32)
    for k in range(11):
        lanes[:, k % 8] = lanes[:, k % 8] + rows[:, k] * x[k, 0]
    expected = []
    for r, lane in enumerate(lanes):
        low, high = lane[:4], lane[4:]
        if r < 4:
            value = (((low[0] + low[1]) + low[2]) + low[3]) + (((high[0] + high[1]) + high[2]) + high[3])
        elif r < 6:
            value = ((low[2] + low[0]) + (high[2] + high[0])) + ((low[3] + low[1]) + (high[3] + high[1]))
        else:
            value = ((low[0] + low[1]) + (low[2] + low[3])) + ((high[0] + high[1]) + (high[2] + high[3]))
        expected.append(value)
    assert np.array_equal(rule(rows, x, None, 1.0, 1.0, Layout())[:, 0], np.array(expected, F32))


def test_where_single_rows_are_one_block() -> None:
    """A row between factors that lie as they are; all else has blocks of 128 terms, from the second one on."""
    rule = real_product.RULES["binary32_fused_blocks_alike"].apply
    row, square = numbers(10, (1, 150)), numbers(11, (150, 150))
    column, c = row.reshape(150, 1), np.float32(7)

    def chain(begin: int, end: int, total: np.ndarray) -> np.ndarray:
        for k in range(begin, end):
            total = fused_multiply_add(column[k], square[k], total)
        return total

    zero = np.zeros(150, F32)
    for layout in (Layout(turned_a=True), Layout(turned_a=True, turned_b=True)):
        found = rule(np.ascontiguousarray(square.T), column, np.full((150, 1), c), 1.0, 1.0, layout)
        first = chain(0, 128, zero) + c
        assert np.array_equal(found[:, 0], first + chain(128, 150, zero))
    assert np.array_equal(rule(row, square, c, 1.0, 1.0, Layout())[0], chain(0, 150, zero + c))


def test_sums_are_rounded_once() -> None:
    rows = numbers(14, (40, 9), 20)
    reductions = real_sum.RULES[ONCE].reductions
    exact = [[Fraction(float(v)) for v in row] for row in rows]
    same(reductions["sum"](rows, None, Way()), [nearest(sum(row)) for row in exact])
    same(reductions["sum"](rows, np.full(40, 9.0), Way()), [nearest(sum(row) / 9) for row in exact])
    same(reductions["l1"](rows, None, Way()), [nearest(sum(map(abs, row))) for row in exact])
    same(reductions["sum_square"](rows, None, Way()), [nearest(sum(v * v for v in row)) for row in exact])
    small = numbers(15, (40, 5), 3)
    products = []
    for row in small:
        product = Fraction(1)
        for v in row:
            product *= Fraction(float(v))
        products.append(nearest(product))
    same(reductions["prod"](small, None, Way()), products)
    with localcontext() as context:
        context.prec = 80
        decimals = [[Decimal(float(v)) for v in row] for row in small]
        roots = [nearest(sum((v * v for v in row), Decimal(0)).sqrt()) for row in decimals]
        same(reductions["l2"](small, None, Way()), roots)
        logs = [nearest(sum((v.exp() for v in row), Decimal(0)).ln()) for row in decimals]
        same(reductions["log_sum_exp"](small, None, Way()), logs)
        logs = [nearest(sum(map(abs, row), Decimal(0)).ln()) for row in decimals]
        same(reductions["log_sum"](np.abs(small), None, Way()), logs)


def test_sums_of_integers_saturate() -> None:
    """Against Python's own binary64 numbers, one operation after the other."""
    ends = np.iinfo(np.int64)
    rows = np.array([[2**53, 1, 1], [ends.max, ends.max, 3], [ends.min, -5, -7], [7, -2, 4]], np.int64)
    reductions = real_sum.RULES["binary64_trunc_saturate"].reductions

    def stored(value: float) -> int:
        return max(ends.min, min(ends.max, math.trunc(value)))

    for name, first in {"sum": float, "sum_square": lambda v: float(v) ** 2, "l1": abs}.items():
        expected = [reduce(lambda a, b: a + b, (float(first(float(v))) for v in row)) for row in rows.tolist()]
        assert reductions[name](rows, None, Way()).tolist() == [stored(v) for v in expected]
        assert reductions[name](rows, np.full(4, 3.0), Way()).tolist() == [stored(v / 3) for v in expected]
    expected = [reduce(lambda a, b: a * b, map(float, row)) for row in rows.tolist()]
    assert reductions["prod"](rows, None, Way()).tolist() == [stored(v) for v in expected]
    # What is lost comes back: 2^53 + 3 is a tie, which goes to 2^53 + 4, of which one is too much.
    row = np.array([[1, 1, 1, 2**53, 1, 1]], np.int64)
    for many in (row, np.repeat(row, 20, axis=0)):
        assert set(reductions["sum"](many, None, Way("compensated")).tolist()) == {2**53 + 6}
        assert set(reductions["sum"](many, None, Way()).tolist()) == {2**53 + 4}
    assert reductions["prod"](rows[:, :0], None, Way()).tolist() == [1] * 4


@pytest.mark.parametrize("count", [1, 3, 4, 7, 8, 9, 15, 30])
def test_packets_as_single_additions(count: int) -> None:
    rows = numbers(16, (8, count))
    starts = np.arange(8) * count
    ours = real_sum.RULES["binary32_packets_4"].reductions["sum"](rows, None, Way("packets", starts))
    for row, start, result in zip(rows, starts, ours, strict=True):
        first = min(-start % 4, count)
        packets = [row[i : i + 4] for i in range(first, count - 3, 4)]
        if not packets:
            total = row[0]
            rest = list(row[1:])
        else:
            sets = [packets[0], *packets[1:2]]
            for i in range(2, len(packets) // 2 * 2):
                sets[i % 2] = sets[i % 2] + packets[i]
            lanes = sets[0] + sets[1] if len(sets) > 1 else sets[0]
            if len(packets) > 1 and len(packets) % 2:
                lanes = lanes + packets[-1]
            total = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
            rest = [*row[:first], *row[first + 4 * len(packets) :]]
        for v in rest:
            total = F32(total + v)
        assert total == result


def test_softmax_is_rounded_once() -> None:
    rows = numbers(17, (30, 6), 2)
    rule = real_softmax.RULES[ONCE]
    with localcontext() as context:
        context.prec = 80
        powers = [[Decimal(float(v)).exp() for v in row] for row in rows]
        same(rule.softmax(rows, 1.0), [nearest(p / sum(row)) for row in powers for p in row])
        same(rule.log_softmax(rows), [nearest((p / sum(row)).ln()) for row in powers for p in row])


def test_normalizations_are_rounded_once() -> None:
    rows, scale, bias = numbers(18, (12, 7), 2), numbers(19, (1, 7), 2), numbers(20, (1, 7), 2)
    epsilon = float(F32(1e-3))
    rule = real_normalization.RULES[ONCE]
    with localcontext() as context:
        context.prec = 80
        for centred in (True, False):
            result, mean, inverse = rule.by_rows(rows, scale, bias, epsilon, centred, "layer")
            values, means, roots = [], [], []
            for row in rows:
                numbers_of_row = [Decimal(float(v)) for v in row]
                middle = sum(numbers_of_row, Decimal(0)) / 7 if centred else Decimal(0)
                variance = sum(((v - middle) ** 2 for v in numbers_of_row), Decimal(0)) / 7
                root = 1 / (variance + Decimal(epsilon)).sqrt()
                means.append(nearest(middle))
                roots.append(nearest(root))
                for v, s, b in zip(numbers_of_row, scale[0], bias[0], strict=True):
                    values.append(nearest((v - middle) * root * Decimal(float(s)) + Decimal(float(b))))
            same(result, values)
            same(mean, means)
            same(inverse, roots)
        variances = np.abs(numbers(21, (1, 7), 2))
        given = rule.by_given(rows, scale, bias, bias * F32(2), variances, epsilon)
        expected = []
        for row in rows:
            for v, s, b, q in zip(row, scale[0], bias[0], variances[0], strict=True):
                root = (Decimal(float(q)) + Decimal(epsilon)).sqrt()
                expected.append(
                    nearest((Decimal(float(v)) - 2 * Decimal(float(b))) * Decimal(float(s)) / root + Decimal(float(b)))
                )
        same(given, expected)
        lengths = [sum((Decimal(float(v)) ** 2 for v in row), Decimal(0)).sqrt() for row in rows]
        same(
            rule.by_length(rows, 2),
            [nearest(Decimal(float(v)) / length) for row, length in zip(rows, lengths, strict=True) for v in row],
        )
        image = numbers(22, (2, 5, 3), 2)
        expected = []
        for n, c, k in np.ndindex(*image.shape):
            window = image[n, max(0, c - 1) : c + 2, k]
            base = 2 + Decimal(float(F32(0.3))) / 3 * sum((Decimal(float(v)) ** 2 for v in window), Decimal(0))
            expected.append(nearest(Decimal(float(image[n, c, k])) * (-Decimal("0.75") * base.ln()).exp()))
        same(rule.across(image, 3, float(F32(0.3)), 0.75, 2.0), expected)


def test_normalization_by_a_difference_rounds_every_operation() -> None:
    """Against square roots of 80 digits, every operation rounded to binary32 by itself."""
    x, scale, bias, mean = (numbers(seed, (40,), 3) for seed in (31, 32, 33, 34))
    variance, epsilon = np.abs(numbers(35, (40,), 3)), F32(1e-3)
    expected = []
    with localcontext() as context:
        context.prec = 80
        for values in zip(x, scale, bias, mean, variance, strict=True):
            v, s, b, m, q = (Decimal(float(value)) for value in values)
            root = Decimal(float(nearest(Decimal(float(nearest(q + Decimal(float(epsilon))))).sqrt())))
            factor = Decimal(float(nearest(s / root)))
            product = Decimal(float(nearest(factor * Decimal(float(nearest(v - m))))))
            expected.append(nearest(product + b))
    rule = real_normalization.RULES["binary32_difference"]
    same(rule.by_given(x, scale, bias, mean, variance, float(epsilon)), expected)


def _half_products(case: str) -> tuple[list[np.ndarray | None], float, float, Layout]:
    a, b = (
        np.float32(numbers(seed, shape, 2).astype(np.float16)) for seed, shape in ((11, (9, 2729)), (12, (2729, 5)))
    )
    c = {"column": (9, 1), "row": (5,), "nothing": None}[case.split()[0]]
    added = None if c is None else np.float32(numbers(13, c, 2).astype(np.float16))
    alpha, beta = (0.3, 0.7) if "factors" in case else (1.0, 1.0)
    return [a, b, added], alpha, beta, Layout(turned_b="turned" in case)


@pytest.mark.parametrize("case", ["nothing", "row", "row turned", "column", "row factors", "nothing turned factors"])
def test_products_of_binary16_by_scalars(case: str) -> None:
    """Every operation by itself, on Python's numbers: struct rounds to binary16."""
    (a, b, c), alpha, beta, layout = _half_products(case)
    assert a is not None
    assert b is not None

    def half(x: float) -> float:
        return float(struct.unpack("<e", struct.pack("<e", x))[0])

    def chain(m: int, n: int, terms: range, fused: bool, begin: float) -> float:
        total = begin
        for k in terms:
            product = float(a[m, k]) * float(b[k, n])
            total = half(total + (product if fused else half(product)))
        return total

    found = real_product.RULES["binary16_fused_or_in_turn"].apply(a, b, c, alpha, beta, layout)
    start = np.zeros((9, 5)) if c is None else np.broadcast_to(c, (9, 5)).astype(float)
    for m, n in ((0, 0), (7, 4), (8, 4), (3, 4), (5, 2)):
        if case in ("nothing", "row"):
            expected = chain(m, n, range(2729), True, float(start[m, n]))
        else:
            expected = half(float(start[m, n]) * half(beta)) if beta != 1 else float(start[m, n])
            for first, end in ((0, 912), (912, 1824), (1824, 2729)):
                if n == 4 and m < 8:
                    whole = first + (end - first) // 8 * 8
                    even, odd = (chain(m, n, range(first + one, whole, 2), False, 0.0) for one in (0, 1))
                    part = chain(m, n, range(whole, end), False, half(even + odd))
                else:
                    part = chain(m, n, range(first, end), False, 0.0)
                expected = half(expected + half(part * half(alpha)))
        assert found[m, n] == expected, (m, n)
    alike = real_product.RULES["binary16_fused_chain"].apply(a, b, c, 1.0, 1.0, layout)
    assert np.array_equal(alike, found) == (case in ("nothing", "row"))


def _answers(slot: str, rule: Any) -> bytes:
    if slot == "real_product":
        lanes, turned = Layout(fused_lanes=True), Layout(turned_b=True)
        ways = ((1, lanes), (3, lanes), (3, turned))
        results = (rule.apply(numbers(1, (m, 1100)), numbers(2, (1100, 7)), None, 1.0, 1.0, way) for m, way in ways)
        return b"".join(result.tobytes() for result in results)
    if slot == "real_sum":
        rows = numbers(3, (20, 50))
        of_integers = rule is real_sum.RULES["binary64_trunc_saturate"]
        packets = Way("packets", 50 * np.arange(20))
        sums = rule.reductions["sum"](rows.astype(np.int64) if of_integers else rows, None, packets)
        return np.asarray(sums, np.float64).tobytes()
    if slot == "real_normalization":
        rows = rule.by_rows(numbers(4, (9, 30)), None, None, 1e-5, True, "layer")[0]
        parts = (numbers(seed, (200,), 2) for seed in (6, 7, 8, 9))
        given = rule.by_given(*parts, np.abs(numbers(10, (200,), 2)), 1e-5)
        channels = (np.float64(numbers(seed, (5,), 2)) for seed in (6, 7, 8))
        spread = np.abs(np.float64(numbers(10, (5,), 2)))
        batch = rule.by_batch(np.float64(numbers(11, (2, 5, 30), 2)), *channels, spread, 1e-5, 0.9)[0]
        return bytes(rows.tobytes() + given.tobytes() + batch.tobytes())
    bases = np.abs(numbers(5, (2000,), 8))
    if rule in (power.RULES["integers_by_binary64"], power.RULES["integers_by_binary64_limited"]):
        bases = bases.astype(np.int32)
    with np.errstate(over="ignore"):
        return b"".join(rule.apply(bases, np.full(2000, y, F32), True).tobytes() for y in (3, 5, 40))


def test_every_pair_of_rules_is_told_apart() -> None:
    """real_product, real_sum, real_normalization and power."""
    tables = {
        "real_product": real_product,
        "real_sum": real_sum,
        "real_normalization": real_normalization,
        "power": power,
    }
    for slot, module in tables.items():
        answers = {name: _answers(slot, rule) for name, rule in module.RULES.items()}
        for first, second in combinations(answers, 2):
            assert answers[first] != answers[second], f"{slot}: {first} and {second}"


def test_eliminations_are_told_apart() -> None:
    """Slot `elimination`: in which order sums of eight terms, and of 25 in a row of 13, are added up."""
    big, terms = F32(2**24), np.ones((1, 4, 8), F32)
    terms[0, :, 0], terms[0, :, 7] = big, -big
    twice, once = (elimination.RULES[name] for name in ("tiles_of_4_rounded_twice", "tiles_of_8_rounded_once"))
    # Eight columns are two packets, whose sums go in order; four are a single one with even and odd sums; one has four.
    right = np.ones((1, 8, 13), F32)
    assert twice.product(terms, right)[0, 0].tolist() == [0.0] * 8 + [3.0] * 4 + [5.0]
    # Twelve are three packets.
    assert once.product(terms, right)[0, 0].tolist() == [0.0] * 12 + [5.0]
    matrices = numbers(61, (2, 25, 25), 2)
    answers = set()
    for rule in (twice, once):
        m = matrices.copy()
        rule.eliminate(m, lambda: None)
        answers.add(m.tobytes())
    assert len(answers) == 2
    assert (twice.tiles[4].block(300, 300, 4), once.tiles[4].block(300, 300, 4)) == (152, 48)


def test_rotations_are_told_apart() -> None:
    """Slot `rotation`: which products are rounded; the last pair is outside of the fours."""
    x, y, cos, sin = (numbers(seed, (13,), 2) for seed in (51, 52, 53, 54))
    results = {name: rule.apply(x, y, cos, sin, False) for name, rule in rotation.RULES.items()}
    xs, ys, cosines, sines = (np.asarray(part, np.float64) for part in (x, y, cos, sin))
    by_sin, by_cos = (ys * sines).astype(F32), (ys * cosines).astype(F32)
    # Sums of two products of binary32 numbers of one size are exact enough in binary64.
    same(results["binary32_fused_vectors"][0], (xs * cosines - by_sin).astype(F32))
    same(results["binary32_fused_vectors"][1], (xs * sines + by_cos).astype(F32))
    first, second = results["binary32_fused_fours"]
    same(first[:12], ((xs * cosines).astype(F32) - ys * sines).astype(F32)[:12])
    same(second[:12], ((xs * sines).astype(F32) + ys * cosines).astype(F32)[:12])
    same(first[12:], results["binary32_fused_vectors"][0][12:])
    assert len({found[0].tobytes() for found in results.values()}) == len(results)


@pytest.mark.parametrize("size", [3, 26, 27, 34])
def test_joined_squares_against_fractions(size: int) -> None:
    """Rows from 27 numbers on have squares in fours, each rounded; lengths fused ones (slot `real_normalization`)."""
    (x,) = numbers(size, (1, size), 2)

    def total(rounded: int) -> Fraction:
        found = Fraction(0)
        for place, value in enumerate(x):
            square = Fraction(float(value)) ** 2
            found = Fraction(float(nearest(found + (Fraction(float(nearest(square))) if place < rounded else square))))
        return found

    rule = real_normalization.RULES["binary32_joined"]
    squares = F32(float(total(size // 4 * 4 if size >= 27 else 0)))
    (layer,), *_ = rule.by_rows(x[None], None, None, 0.0, False, "layer")
    same(layer, list(x / np.sqrt(squares / F32(size))))
    same(rule.by_length(x[None], 2)[0], list(x / np.sqrt(F32(float(total(0))))))


def test_products_and_their_sums_are_told_apart() -> None:
    """Slot `multiply_add`: one rounding against two, of binary32 and binary64."""
    a, b, c, d = (numbers(seed, (300,), 2) for seed in (42, 43, 44, 45))
    rules = multiply_add.RULES
    for kind in (F32, np.float64):
        x, y, z, w = (part.astype(kind) / kind(3) for part in (a, b, c, d))
        results = {name: rule.apply(x, y, z) for name, rule in rules.items()}
        once = [Fraction(float(p)) * Fraction(float(q)) + Fraction(float(r)) for p, q, r in zip(x, y, z, strict=True)]
        assert results["rounded_once"].tolist() == [float(nearest(v) if kind == F32 else v) for v in once]
        assert np.array_equal(results["rounded_twice"], x * y + z)
        assert np.array_equal(rules["rounded_once"].pair(x, y, z, w), rules["rounded_once"].apply(x, y, z * w))
        pairs = {name: rule.pair(x, y, z, w) for name, rule in rules.items()}
        assert np.array_equal(pairs["rounded_once_but_pairs"], x * y + z * w)
        assert len({results[name].tobytes() + pairs[name].tobytes() for name in rules}) == len(rules)
        assert all(found.dtype == kind for found in (*results.values(), *pairs.values()))


def test_real_divisions_are_told_apart() -> None:
    """Slot `real_divide`: one rounding against two."""
    one, other = numbers(40, (500,), 4), numbers(41, (500,), 4)
    results = {name: rule(one, other) for name, rule in divide.REAL.items()}
    same(
        results["binary32_quotient"],
        [nearest(Decimal(float(a)) / Decimal(float(b))) for a, b in zip(one, other, strict=True)],
    )
    assert len({found.tobytes() for found in results.values()}) == len(results)
