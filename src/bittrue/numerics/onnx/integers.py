"""Rows of `onnx`: arithmetic of integers and truth values, as in `onnxruntime`."""

from __future__ import annotations

from ..onnxruntime.integers import ROWS

__all__ = ["ROWS"]
