"""Rows of `onnxruntime`: attention and what goes with it in transformers."""

from __future__ import annotations

from ..table import Row

_RUN = "run on x86-64 with AVX-512, one thread: 500 random single-node models, every bit; docs/facts/onnxruntime.md 9"
OTHERS = "other processors have other kernels, whose last bits differ"
CACHE = f"{OTHERS}; blocks of keys are those of a second-level cache of 1 MiB"
LEFT = "; rows of a sliding cache behind the last key, 0 here, are memory that the runtime leaves as it is"
_TYPES = ("f32 f32|s32|s64|bool|-... -> f32...", "f32 -> f32...")
_PRODUCTS = {"real_product": "binary32_fused_blocks", "real_softmax": "binary32_polynomial_16_lanes"}
_ROUNDED = {"multiply_add": "rounded_twice"}
_STATES = ("f32 f32 f32 f32|- f32|- f32|- -> f32 f32",)

_SINGLE = ("attribute_is", "half", None)
_HALVES = (("attribute_is", "half", True), ("attribute_is", "begins_with_mask", True))

_CACHED = {**_PRODUCTS, "cached_product": "binary32_16_lanes"}
_DECODED = (
    f"{CACHE}; where threads outnumber the heads of all sequences, a single query over several blocks is put together"
    " from them in another way"
)
_INTEGERS = "f32 f32|- f32|- - - f32|- {0} {0} s32 s32 f32|- f32 f32 -> f32 {0} {0}"
# Caches of integers: 8 bits, or two of 4 bits in a byte.
_OF_INTEGERS = tuple(
    Row(
        "attention",
        tuple(f"{_INTEGERS.format(kind)}{scores}" for kind in ("s8", "u8") for scores in ("", " f32")),
        {"attention": rule, **_CACHED},
        "run on x86-64 with AVX-512, one thread and two: 1,000 random single-node models, every bit",
        when=when,
        limit=limit + LEFT,
    )
    for rule, when, limit in (
        ("binary32_blocks_of_all_queries", (("attends_in_plain",),), _DECODED),
        ("whole_rows", (), OTHERS),
    )
)

_ATTENTION = tuple(
    Row("attention", _TYPES, {"attention": rule, **_PRODUCTS}, _RUN, when=when, limit=limit + LEFT)
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
        _STATES,
        {"state_step": "binary32_fused_from_old_state"},
        "run on x86-64 with AVX-512, one thread and two: 600 random single-node models, every bit",
        when=(("states_fill_vectors",),),
        limit=OTHERS,
    ),
    Row(
        "linear_attention",
        _STATES,
        {"state_step": "binary32_in_turn", "real_product": "binary32_fused_blocks"},
        "run on x86-64 with AVX2 and FMA, and with AVX-512: 500 random single-node models each, every bit",
        limit=OTHERS,
    ),
    Row(
        "causal_conv",
        ("f32 f32 f32|- f32|- -> f32 f32",),
        _ROUNDED,
        "run: 500 random single-node models, every bit",
    ),
    Row("root_mean_square", ("f32 f32|- -> f32",), _ROUNDED, "run: 500 random single-node models, every bit"),
    Row("reduce_streams", ("f32 f32 -> f32",), _ROUNDED, "run: 200 random single-node models, every bit"),
    Row("mix_streams", ("f32 f32 f32 f32|- -> f32",), _ROUNDED, "run: 200 random single-node models, every bit"),
)
