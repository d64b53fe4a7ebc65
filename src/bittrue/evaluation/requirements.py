"""What a result must reach, checked after the run; that it can be asked for, before."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from ..errors import InputError
from ..names import near_or_all
from . import metrics
from .metrics import Metric
from .tasks import Task

FLIPS = "flips"


def flipped(count: int) -> str:
    """How many answers flip, in words.

    >>> flipped(1), flipped(1000)
    ('1 answer flips', '1,000 answers flip')
    """
    return "1 answer flips" if count == 1 else f"{count:,} answers flip"


def numbers(figures: Mapping[str, Any]) -> dict[str, int | float]:
    """The figures that are single numbers."""
    return {name: value for name, value in figures.items() if isinstance(value, (int, float))}


def lower_of(task: Task, metric: Metric | None) -> Collection[str]:
    """Names of figures that are the better the lower they are."""
    return task.lower if metric is None else {*task.lower, *metrics.lower(metric)}


def check_requirements(
    require: Mapping[str, float], task: Task, numerics: Collection[str], metric: Metric | None = None
) -> None:
    """Raises InputError for what no result of this task and this metric can be asked for."""
    known = [*numbers(task.figures(()).to_dict()), *(() if metric is None else sorted(metrics.names(metric))), FLIPS]
    for name, value in require.items():
        place = f"{name}={value:g}"
        if name not in known:
            advice = near_or_all(name, known, "there are")
            if metric is not None:
                advice += "; a metric that gives several figures has their names in its attribute `figures`"
            raise InputError("BT-REQUIRE", f"no figure '{name}'", place=place, advice=advice)
        if not math.isfinite(value) or value < 0:
            raise InputError("BT-REQUIRE", "expected a number from 0 on", place=place)
        if name == FLIPS and len(numerics) < 2:
            raise InputError("BT-REQUIRE", "answers flip between two arithmetics, there is one", place=place)


def unmet_requirements(
    found: Mapping[str, Any], require: Mapping[str, float], lower: Collection[str] = ()
) -> list[str]:
    """A sentence for every requirement that a result of `evaluate` does not meet.

    Args:
        found: the result.
        require: bounds of figures of the first arithmetic by name; ``"flips"``: how many answers may flip between any
            two arithmetics.
        lower: names of figures that may not be larger than their bound; others may not be smaller.
    """
    unmet = []
    first = found["numerics"][0]
    figures = numbers(found["metrics"].get(first, {}))
    for name, value in require.items():
        if name == FLIPS:
            unmet += [
                f"{flipped(pair['count'])} from {' to '.join(pair['pair'])}, at most {value:g} may"
                for pair in found["flips"]
                if pair["count"] > value
            ]
            continue
        bound = f"at {'most' if name in lower else 'least'} {value:g} is required"
        if name not in figures:
            unmet.append(f"there is no {name}{'' if found['metrics'] else ' without labelled samples'}, {bound}")
            continue
        figure = figures[name]
        # Not the reverse comparisons: a figure may be NaN.
        if not (figure <= value if name in lower else figure >= value):
            unmet.append(f"{name} of {first} is {figure:.6g}, {bound}")
    return unmet
