"""What B may have done differently: one file per family, each a function from a case to hypotheses about it.

A hypothesis says what it claims (`Cause`) and how to compute the tensor so; nothing is claimed unless that gives B's
bits. Rules and rows of numerics stand in `rows`, roundings that no numerics has in `roundings`, faults in the others.
The same families are the wrong devices that `bittrue.conformance.mutation` runs against a suite.
"""

from collections.abc import Callable, Iterable

from .blocks import blocks
from .case import BUDGET, SECONDS, Case, Hypothesis, Trial, budget_of, unequal
from .clamps import clamps
from .comparisons import comparisons
from .constants import constants
from .delivery import delivery
from .exact_results import exact_results
from .fixed_point import fixed_point
from .lookups import lookups
from .movement import movement
from .multipliers import multipliers
from .prepared import prepared
from .reading import reading
from .real_numbers import real_numbers
from .registers import registers
from .results import results, stale
from .roundings import roundings
from .saturation import saturation
from .scales import scales
from .signedness import signedness
from .summands import summands
from .table_entries import table_entries
from .unfused import unfused
from .windows import windows
from .wrong_operands import wrong_operands
from .zero_points import zero_points

Family = Callable[[Case], Iterable[Hypothesis]]
# In the order in which they are tried: the likelier and simpler ones first.
FAMILIES: tuple[Family, ...] = (
    unfused,
    stale,
    zero_points,
    clamps,
    roundings,
    real_numbers,
    constants,
    windows,
    movement,
    signedness,
    lookups,
    registers,
    scales,
    results,
)
# Tried where none of those holds: many, and each of them rare.
RARE: tuple[Family, ...] = (
    reading,
    wrong_operands,
    prepared,
    table_entries,
    multipliers,
    exact_results,
    comparisons,
    saturation,
    blocks,
)
# Tried before the rare ones; the mutation score does not count them.
UNCOUNTED: tuple[Family, ...] = (fixed_point, delivery, summands)

__all__ = [
    "BUDGET",
    "FAMILIES",
    "RARE",
    "SECONDS",
    "UNCOUNTED",
    "Case",
    "Family",
    "Hypothesis",
    "Trial",
    "budget_of",
    "unequal",
]
