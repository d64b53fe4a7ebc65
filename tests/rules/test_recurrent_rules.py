"""Rules of recurrent layers of real numbers against scalar loops, every operation rounded by the exact oracle."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bittrue.arithmetic import exact
from bittrue.rules import row_product, rules


def add(a: float, b: float) -> float:
    return exact.nearest_binary(Fraction(a) + Fraction(b))


def times(a: float, b: float) -> float:
    return exact.nearest_binary(Fraction(a) * Fraction(b))


def times_and_add(a: float, b: float, c: float) -> float:
    return exact.nearest_binary(Fraction(a) * Fraction(b) + Fraction(c))


def over(a: float, b: float) -> float:
    return exact.nearest_binary(Fraction(a) / Fraction(b))


def f32(x: float) -> float:
    return exact.nearest_binary(Fraction(x))


def dot_in_order(row: list[float], x: list[float], start: float) -> float:
    lanes, whole = [0.0] * 4, len(x) // 4 * 4
    for i in range(whole):
        lanes[i % 4] = add(lanes[i % 4], times(row[i], x[i]))
    total = add(start, add(add(add(lanes[0], lanes[1]), lanes[2]), lanes[3]))
    for i in range(whole, len(x)):
        total = add(total, times(row[i], x[i]))
    return total


def dot_by_halves(row: list[float], x: list[float], start: float, alone: bool) -> float:
    blocks = len(x) // 4
    sets = [[0.0] * 4 for _ in range(min(4, blocks) if alone else 1)] or [[0.0] * 4]
    for block in range(blocks):
        # Alone: the sets in turn while four blocks are left, then the remaining ones from the first set on.
        into = sets[block % 4 if alone and len(sets) == 4 else block if alone else 0]
        for lane in range(4):
            into[lane] = add(into[lane], times(row[4 * block + lane], x[4 * block + lane]))
    while len(sets) > 1:
        last = sets.pop()
        sets[-1] = [add(a, b) for a, b in zip(sets[-1], last, strict=True)]
    total = add(add(sets[0][0], sets[0][2]), add(sets[0][1], sets[0][3]))
    for i in range(4 * blocks, len(x)):
        total = add(total, times(row[i], x[i]))
    return add(start, total)


def in_pairs(lanes: list[float]) -> float:
    return add(add(lanes[0], lanes[1]), add(lanes[2], lanes[3]))


def dot_in_pairs(row: list[float], x: list[float], start: float) -> float:
    lanes, whole = [0.0] * 4, len(x) // 4 * 4
    for i in range(whole):
        lanes[i % 4] = times_and_add(row[i], x[i], lanes[i % 4])
    total = add(start, in_pairs(lanes))
    for i in range(whole, len(x)):
        total = times_and_add(row[i], x[i], total)
    return total


def dot_or_in_order(row: list[float], x: list[float], start: float, rows: int) -> float:
    count, lanes = len(x), [0.0] * 4
    if rows < 4 or count < 4:
        for a, b in zip(row, x, strict=True):
            lanes[0] = times_and_add(a, b, lanes[0])
        return add(start, lanes[0])
    for i in range(count):
        # What is left of fours fills the last lanes.
        lane = i % 4 if i < count // 4 * 4 else i % 4 + 4 - count % 4
        lanes[lane] = times_and_add(row[i], x[i], lanes[lane])
    return add(start, in_pairs(lanes))


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_dot_products_follow_their_order(rows: int) -> None:
    rng = np.random.default_rng(1)
    for count in [*range(1, 12), 15, 16, 17, 20, 24, 28, 31, 32, 33, 35, 47, 64, 69]:
        matrix = rng.standard_normal((rows, count)).astype(np.float32)
        x = rng.standard_normal((2, count)).astype(np.float32)
        start = rng.standard_normal((2, rows)).astype(np.float32)
        for name, rule in rules("dot").items():
            found: Any = rule(matrix, x, start)  # type: ignore[operator]
            for b in range(2):
                for r in range(rows):
                    row, vector, first = matrix[r].tolist(), x[b].tolist(), float(start[b, r])
                    expected = {
                        "binary32_lanes_4_in_order": lambda *of: dot_in_order(*of),
                        "binary32_lanes_4_by_halves": lambda *of: dot_by_halves(*of, rows == 1),
                        "binary32_fused_lanes_4_in_pairs": lambda *of: dot_in_pairs(*of),
                        "binary32_fused_lanes_4_or_in_order": lambda *of: dot_or_in_order(*of, rows),
                    }[name](row, vector, first)
                    assert found[b, r] == expected, (name, count, b, r)


def test_dot_rules_are_told_apart() -> None:
    rng = np.random.default_rng(3)
    matrix, x = rng.standard_normal((4, 23)).astype(np.float32), rng.standard_normal(23).astype(np.float32)
    answers = [rule(matrix, x, 0.0).tobytes() for rule in rules("dot").values()]  # type: ignore[operator]
    assert len(set(answers)) == len(answers)


def times_then_add(a: float, b: float, c: float) -> float:
    return add(times(a, b), c)


Joined = Callable[[float, float, float], float]


def vector_logistic(x: float, joined: Joined) -> float:
    if x < -104:
        return 0.0
    half = times(min(x, f32(16.6355324)), 0.5)
    m = float(math.floor(joined(half, f32(1.44269504088896341), 0.5)))
    r = joined(m, f32(2.12194440e-4), joined(m, -0.693359375, half))
    r2 = times(r, r)
    p2, p3, p4, p5 = (f32(c) for c in (0.4999914169, 0.1666687727, 4.18986678e-2, 8.33471306e-3))
    even, odd = joined(r2, p4, p2), joined(r2, p5, p3)
    p = joined(r2, joined(r, odd, even), add(r, 1.0))
    e = p * 2.0**m
    e = times(e, e)
    return over(e, add(1.0, e))


def scalar_logistic(x: float) -> float:
    e = exact.exponential(min(x, f32(16.6355324)))
    return over(e, add(1.0, e))


def tanh(x: float, joined: Joined) -> float:
    most = f32(8.01773357 if joined is times_and_add else 7.90738964)
    x = max(min(x, most), -most)
    x2 = times(x, x)
    p = q = 0.0
    for c in (1.394553628e-8, 2.10273356e-5, 3.520756727e-3, 0.13402161):
        p = joined(p, x2, f32(c))
    for c in (8.015776984e-7, 3.326951409e-4, 2.597254514e-2, 0.467354834, 1.0):
        q = joined(q, x2, f32(c))
    return over(joined(times(x2, x), p, x), q)


ARGUMENTS = np.float32(
    [0, 0.1, -0.1, 0.5, -0.7, 1, -1, 2.5, -3.3, 7.9, -7.95, 10, -15, 16.63, 16.64, 30, -50, -87.5, -103.9, -104, -110]
)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("start", range(4))
def test_activations_follow_their_steps(start: int, fused: bool) -> None:
    rule: Any = rules("activation")[f"binary32{'_fused' * fused}_rational_lanes_4"]
    joined = times_and_add if fused else times_then_add
    for count in (1, 2, 5, ARGUMENTS.size):
        x = ARGUMENTS[:count]
        boundaries = [i for i in range(count) if (start + i) % 4 == 0 and i + 4 <= count]
        inside = {i + lane for i in boundaries for lane in range(4)}
        found = rule.logistic(x, start)
        expected = [
            vector_logistic(float(v), joined) if i in inside else scalar_logistic(float(v)) for i, v in enumerate(x)
        ]
        assert found.tolist() == expected
        assert rule.tanh(x).tolist() == [tanh(float(v), joined) for v in x]


def test_activations_are_told_apart() -> None:
    """`activation`: numbers whose logistic function and hyperbolic tangent the joined forms have one unit off."""
    x = np.float32([0.84375] * 4)
    answers = {
        name: (rule.logistic(x, 0).tobytes(), rule.tanh(x).tobytes()) for name, rule in rules("activation").items()
    }  # type: ignore[attr-defined]
    assert len(set(answers.values())) == len(answers)


def test_row_products_are_told_apart() -> None:
    """`row_product`: a scaled sum that is rounded before it is added, or with it; by fours of rows always before, which
    16 rows are, or a product of matrices.
    """
    rng = np.random.default_rng(11)
    weights, start = rng.integers(-127, 128, (16, 16)).astype(np.int8), rng.standard_normal((16, 16)).astype(np.float32)
    x = rng.standard_normal((16, 16)).astype(np.float32)
    answers = {}
    for name, rule in rules("row_product").items():
        made: Any = row_product.Weights(rule, weights, 0.013)  # type: ignore[arg-type]
        found = [made.add(start[:count], rule.quantize(x[:count], True)) for count in (1, 4, 16)]  # type: ignore[attr-defined]
        answers[name] = [part.tobytes() for part in found]
        if name == "s8_vectors_binary32_scale":
            continue
        q: Any = rule.quantize(x, True)  # type: ignore[attr-defined]
        sums = q.q @ weights.T.astype(np.int64) - q.zero_point[:, None] * weights.sum(axis=1, dtype=np.int64)
        matrices = times_then_add if name.endswith("_by_rows") else times_and_add
        for part, joined in zip(found, (times_and_add, times_then_add, matrices), strict=True):
            for b, row in enumerate(part.tolist()):
                scale = float(np.float32(q.scale[b]) * np.float32(0.013))
                pairs = zip(sums[b].tolist(), start[b].tolist(), strict=True)
                assert row == [joined(float(np.float32(total)), scale, first) for total, first in pairs]
    assert len({b"".join(answer) for answer in answers.values()}) == len(answers)


@pytest.mark.parametrize("count", [1, 5, 15, 16, 17, 32, 45])
def test_gate_normalizations_follow_their_steps(count: int) -> None:
    """`gate_normalization`: sums in order, or in 16 lanes and with joined squares."""
    x = np.random.default_rng(count).standard_normal((2, count)).astype(np.float32)

    def total(values: list[float], squared: bool, lanes: bool) -> float:
        joined = times_and_add if lanes else times_then_add
        step = (lambda v, c: joined(v, v, c)) if squared else add
        whole, result = count // 16 * 16 if lanes else 0, 0.0
        if lanes:
            sums = [0.0] * 16
            for i in range(whole):
                sums[i % 16] = step(values[i], sums[i % 16])
            result = in_pairs([add(add(sums[12 + i], sums[4 + i]), add(sums[8 + i], sums[i])) for i in range(4)])
        for value in values[whole:]:
            result = step(value, result)
        return result

    answers = {}
    for name, rule in rules("gate_normalization").items():
        lanes = name == "binary32_fused_16_lanes"
        answers[name] = rule(x)  # type: ignore[operator]
        for row, found in zip(x.tolist(), answers[name].tolist(), strict=True):
            mean = over(total(row, False, lanes), float(count))
            centred = [add(v, -mean) for v in row]
            root = f32(math.sqrt(add(over(total(centred, True, lanes), float(count)), f32(1e-8))))
            assert found == [times(v, over(1.0, root)) for v in centred]
    if count > 16:
        assert len({found.tobytes() for found in answers.values()}) == len(answers)


def quantized(row: list[float], asymmetric: bool) -> tuple[list[int], float, int]:
    low, high = min([*row, 0.0]), max([*row, 0.0])
    if low == high:
        return [0] * len(row), 1.0, 0
    if asymmetric:
        step = float(add(high, -low)) / 255.0
        ends = (abs(-128.0) + abs(low / step), 127.0 + abs(high / step))
        exact_point = -128.0 - low / step if ends[0] < ends[1] else 127.0 - high / step
        point = min(max(exact.nearest(Fraction(exact_point), "away"), -128), 127)
        scale, least = f32(step), -128
        inverse = f32(1.0 / scale)
    else:
        largest = max(high, -low)
        scale, inverse, point, least = over(largest, 127.0), over(127.0, largest), 0, -127
    out = []
    for i, value in enumerate(row):
        scaled = times(value, inverse)
        if i < len(row) // 8 * 8:
            whole = exact.nearest(Fraction(add(scaled, -0.5 if scaled < 0 else 0.5)), "trunc")
        else:
            whole = exact.nearest(Fraction(scaled), "away")
        out.append(min(max(whole + point, least), 127))
    return out, scale, point


@pytest.mark.parametrize("asymmetric", [False, True])
def test_rows_are_quantized_element_by_element(asymmetric: bool) -> None:
    rule: Any = rules("row_product")["s8_vectors_binary32_scale"]
    rng = np.random.default_rng(4)
    rows = (rng.standard_normal((60, 19)) * 10.0 ** rng.integers(-6, 6, (60, 1))).astype(np.float32)
    rows[0], rows[1], rows[2] = 0, np.abs(rows[1]), -np.abs(rows[2])
    # The float just below one half becomes one where a half is added to it.
    rows[3] = np.float32(0.49999997)
    rows[3, 18] = 127
    got = rule.quantize(rows, asymmetric)
    for row, q, scale, point in zip(rows, got.q, got.scale, got.zero_point, strict=True):
        assert (q.tolist(), float(scale), int(point)) == quantized([float(v) for v in row], asymmetric)
    if not asymmetric:
        assert got.q[3].tolist() == [1] * 16 + [0, 0, 127]
    with pytest.raises(OverflowError):
        rule.quantize(np.float32([[1, np.inf]]), asymmetric)
    with pytest.raises(OverflowError):
        rule.quantize(np.float32([[np.nan, 1]]), asymmetric)


def test_row_sums_and_mirrored_weights() -> None:
    rule: Any = rules("row_product")["s8_vectors_binary32_scale"]
    rng = np.random.default_rng(5)
    for count in (1, 7, 8, 15, 16, 31, 2047, 2048, 4100):
        weights = rng.integers(60, 128, (2, count)).astype(np.int8)
        weights[1] = -weights[1] - 1
        lanes = [[0] * 8 for _ in range(2)]
        wide, half = count // 16 * 16, count // 8 * 8
        expected = []
        for r in range(2):
            for i in range(wide):
                lanes[r][i % 16 // 2] += int(weights[r, i])
            for i in range(wide, half):
                lanes[r][i - wide] += int(weights[r, i])
            expected.append(sum(map(exact.wrap_s16, lanes[r])) + sum(int(v) for v in weights[r, half:]))
        assert rule.row_sums(weights).tolist() == expected
        weights[:, ::3] = -128
        mirrored = rule.mirrored(weights)
        assert all(
            mirrored[r, i] == (128 if i < wide and weights[r, i] == -128 else weights[r, i])
            for r in range(2)
            for i in range(count)
        )
