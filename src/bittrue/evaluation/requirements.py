"""What a result must reach, checked after the run; that it can be asked for, before."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from ..errors import InputError
from ..names import near_or_all
from .tasks import Task

# Counts that may not grow beyond a value; figures of a task must be at least theirs.
FLIPS = "flips"


def numbers(figures: Mapping[str, Any]) -> dict[str, int | float]:
    """The figures that are single numbers."""
    return {name: value for name, value in figures.items() if isinstance(value, (int, float))}


def check_requirements(require: Mapping[str, float], task: Task, numerics: Collection[str]) -> None:
    """Raises InputError for what no result of this task can be asked for."""
    known = [*numbers(task.figures(()).to_dict()), FLIPS]
    for name, value in require.items():
        place = f"{name}={value:g}"
        if name not in known:
            advice = near_or_all(name, known, "there are")
            raise InputError("BT-REQUIRE", f"no figure '{name}'", place=place, advice=advice)
        if not math.isfinite(value) or value < 0:
            raise InputError("BT-REQUIRE", "expected a number from 0 on", place=place)
        if name == FLIPS and len(numerics) < 2:
            raise InputError("BT-REQUIRE", "answers flip between two arithmetics, there is one", place=place)


def unmet_requirements(found: Mapping[str, Any], require: Mapping[str, float]) -> list[str]:
    """A sentence for every requirement that a result of `evaluate` does not meet.

    Args:
        found: the result.
        require: least values of figures of the first arithmetic by name; ``"flips"``: how many answers may flip between
            any two arithmetics.
    """
    unmet = []
    first = found["numerics"][0]
    for name, value in require.items():
        if name == FLIPS:
            unmet += [
                f"{pair['count']:,} answers flip from {' to '.join(pair['pair'])}, at most {value:g} may"
                for pair in found["flips"]
                if pair["count"] > value
            ]
        elif not found["metrics"]:
            unmet.append(f"there is no {name} without labelled samples, at least {value:g} is required")
        # Not `<`: a figure may be NaN.
        elif not found["metrics"][first][name] >= value:
            unmet.append(f"{name} of {first} is {found['metrics'][first][name]:.6g}, at least {value:g} is required")
    return unmet
