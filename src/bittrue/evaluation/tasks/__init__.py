"""The questions that models answer."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import InputError
from ...names import near_or_all
from .anomaly import Anomaly
from .base import Answer, Figures, Task
from .classification import Classification
from .regression import Regression

__all__ = ["TASKS", "Answer", "Figures", "Task", "find_task"]

TASKS: dict[str, Callable[[], Task]] = {"anomaly": Anomaly, "classification": Classification, "regression": Regression}


def find_task(which: str) -> Task:
    """A task by its name.

    Raises:
        InputError: there is none of that name.
    """
    if which not in TASKS:
        raise InputError("BT-TASK", f"no task '{which}'", advice=near_or_all(which, TASKS, "there are"))
    return TASKS[which]()
