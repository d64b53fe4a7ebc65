"""Random models of binary16 numbers whose transpositions meet sums, reshapes, attention, and parts in binary32."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_UNARY = "Relu Tanh Sigmoid Round Sign Neg Abs Erf Identity Cos Floor LeakyRelu Softplus".split()
# No model becomes larger.
_MOST = 4000


class _Chain:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.opset = rng, int(rng.choice([13, 14, 17, 18, 20, 21, 22]))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.half = True
        # Whether the first axis has been moved: the runtime ends the process at some products behind it.
        self.moved = False
        shape = int(rng.choice([1, 2])), int(rng.integers(3, 7)), int(rng.choice([8, 12, 16]))
        self.x = (rng.standard_normal(shape) * 1.5).astype(np.float16)
        self.last, self.shape = "x", shape
        # Tensor, shape, whether it is binary16.
        self.before: list[tuple[str, tuple[int, ...], bool]] = []

    # -- parts -----------------------------------------------------------------------------------------------------
    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def number(self, value: float) -> str:
        return self.constant(np.float16(value) if self.half else np.float32(value))

    def real(self, *shape: int) -> str:
        return self.constant((self.rng.standard_normal(shape) * 0.5).astype(np.float16 if self.half else np.float32))

    def mean(self, of: str, axis: int) -> str:
        if self.opset < 18:
            return self.add("ReduceMean", of, axes=[axis])
        return self.add("ReduceMean", of, self.constant(np.array([axis])))

    # -- steps: each changes `last` and `shape`, or does nothing ------------------------------------------------------
    def step(self) -> None:
        steps = [
            *(self.product, self.scale, self.unary, self.unary, *(self.transposition,) * 3, self.reshape, self.gelu),
            *(self.normalization, self.parts, self.softmax, self.convolution, self.residual, self.residual),
            *(self.island, self.concat, self.slice, self.split, self.reduce, self.unsqueeze, self.heads, self.where),
        ]
        steps[int(self.rng.integers(len(steps)))]()
        self.before.append((self.last, self.shape, self.half))

    def product(self) -> None:
        if self.moved:
            return
        width = int(self.rng.choice([8, 12, 16]))
        self.last = self.add("MatMul", self.last, self.real(self.shape[-1], width))
        self.shape = (*self.shape[:-1], width)
        if self.rng.random() < 0.6:
            self.last = self.add("Add", *self.either(self.last, self.real(width)))

    def either(self, one: str, other: str) -> tuple[str, str]:
        return (one, other) if self.rng.random() < 0.5 else (other, one)

    def scale(self) -> None:
        part = self.shape[-1:] if self.rng.random() < 0.6 else [d if self.rng.random() < 0.5 else 1 for d in self.shape]
        kind = str(self.rng.choice(["Add", "Mul", "Max", "Pow"]))
        other = self.number(2) if kind == "Pow" or self.rng.random() < 0.2 else self.real(*part)
        self.last = self.add(kind, *((self.last, other) if kind == "Pow" else self.either(self.last, other)))

    def unary(self) -> None:
        self.last = self.add(str(self.rng.choice(_UNARY)), self.last)

    def transposition(self) -> None:
        order = [int(axis) for axis in self.rng.permutation(len(self.shape))]
        if order != sorted(order):
            self.moved = self.moved or order[0] != 0
            self.last = self.add("Transpose", self.last, perm=order)
            self.shape = tuple(self.shape[axis] for axis in order)

    def reshape(self) -> None:
        shape = self.shape
        if len(shape) == 4:
            self.shape = (*shape[:2], shape[2] * shape[3])
        elif len(shape) == 3 and shape[-1] % 4 == 0:
            self.shape = (*shape[:2], shape[2] // 4, 4)
        if self.shape != shape:
            self.last = self.add("Reshape", self.last, self.constant(np.array(self.shape)))

    def gelu(self) -> None:
        erf = self.add("Erf", self.add("Div", self.last, self.number(2**0.5)))
        half = self.add("Mul", self.last, self.add("Add", erf, self.number(1)))
        self.last = self.add("Mul", half, self.number(0.5))

    def normalization(self) -> None:
        if self.opset >= 17:
            width = self.shape[-1]
            self.last = self.add("LayerNormalization", self.last, self.real(width), self.real(width), axis=-1)

    def parts(self) -> None:
        centred = self.add("Sub", self.last, self.mean(self.last, -1))
        variance = self.mean(self.add("Pow", centred, self.number(2)), -1)
        root = self.add("Sqrt", self.add("Add", variance, self.number(1e-5)))
        scaled = self.add("Mul", self.add("Div", centred, root), self.real(self.shape[-1]))
        self.last = self.add("Add", scaled, self.real(self.shape[-1]))

    def softmax(self) -> None:
        self.last = self.add("Softmax", self.last, axis=int(self.rng.choice([-1, -1, 1])))

    def convolution(self) -> None:
        space = len(self.shape) - 2
        if space in (1, 2):
            width = int(self.rng.choice([8, 16]))
            weights = self.real(width, self.shape[1], *(3,) * space)
            self.last = self.add("Conv", self.last, weights, self.real(width), pads=[1] * (2 * space))
            self.shape = (self.shape[0], width, *self.shape[2:])

    def residual(self) -> None:
        same = [name for name, shape, half in self.before if (shape, half) == (self.shape, self.half)]
        if same:
            other = same[int(self.rng.integers(len(same)))]
            self.last = self.add(str(self.rng.choice(["Add", "Mul", "Sub"])), *self.either(self.last, other))

    def island(self) -> None:
        self.half = not self.half
        self.last = self.add("Cast", self.last, to=TensorProto.FLOAT16 if self.half else TensorProto.FLOAT)

    def concat(self) -> None:
        same = [name for name, shape, half in self.before if (shape, half) == (self.shape, self.half)] or [self.last]
        axis = int(self.rng.integers(len(self.shape)))
        self.last = self.add("Concat", *self.either(self.last, same[int(self.rng.integers(len(same)))]), axis=axis)
        self.shape = tuple(size * (1 + (place == axis)) for place, size in enumerate(self.shape))

    def slice(self) -> None:
        axis = int(self.rng.integers(len(self.shape)))
        size = self.shape[axis] // 2
        if size >= 2:
            bounds = (self.constant(np.array([n])) for n in (0, size, axis))
            self.last = self.add("Slice", self.last, *bounds)
            self.shape = tuple(size if place == axis else old for place, old in enumerate(self.shape))

    def split(self) -> None:
        axis = int(self.rng.integers(len(self.shape)))
        size = self.shape[axis] // 2
        if self.shape[axis] % 2 == 0:
            first, second = (f"{self.last}_{side}" for side in "ab")
            sizes = self.constant(np.array([size, size]))
            self.nodes.append(helper.make_node("Split", [self.last, sizes], [first, second], axis=axis))
            self.last = self.add("Mul", first, self.add("Neg", second))
            self.shape = tuple(size if place == axis else old for place, old in enumerate(self.shape))

    def reduce(self) -> None:
        axis = int(self.rng.integers(len(self.shape)))
        self.last = self.add("Sub", self.last, self.mean(self.last, axis))

    def unsqueeze(self) -> None:
        if len(self.shape) == 3:
            self.last = self.add("Unsqueeze", self.last, self.constant(np.array([1])))
            self.shape = (self.shape[0], 1, *self.shape[1:])
        elif 1 in self.shape:
            axis = self.shape.index(1)
            self.last = self.add("Squeeze", self.last, self.constant(np.array([axis])))
            self.shape = (*self.shape[:axis], *self.shape[axis + 1 :])

    def heads(self) -> None:
        if len(self.shape) != 3 or self.shape[-1] % 4 or self.moved:
            return
        batch, rows, width = self.shape

        def head(order: tuple[int, ...]) -> str:
            biased = self.add("Add", self.real(width), self.add("MatMul", self.last, self.real(width, width)))
            apart = self.add("Reshape", biased, self.constant(np.array([batch, rows, 4, width // 4])))
            return self.add("Transpose", apart, perm=order)

        query, key, value = head((0, 2, 1, 3)), head((0, 2, 3, 1)), head((0, 2, 1, 3))
        scores = self.add("Div", self.add("MatMul", query, key), self.number(2))
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), value)
        together = self.add("Transpose", mixed, perm=(0, 2, 1, 3))
        self.last = self.add("Reshape", together, self.constant(np.array(self.shape)))

    def where(self) -> None:
        chosen = self.constant(self.rng.random(self.shape[-1]) < 0.5)
        self.last = self.add("Where", chosen, self.last, self.real(self.shape[-1]))


def half_chain(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    """A model, and what to feed it."""
    chain = _Chain(rng)
    for _ in range(int(rng.integers(4, 16))):
        chain.step()
        if np.prod(chain.shape) > _MOST:
            break
    result = chain.add("Tanh", chain.last)
    kind = TensorProto.FLOAT16 if chain.half else TensorProto.FLOAT
    graph = helper.make_graph(
        chain.nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, chain.x.shape)],
        [helper.make_tensor_value_info(result, kind, None)],
        [numpy_helper.from_array(array, name) for name, array in chain.constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", chain.opset)], ir_version=10)
    return model.SerializeToString(), [chain.x]
