"""Rows of `onnxruntime`: matrix products and convolutions on integers."""

from __future__ import annotations

from ..table import Row

# M = f32(f32(s_a * s_b) / s_y); f32(acc) * M is clamped, then rounded to even; the zero point is added last.
REQUANTIZE = {
    "accumulate": "s32_wrap",
    "scale_form": "binary32",
    "rescale": "binary32_multiply_even",
    "store": "clamp_then_zero_point",
}

ROWS: tuple[Row, ...] = (
    Row(
        "qlinear_matmul",
        ("u8 f32 u8 u8 f32 u8 f32 u8 -> u8", "u8 f32 u8 s8 f32 s8 f32 u8 -> u8", "s8 f32 s8 s8 f32 s8 f32 s8 -> s8"),
        REQUANTIZE,
        "run; facts/onnxruntime.md 2",
    ),
)
