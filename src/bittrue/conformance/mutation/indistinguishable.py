"""Mutants that no input of any model can tell from the right arithmetic, each with the reason.

An entry is a claim: tests search for differences with many inputs, and fail when they find one or when an entry is no
longer needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """Mutants that compute the same as the right arithmetic.

    Attributes:
        operators: as files call them; empty for all.
        pattern: a regular expression that the mutant's whole name matches.
        reason: why no input tells them apart.
    """

    operators: tuple[str, ...]
    pattern: str
    reason: str

    def covers(self, operator: str, name: str) -> bool:
        return (not self.operators or operator in self.operators) and re.fullmatch(self.pattern, name) is not None


CLAIMS: tuple[Claim, ...] = ()


def claim_of(operator: str, name: str) -> Claim | None:
    """The claim that covers a mutant; None where there is none."""
    return next((claim for claim in CLAIMS if claim.covers(operator, name)), None)
