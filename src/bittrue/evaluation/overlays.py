"""What lies on a sample's image on a page: boxes, or masks in the colours of their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from .placement import Placement
from .rows import Row
from .sources import Sample
from .tasks import Task
from .tasks.detection import Detection, unmatched
from .tasks.segmentation import Segmentation, pixels
from .thumbnails import layer

# What stands for the label among the names of arithmetics.
LABEL = ""
# Colours of classes that people with any colour vision tell apart: those of Okabe and Ito, then darker and lighter
# ones. Class 0, which mostly is what lies behind, is a shadow.
_COLOURS = (
    *("e69f00", "56b4e9", "009e73", "f0e442", "0072b2", "d55e00", "cc79a7"),
    *("332288", "88ccee", "44aa99", "999933", "ddcc77", "882255", "aa4499", "8c564b", "117733"),
)
_SHADOW, _DIFFERENT = "101318", "ff2bd6"
_OPACITY = {_SHADOW: 120, _DIFFERENT: 255}
# Boxes of a side that are drawn, those with the largest scores.
_MOST_BOXES = 100


def mistakes(task: Task, row: Row, name: str) -> float | None:
    """How much of an answer is not as its label says; None where nothing is said about that.

    Of masks the share of pixels, of detections the number of objects that are missed or that there are not.
    """
    answer = row.answers[name]
    if isinstance(task, Segmentation) and answer.details["confusion"] is not None:
        table = np.reshape(answer.details["confusion"], (-1, 3))
        return float(table[table[:, 0] != table[:, 1], 2].sum() / max(1, table[:, 2].sum()))
    if isinstance(task, Detection) and row.label is not None:
        true, seen = _cornered(_objects(row.label)), _cornered(task.seen(answer, None))
        return float(len(unmatched(true, seen)) + len(unmatched(seen, true)))
    return None


def draws(task: Task) -> bool:
    """Whether there is something to lay on images."""
    return isinstance(task, Detection | Segmentation)


def overlays(
    task: Task, row: Row, sample: Sample, placement: Placement, small: tuple[int, int], classes: Sequence[str]
) -> dict[str, Any]:
    """What lies on the thumbnail of a sample, as plain data.

    Args:
        task: one that `draws`.
        row, sample: the sample, with its answers.
        placement: where its image went.
        small: rows and columns of the thumbnail.
        classes: names of the classes by number.

    Returns:
        ``boxes``: by arithmetic, and by `LABEL` for the label: where each is in the image, its class, its score, and
        the sides that do not have it; ``masks``: by the same, images; ``differ``: of pairs, where they do; ``legend``:
        names and colours of the classes in masks.
    """
    if isinstance(task, Detection):
        return {"boxes": _boxes(task, row, placement, classes)}
    assert isinstance(task, Segmentation)
    return _masks(task, row, sample, placement, small, classes)


def _objects(label: Mapping[str, Any]) -> list[list[float]]:
    """Boxes of a label, but for crowds: category, left, top, width, height."""
    return [one[:5] for one in label["objects"] if not one[6]]


def _boxes(task: Detection, row: Row, placement: Placement, classes: Sequence[str]) -> dict[str, Any]:
    sides = {name: task.seen(answer, placement)[:_MOST_BOXES] for name, answer in row.answers.items()}
    if row.label is not None:
        sides[LABEL] = _objects(row.label)[:_MOST_BOXES]
    rows, columns = placement.image
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for side, boxes in sides.items():
        for number, left, top, width, height, *score in boxes:
            found[side].append(
                {
                    "place": _shares((left, top, width, height), rows, columns),
                    "class": _named(int(number), classes),
                    "score": score[0] if score else None,
                    "missing": [],
                }
            )
    corners = {side: _cornered(boxes) for side, boxes in sides.items()}
    for one in sides:
        for other in sides:
            for i in unmatched(corners[one], corners[other]) if one != other else ():
                found[one][i]["missing"].append(other)
    return found


def _named(number: int, classes: Sequence[str]) -> str:
    return classes[number] if 0 <= number < len(classes) else str(number)


def _cornered(boxes: Sequence[Sequence[float]]) -> list[tuple[float, ...]]:
    return [(number, top, left, top + height, left + width) for number, left, top, width, height, *_ in boxes]


def _shares(box: Sequence[float], rows: int, columns: int) -> list[float]:
    """Left, top, width and height in parts of the image."""
    left, top, width, height = box
    x = np.clip(np.array([left, left + width]) / columns, 0, 1)
    y = np.clip(np.array([top, top + height]) / rows, 0, 1)
    return [round(float(value), 5) for value in (x[0], y[0], x[1] - x[0], y[1] - y[0])]


def _masks(
    task: Segmentation,
    row: Row,
    sample: Sample,
    placement: Placement,
    small: tuple[int, int],
    classes: Sequence[str],
) -> dict[str, Any]:
    grids = {name: pixels(answer) for name, answer in row.answers.items()}
    shown = {name: placement.spread(grid, small) for name, grid in grids.items()}
    if row.label is not None and sample.truth is not None:
        mask = task.numbers(np.asarray(sample.truth()))
        shown = {LABEL: Placement.whole(*mask.shape).spread(mask, small), **shown}
        (first, *_) = grids.values()
        grids[LABEL] = placement.nearest(mask, first.shape, -1)
    there = sorted({int(number) for plane in shown.values() for number in np.unique(plane) if number >= 0})
    colours = _colours(there)
    return {
        "masks": {name: _painted(plane, colours) for name, plane in shown.items()},
        "differ": [
            {"pair": [one, two], "mask": _differing(grids[one], grids[two], placement, small)}
            for one, two in combinations(sorted(grids), 2)
            if grids[one].shape == grids[two].shape
        ],
        "legend": [{"name": _named(number, classes), "colour": f"#{colours[number]}"} for number in there],
    }


def _colours(numbers: Sequence[int]) -> dict[int, str]:
    """A colour for every class: its own, or the next that is free where another one has it."""
    found: dict[int, str] = {}
    for number in numbers:
        order = [_COLOURS[(number - 1 + i) % len(_COLOURS)] for i in range(len(_COLOURS))]
        free = [colour for colour in order if colour not in found.values()]
        found[number] = _SHADOW if number == 0 else (free or order)[0]
    return found


def _painted(plane: np.ndarray, colours: Mapping[int, str]) -> str:
    image = np.zeros((*plane.shape, 4), np.uint8)
    for number, colour in colours.items():
        image[plane == number] = [*bytes.fromhex(colour), _OPACITY.get(colour, 175)]
    return layer(image)


def _differing(one: np.ndarray, two: np.ndarray, placement: Placement, small: tuple[int, int]) -> str:
    """Pixels that differ; each stays to be seen, however small the thumbnail is."""
    differ = (one != two) & (one >= 0) & (two >= 0)
    image = np.zeros((*small, 4), np.uint8)
    image[placement.spread(np.zeros(one.shape, np.int64), small) == 0] = [*bytes.fromhex(_SHADOW), 150]
    rows, columns = placement.points(np.argwhere(differ).T, one.shape, small)
    for down in (0, 1):
        for right in (0, 1):
            image[(rows + down).clip(0, small[0] - 1), (columns + right).clip(0, small[1] - 1)] = [
                *bytes.fromhex(_DIFFERENT),
                _OPACITY[_DIFFERENT],
            ]
    return layer(image)
