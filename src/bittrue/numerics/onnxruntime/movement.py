"""Rows of `onnxruntime`: data movement."""

from __future__ import annotations

from ..table import Row

EVERY = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f64", "bool")
_MOVED = "run: elements are copied"

ROWS: tuple[Row, ...] = (Row("transpose", ("T s64|- -> T",), {}, _MOVED, where=EVERY),)
