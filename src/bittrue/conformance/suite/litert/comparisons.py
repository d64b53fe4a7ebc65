"""LESS, GREATER, EQUAL and their likes: pairs of quantized values that are equal, or nearly so, as real numbers."""

from __future__ import annotations

import operator as relations
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from ....graph import data_type
from ..choosing import answers, edge_values, separating, shaken
from ..draft import Draft, between, generator
from ..tflite import Operand, one_operator

_RELATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "LESS": relations.lt,
    "LESS_EQUAL": relations.le,
    "GREATER": relations.gt,
    "GREATER_EQUAL": relations.ge,
    "EQUAL": relations.eq,
    "NOT_EQUAL": relations.ne,
}
OPERATORS = dict.fromkeys(_RELATIONS, ("s8", "u8", "s16"))

_TIE = 257 / 512
# Aim, what is special, and scale and zero point (of s8) of both. The kernels compare steps of 1/256: what lies closer
# together than that is equal to them.
_SCALES = (
    ("codes", "equal parameters", (0.05, 3), (0.05, 3)),
    ("zero points", "equal scales, zero points one apart", (0.05, 3), (0.05, 4)),
    ("zero points", "equal scales, zero points at opposite ends", (0.0123, -128), (0.0123, 127)),
    ("zero points", "zero points at the low end", (0.031, -128), (0.0277, -128)),
    ("ties", "powers of two: many numbers are equal", (0.5, 0), (0.25, 7)),
    ("ties", "powers of two, steps below 1/256", (0.0009765625, -9), (0.00390625, 2)),
    ("ties", "steps of 3/512: every second one is a tie of 1/256", (0.005859375, 1), (0.001953125, -3)),
    ("near ties", "one three times the other", (0.15, 1), (0.05, -2)),
    ("near ties", "one seven times the other", (0.007, 20), (0.049, -2)),
    ("near ties", "nearly equal scales", (0.1, -20), (0.1003, 15)),
    ("near ties", "all numbers within 1/256", (0.000013, 5), (0.0000171, -6)),
    *(
        ("near ties", f"257/512 {by:+.3g}: one step is a tie of 1/256, or beside it", *pair)
        for by in (0.0, 2.0**-24, -(2.0**-24), 2.0**-18, -(2.0**-18))
        for pair in (
            ((_TIE + by, 0), (2.0**-8, 120)),
            ((_TIE + by, 0), (2.0**-8, -120)),
            ((2.0**-8, 120), (_TIE + by, 0)),
            ((2.0**-8, -120), (_TIE + by, 0)),
        )
    ),
    *(
        ("ties", f"{numerator}/65536: 128 steps are a tie of 1/256", *pair)
        for numerator in (33023, 33025)
        for pair in (
            ((numerator / 65536, -5), (0.5, -120)),
            ((numerator / 65536, 0), (0.5, 120)),
            ((0.5, -120), (numerator / 65536, -5)),
            ((0.5, 120), (numerator / 65536, 0)),
        )
    ),
    ("saturation", "scales just below one", (0.9999, 11), (0.998, -31)),
    ("saturation", "one 9000 times the other", (0.9, -2), (0.0001, 100)),
)
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), (1, 3, 7, 5)),
    ((2, 3, 4, 9), (1,)),
    ((1, 5, 6, 17), (17,)),
    ((1, 4, 1, 19), (1, 4, 5, 1)),
    ((3, 1, 2, 8), (1, 4, 1, 8)),
    # Every axis has the size of the smaller operand: only one of them is meant.
    ((3, 3, 3, 3), (3,)),
    ((3, 1, 1, 1), (3, 3, 3, 3)),
    ((3, 3, 3, 3), (1, 3, 1, 1)),
    ((1, 1, 3, 1), (3, 3, 3, 3)),
    ((3,), (3, 3, 3, 3)),
    ((3, 3, 3, 3), (3, 1, 1, 1)),
    ((7, 5), (7, 5)),
    ((1, 31), (1, 31)),
    ((3, 401), (3, 401)),
    ((1, 1, 1, 1), (1, 1, 1, 1)),
)
_RANDOM = (((1, 16, 16, 4), (1, 16, 16, 4)), ((4, 64), (4, 64)), ((1, 8, 8, 24), (24,)))


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Aimed pairs for every set of scales, then shapes, then random ones."""
    kind = data_type(types)
    for number, (aim, note, first, second) in enumerate(_SCALES):
        a, b = _pairs(operator, types, number, first, second)
        shape = (1, a.size)
        content = _model(operator, types, first, second, shape, shape)
        inputs = {"input0": a.reshape(shape).astype(kind.numpy), "input1": b.reshape(shape).astype(kind.numpy)}
        yield Draft(aim, content, inputs, note)
    for aim, shapes in (("shapes", _SHAPES), ("random", _RANDOM * 4)):
        for number, (one, two) in enumerate(shapes):
            drawn = generator(operator, types, aim, number)
            # Few different quantized values in shapes, so that some are equal.
            high = kind.maximum + 1 if aim == "random" else kind.minimum + 9
            inputs = {
                f"input{i}": drawn.integers(kind.minimum, high, shape).astype(kind.numpy)
                for i, shape in enumerate((one, two))
            }
            scales = [between(drawn, 1.0, 8.0) / 256 for _ in range(2)]
            points = [int(p) for p in drawn.integers(-128, 128, 2)]
            if aim == "shapes":
                scales, points = [0.0627, 0.0627], [-128, -127]
            content = _model(operator, types, (scales[0], points[0]), (scales[1], points[1]), one, two)
            yield Draft(aim, content, inputs, f"{list(one)} and {list(two)}")


def _point(types: str, point: int) -> int:
    return {"s8": point, "u8": point + 128, "s16": point * 100}[types]


def _model(
    operator: str,
    types: str,
    first: tuple[float, int],
    second: tuple[float, int],
    one: tuple[int, ...],
    two: tuple[int, ...],
) -> bytes:
    x, y = (
        Operand(types, shape, scale, _point(types, point)) for shape, (scale, point) in ((one, first), (two, second))
    )
    return one_operator(operator, [x, y], [Operand("bool", np.broadcast_shapes(one, two))], {}, 2)


def _pairs(
    operator: str, types: str, number: int, first: tuple[float, int], second: tuple[float, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Quantized values at which the numerics, and comparisons in other steps or without zero points, answer
    differently.
    """
    kind = data_type(types)
    one, two = (float(np.float32(scale)) for scale, _ in (first, second))
    points = [_point(types, point) for _, point in (first, second)]
    if kind.bits == 8:
        quantized = np.arange(kind.minimum, kind.maximum + 1, dtype=np.int64)
        a, b = (grid.reshape(-1) for grid in np.meshgrid(quantized, quantized, indexing="ij"))
    else:
        # Beside each random quantized value the one of the other operand that is nearest to it.
        a = generator(operator, types, number, "candidates").integers(kind.minimum, kind.maximum + 1, 4096)
        b = np.rint((a - points[0]) * (one / two)).astype(np.int64) + points[1]
        a, b = np.tile(a, 5), np.concatenate([b + by for by in (-2, -1, 0, 1, 2)])
        kept = (b >= kind.minimum) & (b <= kind.maximum)
        a, b = a[kept], b[kept]
    edges = np.array(list(product(*(edge_values(kind, point) for point in points))), np.int64).T
    a, b = np.concatenate([a, edges[0]]), np.concatenate([b, edges[1]])
    shape = (1, a.size)
    content = _model(operator, types, first, second, shape, shape)
    inputs = {"input0": a.reshape(shape).astype(kind.numpy), "input1": b.reshape(shape).astype(kind.numpy)}
    said = answers(content, inputs) + shaken(content, inputs)
    columns = [answer.astype(np.int64) for answer in said]
    relation = _RELATIONS[operator]
    x, y = (a - points[0]) * one, (b - points[1]) * two
    columns += [_numbers(relation(x, y)), _numbers(relation(a, b)), _numbers(relation(a * one, b * two))]
    columns += [_numbers(relation(np.rint(x * 2.0**bits), np.rint(y * 2.0**bits))) for bits in (0, 4, 7, 8, 9, 12, 20)]
    columns += [_numbers(relation(np.floor(x * 256), np.floor(y * 256)))]
    columns += [_numbers(other(x, y)) for other in _RELATIONS.values()]
    # Every pair of the same real number, as far as they are few.
    equal = np.flatnonzero(np.rint(x * 256) == np.rint(y * 256))
    chosen = [separating(columns, each=8), equal[:: max(1, equal.size // 60)]]
    chosen.append(np.arange(a.size - edges.shape[1], a.size)[::3])
    places = generator(operator, types, number, "order").permutation(np.unique(np.concatenate(chosen)))
    return a[places], b[places]


def _numbers(answer: np.ndarray) -> np.ndarray:
    return answer.astype(np.int64)
