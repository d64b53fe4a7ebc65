"""Rows of `onnx`: positions, extremes and marks, as in `onnxruntime`, for every element type."""

from __future__ import annotations

from ...records import replace
from ..onnxruntime.indexing import ROWS as _ROWS
from ..onnxruntime.movement import COMMON, EVERY
from ..table import Row

_WIDER = {
    "arg_max": COMMON[:-1],
    "arg_min": COMMON[:-1],
    "topk_v2": COMMON[:-1],
    "where": COMMON,
    "triangle": COMMON,
    "unique": COMMON,
    "compress": EVERY,
    "reverse_sequence": EVERY,
}
_MARKS = Row("one_hot", ("s32|s64|u8|s8|f32 s32|s64|u8|s8|f32 T -> T",), {}, "vectors", where=EVERY)
_EYE = Row("eye", (f"{'|'.join(COMMON)} -> T",), {}, "vectors", where=COMMON)

ROWS: tuple[Row, ...] = (
    _MARKS,
    _EYE,
    *(replace(row, where=_WIDER.get(row.operator, row.where)) for row in _ROWS if row.operator != "eye"),
)
