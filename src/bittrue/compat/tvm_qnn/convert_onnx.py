"""From the graph of a quantized .onnx file to calls of `bittrue.qnn`, as TVM's frontend for such files makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...graph import Node, data_type
from ...operators.core.geometry import WindowError, window
from . import checks
from .calls import Calls, Conversion
from .convert import opened
from .expr import Expr

_BYTES = ("s8", "u8")
_Pair = tuple[Any, Any]


def _title(value: Any) -> str:
    """The type of a tensor as callers write it; the file need not say it."""
    return data_type(value.dtype).title if isinstance(value, Expr) else str(value.dtype)


class _Converter(Calls):
    def given(self, node: Node, position: int) -> Any:
        """What an operand is; None for an absent one."""
        index = node.inputs[position] if position < len(node.inputs) else None
        return None if index is None else self.value(index)

    def parameter(self, node: Node, position: int, single: bool = True) -> Any:
        """A scale or zero point that is a constant; `single`: one number, which the frontend makes of [1], too."""
        found = self.given(node, position)
        if found is None:
            raise self.unsupported(node, "an absent scale or zero point, which TVM's frontend refuses,")
        if isinstance(found, Expr):
            raise self.unsupported(node, "a scale or zero point that is computed")
        if single and found.size == 1:
            found = found.reshape(())
        if found.dtype.kind != "f":
            return int(found) if not found.ndim else found.astype(np.int32)
        return np.float32(found) if not found.ndim else found.astype(np.float32)

    def pair(self, node: Node, position: int, single: bool = True) -> _Pair:
        """Scale and zero point that stand beside each other."""
        return self.parameter(node, position, single), self.parameter(node, position + 1, single)

    def result(self, node: Node, position: int) -> str:
        """The type of the result: that of its zero point."""
        return str(self.given(node, position).dtype)

    def real(self, node: Node, position: int, parameters: int) -> Any:
        return self.call("dequantize", self.given(node, position), *self.pair(node, parameters))

    def quantized(self, node: Node, y: Any, parameters: int) -> Any:
        return self.call("quantize", y, *self.pair(node, parameters), out_dtype=self.result(node, parameters + 1))

    def axis(self, node: Node, rank: int) -> int:
        """Tensors of rank 1 have no axis 1, which is the default."""
        return 0 if rank < 2 else int(str(node.attributes["axis"]))

    # -- operators -------------------------------------------------------------------------------------------------
    def quantize(self, node: Node) -> Any:
        x = self.given(node, 0)
        dtype = _title(x) if self.given(node, 2) is None else self.result(node, 2)
        return self.call("quantize", x, *self.pair(node, 1, False), axis=self.axis(node, len(x.shape)), out_dtype=dtype)

    def dequantize(self, node: Node) -> Any:
        x = self.given(node, 0)
        return self.call("dequantize", x, *self.pair(node, 1, False), axis=self.axis(node, len(x.shape)))

    def pads(self, node: Node, sizes: Sequence[int], taps: Sequence[int]) -> tuple[int, ...]:
        """Top, left, bottom, right."""
        a: Mapping[str, Any] = node.attributes
        if a["auto_pad"] == "NOTSET":
            return tuple(a["pads"]) or (0, 0, 0, 0)
        if a["auto_pad"] == "VALID":
            return (0, 0, 0, 0)
        steps, reach = (a[name] or (1, 1) for name in ("strides", "dilations"))
        try:
            found = [
                window(*one, padding=str(a["auto_pad"]).lower()) for one in zip(sizes, taps, steps, reach, strict=True)
            ]
        except WindowError as error:
            raise self.unsupported(node, str(error)) from None
        return (*(one.before for one in found), *(one.after for one in found))

    def conv(self, node: Node) -> Any:
        """QLinearConv, or ConvInteger, whose sums are the result."""
        x, w, bias = (self.given(node, position) for position in range(3))
        if _title(x) == "float32" or isinstance(w, Expr):
            raise self.unsupported(node, "a convolution of real numbers, or with a kernel that is computed,")
        if len(x.shape) != 4:
            raise self.unsupported(node, "a convolution of other rank, which TVM's frontend refuses,")
        stored = self.given(node, 7) is not None
        one = np.float32(1)
        x_scale, x_point, w_scale, w_point = one, 0, one, 0
        if stored:
            (x_scale, x_point), (w_scale, w_point) = self.pair(node, 3), self.pair(node, 5, False)
            sizes = {np.size(value) for value in (w_scale, w_point) if np.ndim(value)}
            if sizes and (sizes != {w.shape[0]} or np.ndim(w_scale) != np.ndim(w_point)):
                raise self.unsupported(node, "scales and zero points of other counts, which TVM's frontend refuses,")
        else:
            x_point, w_point = (
                0 if self.given(node, position) is None else self.parameter(node, position, position == 4)
                for position in (4, 6)
            )
        a: Mapping[str, Any] = node.attributes
        taps = tuple(a["kernel_shape"]) or w.shape[2:]
        acc = self.call(
            "conv2d",
            x,
            w,
            x_point,
            w_point,
            x_scale,
            w_scale,
            kernel_size=taps,
            channels=w.shape[0],
            strides=a["strides"] or (1, 1),
            padding=self.pads(node, x.shape[2:], taps),
            dilation=a["dilations"] or (1, 1),
            groups=a["groups"],
        )
        if bias is not None:
            acc = self.call("bias_add", acc, bias)
        if not stored:
            return acc
        scale, point = self.pair(node, 7)
        return self.call("requantize", acc, x_scale * w_scale, 0, scale, point, axis=1, out_dtype=self.result(node, 8))

    def matmul(self, node: Node) -> Any:
        """QLinearMatMul, QGemm or MatMulInteger; the first two round TONEAREST."""
        a, b, addend = (self.given(node, position) for position in range(3))
        if _title(a) == "float32" or isinstance(b, Expr) or len(a.shape) != 2 or b.ndim != 2:
            raise self.unsupported(node, "a product of real numbers, of computed weights or of other ranks than 2")
        if node.attributes.get("transpose_a"):
            a = self.call("transpose", a, [1, 0])
        stored = self.given(node, 3) is not None
        one = np.float32(1)
        if stored:
            first, second = self.pair(node, 3), self.pair(node, 5, addend is None and "alpha" not in node.attributes)
            if np.shape(second[0]) != np.shape(second[1]):
                raise self.unsupported(node, "scales and zero points of other counts, which TVM's frontend refuses,")
        else:
            if _title(a) != _title(b):
                raise self.unsupported(node, "a product of two types, which TVM's frontend refuses,")
            first, second = (
                (one, 0 if self.given(node, position) is None else self.parameter(node, position))
                for position in (4, 6)
            )
        weights = np.ascontiguousarray(b if node.attributes.get("transpose_b") else b.T)
        if np.shape(second[0]) == (1,):
            second = np.float32(second[0][0]), int(second[1][0])
        acc = self.call("dense", a, weights, first[1], second[1], first[0], second[0], weights.shape[0])
        if addend is not None:
            if isinstance(addend, Expr) or addend.size != weights.shape[0]:
                raise self.unsupported(node, "an addend that is computed, or is not one number per column,")
            acc = self.call("bias_add", acc, addend.reshape(-1))
        if not stored:
            return acc
        both = first[0] * second[0]
        if (alpha := float(str(node.attributes.get("alpha", 1.0)))) != 1:
            both = both * np.float32(alpha)
        if self.given(node, 7) is None:
            return self.call("dequantize", acc, both, 0)
        scale, point = self.pair(node, 7)
        dtype = self.result(node, 8)
        return self.call("requantize", acc, both, 0, scale, point, axis=-1, rounding="TONEAREST", out_dtype=dtype)

    def function(self, node: Node, name: str, *arguments: Any) -> Any:
        """A function of real numbers, or between dequantize and quantize."""
        if len(node.inputs) < 5:
            x = self.given(node, 0)
            if _title(x) != "float32":
                raise self.unsupported(node, f"an operator on {_title(x)}")
            return self.call(name, x, *arguments)
        return self.quantized(node, self.call(name, self.real(node, 0, 1), *arguments), 3)

    def binary(self, node: Node, function: str) -> Any:
        """Of real numbers; QLinearAdd and QLinearMul dequantize and quantize."""
        if len(node.inputs) < 8:
            one, other = self.given(node, 0), self.given(node, 1)
            if _title(one) != "float32":
                raise self.unsupported(node, f"an operator on {_title(one)}")
            return self.call(function, one, other)
        return self.quantized(node, self.call(function, self.real(node, 0, 2), self.real(node, 1, 4)), 6)

    def concatenation(self, node: Node) -> Any:
        if node.attributes.get("given") != "scales":
            raise self.unsupported(node, "a concatenation without scales")
        count = (len(node.inputs) - 2) // 3
        pairs = [self.pair(node, count + 2 * part) for part in range(count)]
        parts = [self.given(node, part) for part in range(count)]
        wanted, axis = self.pair(node, 3 * count), int(str(node.attributes["axis"]))
        return self.call("concatenate", parts, [p[0] for p in pairs], [p[1] for p in pairs], *wanted, axis)

    def max_pool(self, node: Node) -> Any:
        a: Mapping[str, Any] = node.attributes
        x, taps = self.given(node, 0), tuple(a["kernel"])
        plain = a["padding"] == "explicit_below_taps" and a["size"] == "truncated_or_none" and not a["channels_last"]
        if not plain or len(taps) != 2 or len(node.outputs) > 1:
            raise self.unsupported(node, "a pool of this form")
        steps, reach, pads = a["strides"] or (1, 1), a["dilations"] or (1, 1), a["pads"] or (0, 0, 0, 0)
        return self.call("max_pool2d", x, taps, steps, reach, pads)

    def softmax(self, node: Node) -> Any:
        if node.attributes["flattened"]:
            raise self.unsupported(node, "a softmax of this form")
        return self.function(node, "softmax", int(str(node.attributes["axis"])))

    def reshape(self, node: Node) -> Any:
        x, asked = self.given(node, 0), self.given(node, 1)
        if isinstance(asked, Expr):
            raise self.unsupported(node, "a shape that is computed")
        sizes = [int(size) for size in asked.reshape(-1)]
        if node.attributes["zeros"] == "copied":
            sizes = [size or x.shape[at] for at, size in enumerate(sizes)]
        return self.call("reshape", x, sizes)

    def flatten(self, node: Node) -> Any:
        x = self.given(node, 0)
        axis = int(str(node.attributes["axis"])) % (len(x.shape) + 1)
        return self.call("reshape", x, (int(np.prod(x.shape[:axis])), -1))

    def transpose(self, node: Node) -> Any:
        x, order = self.given(node, 0), self.given(node, 1)
        axes = range(len(x.shape))[::-1] if order is None else [int(axis) for axis in order.reshape(-1)]
        return self.call("transpose", x, list(axes))


_OPERATORS: dict[str, Callable[[_Converter, Node], Any]] = {
    "add": lambda c, node: c.binary(node, "nn.add"),
    "concatenation": _Converter.concatenation,
    "conv": _Converter.conv,
    "dequantize": _Converter.dequantize,
    "flatten": _Converter.flatten,
    "leaky_relu": lambda c, node: c.function(node, "nn.leaky_relu", float(str(node.attributes["alpha"]))),
    "logistic": lambda c, node: c.function(node, "nn.sigmoid"),
    "matmul": _Converter.matmul,
    "max_pool": _Converter.max_pool,
    "mul": lambda c, node: c.binary(node, "nn.multiply"),
    "quantize": _Converter.quantize,
    "relu": lambda c, node: c.function(node, "nn.relu"),
    "reshape": _Converter.reshape,
    "softmax": _Converter.softmax,
    "tanh": lambda c, node: c.function(node, "nn.tanh"),
    "transpose": _Converter.transpose,
}


def from_onnx(model: Any, shapes: Mapping[str, Sequence[int]] | None = None) -> Conversion:
    """The graph of an .onnx file of quantized operators as calls of `bittrue.qnn`.

    QLinearConv and ConvInteger become conv2d, QLinearMatMul, QGemm and MatMulInteger dense, followed by bias_add and
    requantize (products round TONEAREST); QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu and QLinearSoftmax
    go through real numbers, QLinearConcat becomes concatenate. Beside them QuantizeLinear, DequantizeLinear, MaxPool,
    Reshape, Flatten and Transpose, and on real numbers Add, Mul, Relu, LeakyRelu, Sigmoid, Tanh and Softmax.

    Args:
        model: path or bytes of the file, or what `bittrue.load` gives for it.
        shapes: of inputs, by name, where the file leaves dimensions open.

    Raises:
        UnsupportedError: other operators, and forms that TVM's frontend refuses or that have no form here.
        InputError, ModelFormatError: as for `bittrue.load`, and shapes that are not known.

    Source: tvm v0.18.0, python/tvm/relay/frontend/onnx.py, read.
    """
    graph = opened(model).graph
    missing = sorted({node.source for node in graph.nodes if node.operator not in _OPERATORS})
    if missing:
        raise UnsupportedError(
            "BT-QNN-CONVERT",
            f"no form in bittrue.qnn for {', '.join(missing)}",
            place=f"graph '{graph.name}'",
            advice="run the file itself",
        )
    converter = _Converter(graph)
    for index in graph.inputs:
        tensor = graph.tensors[index]
        shape = tuple((shapes or {}).get(tensor.name, tensor.shape_signature or tensor.shape))
        if any(not isinstance(size, int) or size < 0 for size in shape):
            raise checks.wrong("from_onnx", "shapes", f"input '{tensor.name}' has the open shape {list(shape)}")
        converter.input(index, shape)
    for node in graph.nodes:
        converter.values[node.outputs[0]] = _OPERATORS[node.operator](converter, node)
    return converter.finished()
