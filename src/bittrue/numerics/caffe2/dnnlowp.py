"""Rows of the engine DNNLOWP: FBGEMM's kernels for x86-64 with VNNI, sums of integers rescaled in binary32."""

from __future__ import annotations

from ..litert.convolution import DEPTHWISE, PLANES
from ..table import Row

_RUN = "run: recorded vectors and thousands of random operators on PyTorch 1.8.1; docs/facts/caffe2.md 2"
_REALS = "run: 1,831 random operators of PyTorch 1.8.1, every bit; 15 recorded"
_FIT = ("zero_points_fit",)
_RANGE = {"activation_range": "binary32_quotient_away"}
_STORED = {**_RANGE, "scale_form": "binary32", "store": "clamp_then_zero_point"}
_EXACT = {**_STORED, "accumulate": "s32_wrap"}
_FITS = {"rescale": "binary32_multiply_even"}
# Products beyond 32 bits, which only absurd scales give, become the lowest number, not the highest one.
_OVERFLOWS = {"rescale": "binary32_multiply_even_overflow_lowest"}
_LAYER = (_FIT, ("bias_scale_near", 1e-4))
_TYPES = ("u8 u8 s32|- -> u8",)
_PAIRS = ("taps_in_pairs",)
_RESCALES: tuple[tuple[dict[str, str], tuple[tuple[object, ...], ...]], ...] = (
    (_FITS, (("rescaled_within_32_bits",),)),
    (_OVERFLOWS, ()),
)
_UNWRITTEN = (
    "the engine takes its kernel of one filter per channel here, whatever the filters' shape says, and gives numbers "
    "that belong to nothing"
)
_ONE_THREAD = (
    "the engine's threads share a tensor out in multiples of 8 elements, and each has blocks and a rest of its own; "
    "these are the results of one thread"
)

_ESTIMATE = (
    "from four channels on the engine refines the processor's own estimate of 1 / sqrt(variance + epsilon): here that "
    "of AMD's Zen processors; on others about 1 of 500,000 results differs by one"
)

_DEPTHWISE = (
    Row(
        "conv",
        _TYPES,
        evidence=_RUN,
        when=(*DEPTHWISE, _PAIRS, ("several_filters_per_channel",)),
        refuses=_UNWRITTEN,
    ),
    *(
        Row(
            "conv",
            _TYPES,
            {**_STORED, **rescale, "accumulate": "s16_pairs_s32_wrap"},
            _RUN,
            when=(*DEPTHWISE, _PAIRS, ("pairs_can_saturate",), *when),
            requires=_LAYER,
        )
        for rescale, when in _RESCALES
    ),
    *(
        Row("conv", _TYPES, {**_EXACT, **rescale}, _RUN, when=(*DEPTHWISE, *when), requires=_LAYER)
        for rescale, when in _RESCALES
    ),
)

_SPATIAL = (("attribute_is", "filter_layout", None),)
_LAYERS = (
    *(
        Row(
            "conv",
            _TYPES,
            {"accumulate": "s32_wrap", "scale_form": "binary32", "store": "clamp_then_zero_point", **rescale},
            "run: 1,000 random operators of three axes of PyTorch 1.8.1, every bit; 16 recorded",
            when=(*_SPATIAL, *when),
            requires=_LAYER,
        )
        for rescale, when in _RESCALES
    ),
    Row(
        "conv",
        _TYPES,
        evidence=_RUN,
        when=(*PLANES, _PAIRS),
        refuses="the engine adds up its taps in pairs of 16 bits; write it with a group for every channel",
    ),
    *(
        Row(stem, _TYPES, {**_EXACT, **rescale}, _RUN, when=(*layout, *when), requires=_LAYER)
        for stem, layout in (("conv", PLANES), ("fully_connected", ()))
        for rescale, when in _RESCALES
    ),
)

_SUMS = (
    Row(
        "add",
        ("u8 u8 -> u8",),
        {
            **_RANGE,
            "affine_sum": "binary32_fused_reciprocal_even",
            "affine_sum_tail": "binary32_fused_quotient_even",
            "lanes": "blocks_of_32",
        },
        _RUN,
        when=(("not_broadcast",),),
        requires=(_FIT,),
        limit=_ONE_THREAD,
    ),
    Row("add", ("u8 u8 -> u8",), {**_RANGE, "affine_sum_of_many": "binary32_16_bits_even"}, _RUN, requires=(_FIT,)),
    Row(
        "add_n",
        ("u8... -> u8",),
        {**_RANGE, "affine_sum_of_many": "binary32_16_bits_even"},
        _RUN,
        requires=(_FIT,),
    ),
    Row(
        "mul",
        ("u8 u8 -> u8",),
        {**_STORED, **_FITS, "product": "exact_s32"},
        _RUN,
        requires=(_FIT, ("product_within_64_bits",)),
    ),
)

_TABLES = (
    Row(
        "tanh",
        ("u8 -> u8",),
        {"table": "tanh_midpoints_127_even"},
        _RUN,
        requires=(("output_is", 1 / 127, 128, 1e-6),),
    ),
    Row(
        "logistic",
        ("u8 -> u8",),
        {"table": "tanh_midpoints_127_even_less_1"},
        _RUN,
        requires=(("output_is", 0.5 / 127, 0, 1e-6),),
    ),
)

ROWS: tuple[Row, ...] = (
    *_DEPTHWISE,
    *_LAYERS,
    *_SUMS,
    *_TABLES,
    Row("concatenation", ("u8... -> u8",), {"combine": "binary32_multiply_even"}, _RUN, requires=(_FIT,)),
    Row(
        "average_pool",
        ("u8 -> u8",),
        {**_RANGE, "accumulate": "s32_wrap", "window_average": "binary32_fused_inside_even"},
        _RUN,
        requires=(_FIT,),
    ),
    Row("max_pool", ("u8 -> u8",), _RANGE, _RUN, requires=(("same_parameters",),)),
    Row("gather", ("u8 s32|s64 -> u8",), {}, _RUN, requires=(("same_parameters", 0),)),
    Row(
        "matmul",
        ("u8 u8 -> u8",),
        {**_EXACT, **_FITS},
        _RUN,
        when=(("rescaled_within_32_bits",),),
        requires=(_FIT, ("equal_batches",)),
    ),
    # With dequantize_output sums become real numbers.
    Row("matmul", ("u8 u8 - - u8 - u8 -> s32",), {"accumulate": "s32_wrap"}, _REALS, requires=(("equal_batches",),)),
    Row(
        "matmul",
        ("u8 u8 f32 f32 u8 f32 u8 -> f32",),
        {"accumulate": "s32_wrap", "scale_back": "binary32_rows_then_fused"},
        _REALS,
    ),
    Row("relu", ("f32 -> f32",), {}, _REALS),
    Row("relu", ("u8 -> u8",), {**_STORED, **_FITS}, _RUN, requires=(("same_parameters",),)),
    Row("quantize", ("f32 -> u8",), {"quantize": "binary32_reciprocal_fused_even"}, _RUN, requires=(_FIT,)),
    Row("dequantize", ("u8|s32 -> f32",), {"dequantize": "binary32_multiply"}, _RUN),
    Row(
        "batch_normalization",
        ("u8 f32 f32 f32 f32 -> u8",),
        {
            **_RANGE,
            "affine_scale": "binary32_fused_even",
            "affine_scale_tail": "binary32_fused_even_64_bits",
            "lanes": "blocks_of_8",
        },
        _RUN,
        requires=(_FIT,),
        limit=_ESTIMATE,
    ),
)
