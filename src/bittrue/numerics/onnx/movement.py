"""Rows of `onnx`: data movement and shapes as in `onnxruntime`, for every element type."""

from __future__ import annotations

from ...records import replace
from ..onnxruntime.movement import CASTS, EVERY, FROM_NARROW, INTEGERS, MOVED, NARROW, SHAPES
from ..table import Row

_ALL = (*EVERY, *NARROW, "u4", "s4", "u2", "s2", "f4e2m1", "f8e8m0", "c64", "c128")
_ANY_TYPE = tuple(row for row in (*MOVED, *SHAPES) if row.where and row.operator != "range")
_SMALLER, _EIGHT = "f6e2m3|f6e3m2|f4e2m1", "|".join(NARROW)
_INTEGERS = "|".join((*INTEGERS, "u4", "s4", "u2", "s2", "bool"))
_REAL = f"f16|bf16|f32|f64|{_EIGHT}|{_SMALLER}|f8e8m0"
_AXES = {"pad": ("T s64 T|- s32|s64|- -> T",)}

ROWS: tuple[Row, ...] = (
    *(replace(row, where=_ALL, types=_AXES.get(row.operator, row.types)) for row in _ANY_TYPE),
    *(row for row in SHAPES if row.operator == "range"),
    *CASTS,
    *FROM_NARROW,
    Row("convert", (f"{_REAL} -> u4|s4|u2|s2",), {"cast": "truncate_low_bits"}, "vectors"),
    Row(
        "convert",
        (f"{_REAL}|{_INTEGERS} -> f8e8m0",),
        {"power_code": "by_magnitude"},
        "vectors; negative numbers are unspecified: their magnitude",
    ),
    Row(
        "convert",
        (f"{_REAL}|{_INTEGERS} -> {_EIGHT}",),
        {"narrow": "even_overflow"},
        "vectors",
        when=(("attribute_is", "saturate", False),),
    ),
    Row("convert", (f"{_REAL}|{_INTEGERS} -> {_EIGHT}|{_SMALLER}",), {"narrow": "even_saturate"}, "vectors"),
    Row("convert", (f"{_SMALLER}|f8e8m0 -> f16|bf16|f32|f64|bool",), {}, "vectors"),
    Row("convert", (f"{_SMALLER}|f8e8m0 -> {_INTEGERS}",), {"cast": "truncate_low_bits"}, "vectors"),
)
