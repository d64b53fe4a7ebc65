"""SOFTMAX and LOG_SOFTMAX: rows of many lengths, with equal maxima, near and far neighbours, and saturated results."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....graph import data_type
from ..draft import Draft, between, generator
from ..tflite import Operand, one_operator

OPERATORS = {"SOFTMAX": ("s8", "u8", "s16"), "LOG_SOFTMAX": ("s8", "u8")}

_OUTPUT = {
    ("SOFTMAX", "s8"): (1 / 256, -128),
    ("SOFTMAX", "u8"): (1 / 256, 0),
    ("SOFTMAX", "s16"): (1 / 32768, 0),
    ("LOG_SOFTMAX", "s8"): (16 / 256, 127),
    ("LOG_SOFTMAX", "u8"): (16 / 256, 255),
}
# Input scale, its zero point of s8 (which must not matter), beta.
_SCALES = (
    (0.0625, 0, 1.0),
    (0.05, -128, 1.0),
    (0.1735, 127, 1.0),
    (0.00390625, 3, 1.0),
    (0.6123, -5, 1.0),
    (0.0417, 11, 0.3),
    (0.0417, -11, 7.5),
    (0.25, 0, 0.125),
)
# Found by search among 100 million elements of s8: rows of two arithmetics that are nearly always the same, fixed point
# and binary32, in which a result is another. Input scale to rows.
_APART: tuple[tuple[float, tuple[tuple[int, ...], ...]], ...] = (
    (0.17361100018024445, ((-1, -30, -41, -50, -51, -1), (-105, -120, -71, -105, -121, -90))),
    (0.3007589876651764, ((-66, -67, -50, -81, -54, -66, -77, -83),)),
    (0.29214298725128174, ((30, 36, 45, 35, 33, 30, 27, 40),)),
    (0.035676099359989166, ((17, 63, 17),)),
    (0.01682559959590435, ((-12, -76, -116, 98, -2, -19, 32, 70), (-71, -84, 96, -84, -43, -46, -30, -110))),
    (0.036326900124549866, ((-77, 45, -128, 76, -94, -3),)),
    (0.08748509734869003, ((69, 72, 69, 68, 87, 72),)),
    (0.07341449707746506, ((89, 59, 69, 93, 64, 42), (-83, -58, -110, -78, -57, -74))),
    (0.2919749915599823, ((-105, -107, -113, -98, -105), (58, 51, 43, 51, 49), (-96, -107, -90, -102, -101))),
    (0.02181990072131157, ((-75, -12, 47), (49, -10, -73))),
    (0.07115340232849121, ((-32, -14, -21, -3, -44, -25, -29, -29), (101, 87, 124, 94, 106, 75, 87, 81))),
    (0.08229269832372665, ((32, 52, 78, 37, 36, 70), (38, 22, 12, 16, 50, 18), (-16, -62, -56, -71, -64, -33))),
    (0.062164198607206345, ((17, -33, -33), (64, 14, 14))),
    (0.10402899980545044, ((49, 59, 39, 70, 37), (-123, -103, -97, -84, -73))),
)
_LENGTHS = (2, 3, 5, 8, 17, 33)
_SHAPES = ((1, 1), (7, 1), (1, 2), (2, 3, 4, 5), (3, 9), (1, 4, 2, 31), (2, 1, 1, 16), (5,))
_RANDOM = ((1, 10), (16, 10), (1, 1000), (4, 8, 8, 4))


def cases(operator: str, types: str) -> Iterator[Draft]:
    """All differences of pairs, rows of every kind, long rows, shapes, random ones."""
    kind = data_type(types)
    wide = 1.0 if kind.bits == 8 else 1 / 256
    for number, (scale, point, beta) in enumerate(_SCALES):
        yield _draft(
            operator,
            types,
            "codes",
            scale * wide,
            point,
            beta,
            _pairs(types),
            "every difference of two quantized values",
        )
        for length in _LENGTHS[number % 2 :: 2]:
            rows = _rows(types, length, operator, types, number, length)
            note = f"rows of {length}, scale {scale:.4g}, beta {beta:.4g}"
            yield _draft(operator, types, "near ties", scale * wide, point, beta, rows, note)
    if kind.bits == 8:
        move = kind.minimum + 128
        for scale, found in _APART if operator == "SOFTMAX" else ():
            rows = np.array(found) + move
            yield _draft(operator, types, "near ties", scale, -3, 1.0, rows, "found by search: a result beside a tie")
        for number, scale in enumerate((0.004, 0.0071, 0.0117, 0.0173, 0.0219, 0.0256)):
            # One quantized value at the upper end above many at the lower one: the far end of the table of
            # exponentials.
            rows = np.full((12, 40 * (number + 1)), kind.minimum)
            rows[np.arange(12), np.arange(12) * 3] = kind.maximum
            for at in range(12):
                rows[at, : 3 * at] = kind.minimum + at
            yield _draft(operator, types, "saturation", scale, 0, 1.0, rows, "one quantized value far above many")
    for scale, beta, note in ((2.5, 1.0, "one result takes all"), (0.0001, 1.0, "all results are equal")):
        rows = _rows(types, 12, operator, types, note)
        yield _draft(operator, types, "saturation", scale * wide, 1, beta, rows, note)
    for number, length in enumerate((257, 1001)):
        row = _flat(types, length, operator, types, "long", length)
        note = f"a row of {length}: many small summands"
        yield _draft(operator, types, "saturation", (0.02, 0.11)[number] * wide, -7, 1.0, row, note)
    for number, shape in enumerate(_SHAPES):
        quantized = generator(operator, types, "shapes", number).integers(kind.minimum, kind.maximum + 1, shape)
        yield _draft(operator, types, "shapes", 0.0471 * wide, 9, 1.0, quantized, f"shape {list(shape)}")
    for number, shape in enumerate(_RANDOM * 4):
        drawn = generator(operator, types, "random", number)
        quantized = drawn.integers(kind.minimum, kind.maximum + 1, shape)
        scale, point = between(drawn, 4.0, 20.0) / 256, int(drawn.integers(-128, 128))
        yield _draft(operator, types, "random", scale * wide, point, 1.0, quantized, "uniform quantized values")


def _draft(
    operator: str, types: str, aim: str, scale: float, point: int, beta: float, quantized: np.ndarray, note: str
) -> Draft:
    kind = data_type(types)
    zero = {"s8": point, "u8": point + 128, "s16": 0}[types]
    out_scale, out_zero = _OUTPUT[operator, types]
    x = Operand(types, quantized.shape, scale, zero)
    y = Operand(types, quantized.shape, out_scale, out_zero)
    if operator == "SOFTMAX":
        options, version = {"beta": beta}, {"s8": 2, "u8": 1, "s16": 3}[types]
    else:
        options, version = {}, {"s8": 2, "u8": 1}[types]
    return Draft(
        aim, one_operator(operator, [x], [y], options, version), {"input0": quantized.astype(kind.numpy)}, note
    )


def _pairs(types: str) -> np.ndarray:
    """Rows of two quantized values: every difference of 8 bits once, chosen ones of 16; the larger one now left, now
    right.
    """
    kind = data_type(types)
    if kind.bits == 8:
        apart = np.arange(256)
    else:
        apart = np.unique(np.concatenate([np.arange(0, 65536, 509), np.arange(16), 65535 - np.arange(16)]))
    low = kind.minimum + (kind.maximum - kind.minimum - apart) // 2
    return np.stack([np.where(apart % 2, low, low + apart), np.where(apart % 2, low + apart, low)], axis=1)


def _rows(types: str, length: int, *words: object) -> np.ndarray:
    """Rows with maxima at both ends of the type, equal maxima, all quantized values equal, falling ones, and random
    ones.
    """
    kind = data_type(types)
    drawn = generator(*words, "rows")
    low, high = kind.minimum, kind.maximum
    span = high - low
    rows = [
        np.full(length, low),
        np.full(length, high),
        np.where(np.arange(length) == length - 1, high, low),
        np.where(np.arange(length) == 0, high, low),
        np.where(np.arange(length) % 2 == 0, high, high - span // 40),
        np.linspace(high, low, length).astype(np.int64),
        high - np.minimum(np.arange(length) * np.arange(length) * (span // 255), span),
    ]
    for width in (4, 16, 64, 256):
        reach = max(1, span * width // 256)
        base = int(drawn.integers(low, high - reach + 1))
        rows += list(drawn.integers(base, base + reach + 1, (3, length)))
    return np.stack(rows)


def _flat(types: str, length: int, *words: object) -> np.ndarray:
    """One row in which a few quantized values stand above many small ones."""
    kind = data_type(types)
    drawn = generator(*words)
    span = kind.maximum - kind.minimum
    row = drawn.integers(kind.minimum, kind.minimum + span // 3, length)
    row[drawn.integers(0, length, 3)] = kind.maximum - np.array([0, span // 64, span // 16])
    return np.asarray(row[None])
