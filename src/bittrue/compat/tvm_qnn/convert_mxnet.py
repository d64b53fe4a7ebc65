"""From a quantized MXNet symbol to calls of `bittrue.qnn`, as TVM's frontend for such files makes them.

Scales follow from calibrated ranges: max(|minimum|, |maximum|) / 127.5 for int8, / 255.5 for uint8, zero points are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...graph import Graph, data_type
from ...importers import read_symbol
from ...importers.mxnet_operators import Source
from . import checks
from .calls import Calls, Conversion
from .expr import Expr
from .quantization import quantize
from .ranges import parameters_from_range

_F32 = np.float32
_LEVELS = {"s8": _F32(127.5), "u8": _F32(255.5)}
_S32 = np.iinfo(np.int32)


def _no(node: Source, what: str, refused: bool = True) -> UnsupportedError:
    why = "which TVM's frontend refuses" if refused else "which has no form in bittrue.qnn"
    return UnsupportedError("BT-QNN-CONVERT", f"{what}, {why}", place=node.place, advice="run the file itself")


def _title(dtype: str) -> str:
    return data_type(dtype).title


def _channel_scales(node: Source, weights: np.ndarray, bias: np.ndarray | None, data_scale: np.float32) -> np.ndarray:
    """One scale per filter, large enough that its bias fits 32 bits twice."""
    largest = np.abs(weights.reshape(len(weights), -1)).max(axis=1)
    scales = np.where(largest == 0, _F32(1 / _S32.max), largest / _LEVELS["s8"]).astype(_F32)
    if bias is not None:
        common = _F32(2) * bias.astype(_F32) * _F32(1 / float(data_scale))
        ends = np.where(bias > 0, common / _F32(_S32.max), common / _F32(_S32.min))
        scales = np.maximum(scales, ends)
    if not np.isfinite(scales).all():
        raise _no(node, "weights or a bias that are no finite numbers", False)
    return scales


@dataclass
class _Converter(Calls):
    """`ranges`: of quantized tensors that are no constants, by the tensor that holds their minimum or maximum.
    `requantized`: what a tensor was requantized from.
    """

    ranges: dict[int, float] = field(default_factory=dict)
    requantized: dict[int, tuple[Any, np.ndarray]] = field(default_factory=dict)

    # -- operands --------------------------------------------------------------------------------------------------
    def array(self, node: Source, position: int, role: str) -> np.ndarray:
        """A parameter of the file."""
        found = self.value(node.inputs[position])
        if isinstance(found, Expr) or found is None:
            raise _no(node, f"{role} that the parameters do not hold", False)
        return np.asarray(found)

    def range(self, node: Source, position: int) -> tuple[float, float]:
        """Minimum and maximum, beside each other from `position` on."""
        found = []
        for at in (position, position + 1):
            index = node.inputs[at]
            found.append(self.ranges[index] if index in self.ranges else float(self.array(node, at, "a range").flat[0]))
        return found[0], found[1]

    def calibrated(self, node: Source) -> tuple[float, float]:
        if not (node.has("min_calib_range") and node.has("max_calib_range")):
            raise _no(node, "an operator whose range is not calibrated")
        return float(node.wide("min_calib_range", 0)), float(node.wide("max_calib_range", 0))

    def scale(self, ends: tuple[float, float], dtype: str) -> np.float32:
        return parameters_from_range(*ends, _title(dtype), "mxnet")[0]

    def data_scale(self, node: Source, position: int, data: Expr) -> np.float32:
        ends = self.range(node, position)
        if data.dtype not in _LEVELS or (ends[0] < 0 and data.dtype == "u8"):
            raise _no(node, f"data of {_title(data.dtype)} with values from {ends[0]} on")
        return self.scale(ends, data.dtype)

    def give(self, node: Source, result: Any, ends: tuple[float, float] | None = None) -> None:
        self.values[node.results[0]] = result
        self.ranges.update(zip(node.results[1:], ends or (), strict=False))

    def data(self, node: Source) -> Expr:
        found = self.value(node.inputs[0])
        if not isinstance(found, Expr):
            raise _no(node, "an operator on constants", False)
        return found

    # -- operators -------------------------------------------------------------------------------------------------
    def quantize(self, node: Source) -> None:
        ends, out = self.calibrated(node), node.text("out_type", "int8", ("int8", "uint8", "auto"))
        dtype = ("u8" if ends[0] >= 0 else "s8") if out == "auto" else {"int8": "s8", "uint8": "u8"}[out]
        y = self.call("quantize", self.data(node), self.scale(ends, dtype), 0, out_dtype=_title(dtype))
        self.give(node, y, ends)

    def dequantize(self, node: Source) -> None:
        x, ends = self.data(node), self.range(node, 1)
        # Divided the other way than scales are.
        scale = _F32(max(abs(_F32(end)) for end in ends) / _LEVELS[x.dtype])
        self.give(node, self.call("dequantize", x, scale, 0))

    def flatten(self, node: Source) -> None:
        x = self.data(node)
        y = self.call("reshape", x, (x.shape[0], -1))
        self.give(node, y, self.range(node, 1) if len(node.inputs) > 1 else None)

    def activation(self, node: Source) -> None:
        if node.text("act_type", "") != "relu":
            raise _no(node, "an activation other than relu")
        x = self.data(node)
        self.give(node, self.call("clip", x, 0, data_type(x.dtype).maximum), self.range(node, 1))

    def pooling(self, node: Source) -> None:
        x, kind = self.data(node), node.text("pool_type", "max", ("max", "avg"))
        taps, steps, pads = tuple(x.shape[2:]), tuple[int, ...]((1, 1)), tuple[int, ...]((0, 0))
        if not node.flag("global_pool"):
            taps, steps, pads = (
                node.integers(name, default) for name, default in (("kernel", ()), ("stride", (1, 1)), ("pad", (0, 0)))
            )
        if len(x.shape) != 4 or len(taps) != 2:
            raise _no(node, "a pool that is not over two axes", False)
        ceil = node.text("pooling_convention", "valid") == "full"
        if kind == "max":
            y = self.call("max_pool2d", x, taps, steps, padding=pads, ceil_mode=ceil)
        else:
            counted, one = node.flag("count_include_pad", True), _F32(1)
            more = {"ceil_mode": ceil, "count_include_pad": counted, "layout": "NCHW"}
            y = self.call("avg_pool2d", x, one, 0, one, 0, taps, steps, pads, (1, 1), **more)
        self.give(node, y, self.range(node, 1))

    def concatenation(self, node: Source) -> None:
        count, axis = node.integer("num_args"), node.integer("dim", 1)
        ends = [self.range(node, position) for position in range(count, len(node.inputs), 2)]
        parts = [self.value(index) for index in node.inputs[:count]]
        whole = min(low for low, _ in ends), max(high for _, high in ends)
        alike = len(set(ends)) == 1
        if not alike and (whole[0] != 0 or any(part.dtype != "u8" for part in parts)):
            raise _no(node, "quantized values of several ranges that are not uint8 from 0 on")
        scales = [self.scale(one, parts[0].dtype) for one in ends]
        out = self.scale(whole, parts[0].dtype)
        self.give(node, self.call("concatenate", parts, scales, [0] * count, out, 0, axis), whole)

    # -- layers ----------------------------------------------------------------------------------------------------
    def inner(self, node: Source, operator: str) -> Source:
        """The attributes of an operator inside of a fused one."""
        for one in node.inner:
            if one.operator == operator:
                return Source(operator, node.label, [], one.attributes, (), node.builder, node.position)
        raise _no(node, f"a fused operator without {operator}")

    def check_activation(self, node: Source) -> None:
        """The frontend looks at ranges alone, which is right for relu where it is the range that begins with 0."""
        for one in node.inner:
            if one.operator in ("Activation", "LeakyReLU", "clip") and one.attributes.get("act_type") != "relu":
                raise _no(node, f"a fused {one.operator} other than relu")
        if node.flag("with_eltwise"):
            raise UnsupportedError(
                "BT-QNN-CONVERT",
                "TVM's frontend does not know 'with_eltwise' and would leave the activation out",
                place=node.place,
                advice="run the file itself",
            )

    def folded(self, node: Source, biased: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """Weights and bias with the normalization in them, every operation in binary32."""
        weights = self.array(node, 1, "weights").astype(_F32)
        bias = self.array(node, 2, "a bias").astype(_F32) if biased else None
        if not node.flag("with_bn"):
            return weights, bias
        norm, first = self.inner(node, "BatchNorm"), 3 if biased else 2
        gamma, beta, mean, variance = (self.array(node, first + i, "a normalization").astype(_F32) for i in range(4))
        with np.errstate(all="ignore"):
            factor = _F32(1) / np.sqrt(variance + _F32(norm.wide("eps", 1e-3)))
            if not norm.flag("fix_gamma", True):
                factor = gamma * factor
            shift = beta + -(mean * factor)
            return factor.reshape(-1, 1, 1, 1) * weights, shift if bias is None else factor * bias + shift

    def convolution(self, node: Source) -> None:
        conv = self.inner(node, "Convolution")
        if not node.flag("quantized"):
            raise _no(node, "a convolution of real numbers", False)
        self.check_activation(node)
        biased, added = not conv.flag("no_bias"), node.flag("with_sum")
        x, ends = self.data(node), self.calibrated(node)
        data_scale = self.data_scale(node, len(node.inputs) - (4 if added else 2), x)
        weights, bias = self.folded(node, biased)
        if weights.ndim != 4 or len(x.shape) != 4:
            raise _no(node, "a convolution that is not over two axes", False)
        scales = _channel_scales(node, weights, bias, data_scale)
        kernel = quantize(weights, scales, 0, axis=0, out_dtype="int8")
        acc = self.call(
            "conv2d",
            x,
            kernel,
            0,
            0,
            data_scale,
            scales,
            kernel_size=weights.shape[2:],
            channels=weights.shape[0],
            strides=conv.integers("stride", (1, 1)),
            padding=conv.integers("pad", (0, 0)),
            dilation=conv.integers("dilate", (1, 1)),
            groups=conv.integer("num_group", 1),
        )
        both = data_scale * scales
        if bias is not None:
            acc = self.call("bias_add", acc, quantize(bias, both, 0, axis=0, out_dtype="int32"), 1)
        dtype = "u8" if ends[0] >= 0 else "s8"
        scale = self.scale(ends, dtype)
        if added:
            total = self.call("nn.add", self.requantize(acc, both, scale, "s32"), self.addend(node, scale))
            limits = data_type(dtype)
            total = self.call("clip", total, limits.minimum, limits.maximum)
            self.give(node, self.call("cast", total, _title(dtype)), ends)
            return
        y = self.requantize(acc, both, scale, dtype)
        self.requantized[id(y)] = acc, both
        self.give(node, y, ends)

    def requantize(self, x: Any, given: np.ndarray, wanted: np.float32, dtype: str) -> Any:
        return self.call("requantize", x, given, 0, wanted, 0, axis=1, out_dtype=_title(dtype))

    def addend(self, node: Source, scale: np.float32) -> Any:
        """The tensor that is added, in the result's scale: without its own rounding where it was just requantized."""
        other = self.value(node.inputs[-5])
        if id(other) in self.requantized:
            return self.requantize(*self.requantized[id(other)], scale, "s32")
        given = self.scale(self.range(node, len(node.inputs) - 2), other.dtype)
        return self.call("requantize", other, given, 0, scale, 0, out_dtype="int32")

    def fully_connected(self, node: Source) -> None:
        dense = self.inner(node, "FullyConnected")
        if not node.flag("quantized"):
            raise _no(node, "a product of real numbers", False)
        self.check_activation(node)
        biased, several = not dense.flag("no_bias"), node.flag("channel_wise_quantize")
        x, real = self.data(node), node.flag("enable_float_output")
        if (len(x.shape) != 2 and not dense.flag("flatten", True)) or (real and node.flag("with_relu")):
            raise _no(node, "a product over the last axis alone, or of real results with a relu", False)
        if len(x.shape) != 2:
            x = self.call("reshape", x, (x.shape[0], -1))
        data_scale, weights = self.data_scale(node, 2 + biased, x), self.array(node, 1, "weights")
        bias = self.array(node, 2, "a bias") if biased else None
        if (weights.dtype != np.float32) if several else (weights.dtype != np.int8):
            raise _no(node, f"weights of {weights.dtype}")
        scale: Any
        if several:
            scale = _channel_scales(node, weights, bias, data_scale)
            kernel = quantize(weights, scale, 0, axis=0, out_dtype="int8")
            stored = None if bias is None else quantize(bias, data_scale * scale, 0, axis=0, out_dtype="int32")
        else:
            kernel, scale = weights, self.scale(self.range(node, 4 + biased), "s8")
            stored = None
            if bias is not None:
                factor = _F32(self.scale(self.range(node, 7), "s8") / (data_scale * scale))
                product = bias.astype(_F32) * factor
                rounded = np.copysign(np.floor(np.abs(product.astype(np.float64)) + 0.5), product)
                stored = np.clip(rounded, _S32.min, _S32.max).astype(np.int32)
        acc = self.call("dense", x, np.ascontiguousarray(kernel), 0, 0, data_scale, scale, kernel.shape[0])
        if stored is not None:
            acc = self.call("bias_add", acc, stored, -1)
        both = np.asarray(data_scale * scale, _F32)
        if real:
            self.give(node, self.call("dequantize", acc, both, 0, axis=1))
            return
        if several:
            raise _no(node, "a product per channel whose result is quantized")
        ends, dtype = self.calibrated(node), "u8" if node.flag("with_relu") else "s8"
        y = self.call("requantize", acc, _F32(both), 0, self.scale(ends, dtype), 0, out_dtype=_title(dtype))
        self.give(node, y, ends)

    def softmax(self, node: Source) -> None:
        x = self.data(node)
        axis = node.integer("axis", -1) if node.operator == "softmax" else 1
        self.give(node, self.call("softmax", x, axis))

    def same(self, node: Source) -> None:
        self.give(node, self.data(node))


_OPERATORS: dict[str, Callable[[_Converter, Source], None]] = {
    "BlockGrad": _Converter.same,
    "Flatten": _Converter.flatten,
    "SoftmaxOutput": _Converter.softmax,
    "_contrib_dequantize": _Converter.dequantize,
    "_contrib_quantize_v2": _Converter.quantize,
    "_contrib_quantized_act": _Converter.activation,
    "_contrib_quantized_concat": _Converter.concatenation,
    "_contrib_quantized_flatten": _Converter.flatten,
    "_contrib_quantized_pooling": _Converter.pooling,
    "_sg_mkldnn_conv": _Converter.convolution,
    "_sg_mkldnn_fully_connected": _Converter.fully_connected,
    "softmax": _Converter.softmax,
}
# Operators of MXNet's quantizer that the frontend has not.
_UNKNOWN = frozenset(
    """
    _contrib_quantize _contrib_requantize _contrib_quantized_conv _contrib_quantized_elemwise_add
    _contrib_quantized_elemwise_mul _contrib_quantized_embedding _contrib_quantized_fully_connected
    """.split()
)


def from_mxnet(symbol: Any, weights: Any = None, shapes: Mapping[str, Sequence[int]] | None = None) -> Conversion:
    """A quantized MXNet symbol as calls of `bittrue.qnn`: what TVM's frontend makes of it, not what MXNet computes.

    Scales follow from calibrated ranges; real weights and biases are quantized per channel with the normalization in
    them. Fused convolutions and products, pools, relu, concatenations, quantize_v2 and dequantize are converted,
    Flatten and softmax beside them.

    Args:
        symbol: path of X-symbol.json, or its bytes.
        weights: path or bytes of the parameters; None: the newest ones beside the symbol.
        shapes: of inputs, by name.

    Raises:
        UnsupportedError: other operators, and forms that TVM's frontend refuses or that have no form here.
        InputError: an input without a shape.
        ModelFormatError, InvalidModelError: a file is damaged.

    Source: tvm v0.18.0, python/tvm/relay/frontend/mxnet.py and mxnet_qnn_op_utils.py, read.
    """
    found = read_symbol(symbol, weights)
    names = {node.operator for node in found.operators}
    missing = sorted(names - set(_OPERATORS))
    if missing:
        refused = [f"TVM's frontend has no {name}" for name in missing if name in _UNKNOWN]
        others = [name for name in missing if name not in _UNKNOWN]
        unknown = [f"no form in bittrue.qnn for {', '.join(others)}"] if others else []
        raise UnsupportedError(
            "BT-QNN-CONVERT", "; ".join((*refused, *unknown)), place="symbol", advice="run the file itself"
        )
    converter = _Converter(Graph("symbol", found.tensors, (), found.inputs, found.outputs))
    for index in found.inputs:
        tensor = found.tensors[index]
        shape = tuple((shapes or {}).get(tensor.name, ()))
        if not shape or any(not isinstance(size, int) or size < 1 for size in shape):
            raise checks.wrong("from_mxnet", "shapes", f"input '{tensor.name}' has no shape", "give it by its name")
        converter.input(index, shape)
    for node in found.operators:
        _OPERATORS[node.operator](converter, node)
    return converter.finished()
