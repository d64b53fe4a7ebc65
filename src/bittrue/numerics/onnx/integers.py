"""Rows of `onnx`: arithmetic of integers and truth values, as in `onnxruntime`; remainders of 64 bits are exact."""

from __future__ import annotations

from ..onnxruntime.integers import OF_DIVIDEND, OF_DIVISOR, SHIFT
from ..onnxruntime.integers import ROWS as _ROWS
from ..onnxruntime.movement import INTEGERS
from ..table import Row

ROWS: tuple[Row, ...] = (
    Row("remainder", ("T T -> T",), {"remainder": "exact"}, "vectors", where=INTEGERS, when=(OF_DIVIDEND,)),
    Row("shift", ("T T -> T",), SHIFT, "vectors", where=INTEGERS),
    *(Row(stem, ("T T -> T",), {}, "vectors", where=("u16", "s16")) for stem in ("maximum", "minimum")),
    Row(
        "remainder",
        ("T T -> T",),
        {"modulo": "zero_of_divisor"},
        "vectors",
        where=("f32", "f64"),
        when=(OF_DIVISOR,),
    ),
    *_ROWS,
)
