"""Rules of binary32 delegates against the exact oracle, and cases that tell them from the others of their slots."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittrue.arithmetic import exact, floats
from bittrue.rules import (
    activation_range,
    align,
    interpolate,
    mean,
    order,
    quantize,
    quantize_rows,
    rescale,
    scale_back,
    sign,
    slope,
    sum_of_products,
    table,
)

F32 = np.float32
normal = st.floats(-(2.0**40), 2.0**40, width=32)
scales = st.floats(2.0**-12, 16, width=32)


def nearest(value: Fraction) -> Fraction:
    return Fraction(exact.nearest_binary(value)) if value else Fraction(0)


def whole(value: Fraction) -> int:
    return exact.nearest(value, "even")


@given(normal, normal, normal)
def test_fused_multiply_add_rounds_once(a: float, b: float, c: float) -> None:
    assert Fraction(float(floats.fused_multiply_add(F32(a), F32(b), F32(c)))) == nearest(
        Fraction(a) * Fraction(b) + Fraction(c)
    )


@given(st.data())
def test_fused_multiply_add_near_ties(data: st.DataObject) -> None:
    """Products of 48 bits whose sum with c lies a hair beside the middle of two neighbours."""
    a = Fraction(data.draw(st.integers(2**23, 2**24 - 1)))
    b = Fraction(data.draw(st.integers(2**23, 2**24 - 1)))
    c = data.draw(st.integers(2**23, 2**24 - 1)) * Fraction(2) ** data.draw(st.integers(-60, 60))
    sign = data.draw(st.sampled_from([1, -1]))
    found = float(floats.fused_multiply_add(F32(float(a)), F32(float(b)), F32(sign * float(c))))
    assert Fraction(found) == nearest(a * b + sign * c)


def test_fused_multiply_add_of_special_values() -> None:
    inf, nan = F32(np.inf), F32(np.nan)
    assert floats.fused_multiply_add(inf, F32(2), F32(1)) == inf
    assert np.isnan(floats.fused_multiply_add([inf, nan, inf], F32([0, 1, 1]), F32([1, 1, -np.inf]))).all()
    assert floats.fused_multiply_add(F32(-0.0), F32(1), F32(-0.0)).tobytes() == F32(-0.0).tobytes()
    assert floats.fused_multiply_add(F32(2.0**100), F32(2.0**100), F32(0)) == inf


def test_sum_of_products_rules_are_told_apart() -> None:
    """`sum_of_products`: (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, but 0 when the product is rounded; the same as the only
    term, which is no eighth one.
    """
    first, second = F32([1 + 2.0**-12]), F32([1 + 2.0**-12])
    found, apart = {}, {}
    for name, rule in sum_of_products.RULES.items():
        total = F32([-1 - 2.0**-11])
        left = total.copy()
        rule(total, first, second, np.empty(1, F32))
        rule.term(0, 1)(left, first, second, np.empty(1, F32))
        found[name] = float(total[0]), float(left[0]), rule.from_bias, rule.by_columns, rule.in_chains
        if rule.inside or rule.tiles is not None:
            apart[name] = found.pop(name)[0], rule.from_bias, rule.inside, rule.tiles is not None
    small = 2.0**-24
    assert found == {
        "binary32_in_order": (0.0, 0.0, False, False, False),
        "binary32_eights_then_fused": (0.0, small, False, False, False),
        "binary32_fused_in_order": (small, small, False, False, False),
        "binary32_fused_from_bias": (small, small, True, False, False),
        "binary32_fused_from_bias_by_columns": (small, small, True, True, False),
        "binary32_fused_in_chains": (small, small, True, False, True),
        "binary32_fused_by_columns_in_chains": (small, small, True, True, True),
    }
    assert apart == {
        "binary32_from_bias_inside": (0.0, True, True, False),
        "binary32_fused_from_bias_inside": (small, True, True, False),
        "binary32_in_tiles": (0.0, False, False, True),
        "binary32_fused_in_tiles": (small, False, False, True),
    }


@given(depth=st.integers(1, 13), count=st.sampled_from([1, 2, 4]), seed=st.integers(0, 2**32 - 1))
def test_chains_against_lists(depth: int, count: int, seed: int) -> None:
    """Every chain is a sum of its own, and the first one has what is left of four."""
    terms = np.random.default_rng(seed).standard_normal(depth + 1).astype(F32)
    chains = sum_of_products.Chains(terms[:1].copy(), count)
    for k in range(depth):
        chains.of(k, depth)[...] += terms[k + 1]
    whole = depth - depth % 4 if count == 4 else depth
    sums = [F32(0)] * count
    sums[0] = terms[0]
    for k in range(whole):
        sums[k % count] = sums[k % count] + terms[k + 1]
    total = sums[0] if count == 1 else sums[0] + sums[1] if count == 2 else (sums[0] + sums[1]) + (sums[2] + sums[3])
    for k in range(whole, depth):
        total = total + terms[k + 1]
    assert chains.folded().tobytes() == F32([total]).tobytes()


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(0, 20))
def test_add_matrix_is_one_term_after_the_other(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((3, k)).astype(F32), rng.standard_normal((k, 2)).astype(F32)
    for name, rule in sum_of_products.RULES.items():
        total = np.zeros((3, 2), F32)
        sum_of_products.add_matrix(rule, total, a, b)
        for m, n in np.ndindex(3, 2):
            expected = Fraction(0)
            for term, (x, w) in enumerate(zip(a[m], b[:, n], strict=True)):
                product = Fraction(float(x)) * Fraction(float(w))
                apart = "fused" not in name or (name == "binary32_eights_then_fused" and term < k // 8 * 8)
                expected = nearest(expected + (nearest(product) if apart else product))
            assert Fraction(float(total[m, n])) == expected, name


@given(total=st.integers(-(2**31), 2**31 - 1), row=scales, weight=scales, start=normal)
def test_scale_back_from_a_start(total: int, row: float, weight: float, start: float) -> None:
    found = scale_back.binary32_rows_then_fused(np.array([total]), F32(row), F32([weight]), F32([start]))
    scaled = nearest(nearest(Fraction(total)) * Fraction(row))
    assert Fraction(float(found[0])) == nearest(scaled * Fraction(weight) + Fraction(start))


@given(st.lists(st.floats(-1000, 1000, width=32).filter(lambda v: v == 0 or abs(v) > 1e-6), min_size=1, max_size=20))
def test_rows_by_their_range(row: list[float]) -> None:
    """`quantize_asymmetric`: every operation of binary32_range_even by fractions."""
    (q,), (scale,), (zero_point,) = quantize_rows.binary32_range_even(F32([row]))
    low, high = min(Fraction(0), *map(Fraction, row)), max(Fraction(0), *map(Fraction, row))
    steps = Fraction(1) if low == high else nearest(255 / nearest(high - low))
    from_low, from_high = nearest(low * steps), nearest(high * steps)
    more = nearest(nearest(-128 + from_low) + nearest(127 + from_high)) > 0
    point = nearest(-128 - from_low) if more else nearest(127 - from_high)
    assert zero_point == whole(min(max(point, Fraction(-128)), Fraction(127)))
    assert Fraction(float(scale)) == nearest(1 / steps)
    expected = [min(max(whole(nearest(Fraction(x) * steps)) + zero_point, -128), 127) for x in row]
    assert q.tolist() == expected


def test_quantize_asymmetric_rules_are_told_apart() -> None:
    """`quantize_asymmetric`: a row of zeros, a number just below one half, to which one half is added or not, a tie."""
    row = F32([[0.49999997, 2.5, 0, 0, 0, 0, 0, 255]])
    rules = quantize_rows.ASYMMETRIC
    answers = {name: (int(rule(F32([[0, 0]]))[2][0]), *map(int, rule(row)[0][0, :2])) for name, rule in rules.items()}
    assert len(set(answers.values())) == len(answers)


def test_quantize_symmetric_rules_are_told_apart() -> None:
    """`quantize_symmetric`: the same number, and one so small that the inverse of its scale is infinite."""
    rows = F32([[0.49999997, 0, 0, 0, 0, 0, 0, 127], [1e-40, 0, 0, 0, 0, 0, 0, 0]])
    assert {name: tuple(rule(rows)[0][:, 0].tolist()) for name, rule in quantize_rows.SYMMETRIC.items()} == {
        "binary32_range_over_127_by_eights": (1, 127),
        "binary32_range_over_127_away": (0, 127),
        "binary64_range_over_127_away": (0, 0),
    }


def test_rows_are_told_apart() -> None:
    """`rows`: what shares a scale."""
    x = np.zeros((2, 3, 3, 4), F32)
    shapes = {name: rule(x).shape for name, rule in quantize_rows.ROWS.items()}
    assert shapes == {"per_image": (2, 36), "per_pixel": (18, 4)}


@given(
    st.floats(2.0**-12, 16, width=32),
    st.integers(-128, 127),
    st.sampled_from(["none", "relu", "relu6", "relu_n1_to_1"]),
)
def test_activation_range_by_fractions(scale: float, zero_point: int, activation: str) -> None:
    def quantized(bound: int | None, end: int) -> int:
        if bound is None:
            return end
        moved = nearest(nearest(Fraction(bound) / Fraction(scale)) + zero_point)
        return whole(min(max(moved, Fraction(-128)), Fraction(127)))

    lower, upper = {"none": (None, None), "relu": (0, None), "relu6": (0, 6), "relu_n1_to_1": (-1, 1)}[activation]
    assert activation_range.binary32_sum_even(activation, scale, zero_point, -128, 127) == (
        quantized(lower, -128),
        quantized(upper, 127),
    )


def test_activation_range_rules_are_told_apart() -> None:
    """`activation_range`: 6 / 4 is 1.5; with zero point 1 the sum 2.5 goes down to 2, the quotient away to 2 first."""
    found = {name: rule("relu6", 4.0, 1, -128, 127) for name, rule in activation_range.RULES.items()}
    ignored = found.pop("type_alone")
    assert ignored == (-128, 127)
    assert found == {"binary32_quotient_away": (1, 3), "binary32_sum_even": (1, 2), "binary64_quotient_even": (1, 3)}
    # 1 / 0.4 is 2.5 in binary32, away to 3; in binary64 it is less, as 0.4 in binary32 is more than 2/5.
    one = {name: rule("relu_n1_to_1", 0.4, 0, -128, 127) for name, rule in activation_range.RULES.items()}
    assert one["binary32_quotient_away"] == (-3, 3)
    assert one["binary64_quotient_even"] == (-2, 2)
    assert one["binary32_sum_even"] == (-2, 2)
    assert one["type_alone"] == (-128, 127)


@given(
    st.sampled_from(["relu", "relu6", "relu_n1_to_1"]),
    st.floats(2.0**-20, 16, width=32) | st.integers(1, 4000).map(lambda n: float(F32(2 / (2 * n + 1)))),
    st.integers(-128, 127),
)
def test_ranges_by_fractions(activation: str, scale: float, zero_point: int) -> None:
    """`activation_range` and `input_range`: binary64_quotient_even, one rounding to binary64 before that to even."""
    lower, upper = {"relu": (0, None), "relu6": (0, 6), "relu_n1_to_1": (-1, 1)}[activation]

    def bound(real: int) -> int:
        # Python divides integers' ratios with one rounding.
        quotient = Fraction(real / scale)
        return zero_point + exact.nearest(quotient, "even")

    expected = max(-128, bound(lower)), 127 if upper is None else min(127, bound(upper))
    assert activation_range.binary64_quotient_even(activation, scale, zero_point, -128, 127) == expected


@given(q=st.integers(-255, 255), real=st.floats(-127.875, 128, width=32).filter(lambda v: abs(v) >= 2**-8))
def test_q8_by_fractions(q: int, real: float) -> None:
    """`rescale`: q8_one_step_up."""
    factor = whole(Fraction(real) * 256)
    found = int(rescale.apply("q8_one_step_up", np.int64(q), rescale.prepare("q8_one_step_up", real)))
    assert found == exact.nearest(Fraction(q * factor, 256), "up")


@given(scales, scales, scales, st.integers(-255, 255), st.integers(-255, 255))
def test_shared_weights_by_fractions(first: float, second: float, output: float, a: int, b: int) -> None:
    """`align`: shared_21_bits_even. The larger weight has 21 bits (22 when it rounds up to a power of two)."""
    one, two, right = align.shared_weights("shared_21_bits_even", first, second, output)
    ratios = [nearest(Fraction(scale) / Fraction(output)) for scale in (first, second)]
    assert [one, two] == [whole(ratio * Fraction(2) ** right) for ratio in ratios]
    assert 2**20 <= max(one, two) <= 2**21


@given(st.lists(st.floats(-300, 300, width=32), min_size=1, max_size=8), scales, st.integers(-128, 127))
def test_quantize_by_a_reciprocal(values: list[float], scale: float, zero_point: int) -> None:
    found = quantize.binary32_reciprocal_even(F32(values), F32(scale), np.int64(zero_point), -128, 127)
    limited = quantize.binary32_reciprocal_even_limited(F32(values), F32(scale), np.int64(zero_point), -128, 127)
    assert limited.tolist() == found.tolist()
    inverse = nearest(1 / Fraction(scale))
    steps = [min(max(nearest(Fraction(v) * inverse), Fraction(-32768)), Fraction(32767)) for v in values]
    assert found.tolist() == [min(max(whole(step) + zero_point, -128), 127) for step in steps]


def test_slope_rules_are_told_apart() -> None:
    """`slope`: zeros of both signs under a negative slope."""
    signs = {
        name: [bool(np.signbit(rule(F32(x), F32(a)))) for x, a in ((0.0, -1.0), (-0.0, -1.0))]
        for name, rule in slope.RULES.items()
    }
    assert signs == {
        "scaled_unless_above_zero": [True, False],
        "scaled_below_zero": [False, True],
        "scaled_by_sign_bit": [False, False],
    }


def test_sign_rules_are_told_apart() -> None:
    """`sign`: half of -3, and half of 3 negated, where ties go up."""

    def half(x: np.ndarray) -> np.ndarray:
        return rescale.apply("q31_two_step_up_away", x, rescale.prepare("q31_two_step_up_away", 0.5))

    found = {name: rule(half, np.array([-3])).tolist() for name, rule in sign.RULES.items()}
    assert found == {"after_rounding": [1], "before_rounding": [2]}


@given(st.integers(-(2**31), 2**31 - 1), scales, st.integers(1, 2000), st.integers(-128, 127), st.integers(-128, 127))
def test_affine_mean_by_fractions(total: int, real: float, count: int, zero_point: int, output: int) -> None:
    """`mean`: binary32_affine_even."""
    rule = mean.RULES["binary32_affine_even"]
    assert rule.prepare_affine is not None
    arrays = rule.prepare_affine(real, count, zero_point, output)
    factor = nearest(Fraction(real) * nearest(Fraction(1, count)))
    offset = nearest(output - nearest(Fraction(count * zero_point) * factor))
    moved = whole(nearest(nearest(nearest(Fraction(total)) * factor) + offset))
    assert int(rule.apply(np.array([total]), arrays)[0]) == min(max(moved, -(2**31)), 2**31 - 1)


@given(st.lists(st.integers(-128, 127), min_size=4, max_size=4), st.integers(0, 2048), st.integers(0, 2048))
def test_eleven_bits_by_fractions(corners: list[int], y: int, x: int) -> None:
    """`interpolate`: eleven_bits_half_up."""
    found = interpolate.RULES["eleven_bits_half_up"].apply(
        tuple(np.array([c]) for c in corners),  # type: ignore[arg-type]
        np.array([y]),
        np.array([x]),
    )
    low_low, high_low, low_high, high_high = map(Fraction, corners)
    top, bottom = low_low + (low_high - low_low) * x / 2048, high_low + (high_high - high_low) * x / 2048
    assert found.tolist() == [exact.nearest(top + (bottom - top) * y / 2048, "up")]


@pytest.mark.parametrize("zero_point", [0, 1])
def test_tables_add_the_zero_point_before_rounding(zero_point: int) -> None:
    """`table`: ties of x / 2 go to even after the zero point is added."""
    rule = table.RULES["binary32_reciprocal_sum_256_even"]
    entries = rule.build(lambda x: x / 2, 1.0, 0, 1.0, zero_point, -128, 127)
    expected = [min(max(whole(Fraction(q, 2) + zero_point), -128), 127) for q in range(-128, 128)]
    assert entries.tolist() == expected


def test_order_rules_are_told_apart() -> None:
    """2^24 and 35 ones: from left to right all of them are lost, in groups one to five."""
    x = np.float32([2.0**24, *[1] * 35])
    lanes = order.RULES["four_lanes_twice"].sums
    parts = order.RULES["parts_in_16_lanes"].scaled_sums
    nines = order.RULES["nines_by_columns"].taps
    assert lanes is not None
    assert parts is not None
    assert nines is not None
    one = np.float32(1)
    found = [float(lanes(x[None])[0]), float(parts(x, (0,), one)[0]), float(nines([v[None] for v in x])[0])]
    assert [value - 2.0**24 for value in found] == [30, 34, 32]
    pairs = order.RULES["four_lanes_twice_by_neighbours"].sums
    assert pairs is not None
    four = np.float32([[2.0**24, 1, 0, 1]])
    assert [float(sums(four)[0]) - 2.0**24 for sums in (lanes, pairs)] == [2, 0]
    # Columns are added from the first row to the last.
    assert parts(x[:, None], (0,), one).tolist() == [2.0**24]


@pytest.mark.parametrize("length", [1, 9, 15, 16, 17, 24, 31, 32, 40, 63, 64, 100])
@pytest.mark.parametrize(("width", "vectors"), [(16, (0, 1)), (8, (3, 0, 1, 2))])
def test_lanes_against_a_loop(width: int, vectors: tuple[int, ...], length: int) -> None:
    row = np.random.default_rng(length).standard_normal(length).astype(np.float32)
    lanes = [[np.float32(0)] * width for _ in vectors]
    whole = length // width * width
    for i in range(whole):
        lanes[i // width % len(vectors)][i % width] += row[i]
    pairs = [(0, 1)] if len(vectors) == 2 else [(0, 2), (1, 3)]
    halves = [[a + b for a, b in zip(lanes[i], lanes[j], strict=True)] for i, j in pairs]
    total = [sum(values[1:], values[0]) for values in zip(*halves, strict=True)]
    for i in range(whole, length):
        total[i % width] += row[i]
    while len(total) > 1:
        half = len(total) // 2
        total = [a + b for a, b in zip(total[:half], total[half:], strict=True)]
    assert order.in_lanes(row[None], width, vectors).tobytes() == np.float32(total).tobytes()


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 15, 16, 17, 31, 64, 103])
def test_fours_against_a_loop(length: int) -> None:
    row = np.random.default_rng(length).standard_normal(length).astype(np.float32)
    whole = length // 4 * 4
    lanes = [[np.float32(0)] * 4 for _ in range(4)]
    for i in range(whole):
        lanes[i // 4 % 4][i % 4] += row[i]
    a, b, c, d = ((lanes[0][i] + lanes[2][i]) + (lanes[1][i] + lanes[3][i]) for i in range(4))
    pair, left = [a + c, b + d], list(row[whole:])
    if len(left) > 1:
        pair = [pair[0] + left.pop(0), pair[1] + left.pop(0)]
    total = pair[0] + pair[1]
    assert order.in_fours(row[None]).tobytes() == np.float32([total + left[0] if left else total]).tobytes()


def test_of_several_nans_one_stays() -> None:
    """Which one says the order of the operands: in the columns behind 32 every seventh row's, else the first row's."""
    nan = np.array([0x7FC00001, 0xFFC00002], np.uint32).view(np.float32)
    rows = np.zeros((9, 33), np.float32)
    rows[1], rows[7] = nan
    rule = order.RULES["parts_in_8_lanes"]
    assert rule.scaled_sums is not None
    found = rule.scaled_sums(rows, (0,), np.float32(1)).view(np.uint32).tolist()
    assert found == [0x7FC00001] * 32 + [0xFFC00002]


def test_parts_in_lanes_are_told_apart() -> None:
    """`order`: 16 lanes give what follows 2^24 other neighbours; of 8, not of 4, the scaled sum is rounded alone."""
    row = np.float32([[2.0**24, 2, 2, 1, 2, 2, 2, 0, 1, 1, 0, 1, 1, 2, 1, 0, 2, 2, 0, 1, 1, 1, 1]])
    apart = np.float32([[[-1.0]], [[1 + 2.0**-12]]])
    found = {
        name: (
            float(rule.scaled_sums(row, (1,), np.float32(1))[0]) - 2.0**24,
            float(rule.scaled_sums(apart, (0, 2), np.float32(1 + 2.0**-12))[0]),
        )
        for name, rule in order.RULES.items()
        if rule.scaled_sums is not None
    }
    # (1 + 2^-12)^2 - (1 + 2^-12), from the exact square or from one that lost 2^-24.
    assert found == {
        "parts_in_16_lanes": (28.0, 2.0**-12 + 2.0**-24),
        "parts_in_8_lanes": (24.0, 2.0**-12),
        "parts_in_4_lanes": (24.0, 2.0**-12 + 2.0**-24),
    }
