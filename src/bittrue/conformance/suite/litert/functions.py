"""LOGISTIC and TANH: all quantized values of 8 bits, under scales at which tables that round differently have other
entries.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....graph import data_type
from ..choosing import answers, edge_values, separating
from ..draft import Draft, between, generator
from ..tflite import Operand, one_operator

OPERATORS = dict.fromkeys(("LOGISTIC", "TANH"), ("s8", "u8", "s16"))

_OUTPUT = {
    "s8": {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)},
    "u8": {"LOGISTIC": (1 / 256, 0), "TANH": (1 / 128, 128)},
    "s16": {"LOGISTIC": (1 / 32768, 0), "TANH": (1 / 32768, 0)},
}
# Scale and zero point (of s8) of the input. Found by search over 200,000 pairs: at some quantized values the real
# result lies within a few parts in 10^7 of a tie, so that tables made in binary32, in binary64 or exactly, with ties
# away, even or up, and from arguments rounded or not, differ from each other in three or more entries of the set.
_NEAR_TIES = {
    "LOGISTIC": (
        (0.0305776596, -32),
        (0.1842389404, 44),
        (0.0182836744, 7),
        (0.0069537661, -18),
        (0.0113630108, 0),
        (0.0776097178, 59),
        (0.0740592852, 21),
        (0.012318369, 96),
        (0.0515816051, -36),
    ),
    "TANH": (
        (0.3056868314, 111),
        (0.0305776596, -32),
        (0.0333432219, 81),
        (0.0129009792, -14),
        (0.0233261920, 73),
        (0.0110840201, 117),
        (0.0479910336, -92),
        (0.0979684815, 2),
    ),
}
_OTHERS = (
    ("ties", "input steps are a power of two", 0.0625, 0),
    ("ties", "input steps are a power of two, odd zero point", 0.25, -3),
    ("saturation", "both ends of the result", 0.9, 1),
    ("saturation", "all but one quantized value saturate", 40.0, -7),
    ("saturation", "nearly constant", 0.0009765625, 3),
    ("zero points", "no negative numbers", 0.043, -128),
    ("zero points", "no positive numbers", 0.037, 127),
)
# Scales of s16: the interpolation's own steps are 1/1024 of 10.7.
_WIDE = (
    ("ties", "three integer bits", 2.0**-12, "table steps are whole inputs"),
    ("ties", "four integer bits", 2.0**-11, "table steps are whole inputs"),
    ("near ties", "a third of 2^-12", 2.0**-12 / 3, "table steps are no whole inputs"),
    ("near ties", "of a range of 10", 10 / 32768, "table steps are no whole inputs"),
    ("near ties", "of a range of 1", 1 / 32768, "only the middle of the table"),
    ("saturation", "of a range of 100", 100 / 32768, "both ends of the result"),
)
_SHAPES = ((1, 3, 5, 7), (2, 1, 33), (17,), (1, 1, 1, 1), (4, 31), (3, 3, 3, 3), ())
_RANDOM = ((1, 16, 16, 8), (8, 64), (1, 7, 7, 13))


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Every quantized value of 8 bits, chosen ones of 16; then shapes, then random ones."""
    if types == "s16":
        for number, (aim, note, scale, more) in enumerate(_WIDE):
            yield _wide(operator, aim, number, scale, f"{note}: {more}")
    else:
        for number, (scale, point) in enumerate(_NEAR_TIES[operator]):
            yield _every_quantized(operator, types, "near ties", number, scale, point, "entries beside a tie")
        for number, (aim, note, scale, point) in enumerate(_OTHERS):
            yield _every_quantized(operator, types, aim, number, scale, point, note)
    for aim, shapes in (("shapes", _SHAPES), ("random", _RANDOM * 2)):
        for number, shape in enumerate(shapes):
            drawn = generator(operator, types, aim, number)
            kind = data_type(types)
            scale = between(drawn, 2.0, 16.0) / 2.0**kind.bits
            point = int(drawn.integers(-128, 128))
            quantized = drawn.integers(kind.minimum, kind.maximum + 1, shape).astype(kind.numpy)
            yield Draft(
                aim, _model(operator, types, shape, scale, point), {"input0": quantized}, f"shape {list(shape)}"
            )


def _model(operator: str, types: str, shape: tuple[int, ...], scale: float, point: int) -> bytes:
    zero = {"s8": point, "u8": point + 128, "s16": 0}[types]
    out_scale, out_zero = _OUTPUT[types][operator]
    version = {"s8": 2, "u8": 1, "s16": 3}[types]
    return one_operator(
        operator, [Operand(types, shape, scale, zero)], [Operand(types, shape, out_scale, out_zero)], version=version
    )


def _every_quantized(operator: str, types: str, aim: str, number: int, scale: float, point: int, note: str) -> Draft:
    """All 256 quantized values in an order without meaning: a table that is read at a neighbour gives other bytes."""
    kind = data_type(types)
    quantized = np.arange(kind.minimum, kind.maximum + 1).astype(kind.numpy)
    quantized = generator(operator, types, aim, number).permutation(quantized)
    shape = ((256,), (1, 256), (1, 8, 4, 8), (2, 128))[number % 4]
    return Draft(aim, _model(operator, types, shape, scale, point), {"input0": quantized.reshape(shape)}, note)


def _wide(operator: str, aim: str, number: int, scale: float, note: str) -> Draft:
    """Quantized values of 16 bits that tell the numerics apart, those beside the steps of the table, and every 97th."""
    kind = data_type("s16")
    quantized = np.arange(kind.minimum, kind.maximum + 1, dtype=np.int64)
    content = _model(operator, "s16", (1, quantized.size), scale, 0)
    told = separating(answers(content, {"input0": quantized[None].astype(kind.numpy)}), 16)
    beside = np.unique(np.rint(np.arange(-256, 257, 8) * 128 * 10.7 / 32768 / scale)).astype(np.int64)
    beside = np.concatenate([beside - 1, beside, beside + 1])
    beside = beside[(beside >= kind.minimum) & (beside <= kind.maximum)]
    chosen = np.unique(np.concatenate([quantized[told], beside, edge_values(kind), quantized[::97]]))
    chosen = generator(operator, "s16", aim, number).permutation(chosen)[None].astype(kind.numpy)
    return Draft(aim, _model(operator, "s16", chosen.shape, scale, 0), {"input0": chosen}, note)
