"""Files of one operator under `tvm-qnn`: what a running TVM's frontend for .tflite gave for them (docs/facts/tvm_qnn.md
13), in both executors and as calls.

Stems: sum, arg_max, space_to_batch, batch_to_space, pad, conv, fully_connected.
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


# The file, its input, and TVM's answer.
CASES: dict[str, tuple[bytes, np.ndarray, Any]] = {
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
}


@pytest.mark.parametrize("executor", ["native", "reference"])
@pytest.mark.parametrize("name", CASES)
def test_files_give_the_answers_of_the_system(name: str, executor: str) -> None:
    content, x, expected = CASES[name]
    (found,) = bittrue.load(content).prepare("tvm-qnn", executor=executor).run(x).values()
    assert found.tolist() == expected


@pytest.mark.parametrize("name", CASES)
def test_their_calls_give_them_too(name: str) -> None:
    content, x, expected = CASES[name]
    (found,) = qnn.from_tflite(bittrue.load(content)).model().prepare("tvm-qnn").run(x).values()
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
