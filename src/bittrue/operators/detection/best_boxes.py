"""Per image and class, boxes by falling score without those that overlap a chosen one too much.

Inputs: boxes [images, n, 4], scores [images, classes, n], results per class, largest overlap, smallest score.
Output: [how many, (image, class, box)]. A box is two opposite corners (y, x, y, x), or `centred` x, y, width, height.
Steps with `room` give so many rows per image and class, and whether each is a result: what a pass makes of others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arithmetic import heap
from ...errors import RunError
from ..core.base import Call, Lowered, Shape, Step
from ..core.stopping import check_stop

F32 = np.float32
# Boxes of an image up to which every pair is looked at, once for all classes.
FEW = 128
PAIR_BYTES = 48


def infer(call: Call) -> list[Shape]:
    """[how many, 3]; how many is in the values."""
    call.expect((2, 5))
    boxes, scores = call.input(0, "boxes"), call.input(1, "scores")
    call.rank(boxes, 3)
    call.rank(scores, 3)
    if boxes.shape[2] != 4 or scores.shape[0] != boxes.shape[0] or scores.shape[2] != boxes.shape[1]:
        raise call.invalid(
            "BT-NMS", f"boxes {list(boxes.shape)} must be [p, n, 4], scores {list(scores.shape)} [p, classes, n]"
        )
    for position in range(2, 5):
        if call.has(position) and not call.input(position).size:
            raise call.invalid(
                "BT-NMS", f"input {position} must hold a number, found {list(call.input(position).shape)}"
            )
    values = [operand.value for operand in call.inputs if operand is not None]
    if all(value is not None for value in values):
        found = _chosen(
            call.place, [None if operand is None else operand.value for operand in call.inputs], _centred(call)
        )
        return [(len(found), 3)]
    return [(-1, 3)]


def _centred(call: Call) -> bool:
    return bool(call.attribute("centred"))


def lower(call: Call) -> Lowered:
    """How boxes are given."""
    boxes = call.input(0)
    pairs = boxes.shape[1] ** 2 if boxes.shape[1] <= FEW else 0
    scratch = 64 * (boxes.size + call.input(1).size) + PAIR_BYTES * pairs
    return Lowered({"centred": _centred(call)}, work=call.input(1).size, scratch=scratch)


def room(step: Step, shapes: Sequence[Shape | None], values: Sequence[np.ndarray | None]) -> tuple[int, Shape] | None:
    """Rows of an image and class, and the shape of all of them, where the number of results per class is known."""
    wanted, scores = _number(values, 2), shapes[1]
    if "centred" not in step.parameters or wanted is None or scores is None:
        return None
    images, classes, boxes = scores
    most = min(int(wanted), boxes)
    return (most, (images * classes * most, 3)) if images * classes > 0 and most > 0 else None


def _corners(boxes: np.ndarray, centred: bool) -> np.ndarray:
    """[n, (low y, low x, high y, high x)]."""
    if not centred:
        return np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], 1)
    centre, half = boxes[:, 1::-1], boxes[:, :1:-1] / F32(2)
    return np.concatenate([centre - half, centre + half], 1)


def _overlapping(box: np.ndarray, others: np.ndarray, limit: np.float32) -> np.ndarray:
    """Whether intersection over union exceeds the limit, of corners [4, ...] that broadcast.

    Boxes without area overlap nothing.
    """
    inner = np.maximum(box[:2], others[:2]), np.minimum(box[2:], others[2:])
    height, width = inner[1] - inner[0]
    shared = width * height
    area = (box[3] - box[1]) * (box[2] - box[0])
    areas = (others[3] - others[1]) * (others[2] - others[0])
    union = area + areas - shared
    valid = (inner[1] > inner[0]).all(0) & (shared > 0) & (area > 0) & (areas > 0) & (union > 0)
    return np.asarray(valid & (shared / np.where(valid, union, F32(1)) > limit))


def _mark_overlapping(box: np.ndarray, others: np.ndarray, limit: np.float32, marks: np.ndarray) -> None:
    """Mark those of the others, [4, n], that overlap the box too much."""
    # Most boxes do not touch.
    near = (others[2] > box[0]) & (others[0] < box[2])
    near &= others[3] > box[1]
    near &= others[1] < box[3]
    (near,) = near.nonzero()
    if near.size:
        marks[near] |= _overlapping(box[:, None], others[:, near], limit)


def _best(corners: np.ndarray, order: np.ndarray, most: int, limit: np.float32) -> list[int]:
    """At most so many boxes in this order, without those that overlap one before."""
    chosen: list[int] = []
    sorted_corners = np.ascontiguousarray(corners[order].T)
    dropped = np.zeros(order.size, bool)
    for place, index in enumerate(order.tolist()):
        check_stop()
        if len(chosen) >= most:
            break
        if not dropped[place]:
            chosen.append(index)
            _mark_overlapping(sorted_corners[:, place], sorted_corners[:, place + 1 :], limit, dropped[place + 1 :])
    return chosen


def _best_of_few(pairs: np.ndarray, order: np.ndarray, most: int) -> list[int]:
    """The same, given which of all pairs of boxes overlap."""
    chosen: list[int] = []
    dropped = np.zeros(len(pairs), bool)
    check_stop()
    for index in order.tolist():
        if len(chosen) >= most:
            break
        if not dropped[index]:
            chosen.append(index)
            dropped |= pairs[index]
    return chosen


def _by_queue(row: np.ndarray) -> np.ndarray:
    """Places by falling score, equal ones from the front; NaN, which is beyond nothing, where a heap leaves it."""
    if not np.isnan(row).any():
        return np.argsort(-row, kind="stable")

    def before(a: tuple[float, int], b: tuple[float, int]) -> bool:
        return a[0] < b[0] or (a[0] == b[0] and a[1] > b[1])

    places = heap.partial_sort([(score, place) for place, score in enumerate(row.tolist())], row.size, before)
    return np.array([place for _, place in places[::-1]], np.int64)


def _number(inputs: Sequence[np.ndarray | None], position: int) -> np.ndarray | None:
    """A limit: the first number of its tensor."""
    value = inputs[position] if position < len(inputs) else None
    return None if value is None else value.reshape(-1)[0]


def _chosen(place: str, inputs: Sequence[np.ndarray | None], centred: bool) -> np.ndarray:
    boxes, scores = inputs[0], inputs[1]
    assert boxes is not None
    assert scores is not None
    wanted, overlap, smallest = (_number(inputs, position) for position in (2, 3, 4))
    limit = F32(0 if overlap is None else overlap)
    if not 0 <= limit <= 1:
        raise RunError("BT-NMS", f"the largest overlap must lie in [0, 1], found {float(limit)!r}", place=place)
    most = 0 if wanted is None else int(wanted)
    found: list[tuple[int, int, int]] = []
    with np.errstate(all="ignore"):
        for image in range(scores.shape[0] if most > 0 else 0):
            corners = _corners(boxes[image], centred)
            sides = corners.T
            pairs = _overlapping(sides[:, :, None], sides[:, None], limit) if len(corners) <= FEW else None
            for group in range(scores.shape[1]):
                row = scores[image, group]
                order = np.argsort(-row, kind="stable") if smallest is not None else _by_queue(row)
                if smallest is not None:
                    order = order[row[order] > smallest]
                best = _best(corners, order, most, limit) if pairs is None else _best_of_few(pairs, order, most)
                found += [(image, group, index) for index in best]
    return np.array(found, np.int64).reshape(-1, 3)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Equal scores by position; every operation on boxes is rounded to binary32."""
    chosen = _chosen(step.place, inputs, step["centred"])
    if "room" not in step.parameters:
        return [chosen]
    images, classes, _ = inputs[1].shape
    rows, kept = np.zeros((images, classes, step["room"], 3), np.int64), np.zeros((images, classes, step["room"]), bool)
    for image, group, box in chosen.tolist():
        place = int(kept[image, group].sum())
        rows[image, group, place], kept[image, group, place] = (image, group, box), True
    return [rows.reshape(-1, 3), kept.reshape(-1)]
