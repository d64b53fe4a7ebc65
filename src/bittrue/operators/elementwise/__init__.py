"""Operators of one element of each input."""

from typing import TYPE_CHECKING

from ...deferred import deferred

if not TYPE_CHECKING:
    # Which of these a model needs depends on its arithmetic.
    __getattr__ = deferred(
        __name__,
        (
            "level_functions",
            "operand_pairs",
            "range_pairs",
            "stored_sums",
        ),
    )
