"""The questions that models answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import InputError
from ...names import near_or_all
from .anomaly import Anomaly
from .base import Answer, Figures, Task
from .classification import Classification
from .detection import Detection
from .regression import Regression
from .segmentation import Segmentation

__all__ = ["TASKS", "Answer", "Figures", "Task", "find_task"]

TASKS: dict[str, type[Task]] = {
    kind.name: kind for kind in (Anomaly, Classification, Detection, Regression, Segmentation)
}


def find_task(which: str, keys: Mapping[str, Any] | None = None) -> Task:
    """A task by its name.

    Args:
        which: the name.
        keys: what a recipe says about it.

    Raises:
        InputError: there is none of that name, or it does not take a key or its value.
    """
    if which not in TASKS:
        raise InputError("BT-TASK", f"no task '{which}'", advice=near_or_all(which, TASKS, "there are"))
    task = TASKS[which]
    for key in keys or ():
        if key not in task.keys:
            others = [name for name, other in TASKS.items() if key in other.keys]
            advice = near_or_all(key, task.keys, "there are") if task.keys else "it takes no keys"
            if others:
                advice = f"it is for the task {' or '.join(others)}"
            raise InputError("BT-TASK", f"task '{which}' knows no '{key}'", place="[task]", advice=advice)
    return task(**(keys or {}))
