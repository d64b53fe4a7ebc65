"""Slot `start`: what a reduction, a running sum or a search begins with.

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


RULES: dict[str, StartRule] = {
    "first_element": StartRule(True, "x0 op x1 op x2 ..., whatever the axes"),
    "before_first": StartRule(
        False, "the place of a largest integer: -1, with the type's smallest value, then those that are beyond it"
    ),
}
