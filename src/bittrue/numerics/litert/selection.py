"""Rows of `litert`: selection and placement: what is kept, counted, scattered or sorted."""

from __future__ import annotations

from ..table import Row

_RUN = "run; kernels read at f674577"
_UNWRITTEN = (
    "places beyond the number of detections are 0; the kernel leaves them unwritten, so that they hold what the memory "
    "held before. Options without meaning (classes or room below 1, scales of 0) are refused; with several threads the "
    "kernel may order equal scores of different classes differently (regular suppression). Where NaN scores meet "
    "others, the best class of a box depends on lanes of the runtime's vector code"
)
_EXPONENTIAL = (
    "exp is rounded correctly up to double rounding; the C library's binary32 exp, which the kernel calls, may differ "
    "in the last place for rare arguments"
)
_NANS = "where two different NaNs meet, which one survives is up to the kernel's compiler"
# Types of four bytes are moved as binary32.
_DIAGONAL = ("s8", "u8", "s16", "s32", "u32", "s64", "f32")
_AS_BINARY32 = "elements of any other type are moved as if they were binary32, whatever their size"
_REALS = ("f16", "bf16", "f32", "f64", "c64", "c128")
_MOVED = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", *_REALS, "bool")
# Boxes at corners, as StableHLO's gather has them, and borders with gaps between elements, too.
BOXES, GAPS = (("attribute_is", "boxes", True),), (("attribute_is", "mode", "gaps"),)

ROWS: tuple[Row, ...] = (
    Row(
        "detection_postprocess",
        ("f32 f32|u8 f32 -> f32 f32 f32 f32", "u8 f32|u8 u8 -> f32 f32 f32 f32"),
        {},
        _RUN,
        requires=(("zero_points_fit",),),
        limit=_UNWRITTEN,
    ),
    Row("topk_v2", ("T s16|s32 -> T s16|s32",), {}, _RUN, where=("s8", "u8", "s16", "s32", "s64", "f32")),
    Row("one_hot", ("s32|s64 s32|s64 T T -> T",), {}, _RUN, where=("s8", "u8", "s32", "s64", "f32", "bool")),
    Row("cumsum", ("T s32 -> T",), {}, _RUN, where=("s32", "s64", "f32"), limit=_NANS),
    Row(
        "reverse_sequence",
        ("T s32|s64 -> T",),
        {},
        _RUN,
        where=("u8", "s16", "s32", "s64", "f32"),
        limit="lengths beyond the axis are refused: the kernel checks the first one only and writes outside",
    ),
    Row("scatter_nd", ("- s32 T s32 -> T",), {}, _RUN, where=("s8", "u8", "s32", "s64", "f32", "bool")),
    Row("scatter_nd", ("- s32|s64 T s32|s64 T -> T",), {}, _RUN, where=("s8", "u8", "s32", "s64", "f32")),
    Row("matrix_set_diag", ("- T -> T",), {}, _RUN, where=_DIAGONAL),
    Row(
        "matrix_set_diag",
        ("T T -> T",),
        {},
        _RUN,
        where=_DIAGONAL,
        limit="diagonals that are too short are refused: the kernel reads beyond them",
    ),
    Row("matrix_set_diag", ("- * -> *", "* * -> *"), refuses=_AS_BINARY32),
    Row(
        "dynamic_update_slice",
        ("T T s32|s64 -> T",),
        {},
        _RUN,
        where=("s4", *_MOVED),
    ),
    Row("unsorted_segment", ("T s32 s32 -> T",), {}, _RUN, where=("s32", "f32"), limit=_NANS),
    Row(
        "bucketize",
        ("s32|s64|f32|f64 -> s32",),
        {},
        _RUN,
        limit="boundaries that are NaN are refused: what a binary search finds among them is chance",
    ),
    Row("broadcast_args", ("T T -> T",), {}, _RUN, where=("s32", "s64")),
    Row("non_max_suppression", ("f32 f32 s32 f32 f32 -> s32 s32",), {}, _RUN),
    Row("non_max_suppression", ("f32 f32 s32 f32 f32 f32 -> s32 f32 s32",), {}, _RUN, limit=_EXPONENTIAL),
    Row(
        "pad",
        ("T s32 T -> T",),
        {},
        _RUN,
        where=_MOVED,
        when=GAPS,
        limit="empty tensors are refused: the kernel reads beyond",
    ),
    Row("pad", ("T - T -> T",), {}, _RUN, where=_MOVED, when=GAPS),
    Row(
        "reduce_window",
        ("T T -> T",),
        {},
        _RUN,
        where=("s8", "u8", "s16", "s32", "s64", "f32", "f64", "bool"),
        limit="empty tensors, and paddings that leave nothing or are not two per axis, are refused",
    ),
    Row(
        "reduce_window",
        ("T T s64 s64 s64 -> T",),
        {},
        _RUN,
        where=("s8", "u8", "s16", "s32", "s64", "f32", "f64", "bool"),
        limit="windows, strides and dilations below 1 are refused: the kernel divides by 0 or reads beyond. Sums of "
        "truth values are refused: the kernel stores numbers above 1",
    ),
    Row(
        "gather_nd",
        ("T s32|s64 -> T",),
        {},
        _RUN,
        when=BOXES,
        where=tuple(t for t in _MOVED if t != "c128"),
        limit="attributes that the operator's specification forbids are refused: the kernel checks few of them",
    ),
)
