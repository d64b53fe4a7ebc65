"""Output parameters of LOG_SOFTMAX."""

from __future__ import annotations

from ..fixed_outputs import fixed_output

RULE = fixed_output(
    "BT310",
    "LOG_SOFTMAX",
    "Its values are at most 0, and kernels store 16ths down from 127 whatever the file says.",
    "LiteRT refuses another scale, and another zero point than 127 (uint8: 255) (run).",
)
