"""The operators of quantized networks in TVM's Relay and in its RFC, as functions on arrays and as a graph builder.

Every function takes arrays and gives an array; where a data argument is a symbolic tensor (`var`, or the result of such
a call) it adds a node to a graph instead. `model` makes a model of it, which runs in any numerics with rows for its
operators; arrays, and models that name none, run in `tvm-qnn`.

>>> import numpy as np
>>> from bittrue import qnn
>>> qnn.quantize(np.float32([0.25, -0.25]), 0.5, 3, "uint8").tolist()
[4, 2]
>>> x = qnn.var("x", (1, 2), "uint8")
>>> acc = qnn.dense(x, np.int8([[1, 2]]), 3, 0, 0.5, 0.1, units=1)
>>> y = qnn.requantize(acc, 0.05, 0, 0.1, 0)
>>> list(qnn.model(y).prepare().run(x=np.uint8([[4, 2]])).values())[0].tolist()
[[0]]
"""

from __future__ import annotations

from .compat.tvm_qnn import nn
from .compat.tvm_qnn.calls import Conversion
from .compat.tvm_qnn.config import current_requantize_config, requantize_config
from .compat.tvm_qnn.convert import from_tflite
from .compat.tvm_qnn.convert_mxnet import from_mxnet
from .compat.tvm_qnn.convert_onnx import from_onnx
from .compat.tvm_qnn.elementwise import (
    abs,
    add,
    clip,
    concat,
    concatenate,
    erf,
    exp,
    hardswish,
    leaky_relu,
    log,
    mul,
    relu,
    rsqrt,
    sigmoid,
    softmax,
    sqrt,
    subtract,
    tanh,
)
from .compat.tvm_qnn.expr import Expr, constant, var
from .compat.tvm_qnn.layers import batch_matmul, bias_add, conv2d, conv2d_transpose, dense, fully_connected
from .compat.tvm_qnn.model import model
from .compat.tvm_qnn.pooling import avg_pool2d, max_pool2d, pool2d
from .compat.tvm_qnn.quantization import dequantize, quantize, requantize, simulated_dequantize, simulated_quantize
from .compat.tvm_qnn.ranges import parameters_from_range
from .compat.tvm_qnn.rfc import (
    quantized_add,
    quantized_concat,
    quantized_conv2d,
    quantized_dense,
    quantized_fully_connected,
    quantized_mul,
    quantized_pool2d,
    quantized_relu,
)

__all__ = [
    "Conversion",
    "Expr",
    "abs",
    "add",
    "avg_pool2d",
    "batch_matmul",
    "bias_add",
    "clip",
    "concat",
    "concatenate",
    "constant",
    "conv2d",
    "conv2d_transpose",
    "current_requantize_config",
    "dense",
    "dequantize",
    "erf",
    "exp",
    "from_mxnet",
    "from_onnx",
    "from_tflite",
    "fully_connected",
    "hardswish",
    "leaky_relu",
    "log",
    "max_pool2d",
    "model",
    "mul",
    "nn",
    "parameters_from_range",
    "pool2d",
    "quantize",
    "quantized_add",
    "quantized_concat",
    "quantized_conv2d",
    "quantized_dense",
    "quantized_fully_connected",
    "quantized_mul",
    "quantized_pool2d",
    "quantized_relu",
    "relu",
    "requantize",
    "requantize_config",
    "rsqrt",
    "sigmoid",
    "simulated_dequantize",
    "simulated_quantize",
    "softmax",
    "sqrt",
    "subtract",
    "tanh",
    "var",
]
