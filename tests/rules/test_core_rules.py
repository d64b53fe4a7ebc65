"""Every rescale, store and scale rule against the exact oracle; for each pair a shipped case that tells them apart."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from bittrue.arithmetic import exact
from bittrue.rules import accumulate, activation_range, rescale, scale_form, store
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


ORACLES = {
    "q31_two_step_up_away": lambda acc, real: two_step(acc, real, "away"),
    "q31_two_step_up_up": lambda acc, real: two_step(acc, real, "up"),
    "q31_one_step_up": one_step,
    "q15_one_step_up": q15,
    "binary64_multiply_away": binary64,
    "binary32_multiply_even": binary32,
    "binary32_multiply_even_overflow_lowest": binary32_or_lowest,
    "q8_one_step_up": lambda acc, real: exact.nearest(
        Fraction(acc * exact.nearest(Fraction(real) * 256, "even"), 256), "up"
    ),
}


def test_every_rescale_rule_has_an_oracle() -> None:
    assert set(ORACLES) == set(rescale.RULES)


@pytest.mark.parametrize("rule", sorted(ORACLES))
def test_rescale_equals_the_oracle(rule: str) -> None:
    for real in REALS:
        accs = accumulators(real)
        prepared = rescale.prepare(rule, real)
        ours = rescale.apply(rule, np.array(accs, np.int64), prepared).tolist()
        for acc, value in zip(accs, ours, strict=True):
            expected = ORACLES[rule](acc, real)
            assert value == expected, f"{rule}: acc {acc}, real {real!r}: {value}, the oracle says {expected}"


# (accumulator, real multiplier, what each rule makes of it): for every pair, one case gives two answers.
RESCALE_CASES = [
    (1, 0.25, {"q31_two_step_up_away": 1, "q31_two_step_up_up": 1, "q31_one_step_up": 0, "binary64_multiply_away": 0}),
    (-2, 0.25, {"q31_two_step_up_away": -1, "q31_two_step_up_up": 0, "q31_one_step_up": 0}),
    (-2, 0.25, {"q31_two_step_up_up": 0, "q31_one_step_up": 0, "binary64_multiply_away": -1}),
    (2, 0.25, {"binary32_multiply_even": 0, "binary64_multiply_away": 1, "q31_one_step_up": 1, "q15_one_step_up": 1}),
    (6, 0.25, {"binary32_multiply_even": 2, "q31_one_step_up": 2}),
    (-2, 0.25, {"binary32_multiply_even": 0, "q31_two_step_up_away": -1, "q15_one_step_up": 0}),
    (-2, 0.25, {"q15_one_step_up": 0, "binary64_multiply_away": -1}),
    (1, 0.25, {"q31_two_step_up_up": 1, "binary32_multiply_even": 0, "q15_one_step_up": 0, "q31_two_step_up_away": 1}),
    (2, 0.25, {"q8_one_step_up": 1, "binary32_multiply_even": 0}),
    (-2, 0.25, {"q8_one_step_up": 0, "q31_two_step_up_away": -1, "binary64_multiply_away": -1}),
    (1, 0.25, {"q8_one_step_up": 0, "q31_two_step_up_up": 1}),
    (1000, 0.3, {"q8_one_step_up": 301, "q31_one_step_up": 300, "q15_one_step_up": 300}),
    (3, 1e9, {"binary32_multiply_even": 2**31 - 1, "binary32_multiply_even_overflow_lowest": -(2**31)}),
    (2, 0.25, {"binary32_multiply_even_overflow_lowest": 0, "binary64_multiply_away": 1, "q31_one_step_up": 1}),
    (2, 0.25, {"binary32_multiply_even_overflow_lowest": 0, "q15_one_step_up": 1, "q8_one_step_up": 1}),
    (1, 0.25, {"binary32_multiply_even_overflow_lowest": 0, "q31_two_step_up_up": 1, "q31_two_step_up_away": 1}),
    (100_000_000, 0.7000123, {"q31_one_step_up": 70001230, "q15_one_step_up": 70001221}),
]  # fmt: skip


@pytest.mark.parametrize(("acc", "real", "expected"), RESCALE_CASES)
def test_shipped_rescale_cases(acc: int, real: float, expected: dict[str, int]) -> None:
    for rule, value in expected.items():
        assert int(rescale.apply(rule, np.int64(acc), rescale.prepare(rule, real))) == value, rule


def test_every_pair_of_rescale_rules_is_told_apart() -> None:
    for one, two in combinations(sorted(rescale.RULES), 2):
        assert any(one in case and two in case and case[one] != case[two] for _, _, case in RESCALE_CASES), (
            f"no shipped case tells {one} from {two}"
        )


def test_scale_forms_are_told_apart() -> None:
    """One triple of scales for which all forms give different real multipliers."""
    first, second, output = np.float32(0.61), np.float32(0.73), np.float32(0.55)
    results = {rule: float(scale_form.form(rule, first, second, output)) for rule in scale_form.RULES}
    exact_product = Fraction(float(first)) * Fraction(float(second))
    assert results["binary64"] == float(exact_product) / float(output)
    assert len(set(results.values())) == len(results), results


def test_store_rules_are_told_apart() -> None:
    near_the_end = np.array([2**31 - 1], np.int64)
    assert int(store.RULES["zero_point_then_clamp"](near_the_end, 1, -128, 127)[0]) == -128
    assert int(store.RULES["clamp_then_zero_point"](near_the_end, 1, -128, 127)[0]) == 127


def test_store_with_crossed_limits_gives_the_upper_one() -> None:
    assert store.zero_point_then_clamp(np.array([0, 500, -500]), 0, 10, 5).tolist() == [5, 5, 5]


def test_accumulate_rules_are_told_apart() -> None:
    beyond = np.array([2**31 + 5], np.int64)
    assert int(accumulate.RULES["s32_wrap"].finish(beyond)[0]) == -(2**31) + 5
    assert int(accumulate.RULES["s64"].finish(beyond)[0]) == 2**31 + 5
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
