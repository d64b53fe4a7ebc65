"""Rows of `onnx`: arithmetic of integers and truth values, as in `onnxruntime`; remainders of 64 bits are exact."""

from __future__ import annotations

from ..onnxruntime.integers import ROWS as _ROWS
from ..onnxruntime.movement import INTEGERS
from ..table import Row

ROWS: tuple[Row, ...] = (
    Row("remainder", ("T T -> T",), {"remainder": "exact"}, "vectors", where=INTEGERS),
    *_ROWS,
)
