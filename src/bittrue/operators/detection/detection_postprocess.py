"""detection_postprocess: boxes decoded from anchors, then the best of them without those that overlap too much."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...arithmetic.boxes import intersection_over_union
from ...arithmetic.heap import partial_sort
from ...errors import RunError
from ..core.base import Call, Lowered, Operand, Operator, Shape, Step
from ..core.indexing import bounded, parameters_or_zero
from ..core.stopping import check_stop

_SCALES = ("y_scale", "x_scale", "h_scale", "w_scale")


def _count(call: Call, name: str, low: int) -> int:
    value = int(call.attribute(name))
    if value < low:
        raise call.invalid("BT-DETECTION-OPTION", f"option {name} must be at least {low}, found {value}")
    return value


def infer(call: Call) -> list[Shape]:
    """Encodings [1, n, 4 or more], scores [1, n, classes (+ background)], anchors [n, 4] -> room for all detections."""
    call.expect(3, 4)
    encodings, scores, anchors = call.input(0, "box encodings"), call.input(1, "scores"), call.input(2, "anchors")
    for operand, rank in ((encodings, 3), (scores, 3), (anchors, 2)):
        call.rank(operand, rank)
    boxes, classes = encodings.shape[1], _count(call, "num_classes", 1)
    if encodings.shape[0] != 1 or encodings.shape[2] < 4:
        raise call.invalid(
            "BT-DETECTION-SHAPE", f"box encodings must be [1, boxes, 4 or more], found {list(encodings.shape)}"
        )
    if scores.shape[:2] != (1, boxes) or scores.shape[2] - classes not in (0, 1):
        raise call.invalid(
            "BT-DETECTION-SHAPE",
            f"scores must be [1, {boxes}, {classes} or {classes + 1}], found {list(scores.shape)}",
            "the last dimension is option num_classes, or one more for the background",
        )
    if anchors.size < 4 * boxes:
        raise call.invalid("BT-DETECTION-SHAPE", f"anchors must be [{boxes}, 4], found {list(anchors.shape)}")
    room = _count(call, "max_detections", 1) * _count(call, "max_classes_per_detection", 1)
    return [bounded(call, shape) for shape in ((1, room, 4), (1, room), (1, room), (1,))]


def lower(call: Call) -> Lowered:
    """Options, and scale and zero point of inputs that are quantized."""
    most = int(call.attribute("max_detections"))
    regular = bool(call.attribute("use_regular_nms"))
    overlap = float(np.float32(call.attribute("nms_iou_threshold")))
    if not 0 < overlap <= 1:
        raise call.invalid("BT-DETECTION-OPTION", f"option nms_iou_threshold must lie in (0, 1], found {overlap!r}")
    per_class = min(_count(call, "detections_per_class", 1 if regular else -(2**31)), most)
    scales = [float(np.float32(call.attribute(name))) for name in _SCALES]
    if not all(math.isfinite(scale) and scale for scale in scales):
        raise call.invalid(
            "BT-DETECTION-OPTION", f"options {', '.join(_SCALES)} must be finite and not 0, found {scales}"
        )
    boxes, columns = call.input(1).shape[1:]
    parameters: dict[str, bool | int | float] = {
        "regular": regular,
        "max_detections": most,
        "classes_per_detection": int(call.attribute("max_classes_per_detection")),
        "detections_per_class": per_class,
        "classes": int(call.attribute("num_classes")),
        "score_threshold": float(np.float32(call.attribute("nms_score_threshold"))),
        "overlap_threshold": overlap,
        **dict(zip(_SCALES, scales, strict=True)),
    }
    for position, role in enumerate(("encoding", "score", "anchor")):
        scale, zero_point = _parameters(call.input(position))
        parameters |= {f"{role}_scale": scale, f"{role}_zero_point": zero_point}
    return Lowered(parameters=parameters, work=boxes * (columns + most), scratch=8 * boxes * (columns + 24))


def _parameters(operand: Operand) -> tuple[float, int]:
    return parameters_or_zero(operand) if operand.type.is_integer else (1.0, 0)


def _real(step: Step, role: str, stored: np.ndarray) -> np.ndarray:
    """(q - zero point) * scale, rounded once."""
    if stored.dtype == np.float32:
        return stored
    centred = stored.astype(np.float32) - np.float32(step[f"{role}_zero_point"])
    return centred * np.float32(step[f"{role}_scale"])


def _exponential(x: np.ndarray) -> np.ndarray:
    """exp in binary64 by the C library, as the runtime has it; the binary32 results hide its last bits."""
    flat = [math.exp(v) if v < 709.0 else float(np.exp(v)) for v in x.reshape(-1).tolist()]
    return np.array(flat, np.float64).reshape(x.shape)


def _decode(step: Step, encodings: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Boxes [n, 4] (low y, low x, high y, high x): binary64 up to centre and half size, then binary32."""
    code, anchor = encodings[:, :4].astype(np.float64), anchors.astype(np.float64)
    scales = np.array([step[name] for name in _SCALES])
    with np.errstate(all="ignore"):
        moved = code / scales
        centre = (moved[:, :2] * anchor[:, 2:] + anchor[:, :2]).astype(np.float32)
        half = (0.5 * _exponential(moved[:, 2:]) * anchor[:, 2:]).astype(np.float32)
        return np.concatenate([centre - half, centre + half], axis=1)


def _suppress(step: Step, boxes: np.ndarray, scores: np.ndarray, most: int) -> list[int]:
    """Greedy choice: the best score (ties: the first), then without all boxes that overlap it too much."""
    kept = np.flatnonzero(scores >= np.float32(step["score_threshold"]))
    left = kept[np.argsort(-scores[kept], kind="stable")]
    chosen: list[int] = []
    while left.size and len(chosen) < most:
        check_stop()
        best, left = int(left[0]), left[1:]
        chosen.append(best)
        overlap = intersection_over_union(boxes[best], boxes[left])
        left = left[~(overlap > np.float32(step["overlap_threshold"]))]
    return chosen


def _best_classes(scores: np.ndarray, count: int) -> np.ndarray:
    """The columns of the `count` largest scores per row, in order."""
    columns = scores.shape[1]
    if count == 1:
        # Numbers are beyond NaN; only NaN gives column 0.
        ordered = np.where(np.isnan(scores), np.float32(-np.inf), scores)
        best = ordered.argmax(axis=1)
        hidden = np.isnan(np.take_along_axis(scores, best[:, None], axis=1)[:, 0])
        return np.where(hidden, np.argmax(~np.isnan(scores), axis=1), best)[:, None]
    order = np.argsort(-scores, axis=1, kind="stable")[:, : count + 1]
    values = np.take_along_axis(scores, order, axis=1)
    result = order[:, :count].copy()
    # Where scores are equal or none, a heap decides.
    unclear = ~(values[:, :-1] > values[:, 1:]).all(axis=1) | np.isnan(scores).any(axis=1)
    for row in np.flatnonzero(unclear):
        result[row] = partial_sort(range(columns), count, _higher(scores[row].tolist()))
    return result


def _higher(line: list[float]) -> Callable[[int, int], bool]:
    return lambda first, second: line[first] > line[second]


def _fast(step: Step, boxes: np.ndarray, scores: np.ndarray, out: list[np.ndarray]) -> int:
    """One suppression with each box's best score; every chosen box is listed with its best classes."""
    room = step["classes_per_detection"]
    best = _best_classes(scores, min(room, step["classes"]))
    chosen = _suppress(step, boxes, np.take_along_axis(scores, best[:, :1], axis=1)[:, 0], step["max_detections"])
    for place, box in enumerate(chosen):
        columns = best[box]
        at = slice(room * place, room * place + columns.size)
        out[0][0, at], out[1][0, at], out[2][0, at] = boxes[box], columns, scores[box, columns]
    return len(chosen)


def _regular(step: Step, boxes: np.ndarray, scores: np.ndarray, out: list[np.ndarray]) -> int:
    """One suppression per class; the best of all classes, ties by class, then by order within it."""
    found = [
        (-float(scores[box, column]), column, box)
        for column in range(step["classes"])
        for box in _suppress(step, boxes, scores[:, column], step["detections_per_class"])
    ]
    found.sort(key=lambda entry: entry[0])
    del found[step["max_detections"] :]
    for place, (_, column, box) in enumerate(found):
        out[0][0, place], out[1][0, place], out[2][0, place] = boxes[box], column, scores[box, column]
    return len(found)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Boxes, classes, scores, count. Places beyond the count are 0."""
    encodings = _real(step, "encoding", inputs[0])[0]
    count = encodings.shape[0]
    anchors = _real(step, "anchor", inputs[2]).reshape(-1)[: 4 * count].reshape(count, 4)
    scores = _real(step, "score", inputs[1])[0]
    boxes = _decode(step, encodings, anchors)
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero((boxes[:, 0] > boxes[:, 2]) | (boxes[:, 1] > boxes[:, 3]))
    if bad.size:
        raise RunError(
            "BT-DETECTION-BOX",
            f"box {int(bad[0])} has a negative size: {boxes[bad[0]].tolist()}",
            advice="anchors need heights and widths of at least 0",
        )
    room = step["max_detections"] * step["classes_per_detection"]
    out = [np.zeros(shape, np.float32) for shape in ((1, room, 4), (1, room), (1, room), (1,))]
    choose = _regular if step["regular"] else _fast
    # A column ahead of the classes is the background's.
    out[3][0] = choose(step, boxes, scores[:, scores.shape[1] - step["classes"] :], out)
    return out


OPERATOR = Operator(
    "detection_postprocess", (), infer, lower, reference, "boxes decoded from anchors and chosen by score and overlap"
)
