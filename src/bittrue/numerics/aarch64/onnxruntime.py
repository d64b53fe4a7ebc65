"""Numerics `onnxruntime@aarch64`: ONNX Runtime's CPU provider on aarch64 with dot products, without i8mm.

Layers of integers are as on x86-64 with VNNI. QLinearAdd has fixed point, QLinearMul one rounding less, and real
numbers are added in other orders: rows that were seen to differ, or that no model has tried, are inexact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...records import replace
from ..onnxruntime import ONNXRUNTIME
from ..onnxruntime.movement import INTEGERS, NARROW, SHORTENED
from ..table import Row
from .changes import RUN, Change, as_run, changed

_FOURS = {"real_softmax": ("binary32_polynomial_16_lanes", "binary32_polynomial_4_lanes")}
_JOINED = {"recurrence": ("binary32_polynomials", "binary32_polynomials_joined")}
_SCALED = {"scale_back": ("binary32_product_of_scales", "binary32_product_then_fused")}
_RANGE = {"dynamic_range": ("binary32_over_255_by_eights", "binary32_over_255_by_fours")}
_ALIKE = {"real_product": ("binary32_fused_blocks", "binary32_fused_blocks_alike")}
_OF_TURNS = {"real_product": "binary32_fused_blocks_alike"}
_NEIGHBOURS = {"real_sum": ("binary32_packets_4", "binary32_packets_of_neighbours")}
_NORMAL = {"real_normalization": ("binary32_lanes", "binary32_joined")}
_OPERATIONS = {"real_function": ("binary32_single_operations", "binary32_joined_operations")}
_BELOW_1 = {"real_function": ("binary32_fused_polynomials", "binary32_fused_below_1")}
_KERNELS, _MATRICES = "binary64_fused_kernels", ("attribute_is", "matrices", True)
_PAIRS = ("binary64_in_pairs", "binary64_in_joined_pairs")
_ONCE = {"multiply_add": ("rounded_twice", "rounded_once")}
_CACHES = {"cached_product": ("binary32_16_lanes", "binary32_4_lanes")}
_ATTENTIONS = ("binary32_blocks", "binary32_blocks_of_all_queries", "binary32_blocks_by_inverse", "whole_rows")


def _joined(attention: str) -> dict[str, tuple[str, str]]:
    return {"attention": (attention, f"{attention}_joined")}


CHANGES = (
    *(
        Change(stem, _NORMAL)
        for stem in (
            *(
                "batch_normalization",
                "batch_training",
                "group_normalization",
                "layer_normalization",
                "lp_normalization",
            ),
            *("local_response_normalization", "mean_variance_normalization"),
        )
    ),
    *(
        Change(stem, _OPERATIONS)
        for stem in (
            *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "elu", "hard_sigmoid", "hard_swish"),
            *("log", "mish", "sin", "sinh", "softplus", "softsign", "tan"),
        )
    ),
    *(Change(stem, {"real_function": _PAIRS}) for stem in ("cos", "exp", "log", "logistic", "sin", "tanh")),
    *(Change(stem, {"real_softmax": _PAIRS}) for stem in ("log_softmax", "softmax")),
    *(
        Change(stem, {"real_normalization": ("binary64_running", "binary32_joined")})
        for stem in ("batch_normalization", "batch_training", "layer_normalization", "lp_normalization")
    ),
    *(
        Change(stem, {"extreme": ("nan_else_last_in_vectors", "nan_else_by_signs_in_vectors")})
        for stem in ("maximum", "minimum")
    ),
    *(
        Change(stem, {"extreme": ("packets_first_unless_beyond", "packets_by_signs")})
        for stem in ("hardmax", "reduce_max", "reduce_min")
    ),
    Change("power", {"power": ("integers_by_binary64", "integers_by_binary64_limited")}),
    Change(
        "attending_lstm", {**_JOINED, **_ALIKE, "real_function": ("binary32_by_library", "binary32_by_joined_library")}
    ),
    Change("word_convolution", _ALIKE),
    *(Change("relu", {"extreme": (None, "nan_else_by_signs_in_vectors")}, inputs=(kind,)) for kind in ("f32", "f64")),
    # The logistic function is limited by 1, where its polynomials are one unit above.
    *(Change(stem, _BELOW_1) for stem in ("gelu", "logistic")),
    Change("logistic", {"real_function": ("binary32_fused_below_1",) * 2}),
    Change(
        "logistic",
        {"table": ("binary32_divide_256_even",) * 2},
        limit="on aarch64 the function is limited by 1: scales whose quotient of 1 is a tie may have another entry",
        odd=True,
    ),
    Change("gelu", {"real_function": ("binary32_fused_below_1",) * 2}),
    Change(
        "div",
        {"real_divide": (None, "binary32_product_of_estimate")},
        inputs=("f32",),
        keeps=(("attribute_is", "reciprocal", None),),
    ),
    *(
        Change(stem, _ONCE)
        for stem in (
            *("cosine_window", "crop_and_resize", "grid_sample"),
            *("region_bins", "resize_antialiased", "resize_cubic", "resize_nearest", "causal_conv"),
            *("mix_streams", "reduce_streams", "root_mean_square", "discrete_fourier"),
        )
    ),
    *(
        Change(stem, {"elimination": ("tiles_of_4_rounded_twice", "tiles_of_8_rounded_once")}, inputs=("f32",))
        for stem in ("determinant", "inverse")
    ),
    Change("shrink", {"cast": ("truncate_low_bits", "truncate_limited_low_bits")}),
    Change("affine_grid", {"multiply_add": ("rounded_twice", "rounded_once_but_pairs")}),
    Change("resize_linear", {**_ONCE, "weighted": ("binary32_weights_in_order", "binary32_fused_weights_in_order")}),
    Change("resize_linear", _ONCE),
    Change("rotary_embedding", {"rotation": ("binary32_fused_vectors", "binary32_fused_fours")}),
    Change("deformable_conv", {**_ONCE, **_ALIKE}),
    Change("deformable_conv", {**_ONCE, "real_product": ("binary64_fused_blocks", f"{_KERNELS}_gathered")}),
    Change("mixture_of_experts", {**_ONCE, **_ALIKE, "table_product": ("binary32_tables_of_fours", None)}),
    Change("mixture_of_experts", {**_ONCE, **_ALIKE}),
    *(Change(stem, _ALIKE) for stem in ("conv", "conv_transpose")),
    Change("conv", {"real_product": ("binary32_fused_windows_of_7", "binary32_fused_blocks_alike")}),
    Change("gelu", {"real_gelu": ("binary32_fused_polynomials", "binary32_fused_polynomials_joined")}),
    *(Change(stem, _NEIGHBOURS) for stem in ("average_pool", "mean", "sum", "reduce_prod")),
    *(Change("attention", {**_FOURS, **_ALIKE, **_CACHES, **_joined(name)}) for name in _ATTENTIONS),
    *(Change("attention", {**_FOURS, **_ALIKE, **_joined(name)}) for name in _ATTENTIONS),
    Change("attention", {**_FOURS, **_ALIKE}),
    *(Change(stem, _FOURS) for stem in ("softmax", "log_softmax")),
    Change("convert", {"widen": ("quiet_by_16", "quiet")}, limit=None),
    Change("convert", {"half_nan": ("payload_by_8", "payload")}, limit=None),
    Change("lstm", {**_SCALED, **_JOINED, **_RANGE}),
    *(Change(stem, {**_JOINED, **_ALIKE}) for stem in ("lstm", "gru", "rnn")),
    Change("matmul", _SCALED),
    Change("matmul", {"real_product": ("binary64_fused_blocks", f"{_KERNELS}_gathered")}, when=(_MATRICES,)),
    Change("matmul", {"real_product": ("binary64_fused_blocks", _KERNELS)}),
    Change("matmul", {**_ALIKE, **_ONCE}, inputs=("f32",)),
    Change("matmul", _ALIKE, inputs=("f32",)),
    Change("add", {"affine_sum": ("binary32_fused_even", "22_bits_away")}),
    Change("mul", {"affine_product": ("binary32_zero_point_even", "binary32_fused_zero_point_even")}),
    Change("softmax", {"affine_softmax": ("binary32_table_even", "binary32_table_even_limited")}),
    *(
        Change(
            "quantize",
            {slot: ("even_wrap",) * 2},
            limit="on aarch64 quotients beyond 32 bits are limited, where those on x86-64 wrap",
            odd=True,
        )
        for slot in ("to_integer", "to_integer_tail")
    ),
    Change("dynamic_quantize_linear", _RANGE),
    Change(
        "average_pool",
        {"affine_average": ("binary32_in_order_even",) * 2},
        limit="on aarch64 an output scale that is NaN gives 0",
        odd=True,
    ),
)

_OTHER_KERNELS = "processors with i8mm, SME or without dot products have other kernels"
_TINY = "blocks whose largest number is below 2^-121 become other integers"
_WHOLE = ("rows_are_whole_blocks", 32)
_N_BITS = "f32 u8 f32|- - - f32 {} -> f32"


def _by_source(rows: Iterable[Row]) -> Iterator[Row]:
    """Products of binary64 numbers that are Gemm's are other ones than MatMul's."""
    for row in rows:
        if row.operator == "matmul" and row.rules.get("real_product") == "binary64_fused_blocks":
            yield replace(row, when=(*row.when, _MATRICES))
        yield row


def _in_blocks(row: Row) -> bool:
    """Whether a row is about kernels for weights in blocks and rows of integers."""
    return "block_product" in row.rules or (
        row.operator == "matmul" and any({"bits", "partly_written"}.intersection(c[1:2]) for c in row.when)
    )


def _replaced(row: Row) -> bool:
    """Whether `_BLOCKS`, `_CASTS` or `_STATES` stand in place of the row, or it is about blocks of channels."""
    if ("attribute_is", "blocks", True) in row.when:
        return True
    return _in_blocks(row) or row.operator == "linear_attention" or (row.operator == "convert" and "cast" in row.rules)


def _by_integers(row: Row) -> tuple[Row, ...]:
    """Weights in blocks times rows of integers: kernels by bits, and for 4 bits by whether blocks fill the rows.

    With whole blocks of 32 and more, kernels need all that is constant there; without it the product is one of real
    numbers. Elsewhere zero points, and scales of 4 bits, may be computed.
    """
    if row.refuses:
        four_or_eight = ("attribute_is", "bits", 4, 8)
        when = tuple(("attribute_is", "bits", 8) if condition == four_or_eight else condition for condition in row.when)
        return (replace(row, when=when),)

    def one(bits: int, rows: str, product: str, points: str, *when: tuple[object, ...]) -> Row:
        return replace(
            row,
            types=(_N_BITS.format(points),),
            rules={"row_blocks": f"binary32_{rows}", "block_product": f"binary32_{product}"},
            evidence=RUN,
            limit=_OTHER_KERNELS if bits == 4 else f"{_OTHER_KERNELS}; {_TINY}",
            when=(("attribute_is", "bits", bits), *when, ("attribute_is", "accuracy_level", 4)),
        )

    if row.rules["block_product"] == "binary32_four_blocks":
        sizes = ("attribute_is", "block_size", 32, 64, 128)
        return (one(2, "over_127_limited", "from_the_bias", "u8|-", sizes, ("constant_inputs", 1, 5)),)
    return (
        one(4, "range_of_row", "row_ranges", "-", (*_WHOLE, True), ("constant_inputs", 1, 5)),
        one(4, "inverse_of_scale", "points_first", "u8", (*_WHOLE, True), ("constant_inputs", 1, 5, 6)),
        one(4, "away_by_inverse", "4_lanes", "u8|-", (*_WHOLE, False), ("constant_inputs", 1)),
        one(8, "over_127_limited", "unsigned_rows", "u8|-", ("constant_inputs", 1, 5)),
    )


_EXPERTS = "f32 f32 u8 u8 f32|- f32|- f32 f32 {} f32|- -> f32"


def _experts_by_integers(row: Row) -> Iterator[Row]:
    """Experts whose layers are products of rows of integers: as those of `_by_integers`."""
    sizes = ("attribute_is", "block_size", 32, 64, 128, 256)
    for rows, product, points, bits, when in (
        ("over_127_limited", "unsigned_rows", "u8|- u8|-", 8, ()),
        ("range_of_row", "row_ranges", "- -", 4, (sizes,)),
        ("inverse_of_scale", "points_first", "u8 u8", 4, (sizes,)),
        ("inverse_of_scale", "points_first", "u8|- u8|-", 4, (sizes,)),
        ("away_by_inverse", "4_lanes", "u8|- u8|-", 4, ()),
    ):
        apart = {"row_blocks": "binary32_range_of_row", "block_product": "binary32_row_ranges"}
        one_alone = product == "points_first" and points == "u8|- u8|-"
        yield replace(
            row,
            types=(_EXPERTS.format(points),),
            rules={
                **row.rules,
                "real_product": "binary32_fused_blocks_alike",
                "multiply_add": "rounded_once",
                "row_blocks": f"binary32_{rows}",
                "block_product": f"binary32_{product}",
                **({f"{slot}_without_points": rule for slot, rule in apart.items()} if one_alone else {}),
            },
            evidence=RUN,
            limit=_OTHER_KERNELS if bits == 4 else f"{_OTHER_KERNELS}; {_TINY}",
            when=(("attribute_is", "bits", bits), *when, *row.when),
        )


_LIMITED = {"cast": "truncate_limited_low_bits"}
_BY_S32, _BY_64 = ({"cast": f"truncate_limited_{wide}_low_bits"} for wide in ("s32", "64"))
_TAIL = {"cast_tail": "truncate_limited_low_bits"}
_CAST_OF_EIGHT = "|".join(NARROW)
# Vectors, and what is left of them, convert to integers by other ways.
_CASTS = (
    Row("convert", ("f32 -> u8", "bf16 -> u8|u16"), {**_BY_S32, **_TAIL}, RUN, limit=SHORTENED),
    Row("convert", ("f32 -> u16",), {**_LIMITED, "cast_tail": "truncate_limited_fours_low_bits"}, RUN, limit=SHORTENED),
    Row("convert", ("f64 -> u8|s8|u16|s16|u32|s32",), {**_BY_64, **_TAIL}, RUN, limit=SHORTENED),
    Row("convert", (f"f16|bf16|f32|f64 -> {'|'.join(INTEGERS)}",), _LIMITED, RUN, limit=SHORTENED),
    Row("convert", (f"{_CAST_OF_EIGHT} -> {'|'.join(INTEGERS)}",), _LIMITED, RUN),
    Row("convert", ("f8e8m0 -> u8|u16",), _BY_S32, RUN),
    Row("convert", (f"f8e8m0 -> {'|'.join(INTEGERS)}",), _LIMITED, RUN),
    Row(
        "convert",
        (f"f16|bf16|f32|f64|{_CAST_OF_EIGHT}|f8e8m0 -> u4|s4|u2|s2",),
        {"cast": "round_away_limited_low_bits"},
        RUN,
    ),
)

_BLOCKS = tuple(
    one
    for row in ONNXRUNTIME.rows
    if _in_blocks(row)
    for one in (_by_integers if row.operator == "matmul" else _experts_by_integers)(row)
)

# States that fill vectors of four have a kernel, if a single query reads each.
_OF_FOURS = (("states_fill_vectors", 4, 1),)
_STATES = tuple(
    replace(row, rules={"state_step": "binary32_fused_by_fours"}, when=_OF_FOURS, evidence=RUN)
    if row.when
    else replace(row, rules={"state_step": "binary32_fused_in_turn", **_OF_TURNS}, evidence=RUN)
    for row in ONNXRUNTIME.rows
    if row.operator == "linear_attention"
)

# Kernels of binary16 numbers, widened here; what they give is rounded.
_HALF = (("attribute_is", "half", True),)
_OF_HALVES = (
    Row("relu", ("f32 -> f32",), {"extreme": "nan_else_by_signs"}, RUN, when=_HALF),
    *(
        replace(row, rules={slot: rule}, when=_HALF, evidence=RUN, limit="")
        for stem, slot, rule in (
            ("conv", "real_product", "binary16_fused_chain"),
            ("matmul", "real_product", "binary16_fused_or_in_turn"),
            ("rotary_embedding", "rotation", "binary16_fused"),
            ("erf", "real_function", "binary16_estimated_reciprocals"),
            ("gelu", "real_gelu", "binary16_estimated_reciprocals"),
            ("average_pool", "real_sum", "binary16_in_order"),
        )
        for row in ONNXRUNTIME.rows
        if row.operator == stem and not row.when and slot in row.rules and row.types[0].startswith("f32 ")
    ),
)

# Images lie in planes: there are no blocks of channels. s8 is fused without being asked for.
_OF_BLOCKS = ("cast_halves", "fuse_reals", "mark_planes")


def _rewrites(names: Iterable[str]) -> Iterator[str]:
    yield "mark_other_kernels"
    for name in names:
        if name == "fuse_reals":
            yield "join_scaled_sums"
        yield f"{name}:0" if name in _OF_BLOCKS else "fuse_quantized:s8" if name == "fuse_quantized" else name


ONNXRUNTIME_AARCH64 = replace(
    ONNXRUNTIME,
    name="onnxruntime@aarch64",
    reproduces="ONNX Runtime 1.31 CPU provider, aarch64, session.qdqisint8allowed=1",
    verified=(
        "the aarch64 wheel of onnxruntime 1.31.1 under qemu-user (Cortex-A76), one thread: the conformance suite and"
        " recorded random models"
    ),
    rows=as_run(
        "onnxruntime@aarch64",
        _OF_HALVES
        + _BLOCKS
        + _CASTS
        + _STATES
        + changed(
            replace(ONNXRUNTIME, rows=tuple(_by_source(row for row in ONNXRUNTIME.rows if not _replaced(row)))),
            CHANGES,
            unseen_is_inexact=True,
            counted="onnxruntime@aarch64",
        ),
    ),
    rewrites=tuple(_rewrites(ONNXRUNTIME.rewrites)),
)
