"""Rows of `onnxruntime`: positions, extremes and marks."""

from __future__ import annotations

from ...records import replace
from ..table import Row
from .movement import COMMON, INTEGERS, NARROW

_ARG = ("f32", "f64", "u8", "s8", "s32", "s64")
_TOP = ("f32", "f64", "u8", "s8", "s16", "s32", "s64")

_COUNT = (("rank_within", 1, 0, 1), ("not_negative", 1))

_PRODUCTS = {"multiply_add": "rounded_twice"}
_IN_ORDER = {"weighted": "binary32_weights_in_order", **_PRODUCTS}
_RESIZES: tuple[Row, ...] = (
    Row(
        "resize_nearest",
        ("T s64|- f32|- -> T",),
        {"nearest": "ties_within_a_millionth", **_PRODUCTS},
        "run",
        where=("f32", "u8", "s8", "s32"),
    ),
    Row(
        "resize_linear",
        ("T s64|- f32|- -> T",),
        {"weighted": "ten_bits_toward_zero", **_PRODUCTS},
        "run",
        where=("u8", "s8"),
        when=(("resized_channels_last",),),
    ),
    Row(
        "resize_linear",
        ("T s64|- f32|- -> T",),
        _IN_ORDER,
        "run",
        where=("u8", "s8"),
        limit="where transposes surround it, the runtime may resize channels last instead, with weights of ten bits",
    ),
    Row(
        "resize_linear",
        ("f32 s64|- f32|- -> f32",),
        {"weighted": "binary32_fractions_in_pairs", **_PRODUCTS},
        "run: images in blocks of channels; docs/facts/onnxruntime.md 5.8",
        when=(("attribute_is", "blocks", True),),
    ),
    Row("resize_linear", ("f32 s64|- f32|- -> f32",), _IN_ORDER, "run"),
    Row("resize_linear", ("s32 s64|- f32|- -> s32",), _IN_ORDER, "run"),
    Row(
        "resize_cubic",
        ("T s64|- f32|- -> T",),
        _PRODUCTS,
        "run: random models; docs/facts/onnxruntime.md 5.10",
        where=("f32", "u8", "s8"),
        when=(("resized_before_channels_or_kept",),),
    ),
    Row("resize_cubic", ("f32 s64|- f32|- -> f32",), _PRODUCTS, "run: random models; docs/facts/onnxruntime.md 5.10"),
    Row(
        "resize_antialiased",
        ("T s64|- f32|- -> T",),
        _PRODUCTS,
        "run: random models; docs/facts/onnxruntime.md 5.12",
        where=("f32", "u8", "s8"),
    ),
)
# The same with a region; images in blocks of channels have none.
_OF_REGIONS = tuple(
    replace(
        row, types=tuple(kinds.replace(" ->", " - - - - f32 ->") for kinds in row.types), evidence="run: random models"
    )
    for row in _RESIZES
    if ("attribute_is", "blocks", True) not in row.when
)

ROWS: tuple[Row, ...] = (
    Row(
        "gather",
        ("T s32|s64 f32 T|- -> f32",),
        {"dequantize": "binary32_multiply"},
        "run: 3000 random single-node models, every bit",
        where=("u8", "u4", "s4"),
        when=(("attribute_is", "batch_dims", None),),
    ),
    Row(
        "gather",
        ("T s32|s64 f32 -> f32",),
        {"dequantize": "binary32_multiply"},
        "run: 300 random single-node models, every bit",
        where=(*NARROW, "f4e2m1"),
        when=(("attribute_is", "batch_dims", None),),
    ),
    *(Row(stem, ("T s64 -> s64",), {}, "run", where=_ARG) for stem in ("arg_max", "arg_min")),
    Row(
        "topk_v2",
        ("T s64 -> T s64",),
        {},
        "run: 200 random models of results that need not be sorted among others, 2,500 with NaN, every bit",
        where=_TOP,
        requires=_COUNT,
        limit="where a comparison with NaN goes on beyond the end of a row, the runtime reads foreign memory",
    ),
    Row(
        "non_max_suppression",
        ("f32 f32 s64|- f32|- f32|- -> s64",),
        {},
        "run",
        limit="NaN among boxes: which ones overlap depends on the order of comparisons",
    ),
    Row("where", ("T -> s64",), {}, "run", where=("f32", "u8", "s32", "s64", "bool")),
    Row(
        "one_hot",
        (
            "s32 s32|f32 f32 -> f32",
            "s64 s32|s64|f32 f32 -> f32",
            "s64 s64 s64 -> s64",
            "s64 f32 s32 -> s32",
            "f32 f32 f32 -> f32",
            "f32 s64 s64 -> s64",
        ),
        {},
        "run",
    ),
    *_RESIZES,
    *_OF_REGIONS,
    Row("affine_grid", ("T s64 -> T",), _PRODUCTS, "run: 300 random models, every bit", where=("f32", "f64")),
    *(
        Row(
            "mel_weights",
            (f"s32|s64 s32|s64 s32|s64 f32 f32 -> {results}",),
            {},
            "run: 300 random models, every bit",
            limit="the C library's logarithms and powers of binary64 numbers are those of the machine",
        )
        for results in ("f32|f64", "|".join(INTEGERS))
    ),
    Row(
        "discrete_fourier",
        ("T s32|s64|- s64|- T|- s32|s64 -> T", "T s32|s64|- s64|- -> T"),
        _PRODUCTS,
        "run: random models, every bit; docs/facts/onnxruntime.md 5.14",
        where=("f32", "f64"),
        limit="infinities and NaN: C++ mends products of complex numbers that have them",
    ),
    Row(
        "grid_sample",
        ("f64 f64 -> f64",),
        evidence="run: NOT_IMPLEMENTED when the model is loaded",
        when=(("attribute_is", "first_version", True),),
        refuses="ONNX Runtime's CPU provider has kernels for GridSample of f64 from operator set 20 on",
    ),
    Row(
        "grid_sample",
        ("T T -> T",),
        _PRODUCTS,
        "run: random models; docs/facts/onnxruntime.md 5.9",
        where=("f32", "f64"),
    ),
    Row("unpool", ("f32 s64 s64|- -> f32",), {}, "run"),
    Row(
        "cosine_window",
        ("s32|s64 -> T",),
        _PRODUCTS,
        "run",
        where=("f32", "f64", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"),
    ),
    Row("compress", ("T bool -> T",), {}, "run", where=COMMON),
    Row("reverse_sequence", ("T s64 -> T",), {}, "run", where=COMMON),
    Row("eye", ("f32|f64|s32|s64|u64 -> f32|f64|s32|s64|u64",), {}, "run"),
    Row("triangle", ("T s64|- -> T",), {}, "run", where=("f32", "f64", "s32", "s64", "bool")),
    Row(
        "unique",
        ("T -> T", "T -> T s64", "T -> T s64 s64", "T -> T s64 s64 s64"),
        {},
        "run",
        where=("f32", "f64", "s8", "s64"),
        limit="cutting an empty tensor along an axis ends the runtime's process",
    ),
    Row("unfold", ("T -> T",), {}, "run", where=("f32", "f64", "s32", "u32", "s64", "u64")),
    Row(
        "hashed_groups",
        tuple(
            f"T T T s32|- T|- T|- T|- s32|- s32|- s32|- -> {results}"
            for results in ("T", "T T", "T T s32", "T T s32 T")
        ),
        {},
        "run: 300 random models, every bit",
        where=("s32", "s64"),
    ),
    Row("append_verified", ("s64 s64 s64 s64|- -> s64 s64",), {}, "run: 300 random models, every bit"),
    Row("warped_path", ("f32 -> s32",), {}, "run: 300 random models, every bit"),
    Row("ban_repeats", ("s64 f32 -> f32",), {}, "run: 200 random models, every bit"),
    Row("crop_and_resize", ("f32 f32 s32 s32 -> f32",), _PRODUCTS, "run: 200 random models, every bit"),
)
