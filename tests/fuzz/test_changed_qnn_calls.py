"""Calls of bittrue.qnn with arguments of other types, shapes and values: a result or a typed error, nothing else."""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bittrue import qnn

sys.path.insert(0, str(Path(__file__).parent))
from oracle import tried

CALLS: dict[str, tuple[Any, ...]] = {
    "quantize": (np.float32([[1, 2], [3, 4]]), 0.5, 3),
    "dequantize": (np.int8([[1, 2]]), 0.5, 3),
    "requantize": (np.int32([[1, 2]]), 0.5, 3, 1.0, 0),
    "conv2d": (np.zeros((1, 2, 4, 4), np.uint8), np.zeros((3, 2, 2, 2), np.uint8), 0, 0, 1.0, 1.0, (2, 2), 3),
    "conv2d_transpose": (np.zeros((1, 2, 4, 4), np.uint8), np.zeros((2, 3, 2, 2), np.uint8), 0, 0, 1.0, 1.0),
    "dense": (np.zeros((2, 3), np.int8), np.zeros((4, 3), np.int8), 0, 0, 1.0, 1.0, 4),
    "batch_matmul": (np.zeros((2, 2, 3), np.int8), np.zeros((2, 4, 3), np.int8), 0, 0, 1.0, 1.0),
    "add": (np.zeros((2, 3), np.int8), np.zeros((2, 3), np.int8), 1.0, 0, 1.0, 0, 2.0, 0),
    "mul": (np.zeros((2, 3), np.int8), np.zeros((2, 3), np.int8), 1.0, 0, 1.0, 0, 2.0, 0),
    "concatenate": ([np.zeros((2, 3), np.int8)] * 2, [1.0, 1.0], [0, 0], 2.0, 0, 0),
    "tanh": (np.zeros((2, 3), np.int8), 1.0, 0, 2.0, 0),
    "leaky_relu": (np.zeros((2, 3), np.int8), 0.5, 1.0, 0, 2.0, 0),
    "softmax": (np.zeros((2, 3), np.int8), 0.5, 0, 2.0, 0),
    "clip": (np.zeros((2, 3), np.int8), 0, 5),
    "relu": (np.zeros((2, 3), np.int8), 0),
    "avg_pool2d": (np.zeros((1, 4, 4, 2), np.int8), 1.0, 0, 1.0, 0, (2, 2), (1, 1), (0, 0), (1, 1)),
    "max_pool2d": (np.zeros((1, 2, 4, 4), np.int8), (2, 2)),
    "bias_add": (np.zeros((2, 3), np.int32), np.zeros(3, np.int32)),
    "simulated_quantize": (np.float32([[1, 2]]), 0.5, 3),
    "simulated_dequantize": (np.float32([[1, 2]]), 0.5, 3),
    "quantized_conv2d": (
        np.zeros((1, 2, 4, 4), np.uint8),
        np.zeros((3, 2, 2, 2), np.uint8),
        1.0,
        0,
        1.0,
        0,
        1.0,
        0,
        "uint8",
    ),
    "quantized_fully_connected": (np.zeros((2, 3), np.int8), np.zeros((4, 3), np.int8), 1.0, 0, 1.0, 0, 1.0, 0, "int8"),
    "quantized_pool2d": (np.zeros((1, 2, 4, 4), np.uint8), 1.0, 0, 1.0, 0, "uint8", "avg", (2, 2)),
    "quantized_relu": (np.zeros((2, 3), np.int8), 1.0, 0, 1.0, 0, "int8"),
    "quantized_concat": ([np.zeros((2, 3), np.int8)] * 2, [1.0, 1.0], [0, 0], 2.0, 0, "int8", 0),
    "quantized_add": (np.zeros((2, 3), np.int8), np.zeros((2, 3), np.int8), 1.0, 0, 1.0, 0, 2.0, 0, "int8"),
    "parameters_from_range": (-1.0, 1.0, "int8"),
    "var": ("x", (1, 2), "int8"),
    "constant": ([1, 2], "int8"),
    "model": (qnn.relu(qnn.var("x", (2,), "int8")),),
}
ODD: list[Any] = [
    None,
    0,
    -1,
    1,
    2,
    3,
    7,
    "x",
    "NHWC",
    "OHWI",
    "int8",
    "uint8",
    "float32",
    "int64",
    [],
    [1],
    [1, 2],
    (2, 2),
    (2, 2, 2, 2),
    {},
    1e30,
    1e-40,
    -0.5,
    float("nan"),
    True,
    2**40,
    [[1]],
    [[1], [1, 2]],
    -(2**31),
    object(),
    np.zeros((0, 3), np.int8),
    np.zeros((2, 3), np.float64),
    np.int8(3),
    np.float32([0.5, 0.25]),
    np.array("x"),
    np.array([None]),
    qnn.var("v", (2, 3), "int8"),
    qnn.var("f", ()),
    b"ab",
    3 + 4j,
    np.zeros((1,) * 9, np.int8),
    range(3),
    lambda: 0,
    np.float32,
    np.datetime64("2020"),
]
_CALLS = 1500


def _called(function: Callable[..., Any], arguments: list[Any], named: dict[str, Any]) -> str:
    result = function(*arguments, **named)
    if isinstance(result, qnn.Expr):
        qnn.model(result).prepare(executor="reference")
    return "result"


@pytest.mark.parametrize("seed", range(4))
def test_changed_arguments(seed: int) -> None:
    random_ = random.Random(seed)
    refused = 0
    for _ in range(_CALLS):
        name = random_.choice(list(CALLS))
        function, arguments, named = getattr(qnn, name), list(CALLS[name]), {}
        for _ in range(random_.randint(1, 2)):
            more = list(inspect.signature(function).parameters)[len(arguments) :]
            if more and random_.random() < 0.3:
                named[random_.choice(more)] = random_.choice(ODD)
            else:
                arguments[random_.randrange(len(arguments))] = random_.choice(ODD)
        refused += tried(partial(_called, function, arguments, named)).startswith("BT-")
    assert _CALLS * 0.5 < refused < _CALLS
