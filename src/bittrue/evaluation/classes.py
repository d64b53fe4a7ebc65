"""What the numbers of classes are called, and where those of the data may not be those of the model."""

from __future__ import annotations

from collections.abc import Sequence

from ..api import Port
from .sources import Source
from .tasks import Task


def class_names(source: Source, labels: Sequence[str], task: Task, outputs: Sequence[Port]) -> list[str]:
    """Names of the classes by number: those of the data, or else those of the model; none where nothing has them.

    Args:
        source: the data.
        labels: what the model's own file calls its classes; may be empty.
        task: the question.
        outputs: of the model.
    """
    return list(source.classes or (() if task.classes(outputs) == 0 else labels))


def notes_on_classes(source: Source, labels: Sequence[str], task: Task, outputs: Sequence[Port]) -> list[str]:
    """Sentences for readers of the result: classes of the data and of the model may have other numbers."""
    count, names = task.classes(outputs), source.classes
    if not names or count == 0:
        return []
    notes = []
    if count is not None and count != len(names):
        notes.append(
            f"the data has {len(names):,} classes and the model {count:,}: class 0 of the data, '{names[0]}', counts "
            "as class 0 of the model, and so on, and answers are called as in the data"
        )
    other = next((i for i, (one, two) in enumerate(zip(names, labels, strict=False)) if one != two), None)
    if other is not None:
        notes.append(
            f"class {other} is '{names[other]}' in the data and '{labels[other]}' in the model's own labels; the "
            "recipe 'metadata' gives the data's classes the numbers that the model has for these names"
        )
    return notes
