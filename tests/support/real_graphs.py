"""Random graphs of real operators in the groups that a runtime joins, with the odd forms that decide about it."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from .growing_graphs import GrowingGraph
from .onnx_models import build

_UNARY = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Abs", "Neg")


class RealGraphMaker(GrowingGraph):
    """Grows a random graph of binary32 tensors; `usual` is how often a group has the form that is joined."""

    def __init__(self, rng: np.random.Generator, opset: int = 17, usual: float = 0.8) -> None:
        super().__init__(rng, opset)
        self.usual = usual
        self.shapes: dict[str, tuple[int, ...]] = {}

    # -- small parts -----------------------------------------------------------------------------------------------
    def usually(self) -> bool:
        return self.chance(self.usual)

    def tensor(self, *shape: int) -> str:
        """One that is there, or a new input."""
        fitting = [name for name, known in self.shapes.items() if known == shape]
        if fitting and self.chance(0.7):
            return str(self.pick(*fitting[-3:]))
        name = self.name("x")
        self.inputs[name] = self.reals(*shape)
        self.shapes[name] = shape
        return name

    def any_tensor(self, rank: int) -> str:
        fitting = [name for name, known in self.shapes.items() if len(known) == rank]
        if fitting and self.chance(0.8):
            return str(self.pick(*fitting[-3:]))
        sizes = [int(e) for e in self.rng.integers(1, 9, rank)]
        if rank == 4:
            sizes = [1, int(self.pick(3, 4, 8, 16)), int(self.pick(4, 5)), int(self.pick(4, 6))]
        if rank < 4:
            sizes[-1] = int(self.pick(5, 8, 13, 16, 37, 260))
        return self.tensor(*sizes)

    def node(self, op_type: str, shape: tuple[int, ...], *inputs: str, **attributes: Any) -> str:
        (name,) = self.several(op_type, 1, *inputs, **attributes)
        self.shapes[name] = shape
        if self.chance(0.02):
            self.outputs.add(name)
        return name

    def swapped(self, first: str, second: str) -> tuple[str, str]:
        return (first, second) if self.usually() else (second, first)

    # -- groups ----------------------------------------------------------------------------------------------------
    def convolution(self) -> None:
        rank = int(self.pick(4, 4, 4, 3))
        x = self.any_tensor(rank)
        shape = self.shapes[x]
        channels, filters = shape[1], int(self.pick(1, 3, 4, 8, 16, 32))
        turned = self.chance(0.15)
        groups = channels if self.chance(0.2) else 1
        filters = filters if groups == 1 else channels * int(self.pick(1, 1, 2))
        taps = int(self.pick(1, 3)) if min(shape[2:]) > 2 else 1
        window = (taps,) * (rank - 2)
        weights = (channels, filters // groups) if turned else (filters, channels // groups)
        inputs = [x, self.constant(self.reals(*weights, *window))]
        if self.chance(0.6):
            inputs.append(self.constant(self.reals(filters)))
        pads = int(self.pick(0, taps // 2))
        shift = (taps - 1 - 2 * pads) * (-1 if turned else 1)
        space = tuple(size - shift for size in shape[2:])
        result = (shape[0], filters, *space)
        attributes = {"group": groups, "pads": [pads] * (2 * (rank - 2))}
        y = self.node("ConvTranspose" if turned else "Conv", result, *inputs, **attributes)
        for _ in range(int(self.rng.integers(0, 3))):
            y = self.behind_convolution(y, result)
        if self.chance(0.5):
            self.node(str(self.pick(*_UNARY)), result, y)

    def behind_convolution(self, y: str, shape: tuple[int, ...]) -> str:
        kind, filters = self.pick("Add", "Mul", "BatchNormalization", "residual"), shape[1]
        if kind == "BatchNormalization":
            parts = [self.reals(filters) for _ in range(3)]
            operands = [self.constant(part) for part in (*parts, np.abs(self.reals(filters)))]
            return self.node(kind, shape, y, *operands, epsilon=float(self.pick(1e-5, 1e-3)))
        if kind == "residual" and len(shape) == 4 and self.chance(0.5):
            inputs = [y, self.constant(self.reals(filters, filters, 1, 1))]
            if self.chance(0.5):
                inputs.append(self.constant(self.reals(filters)))
            return self.node("Add", shape, *self.swapped(self.node("Conv", shape, *inputs), y))
        if kind == "residual":
            return self.node("Add", shape, *self.swapped(y, self.tensor(*shape)))
        ones = (1,) * (len(shape) - 2)
        form = self.pick((), (1,), (filters, *ones), (1, filters, *ones), shape, (1, *ones), (1, 1, *ones))
        if self.usually():
            form = self.pick((filters, *ones), (1, filters, *ones))
        return self.node(kind, shape, *self.swapped(y, self.constant(self.reals(*form))))

    def product(self) -> None:
        rank = int(self.pick(2, 3, 3, 4))
        x = self.any_tensor(rank)
        shape = self.shapes[x]
        rows, depth, columns = shape[-2], shape[-1], int(self.pick(1, 2, 5, 16, 70))
        left, right = x, ""
        if self.chance(0.3):
            turn = [*range(rank - 2), rank - 1, rank - 2]
            left = self.node("Transpose", (*shape[:-2], depth, rows), x, perm=turn)
            rows, depth = depth, rows
        if self.usually():
            right = self.constant(self.reals(depth, columns))
        else:
            batch = shape[:-2]
            if self.chance(0.5):
                y = self.tensor(*batch, columns, depth)
                turn = [*range(rank - 2), rank - 1, rank - 2]
                right = self.node("Transpose", (*batch, depth, columns), y, perm=turn)
            else:
                right = self.tensor(*batch, depth, columns)
        if self.chance(0.3):
            left = self.scaled(left)
        result = (*shape[:-2], rows, columns)
        y = self.node("MatMul", result, left, right)
        kind = self.pick("Add", "Add", "scale", "BatchNormalization", "none")
        if kind == "scale":
            y = self.scaled(y)
        elif kind == "Add":
            form = (columns,) if self.usually() else self.pick((1,), (), (1, columns), (rows, 1), (rows, columns))
            y = self.node("Add", result, *self.swapped(y, self.constant(self.reals(*form))))
        elif kind == "BatchNormalization" and rank == 2:
            parts = [self.reals(columns) for _ in range(3)]
            operands = [self.constant(part) for part in (*parts, np.abs(self.reals(columns)))]
            y = self.node(kind, result, y, *operands)
        if self.chance(0.3):
            self.node("Relu", result, y)

    def scaled(self, x: str) -> str:
        number = self.constant(np.full(self.pick((), (1,), (1, 1)), self.pick(0.125, 0.3, 2.8), np.float32))
        if self.chance(0.5):
            return self.node("Div", self.shapes[x], x, number)
        return self.node("Mul", self.shapes[x], *self.swapped(x, number))

    def gelu(self) -> None:
        x = self.any_tensor(int(self.pick(2, 3)))
        shape = self.shapes[x]
        if self.chance(0.4):
            x = self.node("Add", shape, *self.swapped(x, self.constant(self.reals(shape[-1]))))
        root, one, half = (np.float32(v) for v in (2**0.5, 1, 0.5))
        if not self.usually():
            root, half = np.float32(self.pick(2**0.5, 1.5)), np.float32(self.pick(0.5, 0.25))
        total = self.node("Erf", shape, self.node("Div", shape, x, self.constant(root)))
        total = self.node("Add", shape, *self.swapped(total, self.constant(one)))
        if self.chance(0.5):
            product = self.node("Mul", shape, *self.swapped(x, total))
            self.node("Mul", shape, *self.swapped(product, self.constant(half)))
        else:
            product = self.node("Mul", shape, *self.swapped(x, self.constant(half)))
            self.node("Mul", shape, *self.swapped(product, total))

    def mean(self, x: str, axis: int) -> str:
        shape = (*self.shapes[x][:-1], 1)
        if self.opset >= 18:
            return self.node("ReduceMean", shape, x, self.constant(np.array([axis])))
        return self.node("ReduceMean", shape, x, axes=[axis])

    def normalization(self) -> None:
        x = self.any_tensor(int(self.pick(2, 3, 3)))
        shape = self.shapes[x]
        few, vector = (*shape[:-1], 1), shape[-1:]
        if self.chance(0.5):
            other = self.tensor(*shape)
            if self.chance(0.4):
                y, v = self.pick((x, other), (other, x))
                y = self.node("Add", shape, *self.swapped(y, self.constant(self.reals(*vector))))
                x = self.node("Add", shape, y, x if v == x else other)
            else:
                x = self.node("Add", shape, x, other)
        axis = -1 if self.usually() else len(shape) - 1
        scale, bias = (self.constant(self.reals(*vector)) for _ in range(2))
        epsilon = float(self.pick(1e-5, 1e-3))
        if self.chance(0.3) and self.opset >= 17:
            self.node("LayerNormalization", shape, x, scale, bias, axis=axis, epsilon=epsilon)
            return
        centred = self.chance(0.6)
        apart = self.node("Sub", shape, x, self.mean(x, axis)) if centred else x
        power = self.node("Pow", shape, apart, self.constant(np.float32(2)))
        if not self.usually():
            power = self.node("Mul", shape, apart, apart)
        total = self.node("Add", few, *self.swapped(self.mean(power, axis), self.constant(np.float32(epsilon))))
        y = self.node("Div", shape, apart, self.node("Sqrt", few, total))
        y = self.node("Mul", shape, *self.swapped(y, scale))
        if centred or self.chance(0.3):
            self.node("Add", shape, *self.swapped(y, bias))

    def quotient(self) -> None:
        x = self.any_tensor(int(self.pick(2, 3)))
        shape = self.shapes[x]
        one = self.constant(np.full(self.pick((), (1,)), 1 if self.usually() else 2, np.float32))
        y = self.node("Div", shape, one, x)
        self.node("Mul", shape, *self.swapped(y, self.tensor(*shape)))

    def unary(self) -> None:
        x = self.any_tensor(int(self.pick(2, 3, 4)))
        self.node(str(self.pick(*_UNARY)), self.shapes[x], x)

    def grow(self, steps: int) -> None:
        """Adds so many random groups."""
        parts = (self.convolution, self.convolution, self.product, self.product, self.gelu, self.normalization)
        parts = (*parts, self.normalization, self.quotient, self.unary)
        for _ in range(steps):
            parts[int(self.rng.integers(len(parts)))]()

    def model(self) -> tuple[bytes, list[np.ndarray]]:
        """The model, whose results are what nothing reads, and what to feed it."""
        read = self.read()
        used = {name: array for name, array in self.inputs.items() if name in read}
        outputs = dict.fromkeys(self.results(), TensorProto.FLOAT)
        return build(self.nodes, used, outputs, self.constants, opset=self.opset)
