"""Literal cases that tell the rules of data movement's slots apart, two by two."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from bittrue.rules import rules

# slot -> (arguments of the rule, result under each rule)
_SATURATE, _LOW, _HALVES = "truncate_saturate_nan_maximum", "truncate_low_bits", "truncate_low_bits_by_halves"
_AWAY, _ZERO = "round_away_low_bits", "truncate_low_bits_nan_zero"
_U32 = (0, 2**32 - 1)
# What limits: with the type's sign, by s32, by 64 bits, by s32 in groups of 4, and by s32 after rounding.
_LIMITS = (
    *(f"truncate_limited_{how}low_bits" for how in ("", "s32_", "64_", "fours_")),
    "round_away_limited_low_bits",
)


def _limited(*answers: int) -> dict[str, list[int]]:
    return {name: [answer] for name, answer in zip(_LIMITS, answers, strict=True)}


CASES = {
    "cast": [
        # -3e9 as s64 has the low bits 1294967296; as s32 it has no value, which stands for -2^31.
        (
            (np.array([-3e9]), *_U32),
            {_SATURATE: [0], _LOW: [-3000000000], _HALVES: [-(2**31)], _AWAY: [-3000000000], _ZERO: [-3000000000]}
            | _limited(0, -(2**31), 0, 0, -(2**31)),
        ),
        # 5e9 - 2^31 does not fit 31 bits either: -2^31, and 2^31 on top of it.
        (
            (np.array([5e9]), *_U32),
            {_SATURATE: [2**32 - 1], _LOW: [5000000000], _HALVES: [0], _AWAY: [5000000000], _ZERO: [5000000000]}
            | _limited(2**32 - 1, 2**31 - 1, 5000000000, 2**32 - 1, 2**31 - 1),
        ),
        (
            (np.array([3e9]), *_U32),
            {
                _SATURATE: [3000000000],
                _LOW: [3000000000],
                _HALVES: [3000000000 - 2**32],
                _AWAY: [3000000000],
                _ZERO: [3000000000],
            }
            | _limited(3000000000, 2**31 - 1, 3000000000, 3000000000, 2**31 - 1),
        ),
        (
            (np.array([300.0]), -128, 127),
            {_SATURATE: [127], _LOW: [300], _HALVES: [300], _AWAY: [300], _ZERO: [300]} | _limited(*[300] * 5),
        ),
        (
            (np.array([np.nan]), -128, 127),
            {_SATURATE: [127], _LOW: [-(2**31)], _HALVES: [-(2**31)], _AWAY: [-(2**31)], _ZERO: [0]}
            | _limited(*[0] * 5),
        ),
        (
            (np.array([-1.75]), -128, 127),
            {_SATURATE: [-1], _LOW: [-1], _HALVES: [-1], _AWAY: [-2], _ZERO: [-1]} | _limited(-1, -1, -1, -1, -2),
        ),
        (
            (np.full(4, -7.0), 0, 255),
            {
                name: [0] * 4 if name in (_SATURATE, _LIMITS[0]) else [-7] * 4
                for name in (_SATURATE, _LOW, _HALVES, _AWAY, _ZERO, *_LIMITS)
            },
        ),
    ],
    "power_code": [
        # Without saturation.
        ((np.float32([-3.0]), "up", False), {"by_magnitude": [129], "of_binary32_between_ends": [255]}),
        ((np.float32([3.0]), "up", False), {"by_magnitude": [129], "of_binary32_between_ends": [129]}),
    ],
    "shift": [
        ((np.uint8([200]), np.uint8([9]), False), {"places_clamped": [1], "nothing_beyond": [0]}),
        ((np.int8([-100]), np.int8([-1]), False), {"places_clamped": [-100], "nothing_beyond": [-1]}),
        ((np.int8([-100]), np.int8([8]), False), {"places_clamped": [-1], "nothing_beyond": [-1]}),
        ((np.uint8([3]), np.uint8([8]), True), {"places_clamped": [128], "nothing_beyond": [0]}),
        ((np.uint8([200]), np.uint8([3]), False), {"places_clamped": [25], "nothing_beyond": [25]}),
    ],
    "remainder": [
        ((np.array([-7]), np.array([3])), {"exact": [-1], "binary64": [-1]}),
        ((np.array([2**62 + 1]), np.array([2])), {"exact": [1], "binary64": [0]}),
    ],
    "combine": [
        # 5 at half the output's scale: 2.5 goes up to 3 or to the even 2, 10 is the output's zero point.
        (
            (np.uint8([5]), 0.5, 0, 1.0, 10, 0, 255),
            {
                "copy": [5],
                "binary32_affine_away": [13],
                "binary32_divide_even": [12],
                "binary32_multiply_even": [12],
                "exact_even": [12],
            },
        ),
        # (5 - 10) / 2 = -2.5 goes down to -3, or to the even -2.
        (
            (np.uint8([5]), 0.5, 10, 1.0, 10, 0, 255),
            {
                "copy": [5],
                "binary32_affine_away": [7],
                "binary32_divide_even": [8],
                "binary32_multiply_even": [8],
                "exact_even": [8],
            },
        ),
        # 255 * 4 is too large for the type, 0 - 100 too small.
        (
            (np.uint8([255]), 4.0, 0, 1.0, 0, 0, 255),
            {
                "copy": [255],
                "binary32_affine_away": [255],
                "binary32_divide_even": [255],
                "binary32_multiply_even": [255],
                "exact_even": [255],
            },
        ),
        (
            (np.uint8([0]), 1.0, 100, 1.0, 0, 0, 255),
            {
                "copy": [0],
                "binary32_affine_away": [0],
                "binary32_divide_even": [0],
                "binary32_multiply_even": [0],
                "exact_even": [0],
            },
        ),
        # Beyond 32 bits the conversion gives -2^31, which is stored as the lowest value; others saturate.
        (
            (np.uint8([255]), 1e9, 0, 1.0, 0, 0, 255),
            {
                "copy": [255],
                "binary32_affine_away": [0],
                "binary32_divide_even": [255],
                "binary32_multiply_even": [255],
                "exact_even": [255],
            },
        ),
        # 15 f32(0.01) is exactly 7.5 f32(0.02), and rounded to binary32 a little less.
        (
            (np.uint8([15]), 0.01, 0, 0.02, 0, 0, 255),
            {
                "copy": [15],
                "binary32_affine_away": [8],
                "binary32_divide_even": [7],
                "binary32_multiply_even": [8],
                "exact_even": [8],
            },
        ),
        # Beyond 64 bits the conversion gives -2^63.
        (
            (np.uint8([5]), 1e30, 0, 1e-5, 0, 0, 255),
            {
                "copy": [5],
                "binary32_affine_away": [0],
                "binary32_divide_even": [255],
                "binary32_multiply_even": [0],
                "exact_even": [255],
            },
        ),
        # Equal parameters copy under all.
        (
            (np.uint8([7]), 0.3, 9, float(np.float32(0.3)), 9, 0, 255),
            {
                "copy": [7],
                "binary32_affine_away": [7],
                "binary32_divide_even": [7],
                "binary32_multiply_even": [7],
                "exact_even": [7],
            },
        ),
    ],
}


@pytest.mark.parametrize(
    ("slot", "arguments", "expected"), [(slot, *case) for slot, cases in CASES.items() for case in cases]
)
def test_literal_cases(slot: str, arguments: tuple, expected: dict[str, list[int]]) -> None:
    for name, rule in rules(slot).items():
        assert np.asarray(rule(*arguments)).tolist() == expected[name], name


@pytest.mark.parametrize("slot", sorted(CASES))
def test_every_pair_is_told_apart(slot: str) -> None:
    for first, second in combinations(rules(slot), 2):
        assert any(expected[first] != expected[second] for _, expected in CASES[slot]), (first, second)


def test_modulo_rules_are_told_apart() -> None:
    """-7, 1 and -6 modulo 3, -6 and 3: what is left has the divisor's sign, a zero that of either one."""
    a, b = np.float32([-7, 1, -6]), np.float32([3, -6, 3])
    found = {name: [str(v) for v in rule(a, b).tolist()] for name, rule in rules("modulo").items()}
    assert found == {"zero_of_dividend": ["2.0", "-5.0", "-0.0"], "zero_of_divisor": ["2.0", "-5.0", "0.0"]}


def test_starts_are_told_apart() -> None:
    """A search that begins before the first element finds none where all are the smallest number."""
    assert {name: rule.first for name, rule in rules("start").items()} == {"first_element": True, "before_first": False}


def test_widen_rules_are_told_apart() -> None:
    """Signalling NaNs, a vector of 16 and one more."""
    x = np.full(17, 0x7C34, np.uint16).view(np.float16)
    found = {name: rule(x).view(np.uint32).tolist() for name, rule in rules("widen").items()}
    loud, quiet = 0x7F868000, 0x7FC68000
    assert found == {"exact": [loud] * 17, "quiet": [quiet] * 17, "quiet_by_16": [quiet] * 16 + [loud]}


def test_half_nan_rules_are_told_apart() -> None:
    """NaNs with payloads, one in a group of 8 and one behind it."""
    x, places = np.full(2, 0xFFFFFFFF, np.uint32), np.array([7, 8])
    found = {name: rule(x, places, 9).tolist() for name, rule in rules("half_nan").items()}
    bare, full = 0xFE00, 0xFFFF
    assert found == {"payload": [full] * 2, "payload_by_8": [full, bare], "sign": [bare] * 2}


def test_weighted_rules_are_told_apart() -> None:
    """Halfway between 2 and 3 in one direction, a third of the way, and below zero (slot `weighted`)."""
    none = np.zeros(1, np.int64)
    found = {}
    for name, rule in rules("weighted").items():
        results = []
        for place, pair in ((0.5, (2, 3)), (1 / 3, (0, 96)), (2 / 3, (-96, 0))):
            low, high = rule.prepare(np.float32([place]), none, none + 1)
            above, below = rule.prepare(np.float32([0]), none, none + 1)
            corners = [np.int8([pair[0]]), np.int8([pair[1]])] * 2
            results.append(float(rule.apply(corners, [above, below, low, high])[0]))
        found[name] = results
    # 1024/3 = 341.33 is cut to 341, and 96 * 341 / 1024 to 31.
    assert found["binary32_weights_in_order"] == [2.5, 32.0, pytest.approx(-32.0, abs=1e-4)]
    assert found["ten_bits_toward_zero"] == [2.0, 31.0, -32.0]
    # Shares of 1, 3, 7 and 9, where only the second product is rounded before it is added.
    shares, values = [np.float32([41 / 61])] * 4, [np.float32([v]) for v in (1, 3, 7, 9)]
    share = Fraction(float(np.float32(shares[0] * shares[0])[0]))
    total = share + Fraction(float(np.float32(float(3 * share))))
    for value in (7, 9):
        total = Fraction(float(np.float32(float(total)))) + value * share
    fused = rules("weighted")["binary32_fused_weights_in_order"].apply(values, shares)
    assert fused.tolist() == [float(np.float32(float(total)))]
    assert fused != rules("weighted")["binary32_weights_in_order"].apply(values, shares)
    # Beyond the last place there is the fraction still; both rows are added up first.
    one, fraction = np.ones(1, np.int64), np.float32([1.25])
    ways = rules("weighted")
    assert [float(v[0]) for v in ways["binary32_weights_in_order"].prepare(fraction, one, one)] == [0.5, 0.5]
    assert [float(v[0]) for v in ways["binary32_fractions_in_pairs"].prepare(fraction, one, one)] == [0.75, 0.25]
    corners, weights = [np.float32([v]) for v in (1, -(2**24), 2**24, 0.25)], [np.float32([1])] * 4
    assert float(ways["binary32_weights_in_order"].apply(corners, weights)[0]) == 1.25
    assert float(ways["binary32_fractions_in_pairs"].apply(corners, weights)[0]) == 1


def test_casts_against_integers() -> None:
    """truncate_low_bits and round_away_low_bits against Python's integers, where the wide type holds them."""
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(size=500) * np.exp2(rng.uniform(-2, 30, 500)), [0.5, -0.5, 2.5, -2.5, 1e9 + 0.5]])
    for minimum, maximum in ((-128, 127), (0, 255), (0, 65535), (-(2**31), 2**31 - 1), (0, 2**32 - 1), (0, 2**64 - 1)):
        modulus = maximum - minimum + 1
        for name, whole in (("truncate_low_bits", int), ("round_away_low_bits", _away)):
            wanted = [whole(v) % modulus for v in x.tolist()]
            assert [int(v) % modulus for v in rules("cast")[name](x, minimum, maximum)] == wanted


def _away(x: float) -> int:
    exact = Fraction(x)
    magnitude = int(abs(exact) + Fraction(1, 2))
    return magnitude if exact >= 0 else -magnitude
