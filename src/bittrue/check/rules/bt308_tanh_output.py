"""Output parameters of TANH."""

from __future__ import annotations

from ..fixed_outputs import fixed_output

RULE = fixed_output(
    "BT308",
    "TANH",
    "Its values lie in [-1, 1]. Hardware has a table or a formula for this one output scale.",
    "LiteRT makes a table for any scale and zero point of int8 and uint8, and does not check them; int16 needs "
    "scale 2^-15 (run).",
)
