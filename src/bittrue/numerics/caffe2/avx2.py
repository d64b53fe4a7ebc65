"""Rows of the engine DNNLOWP on an x86-64 with AVX2 and without VNNI, where u8 by s8 products add up in pairs.

Pairs are neighbours in a filter as it is stored, taps before channels, in every group, and saturate to 16 bits; weights
are u8 values less 128. All other rows are those of processors with VNNI.
"""

from __future__ import annotations

from ...records import replace
from ..table import Row
from .dnnlowp import ROWS as DNNLOWP

_RUN = "run on x86-64 with AVX2: 1,403 recorded and 735 random operators of PyTorch 1.8.1; docs/facts/caffe2.md 2.4"
_PAIRS = {"accumulate": "s16_pairs_s32_wrap"}
_DEPTHWISE = ("attribute_is", "filter_layout", "ISO")
_SPATIAL = ("attribute_is", "filter_layout", None)
_CONSTANT = ("attribute_is", "constant", True)


def _saturates(row: Row) -> tuple[tuple[object, ...], ...]:
    """Weights that saturate nowhere leave it to the exact row."""
    if row.operator == "matmul":
        return (_CONSTANT, ("column_pairs_can_saturate",))
    if row.operator == "conv" and _DEPTHWISE in row.when:
        return (("pairs_can_saturate",),)
    if row.operator == "conv" and _SPATIAL in row.when:
        return (("window_pairs_can_saturate",),)
    return (("filter_pairs_can_saturate",),)


_SINGLE = (
    "filters of one channel along three axes: the engine adds up their taps in pairs of 16 bits, these sums are exact"
)


def _ways(row: Row) -> tuple[Row, ...]:
    """The row where pairs of its products can saturate, then as it is."""
    if row.operator not in ("conv", "fully_connected", "matmul") or row.rules.get("accumulate") != "s32_wrap":
        return (row,)
    pairs = replace(row, rules={**row.rules, **_PAIRS}, evidence=_RUN, when=(*row.when, *_saturates(row)))
    if _SPATIAL not in row.when:
        return pairs, row
    single = replace(row, evidence=_RUN, when=(*row.when, ("single_filters",)), limit=_SINGLE, inexact=True)
    return single, pairs, row


ROWS: tuple[Row, ...] = tuple(own for row in DNNLOWP for own in _ways(row))
