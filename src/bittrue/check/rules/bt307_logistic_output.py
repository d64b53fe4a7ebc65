"""Output parameters of LOGISTIC."""

from __future__ import annotations

from ..fixed_outputs import fixed_output

RULE = fixed_output(
    "BT307",
    "LOGISTIC",
    "Its values lie in [0, 1]. Hardware has a table or a formula for this one output scale.",
    "LiteRT refuses another scale, and takes any zero point into account in its table (run).",
)
