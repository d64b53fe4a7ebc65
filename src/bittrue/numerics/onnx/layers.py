"""Rows of `onnx`: matrix products and convolutions on integers."""

from __future__ import annotations

from itertools import product

from ..onnxruntime.layers import SUMS
from ..table import Row

_SUMS = {"accumulate": "s32_wrap"}
# The real quotient of scales is rounded once, to even; the zero point is added last.
_REQUANTIZE = {**_SUMS, "requantize": "real_even", "store": "clamp_then_zero_point"}
_TEXT = "text, vectors of onnx 1.23.2 and 1.12, oracle in exact fractions"
_LIMIT = "scales that are infinite, NaN, or 0 for the result are refused: the text gives them no meaning"
_CODES = tuple(product(("u8", "s8"), repeat=3))

ROWS: tuple[Row, ...] = (
    Row("conv", SUMS, _SUMS, _TEXT),
    Row("matmul", SUMS, _SUMS, _TEXT),
    Row(
        "conv",
        tuple(f"{x} {w} s32|- f32 {x} f32 {w} f32 {y} -> {y}" for x, w, y in _CODES),
        _REQUANTIZE,
        _TEXT,
        limit=_LIMIT,
    ),
    Row(
        "matmul",
        tuple(f"{a} {b} - T {a} T {b} T {y} -> {y}" for a, b, y in _CODES),
        _REQUANTIZE,
        _TEXT,
        where=("f32", "f16", "bf16"),
        limit=f"{_LIMIT}; results are quantized per tensor",
    ),
)
