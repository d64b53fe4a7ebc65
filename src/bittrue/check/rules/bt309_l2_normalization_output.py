"""Output parameters of L2_NORMALIZATION."""

from __future__ import annotations

from ..fixed_outputs import fixed_output

RULE = fixed_output(
    "BT309",
    "L2_NORMALIZATION",
    "Its values lie in [-1, 1], and kernels store 128ths of 1 whatever the file says.",
    "LiteRT refuses anything else (run).",
)
