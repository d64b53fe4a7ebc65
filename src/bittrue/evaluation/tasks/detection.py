"""Which objects, and where."""

from __future__ import annotations

import contextlib
import importlib
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...api import Port
from ...arithmetic.boxes import intersection_over_union
from ...errors import InputError, UnsupportedError
from ..placement import Placement
from .base import Answer, Figures, Task, only, real

_WORDS = ("boxes", "classes", "scores", "count")
# The order in which TFLite_Detection_PostProcess has them, and the one of TensorFlow 2's exports, by the shapes that
# tell them apart: rank 3 are boxes, one value is the count.
_ORDERS: Mapping[tuple[int, ...], Sequence[str]] = {
    (3, 2, 2, 1): _WORDS,
    (2, 3, 1, 2): ("scores", "boxes", "count", "classes"),
}
# Detections of one arithmetic and another are the same where they overlap that much.
_SAME = 0.5
# Detections that lists of flips name.
_FEW = 16


class Detection(Task):
    """Boxes, classes and scores, as TFLite_Detection_PostProcess gives them; figures are COCO's.

    A flip is a sample with a detection, of at least the threshold's score, that the other arithmetic does not have:
    none of its class overlaps it by half. The one with the largest score says how clear it is.

    Args:
        label_offset: what is added to the model's classes to get the data's categories; None: 1, or 0 where the data
            has a category 0.
        categories: the data's category for every class of the model, instead of an offset.
        threshold: the least score of detections that answers are compared by; figures have all of them.
        outputs: what the model's outputs are, in their order: ``boxes``, ``classes``, ``scores`` and ``count``, which
            may be missing. None: known by their shapes.
    """

    name = "detection"
    headline = "map"
    keys = ("label_offset", "categories", "threshold", "outputs")
    columns: ClassVar = {
        "prediction": "list<int64>",
        "classes": "list<int64>",
        "scores": "list<double>",
        "boxes": "list<double>",
        "found": "list<double>",
    }

    def __init__(
        self,
        *,
        label_offset: int | None = None,
        categories: Sequence[int] | None = None,
        threshold: float = 0.5,
        outputs: Sequence[str] | None = None,
    ) -> None:
        if label_offset is not None and type(label_offset) is not int:
            raise self._error(f"label_offset is an integer, found {label_offset!r:.80}")
        if categories is not None and not (
            isinstance(categories, Sequence) and all(type(number) is int for number in categories)
        ):
            raise self._error(f"categories is a list of integers, found {categories!r:.80}")
        if categories is not None and label_offset is not None:
            raise self._error("give categories or label_offset, not both")
        if isinstance(threshold, bool) or not isinstance(threshold, int | float) or math.isnan(threshold):
            raise self._error(f"threshold is a number, found {threshold!r:.80}")
        if outputs is not None and (
            not isinstance(outputs, list | tuple)
            or len({*outputs}) != len(outputs)
            or not {*_WORDS[:3]} <= {*outputs} <= {*_WORDS}
        ):
            raise self._error(f"outputs is a list of {', '.join(_WORDS)}, each once, found {outputs!r:.120}")
        self._offset, self._categories, self._threshold, self._outputs = label_offset, categories, threshold, outputs

    def _error(self, text: str) -> InputError:
        return InputError("BT-TASK", text, place="detection")

    def _order(self, outputs: Sequence[Port]) -> Sequence[str]:
        if self._outputs is not None:
            return self._outputs
        return _ORDERS.get(tuple(len(port.shape) for port in outputs), ())

    def check(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        order = self._order(outputs)
        if len(order) != len(outputs) or outputs[order.index("boxes")].shape[-1:] != (4,):
            raise InputError(
                "BT-TASK",
                f"expected boxes, classes, scores and their count, found outputs {[list(p.shape) for p in outputs]}",
                advice='name them in the table [task] of the recipe: outputs = ["scores", "boxes", ...]',
            )
        _pycocotools()

    def classes(self, outputs: Sequence[Port]) -> int:
        # What figures and pages name are the data's categories.
        return 0

    def answer(
        self,
        runs: Sequence[tuple[np.ndarray, Sequence[np.ndarray]]],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
    ) -> Answer:
        given = {
            name: real(values, port)
            for name, values, port in zip(self._order(outputs), only(runs), outputs, strict=True)
        }
        scores, classes = given["scores"].reshape(-1), given["classes"].reshape(-1)
        boxes = given["boxes"].reshape(-1, 4)
        count = given["count"].reshape(-1) if "count" in given else np.array([len(scores)])
        if len(count) != 1 or not 0 <= count[0] <= len(scores) == len(classes) == len(boxes):
            raise InputError(
                "BT-TASK", f"{count} detections, {len(boxes)} boxes, {len(classes)} classes, {len(scores)} scores"
            )
        order = np.argsort(-scores[: int(count[0])], kind="stable")
        scores, classes, boxes = scores[order], classes[order], boxes[order]
        if not all(np.isfinite(values).all() for values in (scores, classes, boxes)):
            raise InputError("BT-TASK", "a detection is no finite number")
        numbers = classes.astype(np.int64)
        details = {
            "classes": numbers.tolist(),
            "scores": scores.tolist(),
            "boxes": boxes.reshape(-1).tolist(),
            "found": None,
        }
        return Answer(numbers[scores >= self._threshold].tolist(), 0.0, details)

    def check_label(self, label: Any) -> None:
        if not isinstance(label, Mapping) or not {"image", "size", "first", "objects"} <= label.keys():
            raise InputError(
                "BT-DATA-LABELS", f"expected the boxes of an image, found {label!r:.80}", advice="--data coco:..."
            )

    def judged(self, answer: Answer, truth: Any, placement: Placement | None) -> Answer:
        size = truth["size"] and tuple(truth["size"])
        if placement is None:
            if size is None:
                raise InputError("BT-DATA-COCO", "the size of the image is not known")
            placement = Placement.whole(*size)
        if size not in (None, placement.image):
            raise InputError(
                "BT-DATA-COCO",
                f"the file says {size[0]} x {size[1]} pixels, the image has {placement.image[0]} x "
                f"{placement.image[1]}",
            )
        found = self._found(answer, placement, truth["first"])
        return Answer(answer.prediction, 0.0, {**answer.details, "found": found})

    def _found(self, answer: Answer, placement: Placement, first: int) -> list[float]:
        """Of every detection category, left, top, width, height in the image's pixels, and score."""
        details = answer.details
        found: list[float] = []
        for number, score, box in zip(details["classes"], details["scores"], _boxes(answer), strict=True):
            top, left, bottom, right = placement.box(*box.tolist())
            found += [self._category(number, first), left, top, right - left, bottom - top, score]
        return found

    def _category(self, number: int, first: int) -> int:
        if self._categories is None:
            return number + (first if self._offset is None else self._offset)
        if not 0 <= number < len(self._categories):
            raise self._error(f"the model found class {number}, there are categories for {len(self._categories)}")
        return self._categories[number]

    def right(self, label: Any, answer: Answer) -> bool | None:
        return None

    def difference(self, one: Answer, two: Answer) -> float | None:
        alone = [*self._alone(one, two), *self._alone(two, one)]
        return max(alone, default=None)

    def _alone(self, one: Answer, two: Answer) -> list[float]:
        """Scores of detections that only the first one has."""
        ones, others = (
            [
                (number, *box)
                for number, score, box in zip(
                    answer.details["classes"], answer.details["scores"], _boxes(answer).tolist(), strict=True
                )
                if score >= self._threshold
            ]
            for answer in (one, two)
        )
        scores = [score for score in one.details["scores"] if score >= self._threshold]
        return [scores[i] for i in unmatched(ones, others)]

    def seen(self, answer: Answer, placement: Placement | None) -> list[list[float]]:
        """Detections that reach the threshold: category, left, top, width, height in the image's pixels, and score.

        Args:
            answer: the answer.
            placement: of the image, for answers that were not judged.
        """
        found = answer.details["found"]
        if found is None:
            assert placement is not None
            found = self._found(answer, placement, 1)
        return [one for one in np.reshape(found, (-1, 6)).tolist() if one[5] >= self._threshold]

    def shown(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return "1 object" if len(value["objects"]) == 1 else f"{len(value['objects'])} objects"
        more = f" and {len(value) - _FEW} more" if len(value) > _FEW else ""
        return "classes " + ", ".join(map(str, value[:_FEW])) + more if value else "nothing"

    def figures(self, classes: Sequence[str]) -> Figures:
        return _Figures(classes)


class _Figures(Figures):
    def __init__(self, classes: Sequence[str]) -> None:
        self._classes = classes
        self._labels: list[Mapping[str, Any]] = []
        self._found: list[Sequence[float]] = []

    def add(self, label: Any, answer: Answer) -> None:
        self._labels.append(label)
        self._found.append(answer.details["found"])

    def to_dict(self) -> dict[str, Any]:
        names = ("map", "map50", "map75", "recall100")
        objects = sum(len(label["objects"]) for label in self._labels)
        if not objects:
            return {**dict.fromkeys(names, math.nan), "objects": 0}
        coco, evaluation = _pycocotools()
        labels = [
            {"image": i, "category": int(category), "box": box, "area": area, "crowd": int(crowd), "score": 1.0}
            for i, label in enumerate(self._labels)
            for category, *box, area, crowd in label["objects"]
        ]
        found = [
            {"image": i, "category": int(category), "box": box, "area": box[2] * box[3], "crowd": 0, "score": score}
            for i, values in enumerate(self._found)
            for category, *box, score in np.reshape(values, (-1, 6)).tolist()
        ]
        categories = sorted({one["category"] for one in labels})
        # pycocotools prints what it does.
        with contextlib.redirect_stdout(io.StringIO()):
            sides = [_dataset(coco, len(self._labels), categories, one) for one in (labels, found)]
            made = evaluation(*sides, "bbox")
            made.evaluate()
            made.accumulate()
            made.summarize()
        values = [math.nan if value < 0 else float(value) for value in made.stats]
        precision = made.eval["precision"][..., 0, -1]
        return {
            **dict(zip(names, (*values[:3], values[8]), strict=True)),
            "objects": objects,
            "by_size": {
                size: {"map": values[3 + i], "recall100": values[9 + i]}
                for i, size in enumerate(("small", "medium", "large"))
            },
            "per_class": [
                {
                    "class": category,
                    "name": self._classes[category] if 0 <= category < len(self._classes) else str(category),
                    "objects": sum(one["category"] == category for one in labels),
                    "map": _mean(precision[:, :, i]),
                }
                for i, category in enumerate(categories)
            ],
        }


def _mean(values: np.ndarray) -> float:
    there = values[values > -1]
    return float(there.mean()) if there.size else math.nan


def _dataset(coco: Any, images: int, categories: Sequence[int], boxes: Sequence[Mapping[str, Any]]) -> Any:
    made = coco()
    made.dataset = {
        "images": [{"id": i} for i in range(images)],
        "categories": [{"id": category} for category in categories],
        "annotations": [
            {
                "id": i,
                "image_id": one["image"],
                "category_id": one["category"],
                "bbox": list(one["box"]),
                "area": one["area"],
                "iscrowd": one["crowd"],
                "score": one["score"],
            }
            for i, one in enumerate(boxes, 1)
        ],
    }
    made.createIndex()
    return made


def _pycocotools() -> tuple[Any, Any]:
    try:
        return (
            importlib.import_module("pycocotools.coco").COCO,
            importlib.import_module("pycocotools.cocoeval").COCOeval,
        )
    except ImportError:
        raise UnsupportedError(
            "BT-PACKAGE", "pycocotools is not installed", advice='pip install "bittrue[coco]"'
        ) from None


def unmatched(ones: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> list[int]:
    """Positions of boxes that none of the others stands for: of the same class, overlapping by half, for no one else.

    Args:
        ones, others: class, top, left, bottom and right of each, the surest first.

    >>> unmatched([(1, 0, 0, 2, 2), (1, 0, 0, 2, 2), (2, 0, 0, 2, 2)], [(1, 0, 0, 2, 3)])
    [1, 2]
    """
    free = list(range(len(others)))
    corners = np.reshape(np.array([other[1:5] for other in others], np.float64), (-1, 4))
    found = []
    for i, (number, *box) in enumerate(ones):
        same = [k for k in free if others[k][0] == number]
        # Boxes without an area overlap nothing.
        overlaps = np.maximum(intersection_over_union(box, corners[same]), (corners[same] == box).all(axis=-1))
        if same and overlaps.max() >= _SAME:
            free.remove(same[int(overlaps.argmax())])
        else:
            found.append(i)
    return found


def _boxes(answer: Answer) -> np.ndarray:
    """Top, left, bottom and right of every detection, in parts of the input."""
    return np.reshape(np.array(answer.details["boxes"], np.float64), (-1, 4))
