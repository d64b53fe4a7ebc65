"""Rows of `onnx`: arithmetic of integers and truth values, as in `onnxruntime`; remainders of 64 bits are exact."""

from __future__ import annotations

from ..onnxruntime.integers import ROWS as _ROWS
from ..onnxruntime.integers import SHIFT
from ..onnxruntime.movement import INTEGERS
from ..table import Row

ROWS: tuple[Row, ...] = (
    Row("remainder", ("T T -> T",), {"remainder": "exact"}, "vectors", where=INTEGERS),
    *(Row(f"shift_{way}", ("T T -> T",), SHIFT, "vectors", where=INTEGERS) for way in ("left", "right")),
    *(Row(stem, ("T T -> T",), {}, "vectors", where=("u16", "s16")) for stem in ("maximum", "minimum")),
    Row("floor_mod", ("T T -> T",), {"modulo": "zero_of_divisor"}, "vectors", where=("f32", "f64")),
    *_ROWS,
)
