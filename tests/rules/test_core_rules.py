"""Every rescale, store and scale rule against the exact oracle; for each pair a shipped case that tells them apart."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from bittrue.arithmetic import exact
from bittrue.rules import accumulate, activation_range, channel_parameters, rescale, scale_form, store
from bittrue.rules import quantize as quantize_rules


def accumulators(real: float) -> list[int]:
    """Ties of acc * real, their neighbours, ends of the 32-bit range and a few random values."""
    rng = np.random.default_rng(3)
    halves = [round((k + 0.5) / real) for k in (-1001, -130, -3, -2, -1, 0, 1, 2, 127, 1000)]
    near = [h + d for h in halves for d in (-1, 0, 1) if abs(h) < 2**31 - 2]
    ends = [-(2**31), 1 - 2**31, -1, 0, 1, 2**31 - 1]
    return (
        near
        + ends
        + [int(v) for v in rng.integers(-(2**31), 2**31, 50)]
        + [int(v) for v in rng.integers(-4000, 4000, 50)]
    )


REALS = (
    [2.0**-k for k in range(22)]
    + [0.3, 0.7500001, 1.0, 1.7, 5.0, 2.0**-31]
    + [float(v) for v in np.exp(np.linspace(-15, 1, 40))]
)


def two_step(acc: int, real: float, last: str) -> int:
    m, e = exact.encode_q31(real)
    left = exact.wrap_s32(acc * 2 ** max(e, 0))
    high = exact.doubling_high_multiply_up(left, m)
    return exact.nearest(Fraction(high, 2 ** max(-e, 0)), last)


def one_step(acc: int, real: float) -> int:
    m, e = exact.encode_q31(real)
    return exact.nearest(Fraction(acc * m) * Fraction(2) ** (e - 31), "up")


def q15(acc: int, real: float) -> int:
    m, e = exact.encode_q31(real)
    return exact.wrap_s32(exact.nearest(Fraction(acc * exact.reduce_to_q15(m)) * Fraction(2) ** (e - 15), "up"))


def binary64(acc: int, real: float) -> int:
    # Python floats are binary64 and acc is exact in them: one rounded product.
    result = exact.nearest(Fraction(acc * real), "away")
    return result if -(2**31) <= result < 2**31 else -(2**31)


def rounded_product(acc: int, real: float) -> int:
    def to_f32(value: Fraction) -> Fraction:
        return Fraction(exact.nearest_binary(value)) if value else Fraction(0)

    return exact.nearest(to_f32(to_f32(Fraction(acc)) * to_f32(Fraction(real))), "even")


def binary32(acc: int, real: float) -> int:
    return max(-(2**31), min(2**31 - 1, rounded_product(acc, real)))


def binary32_or_lowest(acc: int, real: float) -> int:
    result = rounded_product(acc, real)
    return result if -(2**31) <= result < 2**31 else -(2**31)


def to_binary32(value: Fraction) -> Fraction:
    return Fraction(exact.nearest_binary(value)) if value else Fraction(0)


def binary32_even_wide(acc: int, real: float) -> int:
    return exact.nearest(to_binary32(to_binary32(Fraction(acc)) * to_binary32(Fraction(real))), "even")


def binary64_two_step(acc: int, real: float) -> int:
    fraction, exponent = math.frexp(real)
    high = to_binary32(Fraction(exact.nearest(Fraction(acc * fraction), "away")))
    return exact.nearest(high * Fraction(2) ** exponent, "away")


def binary32_two_step(acc: int, real: float) -> int:
    fraction, exponent = math.frexp(float(to_binary32(Fraction(real))))
    high = exact.nearest(to_binary32(to_binary32(Fraction(acc)) * Fraction(fraction)), "away")
    return exact.nearest(high * Fraction(2) ** exponent, "away")


def q15_even(acc: int, real: float) -> int:
    m, s = q15_parts(real)
    return exact.nearest(Fraction(acc * m, 2**s), "even")


@functools.cache
def q15_parts(real: float) -> tuple[int, int]:
    """M = real * 2^s below 2^15 - 1/2 and at least half of that, with the usual ties; halving M keeps the value."""
    limit, s = Fraction(65536 - Fraction("0.51")) / 2, 0
    while Fraction(real) * 2 ** (s + 1) < limit:
        s += 1
    return exact.nearest(Fraction(real) * 2**s, "away"), s


def q30_floor(acc: int, real: float) -> int:
    m, e = exact.encode_q31(real)
    return math.floor(Fraction(acc * m) * Fraction(2) ** (e - 30)) + 1


# What rules read that have more than a multiplier.
OPERANDS = {"addend": np.array([3], np.int32), "second": np.array([0.75], np.float32)}


def with_addend(acc: int, real: float, second: float) -> int:
    product = to_binary32(to_binary32(to_binary32(Fraction(acc)) + 3) * to_binary32(Fraction(real)))
    return max(-(2**31), min(2**31 - 1, exact.nearest(to_binary32(product * Fraction(second)), "even")))


def prepared_for(rule: str, real: float) -> rescale.Prepared:
    return {**rescale.prepare(rule, real), **{name: OPERANDS[name] for name in rescale.RULES[rule].operands}}


def wrap_s64(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def whole_product(acc: int, real: float, away: bool = False) -> int:
    """wrap32((acc * 2^left * M + half) >> right), products and sums modulo 2^64; away: less 1 below zero."""
    m, e = exact.encode_q31(real)
    product, right = wrap_s64(acc * 2 ** max(e, 0) * m), 31 + max(-e, 0)
    half = 2 ** (right - 1) - (1 if away and product < 0 else 0)
    return exact.wrap_s32(wrap_s64(product + half) >> right)


def shifted_product(acc: int, real: float) -> int:
    m, e = exact.encode_q31(real)
    high = exact.wrap_s32(acc * 2 ** max(e + 1, 0)) * m >> 31
    return exact.nearest(Fraction(high, 2 ** max(-e, 1)), "up")


def shift_or_product(acc: int, real: float) -> int:
    m, e = exact.encode_q31(real)
    if m != 2**30:
        return whole_product(acc, real)
    if e > 0:
        return exact.wrap_s32(acc * 2 ** (e - 1))
    right = 1 - e
    return exact.wrap_s32(acc + 2 ** (right - 1)) >> right


def binary32_product(acc: int, real: float) -> Fraction:
    def to_f32(value: Fraction) -> Fraction:
        return Fraction(exact.nearest_binary(value)) if value else Fraction(0)

    return to_f32(to_f32(Fraction(acc)) * to_f32(Fraction(real)))


ORACLES = {
    "binary32_multiply_even_wide": binary32_even_wide,
    "binary32_two_step_away_away": binary32_two_step,
    "binary64_multiply_even": lambda acc, real: exact.nearest(Fraction(acc * real), "even"),
    "binary64_product_binary32_away": lambda acc, real: exact.nearest(to_binary32(Fraction(acc * real)), "away"),
    "binary64_two_step_away_away": binary64_two_step,
    "q15_one_step_even": q15_even,
    "q30_floor_plus_one": q30_floor,
    "q31_one_step_up_wrap": whole_product,
    "q31_one_step_up_shift_wraps": shifted_product,
    "q31_shift_or_one_step_up": shift_or_product,
    "q31_one_step_away": lambda acc, real: whole_product(acc, real, away=True),
    "binary32_multiply": binary32_product,
    "binary64_multiply": lambda acc, real: acc * real,
    "q31_two_step_up_away": lambda acc, real: two_step(acc, real, "away"),
    "q31_two_step_up_up": lambda acc, real: two_step(acc, real, "up"),
    "q31_one_step_up": one_step,
    "q15_one_step_up": q15,
    "binary64_multiply_away": binary64,
    "binary32_multiply_even": binary32,
    "binary32_multiply_even_overflow_lowest": binary32_or_lowest,
    "binary32_add_multiply_even": lambda acc, real: with_addend(acc, real, 1.0),
    "binary32_add_multiply_twice_even": lambda acc, real: with_addend(acc, real, 0.75),
    "q8_one_step_up": lambda acc, real: exact.nearest(
        Fraction(acc * exact.nearest(Fraction(real) * 256, "even"), 256), "up"
    ),
}


# Multipliers that a rule knows, from and below, where these are not all.
DOMAINS = {
    "binary32_two_step_away_away": (2.0**-31, 1.0),
    "binary64_two_step_away_away": (2.0**-31, 1.0),
    "q15_one_step_even": (0.4999961 * 2.0**-31, 0.4999961),
}


def test_every_rescale_rule_has_an_oracle() -> None:
    assert set(ORACLES) == set(rescale.RULES)


@pytest.mark.parametrize("rule", sorted(ORACLES))
def test_rescale_equals_the_oracle(rule: str) -> None:
    low, high = DOMAINS.get(rule, (0.0, math.inf))
    for real in REALS:
        accs = accumulators(real)
        if not low <= real < high:
            with pytest.raises(ValueError, match="multipliers must be"):
                rescale.prepare(rule, real)
            continue
        prepared = prepared_for(rule, real)
        ours = rescale.apply(rule, np.array(accs, np.int64), prepared).tolist()
        for acc, value in zip(accs, ours, strict=True):
            expected = ORACLES[rule](acc, real)
            assert value == expected, f"{rule}: acc {acc}, real {real!r}: {value}, the oracle says {expected}"


def told(*answers: tuple[float, str]) -> dict[str, float]:
    """What each rule gives, from (value, names of the rules that give it)."""
    return {name: value for value, names in answers for name in names.split()}


# (accumulator, real multiplier, what each rule makes of it): for every pair, one case gives two answers.
RESCALE_CASES = [
    (1, 0.25, told(
        (1, "binary32_add_multiply_even binary32_add_multiply_twice_even binary32_two_step_away_away "
            "binary64_two_step_away_away q30_floor_plus_one q31_two_step_up_away q31_two_step_up_up"),
        (0.25, "binary32_multiply binary64_multiply"),
        (0, "binary32_multiply_even binary32_multiply_even_overflow_lowest binary32_multiply_even_wide "
            "binary64_multiply_away binary64_multiply_even binary64_product_binary32_away q15_one_step_even "
            "q15_one_step_up q31_one_step_away q31_one_step_up q31_one_step_up_shift_wraps q31_one_step_up_wrap "
            "q31_shift_or_one_step_up q8_one_step_up"),
    )),
    (2, 0.25, told(
        (1, "binary32_add_multiply_even binary32_add_multiply_twice_even binary32_two_step_away_away "
            "binary64_multiply_away binary64_product_binary32_away binary64_two_step_away_away q15_one_step_up "
            "q31_one_step_away q31_one_step_up q31_one_step_up_shift_wraps q31_one_step_up_wrap "
            "q31_shift_or_one_step_up q31_two_step_up_away q31_two_step_up_up q8_one_step_up"),
        (0.5, "binary32_multiply binary64_multiply"),
        (0, "binary32_multiply_even binary32_multiply_even_overflow_lowest binary32_multiply_even_wide "
            "binary64_multiply_even q15_one_step_even"),
        (2, "q30_floor_plus_one"),
    )),
    (-2, 0.25, told(
        (0, "binary32_add_multiply_even binary32_add_multiply_twice_even binary32_multiply_even "
            "binary32_multiply_even_overflow_lowest binary32_multiply_even_wide binary64_multiply_even "
            "q15_one_step_even q15_one_step_up q30_floor_plus_one q31_one_step_up q31_one_step_up_shift_wraps "
            "q31_one_step_up_wrap q31_shift_or_one_step_up q31_two_step_up_up q8_one_step_up"),
        (-0.5, "binary32_multiply binary64_multiply"),
        (-1, "binary32_two_step_away_away binary64_multiply_away binary64_product_binary32_away "
             "binary64_two_step_away_away q31_one_step_away q31_two_step_up_away"),
    )),
    (3, 0.25, told(
        (2, "binary32_add_multiply_even q30_floor_plus_one"),
        (1, "binary32_add_multiply_twice_even binary32_multiply_even binary32_multiply_even_overflow_lowest "
            "binary32_multiply_even_wide binary32_two_step_away_away binary64_multiply_away binary64_multiply_even "
            "binary64_product_binary32_away binary64_two_step_away_away q15_one_step_even q15_one_step_up "
            "q31_one_step_away q31_one_step_up q31_one_step_up_shift_wraps q31_one_step_up_wrap "
            "q31_shift_or_one_step_up q31_two_step_up_away q31_two_step_up_up q8_one_step_up"),
        (0.75, "binary32_multiply binary64_multiply"),
    )),
    (-4, 0.25, told(
        (0, "binary32_add_multiply_even binary32_add_multiply_twice_even"),
        (-1.0, "binary32_multiply binary32_multiply_even binary32_multiply_even_overflow_lowest "
               "binary32_multiply_even_wide binary32_two_step_away_away binary64_multiply binary64_multiply_away "
               "binary64_multiply_even binary64_product_binary32_away binary64_two_step_away_away "
               "q15_one_step_even q15_one_step_up q30_floor_plus_one q31_one_step_away q31_one_step_up "
               "q31_one_step_up_shift_wraps q31_one_step_up_wrap q31_shift_or_one_step_up q31_two_step_up_away "
               "q31_two_step_up_up q8_one_step_up"),
    )),
    (1, 0.5, told(
        (2, "binary32_add_multiply_even binary32_add_multiply_twice_even q30_floor_plus_one"),
        (0.5, "binary32_multiply binary64_multiply"),
        (0, "binary32_multiply_even binary32_multiply_even_overflow_lowest binary32_multiply_even_wide "
            "binary64_multiply_even"),
        (1, "binary32_two_step_away_away binary64_multiply_away binary64_product_binary32_away "
            "binary64_two_step_away_away q15_one_step_up q31_one_step_away q31_one_step_up "
            "q31_one_step_up_shift_wraps q31_one_step_up_wrap q31_shift_or_one_step_up q31_two_step_up_away "
            "q31_two_step_up_up q8_one_step_up"),
    )),
    (1000, 0.3, told(
        (301, "binary32_add_multiply_even q8_one_step_up"),
        (226, "binary32_add_multiply_twice_even"),
        (300.0, "binary32_multiply binary32_multiply_even binary32_multiply_even_overflow_lowest "
                "binary32_multiply_even_wide binary32_two_step_away_away binary64_multiply binary64_multiply_away "
                "binary64_multiply_even binary64_product_binary32_away binary64_two_step_away_away "
                "q15_one_step_even q15_one_step_up q31_one_step_away q31_one_step_up q31_one_step_up_shift_wraps "
                "q31_one_step_up_wrap q31_shift_or_one_step_up q31_two_step_up_away q31_two_step_up_up"),
        (601, "q30_floor_plus_one"),
    )),
    (100_000_000, 0.7000123, told(
        (70001232, "binary32_add_multiply_even binary32_multiply binary32_multiply_even "
                   "binary32_multiply_even_overflow_lowest binary32_multiply_even_wide binary32_two_step_away_away "
                   "binary64_product_binary32_away binary64_two_step_away_away"),
        (52500924, "binary32_add_multiply_twice_even"),
        (70001230.0, "binary64_multiply binary64_multiply_away binary64_multiply_even q31_one_step_away "
                     "q31_one_step_up q31_one_step_up_shift_wraps q31_one_step_up_wrap q31_shift_or_one_step_up "
                     "q31_two_step_up_away q31_two_step_up_up"),
        (70001221, "q15_one_step_up"),
        (140002461, "q30_floor_plus_one"),
        (69921875, "q8_one_step_up"),
    )),
    (116_784_916, 0.4183, told(
        (48851128, "binary32_add_multiply_even binary32_multiply binary32_multiply_even "
                   "binary32_multiply_even_overflow_lowest binary32_multiply_even_wide binary32_two_step_away_away"),
        (36638344, "binary32_add_multiply_twice_even"),
        (48851130.3628, "binary64_multiply"),
        (48851130, "binary64_multiply_away binary64_multiply_even q31_one_step_away q31_one_step_up "
                   "q31_one_step_up_shift_wraps q31_one_step_up_wrap q31_shift_or_one_step_up"),
        (48851132, "binary64_product_binary32_away binary64_two_step_away_away"),
        (48851649, "q15_one_step_even q15_one_step_up"),
        (97702261, "q30_floor_plus_one"),
        (48851131, "q31_two_step_up_away q31_two_step_up_up"),
        (48812445, "q8_one_step_up"),
    )),
    (3, 1000000000.0, told(
        (2147483647, "binary32_add_multiply_even binary32_add_multiply_twice_even binary32_multiply_even"),
        (3000000000.0, "binary32_multiply binary32_multiply_even_wide binary64_multiply binary64_multiply_even "
                       "binary64_product_binary32_away q31_one_step_up q8_one_step_up"),
        (-2147483648, "binary32_multiply_even_overflow_lowest binary64_multiply_away"),
        (6000000001, "q30_floor_plus_one"),
        (-1294967296, "q31_one_step_away q31_one_step_up_wrap q31_shift_or_one_step_up"),
        (-1000000000, "q31_one_step_up_shift_wraps q31_two_step_up_away q31_two_step_up_up"),
    )),
    (100_000_000, 5000.0, told(
        (2147483647, "binary32_add_multiply_even binary32_add_multiply_twice_even binary32_multiply_even"),
        (499999997952.0, "binary32_multiply binary32_multiply_even_wide binary64_product_binary32_away"),
        (-2147483648, "binary32_multiply_even_overflow_lowest binary64_multiply_away"),
        (500000000000.0, "binary64_multiply binary64_multiply_even q31_one_step_up q8_one_step_up"),
        (1783793664, "q15_one_step_up q31_one_step_away q31_one_step_up_wrap q31_shift_or_one_step_up"),
        (1000000000001, "q30_floor_plus_one"),
        (-695040000, "q31_two_step_up_away q31_two_step_up_up"),
        (615680000, "q31_one_step_up_shift_wraps"),
    )),
    (2**31 - 1, 0.5, told(
        (1073741824, "binary32_add_multiply_even binary32_multiply binary32_multiply_even "
                     "binary32_multiply_even_overflow_lowest binary32_multiply_even_wide "
                     "binary32_two_step_away_away binary64_multiply_away binary64_multiply_even "
                     "binary64_product_binary32_away binary64_two_step_away_away q15_one_step_up q31_one_step_away "
                     "q31_one_step_up q31_one_step_up_wrap q31_two_step_up_away q31_two_step_up_up q8_one_step_up"),
        (805306368, "binary32_add_multiply_twice_even"),
        (1073741823.5, "binary64_multiply"),
        (2147483648, "q30_floor_plus_one"),
        (-1073741824, "q31_shift_or_one_step_up"),
        (0, "q31_one_step_up_shift_wraps"),
    )),
    (2**31 - 1, 2.0, told(
        (2147483647, "binary32_add_multiply_even binary32_add_multiply_twice_even binary32_multiply_even"),
        (4294967296.0, "binary32_multiply binary32_multiply_even_wide binary64_product_binary32_away"),
        (-2147483648, "binary32_multiply_even_overflow_lowest binary64_multiply_away"),
        (4294967294.0, "binary64_multiply binary64_multiply_even q31_one_step_up q8_one_step_up"),
        (-2, "q15_one_step_up q31_one_step_away q31_one_step_up_shift_wraps q31_one_step_up_wrap "
             "q31_shift_or_one_step_up q31_two_step_up_away q31_two_step_up_up"),
        (8589934589, "q30_floor_plus_one"),
    )),
    (2**24 + 1, 1.0, told(
        (16777220, "binary32_add_multiply_even"),
        (12582915, "binary32_add_multiply_twice_even"),
        (16777216.0, "binary32_multiply binary32_multiply_even binary32_multiply_even_overflow_lowest "
                     "binary32_multiply_even_wide binary64_product_binary32_away"),
        (16777217.0, "binary64_multiply binary64_multiply_away binary64_multiply_even q15_one_step_up "
                     "q31_one_step_away q31_one_step_up q31_one_step_up_shift_wraps q31_one_step_up_wrap "
                     "q31_shift_or_one_step_up q31_two_step_up_away q31_two_step_up_up q8_one_step_up"),
        (33554435, "q30_floor_plus_one"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("acc", "real", "expected"), RESCALE_CASES)
def test_shipped_rescale_cases(acc: int, real: float, expected: dict[str, float]) -> None:
    for rule, value in expected.items():
        found = rescale.apply(rule, np.array([acc]), prepared_for(rule, real))[0]
        assert found.item() == value, rule


def test_every_pair_of_rescale_rules_is_told_apart() -> None:
    for one, two in combinations(sorted(rescale.RULES), 2):
        assert any(one in case and two in case and case[one] != case[two] for _, _, case in RESCALE_CASES), (
            f"no shipped case tells {one} from {two}"
        )


def test_scale_forms_are_told_apart() -> None:
    """One triple of scales, none of them binary32, for which all forms give different real multipliers."""
    first, second, output = 0.021, 0.2807, 0.55
    results = {rule: float(scale_form.form(rule, first, second, output)) for rule in scale_form.RULES}
    f32 = [to_binary32(Fraction(scale)) for scale in (first, second, output)]
    assert results["binary64"] == float(f32[0] * f32[1]) / float(f32[2])
    assert results["given_binary64"] == first * second / output
    stored = to_binary32(Fraction(float(f32[0]) * second))
    assert results["binary32_step_by_step"] == to_binary32(Fraction(float(stored) / output))
    assert len(set(results.values())) == len(results), results


def test_store_rules_are_told_apart() -> None:
    near_the_end = np.array([2**31 - 1], np.int64)
    assert int(store.RULES["zero_point_then_clamp"](near_the_end, 1, -128, 127)[0]) == -128
    assert int(store.RULES["clamp_then_zero_point"](near_the_end, 1, -128, 127)[0]) == 127


def test_store_with_crossed_limits_gives_the_upper_one() -> None:
    assert store.zero_point_then_clamp(np.array([0, 500, -500]), 0, 10, 5).tolist() == [5, 5, 5]


def test_accumulate_rules_are_told_apart() -> None:
    beyond = np.array([2**31 + 5], np.int64)
    assert int(accumulate.RULES["binary32"].finish(beyond)[0]) == 2**31
    assert int(accumulate.RULES["s32_wrap"].finish(beyond)[0]) == -(2**31) + 5
    assert int(accumulate.RULES["s64"].finish(beyond)[0]) == 2**31 + 5
    assert int(accumulate.RULES["s16_wrap"].finish(beyond)[0]) == 5
    pairs = accumulate.RULES["s16_pairs_s32_wrap"]
    assert int(pairs.finish(beyond)[0]) == -(2**31) + 5
    assert [rule.lost is None for rule in accumulate.RULES.values()] == [
        rule is not pairs for rule in accumulate.RULES.values()
    ]


def test_what_pairs_lose_against_integers() -> None:
    lost = accumulate.RULES["s16_pairs_s32_wrap"].lost
    assert lost is not None
    rng = np.random.default_rng(3)
    for _ in range(200):
        batch = tuple(int(v) for v in rng.integers(1, 3, rng.integers(3)))
        m, k, n = (int(v) for v in rng.integers(1, 6, 3))
        x = rng.choice([0, 1, 128, 254, 255], (*batch, m, k)).astype(np.uint8)
        w = rng.choice([-128, -64, -1, 0, 63, 64, 65, 127], (*batch[1:], k, n)).astype(np.int8)
        found = lost(x, w)
        filters = np.broadcast_to(w, (*batch, k, n))
        for place in np.ndindex(found.shape):
            row, column = x[place[:-1]].tolist(), filters[(*place[:-2], slice(None), place[-1])].tolist()
            pairs = [sum(a * b for a, b in zip(row[p : p + 2], column[p : p + 2], strict=True)) for p in range(0, k, 2)]
            assert int(found[place]) == sum(p - min(max(p, -(2**15)), 2**15 - 1) for p in pairs)


def test_pairs_that_can_leave_16_bits() -> None:
    every = np.arange(-128, 128)
    for low, high in ((0, 255), (0, 128), (100, 200)):
        for first in range(-128, 128, 7):
            risky = accumulate.risky_pairs(np.stack([np.full(256, first), every]), low, high)[0]
            for second in range(-128, 128, 5):
                sums = [a * first + b * second for a in (low, high) for b in (low, high)]
                assert bool(risky[second + 128]) == (max(sums) > 2**15 - 1 or min(sums) < -(2**15))


@pytest.mark.parametrize(
    ("activation", "scale", "zero_point", "expected"),
    [
        ("none", 0.1, 3, (-128, 127)),
        ("relu", 0.1, 3, (3, 127)),
        ("relu6", 0.5, -128, (-128, -116)),
        ("relu_n1_to_1", 0.4, 0, (-3, 3)),  # 1 / 0.4 = 2.5 in binary32: a tie, away from zero
        ("tanh", 0.1, 3, (-128, 127)),
    ],
)
def test_activation_range(activation: str, scale: float, zero_point: int, expected: tuple[int, int]) -> None:
    assert activation_range.binary32_quotient_away(activation, scale, zero_point, -128, 127) == expected


def test_activation_range_refuses_overflow() -> None:
    with pytest.raises(OverflowError):
        activation_range.binary32_quotient_away("relu6", 1e-38, 0, -128, 127)


def test_quantize_edges() -> None:
    """NaN, infinities and values past 32 bits become -2^31 before the zero point is added, modulo 2^32."""
    odd = np.float32([np.nan, np.inf, -np.inf, 3e9, -3e9])
    one = np.float32(1)
    assert quantize_rules.binary32_divide_away(odd, one, np.int64(0), -128, 127).tolist() == [-128] * 5
    assert quantize_rules.binary32_divide_away(odd, one, np.int64(-1), -128, 127).tolist() == [127] * 5


def test_channel_parameters_are_told_apart() -> None:
    """Slices of the whole memory are channels for one image; with two, the second half takes the last channels'."""
    values, shape = np.array([5, 6, 7]), (2, 3, 1, 2)
    found = {
        name: np.broadcast_to(rule(values, shape, 1), shape).reshape(-1).tolist()
        for name, rule in channel_parameters.RULES.items()
    }
    assert found == {
        "of_axis": [5, 5, 6, 6, 7, 7] * 2,
        "of_equal_slices": [5] * 4 + [6] * 4 + [7] * 4,
    }
    single = [
        np.broadcast_to(rule(values, (1, 3, 4), 1), (1, 3, 4)).tolist() for rule in channel_parameters.RULES.values()
    ]
    assert single[0] == single[1]
