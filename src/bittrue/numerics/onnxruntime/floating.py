"""Rows of `onnxruntime`: operators on real numbers."""

from __future__ import annotations

from ..table import Row
from .movement import INTEGERS

_RUN = "run: 500 random single-node models, every bit"
_WIDE_RUN = "run: 100 random single-node models, every bit"
_MACHINE = "run on x86-64 with AVX-512 and FMA, one thread: 500 random single-node models, every bit"
_OTHER_MACHINES = "other processors have other kernels, whose last bits differ"
_THREADS = (
    f"{_OTHER_MACHINES}; several threads cut large matrices, which can change the blocks of a sum; in whole graphs the "
    "runtime joins products and convolutions with sums and normalizations, which changes the order of additions"
)
_OF_NOTHING = "sums of no products are 0, where the runtime may give what lay in memory"
_TWO_NANS = "of two NaN operands the runtime may keep the other one"
_NAN = "NaN: the result depends on vectors in the runtime"
_PLAIN = {"plain_range": "unlimited"}
_INTEGERS = ("s32", "s64")
_EXPONENTS = "s32|s64|f32|f64"
_SELECTED = ("s8", "u8", "s32", "s64", "f32", "f64")
CLIPPED = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f32", "f64")
_ONE = ("f32 -> f32",)
_POOL_TYPES = ("T -> T", "T -> T s64")
BY_LIBRARY = ("attribute_is", "by_library", True)
QUICK_GELU = ("attribute_is", "form", "logistic")
REDUCTIONS = ("mean", "sum", "reduce_prod")

# What IEEE 754 or a comparison defines, so that every numerics of this format shares it.
EXACT: tuple[Row, ...] = (
    Row("add", ("f32 f32 -> f32",), _PLAIN, _RUN, requires=(("skipped_sum_fits",),), limit=_TWO_NANS),
    *(Row(stem, ("f32 f32 -> f32",), _PLAIN, _RUN, limit=_TWO_NANS) for stem in ("sub", "mul", "div")),
    *(Row(stem, ("f64 f64 -> f64",), _PLAIN, _RUN, limit=_TWO_NANS) for stem in ("add", "sub", "mul", "div")),
    Row("round_to_integer", ("T -> T",), {}, _RUN, where=("f32", "f64")),
    Row("sqrt", ("T -> T",), {}, _RUN, where=("f32", "f64")),
    Row("sign", ("T -> T",), {}, _RUN, where=("f32", "f64")),
    *(Row(stem, ("T -> T",), {}, _RUN, where=("f32", "f64")) for stem in ("abs", "neg")),
    Row("relu", _ONE, {}, _RUN),
    Row("relu", ("f64 -> f64",), {}, _RUN),
    Row("leaky_relu", _ONE, {"slope": "scaled_below_zero"}, _RUN),
    Row("thresholded_relu", _ONE, {}, _RUN),
    Row("hardmax", _ONE, {}, _RUN),
    Row("shrink", ("T -> T",), {}, _RUN, where=("f32", "f64")),
    Row("shrink", ("T -> T",), {"cast": "truncate_low_bits"}, _RUN, where=INTEGERS),
    Row("prelu", ("f32 f32 -> f32",), {}, _RUN),
    *(
        Row(
            stem,
            ("T s64|- -> T",),
            {"extreme": "nan_else_first"},
            _RUN,
            where=_SELECTED,
            requires=(("axes_exist", 1),),
        )
        for stem in ("reduce_max", "reduce_min")
    ),
    *(
        Row(
            stem,
            ("T s64|- -> T",),
            {"real_sum": "binary64_trunc_saturate"},
            _RUN,
            where=_INTEGERS,
            when=when,
            requires=(("axes_exist", 1),),
        )
        for stem, when in (
            ("sum", (("attribute_is", "before", None, "square", "abs"), ("attribute_is", "after", None))),
            ("sum", ()),
            ("mean", ()),
            ("reduce_prod", ()),
        )
    ),
)

_PRODUCTS = {"multiply_add": "rounded_twice"}
_TILES = {"elimination": "tiles_of_4_rounded_twice"}
_CACHE = (
    "on x86-64 blocks of more than 168 rows (120 of f64) follow the size of the first-level cache, which is 48 KiB here"
)
_PRODUCT, _SUM = {"real_product": "binary32_fused_blocks"}, {"real_sum": "binary32_packets_4"}
_NORMAL, _SOFTMAX = {"real_normalization": "binary32_lanes"}, {"real_softmax": "binary32_polynomial_16_lanes"}
_POLYNOMIALS, _SINGLE = {"real_function": "binary32_fused_polynomials"}, {"real_function": "binary32_single_operations"}
_BELOW_1 = {"real_function": "binary32_fused_below_1"}
CIRCULAR = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan")
_SINGLES = (*CIRCULAR, "cos", "elu", "hard_sigmoid", "hard_swish", "log", "sin", "softplus", "softsign")
_LAYERS = tuple(f"f32 f32 f32|- -> {out}" for out in ("f32", "f32 f32", "f32 f32 f32"))
_UNDILATED = ("undilated_same",)

# A convolution, alone and with sums that begin with another tensor.
_SUMMED = ("f32 f32 f32|- -> f32", "f32 f32 f32|- - - - - - - f32 -> f32")

ROWS: tuple[Row, ...] = (
    *(
        Row(
            stem,
            ("T s64|- -> T",),
            {"extreme": "packets_first_unless_beyond"},
            "run on x86-64: 1,600 random models of NaN and zeros of both signs, every bit",
            where=("f32", "f64"),
            requires=(("axes_exist", 1),),
            limit="inputs of the graph that do not begin at a multiple of 16 bytes have other packets",
        )
        for stem in ("reduce_max", "reduce_min")
    ),
    Row(
        "hardmax",
        _ONE,
        {"extreme": "packets_first_unless_beyond"},
        "run on x86-64: random models with NaN, every bit",
        limit="inputs of the graph that do not begin at a multiple of 16 bytes have other packets",
    ),
    *EXACT,
    *(Row("sign", ("T -> T",), {}, "run: every number", where=(kind,)) for kind in ("f16", "bf16")),
    Row("clip", ("T T|- T|- -> T",), {}, _RUN, where=CLIPPED, requires=(("ends_in_order", 6),)),
    Row(
        "max_pool",
        ("f64 -> f64",),
        evidence="run: NOT_IMPLEMENTED when the model is loaded",
        when=(("attribute_is", "kernel", ()),),
        refuses="ONNX Runtime's CPU provider has no kernel for GlobalMaxPool of f64",
    ),
    *(
        Row(
            "max_pool",
            _POOL_TYPES,
            {"extreme": "last_in_vectors"},
            "run: random windows of NaN, infinities and zeros of both signs, every bit",
            where=where,
            requires=(("same_padding_adds", 1 << 16),),
        )
        for where in (("f32",), ("f64",))
    ),
    Row("max_pool", _POOL_TYPES, {}, _RUN, where=("s8", "u8")),
    *(
        Row(stem, _ONE, {"real_function": "binary32_by_library"}, _RUN, when=(BY_LIBRARY,))
        for stem in ("exp", "logistic")
    ),
    Row("logistic", _ONE, _BELOW_1, _MACHINE, when=(("attribute_is", "gates", True),), limit=_OTHER_MACHINES),
    *(Row(stem, _ONE, _POLYNOMIALS, _MACHINE, limit=_OTHER_MACHINES) for stem in ("erf", "exp", "logistic", "tanh")),
    Row(
        "softplus",
        _ONE,
        {"real_function": "binary32_log_of_sum"},
        _RUN,
        when=(("attribute_is", "log_of_sum", True),),
    ),
    *(Row(stem, _ONE, _SINGLE, _RUN) for stem in _SINGLES),
    *(
        Row(stem, ("f64 -> f64",), {"real_function": "binary64_in_pairs"}, _RUN)
        for stem in ("cos", "exp", "log", "logistic", "sin", "tanh")
    ),
    Row("mish", _ONE, _SINGLE, _MACHINE, limit=_OTHER_MACHINES),
    Row(
        "gelu",
        _ONE,
        _BELOW_1,
        _MACHINE,
        when=(QUICK_GELU, ("attribute_is", "alpha", 1.0)),
        limit=_OTHER_MACHINES,
    ),
    Row("gelu", _ONE, _POLYNOMIALS, _MACHINE, when=(QUICK_GELU,), limit=_OTHER_MACHINES),
    Row("gelu", _ONE, {"real_gelu": "binary32_fused_polynomials"}, _MACHINE, limit=_OTHER_MACHINES),
    Row("power", ("f32 f32 -> f32",), {"power": "binary32_products_or_library"}, _RUN),
    Row(
        "power",
        ("f32 f64|s32|s64 -> f32", f"f64 {_EXPONENTS} -> f64"),
        {"power": "binary64_products_or_library"},
        "run: 500 random single-node models, every bit",
    ),
    Row(
        "power",
        (f"s32 {_EXPONENTS} -> s32", f"s64 {_EXPONENTS} -> s64"),
        {"power": "integers_by_binary64"},
        _RUN,
    ),
    Row(
        "softmax",
        _ONE,
        _SOFTMAX,
        "run",
        when=(("attribute_is", "perhaps_attention", True),),
        limit="attention as GPT-2, DistilBERT or MobileCLIP write it: the runtime may join it to one operator, which is"
        " not reproduced",
        inexact=True,
    ),
    Row(
        "softmax", _ONE, {"real_softmax": "binary32_in_order"}, "run: 500 random models, every bit", when=(BY_LIBRARY,)
    ),
    *(Row(stem, _ONE, _SOFTMAX, _MACHINE, limit=_OTHER_MACHINES) for stem in ("softmax", "log_softmax")),
    *(
        Row(stem, ("f64 -> f64",), {"real_softmax": "binary64_in_pairs"}, _RUN, limit=_NAN)
        for stem in ("softmax", "log_softmax")
    ),
    Row("add_n", ("f32... -> f32",), _SUM, _RUN),
    Row(
        "add_n",
        ("f64... -> f64",),
        {"real_sum": "binary64_packets_2"},
        _WIDE_RUN,
        when=(("attribute_is", "mean", False),),
    ),
    *(Row(stem, ("f32 s64|- -> f32",), _SUM, _RUN, requires=(("axes_exist", 1),)) for stem in REDUCTIONS),
    *(
        Row(
            stem,
            ("f64 s64|- -> f64",),
            {"real_sum": "binary64_packets_2"},
            _WIDE_RUN,
            requires=(("axes_exist", 1),),
        )
        for stem in REDUCTIONS
    ),
    Row("average_pool", _ONE, _SUM, _RUN, requires=(("same_padding_adds", 18),)),
    Row("lp_pool", _ONE, _SUM, _RUN),
    Row(
        "conv",
        _SUMMED,
        {"real_product": "binary32_fused_windows_of_7"},
        "run on x86-64 with AVX-512: 300 random single-node models, every bit",
        when=(("windows_of_7_for_two",),),
        requires=(_UNDILATED,),
        limit=_OTHER_MACHINES,
    ),
    Row("conv", _SUMMED, _PRODUCT, _MACHINE, requires=(_UNDILATED,), limit=_THREADS),
    *(
        Row(stem, types, _PRODUCT, _MACHINE, limit=limit)
        for stem, types, limit in (
            ("conv_transpose", ("f32 f32 f32|- -> f32", "f32 f32 f32|- - - - - - - s64 -> f32"), _THREADS),
            ("matmul", ("f32 f32 f32|- -> f32",), f"{_THREADS}; {_OF_NOTHING}"),
        )
    ),
    Row(
        "matmul",
        ("f64 f64 f64|- -> f64",),
        {"real_product": "binary64_fused_blocks"},
        "run on x86-64 with AVX2 and FMA, one thread: 200 random single-node models, every bit",
        limit=f"{_OTHER_MACHINES}; {_TWO_NANS}; {_OF_NOTHING}",
    ),
    Row("batch_normalization", ("f32 f32 f32 f32 f32 -> f32",), _NORMAL, _RUN),
    Row(
        "batch_training",
        ("f32 f32 f32 f32 f32 -> f32...",),
        _NORMAL,
        "run: 100 random single-node models, every bit",
    ),
    *(
        Row(stem, types, {"real_normalization": "binary64_running"}, "run: 300 random single-node models, every bit")
        for stem, types in (
            ("batch_normalization", ("f64 f64 f64 f64 f64 -> f64",)),
            ("batch_training", ("f64 f64 f64 f64 f64 -> f64...",)),
            (
                "layer_normalization",
                tuple(types.replace("f32 f32 f32|- -> f32", "f64 f64 f64|- -> f64") for types in _LAYERS),
            ),
            ("lp_normalization", ("f64 -> f64",)),
        )
    ),
    Row("group_normalization", ("f32 f32 f32 -> f32",), _NORMAL, _RUN),
    Row(
        "layer_normalization",
        _LAYERS,
        _NORMAL,
        _MACHINE,
        requires=(("layer_rows_fit",),),
        limit=f"{_OTHER_MACHINES}; without a bias the runtime's process ends where rows have 8 elements or more",
    ),
    Row("lp_normalization", _ONE, _NORMAL, _RUN),
    Row("mean_variance_normalization", _ONE, _NORMAL, _RUN),
    Row("fold", ("f32 s64 s64 -> f32",), {}, _RUN, requires=(("folds_plainly",),)),
    *(
        Row(
            "deformable_conv",
            (f"{kind} {kind} {kind} {kind}|- {kind}|- -> {kind}",),
            {"real_product": rule, **_PRODUCTS},
            _MACHINE,
            limit=f"{_THREADS}; {_TWO_NANS}; NaN among offsets: the runtime reads elsewhere",
        )
        for kind, rule in (("f32", "binary32_fused_blocks"), ("f64", "binary64_fused_blocks"))
    ),
    Row(
        "word_convolution",
        ("s32 f32 f32 f32 -> f32",),
        {**_PRODUCT, **_POLYNOMIALS},
        _MACHINE,
        limit=f"{_OTHER_MACHINES}; a word of no characters is refused: the runtime writes nothing there",
    ),
    Row("masked_maxima", ("f32 s32 -> f32",), {}, "run: 300 random models, every bit"),
    Row("region_maxima", ("f32 f32 -> f32",), {}, _RUN),
    Row(
        "region_bins",
        ("T T s64 -> T",),
        _PRODUCTS,
        _RUN,
        where=("f32", "f64"),
        requires=(("version_at_most", 16),),
        limit=_NAN,
    ),
    Row("determinant", _ONE, _TILES, _RUN),
    Row("inverse", ("f16 -> f16",), _TILES, _RUN, limit=_NAN),
    Row("inverse", ("T -> T",), _TILES, _RUN, where=("f32", "f64"), limit=f"{_NAN}; {_CACHE}"),
    Row(
        "local_response_normalization",
        _ONE,
        _NORMAL,
        "run: 1,500 random single-node models, every bit",
        requires=(("neighbours_are_odd",),),
        limit=_TWO_NANS,
    ),
)
