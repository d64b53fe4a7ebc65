"""Random graphs aimed at one pass of ONNX Runtime's optimiser each, with the odd forms that decide about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .growing_graphs import GrowingGraph
from .onnx_models import KIND

_INTEGERS = {np.dtype(np.int64): TensorProto.INT64}
Size = int | str | None


class PassGraph(GrowingGraph):
    """A graph that grows from its inputs; now and then another node reads what was just computed."""

    def __init__(self, rng: np.random.Generator, opset: int, tapped: float = 0.03) -> None:
        super().__init__(rng, opset)
        self.tapped = tapped
        self.sizes: dict[str, list[Size]] = {}
        self.declared: list[onnx.ValueInfoProto] = []

    def vector(self, size: int) -> str:
        return self.constant(self.reals(size))

    def indices(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def input(self, array: np.ndarray, sizes: list[Size] | None = None) -> str:
        name = self.name("x")
        self.inputs[name], self.sizes[name] = array, sizes or list(array.shape)
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        (name,) = self.several(operator, 1, *inputs, **attributes)
        if self.chance(self.tapped):
            self.outputs.add(name if self.chance(0.5) else self.several("Neg", 1, name)[0])
        return name

    def turned(self, first: str, second: str) -> tuple[str, str]:
        return (first, second) if self.chance(0.5) else (second, first)

    def model(self) -> tuple[bytes, list[np.ndarray]]:
        """The model, whose results are what nothing reads, and what to feed it."""
        kinds = {**KIND, **_INTEGERS}
        graph = helper.make_graph(
            self.nodes,
            "graph",
            [
                helper.make_tensor_value_info(name, kinds[array.dtype], self.sizes[name])
                for name, array in self.inputs.items()
            ],
            [helper.make_empty_tensor_value_info(name) for name in self.results()],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
            value_info=self.declared,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return model.SerializeToString(), list(self.inputs.values())


def gates(rng: np.random.Generator) -> PassGraph:
    """x times the normal distribution function of x by a hyperbolic tangent: FastGeluFusion."""
    g = PassGraph(rng, int(rng.choice([13, 17])))
    x = g.input(3 * g.reals(*(int(size) for size in rng.integers(1, 20, rng.integers(1, 4)))))
    x = g.several("Neg", 1, x)[0] if g.chance(0.5) else x

    def number(value: float) -> str:
        value *= 1 + g.pick(1e-6, 5e-6, 2e-5, 1e-3) * g.chance(0.04)
        return g.constant(np.full(g.pick((), (1,), (1, 1)) if g.chance(0.3) else (), value, np.float32))

    def product(one: str, two: str) -> str:
        return g.node("Mul", *g.turned(one, two))

    if g.chance(0.5):
        square = product(product(x, number(0.044715)), x) if g.chance(0.6) else product(product(x, x), number(0.044715))
        inner = product(g.node("Add", *g.turned(square, number(1))), product(x, number(0.7978845608028654)))
    else:
        cube = g.node("Pow", x, number(3)) if g.chance(0.85) else product(x, product(x, x))
        inner = product(g.node("Add", *g.turned(product(cube, number(0.044715)), x)), number(0.7978845608028654))
    total = g.node("Add", *g.turned(g.node("Tanh", inner), number(1)))
    form = g.pick(0, 0, 0, 1, 2)
    one, two = ((x, number(0.5)), (total, x), (number(0.5), total))[form]
    y = product((total, number(0.5), x)[form], product(one, two))
    if g.chance(0.85):
        g.several("Relu", 1, y)
    return g


def attentions(rng: np.random.Generator) -> PassGraph:
    """A layer or two of BERT as TorchScript writes them, with a mask of two axes: AttentionFusion."""
    g = PassGraph(rng, int(rng.choice([9, 11, 12])), 0.005)
    heads, size = int(rng.choice([1, 2, 3, 8])), int(rng.choice([4, 8, 5, 20]))
    batch, length, width = int(rng.integers(1, 4)), int(rng.choice([1, 3, 8, 33])), heads * size
    rows: list[Size] = ["B", "L"] if g.chance(0.8) else [batch, length]
    dynamic, cast = g.chance(0.5), g.chance(0.7)

    def number(value: float) -> str:
        return g.constant(np.float32(value * (1 + 2e-5 * g.chance(0.02))))

    def odd(usual: Any, other: Any) -> Any:
        return other if g.chance(0.03) else usual

    def normalized(x: str) -> str:
        apart = g.node("Sub", x, g.node("ReduceMean", x, axes=[-1], keepdims=1))
        spread = g.node("ReduceMean", g.node("Pow", apart, number(2)), axes=[-1], keepdims=1)
        scaled = g.node("Div", apart, g.node("Sqrt", g.node("Add", spread, number(1e-12))))
        return g.node("Add", g.node("Mul", scaled, g.vector(width)), g.vector(width))

    def reshaped(x: str, like: str, *last: int) -> str:
        if not dynamic:
            return g.node("Reshape", x, g.indices(0, odd(0, -1), *last))
        sizes = [
            g.node("Gather", g.node("Shape", like), g.constant(np.array(axis, np.int64)), axis=0) for axis in (0, 1)
        ]
        parts = [g.node("Unsqueeze", one, axes=[0]) for one in sizes]
        return g.node("Reshape", x, g.node("Concat", *parts, *(g.indices(v) for v in last), axis=0))

    def projected(x: str) -> str:
        product = g.node("MatMul", x, g.constant(g.reals(width, width) / np.float32(width**0.5)))
        sides = odd((product, g.vector(width)), (g.vector(width), product))
        return g.node("Add", *sides)

    def parts(x: str, *order: int) -> str:
        return g.node("Transpose", reshaped(projected(x), x, heads, size), perm=order)

    marks = (rng.integers(0, 2, (batch, length)) if g.chance(0.7) else rng.normal(1, 2, (batch, length))).astype(
        rng.choice([np.int64, np.int32, np.float32] if cast else [np.float32])
    )
    mask = g.node("Unsqueeze", g.node("Unsqueeze", g.input(marks, rows), axes=[1]), axes=[2])
    mask = g.node("Cast", mask, to=TensorProto.FLOAT) if cast else mask
    mask = g.node("Mul", g.node("Sub", number(1), mask), number(g.pick(-10000, -10000, -1e9, 5)))
    x = normalized(g.input(g.reals(batch, length, width), [*rows, width]))
    for _ in range(int(rng.integers(1, 3))):
        query, keys, values = parts(x, 0, 2, 1, 3), parts(x, 0, 2, 3, 1), parts(x, 0, 2, 1, 3)
        scores = g.node("Div", g.node("MatMul", query, keys), number(size**0.5))
        weights = g.node("Softmax", g.node("Add", *odd((scores, mask), (mask, scores))), axis=odd(3, 2))
        context = g.node("Transpose", g.node("MatMul", weights, values), perm=(0, 2, 1, 3))
        last = projected(reshaped(context, context, width))
        x = normalized(g.node("Add", *odd((last, x), (x, last))))
    g.several("Relu", 1, x)
    return g


def scales(rng: np.random.Generator) -> PassGraph:
    """Products with factors that constants or shapes give: constant folding and MatMulScaleFusion."""
    g = PassGraph(rng, int(rng.choice([13, 17])))
    heads, rows, depth = (int(size) for size in rng.integers(1, 8, 3))
    shape, free = (1, heads, rows, depth), g.chance(0.3)
    sizes: list[Size] = ["B" if free else 1, heads, "S" if free and g.chance(0.5) else rows, depth]

    def tensor() -> str:
        if g.chance(0.25):
            return g.constant(g.reals(*shape))
        x = g.input(g.reals(*shape), sizes)
        return g.node(g.pick("Neg", "Abs"), x) if g.chance(0.5) else x

    def number() -> str:
        form = g.pick(0, 0, 1, 2, 3, 4, 5)
        full = np.full(g.pick((), (1,), (1, 1)) if g.chance(0.3) else (), g.pick(0.125, 0.3, 2.8), np.float32)
        if form == 0:
            return g.constant(full)
        if form == 1:
            axes = g.indices(g.pick(-1, 1, 2, 3))
            size = g.node("Gather", g.node("Shape", g.input(g.reals(*shape), sizes)), axes)
            return g.node("Sqrt", g.node("Cast", size, to=TensorProto.FLOAT))
        if form == 2:
            value = numpy_helper.from_array(np.float32([depth]))
            return g.node("Pow", g.node("ConstantOfShape", g.indices(), value=value), g.constant(np.float32(0.5)))
        if form == 3:
            return g.node("Sqrt", g.node("Div", g.constant(np.float32(1)), g.constant(np.float32(depth))))
        if form == 4:
            return g.node("Mul", g.constant(full), g.constant(np.float32(0.5)))
        return g.node("Cast", g.constant(np.float64(0.25)), to=TensorProto.FLOAT)

    def scaled(x: str) -> str:
        return g.node("Div", x, number()) if g.chance(0.4) else g.node("Mul", *g.turned(x, number()))

    for _ in range(int(rng.integers(1, 3))):
        left, right = tensor(), tensor()
        left = scaled(left) if g.chance(0.6) else left
        right = scaled(right) if g.chance(0.3) else right
        right = g.node("Transpose", right, perm=[0, 1, 3, 2])
        right = scaled(right) if g.chance(0.3) else right
        y = g.node("MatMul", left, right)
        for _ in range(g.pick(0, 1, 2)):
            y = scaled(y)
        g.node("Softmax", y, axis=-1)
    return g


def turned_normalizations(rng: np.random.Generator) -> PassGraph:
    """Layer normalizations of parts behind a transposition, as image models have them: the transpose optimiser."""
    g = PassGraph(rng, int(rng.choice([13, 16, 17])), tapped=0)
    channels, rows = int(rng.choice([8, 16, 37])), int(rng.integers(2, 20))
    x = g.input(g.reals(1, channels, rows))
    x = g.node("Transpose", g.node("Neg", x) if g.chance(0.5) else x, perm=[0, 2, 1])
    for _ in range(int(rng.integers(1, 4))):
        apart = g.node("Sub", x, g.node("ReduceMean", x, axes=[-1]))
        square = g.node("Pow", apart, g.constant(np.float32(2)))
        spread = g.node("Add", g.node("ReduceMean", square, axes=[-1]), g.constant(np.float32(1e-5)))
        ratio = g.node("Div", apart, g.node("Sqrt", spread))
        y = g.node("Add", g.node("Mul", ratio, g.vector(channels)), g.vector(channels))
        behind = g.pick("MatMul", "Tanh", "Add", "Transpose", "")
        if behind == "MatMul":
            y = g.node("MatMul", y, g.constant(g.reals(channels, channels)))
        elif behind == "Transpose":
            g.node("Transpose", y, perm=[0, 2, 1])
        elif behind:
            y = g.node(behind, y, *([x] if behind == "Add" else []))
        x = y
        if g.chance(0.3):
            pair = g.constant(np.float32(0.03)), g.constant(np.uint8(120))
            x = g.node("DequantizeLinear", g.node("QuantizeLinear", x, *pair), *pair)
    g.node("Relu", x)
    return g


def turned_results(rng: np.random.Generator) -> PassGraph:
    """Results that are transposed and then quantized, as key caches are: the transpose optimiser."""
    g = PassGraph(rng, int(rng.choice([13, 17])), tapped=0)
    zero = g.constant(np.uint8(g.pick(0, 120)))

    def quantized(x: str) -> str:
        scale = g.constant(np.float32(g.pick(0.03, 0.05)))
        q = g.node("QuantizeLinear", x, scale, zero)
        if g.chance(0.1):
            g.node("Cast", q, to=TensorProto.INT32)
        return q if g.chance(0.1) else g.node("DequantizeLinear", q, scale, zero)

    x = g.input(g.reals(1, 4, 8))
    x = g.pick(lambda: g.node("Neg", x), lambda: x, lambda: g.node("Concat", x, g.input(g.reals(1, 4, 8)), axis=1))()
    x = quantized(x) if g.chance(0.1) else x
    if g.chance(0.8) and x not in g.inputs:
        g.outputs.add(x)
    y = g.node(g.pick(*["Transpose"] * 4, "Relu"), x)
    if g.chance(0.2):
        y = g.node("Unsqueeze", y, g.indices(1))
    if g.chance(0.1):
        g.node("Abs", g.pick(x, y))
    y = quantized(y)
    if g.nodes[-1].op_type == "DequantizeLinear":
        y = g.node(g.pick("Exp", "Sigmoid", "Softmax"), y)
        quantized(y)
    return g


def reduced_images(rng: np.random.Generator) -> PassGraph:
    """Reductions of what quantized convolutions give, as in squeeze-and-excitation: channels come to lie last."""
    g = PassGraph(rng, int(rng.choice([13, 17])), tapped=0.02)
    channels, size = g.pick(8, 16, 32), g.pick(5, 8, 12, 14)

    step = g.pick(0.03, 0.05, 0.011)

    def quantized(x: str, finer: int = 1) -> str:
        """The scale may divide the others by whole numbers, so that sums land on ties."""
        scale, zero = g.constant(np.float32(step / finer)), g.constant(np.uint8(g.pick(100, 120)))
        return g.node("DequantizeLinear", g.node("QuantizeLinear", x, scale, zero), scale, zero)

    def convolution(x: str, inputs: int, outputs: int, taps: int) -> str:
        codes = g.constant(rng.integers(-127, 128, (outputs, inputs, taps, taps)).astype(np.int8))
        weights = g.node("DequantizeLinear", codes, g.constant(np.float32(0.01)), g.constant(np.int8(0)))
        return quantized(g.node("Conv", x, weights, kernel_shape=[taps, taps], pads=[taps // 2] * 4))

    x = quantized(g.input(g.reals(1, channels, size, size)))
    if g.chance(0.85):
        x = convolution(x, channels, channels, g.pick(1, 3))
    if g.chance(0.3):
        x = quantized(g.node(g.pick("Relu", "Sigmoid", "HardSwish") if g.opset > 13 else "Sigmoid", x))
    axes = g.pick([2, 3], [2, 3], [2, 3], [-1, -2], [1], [2], [1, 2, 3])
    keep = 1 if g.chance(0.85) else 0
    operator = g.pick(
        "ReduceMean", "ReduceMean", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceSum", "GlobalAveragePool"
    )
    if operator == "GlobalAveragePool":
        y, axes, keep = g.node(operator, x), [2, 3], 1
    elif operator == "ReduceSum":
        y = g.node(operator, x, g.indices(*axes), keepdims=keep)
    else:
        y = g.node(operator, x, axes=axes, keepdims=keep)
    if g.chance(0.2):
        y = g.node(g.pick("Tanh", "Erf", "Relu"), y)
    y = quantized(y, g.pick(1, 2, size, size * size)) if g.chance(0.8) else y
    whole = keep and sorted(axis % 4 for axis in axes) == [2, 3]
    if whole and g.chance(0.7):
        y = convolution(y, channels, channels, 1)
        if g.chance(0.5):
            y = quantized(g.node("HardSigmoid" if g.chance(0.5) else "Sigmoid", y))
    if whole and g.chance(0.5):
        y = quantized(g.node("Mul", *g.turned(x, y)))
        if g.chance(0.5):
            convolution(y, channels, channels, 1)
    elif whole and g.chance(0.3):
        g.node("Flatten", y)
    return g


def idle(rng: np.random.Generator) -> PassGraph:
    """Sums with 0, products with 1, casts and moves that leave numbers as they are: NoopElimination and the like."""
    g = PassGraph(rng, int(rng.choice([13, 17])))
    shape = (2, 3, int(rng.integers(1, 20)))
    values = g.reals(*shape)
    values[rng.random(shape) < 0.2] *= 0
    x = g.input(values)
    for _ in range(int(rng.integers(1, 6))):
        size = g.pick((), (1,), (1, 1, 1), shape)
        zero, one = (g.constant(np.full(size, value, np.float32)) for value in (g.pick(0.0, -0.0), 1))
        operator = g.pick("Add", "Sub", "Mul", "Div", "Cast", "Identity", "Expand", "Transpose", "Relu", "Neg", "Tanh")
        if operator in ("Add", "Mul"):
            x = g.node(operator, *g.turned(x, zero if operator == "Add" else one))
        elif operator in ("Sub", "Div"):
            x = g.node(operator, x, zero if operator == "Sub" else one)
        elif operator == "Expand":
            x = g.node(operator, x, g.indices(*g.pick(shape, (1, 1, 1), (1,))))
        elif operator == "Transpose":
            x = g.node(operator, g.node(operator, x, perm=[0, 2, 1]), perm=[0, 2, 1])
        else:
            x = g.node(operator, x, **({"to": TensorProto.FLOAT} if operator == "Cast" else {}))
    g.node("Relu", g.node("Add", *g.turned(x, g.constant(np.zeros((1, 1, 1, 1), np.float32)))))
    return g


class SymbolicGraph(PassGraph):
    """Layer normalizations of sums, in a graph that leaves dimensions free; sizes are asked for in all ways."""

    WIDTH = 8

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng, int(rng.choice([13, 17])), tapped=0)
        self.batch, self.rows = int(rng.integers(1, 4)), int(rng.integers(2, 6))
        self.tensors = [self.new()]
        for _ in range(int(rng.integers(1, 4))):
            self.grow()

    def free(self) -> list[Size]:
        return ["B" if self.chance(0.7) else self.batch, "S" if self.chance(0.7) else self.rows]

    def new(self) -> str:
        sizes: list[Size] = [
            f"{size}2" if isinstance(size, str) and self.chance(0.15) else size for size in self.free()
        ]
        return self.input(self.reals(self.batch, self.rows, self.WIDTH), [*sizes, self.WIDTH])

    def other(self) -> str:
        kind = self.pick("old", "old", "new", "embedded", "relu", "one")
        if kind == "new":
            self.tensors.append(self.new())
            return self.tensors[-1]
        if kind in ("embedded", "one"):
            batch = self.batch if kind == "embedded" else 1
            sizes = self.free() if kind == "embedded" else [1, "S"]
            ids = self.input(self.rng.integers(0, 5, (batch, self.rows)).astype(np.int64), sizes)
            return self.node("Gather", self.constant(self.reals(5, self.WIDTH)), ids)
        return self.pick(*self.tensors) if kind == "old" else self.node("Relu", self.pick(*self.tensors))

    def size(self, x: str, axis: int) -> str:
        shape, form = self.node("Shape", x), self.pick(0, 0, 0, 1, 2)
        if form == 0:
            return self.node(
                "Unsqueeze", self.node("Gather", shape, self.constant(np.int64(axis)), axis=0), self.indices(0)
            )
        if form == 1:
            return self.node("Gather", shape, self.indices(axis), axis=0)
        return self.node("Slice", shape, self.indices(axis), self.indices(axis + 1), self.indices(0))

    def reshaped(self, x: str) -> str:
        """To heads and back, as attention does."""
        heads, source, form = self.pick(2, 4), self.pick(x, x, *self.tensors), self.pick(0, 0, 1, 2, 3)
        parts = [self.size(source, 0), self.size(source, 1), self.indices(heads), self.indices(self.WIDTH // heads)]
        if form > 1:
            parts[form - (form == 2)] = self.indices(-1)
        target = self.node("Concat", *parts, axis=0) if form != 1 else self.indices(0, 0, heads, self.WIDTH // heads)
        y = self.node("Transpose", self.node("Reshape", x, target), perm=[0, 2, 1, 3])
        y = self.node("Transpose", self.node("Sigmoid", y) if self.chance(0.5) else y, perm=[0, 2, 1, 3])
        source, form = self.pick(y, source, *self.tensors), self.pick(0, 0, 1, 2, 3)
        parts = [self.size(source, 0), self.size(source, 1), self.indices(self.WIDTH)]
        if form > 1:
            parts[4 - form] = self.indices(-1)
        target = self.node("Concat", *parts, axis=0) if form != 1 else self.indices(0, 0, self.pick(self.WIDTH, -1))
        return self.node("Reshape", y, target)

    def product(self, x: str) -> str:
        weights = self.rng.integers(-99, 99, (self.WIDTH, self.WIDTH)).astype(np.int8)
        if self.chance(0.6):
            y = self.node("MatMul", x, self.constant(self.reals(self.WIDTH, self.WIDTH)))
        else:
            q, scale, zero = self.several("DynamicQuantizeLinear", 3, x)
            y = self.node("Cast", self.node("MatMulInteger", q, self.constant(weights), zero), to=TensorProto.FLOAT)
            y = self.node("Mul", y, self.node("Mul", scale, self.constant(np.float32(0.01))))
        return self.node("Add", *self.turned(y, self.vector(self.WIDTH))) if self.chance(0.75) else y

    def halves(self, x: str) -> str:
        if self.opset < 13:
            return x
        half = self.WIDTH // 2
        return self.node("Concat", *self.several("Split", 2, x, self.indices(half, half), axis=2), axis=2)

    def grow(self) -> None:
        x = y = self.pick(*self.tensors)
        for _ in range(int(self.rng.integers(1, 3))):
            y = self.pick(self.product, self.product, self.reshaped, self.halves, lambda t: self.node("Tanh", t))(y)
        if self.chance(0.1):
            sizes = self.pick(["unk__7", "unk__8", self.WIDTH], [None, None, self.WIDTH])
            self.declared.append(helper.make_tensor_value_info(y, TensorProto.FLOAT, sizes))
        total = self.node("Add", *self.turned(y, x if self.chance(0.6) else self.other()))
        scale, bias = self.vector(self.WIDTH), self.vector(self.WIDTH)
        if self.opset >= 17:
            self.tensors.append(self.node("LayerNormalization", total, scale, bias, axis=-1, epsilon=1e-5))
            return
        apart = self.node("Sub", total, self.node("ReduceMean", total, axes=[-1]))
        square = self.node("Pow", apart, self.constant(np.float32(2)))
        spread = self.node("Add", self.node("ReduceMean", square, axes=[-1]), self.constant(np.float32(1e-5)))
        ratio = self.node("Div", apart, self.node("Sqrt", spread))
        self.tensors.append(self.node("Add", self.node("Mul", ratio, scale), bias))


PASSES: dict[str, Callable[[np.random.Generator], PassGraph]] = {
    "attentions": attentions,
    "gates": gates,
    "idle": idle,
    "reduced images": reduced_images,
    "scales": scales,
    "skipped sums": SymbolicGraph,
    "turned normalizations": turned_normalizations,
    "turned results": turned_results,
}
