"""Rows of `onnxruntime`: element-wise operators, pools and tables on quantized numbers."""

from __future__ import annotations

from ..table import Row

BYTES = ("u8", "s8")
_BINARY = ("T T f32 T f32 T f32 T|- -> T",)
_SCALARS = (("rank_zero", 2, 3, 4, 5, 6, 7),)
_TABLE = ("T f32 T|- f32 T -> T",)
CONCAT = ("T T|f32... -> T",)
WHERE = ("bool T T f32 T f32 T f32 T -> T",)
SCALES = (("attribute_is", "given", "scales"),)
UNARY = ("T f32 T f32 T -> T",)
MEANS = ("T s64|- f32 T f32 T -> T",)
_WHOLE_IMAGE = {
    "accumulate": "s32_wrap",
    "scale_form": "binary32_over_product",
    "rescale": "binary32_multiply_even",
    "store": "clamp_then_zero_point",
}
_NO_NUMBER = "scales whose quotient is NaN are refused, which the runtime takes"
_RUN = "run: random single-node models, recorded vectors; docs/facts/onnxruntime.md 2 and 3"

ROWS: tuple[Row, ...] = (
    Row(
        "add",
        _BINARY,
        {"affine_sum": "binary32_fused_even"},
        f"{_RUN}; machines without fused multiply-add differ in 1e-5 of all elements, ARM uses 22-bit integers (read)",
        where=BYTES,
        requires=_SCALARS,
    ),
    Row(
        "mul",
        _BINARY,
        {"affine_product": "binary32_zero_point_even"},
        _RUN,
        where=BYTES,
        requires=_SCALARS,
    ),
    Row(
        "average_pool",
        UNARY,
        _WHOLE_IMAGE,
        f"{_RUN}; ARM multiplies by 24-bit integers (read)",
        where=BYTES,
        limit=_NO_NUMBER,
        when=(("attribute_is", "kernel", ()),),
    ),
    Row(
        "average_pool",
        ("T f32 T f32 T|- -> T",),
        _WHOLE_IMAGE,
        f"{_RUN}; windows that are the whole image go the way of the global average",
        where=BYTES,
        limit=_NO_NUMBER,
        when=(("window_is_image",),),
        requires=(("rank_zero", 1, 2, 3, 4), ("has_windows_with_channels_last",)),
    ),
    Row(
        "average_pool",
        ("T f32 T f32 T|- -> T",),
        {"affine_average": "binary32_in_order_even"},
        _RUN,
        where=BYTES,
        requires=(("rank_zero", 1, 2, 3, 4), ("has_windows_with_channels_last",)),
    ),
    Row("concatenation", CONCAT, {"combine": "binary32_divide_even"}, _RUN, where=BYTES, when=SCALES),
    Row("select", WHERE, {"combine": "binary32_divide_even"}, _RUN, where=BYTES),
    Row("leaky_relu", _TABLE, {"table": "binary32_divide_256_even"}, _RUN, where=BYTES),
    Row(
        "logistic",
        _TABLE,
        {"table": "binary32_divide_256_even"},
        f"{_RUN}; machines without fused multiply-add differ in 3e-6 of all table entries",
        where=BYTES,
    ),
    Row(
        "softmax",
        _TABLE,
        {"affine_softmax": "binary32_table_even"},
        f"{_RUN}; without elements the runtime leaves its output undefined",
        where=BYTES,
        requires=(("has_elements", 0),),
    ),
    Row(
        "mean",
        MEANS,
        evidence="run: NOT_IMPLEMENTED when the model is loaded",
        where=BYTES,
        refuses="ONNX Runtime's CPU provider has no kernel for QLinearReduceMean",
    ),
)
