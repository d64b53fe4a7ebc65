"""Rows of `onnx`: QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear."""

from __future__ import annotations

from ..table import Row

ROWS: tuple[Row, ...] = ()
