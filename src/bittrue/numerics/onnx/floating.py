"""Rows of `onnx`: operators on real numbers."""

from __future__ import annotations

from ..table import Row

ROWS: tuple[Row, ...] = ()
