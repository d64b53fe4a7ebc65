"""`mxnet-avx2`: MXNet with oneDNN on an x86-64 with AVX2 and without VNNI, where u8 by s8 products add up in pairs.

Pairs are neighbouring channels of one tap, or neighbouring terms of a fully-connected layer, and saturate to 16 bits.
Depthwise filters are exact.
"""

from __future__ import annotations

from ..records import replace
from .mxnet import MXNET, layers
from .table import Numerics, Row

_RUN = "run on x86-64 with AVX2: 440 random layers, those of three networks; docs/facts/mxnet.md 3.1"
_PAIRS = {"accumulate": "s16_pairs_s32_wrap"}
_WHOLE = ("attribute_is", "groups", 1)
_ODD = "an odd number of channels: pairs begin anew at every tap there, and here they go on"
_GROUPS = "groups of several channels or filters: the runtime gives other sums, and writes beyond its memory"
_HALVED = (
    "s8 data: the runtime quantizes the weights of convolutions by half of their scale, and adds pairs of data moved "
    "by 128 in fully-connected layers; nearly all such sums differ"
)


def _of(row: Row, data: str) -> Row:
    """The row for one type of data."""
    (types,) = row.types
    assert types.startswith(("u8|s8 ", "s8|u8 ")), types
    return replace(row, types=(data + types[len("u8|s8") :],), evidence=_RUN)


def _ways(row: Row) -> tuple[Row, ...]:
    """What the runtime does with u8 data, then with s8 data; weights that saturate nowhere leave it to exact rows."""
    other = replace(_of(row, "s8"), limit=_HALVED, inexact=True)
    pairs = replace(_of(row, "u8"), rules={**row.rules, **_PAIRS})
    if row.operator == "matmul":
        return replace(pairs, when=(*row.when, ("column_pairs_can_saturate",))), other
    # Sums alone are also those of quantized_conv, whose kernels see to other channels.
    fused = () if "store" in row.rules else (("attribute_is", "fused", True),)
    when = (*row.when, *fused, ("window_pairs_can_saturate",))
    return (
        replace(pairs, when=(*when, _WHOLE, ("size_in_blocks", 1, 1, 2))),
        replace(pairs, when=(*when, _WHOLE), limit=_ODD, inexact=True),
        replace(pairs, when=when, limit=_GROUPS, inexact=True),
        replace(other, when=(*row.when, *fused)),
    )


_ALONE = Row(
    "conv",
    ("u8 s8 -> s32",),
    _PAIRS,
    _RUN,
    when=(("attribute_is", "fused", False), ("size_in_blocks", 1, 1, 4), ("size_in_blocks", 1, 0, 4)),
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
    rows=(_ALONE, *ROWS, *MXNET.rows),
)
