"""Rows of `onnx`: data movement and shapes, as in `onnxruntime`."""

from __future__ import annotations

from ..onnxruntime.movement import ROWS

__all__ = ["ROWS"]
