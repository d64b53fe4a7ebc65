"""Oldest and newest operator version that the runtime registers here, where it is not what `litert` has."""

from __future__ import annotations

from ..litert.versions import VERSIONS as LITERT

VERSIONS: dict[str, tuple[int, int]] = {
    **LITERT,
    "ABS": (1, 5),
    "ADD": (1, 6),
    "ARG_MAX": (1, 3),
    "ARG_MIN": (1, 3),
    "COS": (1, 2),
    "DEPTH_TO_SPACE": (1, 2),
    "DEPTHWISE_CONV_2D": (1, 7),
    "ELU": (1, 1),
    "GELU": (1, 3),
    "MUL": (1, 8),
    "RANGE": (1, 2),
    "SIN": (1, 2),
    "SOFTMAX": (1, 4),
    "SQUEEZE": (1, 2),
    "STRIDED_SLICE": (1, 8),
    "TILE": (1, 3),
    "TRANSPOSE": (1, 9),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (1, 4),
}
