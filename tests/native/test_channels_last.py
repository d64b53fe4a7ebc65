"""Pass channels_last: random networks of images keep their bytes, and change their layout at the ends only."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

import bittrue
from support.native import needs_native
from support.onnx_models import KIND, MICROSOFT, build, cases, check, integers, scale, zero_point


class Network:
    """Nodes over images of one type, with all their constants."""

    def __init__(self, rng: np.random.Generator, spatial: int = 2) -> None:
        self.rng, self.spatial = rng, spatial
        self.dtype = np.uint8 if rng.random() < 0.6 else np.int8
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        sizes = [int(v) for v in rng.integers(5, 13, spatial)]
        self.shapes = {"x": (int(rng.integers(1, 3)), int(rng.integers(1, 9)), *sizes)}
        self.scales = {"x": self._quantization("x")}
        self.last = "x"

    def _constant(self, name: str, value: object) -> str:
        self.constants[name] = np.asarray(value)
        return name

    def _quantization(self, name: str) -> tuple[str, str]:
        return (
            self._constant(f"{name}_scale", scale(self.rng)),
            self._constant(f"{name}_zero", zero_point(self.rng, self.dtype)),
        )

    def _emit(
        self, op_type: str, inputs: list[str], shape: tuple[int, ...], domain: str = "", **attributes: object
    ) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], name, domain=domain, **attributes))
        self.shapes[name] = shape
        self.last = name
        return name

    def _out(self) -> tuple[str, tuple[str, str]]:
        name = f"t{len(self.nodes)}"
        return name, self._quantization(name)

    def convolution(self) -> None:
        rng, x = self.rng, self.last
        shape = self.shapes[x]
        depthwise = rng.random() < 0.4
        filters = shape[1] if depthwise else int(rng.integers(1, 20))
        kernel = [int(v) for v in rng.integers(1, 4, self.spatial)]
        kernel = [min(k, e) for k, e in zip(kernel, shape[2:], strict=True)]
        pads = [int(rng.integers(0, k)) for k in kernel] * 2
        weight_type = np.int8 if self.dtype == np.int8 or rng.random() < 0.6 else np.uint8
        channels = (filters,) if rng.random() < 0.5 else ()
        name, quantization = self._out()
        weights = integers(rng, (filters, 1 if depthwise else shape[1], *kernel), weight_type)
        zeros = zero_point(rng, weight_type, channels) if rng.random() < 0.3 else np.zeros(channels, weight_type)
        operands = [
            self._constant(f"{name}_w", weights),
            self._constant(f"{name}_w_scale", scale(rng, channels)),
            self._constant(f"{name}_w_zero", zeros),
            *quantization,
        ]
        if rng.random() < 0.7:
            operands.append(self._constant(f"{name}_bias", rng.integers(-5000, 5000, filters).astype(np.int32)))
        strides = [int(v) for v in rng.integers(1, 3, self.spatial)]
        out = [
            (e + pads[i] + pads[i] - k) // s + 1
            for i, (e, k, s) in enumerate(zip(shape[2:], kernel, strides, strict=True))
        ]
        self._emit(
            "QLinearConv",
            [x, *self.scales[x], *operands],
            (shape[0], filters, *out),
            group=shape[1] if depthwise else 1,
            kernel_shape=kernel,
            pads=pads,
            strides=strides,
        )
        self.scales[name] = quantization

    def pool(self) -> None:
        x, shape = self.last, self.shapes[self.last]
        if min(shape[2:]) < 2:
            return
        out = (*shape[:2], *(e - 1 for e in shape[2:]))
        if self.rng.random() < 0.5:
            name = self._emit("MaxPool", [x], out, kernel_shape=[2] * self.spatial)
            self.scales[name] = self.scales[x]
            return
        name, quantization = self._out()
        operands = [x, *self.scales[x], *quantization]
        self._emit("QLinearAveragePool", operands, out, MICROSOFT, kernel_shape=[2] * self.spatial)
        self.scales[name] = quantization

    def sum(self) -> None:
        """Of the image and an earlier one of its shape, or a constant per channel."""
        x, shape = self.last, self.shapes[self.last]
        same = [n for n in self.scales if self.shapes[n] == shape]
        name, quantization = self._out()
        other = same[int(self.rng.integers(len(same)))]
        if self.rng.random() < 0.4:
            per_channel = (1, shape[1], *(1,) * self.spatial)
            other = self._constant(f"{name}_other", integers(self.rng, per_channel, self.dtype))
            self.scales[other] = self._quantization(other)
            self.shapes[other] = per_channel
        operands = [x, *self.scales[x], other, *self.scales[other], *quantization]
        self._emit(("QLinearAdd", "QLinearMul")[self.rng.random() < 0.4], operands, shape, MICROSOFT)
        self.scales[name] = quantization

    def table(self) -> None:
        x, shape = self.last, self.shapes[self.last]
        name, quantization = self._out()
        self._emit("QLinearSigmoid", [x, *self.scales[x], *quantization], shape, MICROSOFT)
        self.scales[name] = quantization

    def real(self) -> None:
        """Through real numbers and back."""
        x, shape = self.last, self.shapes[self.last]
        self._emit("DequantizeLinear", [x, *self.scales[x]], shape)
        kind = ("Relu", "Abs", "Ceil", "Sign", "PRelu", "Max")[int(self.rng.integers(6))]
        operands = [self.last]
        if kind in ("PRelu", "Max"):
            per_channel = self.rng.normal(size=(shape[1], *(1,) * self.spatial)).astype(np.float32)
            operands.append(self._constant(f"t{len(self.nodes)}_other", per_channel))
        self._emit(kind, operands, shape)
        name, quantization = self._out()
        self._emit("QuantizeLinear", [self.last, *quantization], shape)
        self.scales[name] = quantization

    def joined(self) -> None:
        x, shape = self.last, self.shapes[self.last]
        fitting = [n for n in self.scales if self.shapes[n][2:] == shape[2:] and self.shapes[n][0] == shape[0]]
        other = fitting[int(self.rng.integers(len(fitting)))]
        name, quantization = self._out()
        operands = [*quantization, x, *self.scales[x], other, *self.scales[other]]
        out = (shape[0], shape[1] + self.shapes[other][1], *shape[2:])
        self._emit("QLinearConcat", operands, out, MICROSOFT, axis=1)
        self.scales[name] = quantization

    def turned(self) -> None:
        """Turned there and back."""
        x, shape = self.last, self.shapes[self.last]
        there = [0, *range(2, 2 + self.spatial), 1]
        back = [there.index(axis) for axis in range(len(there))]
        self._emit("Transpose", [x], tuple(shape[axis] for axis in there), perm=there)
        name = self._emit("Transpose", [self.last], shape, perm=back)
        self.scales[name] = self.scales[x]

    def average(self) -> None:
        x, shape = self.last, self.shapes[self.last]
        name, quantization = self._out()
        out = (*shape[:2], *(1,) * self.spatial)
        self._emit("QLinearGlobalAveragePool", [x, *self.scales[x], *quantization], out, MICROSOFT)
        self.scales[name] = quantization
        self._emit("Flatten", [self.last], out[:2])

    def content(self) -> tuple[bytes, list[np.ndarray]]:
        feed = integers(self.rng, self.shapes["x"], self.dtype)
        outputs = {self.last: KIND[np.dtype(self.dtype)]}
        used = {name for node in self.nodes for name in node.input}
        constants = {name: value for name, value in self.constants.items() if name in used}
        return build(self.nodes, {"x": feed}, outputs, constants)


@pytest.mark.parametrize("part", range(2))
def test_random_networks(request: pytest.FixtureRequest, part: int) -> None:
    outcomes = set()
    for rng in cases(request, part, 2, usual=80):
        network = Network(rng, 1 if rng.random() < 0.2 else 2)
        network.convolution()
        actions = [
            network.convolution,
            network.pool,
            network.sum,
            network.table,
            network.real,
            network.joined,
            network.turned,
        ]
        for _ in range(int(rng.integers(1, 7))):
            actions[int(rng.integers(len(actions)))]()
        if rng.random() < 0.3:
            network.average()
        outcomes.add(check(*network.content()))
    assert "equal" in outcomes


@needs_native
@pytest.mark.parametrize("kind", ["Abs", "Sign", "PRelu", "Max", "Gelu", "IsNaN"])
def test_every_element_wise_operator_follows(kind: str) -> None:
    rng = np.random.default_rng(3)
    network = Network(rng)
    network.shapes["x"] = (1, 8, 6, 6)
    network.convolution()
    x, shape = network.last, network.shapes[network.last]
    network._emit("DequantizeLinear", [x, *network.scales[x]], shape)
    operands = [network.last]
    if kind in ("PRelu", "Max"):
        operands.append(network._constant("other", rng.normal(size=(shape[1], 1, 1)).astype(np.float32)))
    network._emit(kind, operands, shape)
    if kind == "IsNaN":
        network._emit("Cast", [network.last], shape, to=TensorProto.FLOAT)
    network._emit("QuantizeLinear", [network.last, *network.scales[x]], shape)
    network.scales[network.last] = network.scales[x]
    network.pool()
    content, feeds = network.content()
    assert check(content, feeds) == "equal"
    program = bittrue.load(content).prepare("onnxruntime", executor="native")._executor._main
    turned = [step for step in program.schedule.steps if step.operator == "transpose"]
    assert len(turned) <= 2


@needs_native
def test_sums_whose_scales_only_a_run_knows_are_left_alone() -> None:
    network = Network(np.random.default_rng(3))
    network.shapes["x"] = (1, 8, 6, 6)
    network.convolution()
    x = network.last
    operand = [x, *network.scales[x]]
    network._emit("QLinearAdd", [*operand, *operand, "late", network.scales[x][1]], network.shapes[x], MICROSOFT)
    inputs = {"x": integers(network.rng, network.shapes["x"], network.dtype), "late": np.float32(0.05)}
    used = {name: value for name, value in network.constants.items() if name not in inputs}
    content, feeds = build(network.nodes, inputs, {network.last: KIND[np.dtype(network.dtype)]}, used)
    assert check(content, feeds) == "equal"
    program = bittrue.load(content).prepare("onnxruntime", executor="native")._executor._main
    assert [step["late"] for step in program.schedule.steps if step.operator == "add"] == [True]


@needs_native
def test_layouts_change_at_the_ends_only() -> None:
    rng = np.random.default_rng(1)
    network = Network(rng)
    network.shapes["x"] = (1, 8, 12, 12)
    for action in (network.convolution, network.sum, network.table, network.turned, network.joined, network.pool):
        action()
    network.convolution()
    network.average()
    content, _ = network.content()
    session = bittrue.load(content).prepare("onnxruntime", executor="native")
    text = "\n".join(session.execution) if hasattr(session, "execution") else str(session.plan)
    program = session._executor._main
    turned = [step for step in program.schedule.steps if step.operator == "transpose"]
    assert len(turned) == 1, text
    assert not program.missing, text
    without = bittrue.load(content).prepare("onnxruntime", executor="native", passes=[])
    assert not [step for step in without._executor._main.schedule.steps if step.operator == "transpose"]


@needs_native
@pytest.mark.parametrize(
    ("spatial", "axis", "last"), [(1, 1, 3), (1, 2, 2), (2, 0, 0), (2, 1, 3), (2, 2, 1), (2, 3, 2)]
)
def test_images_are_joined_along_every_axis(spatial: int, axis: int, last: int) -> None:
    network = Network(np.random.default_rng(2), spatial)
    network.convolution()
    one = [network.last, *network.scales[network.last]]
    shape = list(network.shapes[network.last])
    shape[axis] *= 2
    network._emit("QLinearConcat", [*one[1:], *one, *one], tuple(shape), MICROSOFT, axis=axis)
    content, feeds = network.content()
    assert check(content, feeds) == "equal"
    schedule = bittrue.load(content).prepare("onnxruntime", executor="native")._executor._main.schedule
    assert [step["axis"] for step in schedule.steps if step.operator == "concatenation"] == [last]


@needs_native
def test_a_function_of_one_value_becomes_the_table_of_the_convolution_before_it() -> None:
    network = Network(np.random.default_rng(3))
    network.shapes["x"] = (1, 8, 6, 6)
    network.convolution()
    network.table()
    content, feeds = network.content()
    assert check(content, feeds) == "equal"
    session = bittrue.load(content).prepare("onnxruntime", executor="native")
    schedule = session._executor._main.schedule
    assert not [step for step in schedule.steps if step.operator == "logistic"]
    assert any("fused_table" in step.arrays for step in schedule.steps)
    feed = {session.inputs[0].name: feeds[0]}
    without = bittrue.load(content).prepare("onnxruntime", executor="native", passes=[]).run(feed)
    assert all(session.run(feed)[name].tobytes() == value.tobytes() for name, value in without.items())
