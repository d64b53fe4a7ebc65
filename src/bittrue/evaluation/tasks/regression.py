"""How much: the numbers that the first output stands for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...api import Port
from ...errors import InputError
from ..placement import Placement
from .base import Answer, Figures, Task, only, real

# Outputs that have figures of their own, and values of a prediction that summaries list.
_FEW = 16


class Regression(Task):
    """Every value of the first output is a prediction, and a label has a number for each.

    A flip is a sample whose predictions differ at all; those with the largest absolute difference stand first. No
    single answer is right or wrong.
    """

    name = "regression"
    headline = "mae"
    lower = frozenset({"mae", "rmse", "max_error"})
    columns: ClassVar = {"prediction": "list<double>"}

    def check(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        if not math.prod(outputs[0].shape):
            raise InputError("BT-TASK", "the model gives no values", place=f"output '{outputs[0].name}'")

    def classes(self, outputs: Sequence[Port]) -> int:
        return 0

    def answer(
        self,
        runs: Sequence[tuple[np.ndarray, Sequence[np.ndarray]]],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
    ) -> Answer:
        values = real(only(runs)[0].reshape(-1), outputs[0])
        if not np.isfinite(values).all():
            raise InputError("BT-TASK", "a prediction is no finite number", place=f"output '{outputs[0].name}'")
        return Answer(values.tolist(), 0.0)

    def check_label(self, label: Any) -> None:
        try:
            numbers = np.asarray(label)
            fits = numbers.dtype.kind in "biuf" and numbers.size > 0 and bool(np.isfinite(numbers).all())
        except ValueError:  # lists of several lengths
            fits = False
        if not fits:
            raise InputError("BT-DATA-LABELS", f"expected a finite number, or a list of them, found {label!r:.80}")

    def judged(self, answer: Answer, truth: Any, placement: Placement | None) -> Answer:
        expected, found = np.size(truth), len(answer.prediction)
        if expected != found:
            raise InputError(
                "BT-DATA-LABELS", f"expected as many numbers as the model's first output has, {found}, found {expected}"
            )
        return answer

    def right(self, label: Any, answer: Answer) -> bool | None:
        return None

    def difference(self, one: Answer, two: Answer) -> float | None:
        largest = float(np.abs(np.subtract(one.prediction, two.prediction)).max())
        return largest or None

    def shown(self, value: Any) -> Any:
        numbers = np.asarray(value, np.float64).reshape(-1)
        return numbers.item() if len(numbers) == 1 else numbers[:_FEW].tolist()

    def figures(self, classes: Sequence[str]) -> Figures:
        return _Figures()


class _Figures(Figures):
    """Sums per output, added in the order of the samples; the mean and spread of labels as Welford does it."""

    def __init__(self) -> None:
        self._count = 0
        self._absolute = self._squared = self._largest = self._mean = self._spread = np.zeros(1)

    def add(self, label: Any, answer: Answer) -> None:
        y = np.asarray(label, np.float64).reshape(-1)
        error = np.abs(y - answer.prediction)
        self._count += 1
        self._absolute = self._absolute + error
        self._squared = self._squared + error**2
        self._largest = np.maximum(self._largest, error)
        step = y - self._mean
        self._mean = self._mean + step / self._count
        self._spread = self._spread + step * (y - self._mean)

    def to_dict(self) -> dict[str, Any]:
        count = self._count or math.nan
        determined = self._determined()
        found = {
            "mae": float(self._absolute.mean() / count),
            "rmse": math.sqrt(self._squared.mean() / count),
            "r2": float(determined.mean()),
            "max_error": float(self._largest.max()) if self._count else math.nan,
        }
        if not 1 < len(self._mean) <= _FEW:
            return found
        columns = (self._absolute / count, np.sqrt(self._squared / count), determined, self._largest)
        return found | {
            "per_output": [
                {"output": i, **dict(zip(found, values, strict=True))}
                for i, values in enumerate(np.stack(columns, axis=1).tolist())
            ]
        }

    def _determined(self) -> np.ndarray:
        """R² per output; where all labels are the same, 1 without any error and 0 with one, as scikit-learn has it."""
        if self._count < 2:
            return np.full(1, math.nan)
        constant = self._spread == 0
        spread = np.where(constant, 1.0, self._spread)
        return np.where(constant, (self._squared == 0).astype(np.float64), 1.0 - self._squared / spread)
