"""ADD, SUB and MUL: of all pairs of quantized values those that tell arithmetics apart, under scales chosen for
that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ....graph import data_type
from ..choosing import answers, at_ends, edge_values, nearest_ties, roundings, separating, shaken
from ..draft import Draft, between, generator
from ..tflite import Operand, one_operator

OPERATORS = dict.fromkeys(("ADD", "SUB", "MUL"), ("s8", "u8", "s16"))


@dataclass(frozen=True)
class _Scales:
    """Scales and zero points (as of s8) of both inputs and of the output, and the fused activation."""

    note: str
    aim: str
    first: tuple[float, int]
    second: tuple[float, int]
    output: tuple[float, int]
    activation: str = "NONE"


# Where inputs, sums and their halves are dyadic, ties are exact; 12 / (2 n + 1) puts the end of RELU6 at a half.
_SUMS = (
    _Scales("powers of two: every second sum is a tie", "ties", (0.5, 0), (0.5, 0), (1.0, 0)),
    _Scales("powers of two, odd zero points", "ties", (0.5, -3), (1.0, 5), (2.0, 7)),
    _Scales("ratios 1/4 and 1/8 of powers of two, even zero point", "ties", (0.0625, 11), (0.03125, -40), (0.25, -4)),
    _Scales("ties between steps that are no powers of two", "ties", (0.15, 1), (0.45, -2), (0.3, 1)),
    _Scales("scales of a network", "near ties", (0.023529412, -128), (0.047058824, 3), (0.031372551, -1)),
    _Scales("scales of a network, other zero points", "near ties", (0.0078369, 12), (0.0413221, -9), (0.0470312, 33)),
    _Scales("equal scales", "near ties", (0.07, 4), (0.07, -6), (0.07, 2)),
    _Scales("equal inputs, finer output", "saturation", (0.0917, 17), (0.0917, -30), (0.031, -11)),
    _Scales("second input 700 times finer", "near ties", (0.61, 10), (0.00086, -20), (0.437, 4)),
    _Scales("first input 250 times finer", "near ties", (0.0031, -100), (0.779, 90), (0.913, -2)),
    _Scales("output far coarser", "near ties", (0.013, 21), (0.0171, -13), (0.31, 9)),
    _Scales("sums beyond 16 bits of the output", "saturation", (0.97, 17), (0.83, -30), (0.0041, -11)),
    # Found by search: here multipliers of 23 and 24 bits, sums in binary32, and other ways to align have other results.
    _Scales(
        "found by search: one and two roundings differ", "near ties", (0.06364665, 3), (0.95627, 90), (1.230999, -20)
    ),
    _Scales(
        "found by search: multipliers of 24 bits differ",
        "near ties",
        (0.2320148, -34),
        (0.8025434, -64),
        (0.6091058, -128),
    ),
    _Scales("found by search: alignments differ", "near ties", (0.7331583, 2), (0.005034154, -43), (2.634981, -83)),
    _Scales("found by search: near ties", "near ties", (0.0276799, 43), (0.1452478, -61), (0.2793497, 50)),
    *(
        _Scales(f"found by search: the last bit of {what} shows", "near ties", *scales)
        for what, scales in (
            ("a sum's multiplier", ((0.9720276, -17), (0.02097087, 35), (3.791894, 24))),
            ("a sum's multiplier", ((0.08209071, 49), (0.06926102, 110), (0.1128384, -17))),
            ("the first multiplier", ((0.00625318708, 54), (0.00904996507, 89), (0.00940504856, -5))),
            ("the first multiplier", ((0.0403480604, -18), (0.652992308, 54), (0.877935886, 52))),
            ("the first multiplier", ((0.0283925403, -88), (0.265729398, 24), (0.279125214, 88))),
            ("the first multiplier", ((0.0729566887, -119), (0.354734004, 26), (0.378487915, 105))),
            ("the second multiplier", ((0.0798538327, 60), (0.0214170795, 106), (0.191928506, -39))),
            ("the second multiplier", ((0.196658894, 17), (0.0118958997, 105), (0.178564593, -19))),
        )
    ),
    _Scales("both zero points at the low end", "zero points", (0.041, -128), (0.0285, -128), (0.0712, -128)),
    _Scales("zero points at opposite ends", "zero points", (0.0195, -128), (0.0331, 127), (0.0263, 127)),
    _Scales("RELU", "saturation", (0.05, 3), (0.037, -8), (0.049, -21), "RELU"),
    _Scales("RELU6 that ends inside the type", "saturation", (0.0811, -7), (0.0527, 14), (0.0731, -100), "RELU6"),
    _Scales("RELU6 that ends at a tie", "saturation", (1.0, 1), (2.0, -2), (12.0, 2), "RELU6"),
    _Scales("RELU_N1_TO_1 that ends at a tie", "saturation", (0.31, -1), (0.17, 5), (0.4, 9), "RELU_N1_TO_1"),
)
_PRODUCTS = (
    _Scales("powers of two: many ties", "ties", (0.5, 0), (0.25, 0), (1.0, 0)),
    _Scales("powers of two, odd zero points", "ties", (0.125, -3), (0.5, 5), (2.0, 7)),
    _Scales("powers of two, coarse output", "ties", (0.0625, 40), (0.125, -51), (0.5, -4)),
    _Scales("half steps that are no powers of two", "ties", (0.3, 1), (0.25, -2), (0.15, 1)),
    _Scales("scales of a network", "near ties", (0.023529412, -128), (0.003921569, -128), (0.023529412, -128)),
    _Scales("scales of a network, other zero points", "near ties", (0.0078369, 12), (0.0413221, -9), (0.0470312, 33)),
    _Scales("scales of a gate", "near ties", (0.0472, -5), (0.00390625, -128), (0.0469, -6)),
    _Scales("equal scales", "near ties", (0.07, 4), (0.07, -6), (0.07, 2)),
    _Scales("product beyond 16 bits of the output", "saturation", (0.9, 17), (0.8, -30), (0.011, -11)),
    _Scales("multiplier just below one", "saturation", (0.99, 2), (1.0, -3), (0.9999, 5)),
    _Scales("multiplier just above one", "saturation", (1.01, 2), (1.0, -3), (1.0001, 5)),
    _Scales("multiplier 2^-15", "near ties", (0.0013, 44), (0.0171, -77), (0.7283, 9)),
    # Found by search: here multipliers of 23 bits and those of other forms have other results.
    _Scales(
        "found by search: forms of the multiplier differ",
        "near ties",
        (0.0200112, -128),
        (0.2380123, 127),
        (0.4044607, -22),
    ),
    _Scales("found by search: a large multiplier", "near ties", (0.5977984, -128), (0.2904128, -128), (14.68554, 0)),
    _Scales(
        "found by search: order of scales", "near ties", (0.0566153601, -128), (0.0162029304, 127), (0.0313116908, 0)
    ),
    _Scales("found by search: the last bit", "near ties", (0.00863386504, -128), (0.0850545019, 115), (0.117691398, 0)),
    _Scales("found by search: the last bit", "near ties", (0.00419868808, -128), (0.175970793, 121), (0.149872005, 0)),
    _Scales(
        "found by search: order of the scales' division",
        "near ties",
        (0.024265, -128),
        (0.005186509, 125),
        (0.003062535, 115),
    ),
    _Scales(
        "found by search: multipliers of 23 bits differ",
        "near ties",
        (0.1059399, -128),
        (0.005207293, 125),
        (0.1200372, 115),
    ),
    _Scales("both zero points at the low end", "zero points", (0.041, -128), (0.0285, -128), (0.2912, -128)),
    _Scales("zero points at opposite ends", "zero points", (0.0195, -128), (0.0331, 127), (0.0763, 127)),
    _Scales("RELU", "saturation", (0.05, 3), (0.037, -8), (0.049, -21), "RELU"),
    _Scales("RELU6 that ends inside the type", "saturation", (0.0811, -7), (0.0527, 14), (0.0731, -100), "RELU6"),
    _Scales("RELU6 that ends at a tie", "saturation", (1.0, 1), (2.0, -2), (12.0, 2), "RELU6"),
    _Scales("RELU_N1_TO_1 that ends at a tie", "saturation", (0.31, -1), (0.17, 5), (0.4, 9), "RELU_N1_TO_1"),
)
# First, second and output shape: every direction of broadcasting, and lengths beside those of vector registers.
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((1,), (1, 3, 7, 5)),
    ((2, 3, 4, 9), ()),
    ((1, 5, 6, 17), (17,)),
    ((1, 4, 1, 19), (1, 4, 5, 1)),
    ((3, 1, 2, 8), (1, 4, 1, 8)),
    ((2, 1, 3, 1, 7), (1, 4, 1, 2, 7)),
    ((33,), (2, 1, 1, 33)),
    ((1, 1, 1, 1), (1, 1, 1, 1)),
    # Every axis has the size of the smaller operand: only one of them is meant.
    ((3, 3, 3, 3), (3,)),
    ((3, 1, 1, 1), (3, 3, 3, 3)),
    ((3, 3, 3, 3), (1, 3, 1, 1)),
    ((1, 1, 3, 1), (3, 3, 3, 3)),
    ((3,), (3, 3, 3, 3)),
    ((3, 3, 3, 3), (3, 1, 1, 1)),
    ((7, 5), (7, 5)),
    ((1, 31), (1, 31)),
    ((3, 5, 1, 3), (3, 5, 1, 3)),
)
_RANDOM = (
    ((1, 16, 16, 8), (1, 16, 16, 8)),
    ((1, 8, 8, 24), (1, 1, 1, 24)),
    ((4, 128), (4, 128)),
    ((1, 10, 10, 5), (1,)),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Aimed pairs for every set of scales, then shapes, then random ones."""
    for number, scales in enumerate(_PRODUCTS if operator == "MUL" else _SUMS):
        yield _aimed(operator, types, number, scales)
    if types == "s16" and operator != "MUL":
        for number, (first, second, output) in enumerate(((0, -3, 0), (-2, 0, 0), (-9, -9, -9))):
            note = "powers of two divided by shifts alone"
            powers = _Scales(note, "ties", (2.0**first, 0), (2.0**second, 0), (2.0**output, 0))
            yield _aimed(operator, types, f"pot {number}", powers, pot=True)
    yield from _shaped(operator, types)
    yield from _random(operator, types)


def _options(operator: str, types: str, activation: str, pot: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"fused_activation_function": activation}
    if operator != "MUL":
        found["pot_scale_int16"] = pot
    return found


def _operands(
    operator: str, types: str, scales: _Scales, first: tuple[int, ...], second: tuple[int, ...], pot: bool = False
) -> bytes:
    shapes = (first, second, np.broadcast_shapes(first, second))
    x, y, z = (
        Operand(types, shape, scale, _point(types, point))
        for shape, (scale, point) in zip(shapes, (scales.first, scales.second, scales.output), strict=True)
    )
    return one_operator(operator, [x, y], [z], _options(operator, types, scales.activation, pot), 2)


def _point(types: str, point: int) -> int:
    return {"s8": point, "u8": point + 128, "s16": 0}[types]


def _real(operator: str, types: str, scales: _Scales, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The exact results in steps of the output, without its zero point."""
    one, two, out = (float(np.float32(scale)) for scale, _ in (scales.first, scales.second, scales.output))
    x = a - _point(types, scales.first[1])
    y = b - _point(types, scales.second[1])
    if operator == "MUL":
        return np.asarray((x * y) * (one * two / out))
    return np.asarray((x * one + (y if operator == "ADD" else -y) * two) / out)


def _candidates(types: str, *words: object) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of quantized values to choose from: all of 8 bits; of 16 bits as many random ones."""
    kind = data_type(types)
    if kind.bits == 8:
        quantized = np.arange(kind.minimum, kind.maximum + 1, dtype=np.int64)
        a, b = np.meshgrid(quantized, quantized, indexing="ij")
        return a.reshape(-1), b.reshape(-1)
    a, b = generator(*words, "candidates").integers(kind.minimum, kind.maximum + 1, (2, 1 << 16))
    return a, b


def _ends(types: str, scales: _Scales) -> tuple[float, float]:
    """The clamp of the output as real numbers in its steps."""
    kind = data_type(types)
    scale, point = scales.output[0], _point(types, scales.output[1])
    low, high = float(kind.minimum - point), float(kind.maximum - point)
    if scales.activation == "RELU":
        low = 0.0
    if scales.activation == "RELU6":
        low, high = 0.0, min(high, 6 / scale)
    if scales.activation == "RELU_N1_TO_1":
        low, high = max(low, -1 / scale), min(high, 1 / scale)
    return low, high


def _aimed(operator: str, types: str, number: object, scales: _Scales, pot: bool = False) -> Draft:
    kind = data_type(types)
    if types == "s16":
        # Of 16 bits the same ranges of real numbers have finer steps, and products are 2^16 times as large.
        output = scales.output[0] * (256.0 if operator == "MUL" else 1.0), 0
        scales = _Scales(
            scales.note, scales.aim, (scales.first[0], 0), (scales.second[0], 0), output, scales.activation
        )
    a, b = _candidates(types, operator, types, number)
    edges = [edge_values(kind, _point(types, point)) for _, point in (scales.first, scales.second)]
    corners = np.array(list(product(*edges)), np.int64).T
    a, b = np.concatenate([a, corners[0]]), np.concatenate([b, corners[1]])
    real = _real(operator, types, scales, a, b)
    low, high = _ends(types, scales)
    inputs = {"input0": a[None].astype(kind.numpy), "input1": b[None].astype(kind.numpy)}
    every = _operands(operator, types, scales, (1, a.size), (1, a.size), pot)
    said = answers(every, inputs)
    point = _point(types, scales.output[1])
    columns = said + shaken(every, inputs) + roundings(real, point, int(said[0].min()), int(said[0].max()))
    told = separating(columns, each=2)
    chosen = np.unique(
        np.concatenate(
            [
                told,
                nearest_ties(real, low, high, 48),
                at_ends(real, low, high, 32),
                np.arange(a.size - corners.shape[1], a.size)[:: 1 if scales.aim == "zero points" else 5],
            ]
        )
    )
    chosen = generator(operator, types, number, "order").permutation(chosen)
    # The last few lie behind whole vectors of 16, where some kernels compute differently than inside of them.
    tail = told[:: max(1, told.size // 15)][:15]
    chosen = np.concatenate([chosen, tail, chosen[: (15 - chosen.size - tail.size) % 16]])
    content = _operands(operator, types, scales, (1, chosen.size), (1, chosen.size), pot)
    quantized = {"input0": a[chosen][None].astype(kind.numpy), "input1": b[chosen][None].astype(kind.numpy)}
    return Draft(scales.aim, content, quantized, scales.note)


def _shaped(operator: str, types: str) -> Iterator[Draft]:
    scales = _Scales("", "shapes", (0.0413, 5), (0.0291, -17), (0.0613 if operator != "MUL" else 0.0813, 3))
    if types == "s16":
        scales = _Scales("", "shapes", (0.0413, 0), (0.0291, 0), (0.0613 if operator != "MUL" else 21.0, 0))
    for number, (first, second) in enumerate(_SHAPES):
        note = f"{list(first)} and {list(second)}"
        yield _uniform("shapes", operator, types, number, scales, first, second, note)


def _random(operator: str, types: str) -> Iterator[Draft]:
    """Scales as of ranges between 1 and 8, uniform quantized values."""
    for number, (first, second) in enumerate(_RANDOM * 3):
        drawn = generator(operator, types, "random", number)
        ranges = [between(drawn, 1.0, 8.0) for _ in range(2)]
        width = 256 if types != "s16" else 65536
        points = [int(point) for point in drawn.integers(-128, 128, 3)]
        wanted = ranges[0] * ranges[1] / 2 if operator == "MUL" else sum(ranges)
        scales = _Scales(
            "",
            "random",
            (ranges[0] / width, points[0]),
            (ranges[1] / width, points[1]),
            (wanted / width, points[2]),
        )
        yield _uniform("random", operator, types, number, scales, first, second, "uniform quantized values")


def _uniform(
    aim: str,
    operator: str,
    types: str,
    number: int,
    scales: _Scales,
    first: tuple[int, ...],
    second: tuple[int, ...],
    note: str,
) -> Draft:
    kind = data_type(types)
    drawn = generator(operator, types, aim, number, "codes")
    quantized = {
        f"input{i}": drawn.integers(kind.minimum, kind.maximum + 1, shape).astype(kind.numpy)
        for i, shape in enumerate((first, second))
    }
    return Draft(aim, _operands(operator, types, scales, first, second), quantized, note)
