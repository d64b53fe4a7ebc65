"""detection_postprocess against the real runtime."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import assert_same
from support.flexbuffer import packed
from support.native import check_native
from support.oracle import oracle
from support.strategies import seeds

SOURCE = "CUSTOM:TFLite_Detection_PostProcess"
OPTIONS: dict[str, Any] = {
    "max_detections": 5,
    "max_classes_per_detection": 1,
    "detections_per_class": 4,
    "use_regular_nms": False,
    "nms_score_threshold": 0.1,
    "nms_iou_threshold": 0.5,
    "num_classes": 3,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}


def model(inputs: list[T], options: dict[str, Any] | bytes) -> bytes:
    content = options if isinstance(options, bytes) else packed(options)
    return single(SOURCE, content, inputs, [T("f32", ()), T("f32", ()), T("f32", ()), T("f32", ())])


def check_detections(content: bytes, feed: list[np.ndarray]) -> str:
    """Bytes of what the runtime writes; the rest of its outputs is whatever the memory held."""
    try:
        loaded = bittrue.load(content)
        graph = loaded.graph
        session = loaded.prepare(executor="reference")
        values = session.trace(*feed)
    except bittrue.BittrueError:
        graph = bittrue.load(content).graph
        assert not oracle().run(content, [feed], [graph.outputs[0]]).ran
        return "refused"
    check_native(session, [feed], values)
    answer = oracle().run(content, [feed], list(graph.outputs))
    assert answer.ran, answer.refused
    theirs = [answer.values[i] for i in graph.outputs]
    ours = [values[graph.tensors[i].name] for i in graph.outputs]
    assert_same("count", ours[3], theirs[3])
    attributes = graph.nodes[0].attributes
    count = int(ours[3][0])
    if attributes["use_regular_nms"]:
        written = np.arange(int(attributes["max_detections"]))
    else:
        room = int(attributes["max_classes_per_detection"])
        places = np.arange(room * count).reshape(count, room)
        written = places[:, : int(attributes["num_classes"])].reshape(-1)
    for name, one, two in zip(("boxes", "classes", "scores"), ours, theirs, strict=False):
        assert one.shape == two.shape
        assert_same(name, one[0, written], two[0, written])
        rest = np.delete(one, written, axis=1)
        assert not rest.any()
    return "equal"


@st.composite
def cases(draw: st.DrawFn) -> tuple[bytes, list[np.ndarray]]:
    boxes, classes = draw(st.integers(1, 40)), draw(st.integers(1, 6))
    background = draw(st.integers(0, 1))
    code = draw(st.sampled_from([4, 4, 4, 7]))
    regular = draw(st.booleans())
    room = draw(st.integers(1, 4)) if not regular else 1
    scale = st.sampled_from([1.0, 10.0, 5.0, 0.3])
    options = {
        "max_detections": draw(st.integers(1, 12)),
        "max_classes_per_detection": room,
        "detections_per_class": draw(st.integers(1, 12)),
        "use_regular_nms": regular,
        "nms_score_threshold": draw(st.sampled_from([0.0, 0.1, 0.5, 1e-8, -1e9, 1])),
        "nms_iou_threshold": draw(st.sampled_from([0.5, 0.6, 0.05, 1.0, 1])),
        "num_classes": classes,
        **{name: draw(scale) for name in ("y_scale", "x_scale", "h_scale", "w_scale")},
    }
    for name in ("detections_per_class", "use_regular_nms"):
        if draw(st.integers(0, 4)) == 0 and not regular:
            del options[name]
    if draw(st.booleans()):
        options["_output_quantized"] = True
    rng = np.random.default_rng(draw(seeds))
    quantized, quantized_scores = draw(st.booleans()), draw(st.booleans())
    if quantized:
        one = T(
            "u8",
            (1, boxes, code),
            float(np.float32(draw(st.sampled_from([0.06, 0.5, 1.7])))),
            draw(st.integers(0, 255)),
        )
        anchors = T("u8", (boxes, 4), float(np.float32(0.0043)), draw(st.integers(0, 1)))
        feed = [rng.integers(0, 256, (1, boxes, code), np.uint8)]
        corners = rng.integers(1, 256, (boxes, 4), np.uint8)
    else:
        one, anchors = T("f32", (1, boxes, code)), T("f32", (boxes, 4))
        feed = [(rng.standard_normal((1, boxes, code)) * draw(st.sampled_from([0.5, 4]))).astype(np.float32)]
        corners = rng.random((boxes, 4)).astype(np.float32)
    columns = classes + background
    if quantized_scores:
        two = T("u8", (1, boxes, columns), 1 / 256, draw(st.sampled_from([0, 0, 3])))
        # Few values, so that ties are common.
        feed.append((rng.integers(0, draw(st.sampled_from([3, 256])), (1, boxes, columns)) * 1).astype(np.uint8))
    else:
        two = T("f32", (1, boxes, columns))
        scores = rng.random((1, boxes, columns)).astype(np.float32)
        if draw(st.booleans()):
            scores = np.round(scores * 4) / np.float32(4)
        if draw(st.integers(0, 5)) == 0:
            # Among NaNs, the vector code that looks for one best class of 4 or more finds any (see the row's limit).
            lanes = not regular and min(room, classes) == 1 and classes >= 4
            odd = draw(st.sampled_from([np.inf, -np.inf, -0.0] if lanes else [np.nan, np.inf, -np.inf, -0.0]))
            scores[rng.random(scores.shape) < 0.3] = odd
        feed.append(scores)
    constant = draw(st.booleans())
    if constant:
        anchors.data = corners
    else:
        feed.append(corners)
    return model([one, two, anchors], options), feed


@given(cases())
def test_detections(case: tuple[bytes, list[np.ndarray]]) -> None:
    assert check_detections(*case) == "equal"


def head(
    boxes: int = 3, columns: int = 4, code: int = 4, anchors: int = 3, **changes: Any
) -> tuple[bytes, list[np.ndarray]]:
    options = {name: value for name, value in {**OPTIONS, **changes}.items() if value != "absent"}
    rng = np.random.default_rng(7)
    inputs = [T("f32", (1, boxes, code)), T("f32", (1, boxes, columns)), T("f32", (anchors, 4))]
    return model(inputs, options), [rng.random(t.shape).astype(np.float32) for t in inputs]


def test_literal() -> None:
    content, _ = head(max_detections=2)
    # Two boxes far apart and one on top of the first with a lower score.
    codes = np.zeros((1, 3, 4), np.float32)
    anchors = np.float32([[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.25], [4, 4, 1, 1]])
    scores = np.float32([[[0, 0, 0.75, 0], [0, 0, 0.5, 0.5], [0, 0.25, 0, 0]]])
    values = list(bittrue.load(content).prepare().run(codes, scores, anchors).values())
    # The overlap of the first two is exactly one half, which is not too much.
    assert values[0].tolist() == [[[0.25, 0.25, 0.75, 0.75], [0.25, 0.375, 0.75, 0.625]]]
    assert [v.tolist() for v in values[1:]] == [[[1, 1]], [[0.75, 0.5]], [2]]


def test_classes_beside_scores_that_are_none() -> None:
    """Which ones are the best follows from the heap, wherever the NaNs lie."""
    content, feed = head(columns=5, num_classes=4, max_classes_per_detection=2, max_detections=3)
    rng = np.random.default_rng(3)
    for _ in range(10):
        feed[1] = rng.random((1, 3, 5)).astype(np.float32)
        feed[1][0, np.arange(3), rng.integers(1, 5, 3)] = np.nan
        assert check_detections(content, feed) == "equal"


def test_anchors_of_negative_size_are_an_error_of_the_run() -> None:
    content, feed = head()
    feed[2][1, 2] = -1
    with pytest.raises(bittrue.RunError, match="BT-DETECTION-BOX"):
        bittrue.load(content).prepare().run(*feed)
    assert check_detections(content, feed) == "refused"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"num_classes": 6}, "BT-DETECTION-SHAPE"),
        ({"num_classes": 2}, "BT-DETECTION-SHAPE"),
        ({"code": 3}, "BT-DETECTION-SHAPE"),
        ({"nms_iou_threshold": 0.0}, "BT-DETECTION-OPTION"),
        ({"nms_iou_threshold": 1.5}, "BT-DETECTION-OPTION"),
        ({"nms_iou_threshold": "absent"}, "BT-DETECTION-OPTION"),
        ({"max_detections": -1}, "BT-DETECTION-OPTION"),
        ({"max_classes_per_detection": "absent"}, "BT-DETECTION-OPTION"),
        ({"use_regular_nms": True, "detections_per_class": 0}, "BT-DETECTION-OPTION"),
    ],
)
def test_what_the_runtime_refuses(changes: dict[str, Any], code: str) -> None:
    content, feed = head(**changes)
    with pytest.raises(bittrue.InvalidModelError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code
    assert check_detections(content, feed) == "refused"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        # The runtime reads anchors beyond their end.
        ({"anchors": 2}, "BT-DETECTION-SHAPE"),
        ({"num_classes": 0, "columns": 1}, "BT-DETECTION-OPTION"),
        ({"y_scale": "absent"}, "BT-DETECTION-OPTION"),
        ({"w_scale": float("inf")}, "BT-DETECTION-OPTION"),
        ({"max_detections": 2**40}, "BT-MODEL-OPTIONS"),
        ({"num_classes": float("nan")}, "BT-MODEL-OPTIONS"),
        ({"num_classes": "3"}, "BT-FLEXBUFFER"),
    ],
)
def test_what_has_no_meaning(changes: dict[str, Any], code: str) -> None:
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(head(**changes)[0]).prepare()
    assert caught.value.code == code


def test_numbers_are_converted() -> None:
    content, feed = head(
        max_detections=4.75, num_classes=4.0, use_regular_nms=1, x_scale=10, h_scale=None, nms_score_threshold=False
    )
    with pytest.raises(bittrue.InvalidModelError, match="h_scale"):
        bittrue.load(content).prepare()
    content, feed = head(max_detections=4.75, num_classes=4.0, use_regular_nms=1, x_scale=10, nms_score_threshold=False)
    assert check_detections(content, feed) == "equal"


@pytest.mark.parametrize("options", [b"", b"\0\0\1", packed(OPTIONS)[:-3], packed(OPTIONS)[1:], b"\xff" * 40])
def test_damaged_options(options: bytes) -> None:
    inputs = [T("f32", (1, 3, 4)), T("f32", (1, 3, 4)), T("f32", (3, 4))]
    with pytest.raises(bittrue.BittrueError):
        bittrue.load(model(inputs, options)).prepare()


@given(st.data())
def test_any_bytes_as_options(data: st.DataObject) -> None:
    content = bytearray(packed(OPTIONS))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    inputs = [T("f32", (1, 3, 4)), T("f32", (1, 3, 4)), T("f32", (3, 4))]
    with contextlib.suppress(bittrue.BittrueError):
        bittrue.load(model(inputs, bytes(content)))
