"""Which class: the largest of the first output's values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...api import Port
from ...errors import BittrueError, InputError
from .base import Answer, Figures, Task, only, real

_TOP = 5


class Classification(Task):
    """The class with the largest value; of equal values the first one."""

    name = "classification"
    headline = "top1"
    columns: ClassVar = {"prediction": "int64", "top": "list<int64>", "scores": "list<double>"}

    def check(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        if math.prod(outputs[0].shape) in (0, 1):
            raise InputError(
                "BT-TASK", "one value per sample is no choice among classes", place=f"output '{outputs[0].name}'"
            )

    def classes(self, outputs: Sequence[Port]) -> int:
        return math.prod(outputs[0].shape)

    def answer(
        self,
        runs: Sequence[tuple[np.ndarray, Sequence[np.ndarray]]],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
    ) -> Answer:
        return _largest(only(runs)[0].reshape(1, -1), outputs[0])[0]

    def answers(
        self,
        samples: Sequence[Sequence[tuple[np.ndarray, Sequence[np.ndarray]]]],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
    ) -> list[Answer | BittrueError]:
        values = [runs[0][1][0] for runs in samples if len(runs) == 1]
        if len(values) < len(samples) or len({value.size for value in values}) != 1:
            return super().answers(samples, inputs, outputs)
        return [*_largest(np.concatenate(values, axis=None).reshape(len(values), -1), outputs[0])]

    def check_label(self, label: Any) -> None:
        if not isinstance(label, int):
            raise InputError(
                "BT-DATA-LABELS",
                f"expected the number of a class, found {label!r:.80}",
                advice="quantities are labels of --task regression, masks of segmentation, boxes of detection",
            )

    def right(self, label: Any, answer: Answer) -> bool | None:
        return bool(label == answer.prediction)

    def figures(self, classes: Sequence[str]) -> Figures:
        return _Figures(classes)


def _largest(values: np.ndarray, port: Port) -> list[Answer]:
    """The answers that rows of values mean."""
    order = np.argsort(-values.astype(np.float64), axis=1, kind="stable")[:, :_TOP]
    scores = real(np.take_along_axis(values, order, axis=1), port)
    with np.errstate(invalid="ignore"):  # infinity less infinity
        margins = scores[:, 0] - scores[:, 1] if scores.shape[1] > 1 else np.zeros(len(scores))
    return [
        Answer(top[0], margin, {"top": top, "scores": found})
        for top, found, margin in zip(order.tolist(), scores.tolist(), margins.tolist(), strict=True)
    ]


class _Figures(Figures):
    def __init__(self, classes: Sequence[str]) -> None:
        self._classes = classes
        self._pairs = Counter[tuple[int, int]]()
        self._among = 0

    def add(self, label: Any, answer: Answer) -> None:
        self._pairs[label, answer.prediction] += 1
        self._among += label in answer.details["top"]

    def to_dict(self) -> dict[str, Any]:
        totals = Counter[int]()
        for (label, _), count in self._pairs.items():
            totals[label] += count
        samples = sum(totals.values())
        right = sum(count for (label, found), count in self._pairs.items() if label == found)
        return {
            "right": right,
            "top1": right / samples if samples else math.nan,
            "top5": self._among / samples if samples else math.nan,
            "per_class": [
                {"class": label, "name": self._name(label), "samples": total, "right": self._pairs[label, label]}
                for label, total in sorted(totals.items())
            ],
            "confusion": [[label, found, count] for (label, found), count in sorted(self._pairs.items())],
        }

    def _name(self, label: int) -> str:
        return self._classes[label] if 0 <= label < len(self._classes) else str(label)
