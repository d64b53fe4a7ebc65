"""Rows of `onnxruntime`: attention and what goes with it in transformers."""

from __future__ import annotations

from ..table import Row

_RUN = "run on x86-64 with AVX-512, one thread: 500 random single-node models, every bit; docs/facts/onnxruntime.md 9"
OTHERS = "other processors have other kernels, whose last bits differ"
CACHE = f"{OTHERS}; blocks of keys are those of a second-level cache of 1 MiB"
_TYPES = ("f32 f32|s32|s64|bool|-... -> f32...", "f32 -> f32...")
_PRODUCTS = {"real_product": "binary32_fused_blocks", "real_softmax": "binary32_polynomial_16_lanes"}


_SINGLE = ("attribute_is", "half", None)
_HALVES = (("attribute_is", "half", True), ("attribute_is", "begins_with_mask", True))

_CACHED = {**_PRODUCTS, "cached_product": "binary32_8_lanes"}
_INTEGERS = "f32 f32|- f32|- - - f32|- {0} {0} s32 s32 f32|- f32 f32 -> f32 {0} {0}"
# Caches of integers: 8 bits, or two of 4 bits in a byte.
_OF_INTEGERS = tuple(
    Row(
        "attention",
        tuple(f"{_INTEGERS.format(kind)}{scores}" for kind in ("s8", "u8") for scores in ("", " f32")),
        {"attention": rule, **_CACHED},
        "read; kernels of AVX2 run, those of AVX-512 not",
        when=when,
        limit=f"{OTHERS}: kernels of AVX-512 for caches of integers were not run; {CACHE}",
        inexact=True,
    )
    for rule, when in (
        ("binary32_blocks_of_all_queries", (("attends_in_plain",),)),
        ("whole_rows", ()),
    )
)

_ATTENTION = tuple(
    Row("attention", _TYPES, {"attention": rule, **_PRODUCTS}, _RUN, when=when, limit=limit)
    for rule, when, limit in (
        ("binary32_blocks", (("attribute_is", "blocks", "alone"), ("attends_alone",)), CACHE),
        ("binary32_blocks_by_inverse", (("attribute_is", "blocks", "placed"), _SINGLE, ("attends_in_plain",)), CACHE),
        ("whole_rows_of_halves", _HALVES, OTHERS),
        ("whole_rows", (), OTHERS),
    )
)

ROWS: tuple[Row, ...] = (
    *_OF_INTEGERS,
    *_ATTENTION,
    Row(
        "rotary_embedding",
        ("f32 f32 f32 s64|-... -> f32", "f32 f32 f32 s64|- s32 s32 -> f32", "f32 f32 f32 -> f32"),
        {"rotation": "binary32_fused_vectors"},
        _RUN,
        limit=OTHERS,
    ),
    Row(
        "linear_attention",
        ("f32 f32 f32 f32|- f32|- f32|- -> f32 f32",),
        {"real_product": "binary32_fused_blocks"},
        "run on x86-64 with AVX2 and FMA, one thread: 500 random single-node models, every bit",
        limit=OTHERS,
    ),
    Row(
        "causal_conv",
        ("f32 f32 f32|- f32|- -> f32 f32",),
        {},
        "run: 500 random single-node models, every bit",
    ),
    Row("root_mean_square", ("f32 f32 -> f32",), {}, "run: 500 random single-node models, every bit"),
)
