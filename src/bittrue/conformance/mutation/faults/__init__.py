"""Faults of devices beside those that `bittrue.compare` looks for: one file per family, each a function from a part of
a model to hypotheses about it, as in `bittrue.compare.hypotheses`.
"""

from collections.abc import Callable, Iterable

from ....compare.hypotheses import Case, Hypothesis
from .blocks import blocks
from .comparisons import comparisons
from .exact_results import exact_results
from .multipliers import multipliers
from .operands import operands
from .prepared import prepared
from .reading import reading
from .saturation import saturation
from .tables import tables

FAULTS: tuple[Callable[[Case], Iterable[Hypothesis]], ...] = (
    reading,
    operands,
    prepared,
    tables,
    multipliers,
    exact_results,
    comparisons,
    saturation,
    blocks,
)
