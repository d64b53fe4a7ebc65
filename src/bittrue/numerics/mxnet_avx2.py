"""`mxnet-avx2`: MXNet with oneDNN on an x86-64 with AVX2 and without VNNI, where u8 by s8 products add up in pairs.

Pairs are neighbouring channels of one tap, or neighbouring terms of a fully-connected layer, and saturate to 16 bits.
Depthwise filters are exact. s8 data is moved by 128 first; fused convolutions of it have weights of half a scale, with
which no pair saturates.
"""

from __future__ import annotations

from ..records import replace
from .mxnet import MXNET, layers
from .table import Numerics, Row

_RUN = "run on x86-64 with AVX2: random layers, those of three networks, results of five; docs/facts/mxnet.md 3.1"
_PAIRS = {"accumulate": "s16_pairs_s32_wrap"}
_GROUPS = "groups of several channels or filters: the runtime gives other sums, and writes beyond its memory"
_LONG = "sums of s8 data moved by 128 may leave 2^24, from where on the runtime rounds them before it moves them back"
_S8 = ("attribute_is", "data_type", "s8")
_IMAGES = ("input_rank", 0, 4, 5)


def _of(row: Row, data: str) -> Row:
    """The row for one type of data."""
    (types,) = row.types
    assert types.startswith(("u8|s8 ", "s8|u8 ")), types
    return replace(row, types=(data + types[len("u8|s8") :],), evidence=_RUN)


def _ways(row: Row) -> tuple[Row, ...]:
    """What the runtime does with u8 data, then with s8 data; weights that saturate nowhere leave it to exact rows."""
    if row.operator == "matmul":
        when = (*row.when, ("column_pairs_can_saturate",))
        return (replace(row, rules={**row.rules, **_PAIRS}, evidence=_RUN, when=when),)
    pairs, signed = replace(_of(row, "u8"), rules={**row.rules, **_PAIRS}), _of(row, "s8")
    # Sums alone are also those of quantized_conv, whose kernels see to other channels.
    fused = () if "store" in row.rules else (("attribute_is", "fused", True),)
    when = (*row.when, *fused)
    risky = (*when, ("window_pairs_can_saturate",))
    return (
        replace(row, when=(*when, ("filters_in_several_groups",)), evidence=_RUN, limit=_GROUPS, inexact=True),
        replace(pairs, when=risky),
        replace(signed, when=(*when, ("moved_window_sums_within", 64, 2**24))),
        replace(signed, when=when, limit=_LONG, inexact=True),
    )


_ALONE = Row(
    "conv",
    ("u8 s8 -> s32",),
    _PAIRS,
    _RUN,
    when=(("attribute_is", "fused", False), ("size_in_blocks", 1, 1, 4), ("size_in_blocks", 1, 0, 4)),
)
# What follows from weights of half a scale; results that are sums themselves count them twice, and all are binary32.
_HALVES: tuple[Row, ...] = (
    Row(
        "range_weights",
        ("f32 -|f32 f32 f32 -> s8 f32 f32",),
        {"quantized_weights": "binary32_half_levels_halved"},
        _RUN,
        when=(_S8, _IMAGES),
    ),
    Row("finish_sums", ("s32 f32 -> s32",), {"add_bias": "binary32_doubled_sum"}, _RUN, when=(_S8, _IMAGES)),
    Row("finish_sums", ("s32 s8|f32 -> s32",), {"add_bias": "binary32_sum"}, _RUN),
    Row(
        "finish_sums",
        ("s32 f32 s8|u8 f32 f32 f32 f32 f32 f32 f32 -> s32",),
        {"layer_sum": "fused_multiply_doubled_even"},
        _RUN,
        when=(_S8, _IMAGES),
    ),
)
ROWS: tuple[Row, ...] = tuple(
    own
    for row in layers.ROWS
    if row.operator in ("conv", "matmul") and row.rules["accumulate"] == "s32_wrap"
    for own in _ways(row)
)

MXNET_AVX2 = Numerics(
    name="mxnet-avx2",
    reproduces="MXNet 1.9.1 with oneDNN 2.4.4, x86-64 with AVX2 and without VNNI",
    verified="run against MXNet 1.9.1: random layers and those of networks; all else as mxnet",
    rows=(_ALONE, *_HALVES, *ROWS, *MXNET.rows),
)
