"""Rows of `mxnet`: pools, activations, flatten, embedding, concatenations, sums, products, batch normalization."""

from __future__ import annotations

from ..table import Row

_RUN = "run: random tensors, ranges and attributes, ties; docs/facts/mxnet.md 1"
_NO_RANGE = "ranges with which the runtime computes 0 * infinity are refused"
_PAIR = "f32 f32 f32 f32"
# The places of scales and zero points, which are absent.
_SCALES = "- - - - - -"
_SUMS = (("T T", "T"), ("s8 u8", "s8"), ("u8 s8", "s8"))

# Copies, and positions of an embedding; the same in every build of the runtime.
MOVED: tuple[Row, ...] = (
    Row("flatten", ("T -> T",), {}, _RUN, where=("s8", "u8", "s32", "f32")),
    Row("convert", ("f32|f64|f16 -> s64",), {"cast": "truncate_low_bits"}, _RUN),
    Row("convert", ("u8|s8|s32 -> s64",), {}, _RUN),
    Row("clip", ("s64 s64 s64 -> s64",), {}, _RUN),
    Row("gather", ("s8 s64 -> s8",), {}, _RUN),
)

PRODUCTS: tuple[Row, ...] = (
    Row("mul", (f"s8 s8 {_SCALES} {_PAIR} -> s8|s32|f32",), {"range_product": "binary32_truncate_low_bits"}, _RUN),
)

# What oneDNN does.
KERNELS: tuple[Row, ...] = (
    Row("max_pool", ("T -> T",), {}, _RUN, where=("s8", "u8")),
    Row(
        "average_pool",
        ("T -> T",),
        {"affine_average": "codes_binary32_even"},
        _RUN,
        where=("s8", "u8"),
        requires=(("windows_have_elements",),),
        limit="windows whose sum may not fit 32 bits are refused",
    ),
    Row("clip", ("s8 s8 - -> s8",), {}, _RUN, limit="u8 is refused: the runtime relabels its bytes as s8"),
    Row(
        "concatenation",
        ("s8|u8|f32... -> s8|u8",),
        {"range_change": "binary32_quotients_even"},
        _RUN,
        when=(("attribute_is", "given", "ranges"),),
        limit=_NO_RANGE,
    ),
    Row(
        "add",
        tuple(f"{types} {_SCALES} {_PAIR} -> {result}|s32" for types, result in _SUMS),
        {"range_sum": "binary32_two_products_even"},
        _RUN,
        where=("s8", "u8"),
        limit=_NO_RANGE,
    ),
    Row(
        "batch_normalization",
        ("s8|u8 f32 f32 f32 f32 f32 f32 -> s8",),
        {"range_normalization": "binary32_epsilon_twice_even"},
        _RUN,
        limit="statistics and ranges that give no finite factors are refused",
    ),
)

ROWS: tuple[Row, ...] = (
    *MOVED,
    *PRODUCTS,
    *KERNELS,
)
