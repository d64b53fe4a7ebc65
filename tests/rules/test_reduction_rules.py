"""Averages, means, softmax, norms and interpolation against the exact oracle, and cases that tell rules apart."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from bittrue.arithmetic import exact
from bittrue.rules import average, interpolate, log_softmax, mean, normalize, rules, softmax

F32 = np.float32

# slot -> rule -> what it makes of one literal case, the same for every rule of the slot.
CASES: dict[str, dict[str, list[float]]] = {
    # The averages of -1 and -2, of three numbers with the sum 5, and twice of 13 with the sum 13.
    "average": {
        "integer_half_away": [-2, 2, 1, 1],
        "integer_half_up": [-1, 2, 1, 1],
        "integer_trunc": [-1, 1, 1, 1],
        "binary32_divide": [-1.5, 1.6666666269302368, 1.0, 1.0],
        "binary32_reciprocal": [-1.5, 1.6666667461395264, 1.0, 1.0],
        "binary32_reciprocal_in_fours": [-1.5, 1.6666667461395264, 0.9999999403953552, 0.9999999403953552],
    },
    # Pairs with the sums -12 and -13, the output scale being 4 times the input scale: -1.5 and -1.625.
    "mean": {
        "q31_count_folded_two_step_up_away": [-2, -2],
        "q31_count_folded_one_step_up": [-1, -2],
        "integer_trunc": [-6, -6],
        # And the sum 5 of three.
        "binary32_divide": [-6.0, -6.5, 1.6666666269302368],
        "binary32_reciprocal": [-6.0, -6.5, 1.6666667461395264],
        # 3 / 4, -6 / 4 and -2 / 4 with the zero points 1 and 10; the last rule does not divide.
        "binary32_affine_even": [10, 8, 8, 903],
        "binary32_fused_affine_even": [10, 8, 8, 902],
        "binary32_real_two_step_up_up": [10, 8, 9, -1511],
        "binary32_real_two_step_up_away": [10, 7, 8, -1511],
        "binary32_affine_away": [9, 0, 4, -16113],
        "binary32_fused_affine_away": [9, 0, 4, -16112],
        # Without the output's zero point.
        "exact_even": [1, -2, 0, -511],
    },
    # The row (18, 9), in 1/128 for the integer rules; 18 / sqrt(405) is 0.89443, or 114.49 of 128. Then -105 in a
    # long row, -6.34 of 128: two roundings take it to -6.5 and -7.
    "normalize": {
        "q31_exponent_plus_7_two_step_up_away": [114, 57, -7],
        "q31_exponent_plus_7_one_step_up": [114, 57, -6],
        "q31_times_128_two_step_up_away": [115, 57, -6],
        # And the first of a row whose squares are rounded, or not.
        "binary32_divide": [0.8944272398948669, 0.44721361994743347, -0.049560703337192535, 0.3827533721923828],
        "binary32_divide_by_eights_then_fused": [
            *(0.8944272398948669, 0.44721361994743347, -0.049560703337192535, 0.3827534019947052)
        ],
    },
    # Three equal values, in units of 2^-15 (a third is 10922.67) or of about two thirds.
    "softmax": {
        "exp_f5_sum_f12_reciprocal_away": [10923, 10923, 10923],
        "tables_513_one_step_up": [10922, 10922, 10922],
        "binary32_table_away": [8677679, 8677679, 8677679, 16583843, 9449189],
        "u16_table_two_step_up": [8677679, 8677679, 8677679, 16583799, 9449235],
        "binary32_table_half_up": [8677680, 8677680, 8677680, 16583844, 9449190],
        # A third is rounded before it is divided by the output's scale.
        "binary32_reals_away": [8677678, 8677678, 8677678, 16583842, 9449189],
        # In units of 2^-8 always.
        "counted_table_half_up": [85, 85, 85],
    },
    # The pixels -3 and -2, resized from 2 to 4.
    "interpolate": {
        "ten_bits_half_away": [-3, -3, -2, -2, 0, 57, 114, 172, 200, 200, 200],
        "ten_bits_half_up": [-3, -2, -2, -2, 0, 57, 114, 172, 200, 200, 200],
        "binary32_products_half_up": [-2, -2, -1, -1, 198, 170, 129],
        "binary32_products": [
            -3.0,
            -2.5,
            -2.0,
            -2.0,
            0.8379999995231628,
            0.7199999690055847,
            42.857147216796875,
            100.0,
            157.14288330078125,
        ],
        "eleven_bits_half_up": [-3, -2, -2, -2, 0, 57, 114, 171, 200, 200, 200],
        "binary32_weights_half_up": [-2, -2, -1, -1, 197, 169, 129],
        "binary32_fused_products_half_up": [-2, -2, -1, -1, 197, 170, 129],
        "binary32_fused_weights_half_up": [-2, -2, -1, -1, 197, 170, 128],
        "binary32_fused_products": [
            -3.0,
            -2.5,
            -2.0,
            -2.0,
            0.8379999995231628,
            0.7199999690055847,
            42.85715103149414,
            100.00001525878906,
            157.1428680419922,
        ],
        "binary32_fused_weights": [
            -3.0,
            -2.5,
            -2.0,
            -2.0,
            0.8379999399185181,
            0.7199999690055847,
            42.85715103149414,
            100.00001525878906,
            157.1428680419922,
        ],
        "binary32_weights": [
            -3.0,
            -2.5,
            -2.0,
            -2.0,
            0.8379999399185181,
            0.7199999690055847,
            42.857147216796875,
            100.0,
            157.14288330078125,
        ],
        "binary32_ends": [
            -3.0,
            -2.5,
            -2.0,
            -2.0,
            0.8379999995231628,
            0.7200000286102295,
            42.857147216796875,
            100.0,
            157.14288330078125,
        ],
        "binary32_differences": [
            -3.0,
            -2.5,
            -2.0,
            -2.0,
            0.8380000591278076,
            0.7199999094009399,
            42.857147216796875,
            100.00001525878906,
            157.1428680419922,
        ],
        "binary32_fused_differences": [
            -3.0,
            -2.5,
            -2.0,
            -2.0,
            0.8379999995231628,
            0.7199999690055847,
            42.857147216796875,
            100.0,
            157.1428680419922,
        ],
        "binary32_differences_unlimited": [
            -3.0,
            -2.5,
            -2.0,
            -2.0,
            0.8380000591278076,
            0.7199999094009399,
            42.857147216796875,
            100.0,
            157.14288330078125,
        ],
        "binary32_halves": [-3.0, -2.5, -2.0, -2.0, 0.75, 1.3499999046325684, 100.0, 100.0, 100.0],
    },
    "log_softmax": {
        "exp_f5_sum_f12_logarithm_away": [-7, -18, -52, -65536],
        "binary32_table_even": [-7, -18, -52, -1485],
    },
}


TELLING_PIXELS, TELLING_WEIGHTS = (200, 100, 198, 214), (0.125, 0.8)
# And two whose bits follow from where products are fused to sums.
FUSED_PIXELS, FUSED_WEIGHTS = ([216, 81], [251, 53], [28, 252], [193, 120]), (0.475, 0.5)


def interpolated(name: str, pixels: list[int], out: int, half_pixel: bool = False) -> np.ndarray:
    rule = interpolate.RULES[name]
    axis = rule.prepare(len(pixels), out, False, half_pixel)
    row = np.array(pixels, F32 if name.startswith("binary32_") and not name.endswith("_up") else np.int64)
    low, high = row[axis["low"]], row[axis["high"]]
    return rule.apply((low, low, high, high), np.zeros(1, axis["weight"].dtype), axis["weight"])


def result(slot: str, name: str) -> list[float]:
    real = name.startswith(("binary32_divide", "binary32_reciprocal"))
    if slot == "average":
        totals = np.array([[-3], [5], [13], [13]], F32 if real else np.int64)
        return average.RULES[name](totals, np.array([[2], [3], [13], [13]]))[:, 0].tolist()
    if slot == "mean":
        rule = mean.RULES[name]
        if rule.prepare_scales is not None:
            # Zero points 1 and 10; -6 / 4 and -2 / 4 are ties. Then a sum next to a tie.
            ties = rule.apply(np.array([3, -6, -2]), rule.prepare_scales(1.0, 1.0, 4, 1, 10)).tolist()
            telling = rule.prepare_scales(0.6505657434463501, 0.08605505526065826, 10, 79, 111)
            return [*ties, int(rule.apply(np.array([-1356]), telling)[0])]
        if rule.prepare_affine is not None:
            ties = rule.apply(np.array([3, -6, -2]), rule.prepare_affine(1.0, 4, 1, 10)).tolist()
            return [*ties, int(rule.apply(np.array([1684]), rule.prepare_affine(1.804147481918335, 3, 55, -11))[0])]
        of_two = rule.apply(np.array([-12, -13], F32 if real else np.int64), rule.prepare(0.25, 2)).tolist()
        return of_two + (rule.apply(F32([5]), rule.prepare(0.25, 3)).tolist() if real else [])
    if slot == "normalize":
        short, long = (np.array([row], F32 if real else np.int64) for row in ([18, 9], [-105] + [150] * 199))
        rule_of = normalize.RULES[name]
        third = rule_of(F32([[17 / 7, 17 / 3, 1.5]]))[0, :1].tolist() if real else []
        return [*rule_of(short)[0].tolist(), rule_of(long)[0, 0].item(), *third]
    if slot == "softmax":
        # Beyond 2^23 half a unit cannot be added in binary32 without rounding.
        length = (3,) if softmax.RULES[name].counted else ()
        prepared = {**softmax.RULES[name].prepare(1 / 16, 1.0, *length), "output_scale": F32(3.841273255034139e-08)}
        prepared["input_zero_point"] = np.int64(5)
        # And a row of two, for rules whose units are the output's.
        rows = [[0, 0, 0], [0, -9, -255]] if softmax.RULES[name].scaled else [[0, 0, 0]]
        return softmax.RULES[name].apply(np.array(rows), prepared, 15).reshape(-1)[:5].tolist()
    if slot == "log_softmax":
        logarithm = log_softmax.RULES[name]
        prepared = {**logarithm.prepare(0.7), "output_scale": F32(1 / 16)}
        return logarithm.apply(np.array([[4, 3, 0, -128]]), prepared)[0].tolist()
    inside = interpolated(name, [-3, -2], 4).tolist()
    if name.startswith("binary32_") and not name.endswith("_up"):
        # Four corners, off their middle.
        corners = tuple(np.float32([v]) for v in (0.6, 0.4, 1.0, 1.0))
        inside += interpolate.RULES[name].apply(corners, F32([0.7]), F32([0.7])).tolist()
        # Along x, then along y, by sums of products.
        corners = tuple(np.float32([v]) for v in (2.6, 0.1, 2.2, 0.5))
        inside += interpolate.RULES[name].apply(corners, F32([0.8]), F32([0.5])).tolist()
        # Centres of pixels, by one of two orders.
        inside += interpolated(name, [0, 200], 7, True)[2:5].tolist()
    elif name.startswith("binary32_"):
        # A sum just below one half, by one of the two orders.
        corners = tuple(np.array([v]) for v in TELLING_PIXELS)
        inside += interpolate.RULES[name].apply(corners, F32([TELLING_WEIGHTS[0]]), F32([TELLING_WEIGHTS[1]])).tolist()
        corners = tuple(map(np.array, FUSED_PIXELS))
        inside += interpolate.RULES[name].apply(corners, F32([FUSED_WEIGHTS[0]]), F32([FUSED_WEIGHTS[1]])).tolist()
    else:
        # Weights of fractions that neither 1024ths nor 2048ths hold.
        inside += interpolated(name, [0, 200], 7).tolist()
    return inside


@pytest.mark.parametrize(("slot", "name"), [(slot, name) for slot in CASES for name in CASES[slot]])
def test_shipped_cases(slot: str, name: str) -> None:
    assert result(slot, name) == CASES[slot][name]


@pytest.mark.parametrize("slot", sorted(CASES))
def test_every_pair_of_rules_is_told_apart(slot: str) -> None:
    assert set(CASES[slot]) == set(rules(slot)), "every rule of the slot needs its result of the shipped case"
    for one, two in combinations(sorted(CASES[slot]), 2):
        assert CASES[slot][one] != CASES[slot][two], f"the shipped case does not tell {one} from {two}"


def two_step(value: int, multiplier: int, exponent: int) -> int:
    high = exact.doubling_high_multiply_up(exact.wrap_s32(value * 2 ** max(exponent, 0)), multiplier)
    return exact.divide_by_power_of_two_away(high, max(-exponent, 0))


def test_averages_against_fractions() -> None:
    totals = [*range(-40, 41), 2**31 - 40, 40 - 2**31, 1234567, -1234567]
    for count in (*range(1, 20), 65536, 2**24 + 1):
        for total in totals:
            away = average.integer_half_away(np.array([total]), np.array([count]))
            up = average.integer_half_up(np.array([total]), np.array([count]))
            trunc = average.integer_trunc(np.array([total]), np.array([count]))
            assert int(trunc[0]) == int(Fraction(total, count))
            # With an odd count there are no ties.
            if abs(total) + count // 2 < 2**31:
                assert int(away[0]) == exact.nearest(Fraction(total, count), "away")
            assert int(up[0]) == exact.nearest(Fraction(total, count), "up")


def one_step(value: int, multiplier: int, exponent: int) -> int:
    return exact.nearest(Fraction(value * multiplier) * Fraction(2) ** (exponent - 31), "up")


STEPS = {"two_step_up_away": two_step, "one_step_up": one_step}


@pytest.mark.parametrize("steps", sorted(STEPS))
@pytest.mark.parametrize("real", [1.0, 0.5, 0.3, 1.7, 100.0, 2.0**-20, 2.0**-31, 2.0**-40, 3e4])
def test_folded_counts_against_integers(real: float, steps: str) -> None:
    rule = mean.RULES[f"q31_count_folded_{steps}"]
    totals = [-(2**31), 2**31 - 1, *range(-9, 10), 40000, -40001, 12345678]
    for count in (1, 2, 3, 4, 5, 7, 49, 1000, 65536, 2**20 + 1):
        multiplier, exponent = exact.encode_q31(real)
        gained = min(math.floor(math.log2(count)), 32, 31 + exponent)
        multiplier, exponent = multiplier * 2**gained // count, exponent - gained
        found = rule.apply(np.array(totals), rule.prepare(real, count))
        assert found.tolist() == [STEPS[steps](total, multiplier, exponent) for total in totals]


def test_integer_means_truncate() -> None:
    rule = mean.RULES["integer_trunc"]
    for count in (1, 2, 3, 7):
        totals = [*range(-20, 21), 2**62, -(2**62)]
        expected = [int(math.copysign(abs(total) // count, total)) if abs(total) < 99 else None for total in totals]
        found = rule.apply(np.array(totals), rule.prepare(1.0, count)).tolist()
        assert all(e is None or e == f for e, f in zip(expected, found, strict=True))
        assert found[-2:] == [2**62 // count, -(2**62 // count)]


@pytest.mark.parametrize("seed", range(20))
def test_normalized_rows_against_integers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    width = int(rng.choice([1, 3, 20, 255]))
    row = [int(v) for v in rng.integers(-width, width, int(rng.choice([1, 7, 19, 300])), endpoint=True)]
    multiplier, exponent = exact.inverse_square_root(sum(v * v for v in row))
    expected = {
        "q31_exponent_plus_7_two_step_up_away": [two_step(v, multiplier, exponent + 7) for v in row],
        "q31_exponent_plus_7_one_step_up": [one_step(v, multiplier, exponent + 7) for v in row],
        "q31_times_128_two_step_up_away": [two_step(128 * v, multiplier, exponent) for v in row],
    }
    for name, values in expected.items():
        assert normalize.RULES[name](np.array([row]))[0].tolist() == values


def scaled(difference: int, scale: float) -> tuple[int, bool]:
    """A scaled difference in F5, and whether it counts, from a real scale."""
    multiplier, exponent = exact.encode_q31(min(scale * 2.0**26, 2.0**31 - 1))
    if difference < -math.floor(Fraction(31 * 2**26, 2**exponent)):
        return 0, False
    return exact.doubling_high_multiply_up(exact.wrap_s32(difference * 2**exponent), multiplier), True


def exponential_of(difference: int, scale: float) -> int:
    value, counts = scaled(difference, scale)
    return exact.exp_on_negative(value, 5) if counts else 0


ROWS = [[0, 0, 0], [5, 4, 3, -20], [127, -128], [7], [*range(-128, 128, 5)], [3] * 200]


@pytest.mark.parametrize("scale", [1.0, 0.1, 2.0**-7, 0.003, 7.3, 1e-6, 100.0])
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("bits", [8, 16])
def test_fixed_point_softmax_against_integers(scale: float, row: list[int], bits: int) -> None:
    entries = [exponential_of(v - max(row), scale) for v in row]
    total = sum(exact.divide_by_power_of_two_away(e, 12) for e in entries)
    factor, over = exact.reciprocal(total, 12)
    expected = [
        exact.divide_by_power_of_two_away(exact.doubling_high_multiply_up(factor, e), over + 31 - bits) for e in entries
    ]
    rule = softmax.RULES["exp_f5_sum_f12_reciprocal_away"]
    assert rule.apply(np.array([row]), rule.prepare(scale, 1.0), bits)[0].tolist() == expected


@pytest.mark.parametrize("scale", [1.0, 0.1, 2.0**-7, 0.003, 7.3, 1e-6, 40.0])
@pytest.mark.parametrize("row", ROWS)
def test_log_softmax_against_integers(scale: float, row: list[int]) -> None:
    multiplier, exponent = exact.encode_q31(scale * 2.0**26)
    smallest = -math.floor(Fraction(31 * 2**26, 2**exponent))
    total = sum(exact.divide_by_power_of_two_away(exponential_of(v - max(row), scale), 12) for v in row)
    logarithm = exact.logarithm(total)
    inverse = exact.encode_q31(2.0 ** (31 - exponent) / multiplier)
    threshold = max(smallest - 1, two_step(exact.wrap_s32(logarithm - 2**31), *inverse))
    rule = log_softmax.RULES["exp_f5_sum_f12_logarithm_away"]
    found = rule.apply(np.array([row]), rule.prepare(scale))[0].tolist()
    for value, got in zip(row, found, strict=True):
        difference = value - max(row)
        if difference > threshold:
            raw = exact.wrap_s32(scaled(difference, scale)[0] - logarithm)
            assert got == exact.divide_by_power_of_two_away(raw, 22)
        else:
            assert got < -255


@pytest.mark.parametrize("scale", [1.0, 0.01, 2.0**-12, 1e-5, 1e-8])
def test_table_softmax_against_integers(scale: float) -> None:
    rule = softmax.RULES["tables_513_one_step_up"]
    prepared = rule.prepare(scale, 1.0)
    exp_table, inverse_table = prepared["exp"].tolist(), prepared["reciprocal"].tolist()
    multiplier, exponent = exact.encode_q31(float(F32(scale)) / (10.0 / 65535.0))
    for row in ([0, 0, 0], [5, 4, 3, -20], [32767, -32768, 0], [*range(-3000, 3000, 71)], [1] * 1000):
        entries = [
            exact.lookup_513(exp_table, exact.saturate(two_step(v - max(row), multiplier, exponent) + 32767, 16))
            for v in row
        ]
        headroom = exact.count_leading_zeros_s32(sum(entries))
        normalised = (sum(entries) * 2 ** (headroom - 1) + 2**13) >> 14
        factor = exact.lookup_513(inverse_table, exact.saturate(normalised - 98304, 16))
        expected = [exact.nearest(Fraction(e * factor, 2 ** (31 - headroom)), "up") for e in entries]
        assert rule.apply(np.array([row]), prepared, 15)[0].tolist() == expected


@pytest.mark.parametrize("tie", ["away", "up"])
@pytest.mark.parametrize("mode", [(False, False), (True, False), (False, True)])
def test_ten_bit_interpolation_against_fractions(mode: tuple[bool, bool], tie: str) -> None:
    rule = interpolate.RULES[f"ten_bits_half_{tie}"]
    rng = np.random.default_rng(4)
    for size, out in ((2, 4), (5, 7), (7, 3), (1, 6), (9, 1), (6, 40), (3, 3)):
        y = rule.prepare(size, out, *mode)
        pixels = rng.integers(-128, 128, (4, out))
        corners = tuple(pixels)
        weight_y, weight_x = y["weight"], y["weight"][::-1]
        found = rule.apply(corners, weight_y, weight_x).tolist()
        for i in range(out):
            wy, wx = Fraction(int(weight_y[i]), 1024), Fraction(int(weight_x[i]), 1024)
            p00, p10, p01, p11 = (int(corner[i]) for corner in corners)
            value = p00 * (1 - wy) * (1 - wx) + p10 * wy * (1 - wx) + p01 * (1 - wy) * wx + p11 * wy * wx
            assert found[i] == exact.nearest(value, tie)
        # Positions lie within half a 1024th per step of the true ones.
        align, half = mode
        step = Fraction(size - 1, out - 1) if align and out > 1 else Fraction(size, out)
        for i in range(out):
            true = (i + Fraction(half, 2)) * step - Fraction(half, 2)
            position = int(y["low"][i]) + Fraction(int(y["weight"][i]), 1024)
            assert abs(position - true) <= Fraction(i + 1, 2048) + Fraction(1, 1024)


@pytest.mark.parametrize("name", sorted(interpolate.RULES))
def test_positions_outside_the_image_are_refused(name: str) -> None:
    rule = interpolate.RULES[name]
    if name.startswith("ten_bits"):
        with pytest.raises(ValueError, match="output position 64 reads input position 2 of 2"):
            rule.prepare(2, 65, False, False)
    else:
        assert rule.prepare(2, 65, False, False)["low"].max() == 1


def test_unusable_scales_are_refused() -> None:
    for scale, beta in ((1e-9, 1.0), (1.0, 0.0), (1.0, -1.0), (1.0, float("nan"))):
        with pytest.raises(ValueError, match="must exceed 1"):
            softmax.RULES["exp_f5_sum_f12_reciprocal_away"].prepare(scale, beta)
    with pytest.raises(ValueError, match="left shift"):
        softmax.RULES["tables_513_one_step_up"].prepare(1.0, 1e20)
