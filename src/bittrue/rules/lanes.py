"""Slot `lanes`: how many neighbours a runtime works on at once, where that decides which rule an element gets.

Vector loops take whole blocks from the start of a run of elements (a tensor, a row of channels); what is left at its
end goes through a scalar loop. Where both loops round differently, a row names the rule of the blocks in the slot
itself and the rule of the rest in the slot with `_tail` behind its name.
"""

from __future__ import annotations

from ..records import dataclass


@dataclass(frozen=True, eq=False)
class LanesRule:
    """Blocks of `count` neighbours."""

    count: int
    formula: str

    def body(self, run: int) -> int:
        """How many of `run` elements lie in whole blocks.

        >>> RULES["blocks_of_8"].body(20), RULES["blocks_of_16"].body(20)
        (16, 16)
        """
        return run - run % self.count


RULES: dict[str, LanesRule] = {
    "blocks_of_8": LanesRule(8, "element i of n is in the body where i < n - n mod 8, else in the tail"),
    "blocks_of_16": LanesRule(16, "element i of n is in the body where i < n - n mod 16, else in the tail"),
    "blocks_of_32": LanesRule(32, "element i of n is in the body where i < n - n mod 32, else in the tail"),
}
