"""How unusual: the error of a model that repeats its input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from ...api import Port
from ...errors import InputError
from .base import Answer, Figures, Task, real


class Anomaly(Task):
    """The mean over a sample's runs of the mean squared difference between input and first output, as real numbers.

    The prediction is this score as it is. A flip is thus a sample whose scores differ at all; there is no threshold, so
    its margin is 0, and no single answer is right or wrong. Labels are 0 (normal) and 1 (anomaly).
    """

    name = "anomaly"
    headline = "auc"
    columns: ClassVar = {"prediction": "double"}

    def check(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        if math.prod(inputs[0].shape) != math.prod(outputs[0].shape) or not math.prod(outputs[0].shape):
            raise InputError(
                "BT-TASK",
                f"the model does not repeat its input: {list(inputs[0].shape)} becomes {list(outputs[0].shape)}",
                place=f"output '{outputs[0].name}'",
            )

    def classes(self, outputs: Sequence[Port]) -> int:
        return 0

    def answer(
        self,
        runs: Sequence[tuple[np.ndarray, Sequence[np.ndarray]]],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
    ) -> Answer:
        x = np.stack([real(given.reshape(-1), inputs[0]) for given, _ in runs])
        y = np.stack([real(found[0].reshape(-1), outputs[0]) for _, found in runs])
        # Sums in order: `np.sum` adds in an order that depends on the machine.
        errors = np.cumsum((x - y) ** 2, axis=1)[:, -1] / x.shape[1]
        score = float(np.cumsum(errors)[-1] / len(errors))
        if not math.isfinite(score):
            raise InputError("BT-TASK", f"the score is {score}", place=f"output '{outputs[0].name}'")
        return Answer(score, 0.0)

    def check_label(self, label: Any) -> None:
        if label not in (0, 1):
            raise InputError("BT-DATA-LABELS", f"expected 0 (normal) or 1 (anomaly), found {label!r}")

    def right(self, label: Any, answer: Answer) -> bool | None:
        return None

    def figures(self, classes: Sequence[str]) -> Figures:
        return _Figures()


class _Figures(Figures):
    def __init__(self) -> None:
        self._scores: list[tuple[float, int]] = []

    def add(self, label: Any, answer: Answer) -> None:
        self._scores.append((answer.prediction, int(label)))

    def to_dict(self) -> dict[str, Any]:
        anomalies = sum(label for _, label in self._scores)
        normal = len(self._scores) - anomalies
        return {"auc": area(self._scores), "normal": normal, "anomalies": anomalies}


def area(scores: Sequence[tuple[float, int]]) -> float:
    """The area under the ROC curve of scores and labels 0 or 1, from ranks: pairs in order count 1, equal ones 1/2.

    NaN where all labels are the same.
    """
    halves = below = 0  # halves of pairs, which are integers: exact
    for _, group in groupby(sorted(scores), key=lambda pair: pair[0]):
        labels = [label for _, label in group]
        ones = sum(labels)
        halves += ones * (2 * below + len(labels) - ones)
        below += len(labels) - ones
    pairs = below * (len(scores) - below)
    return halves / (2 * pairs) if pairs else math.nan


def curve(scores: Sequence[tuple[float, int]], most: int = 500) -> list[list[float]]:
    """Points of the ROC curve from (0, 0) to (1, 1), at most so many: shares of normal samples and of anomalies that
    have at least some score.

    >>> curve([(0.1, 0), (0.2, 1), (0.3, 0), (0.4, 1)])
    [[0.0, 0.0], [0.0, 0.5], [0.5, 0.5], [0.5, 1.0], [1.0, 1.0]]
    """
    ones = sum(label for _, label in scores)
    zeros = len(scores) - ones
    points, found = [[0, 0]], [0, 0]
    for _, group in groupby(sorted(scores, reverse=True), key=lambda pair: pair[0]):
        for _, label in group:
            found[label] += 1
        points.append(list(found))
    step = math.ceil(len(points) / most)
    kept = [*points[:-1:step], points[-1]]
    return [[below / (zeros or 1), above / (ones or 1)] for below, above in kept]
