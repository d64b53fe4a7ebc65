"""Rows of `onnx`: operators on real numbers, every result the real one rounded once to binary32, ties to even.

One operator is one real function: sums of products, softmax and normalizations are rounded at the end only. What IEEE
754 defines (sums of two, products, quotients, roots, integers, comparisons) is the same as in any runtime.
"""

from __future__ import annotations

from ..onnxruntime.floating import CIRCULAR, CLIPPED, EXACT, QUICK_GELU, REDUCTIONS
from ..table import Row

_ONCE = "an oracle of fractions or decimals in tests; the specification defines a real function and no rounding"
_COMPARED = "run: comparisons of elements, as in any runtime"
_FUNCTIONS = (
    *CIRCULAR,
    "cos",
    "elu",
    "erf",
    "exp",
    "hard_sigmoid",
    "hard_swish",
    "log",
    "logistic",
    "mish",
    "sin",
    "softplus",
    "softsign",
    "tanh",
)
_PRODUCT, _SUM = {"real_product": "rounded_once"}, {"real_sum": "rounded_once"}
_NORMAL, _SOFTMAX = {"real_normalization": "rounded_once"}, {"real_softmax": "rounded_once"}

ROWS: tuple[Row, ...] = (
    *EXACT,
    Row("clip", ("T T|- T|- -> T",), {}, _COMPARED, where=CLIPPED),
    Row("max_pool", ("T -> T", "T -> T s64"), {}, _COMPARED, where=("f32", "s8", "u8")),
    *(Row(stem, ("f32 -> f32",), {"real_function": "rounded_once"}, _ONCE) for stem in _FUNCTIONS),
    Row("gelu", ("f32 -> f32",), {"real_function": "rounded_once"}, _ONCE, when=(QUICK_GELU,)),
    Row("gelu", ("f32 -> f32",), {"real_gelu": "rounded_once"}, _ONCE),
    Row("power", ("f32 f32|s32|s64 -> f32",), {"power": "rounded_once"}, _ONCE),
    Row("softmax", ("f32 -> f32",), _SOFTMAX, _ONCE),
    Row("log_softmax", ("f32 -> f32",), _SOFTMAX, _ONCE),
    Row("add_n", ("f32... -> f32",), _SUM, _ONCE),
    *(Row(stem, ("f32 s64|- -> f32",), _SUM, _ONCE, requires=(("axes_exist", 1),)) for stem in REDUCTIONS),
    *(Row(stem, ("f32 -> f32",), _SUM, _ONCE) for stem in ("average_pool", "lp_pool")),
    *(Row(stem, ("f32 f32 f32|- -> f32",), _PRODUCT, _ONCE) for stem in ("conv", "conv_transpose", "matmul")),
    Row("batch_normalization", ("f32 f32 f32 f32 f32 -> f32",), _NORMAL, _ONCE),
    Row("batch_training", ("f32 f32 f32 f32 f32 -> f32 f32 f32",), _NORMAL, _ONCE),
    Row("group_normalization", ("f32 f32 f32 -> f32",), _NORMAL, _ONCE),
    Row(
        "layer_normalization",
        tuple(f"f32 f32 f32|- -> {out}" for out in ("f32", "f32 f32", "f32 f32 f32")),
        _NORMAL,
        _ONCE,
        when=(("attribute_is", "stash_type", 1, None),),
    ),
    *(Row(stem, ("f32 -> f32",), _NORMAL, _ONCE) for stem in ("lp_normalization", "local_response_normalization")),
)
