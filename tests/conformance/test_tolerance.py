"""Derived tolerances: every figure is what its witness gives, and nothing is tolerated where numerics agree."""

from __future__ import annotations

import pytest

from bittrue.conformance import tolerance
from bittrue.conformance.suite import SUITES, find_suite

SHIPPED = {(t.suite, t.operator, t.types): t for t in tolerance.shipped()}
# Bias and mean square take all cases of an operator under all admitted numerics.
WHOLE = {("litert", "AVERAGE_POOL_2D"), ("litert", "SQUEEZE"), ("litert", "TANH"), ("litert", "MEAN")}


def test_every_operator_and_type_of_every_suite_has_one() -> None:
    wanted = {(s.name, o, label) for s in SUITES.values() for o, g in s.generators().items() for label in g.types}
    assert set(SHIPPED) == wanted, "run tools/derive_tolerances.py"


@pytest.mark.parametrize("operator", list(find_suite("litert").generators()))
def test_witnesses_give_the_figures(operator: str) -> None:
    """Of the specification's types; `tools/derive_tolerances.py --check` looks at all."""
    found = SHIPPED["litert", operator, "s8"]
    if not found.figures.largest and not found.wide and ("litert", operator) not in WHOLE:
        assert found.bound == tolerance.Bound(0, 0.0, 0.0)
        return
    assert not tolerance.recomputed(find_suite("litert"), found, sums=("litert", operator) in WHOLE)


def test_what_numerics_agree_on_is_not_tolerated() -> None:
    for operator in ("RESHAPE", "SQUEEZE", "TRANSPOSE", "CONCATENATION", "GATHER", "SLICE", "MAXIMUM", "SHAPE"):
        assert SHIPPED["litert", operator, "s8"].bound == tolerance.Bound(0, 0.0, 0.0)


def test_one_unit_is_the_most_outside_of_wide_cases() -> None:
    assert all(found.figures.largest <= 1 for found in SHIPPED.values())
    assert all(figures.largest > 1 for found in SHIPPED.values() for figures in found.wide.values())


def test_a_wrong_witness_is_noticed() -> None:
    from dataclasses import replace

    found = SHIPPED["litert", "MUL", "s8"]
    witness = found.figures.largest_witness
    assert witness is not None
    forged = replace(found, figures=replace(found.figures, largest=2))
    assert tolerance.recomputed(find_suite("litert"), forged, sums=False)
