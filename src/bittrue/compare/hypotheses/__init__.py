"""What B may have done otherwise: one file per family, each a list of hypotheses about one tensor.

A hypothesis says what it claims (`Cause`) and how to compute the tensor so; nothing is claimed unless that gives B's
bits. Rules of other numerics stand in `rows`, faults in the other files.
"""

from collections.abc import Callable, Iterable

from .case import Case, Hypothesis, unequal

FAMILIES: tuple[Callable[[Case], Iterable[Hypothesis]], ...] = ()

__all__ = ["FAMILIES", "Case", "Hypothesis", "unequal"]
