"""Rows of `onnxruntime`: control flow."""

from __future__ import annotations

from ..table import Row

ROWS: tuple[Row, ...] = (
    Row("branch", ("bool *... -> *...",), {}, "run"),
    Row("loop", ("s64 bool *... -> *...",), {}, "run"),
)
