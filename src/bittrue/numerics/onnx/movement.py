"""Rows of `onnx`: data movement and shapes as in `onnxruntime`, for every element type."""

from __future__ import annotations

from dataclasses import replace

from ..onnxruntime.movement import CASTS, EVERY, MOVED, NARROW, SHAPES
from ..table import Row

_ALL = (*EVERY, *NARROW, "u4", "s4", "u2", "s2", "f4e2m1", "f8e8m0", "c64", "c128")
_ANY_TYPE = tuple(row for row in (*MOVED, *SHAPES) if row.where and row.operator != "count_up")
_AXES = {"border": ("T s64 T|- s32|s64|- -> T",)}

ROWS: tuple[Row, ...] = (
    *(replace(row, where=_ALL, types=_AXES.get(row.operator, row.types)) for row in _ANY_TYPE),
    *(row for row in SHAPES if row.operator == "count_up"),
    *CASTS,
)
