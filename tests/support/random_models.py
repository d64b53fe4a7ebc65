"""Random float networks of the usual blocks, and random ways to quantize them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from .float_models import F32, Layers


def _clipped(m: Layers, x: str) -> str:
    return m.add("Clip", x, m.constant(F32(0)), m.constant(F32(6)))


def _hard_sigmoid(m: Layers, x: str) -> str:
    if m.rng.random() < 0.5:
        return m.add("HardSigmoid", x, alpha=1 / 6, beta=0.5)
    return m.add("Div", _clipped(m, m.add("Add", x, m.constant(F32(3)))), m.constant(F32(6)))


_ACTIVATIONS: Mapping[str, Callable[[Layers, str], str]] = {
    "none": lambda m, x: x,
    "relu": lambda m, x: m.add("Relu", x),
    "clip": _clipped,
    "leaky": lambda m, x: m.add("LeakyRelu", x, alpha=float(m.rng.choice([0.01, 0.1, 0.25]))),
    "silu": lambda m, x: m.add("Mul", x, m.add("Sigmoid", x)),
    "swish": lambda m, x: m.add("Mul", x, _hard_sigmoid(m, x)),
    "tanh": lambda m, x: m.add("Tanh", x),
}


def _one(rng: np.random.Generator, choices: Sequence[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))]


class _Image:
    """A tensor [1, channels, size, size] that blocks are put on."""

    def __init__(self, m: Layers, x: str, channels: int, size: int) -> None:
        self.m, self.x, self.channels, self.size = m, x, channels, size

    def conv(self, filters: int, taps: int, *, stride: int = 1, groups: int = 1, act: str = "") -> None:
        norm = bool(self.m.rng.random() < 0.4)
        self.x = self.m.conv(self.x, self.channels, filters, taps, stride=stride, groups=groups, norm=norm)
        self.x = _ACTIVATIONS[act or _one(self.m.rng, list(_ACTIVATIONS))](self.m, self.x)
        self.channels, self.size = filters, -(-self.size // stride)

    def residual(self) -> None:
        before, channels = self.x, self.channels
        self.conv(2 * channels, 1)
        self.conv(2 * channels, 3, groups=2 * channels)
        if self.m.rng.random() < 0.5:
            self.excite()
        self.conv(channels, 1, act="none")
        self.x = self.m.add("Add", *((before, self.x) if self.m.rng.random() < 0.5 else (self.x, before)))

    def excite(self) -> None:
        m, kept, channels = self.m, self.x, self.channels
        self.x = m.add("GlobalAveragePool", kept) if m.rng.random() < 0.5 else self._mean(1)
        self.conv(max(2, channels // 4), 1, act="relu")
        self.conv(channels, 1, act="none")
        gate = m.add("Sigmoid", self.x) if m.rng.random() < 0.5 else _hard_sigmoid(m, self.x)
        self.x = m.add("Mul", kept, gate)

    def branches(self) -> None:
        kept, channels, parts = self.x, self.channels, []
        for taps in (1, 3):
            self.x, self.channels = kept, channels
            self.conv(_one(self.m.rng, (3, 8)), taps)
            parts.append((self.x, self.channels))
        pooled = self.m.add("AveragePool", kept, kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1])
        parts.append((pooled, channels))
        self.x = self.m.add("Concat", *(name for name, _ in parts), axis=1)
        self.channels = sum(count for _, count in parts)

    def split(self) -> None:
        first = self.channels // 2
        sizes = self.m.constant(np.array([first, self.channels - first]))
        parts = [self.m.name("split") for _ in range(2)]
        self.m.nodes.append(onnx.helper.make_node("Split", [self.x, sizes], parts, self.m.name("Split"), axis=1))
        kept, self.x, self.channels = parts[0], parts[1], self.channels - first
        self.conv(first, 3)
        self.x = self.m.add("Concat", self.x, kept, axis=1)
        self.channels = 2 * first

    def shuffle(self) -> None:
        if self.channels % 2:
            return
        shape = [1, self.channels, self.size, self.size]
        apart = self.m.constant(np.array([1, 2, self.channels // 2, self.size, self.size]))
        self.x = self.m.add("Transpose", self.m.add("Reshape", self.x, apart), perm=[0, 2, 1, 3, 4])
        self.x = self.m.add("Reshape", self.x, self.m.constant(np.array(shape)))

    def shrink(self) -> None:
        if self.size < 4:
            return
        kind = _one(self.m.rng, ("MaxPool", "AveragePool"))
        self.x = self.m.add(kind, self.x, kernel_shape=[2, 2], strides=[2, 2])
        self.size //= 2

    def grow(self) -> None:
        if self.m.rng.random() < 0.5:
            weights, filters = self.m.weights(self.channels, 6, 2, 2), 6
            self.x = self.m.add("ConvTranspose", self.x, weights, self.m.vector(filters), strides=[2, 2])
            self.channels = filters
        else:
            double = self.m.constant(np.array([1, 1, 2, 2], F32))
            how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            self.x = self.m.add("Resize", self.x, "", double, mode="nearest", **how)
        self.size *= 2

    def plain(self) -> None:
        self.conv(_one(self.m.rng, (4, 7, 8)), _one(self.m.rng, (1, 3, 5)), stride=_one(self.m.rng, (1, 1, 2)))

    def _mean(self, keep: int) -> str:
        return self.m.add("ReduceMean", self.x, axes=[2, 3], keepdims=keep)

    def classify(self) -> None:
        m, classes = self.m, 5
        x = self._mean(0) if m.rng.random() < 0.5 else m.add("Flatten", m.add("GlobalAveragePool", self.x))
        turned = int(m.rng.integers(2))
        weights = m.weights(classes, self.channels) if turned else m.weights(self.channels, classes)
        x = m.add("Gemm", x, weights, m.vector(classes), transB=turned)
        m.add(_one(m.rng, ("Softmax", "Identity", "Sigmoid")), x, out="y")


_BLOCKS = ("plain", "residual", "excite", "branches", "split", "shuffle", "shrink", "grow")


def random_network(rng: np.random.Generator) -> onnx.ModelProto:
    """A convolution, two to five blocks, and a classifier."""
    m, size = Layers(rng), _one(rng, (8, 9, 12))
    image = _Image(m, "x", 3, size)
    image.conv(8, 3, stride=_one(rng, (1, 2)))
    for _ in range(int(rng.integers(2, 6))):
        getattr(image, _one(rng, _BLOCKS))()
    image.classify()
    return m.model((1, 3, size, size), (1, 5))


def random_form(rng: np.random.Generator) -> dict[str, Any]:
    """Arguments of quantize_static."""
    from onnxruntime.quantization import QuantFormat, QuantType

    activation, weight = _one(rng, (("QUInt8", "QUInt8"), ("QUInt8", "QInt8"), ("QInt8", "QInt8")))
    chances = {
        "ActivationSymmetric": 0.2,
        "AddQDQPairToWeight": 0.2,
        "DedicatedQDQPair": 0.1,
        "QDQKeepRemovableActivations": 0.2,
        "WeightSymmetric": 0.2,
    }
    extra: dict[str, bool] = {name: True for name, chance in chances.items() if rng.random() < chance}
    if rng.random() < 0.2:
        extra["QuantizeBias"] = False
    return {
        "quant_format": QuantFormat.QDQ if rng.random() < 0.7 else QuantFormat.QOperator,
        "activation_type": getattr(QuantType, activation),
        "weight_type": getattr(QuantType, weight),
        "per_channel": bool(rng.random() < 0.5),
        "reduce_range": bool(rng.random() < 0.1),
        "extra_options": extra,
    }
