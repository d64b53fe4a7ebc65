"""Examples that tell apart rules between quantized numbers with scales of their own, for `examples`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from . import affine_average, affine_product, affine_softmax, affine_sum, combine, window_average

# What is given in words, and the results of both rules.
Found = Iterator[tuple[str, tuple[str, str]]]

_CODES = np.arange(-128, 128, dtype=np.int64)
_SCALES = (0.5, 1.0, 0.1, 0.3, 0.0123)
_LOW, _HIGH = -128, 127


def _scale(value: float) -> float:
    return float(np.float32(value))


def _different(one: np.ndarray, other: np.ndarray) -> Iterator[tuple[int, ...]]:
    for place in np.argwhere(one != other)[:1]:
        yield tuple(int(i) for i in place)


def of_two(slot: str, first: str, second: str) -> Found:
    """`affine_sum` and `affine_product`: every pair of stored integers."""
    rules = {"affine_sum": affine_sum.RULES, "affine_product": affine_product.RULES}[slot]
    a, b = _CODES[:, None], _CODES[None, :]
    for scales in product(_SCALES, repeat=3):
        for points in ((0, 0, 0), (0, 0, 1), (3, -5, 7)):
            x, y, z = ((_scale(scale), point) for scale, point in zip(scales, points, strict=True))
            one, other = (
                rules[name].apply(a, b, rules[name].prepare(x, y, z), _LOW, _HIGH) for name in (first, second)
            )
            for i, j in _different(one, other):
                given = (
                    f"q {_CODES[i]} of scale {scales[0]}, q {_CODES[j]} of scale {scales[1]}, "
                    f"to scale {scales[2]}, zero points {points}"
                )
                yield given, (str(one[i, j]), str(other[i, j]))


def average(first: str, second: str) -> Found:
    """Two stored integers and their average."""
    for scale, output, zero_point in product(_SCALES, _SCALES, (0, 1)):
        results = []
        for name in (first, second):
            rule = affine_average.RULES[name]
            prepared = rule.prepare((_scale(scale), 0), (_scale(output), zero_point), _LOW, _HIGH)
            total = prepared["values"][:, None] + prepared["values"][None, :]
            results.append(rule.finish(total, np.array(2), prepared, _LOW, _HIGH))
        for i, j in _different(*results):
            given = (
                f"q {_CODES[i]} and {_CODES[j]} of scale {scale}, averaged to scale {output}, zero point {zero_point}"
            )
            yield given, (str(results[0][i, j]), str(results[1][i, j]))


def softmax(first: str, second: str) -> Found:
    """Rows of two stored integers."""
    rows = np.stack(np.meshgrid(_CODES, _CODES, indexing="ij"), -1).reshape(-1, 2)[::7]
    for scale, output in product(_SCALES, (1 / 256, 0.0039, 0.3)):
        one, other = (
            affine_softmax.RULES[name].apply(
                rows,
                affine_softmax.RULES[name].prepare((_scale(scale), 0), (_scale(output), -128), 2),
                _LOW,
                _HIGH,
            )
            for name in (first, second)
        )
        for i, j in _different(one, other):
            given = f"row {rows[i].tolist()} of scale {scale}, place {j}, to scale {output}, zero point -128"
            yield given, (str(one[i, j]), str(other[i, j]))


def rescaled(first: str, second: str) -> Found:
    """`combine`: every stored integer at another scale."""
    for scale, output in product(_SCALES, (1.0, *_SCALES, 0.7)):
        one, other = (
            np.asarray(combine.RULES[name](_CODES, _scale(scale), 0, _scale(output), 1, _LOW, _HIGH))
            for name in (first, second)
        )
        for (i,) in _different(one, other):
            yield f"q {_CODES[i]} of scale {scale}, to scale {output}, zero point 1", (str(one[i]), str(other[i]))


def window(first: str, second: str) -> Found:
    """`window_average`: four elements inside the picture, of a window of four taps."""
    for scale, output, zero_point in product(_SCALES, _SCALES, (0, 1)):
        one, other = (
            rule.apply(_CODES, np.array(4), rule.prepare(_scale(scale), _scale(output), 4), zero_point, _LOW, _HIGH)
            for rule in (window_average.RULES[first], window_average.RULES[second])
        )
        for (i,) in _different(one, other):
            given = f"four elements of sum {_CODES[i]} and scale {scale}, to scale {output}, zero point {zero_point}"
            yield given, (str(one[i]), str(other[i]))
