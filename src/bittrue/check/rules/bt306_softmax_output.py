"""Output parameters of SOFTMAX."""

from __future__ import annotations

from ..fixed_outputs import fixed_output

RULE = fixed_output(
    "BT306",
    "SOFTMAX",
    "Its values lie in [0, 1], and kernels store 256ths of 1 whatever the file says.",
    "LiteRT refuses int8 outputs whose scale is more than 0.1 % off or whose zero point is another, and stores "
    "256ths all the same within that. uint8 outputs and int8 to int16 are not checked (run).",
)
