"""The rules of the element-wise slots: each pair of one slot differs on a case that a reader can check by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bittrue.arithmetic import exact
from bittrue.rules import align, compare, divide, plain_range, product, rescale, rules

RESCALE = "q31_two_step_up_away"
s32 = st.integers(-(2**31), 2**31 - 1)


def _sum(rule: str, scales: tuple[float, float, float], first: int, second: int) -> int:
    """The sum under one align rule, rescaled to the output; `powers_of_two` where the rule knows them."""
    one, two = np.int64([first]), np.int64([second])
    if align.RULES[rule].powers_of_two and not align.RULES[rule].exponent:
        shifts = [round(np.log2(scales[2] / scale)) for scale in scales[:2]]
        return int((align.apply_power_of_two(one, shifts[0]) + align.apply_power_of_two(two, shifts[1]))[0])
    if align.RULES[rule].shared_bits:
        weights = align.shared_weights(rule, *scales)
        return exact.nearest(
            Fraction(first * weights[0] + second * weights[1], 2 ** weights[2]), align.RULES[rule].shared_ties
        )
    unit = align.unit(*scales[:2])
    arrays = {
        **rescale.prepare(RESCALE, [scales[0] / unit], "first_"),
        **rescale.prepare(RESCALE, [scales[1] / unit], "second_"),
        **rescale.prepare(RESCALE, [align.result_multiplier(rule, *scales)]),
    }
    total = align.apply(rule, one, 0, RESCALE, arrays, "first_") + align.apply(rule, two, 0, RESCALE, arrays, "second_")
    return int(rescale.apply(RESCALE, total, arrays)[0])


# (scales of first, second and output; first; second) -> result per rule. Rules that are left out are outside their
# domain: their result multiplier would reach 1, or no input has the output's scale.
ALIGN: list[tuple[tuple[tuple[float, float, float], int, int], dict[str, int]]] = [
    # 2 / 4 - 1 = -1/2, away: -1. Rounding each input by itself gives 1 - 1.
    (
        ((0.25, 1.0, 1.0), 2, -1),
        {
            "left_20": -1,
            "left_15": -1,
            "left_7": -1,
            "power_of_two_or_left_15": 0,
            "power_of_two_or_left_15_exponent_first": -1,
            "left_20_exponent_first": -1,
            "left_20_exponent_down": -1,
            "shared_21_bits_even": 0,
            "shared_22_bits_away": -1,
        },
    ),
    # -1/2 goes up in the sum, away from zero by itself.
    (
        ((0.25, 1.0, 1.0), -2, 0),
        {"power_of_two_or_left_15": -1, "shared_21_bits_even": 0, "shared_22_bits_away": -1},
    ),
    # A quarter of the output's step; 15 bits of headroom hold it as half of one, which is rounded a second time.
    (
        ((2.0**-16, 1.0, 2.0**-13), 2, 0),
        {"left_20": 0, "left_15": 1, "left_20_exponent_first": 0, "left_20_exponent_down": 0, "shared_22_bits_away": 0},
    ),
    # Its negative: half a step away from zero is -1, half of which the doubling high product rounds up.
    (((2.0**-16, 1.0, 2.0**-13), -2, 0), {"left_20": 0, "left_15": 0}),
    # The same with 7 bits of headroom.
    (
        ((2.0**-7, 1.0, 2.0**-5), 1, 0),
        {
            "left_20": 0,
            "left_15": 0,
            "left_7": 1,
            "left_20_exponent_first": 0,
            "left_20_exponent_down": 0,
            "shared_22_bits_away": 0,
        },
    ),
    # -13 inputs are -1.4 of the output's steps; vector loops round or truncate them to two whole ones.
    (
        ((2.0489096641540527e-07, 1.0, 2.0**-19), -13, 0),
        {"left_20": -1, "left_20_exponent_first": -2, "left_20_exponent_down": -2, "shared_22_bits_away": 0},
    ),
    # 1.7 steps: rounded down, the sum is below one and a half.
    (
        ((1.7 * 2.0**-19, 1.0, 2.0**-19), 1, 0),
        {"left_20": 2, "left_20_exponent_first": 2, "left_20_exponent_down": 1},
    ),
    # Small inputs beside a large scale, where each way to align loses something else.
    (
        ((4.9591064453125e-05, 1.0, 0.0078125), -139, 0),
        {
            "power_of_two_or_left_15_exponent_first": -1,
            "left_15": -1,
            "left_20": -1,
            "left_7": 0,
            "left_20_exponent_first": -1,
            "left_20_exponent_down": -1,
        },
    ),
    (
        ((0.001556396484375, 1.0, 0.000244140625), 137, 0),
        {
            "power_of_two_or_left_15_exponent_first": 874,
            "left_15": 874,
            "left_20": 873,
            "left_7": 896,
            "left_20_exponent_first": 873,
            "left_20_exponent_down": 873,
            "shared_22_bits_away": 873,
        },
    ),
    (
        ((0.0019073486328125, 1.0, 0.00048828125), -262, 0),
        {
            "power_of_two_or_left_15_exponent_first": -1023,
            "left_15": -1024,
            "left_20": -1023,
            "left_7": -1024,
            "left_20_exponent_first": -1023,
            "left_20_exponent_down": -1023,
        },
    ),
    # Nothing to lose: 127 + 127 before any clamp.
    (
        ((1.0, 1.0, 1.0), 127, 127),
        {"left_20": 254, "left_15": 254, "left_7": 254, "power_of_two_or_left_15": 254},
    ),
]


@pytest.mark.parametrize(("case", "expected"), ALIGN)
def test_align_literals(case: tuple[tuple[float, float, float], int, int], expected: dict[str, int]) -> None:
    assert {rule: _sum(rule, *case) for rule in expected} == expected


def test_every_pair_of_align_rules_is_told_apart() -> None:
    for one, other in combinations(align.RULES, 2):
        shared = [row for _, row in ALIGN if one in row and other in row]
        assert any(row[one] != row[other] for row in shared), f"{one} and {other} agree on every shipped case"


# 16384 * 3 / 2^15 = 1.5. As a rescaled product that is a tie, away from zero; as a fraction it becomes 2 (or -1, up),
# and 2 / 256 rounds to 0.
PRODUCT = {"exact_s32": [2, -2, 32768], "q15_up_then_256_away": [0, 0, 128]}


@pytest.mark.parametrize("rule", PRODUCT)
def test_product_literals(rule: str) -> None:
    arrays = rescale.prepare(RESCALE, [2.0**-15])
    values = product.RULES[rule].apply(np.int64([16384, -16384, -32768]), np.int64([3, 3, -32768]), RESCALE, arrays)
    assert values.tolist() == PRODUCT[rule]


# Scale 2^-9: half a step of 1/256 each, so 1 and 2 meet at 1 (the tie 0.5 goes up) and -1 falls below -0.5.
COMPARE = {"rescaled_left_8": [1, 1, -1, -1], "raw": [1, 2, -1, -2]}


@pytest.mark.parametrize("rule", COMPARE)
def test_compare_literals(rule: str) -> None:
    arrays = rescale.prepare(RESCALE, [2.0**-9], "a_")
    assert compare.RULES[rule](np.int64([1, 2, -1, -2]), 0, RESCALE, arrays, "a_").tolist() == COMPARE[rule]


@pytest.mark.parametrize(
    ("table", "literals"), [(product.RULES, PRODUCT), (compare.RULES, COMPARE)], ids=["product", "compare"]
)
def test_every_pair_is_told_apart(table: dict[str, object], literals: dict[str, list[int]]) -> None:
    assert set(table) == set(literals)
    for one, other in combinations(table, 2):
        assert literals[one] != literals[other]


@given(st.integers(-32768, 32767), st.integers(-32768, 32767))
def test_q15_product_is_the_oracle(a: int, b: int) -> None:
    expected = exact.divide_by_power_of_two_away(exact.doubling_high_multiply_up_s16(a, b), 8)
    assert product.q15_up_then_256_away(np.int64([a]), np.int64([b]), "", {}).tolist() == [expected]


@given(st.integers(-65535, 65535), st.integers(-65535, 65535).filter(bool), st.floats(1e-6, 1e6))
def test_divide_is_the_oracle(first: int, second: int, scale: float) -> None:
    """The same steps from the slow oracle; and the quotient is right to within its last steps' roundings."""
    rule = divide.RULES["q31_reciprocal_up_away"]
    prepared = rule.prepare(scale, 1.0, 1.0)
    values, defined = rule.apply(np.int64([first]), np.int64([second]), prepared)
    a, b = (-first, -second) if second < 0 else (first, second)
    reciprocal, bits = exact.reciprocal(b, 31)
    headroom = 31 if a in (0, -1) else 31 - (a if a > 0 else ~a).bit_length()
    quotient = exact.doubling_high_multiply_up(exact.wrap_s32(a * 2**headroom), reciprocal)
    multiplier, exponent = exact.encode_q31(float(np.float32(scale)))
    right_shift = bits + headroom - exponent
    assert bool(defined[0]) == (0 <= right_shift <= 31)
    if defined[0]:
        high = exact.doubling_high_multiply_up(quotient, multiplier)
        assert int(values[0]) == exact.divide_by_power_of_two_away(high, right_shift)
        true = first / second * float(np.float32(scale))
        assert abs(int(values[0]) - true) <= 0.5001 + abs(true) * 2.0**-26


def _register(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


@given(st.integers(-65535, 65535), st.integers(1, 65535), st.integers(-110, 110))
@example(0, 4, 0)  # the rules of the slot divide are told apart: without a meaning, and 1
def test_divide_is_the_oracle_where_shifts_are_undefined(a: int, b: int, power: int) -> None:
    """Rounding as compiled code does it: with a mask whose count is modulo 64, and a shift whose count is modulo 32."""
    prepared = divide.RULES["q31_reciprocal_up_away"].prepare(2.0**power, 1.0, 1.0)
    (usual, wrapped), (usual_defined, defined) = zip(
        *(rule.apply(np.int64([a]), np.int64([b]), prepared) for rule in divide.RULES.values()), strict=True
    )
    reciprocal, bits = exact.reciprocal(b, 31)
    headroom = 31 if a in (0, -1) else 31 - (a if a > 0 else ~a).bit_length()
    quotient = exact.doubling_high_multiply_up(exact.wrap_s32(a * 2**headroom), reciprocal)
    multiplier, exponent = exact.encode_q31(2.0**power)
    high, count = exact.doubling_high_multiply_up(quotient, multiplier), bits + headroom - exponent
    mask = _register(2 ** (count % 64) - 1)
    more = _register(high & mask) > (mask >> 1) + (high < 0)
    assert int(wrapped[0]) == (high >> (count % 32)) + more
    assert defined[0]
    assert bool(usual_defined[0]) == (0 <= count <= 31)
    assert not usual_defined[0] or usual[0] == wrapped[0]


@given(s32, s32)
def test_wrapping_clamps(low: int, value: int) -> None:
    limits = plain_range.type_limits("relu6", np.dtype(np.int32))
    assert int(plain_range.clamp(np.int32([value]), *limits)[0]) == min(max(value, 0), 6)
    assert int(plain_range.clamp(np.int32([value]), low, 2**31 - 1)[0]) == max(value, low)


def test_nan_bits() -> None:
    def floats(*bits: int) -> np.ndarray:
        return np.uint32(bits).view(np.float32)

    first = floats(0x7F800001, 0x3F800000, 0x7F800000, 0xFFC00002)
    second = floats(0x3F800000, 0xFF812345, 0x7F800000, 0x7FC00001)
    with np.errstate(invalid="ignore"):
        found = plain_range.with_first_nan(first - second, first, second)
    # Signalling NaNs become quiet, infinity minus infinity gives the default NaN, the first of two NaNs stays.
    assert [hex(v) for v in found.view(np.uint32)] == ["0x7fc00001", "0xffc12345", "0xffc00000", "0xffc00002"]


def test_conversions_beyond_32_bits_are_told_apart() -> None:
    """`beyond_32_bits`: 2^31, and what lies below -2^31."""
    numbers = np.array([2.0**31, -(2.0**40), 2.0**31 - 1, np.inf])
    answers = {name: rule(numbers).tolist() for name, rule in rules("beyond_32_bits").items()}  # type: ignore[operator]
    low, high = -(2**31), 2**31 - 1
    assert answers == {"lowest": [low, low, high, low], "limited": [high, low, high, high]}
