"""Rows of `onnxruntime`: matrix products and convolutions on integers."""

from __future__ import annotations

from ..table import Row

# M = f32(f32(s_a * s_b) / s_y); f32(acc) * M is clamped, then rounded to even; the zero point is added last.
REQUANTIZE = {
    "accumulate": "s32_wrap",
    "scale_form": "binary32",
    "rescale": "binary32_multiply_even",
    "store": "clamp_then_zero_point",
}

# Dilated windows with auto_pad SAME_* are refused.
UNDILATED = (("undilated_same",),)
# Quantized values and their zero points are of one type.
PAIRS = tuple(f"{a} {b} {a}|- {b}|- -> s32" for a in ("u8", "s8") for b in ("u8", "s8"))
# The same as operands of layers, which have no bias and no scales then.
SUMS = tuple(f"{a} {b} - - {a}|- - {b}|- -> s32" for a in ("u8", "s8") for b in ("u8", "s8"))
_FACTORS = (("u8", "u8"), ("u8", "s8"), ("s8", "s8"))
_MATRICES = (("attribute_is", "matrices", True),)
_SCALED_SUMS = {"accumulate": "s32_wrap", "scale_back": "binary32_product_of_scales"}
_AXES = "more than three spatial axes, and convolutions of no channels, are refused"
_RUN = "run; docs/facts/onnxruntime.md 2"

_N_BITS = ("f32 u8 f32|- - - f32 u8|f32|- -> f32",)
_N_BITS_BY_INTEGERS = ("f32 u8 f32|- - - f32 u8|- -> f32",)
_PRODUCT = {"real_product": "binary32_fused_blocks"}

_EXPERTS = "run on x86-64 with AVX2 and FMA, and with AVX-512, one thread: 500 random single-node models, every bit"
_EXPERTS_BY_BLOCKS = "weights in blocks: run on x86-64 with AVX-512 VNNI, one thread: 300 random models, every bit"
_OTHERS = "other processors have other kernels, several threads other blocks: last bits differ"

ROWS: tuple[Row, ...] = (
    Row(
        "matmul",
        _N_BITS,
        when=(("attribute_is", "partly_written", True),),
        refuses="the runtime joins DequantizeLinear of 2-bit weights with the product, and leaves some unwritten where "
        "columns are no multiple of 4",
    ),
    *(
        row
        for product, *when in (
            ("binary32_16_lanes", ("attribute_is", "bits", 4, 8)),
            ("binary32_four_blocks", ("attribute_is", "bits", 2), ("attribute_is", "block_size", 32, 64, 128)),
        )
        for row in (
            Row(
                "matmul",
                _N_BITS_BY_INTEGERS,
                {"row_blocks": "binary32_over_127", "block_product": product},
                "run on x86-64 with AVX-512 VNNI, one thread: 2000 random single-node models, every bit",
                when=(*when, ("attribute_is", "accuracy_level", 4), ("constant_inputs", 1, 5)),
                limit="other processors have other kernels: last bits differ; computed zero points are ignored",
            ),
            Row(
                "matmul",
                _N_BITS_BY_INTEGERS,
                when=(*when, ("attribute_is", "accuracy_level", 4), ("constant_inputs", 1)),
                refuses="the runtime arranges the weights without computed scales, and reads what it never wrote",
                advice="make the scales constants, or the accuracy level 1",
            ),
        )
    ),
    Row(
        "matmul",
        _N_BITS,
        {**_PRODUCT, "multiply_add": "rounded_twice"},
        "run on x86-64 with AVX-512 and FMA, one thread: 500 random single-node models, every bit",
        limit="other processors have other kernels, several threads other blocks: last bits differ",
    ),
    Row(
        "mixture_of_experts",
        ("f32 f32 f32 f32 f32|- f32|- -> f32",),
        {"expert_choice": "softmax_then_best", "multiply_add": "rounded_twice", **_PRODUCT},
        _EXPERTS,
        limit=_OTHERS,
    ),
    *(
        Row(
            "mixture_of_experts",
            ("f32 f32 u8 u8 f32|- f32|- f32 f32 u8|- u8|- f32|- -> f32",),
            {"expert_choice": choice, "multiply_add": "rounded_twice", **_PRODUCT, **rules},
            evidence,
            when=(("attribute_is", "accuracy_level", level), *when),
            limit=f"{_OTHERS}; of two NaN operands the runtime may keep the other one",
        )
        for level, rules, evidence in (
            (4, {"row_blocks": "binary32_over_127", "block_product": "binary32_16_lanes"}, _EXPERTS_BY_BLOCKS),
            (0, {"table_product": "binary32_tables_of_fours"}, f"{_EXPERTS}; {_EXPERTS_BY_BLOCKS}"),
        )
        for choice, when in (
            ("best_then_softmax_fewest_first", (("experts_gate_by_blocks",),)),
            ("best_then_softmax", ()),
        )
    ),
    Row(
        "conv",
        SUMS,
        {"accumulate": "s32_wrap"},
        _RUN,
        requires=(*UNDILATED, ("single_values", 6)),
        limit=_AXES,
    ),
    Row(
        "conv",
        tuple(f"{x} {w} s32|- f32 {x} f32 {w} f32 {x} -> {x}" for x, w in (("u8", "u8"), ("u8", "s8"), ("s8", "s8"))),
        REQUANTIZE,
        _RUN,
        requires=UNDILATED,
        limit=_AXES,
    ),
    Row(
        "matmul",
        SUMS,
        {"accumulate": "s32_wrap"},
        _RUN,
        requires=(("single_values", 4), ("sums_have_products", 1)),
    ),
    Row(
        "matmul",
        tuple(f"{a} {b} f32|- f32 {a}|- f32 {b}|- -> f32" for a, b in _FACTORS),
        _SCALED_SUMS,
        _RUN,
        when=(("attribute_is", "matrices", None),),
        limit="scales that do not broadcast to the result are refused; the runtime may write beyond its output",
        requires=(("single_values", 4), ("sums_have_products", 1)),
    ),
    Row(
        "matmul",
        tuple(f"{a} {b} s32|- f32 {a} f32 {b} -> f32" for a, b in _FACTORS),
        _SCALED_SUMS,
        _RUN,
        when=_MATRICES,
        requires=(("sums_have_products", 1),),
    ),
    Row(
        "matmul",
        tuple(f"{a} {b} s32|- f32 {a} f32 {b} f32 -> f32" for a, b in _FACTORS),
        {**_SCALED_SUMS, "scale_form": "binary32"},
        _RUN,
        when=_MATRICES,
        requires=(("sums_have_products", 1),),
    ),
    Row(
        "matmul",
        (
            *(f"{a} {b} s32|- f32 {a} f32 {b} f32|- {a} -> {a}" for a, b in _FACTORS),
            *(f"{a} {b} - f16 {a} f16 {b} f16 {a} -> {a}" for a, b in _FACTORS),
        ),
        REQUANTIZE,
        f"{_RUN}; binary16 scales are widened",
        requires=(("single_values", 3, 4), ("sums_have_products", 1)),
    ),
)
