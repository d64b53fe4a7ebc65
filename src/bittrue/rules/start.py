"""Slot `start`: what a reduction or a running sum of binary32 numbers begins with. Integers do not care.

Rows without the slot begin running sums and partial reductions with the neutral value (0, 1, or the far end of the
finite range), and reductions of everything with the first element.
"""

from __future__ import annotations

from ..records import dataclass


@dataclass(frozen=True, eq=False)
class StartRule:
    """`first`: always the first element, so that a single -0.0 or infinity comes out as it is."""

    first: bool
    formula: str


RULES: dict[str, StartRule] = {"first_element": StartRule(True, "x0 op x1 op x2 ..., whatever the axes")}
