"""The signatures of the RFC and of relay.qnn v0.18.0, what their docstrings say, and that errors name the argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bittrue import qnn
from bittrue.errors import InputError

_BINARY = (
    "lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point, "
    "lhs_axis=-1, rhs_axis=-1"
)
_UNARY = "x, scale, zero_point, output_scale, output_zero_point"
_WINDOWS = "strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1"
# python/tvm/relay/qnn/op/qnn.py of v0.18.0 (docs/facts/tvm_qnn.md 1).
RELAY = {
    "requantize": "data, input_scale, input_zero_point, output_scale, output_zero_point, axis=-1, rounding='None', "
    "compute_dtype='None', out_dtype='int8'",
    "simulated_quantize": "data, output_scale, output_zero_point, axis=-1, out_dtype='int8'",
    "simulated_dequantize": "data, input_scale, input_zero_point, axis=-1, in_dtype='int8'",
    "concatenate": "data, input_scales, input_zero_points, output_scale, output_zero_point, axis",
    "conv2d": "data, kernel, input_zero_point, kernel_zero_point, input_scale, kernel_scale, kernel_size, channels, "
    f"{_WINDOWS}, data_layout='NCHW', kernel_layout='OIHW', out_layout='', out_dtype='int32'",
    "conv2d_transpose": "data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, "
    f"{_WINDOWS}, channels=None, kernel_size=None, data_layout='NCHW', kernel_layout='IOHW', out_layout='', "
    "output_padding=(0, 0), out_dtype='int32'",
    "dense": "data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, units, out_dtype='int32'",
    "batch_matmul": "x, y, x_zero_point, y_zero_point, x_scale, y_scale, out_dtype='int32'",
    "add": _BINARY,
    "subtract": _BINARY,
    "mul": _BINARY,
    **dict.fromkeys(("tanh", "exp", "sqrt", "rsqrt", "erf", "abs", "sigmoid", "hardswish", "log"), _UNARY),
    "leaky_relu": "x, alpha, input_scale, input_zero_point, output_scale, output_zero_point",
    "softmax": f"{_UNARY}, axis=-1",
    "avg_pool2d": "data, input_scale, input_zero_point, output_scale, output_zero_point, pool_size, strides, padding, "
    "dilation, ceil_mode=False, count_include_pad=True, layout='NHWC', out_layout=''",
    "current_requantize_config": "",
}
_LAYER = (
    "input_scale, input_zero_point, kernel_scale, kernel_zero_point, output_scale, output_zero_point, out_dtype, "
    f"{_WINDOWS}, channels=None, kernel_size=None, data_layout='NCHW', kernel_layout='OIHW', out_layout=''"
)
RFC = {"quantized_conv2d": f"quantized_data, quantized_kernel, {_LAYER}"}


def _parameters(function: Callable[..., Any]) -> str:
    return ", ".join(
        p.name if p.default is p.empty else f"{p.name}={p.default!r}"
        for p in inspect.signature(function).parameters.values()
    )


@pytest.mark.parametrize(("name", "wanted"), [*RELAY.items(), *RFC.items()])
def test_signature(name: str, wanted: str) -> None:
    assert _parameters(getattr(qnn, name)) == wanted


def test_quantize_and_dequantize_take_both_spellings() -> None:
    x, q = np.float32([[0.5, -1.0, 7.25], [1.5, 2.0, -3.0]]), np.uint8([[1, 128, 255], [0, 3, 9]])
    relay = [
        qnn.quantize(x, 0.5, 3, -1, "uint8"),
        qnn.quantize(data=x, output_scale=0.5, output_zero_point=3, axis=-1, out_dtype="uint8"),
    ]
    rfc = [
        qnn.quantize(x, 0.5, 3, "uint8"),
        qnn.quantize(data=x, scale=0.5, zero_point=3, out_dtype="uint8"),
        qnn.quantize(x, 0.5, 3, out_dtype=np.uint8),
    ]
    assert all(found.dtype == np.uint8 and np.array_equal(found, relay[0]) for found in (*relay, *rfc))
    assert qnn.quantize(x, 0.5, 3).dtype == np.int8
    back = [
        qnn.dequantize(q, 0.5, 3, -1, "float32"),
        qnn.dequantize(data=q, input_scale=0.5, input_zero_point=3, axis=-1, out_dtype="float32"),
        qnn.dequantize(q, 0.5, 3, "float32"),
        qnn.dequantize(quantized_data=q, scale=0.5, zero_point=3, out_dtype="float32"),
        qnn.dequantize(q, 0.5, 3),
    ]
    assert all(found.dtype == np.float32 and np.array_equal(found, back[0]) for found in back)


FUNCTIONS = [
    *sorted({*RELAY, *RFC, "quantize", "dequantize"} - {"current_requantize_config"}),
    "quantized_add",
    "quantized_concat",
    "quantized_fully_connected",
    "quantized_mul",
    "quantized_pool2d",
    "quantized_relu",
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_give_arguments_errors_and_source(name: str) -> None:
    text = inspect.getdoc(getattr(qnn, name)) or ""
    missing = [part for part in ("Args:", "Raises:\n    InputError", "Source:") if part not in text]
    assert not missing


# What no data argument and no scale can be; each of them has a kind of error of its own.
NO_TENSORS = (None, "abc", object(), [[1], [2, 3]], {}, 1 + 2j, 2**70, np.array(["a"]), np.datetime64("2020-01-01"))


@pytest.mark.parametrize("value", NO_TENSORS, ids=lambda value: type(value).__name__)
def test_errors_name_function_and_argument(value: Any) -> None:
    u8 = np.uint8([[1, 200]])
    for name, call in {
        "quantize, argument 'data'": lambda: qnn.quantize(value, 0.5, 3),
        "quantize, argument 'output_scale'": lambda: qnn.quantize(np.float32([1]), value, 3),
        "quantize, argument 'output_zero_point'": lambda: qnn.quantize(np.float32([1]), 0.5, value),
        "simulated_quantize, argument 'output_scale'": lambda: qnn.simulated_quantize(np.float32([1]), value, 3),
        "add, argument 'rhs'": lambda: qnn.add(u8, value, 0.5, 0, 0.5, 0, 0.5, 0),
        "add, argument 'lhs_scale'": lambda: qnn.add(u8, u8, value, 0, 0.5, 0, 0.5, 0),
        "tanh, argument 'zero_point'": lambda: qnn.tanh(u8, 0.5, value, 0.5, 0),
        "dense, argument 'weight'": lambda: qnn.dense(u8, value, 0, 0, 0.5, 0.5, 1),
        "conv2d, argument 'kernel'": lambda: qnn.conv2d(u8.reshape(1, 1, 1, 2), value, 0, 0, 1, 1, (1, 1), 1),
    }.items():
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.place == f"qnn.{name}"


def test_texts_are_no_lists_of_integers() -> None:
    data, kernel = np.zeros((1, 1, 4, 4), np.uint8), np.zeros((1, 1, 1, 1), np.int8)
    with pytest.raises(InputError, match="found 'SAME'"):
        qnn.conv2d(data, kernel, 0, 0, 1, 1, (1, 1), 1, padding="SAME")


def test_lists_of_python_numbers_are_float32() -> None:
    assert qnn.quantize([1, 2.5], 0.5, 0).tolist() == [2, 5]
    assert qnn.quantize([1, 2], 0.5, 0).tolist() == [2, 4]
    with pytest.raises(InputError, match="found int64"):
        qnn.quantize(np.int64([1, 2]), 0.5, 0)
