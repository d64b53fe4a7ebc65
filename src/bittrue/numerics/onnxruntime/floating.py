"""Rows of `onnxruntime`: operators on real numbers."""

from __future__ import annotations

from ..table import Row

_RUN = "run: random single-node models"
_PLAIN = {"plain_range": "unlimited"}
_INTEGERS = ("s32", "s64")
_SELECTED = ("s8", "u8", "s32", "s64", "f32", "f64")

# What IEEE 754 or a comparison defines, so that every numerics of this format shares it.
EXACT: tuple[Row, ...] = (
    *(Row(stem, ("f32 f32 -> f32",), _PLAIN, _RUN) for stem in ("add", "sub", "mul", "div")),
    *(Row(stem, ("f32 -> f32",), {}, _RUN) for stem in ("ceil", "floor", "reciprocal", "round_even", "sign", "sqrt")),
    Row("relu", ("f32 -> f32",), {}, _RUN),
    Row(
        "clip",
        ("T T|- T|- -> T",),
        {},
        _RUN,
        where=("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f32", "f64"),
    ),
    Row("leaky_relu", ("f32 -> f32",), {"slope": "scaled_below_zero"}, _RUN),
    Row("thresholded_relu", ("f32 -> f32",), {}, _RUN),
    Row("prelu", ("f32 f32 -> f32",), {}, _RUN),
    *(
        Row(stem, ("T s64|- -> T",), {}, _RUN, where=_SELECTED, limit="NaN: the runtime's result depends on its lanes")
        for stem in ("axes_max", "axes_min")
    ),
    *(
        Row(f"reduce_{kind}", ("T s64|- -> T",), {}, _RUN, where=_INTEGERS)
        for kind in ("sum", "mean", "sum_square", "l1")
    ),
    Row("axes_prod", ("T s64|- -> T",), {}, _RUN, where=_INTEGERS),
    Row("max_pool", ("T -> T", "T -> T s64"), {}, _RUN, where=("f32", "s8", "u8")),
    Row("global_max_pool", ("f32 -> f32",), {}, _RUN),
)

_MACHINE = "run on x86-64 with AVX-512: random single-node models; other processors have other kernels"
_LIMIT = "the runtime's own approximation or order of additions is not reproduced: last bits differ"


def _other(stem: str, types: tuple[str, ...], rules: dict[str, str]) -> Row:
    return Row(stem, types, rules, "run; see the limit", limit=_LIMIT, inexact=True)


_PRODUCT, _SUM = {"real_product": "binary32_fused_blocks"}, {"real_sum": "rounded_once"}
_NORMAL, _SOFTMAX = {"real_normalization": "rounded_once"}, {"real_softmax": "rounded_once"}
_ONE = ("f32 -> f32",)

ROWS: tuple[Row, ...] = (
    *EXACT,
    *(
        _other(stem, _ONE, {"real_function": "rounded_once"})
        for stem in (
            "celu",
            "cos",
            "hard_sigmoid",
            "hard_swish",
            "log",
            "mish",
            "parametric_elu",
            "selu",
            "sin",
            "softplus",
            "softsign",
        )
    ),
    *(
        Row(stem, _ONE, {"real_function": "binary32_fused_polynomials"}, _MACHINE)
        for stem in ("erf", "exp", "logistic", "quick_gelu", "tanh")
    ),
    Row("gelu", _ONE, {"real_gelu": "binary32_fused_polynomials"}, _MACHINE),
    _other("power", ("f32 f32|s32|s64 -> f32",), {"power": "binary32_products_or_library"}),
    _other("softmax_along", _ONE, _SOFTMAX),
    _other("log_softmax_along", _ONE, _SOFTMAX),
    *(_other(stem, ("f32... -> f32",), _SUM) for stem in ("broadcast_sum", "broadcast_mean")),
    *(
        _other(f"reduce_{kind}", ("f32 s64|- -> f32",), _SUM)
        for kind in ("mean", "sum", "sum_square", "l1", "l2", "log_sum", "log_sum_exp")
    ),
    _other("axes_prod", ("f32 s64|- -> f32",), _SUM),
    *(_other(stem, _ONE, _SUM) for stem in ("average_pool", "lp_pool", "global_average_pool")),
    *(_other(stem, ("f32 f32 f32|- -> f32",), _PRODUCT) for stem in ("conv", "conv_transpose", "gemm")),
    _other("matmul", ("f32 f32 -> f32",), _PRODUCT),
    _other("batch_normalization", ("f32 f32 f32 f32 f32 -> f32",), _NORMAL),
    *(_other(f"{kind}_normalization", ("f32 f32 f32 -> f32",), _NORMAL) for kind in ("group", "instance")),
    _other(
        "layer_normalization", tuple(f"f32 f32 f32|- -> {out}" for out in ("f32", "f32 f32", "f32 f32 f32")), _NORMAL
    ),
    *(_other(stem, _ONE, _NORMAL) for stem in ("lp_normalization", "channel_response_normalization")),
)
