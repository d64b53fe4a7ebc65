"""One small network in the files of every format, and the arithmetic of the system that runs each, in plain NumPy.

Convolution (relu where the format fuses one, padding that differs at all sides), depthwise convolution, sum of both,
maximum, average, fully-connected layer. Tensors are called x, c, d, s, m, p, y; here they have their channels last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue import qnn

from . import caffe2_nets as nets
from . import faulty_device as device
from .build import T, chain
from .caffe_models import Files
from .mxnet_models import Network as MxNet

Array = np.ndarray
F32 = np.float32


@dataclass(frozen=True)
class Net:
    """The network as numbers.

    Attributes:
        shape: of x.
        inner: of c, d, s, m and p.
        scales, zeros: of the tensors.
        c, d, y: the layers as a device has them.
        pool: pads of both pools.
        taps, step: size and stride of their windows.
    """

    shape: tuple[int, ...]
    inner: tuple[int, ...]
    scales: dict[str, float]
    zeros: dict[str, int]
    c: device.Layer
    d: device.Layer
    y: device.Layer
    pool: tuple[int, int, int, int] = (1, 1, 1, 1)
    taps: int = 3
    step: int = 1


@dataclass(frozen=True)
class Format:
    """How a format holds the network, and how its system computes.

    Attributes:
        numerics: of the file.
        write: the model.
        names: of the tensors there, by ours.
        dtype: of all tensors.
        channels_last: in the file.
        relu: whether the convolution has one.
        per_channel: whether layers have a scale per channel.
        symmetric: zero points are 0.
        weight_zero: of the weights.
        factors: the real multipliers, per layer.
        rounding: of layers, by kind.
        add, average: (values, net) -> stored integers.
        even_pads: pads of both ends of an axis are equal.
        adjust: the network as such files can hold it.
        counts_padding: averages count padded positions.
    """

    numerics: str
    write: Callable[[Net], bittrue.Model]
    names: dict[str, str]
    factors: Any
    rounding: Any
    add: Callable[..., Array]
    average: Callable[..., Array]
    dtype: str = "int8"
    channels_last: bool = False
    relu: bool = False
    per_channel: bool = True
    symmetric: bool = False
    weight_zero: int = 0
    even_pads: bool = False
    adjust: Callable[[Net], Net] | None = None
    counts_padding: bool = False

    def net(self, seed: int = 0, **changes: Any) -> Net:
        """Random weights; other sizes on request, and scales that are powers of two, so that products have ties."""
        rng = np.random.default_rng(seed)
        size, channels, filters = (changes.get(k, v) for k, v in (("size", (10, 8)), ("channels", 4), ("filters", 6)))
        stride, dilation = changes.get("stride", (2, 2)), (2, 2)
        same = self.numerics == "litert"
        pads = (0, 1, 0, 1) if same else changes.get("pads", (1, 1, 2, 2) if self.even_pads else (1, 2, 0, 1))
        out = tuple((size[k] + sum(pads[2 * k : 2 * k + 2]) - 3) // stride[k] + 1 for k in range(2))
        zeros = {"x": -11, "c": -20, "d": 7, "s": -5, "m": -5, "p": -5, "y": 9}
        scales = {"x": 0.043, "c": 0.17, "d": 0.25, "s": 0.31, "m": 0.31, "p": 0.31, "y": 2.5}
        powers = changes.get("powers", False)
        if powers:
            scales = {k: 2.0 ** round(float(np.log2(scale))) for k, scale in scales.items()}
        if self.symmetric:
            zeros = dict.fromkeys(zeros, 0)
        elif self.dtype == "uint8":
            zeros = {k: z + 128 for k, z in zeros.items()}
        kind = np.iinfo(np.uint8 if self.weight_zero else np.int8)

        def weights(*shape: int) -> Array:
            drawn = rng.integers(kind.min + 1, kind.max + 1, shape)
            if powers:
                drawn = self.weight_zero + (drawn - self.weight_zero) // 32
            return drawn.astype(kind.dtype)

        def layer(name: str, kind: str, given: str, w: Array, count: int, reach: int, **fields: Any) -> device.Layer:
            many = self.per_channel and kind != "dense"
            steps = rng.uniform(0.005, 0.011, count).astype(F32) if many else np.full(count, 0.008, F32)
            if powers:
                steps = F32(2) ** (np.arange(count) % 2 - 3).astype(F32) if many else np.full(count, 0.25, F32)
            return device.Layer(
                kind,
                w,
                (rng.integers(-reach, reach, count) // (32 if powers else 1)).astype(np.int32),
                scales[given],
                zeros[given],
                steps,
                scales[name],
                zeros[name],
                weight_zero=self.weight_zero,
                factors=self.factors,
                usual=self.rounding[kind],
                dtype=self.dtype,
                **fields,
            )

        inner = (1, *out, filters)
        c = layer(
            "c",
            "conv",
            "x",
            weights(filters, 3, 3, channels),
            filters,
            9000,
            stride=stride,
            pads=pads,
            out_size=out,
            activation="relu" if self.relu else "none",
        )
        d = layer(
            "d",
            "depthwise",
            "c",
            weights(1, 3, 3, filters),
            filters,
            6000,
            dilation=dilation,
            pads=(2, 2, 2, 2),
            out_size=out,
        )
        y = layer("y", "dense", "p", weights(24, int(np.prod(inner))), 24, 9000)
        net = Net((1, *size, channels), inner, scales, zeros, c, d, y)
        return net if self.adjust is None else self.adjust(net)


def first(x: Array) -> Array:
    """Images with their channels first."""
    return x if x.ndim == 2 else np.ascontiguousarray(np.moveaxis(x, -1, 1))


def last(x: Array) -> Array:
    """Images with their channels last."""
    return x if x.ndim == 2 else np.ascontiguousarray(np.moveaxis(x, 1, -1))


def even(x: Any) -> Array:
    return np.asarray(np.rint(x)).astype(np.int64)


def away(x: Any) -> Array:
    x = np.asarray(x, np.float64)
    return (np.sign(x) * np.floor(np.abs(x) + 0.5)).astype(np.int64)


def tapped(x: Array, net: Net) -> Iterator[Array]:
    """Tap by tap what the windows of the average read, 0 in the padding."""
    wide = np.pad(x, ((0, 0), net.pool[:2], net.pool[2:], (0, 0)))
    rows, columns = (slice(0, (n - 1) * net.step + 1, net.step) for n in net.inner[1:3])
    for i, j in np.ndindex(net.taps, net.taps):
        yield wide[:, i:, j:][:, rows, columns]


def windows(x: Array, net: Net) -> tuple[Array, Array]:
    """Per position of the average: the elements inside, as sums of (x - 0), and how many there are."""
    total, count = (sum(tapped(v, net)) for v in (x.astype(np.int64), np.ones(x.shape, np.int64)))
    return np.asarray(total), np.asarray(count)


def clip(value: Array, dtype: str) -> Array:
    kind = np.iinfo(dtype)
    return np.clip(value, kind.min, kind.max).astype(dtype)


# -- .tflite -----------------------------------------------------------------------------------------------------------
def tflite(net: Net) -> bittrue.Model:
    def tensor(name: str, shape: tuple[int, ...]) -> T:
        return T("s8", shape, net.scales[name], net.zeros[name], name=name)

    def operands(layer: device.Layer, axis: int, name: str) -> tuple[T, T]:
        steps = layer.weight_scales if layer.kind != "dense" else layer.weight_scales[:1]
        zeros = [0] * len(steps)
        products = (steps * F32(layer.in_scale)).tolist()
        w = T("s8", layer.weights.shape, steps.tolist(), zeros, axis=axis, data=layer.weights, name=f"{name}w")
        return w, T("s32", layer.bias.shape, products, zeros, data=layer.bias, name=f"{name}b")

    x, y = tensor("x", net.shape), tensor("y", (1, net.y.bias.size))
    c, d, s, m, p = (tensor(name, net.inner) for name in "cdsmp")

    def window(layer: device.Layer) -> dict[str, int]:
        return {
            "padding": 0,
            "dilationHFactor": layer.dilation[0],
            "dilationWFactor": layer.dilation[1],
            "strideH": layer.stride[0],
            "strideW": layer.stride[1],
            "fusedActivationFunction": {"none": 0, "relu": 1}[layer.activation],
        }

    none = {"fusedActivationFunction": 0}
    pool = {"padding": 0, "strideH": 1, "strideW": 1, "filterHeight": 3, "filterWidth": 3, **none}
    depthwise = {**window(net.d), "depthMultiplier": 1}
    nodes = [
        ("CONV_2D", ("Conv2DOptions", window(net.c)), [x, *operands(net.c, 0, "c")], [c], 3),
        ("DEPTHWISE_CONV_2D", ("DepthwiseConv2DOptions", depthwise), [c, *operands(net.d, 3, "d")], [d], 3),
        ("ADD", ("AddOptions", none), [c, d], [s], 2),
        ("MAX_POOL_2D", ("Pool2DOptions", pool), [s], [m], 2),
        ("AVERAGE_POOL_2D", ("Pool2DOptions", pool), [m], [p], 2),
        ("FULLY_CONNECTED", ("FullyConnectedOptions", none), [p, *operands(net.y, 0, "y")], [y], 4),
    ]
    return bittrue.load(chain(nodes))


def exact_factors(source: float, weights: Array, result: float) -> Array:
    return np.float64(F32(source)) * np.asarray(weights, F32).astype(np.float64) / np.float64(F32(result))


def q31_add(a: Array, b: Array, net: Net, **wrong: Any) -> Array:
    scales, zeros = (tuple(table[k] for k in "cds") for table in (net.scales, net.zeros))
    return device.add(a, b, wrong.pop("scales", scales), wrong.pop("zeros", zeros), **wrong)


def whole_average(x: Array, net: Net, count_all: bool = False, rounding: Any = away) -> Array:
    """Ties away from zero; zero points play no part."""
    total, count = windows(x, net)
    return clip(rounding(total / (count * 0 + net.taps**2 if count_all else count)), str(x.dtype))


# -- ONNX --------------------------------------------------------------------------------------------------------------
def _onnx_layer(layer: device.Layer, name: str) -> dict[str, Array]:
    w = layer.weights
    if layer.kind != "dense":
        w = np.ascontiguousarray(w.transpose((3, 0, 1, 2) if layer.kind == "depthwise" else (0, 3, 1, 2)))
    dense = layer.kind == "dense"
    steps = layer.weight_scales[:1].reshape(()) if dense else layer.weight_scales
    return {
        f"{name}_w": w,
        f"{name}_ws": np.asarray(steps, F32),
        f"{name}_wz": np.full(np.shape(steps), layer.weight_zero, w.dtype),
        f"{name}_b": layer.bias,
        f"{name}_bs": np.asarray(steps * F32(layer.in_scale), F32),
        f"{name}_bz": np.zeros(np.shape(steps), np.int32),
    }


def _onnx_window(layer: device.Layer) -> dict[str, Any]:
    top, bottom, left, right = layer.pads
    return {
        "strides": layer.stride,
        "dilations": layer.dilation,
        "pads": (top, left, bottom, right),
        "group": layer.weights.shape[-1] if layer.kind == "depthwise" else 1,
        "kernel_shape": layer.weights.shape[1:3],
    }


_POOL = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}


def _onnx_model(net: Net, nodes: list[Any]) -> bittrue.Model:
    kind = TensorProto.UINT8 if net.c.dtype == "uint8" else TensorProto.INT8
    constants: dict[str, Array] = {}
    for name, layer in (("c", net.c), ("d", net.d), ("y", net.y)):
        constants |= _onnx_layer(layer, name)
    for name in net.scales:
        constants[f"{name}_s"] = F32(net.scales[name]).reshape(())
        constants[f"{name}_z"] = np.asarray(net.zeros[name], net.c.dtype)
    used = {i for node in nodes for i in node.input}
    n, h, w, c = net.shape
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", kind, (n, c, h, w))],
        [helper.make_tensor_value_info("y", kind, (1, net.y.bias.size))],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items() if k in used],
    )
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("com.microsoft", 1)]
    return bittrue.load(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())


def qoperator(net: Net) -> bittrue.Model:
    def q(name: str) -> list[str]:
        return [name, f"{name}_s", f"{name}_z"]

    def layer(source: str, name: str) -> list[str]:
        return [*q(source), f"{name}_w", f"{name}_ws", f"{name}_wz"]

    ms = {"domain": "com.microsoft"}
    nodes = [
        helper.make_node("QLinearConv", [*layer("x", "c"), "c_s", "c_z", "c_b"], ["c"], **_onnx_window(net.c)),
        helper.make_node("QLinearConv", [*layer("c", "d"), "d_s", "d_z", "d_b"], ["d"], **_onnx_window(net.d)),
        helper.make_node("QLinearAdd", [*q("c"), *q("d"), "s_s", "s_z"], ["s"], **ms),
        helper.make_node("MaxPool", ["s"], ["m"], **_POOL),
        helper.make_node("QLinearAveragePool", [*q("m"), "p_s", "p_z"], ["p"], **_POOL, **ms),
        helper.make_node("Flatten", ["p"], ["flat"]),
        helper.make_node(
            "QGemm",
            ["flat", "p_s", "p_z", "y_w", "y_ws", "y_wz", "y_b", "y_s", "y_z"],
            ["y"],
            transB=1,
            **ms,
        ),
    ]
    return _onnx_model(net, nodes)


def qdq(net: Net) -> bittrue.Model:
    nodes: list[Any] = []

    def real(name: str, source: str = "") -> str:
        nodes.append(helper.make_node("DequantizeLinear", [source or name, f"{name}_s", f"{name}_z"], [f"{name}_r"]))
        return f"{name}_r"

    def weights(name: str) -> list[str]:
        for k in "wb":
            parts = [f"{name}_{k}", f"{name}_{k}s", f"{name}_{k}z"]
            nodes.append(helper.make_node("DequantizeLinear", parts, [f"{name}_{k}_r"], axis=0))
        return [f"{name}_w_r", f"{name}_b_r"]

    def made(name: str, kind: str, inputs: list[str], relu: bool = False, **attributes: Any) -> None:
        nodes.append(helper.make_node(kind, inputs, [f"{name}_f"], **attributes))
        if relu:
            nodes.append(helper.make_node("Relu", [f"{name}_f"], [f"{name}_a"]))
        nodes.append(
            helper.make_node("QuantizeLinear", [f"{name}_{'a' if relu else 'f'}", f"{name}_s", f"{name}_z"], [name])
        )

    made("c", "Conv", [real("x"), *weights("c")], net.c.activation == "relu", **_onnx_window(net.c))
    one = real("c")
    made("d", "Conv", [one, *weights("d")], **_onnx_window(net.d))
    made("s", "Add", [one, real("d")])
    made("m", "MaxPool", [real("s")], **_POOL)
    made("p", "AveragePool", [real("m")], **_POOL)
    nodes.append(helper.make_node("Flatten", ["p"], ["flat"]))
    made("y", "Gemm", [real("p", "flat"), *weights("y")], transB=1)
    return _onnx_model(net, nodes)


def real_factors(source: float, weights: Array, result: float) -> Array:
    return np.asarray(F32(source) * np.asarray(weights, F32) / F32(result), np.float64)


def _fma(a: Any, b: Any, c: Any) -> Any:
    return F32(np.float64(a) * np.float64(b) + np.float64(c))


def fused_add(a: Array, b: Array, net: Net, scales: Any = None, zeros: Any = None, sign: int = 1) -> Array:
    sa, sb, sc = (F32(v) for v in scales or [net.scales[k] for k in "cds"])
    za, zb, zc = zeros or [net.zeros[k] for k in "cds"]
    one, two = sa / sc, sign * sb / sc
    constant = F32(zc) - _fma(one, F32(za), two * F32(zb))
    total = _fma(a.astype(F32), one, _fma(b.astype(F32), two, constant))
    return clip(even(total), str(a.dtype))


def real_average(x: Array, net: Net, count_all: bool = False, rounding: Any = even) -> Array:
    before, zero = F32(net.scales["m"]), net.zeros["m"]
    _, count = windows(x, net)
    total = sum(tapped((x.astype(F32) - F32(zero)) * before, net), F32(0))
    value = total / (count * 0 + net.taps**2 if count_all else count).astype(F32) / F32(net.scales["p"])
    return clip(rounding(value + F32(net.zeros["p"])), str(x.dtype))


# -- Caffe2 ------------------------------------------------------------------------------------------------------------
def caffe2(net: Net) -> bittrue.Model:
    predict, init = nets.new("predict"), nets.new("init")
    predict.external_input.append("x")
    nets.add(
        init,
        "Int8GivenTensorFill",
        "",
        "x",
        shape=list(net.shape),
        Y_scale=net.scales["x"],
        Y_zero_point=net.zeros["x"],
    )

    def out(name: str) -> dict[str, Any]:
        return {"Y_scale": float(F32(net.scales[name])), "Y_zero_point": net.zeros[name]}

    def layer(kind: str, source: str, name: str, layer: device.Layer, **attributes: Any) -> None:
        w = np.moveaxis(layer.weights, 3, 0).reshape(-1, 3, 3, 1) if layer.kind == "depthwise" else layer.weights
        nets.fill(init, f"{name}_w", np.ascontiguousarray(w), float(layer.weight_scales[0]), layer.weight_zero)
        nets.fill(init, f"{name}_b", layer.bias, float(F32(layer.in_scale) * layer.weight_scales[0]))
        predict.external_input.extend([f"{name}_w", f"{name}_b"])
        nets.add(predict, kind, f"{source} {name}_w {name}_b", name, **attributes, **out(name))

    def window(layer: device.Layer) -> dict[str, Any]:
        top, bottom, left, right = layer.pads
        return {
            "order": "NHWC",
            "kernel": 3,
            "stride_h": layer.stride[0],
            "stride_w": layer.stride[1],
            "dilation": layer.dilation[0],
            "pad_t": top,
            "pad_b": bottom,
            "pad_l": left,
            "pad_r": right,
        }

    layer("Int8ConvRelu" if net.c.activation == "relu" else "Int8Conv", "x", "c", net.c, **window(net.c))
    layer("Int8Conv", "c", "d", net.d, **window(net.d), group=net.inner[-1])
    nets.add(predict, "Int8Add", "c d", "s", **out("s"))
    nets.add(predict, "Int8MaxPool", "s", "m", order="NHWC", kernel=3, stride=1, pad=1, **out("m"))
    nets.add(predict, "Int8AveragePool", "m", "p", order="NHWC", kernel=3, stride=1, pad=1, **out("p"))
    layer("Int8FC", "p", "y", net.y)
    predict.external_output.append("y")
    return bittrue.load(predict.SerializeToString(), weights=init.SerializeToString())


def shared_add(a: Array, b: Array, net: Net, scales: Any = None, zeros: Any = None, sign: int = 1) -> Array:
    sa, sb, sc = (F32(v) for v in scales or [net.scales[k] for k in "cds"])
    za, zb, zc = zeros or [net.zeros[k] for k in "cds"]
    larger = max(sa / sc, sb / sc)
    r = 21 - int(np.floor(np.log2(np.float64(larger))))
    wa, wb = (int(np.rint(F32(s / sc) * 2.0**r)) for s in (sa, sb))
    total = wa * (a.astype(np.int64) - za) + sign * wb * (b.astype(np.int64) - zb)
    return clip(np.sign(total) * ((np.abs(total) + (1 << (r - 1))) >> r) + zc, str(a.dtype))


def all_taps_average(x: Array, net: Net, count_all: bool = True, rounding: Any = away) -> Array:
    scale, zero = F32(net.scales["p"]), net.zeros["p"]
    total, count = windows(x, net)
    count = count if not count_all else count * 0 + net.taps**2
    inside = windows(np.ones_like(x), net)[0]
    return clip(
        rounding((total - zero * inside).astype(F32) * F32(scale / (scale * count.astype(F32)))) + zero, str(x.dtype)
    )


# -- SNPS Caffe --------------------------------------------------------------------------------------------------------
def snps(net: Net) -> bittrue.Model:
    n, h, w, c = net.shape
    files = Files({"data": (n, c, h, w)})
    eight = {"quantize_method": "tflite", "saturate": "Signed_8bit"}
    files.add("Power", "x", ["data"], ["x"], saturate="Signed_8bit")

    def number(value: float) -> float:
        return float(F32(value))

    def ends(source: str, name: str) -> dict[str, Any]:
        return {
            "input_scale": number(net.scales[source]),
            "input_zero_point": net.zeros[source],
            "output_scale": number(net.scales[name]),
            "output_zero_point": net.zeros[name],
            **eight,
        }

    def convolution(source: str, name: str, layer: device.Layer) -> None:
        top, bottom, left, right = layer.pads
        filters = layer.bias.size
        depthwise = layer.kind == "depthwise"
        w = np.moveaxis(layer.weights, 3, 0).reshape(-1, 1, 3, 3) if depthwise else layer.weights.transpose(0, 3, 1, 2)
        fields = {
            "num_output": filters,
            "kernel_h": 3,
            "kernel_w": 3,
            "stride_h": layer.stride[0],
            "stride_w": layer.stride[1],
            "dilation": layer.dilation[0],
            "group": filters if depthwise else 1,
            "pad_t": top,
            "pad_b": bottom,
            "pad_l": left,
            "pad_r": right,
            "bias_term": True,
            "per_channel_scale_weight": True,
            **ends(source, name),
        }
        blobs = [np.ascontiguousarray(w), layer.bias, layer.weight_scales, np.zeros(filters)]
        files.add("Convolution", name, [source], [name], blobs, **fields)

    convolution("x", "c", net.c)
    convolution("c", "d", net.d)
    files.add(
        "Eltwise",
        "s",
        ["c", "d"],
        ["s"],
        operation="SUM",
        input_scale=[number(net.scales["c"]), number(net.scales["d"])],
        input_zero_point=[net.zeros["c"], net.zeros["d"]],
        output_scale=number(net.scales["s"]),
        output_zero_point=net.zeros["s"],
        **eight,
    )
    files.add("Pooling", "m", ["s"], ["m"], pool="MAX", kernel_size=3, stride=1, pad=1)
    files.add("Pooling", "p", ["m"], ["p"], pool="AVE_EXC_PAD", kernel_size=3, stride=1, pad=1, **ends("m", "p"))
    fields = {"num_output": net.y.bias.size, "weight_scale": number(net.y.weight_scales[0]), **ends("p", "y")}
    files.add("InnerProduct", "y", ["p"], ["y"], [net.y.weights, net.y.bias], **fields)
    return bittrue.load(files.network, weights=files.learned)


def binary64_two_steps(acc: int, m: int, e: int) -> int:
    one = away(np.float64(acc) * np.ldexp(np.float64(m), -31))
    return int(away(F32(one) * F32(np.ldexp(1.0, e))))


# -- TVM ---------------------------------------------------------------------------------------------------------------
def tvm(net: Net) -> bittrue.Model:
    n, h, w, c = net.shape
    f32 = F32

    def finished(acc: Any, layer: device.Layer, axis: int) -> Any:
        total = qnn.bias_add(acc, layer.bias, axis)
        steps = layer.weight_scales if layer.kind != "dense" else layer.weight_scales[0]
        y = qnn.requantize(total, f32(layer.in_scale) * steps, 0, f32(layer.out_scale), layer.out_zero, axis=axis)
        return qnn.clip(y, layer.out_zero, 127) if layer.activation == "relu" else y

    def convolution(x: Any, layer: device.Layer) -> Any:
        top, bottom, left, right = layer.pads
        count = layer.bias.size
        w = np.moveaxis(layer.weights, 3, 0).transpose(0, 1, 2, 3) if layer.kind == "depthwise" else layer.weights
        w = w.reshape(count, 1, 3, 3) if layer.kind == "depthwise" else w.transpose(0, 3, 1, 2)
        acc = qnn.conv2d(
            x,
            np.ascontiguousarray(w),
            layer.in_zero,
            0,
            f32(layer.in_scale),
            layer.weight_scales,
            (3, 3),
            count,
            strides=layer.stride,
            padding=(top, left, bottom, right),
            dilation=layer.dilation,
            groups=count if layer.kind == "depthwise" else 1,
        )
        return finished(acc, layer, 1)

    s, z = {k: f32(v) for k, v in net.scales.items()}, net.zeros
    x = qnn.var("x", (n, c, h, w), "int8")
    one = convolution(x, net.c)
    two = convolution(one, net.d)
    total = qnn.add(one, two, s["c"], z["c"], s["d"], z["d"], s["s"], z["s"])
    largest = qnn.max_pool2d(total, (3, 3), (1, 1), padding=(1, 1))
    mean = qnn.avg_pool2d(
        largest, s["m"], z["m"], s["p"], z["p"], (3, 3), (1, 1), (1, 1), (1, 1), count_include_pad=False, layout="NCHW"
    )
    flat = qnn.nn.reshape(mean, (1, int(np.prod(net.inner))))
    y = qnn.dense(flat, net.y.weights, z["p"], 0, s["p"], net.y.weight_scales[0], net.y.bias.size)
    return qnn.model(finished(y, net.y, 1))


def product_factors(source: float, weights: Array, result: float) -> Array:
    return (F32(source) * np.asarray(weights, F32)).astype(np.float64) / np.float64(F32(result))


def requantized_add(
    a: Array, b: Array, net: Net, scales: Any = None, zeros: Any = None, sign: int = 1, rounding: Any = device.one_step
) -> Array:
    sa, sb, sc = scales or [net.scales[k] for k in "cds"]
    za, zb, zc = zeros or [net.zeros[k] for k in "cds"]

    def moved(x: Array, scale: float, zero: int) -> Array:
        m = device.encode(float(np.float64(F32(scale)) / np.float64(F32(sc))))
        return device.each(rounding, (x.astype(np.int64) - zero)[..., None], [m])[..., 0] + zc

    return clip(moved(a, sa, za) + sign * (moved(b, sb, zb) - zc), str(a.dtype))


def trunc_average(x: Array, net: Net, count_all: bool = False, rounding: Any = np.trunc) -> Array:
    return whole_average(x, net, count_all, rounding)


# -- MXNet -------------------------------------------------------------------------------------------------------------
def by_ranges(net: Net) -> Net:
    """Scales are quantized values per unit there; weights reach the end of their range, biases follow from 8 bits."""
    levels = {name: float(F32(127.5) / F32(_range(scale))) for name, scale in net.scales.items()}
    found = {}
    for name, source in (("c", "x"), ("d", "c"), ("y", "p")):
        layer = getattr(net, name)
        weights = np.clip(layer.weights, -126, 126)
        axis = 3 if layer.kind == "depthwise" else 0
        rows = np.moveaxis(weights, axis, 0)
        rows[(slice(None), *(0,) * (weights.ndim - 1))] = 127
        steps = (F32(127.5) / (layer.weight_scales * F32(127.5))).astype(F32)
        bias = layer.bias
        if layer.kind == "dense":
            per = F32(F32(levels[source]) * steps[0]) / F32(127.5 / DENSE_BIAS)
            bias = away(((bias >> 7).astype(np.float32) * per).astype(np.float64)).astype(np.int32)
        found[name] = replace(
            layer, weights=weights, weight_scales=steps, bias=bias, in_scale=levels[source], out_scale=levels[name]
        )
    return replace(net, **found)


DENSE_BIAS = 60.0


def _range(scale: float) -> float:
    return float(F32(F32(127.5) * F32(scale)))


def mxnet(net: Net) -> bittrue.Model:
    """Fused layers, as the quantizer writes them."""
    made = MxNet()

    def calibrated(name: str) -> dict[str, str]:
        r = _range(net.scales[name])
        return {"min_calib_range": repr(-r), "max_calib_range": repr(r)}

    def outputs(node: int) -> list[list[int]]:
        return [[node, k, 0] for k in range(3)]

    def numbers(name: str, value: Any) -> list[int]:
        return made.variable(name, np.asarray(value))

    def convolution(node: int, name: str, layer: device.Layer) -> int:
        count, depthwise = layer.bias.size, layer.kind == "depthwise"
        q = np.moveaxis(layer.weights, 3, 0).reshape(-1, 1, 3, 3) if depthwise else layer.weights.transpose(0, 3, 1, 2)
        top = F32(127.5) / layer.weight_scales
        reals = np.where(q == 127, 127.5, q).astype(np.float64) / 127.5 * top.reshape(-1, 1, 1, 1)
        bias = layer.bias / (layer.weight_scales.astype(np.float64) * layer.in_scale)
        fields = {
            "kernel": "(3, 3)",
            "num_filter": str(count),
            "no_bias": "False",
            "stride": str(tuple(layer.stride)),
            "dilate": str(tuple(layer.dilation)),
            "pad": str((layer.pads[0], layer.pads[2])),
            "num_group": str(count if depthwise else 1),
        }
        data, low, high = outputs(node)
        inputs = [data, numbers(f"{name}_w", reals.astype(F32)), numbers(f"{name}_b", bias.astype(F32)), low, high]
        return made.add(
            "_sg_mkldnn_conv", name, inputs, [("Convolution", fields)], quantized="true", **calibrated(name)
        )

    def pool(node: int, name: str, kind: str) -> int:
        fields = {"kernel": "(3, 3)", "pad": "(1, 1)", "stride": "(1, 1)", "pool_type": kind}
        return made.add("_contrib_quantized_pooling", name, outputs(node), **fields, count_include_pad="False")

    source = made.add("_contrib_quantize_v2", "x", [made.variable("data")], out_type="int8", **calibrated("x"))
    one = convolution(source, "c", net.c)
    two = convolution(one, "d", net.d)
    (a, *ends), (b, *others) = outputs(one), outputs(two)
    total = made.add("_contrib_quantized_elemwise_add", "s", [a, b, *ends, *others], **calibrated("s"))
    mean = pool(pool(total, "m", "max"), "p", "avg")
    data, low, high = outputs(mean)
    per = F32(F32(net.y.in_scale) * net.y.weight_scales[0]) / F32(127.5 / DENSE_BIAS)
    width = float(F32(127.5) / net.y.weight_scales[0])
    bias = even(net.y.bias / np.float64(per)).astype(np.int8)
    ranges = [
        numbers(f"y_{k}", np.array([v], F32))
        for k, v in (("wl", -width), ("wh", width), ("bl", -DENSE_BIAS), ("bh", DENSE_BIAS))
    ]
    inputs = [data, numbers("y_w", net.y.weights), numbers("y_b", bias), low, high, *ranges]
    fields = {"num_hidden": str(bias.size), "no_bias": "False"}
    last = made.add(
        "_sg_mkldnn_fully_connected", "y", inputs, [("FullyConnected", fields)], quantized="True", **calibrated("y")
    )
    return bittrue.load(made.symbol(*outputs(last)), weights=made.weights())


def level_factors(source: float, weights: Array, result: float) -> Array:
    return np.asarray(F32(F32(result) / F32(source)) / np.asarray(weights, F32), np.float64)


def two_products_add(a: Array, b: Array, net: Net, scales: Any = None, zeros: Any = None, sign: int = 1) -> Array:
    sa, sb, sc = (F32(_range(v)) for v in scales or [net.scales[k] for k in "cds"])
    parts = [x.astype(F32) * F32(F32(F32(127.5) / sc) / F32(F32(127.5) / s)) for x, s in ((a, sa), (b, sb))]
    return clip(even(parts[0] + sign * parts[1]), str(a.dtype))


def even_average(x: Array, net: Net, count_all: bool = False, rounding: Any = even) -> Array:
    total, count = windows(x, net)
    return clip(
        rounding(total.astype(F32) / (count * 0 + net.taps**2 if count_all else count).astype(F32)), str(x.dtype)
    )


_NAMES = {name: name for name in "xcdsmpy"}
_TVM = {
    "x": "x",
    "c": "qnn.conv2d_3",
    "d": "qnn.conv2d_6",
    "s": "qnn.add",
    "m": "nn.max_pool2d",
    "p": "qnn.avg_pool2d",
    "y": "qnn.dense",
}
_MXNET = {name: f"{name}_output{'0' if name == 'x' else ''}" for name in "xcdsmpy"}
_Q31 = {"conv": device.two_step, "depthwise": device.two_step, "dense": device.one_step_away}
_REAL = dict.fromkeys(("conv", "depthwise", "dense"), device.real_even)
_UP = dict.fromkeys(("conv", "depthwise", "dense"), device.one_step)
FORMATS: dict[str, Format] = {
    "tflite": Format(
        "litert", tflite, _NAMES, exact_factors, _Q31, q31_add, whole_average, channels_last=True, relu=True
    ),
    "qoperator": Format("onnxruntime", qoperator, _NAMES, real_factors, _REAL, fused_add, real_average),
    "qoperator-u8": Format(
        "onnxruntime",
        qoperator,
        _NAMES,
        real_factors,
        _REAL,
        fused_add,
        real_average,
        dtype="uint8",
        weight_zero=121,
        per_channel=False,
    ),
    "qdq": Format("onnxruntime", qdq, _NAMES, real_factors, _REAL, fused_add, real_average),
    "caffe2": Format(
        "caffe2",
        caffe2,
        _NAMES,
        real_factors,
        dict.fromkeys(_Q31, device.two_step),
        shared_add,
        all_taps_average,
        dtype="uint8",
        channels_last=True,
        relu=True,
        per_channel=False,
        weight_zero=121,
        counts_padding=True,
    ),
    "snps_caffe": Format(
        "snps_caffe",
        snps,
        _NAMES,
        exact_factors,
        {"conv": device.one_step, "depthwise": device.two_step, "dense": binary64_two_steps},
        q31_add,
        whole_average,
    ),
    "tvm": Format("tvm-qnn", tvm, _TVM, product_factors, _UP, requantized_add, trunc_average, relu=True),
    "mxnet": Format(
        "mxnet",
        mxnet,
        _MXNET,
        level_factors,
        _REAL,
        two_products_add,
        even_average,
        symmetric=True,
        even_pads=True,
        adjust=by_ranges,
    ),
}
