"""Real sums, row quantization and scaling back against the exact oracle, and cases that tell rules apart."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittrue.arithmetic import exact
from bittrue.rules import (
    byte_products,
    plain_range,
    quantize_rows,
    row_sums,
    scale_back,
    sum_of_products,
    weights_offset,
)
from support.strategies import seeds

F32 = np.float32
# Far from the ends of binary32, where the oracle knows no infinities.
REALS = st.floats(-1e6, 1e6, width=32, allow_subnormal=False).filter(lambda v: v == 0 or abs(v) > 1e-6)


def nearest(value: Fraction) -> Fraction:
    """One rounding to binary32."""
    return Fraction(exact.nearest_binary(value))


@given(st.lists(st.tuples(REALS, REALS), max_size=30))
def test_sum_of_products_is_the_sum_in_order(terms: list[tuple[float, float]]) -> None:
    total, room = np.zeros(1, F32), np.empty(1, F32)
    expected = Fraction(0)
    for a, b in terms:
        sum_of_products.RULES["binary32_in_order"](total, F32([a]), F32([b]), room)
        expected = nearest(expected + nearest(Fraction(a) * Fraction(b)))
    assert float(total[0]) == expected


def test_sum_of_products_has_no_fused_operation() -> None:
    """(1 + 2^-12)^2 - (1 + 2^-11): the rounded product loses its 2^-24."""
    total, room = np.zeros(1, F32), np.empty(1, F32)
    for a, b in ((-(1 + 2.0**-11), 1.0), (1 + 2.0**-12, 1 + 2.0**-12)):
        sum_of_products.RULES["binary32_in_order"](total, F32([a]), F32([b]), room)
    assert total[0] == 0


def test_invalid_operations_give_the_nan_of_x86() -> None:
    own = np.uint32([0x7FC00001]).view(F32)
    result = np.append(own, F32(1))
    assert sum_of_products.invalid_as_on_x86(result.copy(), own).view(np.uint32)[0] == 0x7FC00001
    assert sum_of_products.invalid_as_on_x86(result.copy(), None).view(np.uint32)[0] == 0xFFC00000


ROWS = st.lists(REALS, min_size=1, max_size=20)


def rounded(product: Fraction, place: int, size: int) -> int:
    """One half is added in binary32 in whole blocks of eight; the rest is rounded to nearest, ties away from zero."""
    if place >= size - size % 8:
        return exact.nearest(product, "away")
    half = Fraction(1, 2) if product >= 0 else Fraction(-1, 2)
    return exact.nearest(nearest(product + half), "trunc")


@given(ROWS)
def test_symmetric_rows(row: list[float]) -> None:
    (q,), (scale,), (zero_point,) = quantize_rows.SYMMETRIC["binary32_range_over_127_by_eights"](F32([row]))
    largest = max(Fraction(abs(v)) for v in row)
    assert zero_point == 0
    if largest == 0:
        assert (float(scale), q.tolist()) == (1, [0] * len(row))
        return
    inverse = nearest(127 / largest)
    assert Fraction(float(scale)) == nearest(largest / 127)
    steps = [rounded(nearest(Fraction(v) * inverse), i, len(row)) for i, v in enumerate(row)]
    assert q.tolist() == [min(max(step, -127), 127) for step in steps]


@given(ROWS)
def test_asymmetric_rows(row: list[float]) -> None:
    (q,), (scale,), (zero_point,) = quantize_rows.ASYMMETRIC["binary32_range_over_255_by_eights"](F32([row]))
    low, high = (Fraction(v) for v in (min(0.0, *row), max(0.0, *row)))
    if low == high:
        assert (float(scale), zero_point, q.tolist()) == (1, 0, [0] * len(row))
        return

    def binary64(value: Fraction) -> Fraction:
        return Fraction(exact.nearest_binary(value, 53))

    real = binary64(nearest(high - low) / 255)
    from_low, from_high = binary64(low / real), binary64(high / real)
    nearer = binary64(128 + abs(from_low)) < binary64(127 + abs(from_high))
    point = exact.nearest(binary64(-128 - from_low if nearer else 127 - from_high), "away")
    assert zero_point == min(max(point, -128), 127)
    assert Fraction(float(scale)) == nearest(real)
    inverse = nearest(1 / nearest(real))
    steps = [rounded(nearest(Fraction(v) * inverse), i, len(row)) + zero_point for i, v in enumerate(row)]
    assert q.tolist() == [min(max(step, -128), 127) for step in steps]


def test_rows_with_an_infinite_inverse() -> None:
    """127 / 1e-39 is infinite: by run of the kernel, per place in or behind a block of eight."""
    row = F32([1e-39, -1e-39, 0, 5e-40, -0.0, 1e-39, -5e-40, 0, 1e-39, -1e-39, 0])
    (q,), _, _ = quantize_rows.SYMMETRIC["binary32_range_over_127_by_eights"](row[None])
    assert q.tolist() == [127, -127, -127, 127, -127, 127, -127, -127, -127, -127, -127]
    (q,), _, (zero_point,) = quantize_rows.ASYMMETRIC["binary32_range_over_255_by_eights"](row[None])
    assert (q[8:] - zero_point).tolist() == [127 - zero_point, -128 - zero_point, -zero_point]
    # On aarch64 NaN becomes 0, and infinities are limited.
    (q,), _, _ = quantize_rows.SYMMETRIC["binary32_range_over_127_away"](row[None])
    assert q.tolist() == [127, -127, 0, 127, 0, 127, -127, 0, 127, -127, 0]


@given(seed=seeds, depth=st.integers(1, 50))
def test_byte_products_are_told_apart(seed: int, depth: int) -> None:
    """Rules of `byte_products`: x * -128 of a negative x keeps the sign of -128 in whole blocks of 16."""
    rng = np.random.default_rng(seed)
    x, w = rng.integers(-128, 128, (2, depth)), rng.choice([-128, -127, 127], (3, depth)).astype(np.int8)
    assert byte_products.RULES["exact"](x, w) is None
    found = byte_products.RULES["low_end_negated_by_sixteens"](x, w)
    added = np.zeros((2, 3), np.int64) if found is None else found
    for m in range(2):
        for n in range(3):
            pairs = list(zip(x[m].tolist(), w[n].tolist(), strict=True))[: depth - depth % 16]
            wrong = [-abs(a) * 128 - a * b for a, b in pairs if a < 0 and b == -128]
            assert added[m, n] == sum(wrong)
    sixteen = np.full((1, 16), -128)
    assert byte_products.RULES["low_end_negated_by_sixteens"](sixteen, sixteen.astype(np.int8)) is not None


@given(seed=seeds, depth=st.integers(1, 70))
def test_pairs_of_byte_products_wrap(seed: int, depth: int) -> None:
    """Rules of `byte_products`: sums of products of elements i and i + 8 of every sixteen wrap to 16 bits."""
    rng = np.random.default_rng(seed)
    x, w = (
        rng.choice([-128, -127, 5], (2, depth), p=(0.6, 0.2, 0.2)),
        rng.choice([-128, -127, 127], (3, depth), p=(0.6, 0.2, 0.2)),
    )
    found = byte_products.RULES["pairs_wrap_by_sixteens"](x, w.astype(np.int8))
    added = np.zeros((2, 3), np.int64) if found is None else found
    for m in range(2):
        for n in range(3):
            expected = sum(
                a * b
                for a, b in zip(x[m, depth - depth % 16 :].tolist(), w[n, depth - depth % 16 :].tolist(), strict=True)
            )
            for first in range(0, depth - depth % 16, 16):
                for i in range(first, first + 8):
                    expected += exact.wrap_s16(int(x[m, i] * w[n, i] + x[m, i + 8] * w[n, i + 8]))
            assert int(x[m] @ w[n]) + added[m, n] == expected


@given(
    total=st.integers(-(2**31), 2**31 - 1), row=st.floats(2**-20, 16, width=32), weight=st.floats(2**-20, 16, width=32)
)
def test_scale_back_is_the_exact_rounding(total: int, row: float, weight: float) -> None:
    exact_total = nearest(Fraction(total))
    of_product = nearest(exact_total * nearest(Fraction(row) * Fraction(weight)))
    expected = {
        "binary32_product_of_scales": of_product,
        "binary32_product_then_fused": of_product,
        "binary32_one_by_one": nearest(nearest(exact_total * Fraction(weight)) * Fraction(row)),
        **dict.fromkeys(
            (
                "binary32_rows_then_fused",
                "binary32_rows_first",
                "binary32_one_by_one_by_fours",
                "binary32_rows_first_by_fours",
            ),
            nearest(nearest(exact_total * Fraction(row)) * Fraction(weight)),
        ),
    }
    for name, rule in scale_back.RULES.items():
        assert Fraction(float(rule(np.array([total]), F32(row), F32([weight]))[0])) == expected[name]


def test_scale_back_rules_are_told_apart() -> None:
    """`scale_back`: 21 * 0.9 * 0.8 less 15.08 in the first and the fifth channel of two rows; what the sum begins with
    is added behind rules that do not do it.
    """
    total, row, weight, start = np.full((2, 5), 21), F32(0.9), np.full(5, 0.8, F32), np.full(5, -15.08, F32)
    found = {
        tuple(
            (rule(total, row, weight, start) if name in scale_back.WITH_START else rule(total, row, weight) + start)[
                0, [0, 4]
            ].tolist()
        )
        for name, rule in scale_back.RULES.items()
    }
    assert len(found) == len(scale_back.RULES)


def test_plain_ranges_are_told_apart() -> None:
    """`plain_range`: an infinity and NaN without an activation, NaN and -0 with one, in the first and fifth channel."""
    largest, nan = float(np.finfo(F32).max), math.nan
    names = (
        *("type_limits", "lower_for_nan", "lower_for_nan_by_fours", "upper_for_nan", "open_limits", "unlimited"),
        *("unlimited_by_signs", "upper_for_nan_behind_fours", "by_signs_but_behind_fours"),
    )
    assert set(names) == set(plain_range.RULES)
    behind = dict.fromkeys(names[-2:], largest)
    for activation, value, first, fifth in (
        ("none", math.inf, (largest, math.inf, largest, largest, *[math.inf] * 3, largest, largest), {}),
        ("none", nan, (nan, -math.inf, -largest, largest, *[nan] * 5), {"lower_for_nan_by_fours": nan, **behind}),
        ("relu", nan, (nan, 0.0, 0.0, largest, 0.0, *[nan] * 4), {"lower_for_nan_by_fours": nan, **behind}),
        (
            "relu6",
            -0.0,
            (-0.0, 0.0, 0.0, 0.0, 0.0, -0.0, 0.0, -0.0, 0.0),
            {"lower_for_nan_by_fours": -0.0, "upper_for_nan_behind_fours": 0.0},
        ),
        ("relu_n1_to_1", 3.0, (1.0,) * 9, {}),
    ):
        for name, expected in zip(names, first, strict=True):
            limits = plain_range.RULES[name](activation, np.dtype(F32))
            found = plain_range.CLAMPS[name](np.full((1, 5), value, F32), *limits)[0, [0, 4]]
            for one, wanted in zip(found, (expected, fifth.get(name, expected)), strict=True):
                assert one.tobytes() == F32(wanted).tobytes() or (math.isnan(wanted) and np.isnan(one))


@pytest.mark.parametrize("rules", [quantize_rows.SYMMETRIC, quantize_rows.ASYMMETRIC])
def test_rows_of_zeros(rules: dict[str, quantize_rows.QuantizeRowsRule]) -> None:
    for rule in rules.values():
        q, scales, zero_points = rule(F32([[0, -0.0], [1, 1]]))
        assert (q[0].tolist(), float(scales[0]), zero_points[0]) == ([zero_points[0]] * 2, 1.0, zero_points[0])


def test_row_sums_are_told_apart() -> None:
    """`row_sums`: 2048 columns of 127 wrap eight lanes of 16 bits, 2047 of them do not."""
    for columns in (5, 24, 2047, 2064, 4100):
        weights = np.full((1, columns), 127, np.int8)
        lanes = [0] * 8
        whole = columns - columns % 16
        for k in range(columns - columns % 8):
            lanes[k % 16 // 2 if k < whole else k % 8] += 127
        expected = sum(exact.wrap_s16(lane) for lane in lanes) + 127 * (columns % 8)
        assert row_sums.RULES["s16_lanes_of_eight"](weights).tolist() == [expected]
        assert row_sums.RULES["exact"](weights).tolist() == [127 * columns]
    for columns in (100, 8256, 8320, 9000, 16384, 16449, 40000):
        row = np.random.default_rng(columns).integers(100, 128, columns)
        found = 0
        for begin in range(0, columns, 1 << 14):
            end = min(begin + (1 << 14), columns // 64 * 64)
            sums = [0] * 48
            for k in range(begin, min(begin + (1 << 14), columns)):
                sums[(k - begin) // 2 % 32 if k < end else 32 + k % 64 // 2 % 16] += int(row[k])
            found += sum(exact.wrap_s16(lane) for lane in sums)
        assert row_sums.RULES["s16_pairs_in_32_lanes"](row[None]).tolist() == [found]
    assert expected != 127 * 4100


@pytest.mark.parametrize("rules", [quantize_rows.SYMMETRIC, quantize_rows.ASYMMETRIC])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite(rules: dict[str, quantize_rows.QuantizeRowsRule], value: float) -> None:
    for rule in rules.values():
        with pytest.raises(OverflowError):
            rule(F32([[0, value]]))


@given(value=st.floats(2**-20, 2**20, width=32), sign=st.sampled_from([1, -1]))
def test_symmetric_rows_round_exactly(value: float, sign: int) -> None:
    """Scale and inverse are quotients that are rounded to binary64 and then to binary32."""
    q, scale, _ = quantize_rows.SYMMETRIC["binary64_range_over_127_away"](F32([[sign * value, value / 3, 0]]))
    assert float(scale[0]) == float(F32(value / 127.0))
    steps = F32(value / 3) * F32(127.0 / value)
    assert q[0].tolist() == [sign * 127, int(np.floor(np.float64(steps) + 0.5)), 0]


def test_weights_offset_rules_are_told_apart() -> None:
    """`weights_offset`: -7 * 3 * 0.1 * 0.3 and 0.63."""
    parts = np.array([[3]]), F32([[0.1]]), F32([0.3]), F32([0.63])
    found = {float(rule.begin(*parts)[0, 0]) for rule in weights_offset.RULES.values()}
    assert len(found) == len(weights_offset.RULES)
