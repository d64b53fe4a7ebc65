"""Slot `dot`: the order in which a binary32 dot product adds its products."""

from __future__ import annotations

from ..arithmetic import dots

RULES: dict[str, dots.DotProduct] = {
    "binary32_lanes_4_in_order": dots.lanes_4_in_order,
    "binary32_lanes_4_by_halves": dots.lanes_4_by_halves,
    "binary32_fused_lanes_4_in_pairs": dots.fused_lanes_4_in_pairs,
    "binary32_fused_lanes_4_or_in_order": dots.fused_lanes_4_or_in_order,
}
