"""Rules of vector loops and of binary32 tables (slots `quantize`, `dequantize`, `store`, ...) against integers."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from bittrue.arithmetic import elementary, exact, rational
from bittrue.rules import (
    align,
    extreme,
    interpolate,
    lanes,
    log_softmax,
    mean,
    order,
    quantize,
    real_softmax,
    rescale,
    rules,
    sigmoid,
    softmax,
    start,
    store,
)
from support.rounding import f32

F32 = np.float32


def to_s32(value: Fraction, tie: str) -> int:
    """Rounded; what does not fit 32 bits becomes -2^31."""
    whole = exact.nearest(value, tie)
    return whole if -(2**31) <= whole < 2**31 else -(2**31)


def clamp(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


# Rescaled values, zero point 1, clamped to [-128, 127].
STORED = {
    "zero_point_then_clamp": [6, 127, -128, -128],
    "clamp_then_zero_point": [6, 127, -128, 127],
    "clamp_alone": [5, 127, -128, 127],
    "wrap_s16_then_clamp": [6, -128, 127, 0],
    "saturate_s16_then_clamp": [6, -128, -128, -128],
}


# The same of real numbers, then the last one with zero point 0, and 2^24 in 32 bits.
REALS_STORED = {
    "zero_point_half_up_then_clamp": [4, -1, 127, 2, 1, 2**24],
    "zero_point_plus_half_up_then_clamp": [4, -1, 127, 2, 1, 2**24 + 2],
    "zero_point_away_then_clamp": [4, -2, 127, 2, 0, 2**24],
    "zero_point_half_away_then_clamp": [4, -2, 127, 2, 1, 2**24],
}


@pytest.mark.parametrize("name", REALS_STORED)
def test_store_literals_of_reals(name: str) -> None:
    values = np.float32([2.5, -2.5, 40000, 0.49999997])
    found = [store.RULES[name](values, 1, -128, 127), store.RULES[name](values[3:], 0, -128, 127)]
    found.append(store.RULES[name](np.float32([2**24]), 1, -(2**31), 2**31 - 1))
    assert np.concatenate(found).tolist() == REALS_STORED[name]


@pytest.mark.parametrize("name", STORED)
def test_store_literals(name: str) -> None:
    values = np.array([5, 40000, -40000, 2**31 - 1])
    assert store.RULES[name](values, 1, -128, 127).tolist() == STORED[name]


def test_every_pair_of_store_rules_is_told_apart() -> None:
    assert set(STORED) | set(REALS_STORED) == set(rules("store")) == set(rules("store_tail"))
    for literals in (STORED, REALS_STORED):
        assert all(literals[one] != literals[two] for one, two in combinations(literals, 2))


# One input with the real multiplier 3 * 2^-4, exponent -2: aligned steps of 2^20 of 5 and of -5, and of 1 with 2^-24.
ALIGNED = {
    "left_20": [(3 * 5) << 16, -((3 * 5) << 16)],
    "left_20_exponent_first": [(3 * 5) << 16, -((3 * 5) << 16)],
    "left_20_exponent_down": [(3 * 5) << 16, -((3 * 5) << 16)],
}


def aligned(name: str, q: int, real: float) -> int:
    arrays = rescale.prepare("q31_two_step_up_away", real, "a_")
    return int(align.apply(name, np.int64([q]), 0, "q31_two_step_up_away", arrays, "a_")[0])


@pytest.mark.parametrize("name", ALIGNED)
def test_align_without_anything_to_lose(name: str) -> None:
    assert [aligned(name, q, 3 / 16) for q in (5, -5)] == ALIGNED[name]


@pytest.mark.parametrize("real", [0.5, 0.4999, 0.3, 1e-3, 2.0**-19 * 1.7, 2.0**-25 * 1.3, 2.0**-30])
def test_vector_alignment_against_integers(real: float) -> None:
    multiplier, exponent = exact.encode_q31(real)
    for q in (0, 1, -1, 2, 3, -3, 77, -255, 255):
        moved = math.floor(Fraction(q) * Fraction(2) ** (20 + exponent))
        assert aligned("left_20_exponent_first", q, real) == exact.doubling_high_multiply_up(moved, multiplier)
        high = exact.doubling_high_multiply_up(q << 20, multiplier)
        assert aligned("left_20_exponent_down", q, real) == math.floor(Fraction(high, 2**-exponent))


def test_vector_alignments_are_told_apart() -> None:
    """-1 * 2^20 * 1.7 * 2^-19 = -3.4: each power of two is taken at another place, and rounded there."""
    names = ("left_20", "left_20_exponent_first", "left_20_exponent_down")
    found = {
        name: tuple(aligned(name, q, real) for q in (-1, 1, 3, -7) for real in (2.0**-19 * 1.7, 2.0**-23 * 1.3))
        for name in names
    }
    assert len(set(found.values())) == 3, found


def test_lanes() -> None:
    for name, count in (("blocks_of_8", 8), ("blocks_of_16", 16), ("blocks_of_32", 32)):
        assert [lanes.RULES[name].body(n) for n in (0, 7, 8, 16, 31, 33)] == [
            n // count * count for n in (0, 7, 8, 16, 31, 33)
        ]
    assert lanes.RULES["blocks_of_8"].body(8) != lanes.RULES["blocks_of_16"].body(8)


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.003, 7.3])
@pytest.mark.parametrize("row", [[0, 0, 0], [5, 4, 3, -20], [127, -128], [7], [*range(-128, 128, 5)]])
@pytest.mark.parametrize("output_scale", [1 / 256, 0.0037, 1e-12])
def test_binary32_softmax_against_fractions(scale: float, row: list[int], output_scale: float) -> None:
    step, unit = f32(float(F32(scale))), f32(float(F32(output_scale)))
    table = {d: f32(exact.exponential(float(f32(-step * d)))) for d in range(256)}
    entries = [table[max(row) - x] for x in row]
    total = entries[0]
    for entry in entries[1:]:
        total = f32(total + entry)
    inverse = f32(1 / f32(total * unit))
    shares = [f32(entry * inverse) for entry in entries]
    expected = {
        "binary32_table_away": [to_s32(share, "away") for share in shares],
        "binary32_table_half_up": [
            to_s32(Fraction(math.floor(f32(share + Fraction(1, 2)))), "even") for share in shares
        ],
    }
    units = [min(65535, math.floor(f32(entry * 65535) + Fraction(1, 2))) for entry in entries]
    multiplier, exponent = exact.encode_q31(float(f32(1 / f32(f32(sum(units)) * unit))))
    expected["u16_table_two_step_up"] = [
        exact.divide_by_power_of_two_up(
            exact.doubling_high_multiply_up(exact.wrap_s32(u * 2 ** max(exponent, 0)), multiplier), max(-exponent, 0)
        )
        for u in units
    ]
    for name, values in expected.items():
        rule = softmax.RULES[name]
        prepared = {**rule.prepare(scale, 1.0), "output_scale": F32(output_scale)}
        assert rule.apply(np.array([row]), prepared, 8)[0].tolist() == values
    if output_scale == 1 / 256:
        total_log = f32(math.log(float(total)))
        moved = f32(f32(f32(step * max(row)) + total_log) / Fraction(1, 16))
        ratio = f32(step / Fraction(1, 16))
        logarithm = log_softmax.RULES["binary32_table_even"]
        prepared = {**logarithm.prepare(scale), "output_scale": F32(1 / 16)}
        found = logarithm.apply(np.array([row]), prepared)[0].tolist()
        assert found == [to_s32(f32(f32(ratio * x) - moved), "even") for x in row]


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.003])
@pytest.mark.parametrize("output_scale", [0.5, 0.0123, 2.0])
@pytest.mark.parametrize("zero_point", [0, -7, 100])
def test_means_and_sums_of_vector_loops_against_fractions(scale: float, output_scale: float, zero_point: int) -> None:
    one, two = Fraction(float(F32(scale))), Fraction(float(F32(output_scale)))
    totals = [0, 1, -1, 5, -5, 777, -12345, 2**20 + 1]
    for count in (1, 3, 49):
        moved = f32(f32(zero_point * one) / two)
        moved = f32(moved + Fraction(1, 2)) if moved > 0 else f32(moved - Fraction(1, 2))
        bias = 11 - math.trunc(moved)
        multiplier, exponent = exact.encode_q31(float(f32(one / f32(count * two))))
        factor = f32(one / two)
        offset = f32(f32(-zero_point * factor) * count)
        for total in totals:
            high = exact.doubling_high_multiply_up(exact.wrap_s32(total * 2 ** max(exponent, 0)), multiplier)
            up = exact.divide_by_power_of_two_up(high, max(-exponent, 0)) + bias
            away = exact.divide_by_power_of_two_away(high, max(-exponent, 0)) + bias
            line = to_s32(f32(f32(f32(total) * factor) + offset), "away") + 11
            fused = to_s32(f32(f32(total) * factor + offset), "away") + 11
            for name, expected in (
                ("binary32_real_two_step_up_up", up),
                ("binary32_real_two_step_up_away", away),
                ("binary32_affine_away", line),
                ("binary32_fused_affine_away", fused),
            ):
                rule = mean.RULES[name]
                assert rule.prepare_scales is not None
                prepared = rule.prepare_scales(scale, output_scale, count, zero_point, 11)
                assert int(rule.apply(np.array([total]), prepared)[0]) == expected, (name, total, count)


def test_means_of_vector_loops_are_told_apart() -> None:
    """-2 / 4 = -1/2 is a tie: up to 0, away to -1; a sum does not divide."""
    found = {}
    for name in ("binary32_real_two_step_up_up", "binary32_real_two_step_up_away", "binary32_affine_away"):
        prepare = mean.RULES[name].prepare_scales
        assert prepare is not None
        found[name] = int(mean.RULES[name].apply(np.array([-2]), prepare(1.0, 1.0, 4, 0, 0))[0])
    assert found == {
        "binary32_real_two_step_up_up": 0,
        "binary32_real_two_step_up_away": -1,
        "binary32_affine_away": -2,
    }


REALS = [
    0.0,
    -0.0,
    0.25,
    -0.25,
    0.75,
    0.35,
    -0.35,
    1e-40,
    3e38,
    -3e38,
    math.inf,
    -math.inf,
    math.nan,
    12.75,
    214748364.8,
]


@pytest.mark.parametrize("scale", [0.5, 0.1, 1e-3])
@pytest.mark.parametrize("zero_point", [0, -1, 5])
def test_quantizations_of_vector_loops_against_fractions(scale: float, zero_point: int) -> None:
    step = Fraction(float(F32(scale)))
    inverse = f32(1 / step)
    for x in np.float32(REALS):
        finite = np.isfinite(x)
        value = Fraction(float(x)) if finite else Fraction(0)
        divided = Fraction(float(value) / float(step)) if finite else None
        even = to_s32(f32(value * inverse), "even") if finite and abs(value * inverse) < 3e38 else -(2**31)
        away = to_s32(divided, "away") if divided is not None else -(2**31)
        limit = 0 if np.isnan(x) else 2**31 - 1 if x > 0 else -(2**31)
        held = finite and abs(value / step) < 2**31 - 1
        limited_even = exact.nearest(f32(value * inverse), "even") if held else limit
        limited_away = exact.nearest(divided, "away") if held and divided is not None else limit
        limited_once = exact.nearest(f32(value / step), "away") if held else limit
        for name, whole in (
            ("binary32_reciprocal_even_wrap", even),
            ("binary64_divide_away", away),
            ("binary32_reciprocal_even_wrap_limited", clamp(limited_even, -(2**31), 2**31 - 1)),
            ("binary64_divide_away_limited", clamp(limited_away, -(2**31), 2**31 - 1)),
            ("binary32_divide_away_limited", clamp(limited_once, -(2**31), 2**31 - 1)),
        ):
            found = int(quantize.QUANTIZE[name](np.array([x]), F32(scale), np.int64(zero_point), -128, 127)[0])
            assert found == clamp(exact.wrap_s32(whole + zero_point), -128, 127), (name, x)


def test_quantizations_are_told_apart() -> None:
    """The tie 3.5, with a zero point 4.5 and even, what is too large, and what f32(1 / 0.7) moves onto a tie."""
    cases = ((np.float32([0.35, 0.25, np.inf, np.nan]), 0.1, 1), (np.float32([-85.04999542236328]), 0.7, 100))
    found = {
        name: tuple(q for x, scale, z in cases for q in rule(x, F32(scale), np.int64(z), -128, 127).tolist())
        for name, rule in quantize.QUANTIZE.items()
    }
    assert len(set(found.values())) == len(found), found


def test_dequantizations_against_fractions_and_apart() -> None:
    differ = fused_differ = 0
    for scale in (0.1, 0.0037, 3.3):
        step = Fraction(float(F32(scale)))
        for zero_point in (0, 3, -100, 128):
            addend = f32(-zero_point * step)
            for q in range(-128, 128, 7):
                arguments = np.array([q]), F32(scale), np.int64([zero_point])
                one = float(quantize.DEQUANTIZE["binary32_multiply_add"](*arguments)[0])
                two = float(quantize.DEQUANTIZE["binary64_multiply"](*arguments)[0])
                assert Fraction(one) == f32(f32(q * step) + addend)
                fused = float(quantize.DEQUANTIZE["binary32_fused_multiply_add"](*arguments)[0])
                assert Fraction(fused) == f32(q * step + addend)
                fused_differ += fused not in (one, two)
                differ += one != two
    assert differ > 10
    assert fused_differ > 3


@pytest.mark.parametrize("name", ["logistic", "tanh"])
def test_sigmoid_by_polynomial_against_integers_and_apart(name: str) -> None:
    rule, other = sigmoid.RULES["s16_polynomial_or_table_256"], sigmoid.RULES["s16_table_256_linear"]
    values = np.int16([0, 1, -1, 1000, -1000, 12345, 32767, -32768])
    for shift in (0, 1) if name == "tanh" else (0,):
        multiplier, right = rule.prepare(2.0 ** (shift - 12), shift)
        assert multiplier == 0
        found = getattr(rule, name)(values, multiplier, right, rule.table()).tolist()
        if name == "logistic":
            assert found == [exact.logistic_s16(int(v)) for v in values]
        else:
            assert found == [exact.tanh_s16(clamp(int(v) << shift, -32768, 32767), 3) for v in values]
        table = getattr(other, name)(values, *other.prepare(2.0 ** (shift - 12), shift), other.table()).tolist()
        assert found != table
    assert rule.prepare(0.001, 1) == other.prepare(0.001, 1)


def test_extremes_against_a_loop() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        row = rng.choice(np.float32([np.nan, -0.0, 0.0, 1, -1, np.inf, -np.inf]), int(rng.integers(1, 9)))
        for sign in (1, -1):
            kept = row[0]
            for x in row[1:]:
                kept = kept if (kept > x if sign > 0 else kept < x) else x
            found = extreme.RULES["last_unless_beyond"].apply(row[None], sign)
            assert found.tobytes() == kept.tobytes(), (row, sign)
            kept = row[0]
            for x in row[1:]:
                kept = x if (kept < x if sign > 0 else kept > x) else kept
            found = extreme.RULES["first_unless_beyond"].apply(row[None], sign)
            assert found.tobytes() == kept.tobytes(), (row, sign)
            first = next((x for x in row if np.isnan(x)), None)
            if first is None:
                first = next(x for x in row if x == (max(row) if sign > 0 else min(row)))
            found = extreme.RULES["nan_else_first"].apply(row[None], sign)
            assert found.tobytes() == first.tobytes(), (row, sign)
            by_sign = first
            if first == 0:
                signs = {bool(np.signbit(x)) for x in row if x == 0}
                by_sign = np.float32(0.0 if (False in signs if sign > 0 else True not in signs) else -0.0)
            found = extreme.RULES["rows_nan_else_by_signs"].apply(row[None], sign)
            assert found.tobytes() == by_sign.tobytes(), (row, sign)
            if len(row) == 2:
                last = first if np.isnan(first) else next(x for x in row[::-1] if x == first)
                pairs, in_vectors = np.stack([row, row]), np.array([False, True])
                found = extreme.RULES["nan_else_last_in_vectors"].apply(pairs, sign, in_vectors)
                assert found.tobytes() == first.tobytes() + last.tobytes(), (row, sign)


@pytest.mark.parametrize("sign", [1, -1])
def test_extremes_are_told_apart(sign: int) -> None:
    row = np.float32([[np.nan, 1, 2], [0.0, -0.0, -0.0], [1, np.nan, 0], [-0.0, 0.0, 0.0]])
    rules = [
        rule
        for rule in extreme.RULES.values()
        if not (rule.in_parts or rule.in_vectors or rule.in_packets or rule.in_windows)
    ]
    assert len({rule.apply(row, sign).tobytes() for rule in rules}) == len(rules) == len(extreme.RULES) - 10
    zeros, where = np.float32([[0.0, -0.0], [-0.0, 0.0]] * 2), np.array([False, False, True, True])
    of_vectors = [rule.apply(zeros, sign, where).tobytes() for rule in extreme.RULES.values() if rule.in_vectors]
    assert len({*of_vectors}) == len(of_vectors) == 3
    windows = {name: rule.apply for name, rule in extreme.RULES.items() if rule.in_windows}
    chains = {
        name: [apply(row[:, 0], row[:, 1], sign, vectors).tobytes() for vectors in (True, False)]
        for name, apply in windows.items()
    }
    assert len({*map(tuple, chains.values())}) == len(windows) == 3
    # Two are alike where elements are single, and two in vectors.
    assert chains["last_in_vectors"][1] == chains["nan_else_by_signs_in_pixels"][1]
    assert {*chains["windows_nan_else_by_signs"]} == {chains["nan_else_by_signs_in_pixels"][0]}
    one_by_one = windows["last_in_vectors"]
    for vectors, name in ((True, "last_unless_beyond"), (False, "first_unless_beyond")):
        kept = one_by_one(one_by_one(row[:, 0], row[:, 1], sign, vectors), row[:, 2], sign, vectors)
        assert kept.tobytes() == extreme.RULES[name].apply(row, sign).tobytes()
    pairs, in_vectors = np.float32([[np.nan, 1], [1, np.nan], [0.0, -0.0], [0.0, -0.0]]), np.array([False] * 3 + [True])
    found = {
        name: extreme.RULES[f"nan_else_{name}_in_vectors"].apply(pairs, sign, in_vectors).tobytes()
        for name in ("last", "by_signs")
    }
    assert found["last"] not in {rule.apply(pairs, sign).tobytes() for rule in rules}
    turned = np.concatenate([pairs, pairs[-1:, ::-1]]), sign, np.append(in_vectors, True)
    last, by_signs = (extreme.RULES[f"nan_else_{name}_in_vectors"].apply(*turned) for name in found)
    assert np.signbit(last[-2:]).tolist() == [True, False]
    assert np.signbit(by_signs[-2:]).tolist() == [sign < 0] * 2
    for name in ("nan_else_first", "rows_nan_else_by_signs"):
        assert extreme.RULES[name].apply(row[:, :0], sign).tolist() == [-sign * np.inf] * 4
    # The last zero lies in an earlier lane.
    zeros = np.full((1, 32), -sign, np.float32)
    zeros[0, [15, 16]] = -0.0, 0.0
    in_lanes, in_order = (extreme.RULES[name] for name in ("parts_in_16_lanes", "last_unless_beyond"))
    assert np.signbit(in_lanes.apply(zeros, sign, 32))
    assert not np.signbit(in_order.apply(zeros, sign))
    # With 8 lanes it lies in the same one.
    zeros = np.full((1, 32), -sign, np.float32)
    zeros[0, [16, 8]] = 0.0, -0.0
    apart = [extreme.RULES[f"parts_in_{lanes}_lanes"].apply(zeros, sign, 32) for lanes in (8, 16)]
    assert np.signbit(apart).tolist() == [[False], [True]]
    # So it does in another packet.
    short = np.full((1, 8), -sign, np.float32)
    short[0, [1, 4]] = -0.0, 0.0
    in_packets, in_order = (extreme.RULES[f"{name}first_unless_beyond"] for name in ("packets_", ""))
    assert not np.signbit(in_packets.apply(short, sign, "rows", ()))
    assert np.signbit(in_order.apply(short, sign))
    assert in_lanes.apply(zeros[:, :0], sign, 1).tolist() == [-sign * np.inf]


@pytest.mark.parametrize("width", [8, 16])
def test_extremes_in_lanes_against_a_loop(width: int) -> None:
    """One lane after the other; what follows the last whole vector goes to all of them."""
    rng = np.random.default_rng(2)
    for _ in range(100):
        length = int(rng.choice([1, 3, 16, 20, 33, 64, 80, 131, 200]))
        row = rng.choice(np.float32([np.nan, -0.0, 0.0, 1, -1, -1, -1, np.inf]), length * int(rng.integers(1, 4)))
        for sign in (1, -1):
            kept = np.float32(-sign * np.inf)
            for part in row.reshape(-1, length):
                whole = length - length % width
                lanes = []
                for lane in range(width):
                    fours = [kept] * 4
                    for place in range(lane, length - length % (4 * width), width):
                        fours[place // width % 4] = _beyond(fours[place // width % 4], part[place], sign)
                    value = _beyond(_beyond(*fours[:2], sign), _beyond(*fours[2:], sign), sign)
                    for place in [*range(length - length % (4 * width) + lane, whole, width), *range(whole, length)]:
                        value = _beyond(value, part[place], sign)
                    lanes.append(value)
                while half := len(lanes) // 2:
                    lanes = [_beyond(lanes[i], lanes[i + half], sign) for i in range(half)]
                (kept,) = lanes
            found = extreme.RULES[f"parts_in_{width}_lanes"].apply(row[None], sign, length)
            assert found.tobytes() == np.float32(kept).tobytes(), (row, length, sign)


def _beyond(kept: np.float32, x: np.float32, sign: int) -> np.float32:
    return kept if (kept > x if sign > 0 else kept < x) else x


def test_sums_begin_with_the_first_element() -> None:
    assert start.RULES["first_element"].first


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("length", [1, 3, 4, 6, 9, 17])
def test_softmax_in_fours_against_a_loop(length: int, fused: bool) -> None:
    """Fours of exponentials are those of all rows for softmax, and of each row for log_softmax."""
    rows = np.random.default_rng(length).standard_normal((5, length)).astype(F32) * F32(3)
    rule = real_softmax.RULES["binary32_fused_rational_lanes_4" if fused else "binary32_rational_lanes_4"]
    sums = order.RULES["four_lanes_twice_by_neighbours" if fused else "four_lanes_twice"].sums
    assert sums is not None
    shares, logarithms = rule.softmax(rows, 0.5), rule.log_softmax(rows)
    in_fours, powers = rows.size // 4 * 4, np.empty_like(rows)
    for j, row in enumerate(rows):
        for i, x in enumerate(row):
            power = rational.exp([F32((x - row.max()) * F32(0.5))], fused)
            powers[j, i] = (
                power[0] if j * length + i < in_fours else elementary.exp(F32([(x - row.max()) * F32(0.5)]))[0]
            )
        of_row = [
            rational.exp([x - row.max()], fused)[0] if i < length // 4 * 4 else elementary.exp(F32([x - row.max()]))[0]
            for i, x in enumerate(row)
        ]
        # A row alone begins at a boundary.
        logarithm = elementary.log(sums(F32([of_row])))
        assert logarithms[j].tobytes() == F32((row - row.max()) - logarithm).tobytes()
    inverse = F32(1) / sums(powers)[:, None]
    assert shares.tobytes() == F32(powers * inverse).tobytes()


@pytest.mark.parametrize("length", [1, 3, 4, 5, 7, 8, 9, 12, 13, 17, 31])
@pytest.mark.parametrize(("ending", "second"), [("", 2), ("_by_neighbours", 1)])
def test_order_of_lanes_against_a_loop(length: int, ending: str, second: int) -> None:
    rows = np.random.default_rng(length).standard_normal((9, length)).astype(F32)
    found = order.RULES[f"four_lanes_twice{ending}"].sums(rows)
    for j, row in enumerate(rows):
        first = min(-(j * length) % 4, length)
        vectors = [row[i : i + 4] for i in range(first, length - 3, 4)]
        if vectors:
            sums = vectors[:2]
            paired = len(vectors) // 2 * 2
            for i in range(2, paired):
                sums[i % 2] = sums[i % 2] + vectors[i]
            lane = sums[0] + sums[1] if len(vectors) > 1 else sums[0]
            if len(vectors) > 1 and len(vectors) % 2:
                lane = lane + vectors[-1]
            total = F32(F32(lane[0] + lane[second]) + F32(lane[3 - second] + lane[3]))
            rest = [*row[:first], *row[first + 4 * len(vectors) :]]
        else:
            total, rest = row[0], list(row[1:])
        for x in rest:
            total = F32(total + x)
        assert found[j].tobytes() == total.tobytes()


def test_interpolation_by_weights_against_fractions() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        pixels = [int(v) for v in rng.integers(0, 256, 4)]
        wy, wx = (Fraction(float(F32(v))) for v in rng.random(2))
        weights = [f32(f32(1 - wy) * f32(1 - wx)), f32(wy * f32(1 - wx)), f32(f32(1 - wy) * wx), f32(wy * wx)]
        products = [f32(p * w) for p, w in zip(pixels, weights, strict=True)]
        total = f32(products[0] + products[2])
        total = f32(f32(total + products[1]) + products[3])
        corners = tuple(np.float32([p]) for p in pixels)
        arguments = corners, F32([float(wy)]), F32([float(wx)])
        assert Fraction(float(interpolate.RULES["binary32_weights"].apply(*arguments)[0])) == total
        up = int(interpolate.RULES["binary32_weights_half_up"].apply(*arguments)[0])
        assert up == math.floor(f32(total + Fraction(1, 2)))
        fused = Fraction(0)
        for i in (0, 2, 1, 3):
            fused = f32(fused + pixels[i] * weights[i])
        assert Fraction(float(interpolate.RULES["binary32_fused_weights"].apply(*arguments)[0])) == fused
        fused = products[2]
        for i in (0, 1, 3):
            fused = f32(fused + pixels[i] * weights[i])
        up = int(interpolate.RULES["binary32_fused_weights_half_up"].apply(*arguments)[0])
        assert up == math.floor(f32(fused + Fraction(1, 2)))
        ends = [f32(p * f32(w)) for p, w in zip(pixels, (1 - wy, wy, 1 - wy, wy), strict=True)]
        fused = f32(ends[1] * f32(1 - wx))
        for i, weight in ((0, f32(1 - wx)), (2, wx), (3, wx)):
            fused = f32(fused + ends[i] * weight)
        assert Fraction(float(interpolate.RULES["binary32_fused_products"].apply(*arguments)[0])) == fused
        up = int(interpolate.RULES["binary32_fused_products_half_up"].apply(*arguments)[0])
        assert up == math.floor(f32(fused + Fraction(1, 2)))


def _by_packets(row: list[np.floating], start: int, sign: int, signs: bool = False) -> np.floating:
    """packets_first_unless_beyond of one row, one number after the other; packets_by_signs."""
    width = 16 // row[0].itemsize

    def lane(values: list[np.floating]) -> np.floating:
        if not signs:
            return chain(values)
        missing = [x for x in values if np.isnan(x)]
        best = (max if sign > 0 else min)(values)
        zeros = [x for x in values if x == best and np.signbit(x) == (sign < 0)]
        return missing[0] if missing else (zeros or [best])[0]

    def chain(values: list[np.floating]) -> np.floating:
        kept = values[0]
        for x in values[1:]:
            kept = x if (x > kept if sign > 0 else x < kept) else kept
        return kept

    boundaries = [i for i in range(len(row)) if (start + i) % width == 0 and i + width <= len(row)]
    if not boundaries:
        return chain(row)
    packets = [row[i : i + width] for i in boundaries]
    paired = len(packets) // 2 * 2
    turns = [packets[0:paired:2], packets[1:paired:2], packets[paired:]]
    lanes = [lane([lane([packet[k] for packet in turn]) for turn in turns if turn]) for k in range(width)]
    while len(lanes) > 1:
        middle = len(lanes) // 2
        lanes = [chain([a, b]) for a, b in zip(lanes[:middle], lanes[middle:], strict=True)]
    return chain([lanes[0], *row[: boundaries[0]], *row[boundaries[-1] + width :]])


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("sign", [1, -1])
def test_extremes_in_packets(sign: int, kind: type, signs: bool) -> None:
    rng = np.random.default_rng(2)
    apply = extreme.RULES["packets_by_signs" if signs else "packets_first_unless_beyond"].apply
    for _ in range(30):
        count, length = int(rng.integers(1, 5)), int(rng.integers(1, 30))
        rows = rng.choice(np.array([np.nan, 0.0, -0.0, -1, 1, -sign, -sign, -sign], kind), (count, length))
        wanted = np.array([_by_packets(list(row), i * length, sign, signs) for i, row in enumerate(rows)])
        assert apply(rows, sign, "rows", ()).tobytes() == wanted.tobytes()
    # Four elements of a column at a time: a NaN that comes first hides the other three, or stays.
    columns = np.array([[sign, np.nan, 2 * sign, 2 * sign, 2 * sign]], kind).repeat(4, 0)
    found = apply(columns, sign, "columns", (1, 5, 4))
    assert np.isnan(found).all() if signs else found.tolist() == [sign] * 4
    assert apply(columns[:1], sign, "columns", (1, 5, 1)).tolist() == [2 * sign]
    # A run of its own, behind the first element.
    run = np.array([[np.nan, sign], [sign, np.nan]], kind)
    assert apply(run, sign, "runs", (1, 2, 2)).tobytes() == np.array([np.nan, sign], kind).tobytes()
    assert apply(run[:, :0], sign, "rows", ()).tolist() == [-sign * np.inf] * 2
