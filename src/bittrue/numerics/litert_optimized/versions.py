"""Oldest and newest operator version that the runtime registers here, where it is not what `litert` has."""

from __future__ import annotations

from ..litert.versions import VERSIONS as LITERT

VERSIONS: dict[str, tuple[int, int]] = {
    **LITERT,
    "abs": (1, 5),
    "add": (1, 6),
    "arg_max": (1, 3),
    "arg_min": (1, 3),
    "cos": (1, 2),
    "depth_to_space": (1, 2),
    "depthwise_conv2d": (1, 7),
    "elu": (1, 1),
    "gelu": (1, 3),
    "mul": (1, 8),
    "range": (1, 2),
    "sin": (1, 2),
    "softmax": (1, 4),
    "squeeze": (1, 2),
    "strided_slice": (1, 8),
    "tile": (1, 3),
    "transpose": (1, 9),
    "unidirectional_sequence_lstm": (1, 4),
}
