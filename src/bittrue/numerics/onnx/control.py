"""Rows of `onnx`: control flow, as in `onnxruntime`."""

from __future__ import annotations

from ..onnxruntime.control import ROWS

__all__ = ["ROWS"]
