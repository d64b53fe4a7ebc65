"""Random networks of real images: what the runtime computes in blocks of channels, and what leaves the blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from .onnx_models import build

Image = tuple[str, int, int]  # name, channels, height and width
_FINISHES = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "HardSwish", "Clip", "Elu")


@dataclass
class ImageNetworkMaker:
    """A network that grows node by node; every image may be read again later."""

    rng: np.random.Generator
    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    images: list[Image] = field(default_factory=list)

    def model(self) -> tuple[bytes, list[np.ndarray]]:
        """The network, whose results are what nothing reads and a few more, and its input."""
        rng = self.rng
        channels, size = int(rng.choice([3, 8, 16, 20, 24, 32])), int(rng.choice([8, 11, 14]))
        self.images = [("x", channels, size)]
        for _ in range(int(rng.integers(2, 9))):
            step = getattr(self, f"_{rng.choice(_STEPS)}")
            step(*self.images[-1])
        if not self.nodes:
            self._activation(*self.images[-1])
        read = {name for node in self.nodes for name in node.input}
        outputs = [name for name, _, _ in self.images[1:] if name not in read or rng.random() < 0.1]
        x = rng.standard_normal((int(rng.integers(1, 3)), channels, size, size)).astype(np.float32)
        return build(self.nodes, {"x": x}, dict.fromkeys(outputs, TensorProto.FLOAT), self.constants, opset=17)

    def _constant(self, *shape: int) -> str:
        return self._given((self.rng.standard_normal(shape) * 0.3).astype(np.float32))

    def _given(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def _emit(self, op: str, inputs: list[str], **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def _convolution(self, name: str, channels: int, size: int) -> None:
        rng = self.rng
        taps = int(rng.choice([1, 3, 3, 5])) if size > 4 else 1
        filters, groups = int(rng.choice([10, 12, 16, 20, 24, 32])), 1
        if rng.random() < 0.25:
            filters = groups = channels
        elif channels % 32 == 0 and rng.random() < 0.5:
            filters, groups = 32, 2
        stride, border = int(rng.choice([1, 1, 2])), int(rng.choice([0, taps // 2]))
        inputs = [name, self._constant(filters, channels // groups, taps, taps)]
        inputs += [self._constant(filters)] if rng.random() < 0.7 else []
        result = self._emit("Conv", inputs, strides=[stride] * 2, pads=[border] * 4, group=groups)
        self.images.append((result, filters, (size + 2 * border - taps) // stride + 1))
        if rng.random() < 0.5:
            self._activation(*self.images[-1])

    def _activation(self, name: str, channels: int, size: int) -> None:
        op = str(self.rng.choice(_FINISHES))
        ends = [self._given(np.float32(end)) for end in (-0.2, 0.4)] if op == "Clip" else []
        attributes = {"alpha": 0.1} if op == "LeakyRelu" else {}
        self.images.append((self._emit(op, [name, *ends], **attributes), channels, size))

    def _pool(self, name: str, channels: int, size: int) -> None:
        if size < 4:
            return
        op, stride, border = (
            str(self.rng.choice(["MaxPool", "AveragePool"])),
            *map(int, self.rng.integers((1, 0), (3, 2))),
        )
        more = {"count_include_pad": int(self.rng.integers(2))} if op == "AveragePool" else {}
        result = self._emit(op, [name], kernel_shape=[3, 3], strides=[stride] * 2, pads=[border] * 4, **more)
        self.images.append((result, channels, (size + 2 * border - 3) // stride + 1))

    def _global_pool(self, name: str, channels: int, size: int) -> None:
        op = str(self.rng.choice(["GlobalAveragePool", "GlobalMaxPool"]))
        self.images.append((self._emit(op, [name]), channels, 1))

    def _normalization(self, name: str, channels: int, size: int) -> None:
        parts = [self._constant(channels) for _ in range(4)]
        self.constants[parts[3]] = np.abs(self.constants[parts[3]]) + np.float32(0.1)
        self.images.append((self._emit("BatchNormalization", [name, *parts]), channels, size))

    def _pair(self, name: str, channels: int, size: int) -> None:
        others = [other for other, c, s in self.images[:-1] if (c, s) == (channels, size)]
        if others:
            op = str(self.rng.choice(["Add", "Mul"]))
            self.images.append((self._emit(op, [name, str(self.rng.choice(others))]), channels, size))

    def _concatenation(self, name: str, channels: int, size: int) -> None:
        others = [(other, c) for other, c, s in self.images[:-1] if s == size]
        if others:
            other, more = others[int(self.rng.integers(len(others)))]
            self.images.append((self._emit("Concat", [name, other], axis=1), channels + more, size))

    def _enlarged(self, name: str, channels: int, size: int) -> None:
        if size > 20:
            return
        mode = str(self.rng.choice(["nearest", "linear"]))
        ways = ["asymmetric", "half_pixel", "align_corners"] if mode == "linear" else ["asymmetric"]
        attributes = {
            "mode": mode,
            "coordinate_transformation_mode": str(self.rng.choice(ways)),
            "nearest_mode": "floor",
        }
        result = self._emit("Resize", [name, "", self._given(np.float32([1, 1, 2, 2]))], **attributes)
        self.images.append((result, channels, 2 * size))

    def _squeezed(self, name: str, channels: int, size: int) -> None:
        """Channels weighted by what their averages say."""
        average = self._emit("GlobalAveragePool", [name])
        mixed = self._emit("Conv", [average, self._constant(channels, channels, 1, 1)])
        gate = self._emit("Sigmoid", [mixed])
        self.images.append((self._emit("Mul", [name, gate]), channels, size))


_STEPS = (
    *("convolution", "convolution", "convolution", "activation", "pool", "global_pool"),
    *("normalization", "pair", "concatenation", "enlarged", "squeezed"),
)
