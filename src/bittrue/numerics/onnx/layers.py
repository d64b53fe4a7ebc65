"""Rows of `onnx`: matrix products and convolutions on integers."""

from __future__ import annotations

from ..onnxruntime.layers import REQUANTIZE
from ..table import Row

ROWS: tuple[Row, ...] = (
    Row(
        "qlinear_matmul",
        ("u8|s8 f32 u8|s8 u8|s8 f32 u8|s8 f32 u8|s8 -> u8|s8",),
        REQUANTIZE,
        "vectors of onnx 1.23.2; the specification leaves the multiplier's precision open",
    ),
)
