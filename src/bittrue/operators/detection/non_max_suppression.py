"""non_max_suppression: boxes by descending score, without those that overlap a better one too much.

`results` are `indices` of one image's boxes in a tensor of fixed size, with their number; with a sixth input, sigma,
scores decay by how much they overlap, and are results, too. Or they are `triples` of image, class and box for all
images and classes (`best_boxes.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arithmetic import elementary
from ...arithmetic.boxes import intersection_over_union, sorted_corners
from ...arithmetic.heap import pop, push
from ...errors import RunError
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded
from ..core.stopping import check_stop
from . import best_boxes

Candidate = tuple[np.float32, int, int]


def _room(call: Call) -> Shape:
    boxes, scores = call.input(0, "boxes"), call.input(1, "scores")
    call.rank(boxes, 2)
    if boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise call.invalid(
            "BT-NMS", f"boxes must be [n, 4] and scores [n], found {list(boxes.shape)} and {list(scores.shape)}"
        )
    for position in range(2, len(call.inputs)):
        call.rank(call.input(position), 0)
    (room,) = call.integers(2, "number of results")
    return bounded(call, (room,))


def infer(call: Call) -> list[Shape]:
    """Room for the indices, for their scores where there is a sigma, and their number."""
    if call.attribute("results") == "triples":
        return best_boxes.infer(call)
    call.expect((5, 6), len(call.inputs) - 3)
    room = _room(call)
    return [*(room for _ in call.inputs[4:]), ()]


def lower(call: Call) -> Lowered:
    """Number of results, or how boxes are given."""
    if call.attribute("results") == "triples":
        return best_boxes.lower(call)
    boxes = call.input(0).shape[0]
    return Lowered(parameters={"room": call.output.size}, work=boxes * call.output.size, scratch=256 * boxes)


def _worse(first: Candidate, second: Candidate) -> bool:
    return bool(first[0] < second[0])


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Indices, their scores (with a sigma) and their number; places beyond the number are 0. Or triples."""
    if "centred" in step.parameters:
        return best_boxes.reference(step, inputs)
    boxes, scores = sorted_corners(inputs[0]), inputs[1]
    overlap_limit, score_limit = inputs[3].reshape(()), inputs[4].reshape(())
    sigma = np.float32(inputs[5].reshape(())) if len(inputs) > 5 else np.float32(0)
    if sigma < 0:
        raise RunError("BT-NMS-SIGMA", f"sigma must be at least 0, found {float(sigma)!r}")
    soft = bool(sigma > 0)
    factor = np.float32(-0.5 / float(sigma)) if soft else np.float32(0)
    heap: list[Candidate] = []
    for start in np.flatnonzero(scores > score_limit).tolist():
        push(heap, (scores[start], start, 0), _worse)
    most = min(len(heap), step["room"])
    best = np.empty((most, 4), np.float32)
    chosen: list[int] = []
    values: list[np.float32] = []
    while heap and len(chosen) < most:
        check_stop()
        before, index, seen = pop(heap, _worse)
        score, dropped = before, False
        # Latest first; those that were met in an earlier turn are passed over.
        overlaps = intersection_over_union(boxes[index], best[seen : len(chosen)])[::-1]
        if not soft:
            # Nothing but a large overlap ends the comparison: the score stays above its limit.
            dropped = bool((overlaps >= overlap_limit).any())
        for overlap in overlaps if soft else ():
            if overlap >= overlap_limit:
                dropped = True
                break
            score = _decayed(score, factor, overlap)
            if score <= score_limit:
                break
        if dropped:
            continue
        seen = len(chosen)
        if score == before:
            best[seen] = boxes[index]
            chosen.append(index)
            values.append(score)
        if score > score_limit:
            push(heap, (score, index, seen), _worse)
    return _results(step["room"], chosen, values if len(inputs) > 5 else None)


def _decayed(score: np.float32, factor: np.float32, overlap: np.float32) -> np.float32:
    """score * exp(factor * overlap^2) in binary32; the C library's exp is not the nearest number everywhere."""
    with np.errstate(all="ignore"):
        return np.float32(score * elementary.exp(np.array([factor * overlap * overlap], np.float32))[0])


def _results(room: int, chosen: list[int], values: list[np.float32] | None) -> list[np.ndarray]:
    indices = np.zeros(room, np.int32)
    indices[: len(chosen)] = chosen
    count = np.array(len(chosen), np.int32)
    if values is None:
        return [indices, count]
    scores = np.zeros(room, np.float32)
    scores[: len(values)] = values
    return [indices, scores, count]


OPERATOR = Operator(
    "non_max_suppression",
    (),
    infer,
    lower,
    reference,
    "the best boxes; others are dropped, or their scores decay",
    room=best_boxes.room,
)
