"""MEAN and SUM: sums that are chosen one by one, every set of axes, long sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ....rules import mean
from .. import aiming
from ..aiming import Rescaling
from ..draft import Draft, generator, values_of_sum
from ..tflite import Operand, one_operator

OPERATORS = {"MEAN": ("s8", "u8", "s16"), "SUM": ("s8", "u8")}
Array = np.ndarray
_RANGES = {"s8": (-128, 127), "u8": (0, 255), "s16": (-32768, 32767)}
_VERSIONS = {"s8": 2, "u8": 1, "s16": 3}
_POINTS = ((-128, 127), (127, -128), (3, -5), (0, 0), (-77, 0), (-128, -128), (126, 41))
# Sums that are looked at per case.
_MOST_SUMS = 6_000
# Shape, axes, whether dimensions are kept.
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...], bool], ...] = (
    ((1, 4, 5, 3), (1, 2), False),
    ((1, 4, 5, 3), (1, 2), True),
    ((2, 3, 4, 17), (1, 2), True),
    ((2, 3, 4, 5), (2, 1), False),
    ((2, 3, 4, 5), (3,), False),
    ((2, 3, 4, 5), (-1,), True),
    ((2, 3, 4, 5), (0,), False),
    ((2, 3, 4, 5), (0, 2), True),
    ((2, 3, 4, 5), (0, 1, 2, 3), False),
    ((2, 3, 4, 5), (1, -1), False),
    ((7, 6), (1,), False),
    ((7, 6), (0,), True),
    ((23,), (0,), False),
    ((3, 1, 4), (1,), False),
    ((3, 5, 2), (1, 2), False),
    ((1, 1, 1, 33), (1, 2), False),
    ((1, 7, 7, 8), (1, 2), True),
    # Equal dimensions: sums along other axes have the same shape.
    ((6, 6), (0,), False),
    ((6, 6), (1,), False),
    ((4, 4, 4), (0, 1), False),
    ((4, 4, 4), (1, 2), False),
    ((3, 3, 3, 3), (1, 2), False),
    ((4, 4, 4), (0, 2), False),
    ((3, 3, 3, 3), (0, 2), False),
    ((3, 3, 3, 3), (3, 1), False),
)
_RANDOM: tuple[tuple[tuple[int, ...], tuple[int, ...], bool], ...] = (
    ((1, 7, 7, 32), (1, 2), False),
    ((1, 4, 4, 64), (1, 2), True),
    ((8, 32), (1,), False),
    ((4, 6, 10), (1,), True),
    ((1, 5, 5, 16), (3,), False),
    ((2, 8, 8, 8), (1, 2), True),
    ((16, 16), (0,), False),
    ((1, 3, 3, 48), (1, 2), False),
    ((1, 6, 6, 40), (1, 2), True),
    ((4, 12, 12), (2,), False),
    ((32, 10), (1,), True),
    ((1, 14, 14, 12), (1, 2), False),
    ((3, 20, 9), (1,), False),
)
# Summands per result: powers of two, which fold into multipliers exactly, and others.
_COUNTS = (2, 4, 16, 3, 6, 7, 10, 49)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Ties and near ties, saturation, zero points, axes, long sums, random ones, and what must be refused."""
    yield from _aimed(operator, types)
    yield from _saturated(operator, types)
    low, high = _RANGES[types]
    for number, (shape, axes, kept) in enumerate(_SHAPES):
        random = generator(operator, types, "shapes", number)
        x = random.integers(low, high + 1, shape)
        first, output = aiming.generic_scales(random, 2)
        count = math.prod(shape[a] for a in axes)
        # Results spread over the quantized values: averages of many are close to their middle, sums far from it.
        spread = 2 * np.sqrt(count) if operator == "SUM" else 2 / np.sqrt(count)
        scales = float(first), float(output * np.float32(spread))
        point, output_point = _point(types, -7 + number), _point(types, 5 - number)
        note = f"{list(shape)} along {list(axes)}" + (", dimensions kept" if kept else "")
        yield _draft(operator, types, x, axes, kept, scales, (point, output_point), "shapes", note)
    yield from _long(operator, types)
    yield from _far(operator, types)
    yield _longest(operator, types)
    for number, (shape, axes, kept) in enumerate(_RANDOM):
        yield _ordinary(operator, types, shape, axes, kept, number)
    yield from _rejects(operator, types)


def _point(types: str, signed: int) -> int:
    return {"s8": signed, "u8": signed + 128}.get(types, 0)


def _aimed(operator: str, types: str) -> Iterator[Draft]:
    """One scale pair and count per case; every result's sum is chosen."""
    number = 0
    for count in _COUNTS:
        random = generator(operator, types, "scales", count)
        generic = aiming.generic_scales(random, 4)
        pairs = [
            ("ties", "the scales' ratio is a power of two", 0.5, 0.5 if operator == "MEAN" else 4.0),
            ("near ties", "generic scales", float(generic[0]), float(generic[1]) / (1 if operator == "MEAN" else 0.5)),
        ]
        if count in (2, 7):
            ratio = np.float32(0.25) if operator == "MEAN" else np.float32(2.0)
            pairs.append(("near ties", "generic scales", float(generic[2]), float(generic[3] * ratio)))
        if count in (4, 10):
            pairs.append(("ties", "the scales' ratio is 3/4", 0.75, 1.0))
        odd = 2 * count + 3 if count % 3 else 2 * count + 5
        quotient = float(odd) * (2.0 if operator == "MEAN" else 4.0)
        top = float(np.float32(odd + 2 * (number % 3) - 2))
        pairs.append(("near ties", "scales of integers: ties of quotients that no multiplier holds", top, quotient))
        if operator == "MEAN" and count in (3, 7, 10):
            what = "scales of integers, by which one unit of the multiplier tells"
            pairs += [("near ties", what, *pair) for pair in _telling(count)]
        for aim, what, first, output in pairs:
            point, output_point = (_point(types, p) for p in _POINTS[number % len(_POINTS)])
            yield _chosen(operator, types, count, (first, output), (point, output_point), aim, what, random)
            number += 1


def _telling(count: int) -> list[tuple[float, float]]:
    """Three pairs of whole scales for means of `count` by which most neighbouring multipliers part from the right one.

    Ratios are those by which one unit of the sum is about one of the result, and which tie.
    """
    sums = np.arange(-300, 301)
    parts: dict[tuple[float, float], set[str]] = {}
    for top in (3, 5, 7, 9, 11, 13, 15, 17, 19, 23):
        for bottom in (6, 10, 14, 18, 22, 26, 34, 38, 46):
            pair = float(count * top), float(bottom)
            ways = _means("MEAN", count, pair, (0, 0))(sums)
            right = np.clip(ways["q31_count_folded_two_step_up_away"], -128, 127)
            parts[pair] = {
                name
                for name, way in ways.items()
                if name.startswith("q31_count_folded_two") and (np.clip(way, -128, 127) != right).any()
            }
    chosen: list[tuple[float, float]] = []
    told: set[str] = set()
    for _ in range(3):
        best = max(parts, key=lambda pair: len(parts[pair] - told))
        told |= parts.pop(best)
        chosen.append(best)
    return chosen


def _chosen(
    operator: str,
    types: str,
    count: int,
    scales: tuple[float, float],
    points: tuple[int, int],
    aim: str,
    what: str,
    random: np.random.Generator,
    results: int = 48,
) -> Draft:
    low, high = _RANGES[types]
    divisor = count if operator == "MEAN" else 1
    to = Rescaling(
        scales[0],
        np.full(results, np.float32(1 / divisor), np.float32),
        scales[1],
        points[1],
        low,
        high,
        further=_means(operator, count, scales, points) if operator == "MEAN" else None,
    )
    ends = count * (low - points[0]), count * (high - points[0])
    every = np.arange(ends[0], ends[1] + 1)
    if len(every) > _MOST_SUMS:
        drawn = aiming.candidates(to, _MOST_SUMS // results, np.zeros(1, np.int64), max(map(abs, ends)), random)
        every = np.unique(np.clip(drawn, *ends))
    ways = np.stack(list(aiming.answers(replace(to, second=to.second[:1]), every[:, None]).values()))[..., 0]
    some = aiming.uncommon(ways)
    best = some[aiming.cover(ways[:, some, None], results)]
    sums = np.concatenate([every[best], random.choice(every, results - len(best))])
    x = np.stack([values_of_sum(int(s) + count * points[0], count, low, high, random) for s in sums], axis=1)
    note = f"{count} summands, {what}"
    shape = (1, count, results) if _parts(count) == 1 else (1, _parts(count), -1, results)
    axes = tuple(range(1, len(shape) - 1))
    x = x.reshape(shape)
    seeks = {"sums": sums.tolist()}
    return _draft(operator, types, x, axes, False, scales, points, aim, note, seeks)


def _parts(count: int) -> int:
    """Dimension of the first of two summed axes; 1 where the count has no divisor."""
    return next((k for k in range(2, count) if count % k == 0), 1)


def _means(
    operator: str, count: int, scales: tuple[float, float], points: tuple[int, int]
) -> Callable[[Array], Mapping[str, Array]]:
    """Every rule of slot `mean` on sums without zero points, its output zero point taken off."""

    def ways(sums: Array) -> dict[str, Array]:
        found = {}
        first, output = (float(np.float32(s)) for s in scales)
        for name, rule in mean.RULES.items():
            if name in ("integer_trunc", "binary32_divide", "binary32_reciprocal"):
                continue
            if rule.prepare_scales is not None:
                total, arrays = sums + count * points[0], rule.prepare_scales(first, output, count, *points)
            elif rule.prepare_affine is not None:
                total, arrays = sums + count * points[0], rule.prepare_affine(first / output, count, *points)
            else:
                arrays = rule.prepare(first / output, count)
                found[name] = rule.apply(sums, arrays)
                rough = rule.prepare(float(np.float32(first) / np.float32(output)), count)
                found[f"{name} binary32"] = rule.apply(sums, rough)
                multiplier = arrays["multiplier"]
                for by in (1, -1):
                    found[f"{name} {by:+d}"] = rule.apply(sums, {**arrays, "multiplier": multiplier + by})
                for bits in (8, 15, 16, 23, 24):
                    unit = 1 << max(0, int(multiplier).bit_length() - bits)
                    for half in (0, unit // 2):
                        kept = np.asarray((int(multiplier) + half) // unit * unit)
                        found[f"{name} {bits} {half}"] = rule.apply(sums, {**arrays, "multiplier": kept})
                continue
            value = rule.apply(total, arrays)
            if name == "exact_even":
                total = sums
                value = rule.apply(total, arrays) + points[1]
            found[name] = value - points[1]
        return found

    return ways


def _saturated(operator: str, types: str) -> Iterator[Draft]:
    """Results at both ends, one inside, one beyond, and far beyond."""
    low, high = _RANGES[types]
    for number, (point, output_point) in enumerate(((-128, 0), (127, 0), (0, -128), (0, 127), (-3, 5))):
        random = generator(operator, types, "saturation", number)
        points = _point(types, point), _point(types, output_point)
        first, output = float(aiming.generic_scales(random, 1)[0]), 1.0
        count = 5
        output = first / 4 * (1 if operator == "MEAN" else count)
        # A step of the output is about count / 4 of the sum.
        step = count / 4
        quantized = {end + by for end in (low, high) for by in (-40, -3, -2, -1, 0, 1, 2, 3, 40)}
        quantized |= {points[1] - 1, points[1], points[1] + 1}
        sums = [round((code - points[1]) * step) for code in sorted(quantized)]
        ends = count * (low - points[0]), count * (high - points[0])
        sums = sorted({min(max(s, ends[0]), ends[1]) for s in (*sums, *ends)})
        x = np.stack([values_of_sum(s + count * points[0], count, low, high, random) for s in sums], axis=0)
        note = f"results up to the ends and beyond, zero points {points[0]} and {points[1]}"
        yield _draft(operator, types, x, (1,), False, (first, output), points, "saturation", note)


def _far(operator: str, types: str) -> Iterator[Draft]:
    """Results beyond 16 bits before they saturate."""
    low, high = _RANGES[types]
    for number, ratio in enumerate((300.0, 1777.0)):
        random = generator(operator, types, "far", number)
        points = _point(types, (-128, 3)[number]), _point(types, (17, -40)[number])
        first = float(aiming.generic_scales(random, 1)[0])
        x = random.integers(low, high + 1, (1, 3, 24))
        output = float(np.float32(first / ratio * (3 if operator == "SUM" else 1)))
        x[0, :, :4] = points[0]
        note = f"results up to {ratio:g} times the quantized values"
        yield _draft(operator, types, x, (1,), False, (first, output), points, "saturation", note)


def _longest(operator: str, types: str) -> Draft:
    """One sum beyond 2^24, which binary32 does not hold: it stands at a place where one unit counts."""
    low, high = _RANGES[types]
    count, point = (515, 0) if types == "s16" else (66001, low)
    # 100.5 of the output, a tie, and 4 k + 1, of which binary32 makes 4 k.
    total, step = 201 * 83469, 2 * 83469
    left, each = (high - point) * count - total, -(-((high - point) * count - total) // count)
    x = np.full(count, high)
    x[: left // each] -= each
    x[-1] -= left % each
    scales = (float(count) if operator == "MEAN" else 1.0), float(step)
    points = point, _point(types, -5)
    note = f"{count} summands, a sum beyond 2^24"
    return _draft(operator, types, x.reshape(1, -1), (1,), False, scales, points, "saturation", note)


def _long(operator: str, types: str) -> Iterator[Draft]:
    """Sums that 16, 18, 20 and (of wider types) 24 bits do not hold."""
    low, high = _RANGES[types]
    for number, count in enumerate((300, 1100, 4200)):
        random = generator(operator, types, "long", number)
        points = _point(types, (-128, 127, -128)[number]), _point(types, 3)
        first = float(aiming.generic_scales(random, 1)[0])
        ratio = (1.0 if operator == "MEAN" else float(count)) * 1.37
        # Three results beside ties near the largest sums, one of ordinary quantized values.
        x = random.integers(low, high + 1, (count, 4))
        x[:, :3] = high if number != 1 else low
        real = 1 / (ratio * (count if operator == "MEAN" else 1))
        for column in range(3):
            total = int((x[:, column] - points[0]).sum())
            tie = round((math.trunc(total * real) - np.sign(total) * 0.5) / real) + column - 1
            down = total - tie
            for k in range(count):
                if down == 0:
                    break
                by = min(down, int(x[k, column]) - low) if down > 0 else max(down, int(x[k, column]) - high)
                x[k, column] -= by
                down -= by
            x[:, column] = random.permutation(x[:, column])
        note = f"{count} summands"
        yield _draft(operator, types, x, (0,), False, (first, first * ratio), points, "saturation", note)


def _ordinary(
    operator: str, types: str, shape: tuple[int, ...], axes: tuple[int, ...], kept: bool, number: int
) -> Draft:
    """What a random suite has: uniform quantized values, scales of an ordinary network."""
    random = generator(operator, types, "random", number)
    low, high = _RANGES[types]
    x = random.integers(low, high + 1, shape)
    first = float(np.float32(random.integers(1000, 90000) / 1e6))
    count = math.prod(shape[a] for a in axes)
    ratio = float(np.sqrt(count)) * 2 if operator == "SUM" else 1.0 if number % 2 else 0.5
    points = (0, 0) if types == "s16" else tuple(int(v) for v in random.integers(low, high + 1, 2))
    note = f"{list(shape)} along {list(axes)}"
    return _draft(operator, types, x, axes, kept, (first, first * ratio), (points[0], points[1]), "random", note)


def _draft(
    operator: str,
    types: str,
    x: Array,
    axes: Sequence[int],
    kept: bool,
    scales: tuple[float, float],
    points: tuple[int, int],
    aim: str,
    note: str,
    seeks: Mapping[str, object] | None = None,
) -> Draft:
    reduced = {a % x.ndim for a in axes}
    shape = [1 if i in reduced else size for i, size in enumerate(x.shape) if kept or i not in reduced]
    where = Operand("s32", (len(axes),), data=np.array(axes, np.int32), name="axes")
    content = one_operator(
        operator,
        [Operand(types, x.shape, scales[0], points[0]), where],
        [Operand(types, shape, scales[1], points[1])],
        {"keep_dims": kept},
        _VERSIONS[types],
    )
    return Draft(aim, content, {"input0": x.astype(_dtype(types))}, note, seeks=seeks or {})


def _dtype(types: str) -> str:
    return f"{'u' if types == 'u8' else 'i'}{2 if types == 's16' else 1}"


def _rejects(operator: str, types: str) -> Iterator[Draft]:
    """Models without a meaning."""
    x = np.zeros((2, 3), _dtype(types))
    data = Operand(types, x.shape, 0.5)
    why = "an axis that the input does not have"
    axes = Operand("s32", (1,), data=np.array([2], np.int32), name="axes")
    content = one_operator(operator, [data, axes], [Operand(types, (2,), 0.5)], {"keep_dims": False}, _VERSIONS[types])
    yield Draft("rejects", content, {"input0": x}, why, why)
