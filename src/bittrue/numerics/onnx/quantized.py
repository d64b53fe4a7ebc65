"""Rows of `onnx`: element-wise operators, pools and tables on quantized numbers."""

from __future__ import annotations

from ..table import Row

ROWS: tuple[Row, ...] = ()
