"""Which class every pixel has."""

from __future__ import annotations

import hashlib
import importlib
import io
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...api import Port
from ...errors import InputError, UnsupportedError
from ..placement import Placement
from .base import Answer, Figures, Task, only, real

# What masks may hold: of more classes, an image with 16 bits per pixel could not hold the answer.
_MOST_CLASSES = 1 << 16
# A pixel without a class, once a mask is read.
_NONE = -1


class Segmentation(Task):
    """A class per pixel: the largest value along the axis of classes, or the first output as it is.

    A label is a mask, a class per pixel of the image. It goes the way of the image: what the recipe cuts off is left
    out, what it adds has no class, and the pixel nearest to the centre of each of the output's counts.

    Args:
        ignore: values in masks that are no class: a number, or several.
        values: the value that stands for class 0, 1 and so on in masks; None: classes are written as they are.
        threshold: of a single channel of real numbers: class 1 where it is larger.
    """

    name = "segmentation"
    headline = "mean_iou"
    keys = ("ignore", "values", "threshold")
    columns: ClassVar = {"prediction": "string", "mask": "binary", "confusion": "list<int64>"}

    def __init__(
        self, *, ignore: int | Sequence[int] = 255, values: Sequence[int] | None = None, threshold: float = 0.5
    ) -> None:
        self._ignore = _integers("ignore", [ignore] if isinstance(ignore, int) else ignore)
        self._values = None if values is None else _integers("values", values)
        if isinstance(threshold, bool) or not isinstance(threshold, int | float) or math.isnan(threshold):
            raise InputError("BT-TASK", f"threshold is a number, found {threshold!r}", place="segmentation")
        self._threshold = threshold

    def check(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        shape = _plain(outputs[0].shape)
        if len(shape) not in (2, 3) or not math.prod(shape):
            raise InputError(
                "BT-TASK",
                f"expected a class, or a value for every class, per pixel, found {list(outputs[0].shape)}",
                place=f"output '{outputs[0].name}'",
            )

    def answer(
        self,
        runs: Sequence[tuple[np.ndarray, Sequence[np.ndarray]]],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
    ) -> Answer:
        (values, *_), port = only(runs), outputs[0]
        values = values.reshape(_plain(values.shape))
        classes = 0
        if values.ndim == 3:
            axis = _channels(inputs[0].shape)
            if values.shape[axis] > 1:
                classes = values.shape[axis]
                values = values.argmax(axis=axis)
            else:
                values = values.take(0, axis)
        if not classes and (values.dtype.kind == "f" or (port.scale is not None and port.scale != 1)):
            values, classes = real(values, port) > self._threshold, 2
        found = values.astype(np.int64)
        if found.min() < 0 or found.max() >= _MOST_CLASSES:
            raise InputError(
                "BT-TASK", f"no numbers of classes: {found.min()} to {found.max()}", place=f"output '{port.name}'"
            )
        mask = found.astype(np.uint16)
        digest = hashlib.sha256(f"{list(mask.shape)}".encode() + mask.astype("<u2").tobytes()).hexdigest()[:16]
        return Answer(digest, 0.0, {"mask": _png(mask), "confusion": None, "classes": classes})

    def judged(self, answer: Answer, truth: Any, placement: Placement | None) -> Answer:
        mask = np.asarray(truth)
        if mask.ndim != 2 or mask.dtype.kind not in "iub" or not mask.size:
            raise InputError("BT-DATA-MASK", f"a mask is a class per pixel, found {mask.dtype}{list(mask.shape)}")
        placement = placement or Placement.whole(*mask.shape)
        if placement.image != mask.shape:
            raise InputError(
                "BT-DATA-MASK",
                f"the mask has {mask.shape[0]} x {mask.shape[1]} pixels, the image "
                f"{placement.image[0]} x {placement.image[1]}",
            )
        found = pixels(answer)
        label = placement.nearest(self.numbers(mask), (found.shape[0], found.shape[1]), _NONE)
        classes = answer.details["classes"]
        if classes and label.max() >= classes:
            raise InputError(
                "BT-DATA-MASK",
                f"the mask has class {label.max()}, the model {classes} classes",
                advice="name values that are no class under ignore, or what stands for class 0, 1 ... under values, in "
                "the table [task] of the recipe",
            )
        counted = label != _NONE
        pairs, counts = np.unique(label[counted] * _MOST_CLASSES + found[counted], return_counts=True)
        confusion = np.stack([pairs // _MOST_CLASSES, pairs % _MOST_CLASSES, counts], axis=1)
        return Answer(answer.prediction, 0.0, {**answer.details, "confusion": confusion.reshape(-1).tolist()})

    def numbers(self, mask: np.ndarray) -> np.ndarray:
        """Numbers of classes for what a mask holds; -1 for what is no class.

        Raises:
            InputError: it holds something else.
        """
        values = mask.astype(np.int64)
        numbers = values
        if self._values is not None:
            numbers = np.full(values.shape, -2)
            for number, value in enumerate(self._values):
                numbers[values == value] = number
        found = np.where(np.isin(values, self._ignore), _NONE, numbers)
        wrong = (found < _NONE) | (found >= _MOST_CLASSES)
        if wrong.any():
            raise InputError(
                "BT-DATA-MASK",
                f"the mask has the value {values[wrong][0]}, which is no class",
                advice="name it under ignore or values in the table [task] of the recipe",
            )
        return found

    def right(self, label: Any, answer: Answer) -> bool | None:
        return None

    def difference(self, one: Answer, two: Answer) -> float | None:
        if one.prediction == two.prediction:
            return None
        first, second = pixels(one), pixels(two)
        return float(np.count_nonzero(first != second)) if first.shape == second.shape else math.inf

    def shown(self, value: Any) -> Any:
        return value if isinstance(value, str) else "a mask"

    def figures(self, classes: Sequence[str]) -> Figures:
        return _Figures(classes)


class _Figures(Figures):
    def __init__(self, classes: Sequence[str]) -> None:
        self._classes = classes
        self._pairs = Counter[tuple[int, int]]()

    def add(self, label: Any, answer: Answer) -> None:
        for one, found, count in np.reshape(answer.details["confusion"], (-1, 3)).astype(np.int64).tolist():
            self._pairs[one, found] += count

    def to_dict(self) -> dict[str, Any]:
        labels, answers = Counter[int](), Counter[int]()
        for (label, found), count in self._pairs.items():
            labels[label] += count
            answers[found] += count
        both = {number: self._pairs[number, number] for number in sorted(labels.keys() | answers.keys())}
        overlaps = {number: same / (labels[number] + answers[number] - same) for number, same in both.items()}
        pixels = labels.total()
        return {
            "mean_iou": math.fsum(overlaps.values()) / len(overlaps) if overlaps else math.nan,
            "pixel_accuracy": sum(both.values()) / pixels if pixels else math.nan,
            "pixels": pixels,
            "per_class": [
                {"class": number, "name": self._name(number), "pixels": labels[number], "iou": overlap}
                for number, overlap in overlaps.items()
            ],
            "confusion": [[label, found, count] for (label, found), count in sorted(self._pairs.items())],
        }

    def _name(self, number: int) -> str:
        return self._classes[number] if number < len(self._classes) else str(number)


def _plain(shape: Sequence[int]) -> tuple[int, ...]:
    """Without the batch axis."""
    return tuple(shape[1:] if shape and shape[0] == 1 else shape)


def _channels(shape: Sequence[int]) -> int:
    """The axis of channels, without that of batches: outputs have it where inputs do."""
    return 2 if shape[-1] in (1, 3, 4) else 0


def _integers(name: str, values: Any) -> list[int]:
    if not isinstance(values, Sequence) or not all(type(value) is int for value in values):
        raise InputError("BT-TASK", f"{name} is a list of integers, found {values!r:.80}", place="segmentation")
    return list(values)


def _pillow() -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise UnsupportedError("BT-PACKAGE", "pillow is not installed", advice="pip install pillow") from None


def _png(mask: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    small = mask.astype(np.uint8) if mask.max() < 256 else mask
    _pillow().fromarray(small).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def pixels(answer: Answer) -> np.ndarray:
    """The number of the class of every pixel of the output."""
    with _pillow().open(io.BytesIO(answer.details["mask"])) as image:
        return np.asarray(image).astype(np.int64)
