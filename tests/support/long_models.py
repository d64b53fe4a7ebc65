"""Models that run for seconds, or for ever: what timeouts and interrupts are tried on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .build import G, T, several, single
from .graphs import loop

Model = tuple[bytes, list[np.ndarray]]

_CONV = {"strideH": 1, "strideW": 1, "padding": 0, "dilationHFactor": 1, "dilationWFactor": 1}


def convolution(size: int = 448, channels: int = 64) -> Model:
    """A binary32 convolution of 11 x 11; seconds with these sizes."""
    rng = np.random.default_rng(0)
    x, y = (T("f32", (1, size, size, channels)) for _ in range(2))
    weights = T("f32", (channels, 11, 11, channels), data=rng.random((channels, 11, 11, channels), np.float32))
    bias = T("f32", (channels,), data=np.zeros(channels, np.float32))
    return single("CONV_2D", ("Conv2DOptions", _CONV), [x, weights, bias], [y]), [rng.random(x.shape, np.float32)]


def boxes(count: int = 60_000) -> Model:
    """NON_MAX_SUPPRESSION_V4 of boxes that lie apart."""
    corners = np.arange(count, dtype=np.float32)[:, None] * 2 + np.float32([0, 0, 1, 1])
    scores = np.random.default_rng(0).random(count, np.float32) + np.float32(0.5)
    limits = [T("s32", (), data=np.int32(count)), *(T("f32", (), data=np.float32(v)) for v in (0.5, 0.1))]
    inputs = [T("f32", (count, 4)), T("f32", (count,)), *limits]
    options = ("NonMaxSuppressionV4Options", {})
    return single("NON_MAX_SUPPRESSION_V4", options, inputs, [T("s32", (count,)), T("s32", ())]), [corners, scores]


def endless_while() -> Model:
    return loop([-1], 2**31 - 1), [np.array(0, np.int32), np.ones((2, 3), np.float32)]


def counted(rounds: int) -> Model:
    """A loop of so many rounds, which Python drives."""
    return loop([-1], rounds), [np.array(0, np.int32), np.ones((2, 3), np.float32)]


def lstm(time: int = 400_000, cells: int = 32) -> Model:
    """UNIDIRECTIONAL_SEQUENCE_LSTM of binary32 over many steps of time."""
    rng = np.random.default_rng(0)

    def constant(*shape: int) -> T:
        return T("f32", shape, data=rng.standard_normal(shape).astype(np.float32) / 8)

    def state() -> T:
        return T("f32", (1, cells), variable=True)

    square, none = (cells, cells), None
    x, y = T("f32", (1, time, cells)), T("f32", (1, time, cells))
    inputs = [x, *(constant(*square) for _ in range(8)), *[none] * 3, *(constant(cells) for _ in range(4))]
    inputs += [none, none, state(), state(), *[none] * 4]
    options = ("UnidirectionalSequenceLSTMOptions", {"fusedActivationFunction": 4, "timeMajor": False})
    return single("UNIDIRECTIONAL_SEQUENCE_LSTM", options, inputs, [y]), [rng.random(x.shape, np.float32)]


def writes_then_works(size: int = 448) -> Model:
    """y = state + x; state = -y; then a convolution of seconds (with this size)."""
    rng = np.random.default_rng(0)
    x, y, state = T("f32", (2,)), T("f32", (2,)), T("f32", (2,), variable=True)
    image, result = T("f32", (1, size, size, 64)), T("f32", (1, size, size, 64))
    weights = T("f32", (64, 11, 11, 64), data=rng.random((64, 11, 11, 64), np.float32))
    bias = T("f32", (64,), data=np.zeros(64, np.float32))
    nodes = [
        ("ADD", ("AddOptions", {}), [state, x], [y]),
        ("NEG", None, [y], [state]),
        ("CONV_2D", ("Conv2DOptions", _CONV), [image, weights, bias], [result]),
    ]
    return several(G(nodes, [x, image], [y, result])), [np.float32([1, 2]), rng.random(image.shape, np.float32)]


LONG: dict[str, Callable[[], Model]] = {
    "convolution": convolution,
    "boxes": boxes,
    "while": endless_while,
    "lstm": lstm,
}
