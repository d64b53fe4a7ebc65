"""What B may have done otherwise: one file per family, each a function from a case to hypotheses about it.

A hypothesis says what it claims (`Cause`) and how to compute the tensor so; nothing is claimed unless that gives B's
bits. Rules and rows of numerics stand in `rows`, roundings that no numerics has in `roundings`, faults in the others.
"""

from collections.abc import Callable, Iterable

from .case import BUDGET, Case, Hypothesis, Trial, unequal
from .clamps import clamps
from .constants import constants
from .lookups import lookups
from .movement import movement
from .real_numbers import real_numbers
from .registers import registers
from .results import results, stale
from .roundings import roundings
from .scales import scales
from .signedness import signedness
from .unfused import unfused
from .windows import windows
from .zero_points import zero_points

# In the order in which they are tried: the likelier and simpler ones first.
FAMILIES: tuple[Callable[[Case], Iterable[Hypothesis]], ...] = (
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

__all__ = ["BUDGET", "FAMILIES", "Case", "Hypothesis", "Trial", "unequal"]
