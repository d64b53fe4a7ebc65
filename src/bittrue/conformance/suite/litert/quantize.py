"""QUANTIZE and DEQUANTIZE: every quantized value, by scales whose products tie; real numbers at ties and one unit
beside.

Runtimes take whole vectors one way and the rest of a row another, so what matters stands at the end once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

import numpy as np

from ....rules import quantize as rules
from ....rules import rescale
from .. import aiming
from ..aiming import Rescaling
from ..draft import Draft, generator
from ..tflite import Operand, one_operator

OPERATORS = {
    "QUANTIZE": ("s8", "u8", "s16", "s8-u8", "u8-s8", "s8-s16", "s16-s8"),
    "DEQUANTIZE": ("s8", "u8", "s16"),
}
Array = np.ndarray
_RANGES = {"s8": (-128, 127), "u8": (0, 255), "s16": (-32768, 32767)}
_DTYPES = {"s8": np.int8, "u8": np.uint8, "s16": np.int16, "f32": np.float32}
_VERSIONS = {"s8": 2, "u8": 2, "s16": 3}
# As s8: of input and output.
_POINTS = ((-128, 127), (127, -128), (0, 5), (-3, 0), (64, -77), (-128, -128), (127, 127), (1, -1))
# Behind the last whole vector of 16, and of 8.
_TAIL = 15


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Between integers, from real numbers, to real numbers."""
    if operator == "DEQUANTIZE":
        yield from _dequantized(types)
        return
    source, _, output = types.partition("-")
    yield from _requantized(types, source, output or source)
    if not output:
        yield from _from_reals(source)
    yield from _rejects(types, source, output or source)


def _point(kind: str, signed: int) -> int:
    return {"s8": signed, "u8": signed + 128}.get(kind, 0)


def _quantized(kind: str, random: np.random.Generator) -> Array:
    """All quantized values of 8 bits; of 16 bits some of every magnitude."""
    low, high = _RANGES[kind]
    if kind != "s16":
        return random.permutation(np.arange(low, high + 1))
    few = np.concatenate([np.arange(-40, 40), random.integers(low, high + 1, 200), [low, low + 1, high - 1, high]])
    return random.permutation(few)


def _requantized(types: str, source: str, output: str) -> Iterator[Draft]:
    """Scale pairs that part the ways to rescale 9-bit numbers, found among many."""
    random = generator("QUANTIZE", types, "pairs")
    low, high = _RANGES[output]
    pairs = _pairs(random, types)
    quantized = np.stack([_quantized(source, random) for _ in range(len(_POINTS))])
    for at, (point, output_point) in enumerate(_POINTS):
        if at and "s16" in (source, output) and source == output:
            break
        points = _point(source, point), _point(output, output_point)
        mine = [pair for k, pair in enumerate(pairs) if k % len(_POINTS) == at or source == output == "s16"]
        acc = quantized[at] - points[0]
        found = []
        for _, first, second in mine:
            one = np.ones(1, np.float32)
            to = Rescaling(first, one, second, points[1], low, high, further=_byte_factor(first, second))
            found.append(aiming.answers(to, acc[:, None]))
        names = sorted(set.intersection(*(set(f) for f in found)))
        stacked = np.stack([[f[name][:, 0] for f in found] for name in names])
        for k in aiming.cover(stacked, 4 if source != output or source != "s16" else 16):
            aim, first, second = mine[k]
            x = _with_tail(quantized[at], stacked[:, k])
            note = f"scales {first!r} and {second!r}, zero points {points[0]} and {points[1]}"
            yield _draft("QUANTIZE", types, source, output, x, (first, second), points, aim, note)
    for at, ratio in enumerate((300.0, 1500.0)):
        points = _point(source, (-128, 5)[at]), _point(output, (17, -40)[at])
        scales = ratio * (256.0 if output == "s16" != source else 1.0), 1.0
        yield _draft("QUANTIZE", types, source, output, quantized[at], scales, points, "saturation", f"ratio {ratio:g}")
    for shape in ((1, 5, 7, 3), (2, 17), (1,), (3, 1, 2, 2), (33,)):
        x = random.integers(*_RANGES[source], shape, endpoint=True)
        first, second = (float(s) for s in aiming.generic_scales(random, 2))
        points = _point(source, -9), _point(output, 21)
        yield _draft("QUANTIZE", types, source, output, x, (first, second), points, "shapes", str(list(shape)))
    for number in range(9):
        random = generator("QUANTIZE", types, "random", number)
        x = random.integers(*_RANGES[source], (1, 8, 8, 4), endpoint=True)
        first, second = (float(np.float32(v / 1e6)) for v in random.integers(2000, 60000, 2))
        points = (
            0 if source == "s16" else int(random.integers(*_RANGES[source], endpoint=True)),
            0 if output == "s16" else int(random.integers(*_RANGES[output], endpoint=True)),
        )
        yield _draft(
            "QUANTIZE", types, source, output, x, (first, second), points, "random", "uniform quantized values"
        )


def _pairs(random: np.random.Generator, types: str) -> list[tuple[str, float, float]]:
    """Aim and scales: powers of two, small fractions, a hair beside these, and generic ones."""
    found: list[tuple[str, float, float]] = []
    down = 9 if types == "s16-s8" else 0
    up = -6 if types == "s8-s16" else 0
    for power in (-8, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 6, -1, -2, -3, -7):
        found.append(("ties", float(2.0 ** (power - down - up)), 1.0))
    for top, bottom in ((3, 2), (3, 4), (3, 8), (5, 4), (5, 8), (5, 16), (7, 8), (7, 16), (9, 8), (11, 4), (13, 32)):
        ratio = np.float32(top / bottom * 2.0 ** -(down + up))
        found.append(("ties", float(ratio), 1.0))
        beside = np.nextafter(ratio, np.float32(random.integers(0, 2) * 1000), dtype=np.float32)
        found.append(("near ties", float(beside), 1.0))
    # Quotients whose 256-fold is a tie, and generic ones.
    for k in (77, 200, 333, 511):
        found.append(("near ties", float(np.float32((k + 0.5) / 256)) * 2.0 ** -(down + up), 1.0))
    # Odd denominators: exact ties of quotients that no multiplier holds.
    for bottom in (3, 5, 7, 9, 11, 13, 15, 17, 19, 23, 29, 31):
        for top in (1, 5, bottom + 4, 2 * bottom - 7):
            found.append(("near ties", float(max(1, top) * 2.0 ** -(down + up)), float(2 * bottom)))
    first, second = aiming.generic_scales(random, 36), aiming.generic_scales(random, 36)
    for k in range(36):
        power = (k % 9) - 5 - down - up
        found.append(("near ties", float(np.ldexp(first[k], power)), float(second[k])))
    return found


def _byte_factor(first: float, second: float) -> Callable[[Array], Mapping[str, Array]]:
    """The rule for 9-bit numbers alone."""

    def ways(acc: Array) -> Mapping[str, Array]:
        with np.errstate(all="ignore"):
            ratio = float(np.float32(first) / np.float32(second))
        prepared = rescale.prepare("q8_one_step_up", ratio)
        return {"q8_one_step_up": rescale.apply("q8_one_step_up", acc, prepared)}

    return ways


def _with_tail(quantized: Array, found: Array) -> Array:
    """The quantized values, filled up to whole vectors, and behind them those on which most ways part."""
    best = aiming.cover(found[:, :, None], _TAIL)
    best += [k for k in range(len(quantized)) if k not in best][: _TAIL - len(best)]
    filled = np.concatenate([quantized, quantized[: -len(quantized) % 16]])
    return np.concatenate([filled, quantized[best]])


def _from_reals(output: str) -> Iterator[Draft]:
    """Ties of every quantized value and their neighbours, what saturates, and ordinary numbers."""
    low, high = _RANGES[output]
    words = ("QUANTIZE", "f32", output)
    random = generator(*words)
    generic = aiming.generic_scales(random, 6)
    scales = [0.125, 1.0, *(float(np.ldexp(s, e)) for s, e in zip(generic, (-3, -8, 0, 5, -20, 12), strict=True))]
    for number, scale in enumerate(scales):
        point = _point(output, _POINTS[number % len(_POINTS)][1])
        quantized = np.arange(low - 2, high + 2)
        if output == "s16":
            quantized = np.sort(np.concatenate([np.arange(-60, 60), random.integers(low, high, 140), [low - 1, high]]))
        steps = quantized - point + 0.5
        tie = (steps * scale).astype(np.float32)
        near = [tie, *(np.nextafter(tie, np.float32(end)) for end in (-np.inf, np.inf))]
        near += [np.nextafter(near[k], np.float32(end)) for k, end in ((1, -np.inf), (2, np.inf))]
        # An element of a case: channel; what it may be: candidate.
        values = np.stack(near)
        ways = _real_ways(values, scale, point, low, high)
        chosen = values[aiming.pick(ways[..., None]), np.arange(len(quantized))]
        order = random.permutation(len(quantized))
        best = aiming.cover(_real_ways(chosen[None], scale, point, low, high)[:, 0, :, None], 7)
        far = np.array([0.0, -0.0, 300, -300, 70000, -70000, 1e6, -1e6, 1e-3, -1e-3, 0.49999997, -0.49999997])
        body = np.concatenate([chosen[order], far.astype(np.float32) * np.float32(scale)])
        body = np.concatenate([body, chosen[: -len(body) % 16]])
        rest = [k for k in range(len(quantized)) if k not in best][: 7 - len(best)]
        x = np.concatenate([body, chosen[[*best, *rest]]])
        note = f"real numbers at ties of scale {scale!r} and beside, zero point {point}"
        aim = "ties" if number < 2 else "near ties"
        yield _draft("QUANTIZE", output, "f32", output, x, (0.0, scale), (0, point), aim, note)
    for number in range(4):
        random = generator(*words, "random", number)
        scale = float(np.float32(random.integers(2000, 60000) / 1e6))
        x = ((random.random((1, 8, 8, 4)) - 0.5) * scale * (high - low) * 1.1).astype(np.float32)
        point = 0 if output == "s16" else int(random.integers(low, high + 1))
        yield _draft("QUANTIZE", output, "f32", output, x, (0.0, scale), (0, point), "random", "uniform real numbers")


def _real_ways(x: Array, scale: float, point: int, low: int, high: int) -> Array:
    """Quantized values [ways, ...] of real numbers under every rule, and every tie in several precisions."""
    f32 = np.float32
    found = [rule(x, np.asarray(scale, f32), np.asarray(point), low, high) for rule in rules.QUANTIZE.values()]
    one = f32(1) / f32(scale)
    quotients = (
        x / f32(scale),
        x.astype(np.float64) / np.float64(f32(scale)),
        x * one,
        x.astype(np.float64) * (1 / np.float64(f32(scale))),
    )
    for quotient in quotients:
        for tie in aiming.TIES:
            found.append(np.clip(aiming.rounded(quotient, tie) + point, low, high))
        for tie in ("even", "away", "up", "trunc"):
            found.append(np.clip(aiming.rounded(quotient + quotient.dtype.type(point), tie), low, high))
    exact = Fraction(float(f32(scale)))
    wanted = [_exact(Fraction(float(v)) / exact) for v in x.reshape(-1)]
    for k in range(3):
        found.append(np.clip(np.array([w[k] for w in wanted]).reshape(x.shape) + point, low, high))
    return np.stack([f.astype(np.int64) for f in found])


def _exact(value: Fraction) -> tuple[int, int, int]:
    """Ties to even, up, away from zero."""
    up = (2 * value.numerator + value.denominator) // (2 * value.denominator)
    down = -((-2 * value.numerator + value.denominator) // (2 * value.denominator))
    return round(value), up, up if value >= 0 else down


def _dequantized(source: str) -> Iterator[Draft]:
    """Every quantized value by scales of all bits, with zero points at both ends."""
    random = generator("DEQUANTIZE", source)
    for number, (signed, _) in enumerate(_POINTS):
        scale = float(np.ldexp(aiming.generic_scales(random, 1)[0], (-4, 0, -9, 3, -60, 60, -7, -2)[number]))
        point = _point(source, signed)
        quantized = _quantized(source, random)
        ways = [rule(quantized, np.asarray(scale, np.float32), np.asarray(point)) for rule in rules.DEQUANTIZE.values()]
        bits = np.stack([w.astype(np.float32).view(np.int32) for w in ways])
        x = _with_tail(quantized, bits)
        note = f"scale {scale!r}, zero point {point}"
        yield _draft("DEQUANTIZE", source, source, "f32", x, (scale, 0.0), (point, 0), "codes", note)
    for number, shape in enumerate(((1, 3, 5, 2), (9,), (1,), (2, 2, 7))):
        x = random.integers(*_RANGES[source], shape, endpoint=True)
        scale = float(aiming.generic_scales(random, 1)[0])
        points = (_point(source, -9 * number), 0)
        yield _draft("DEQUANTIZE", source, source, "f32", x, (scale, 0.0), points, "shapes", str(list(shape)))
    for number in range(3):
        random = generator("DEQUANTIZE", source, "random", number)
        x = random.integers(*_RANGES[source], (1, 8, 8, 4), endpoint=True)
        scale = float(np.float32(random.integers(2000, 60000) / 1e6))
        points = (_point(source, int(random.integers(-128, 128))), 0)
        yield _draft("DEQUANTIZE", source, source, "f32", x, (scale, 0.0), points, "random", "uniform quantized values")
    yield from _rejects(source, source, "f32", "DEQUANTIZE")


def _draft(
    operator: str,
    types: str,
    source: str,
    output: str,
    x: Array,
    scales: tuple[float, float],
    points: tuple[int, int],
    aim: str,
    note: str,
) -> Draft:
    first = Operand(source, x.shape, scales[0] if source != "f32" else None, points[0])
    second = Operand(output, x.shape, scales[1] if output != "f32" else None, points[1])
    content = one_operator(operator, [first], [second], {}, _VERSIONS[types.partition("-")[0]])
    return Draft(aim, content, {"input0": x.astype(_DTYPES[source])}, note)


def _rejects(types: str, source: str, output: str, operator: str = "QUANTIZE") -> Iterator[Draft]:
    """Models without a meaning."""
    x = np.zeros((1, 4), np.bool_)
    scale = None if output == "f32" else 0.5
    why = "truth values, which have no scale"
    content = one_operator(operator, [Operand("bool", x.shape)], [Operand(output, x.shape, scale)], {}, 2)
    yield Draft("rejects", content, {"input0": x}, why, why)
