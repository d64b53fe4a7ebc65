"""Files of one operator under `tvm-qnn`: what a running TVM's frontend for .tflite gave for them (docs/facts/tvm_qnn.md
13), in both executors and as calls.

Stems: sum, arg_max, space_to_batch, batch_to_space, pad, conv, fully_connected, resize_linear, log_softmax, matmul.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue import qnn
from bittrue.conformance.suite import find_suite
from bittrue.conformance.suite.tflite import Operand, one_operator
from bittrue.errors import BittrueError

X = np.array([[[-128, -128, 5], [-128, 9, 127]], [[-128, -128, -128], [-1, -128, 0]]], np.int8)
BLOCKS = [
    Operand("s32", (2,), data=np.array([2, 2], np.int32)),
    Operand("s32", (2, 2), data=np.array([[1, 0], [0, 0]], np.int32)),
]


def summed(scale: float, point: int) -> bytes:
    axes = Operand("s32", (1,), data=np.array([2], np.int32))
    given = [Operand("s8", X.shape, 0.5, 7), axes]
    return one_operator("SUM", given, [Operand("s8", (2, 2), scale, point)], {"keep_dims": False}, 2)


def placed(axis: int, shape: tuple[int, ...]) -> bytes:
    where = Operand("s32", (), data=np.array(axis, np.int32))
    given = [Operand("s8", X.shape, 0.5, 7), where]
    return one_operator("ARG_MAX", given, [Operand("s32", shape)], {"output_type": "INT32"}, 2)


def padded() -> bytes:
    widths = Operand("s32", (3, 2), data=np.array([[0, 0], [0, 0], [1, 0]], np.int32))
    value = Operand("s8", (1,), 0.5, 7, data=np.array([-3], np.int8))
    given = [Operand("s8", X.shape, 0.5, 7), widths, value]
    return one_operator("PADV2", given, [Operand("s8", (2, 2, 4), 0.5, 7)], {}, 2)


def blocks(operator: str, shape: tuple[int, ...], result: tuple[int, ...]) -> bytes:
    return one_operator(operator, [Operand("s8", shape, 0.5, 7), *BLOCKS], [Operand("s8", result, 0.5, 7)], {}, 2)


def function(operator: str, dtype: str, scales: tuple[float, float], points: tuple[int, int], **options: Any) -> bytes:
    sides = [Operand(dtype, (2, 4), scale, point) for scale, point in zip(scales, points, strict=True)]
    return one_operator(operator, sides[:1], sides[1:], options or None, 1)


def resized() -> bytes:
    size = Operand("s32", (2,), data=np.array([3, 3], np.int32))
    given = [Operand("s8", (1, 2, 2, 1), 0.5, 7), size]
    options = {"half_pixel_centers": True}
    return one_operator("RESIZE_BILINEAR", given, [Operand("s8", (1, 3, 3, 1), 0.25, -3)], options, 3)


def averaged() -> bytes:
    options = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "filter_width": 2, "filter_height": 2}
    return one_operator(
        "AVERAGE_POOL_2D", [Operand("s16", (1, 2, 2, 1), 0.5)], [Operand("s16", (1, 2, 2, 1), 0.5)], options, 1
    )


def multiplied() -> bytes:
    """Scales and zero points are not read."""
    given = [Operand("s8", (2, 1, 2), 0.25, -7), Operand("s8", (1, 2, 2), 0.5, 9)]
    return one_operator("BATCH_MATMUL", given, [Operand("s8", (2, 1, 2), 2.0, 30)], {}, 2)


def gathered() -> bytes:
    """Batches are not read."""
    places = Operand("s32", (2, 2), data=np.array([[0, 2], [1, 1]], np.int32))
    options = {"axis": 1, "batch_dims": 1}
    return one_operator("GATHER", [Operand("s8", (2, 3), 0.5), places], [Operand("s8", (2, 2), 0.5)], options, 2)


EIGHT = np.array([[1, 20, 60, 127], [2, 3, 5, 100]])

# The file, its input, and TVM's answer.
CASES: dict[str, tuple[bytes, Any, Any]] = {
    "SUM": (summed(2.0, -3), X, [[-67, -3], [-101, -37]]),
    "SUM, other scale": (summed(0.75, 11), X, [[-128, 12], [-128, -80]]),
    "ARG_MAX along the last axis": (placed(2, (2, 2)), X, [[2, 2], [-1, 2]]),
    "ARG_MAX along the first axis": (placed(0, (2, 3)), X, [[-1, -1, 0], [1, 0, 0]]),
    "PADV2": (padded(), X, [[[-3, -128, -128, 5], [-3, -128, 9, 127]], [[-3, -128, -128, -128], [-3, -1, -128, 0]]]),
    "SPACE_TO_BATCH_ND": (
        blocks("SPACE_TO_BATCH_ND", (1, 1, 2, 3), (4, 1, 1, 3)),
        X[:1].reshape(1, 1, 2, 3),
        [[[[0, 0, 0]]], [[[0, 0, 0]]], [[[-128, -128, 5]]], [[[-128, 9, 127]]]],
    ),
    "BATCH_TO_SPACE_ND": (
        blocks("BATCH_TO_SPACE_ND", (4, 1, 1, 3), (1, 1, 2, 3)),
        X.reshape(4, 1, 1, 3),
        [[[[-128, -128, -128], [-1, -128, 0]]]],
    ),
    "ABS": (
        function("ABS", "s8", (0.25, 0.125), (40, -128)),
        EIGHT.astype(np.int8),
        [[-50, -88, -88, 46], [-52, -54, -58, -8]],
    ),
    "EXP": (function("EXP", "u8", (0.0625, 0.5), (60, 3)), EIGHT.astype(np.uint8), [[3, 3, 5, 135], [3, 3, 3, 27]]),
    "LOG": (
        function("LOG", "u8", (0.0625, 0.03125), (0, 100)),
        EIGHT.astype(np.uint8),
        [[11, 107, 142, 166], [33, 46, 63, 159]],
    ),
    "RSQRT": (
        function("RSQRT", "s8", (0.0625, 0.03125), (0, -100)),
        EIGHT.astype(np.int8),
        [[28, -71, -83, -89], [-9, -26, -43, -87]],
    ),
    "SQRT": (
        function("SQRT", "s8", (0.5, 0.0625), (0, -128)),
        EIGHT.astype(np.int8),
        [[-117, -77, -40, -1], [-112, -108, -103, -15]],
    ),
    "LOG_SOFTMAX": (
        function("LOG_SOFTMAX", "s8", (0.125, 0.0625), (0, 127)),
        EIGHT.astype(np.int8),
        [[-125, -87, -7, 127], [-69, -67, -63, 127]],
    ),
    "LOGISTIC of 16 bits": (
        function("LOGISTIC", "s16", (0.015625, 1 / 32768), (0, 0)),
        (EIGHT * 7 - 300).astype(np.int16),
        [[333, 2486, 28411, 32765], [371, 414, 513, 32705]],
    ),
    "TANH of 16 bits": (
        function("TANH", "s16", (0.0078125, 1 / 32768), (0, 0)),
        (EIGHT * 7 - 300).astype(np.int16),
        [[-32102, -27797, 24054, 32761], [-32025, -31941, -31741, 32642]],
    ),
    "LEAKY_RELU of 16 bits": (
        function("LEAKY_RELU", "s16", (0.3, 0.1), (0, 0), alpha=0.1),
        (EIGHT * 7 - 300).astype(np.int16),
        [[-88, -48, 360, 1767], [-86, -84, -80, 1200]],
    ),
    "RESIZE_BILINEAR": (
        resized(),
        np.array([[[[1], [20]], [[-60], [127]]]], np.int8),
        [[[[-15], [4], [23]], [[-76], [27], [127]], [[-128], [50], [127]]]],
    ),
    "AVERAGE_POOL_2D of 16 bits": (
        averaged(),
        np.array([[[[1], [20]], [[-6000], [12700]]]], np.int16),
        [[[[1680], [6360]], [[3350], [12700]]]],
    ),
    "BATCH_MATMUL": (
        multiplied(),
        (np.array([[[3, 7]], [[-20, 40]]], np.int8), np.array([[[1, 2], [-3, 4]]], np.int8)),
        [[[-18, 34]], [[-128, 120]]],
    ),
    "GATHER": (gathered(), np.array([[1, 2, 3], [4, 5, 6]], np.int8), [[[1, 3], [2, 2]], [[4, 6], [5, 5]]]),
}


@pytest.mark.parametrize("executor", ["native", "reference"])
@pytest.mark.parametrize("name", CASES)
def test_files_give_the_answers_of_the_system(name: str, executor: str) -> None:
    content, x, expected = CASES[name]
    given = x if isinstance(x, tuple) else (x,)
    (found,) = bittrue.load(content).prepare("tvm-qnn", executor=executor).run(*given).values()
    assert found.tolist() == expected


@pytest.mark.parametrize("name", CASES)
def test_their_calls_give_them_too(name: str) -> None:
    content, x, expected = CASES[name]
    given = x if isinstance(x, tuple) else (x,)
    (found,) = qnn.from_tflite(bittrue.load(content)).model().prepare("tvm-qnn").run(*given).values()
    assert found.tolist() == expected


STORED = ("MAXIMUM", "MINIMUM", "EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")


PAIRS = [*((o, "s8") for o in (*STORED, "SLICE", "GATHER", "SPACE_TO_DEPTH", "SOFTMAX")), ("TRANSPOSE_CONV", "s16")]


@pytest.mark.parametrize(("operator", "types"), PAIRS)
def test_calls_of_files_give_what_the_files_give(operator: str, types: str) -> None:
    cases = list(islice(find_suite("litert").cases([operator], [types], ["shapes"]), 3))
    assert cases
    for case in cases:
        files, calls = case.model, qnn.from_tflite(case.model).model()
        found = [m.prepare("tvm-qnn", executor="reference").run(dict(case.inputs)) for m in (files, calls)]
        (expected,), (got,) = (list(one.values()) for one in found)
        assert (got.dtype, got.shape, got.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


def test_a_squeeze_without_axes_leaves_the_shape_alone() -> None:
    """As the frontend does (run); the file's own shape is another one."""
    given, result = Operand("s8", (1, 3, 1), 0.5, 7), Operand("s8", (3,), 0.5, 7)
    content = one_operator("SQUEEZE", [given], [result], {"squeeze_dims": np.array([], np.int32)}, 2)
    assert qnn.from_tflite(bittrue.load(content)).outputs[0].shape == (1, 3, 1)


def test_products_by_constants_are_refused() -> None:
    """The frontend does not find them (run)."""
    right = Operand("s8", (1, 2, 2), 0.5, data=np.ones((1, 2, 2), np.int8))
    content = one_operator(
        "BATCH_MATMUL", [Operand("s8", (1, 1, 2), 0.5), right], [Operand("s8", (1, 1, 2), 1.0)], {}, 2
    )
    model = bittrue.load(content)
    with pytest.raises(BittrueError, match="no row"):
        model.prepare("tvm-qnn")
    with pytest.raises(BittrueError, match="does not find"):
        qnn.from_tflite(model)


def test_biases_of_32_bits_behind_16_bit_data_are_refused() -> None:
    """Sums are 64 bits wide, and the system does not add numbers of two types."""
    weights = Operand("s8", (2, 3), 0.25, data=np.array([[1, 2, 3], [4, 5, 6]], np.int8))
    for wide in ("s64", "s32"):
        bias = Operand(wide, (2,), 0.125, data=np.array([10, -10]))
        given = [Operand("s16", (1, 3), 0.5), weights, bias]
        content = one_operator("FULLY_CONNECTED", given, [Operand("s16", (1, 2), 0.5)], {}, 4)
        if wide == "s64":
            (found,) = bittrue.load(content).prepare("tvm-qnn").run(np.array([[1, 2, 3]], np.int16)).values()
            assert found.shape == (1, 2)
        else:
            with pytest.raises(BittrueError, match="no row"):
                bittrue.load(content).prepare("tvm-qnn")
