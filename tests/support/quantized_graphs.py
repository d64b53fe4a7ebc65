"""Random graphs of dequantizations, operators and quantizations, with the odd parameters that decide about fusion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .onnx_models import MICROSOFT, integers, scale, zero_point

_TYPES = {
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.int8): TensorProto.INT8,
    np.dtype(np.uint16): TensorProto.UINT16,
    np.dtype(np.int16): TensorProto.INT16,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.float32): TensorProto.FLOAT,
}
_UNARY = ("AveragePool", "GlobalAveragePool", "LeakyRelu", "Sigmoid", "Softmax", "Relu", "Tanh", "ReduceMean", "Abs")
_MOVEMENT = ("MaxPool", "Reshape", "Transpose", "Flatten", "Gather", "Slice", "Squeeze", "Unsqueeze", "Tile", "Expand")
_MOVEMENT += ("DepthToSpace", "SpaceToDepth", "Identity", "ReduceMax", "ReduceMin")


@dataclass(frozen=True)
class Value:
    """A tensor of the graph: quantized values with their parameters, or real numbers (scale None)."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scale: np.ndarray | None = None
    zero: np.ndarray | None = None


@dataclass
class GraphMaker:
    """Grows a random graph node by node.

    Attributes:
        usual: how often parameters are the ones that fuse; the rest are odd.
        moved: whether dequantized constants are reshaped or transposed now and then. The runtime moves such transposes
            about when all of its optimisers run.
    """

    rng: np.random.Generator
    opset: int = 17
    usual: float = 0.8
    moved: bool = False
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    outputs: dict[str, np.dtype[Any]] = field(default_factory=dict)
    values: list[Value] = field(default_factory=list)
    reals: list[Value] = field(default_factory=list)
    count: int = 0

    # -- small parts -----------------------------------------------------------------------------------------------
    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def usually(self) -> bool:
        return bool(self.rng.random() < self.usual)

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def constant(self, array: Any) -> str:
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        names = [self.name(op_type.lower()) for _ in range(outputs)]
        domain = MICROSOFT if attributes.pop("microsoft", False) else ""
        self.nodes.append(helper.make_node(op_type, inputs, names, self.name("n"), domain=domain, **attributes))
        return names

    def input(self, shape: tuple[int, ...], dtype: Any, size: np.ndarray | None = None) -> Value:
        name, dtype = self.name("x"), np.dtype(dtype)
        if dtype.kind == "f":
            self.inputs[name] = self.rng.standard_normal(shape).astype(np.float32)
            return Value(name, shape, dtype)
        self.inputs[name] = integers(self.rng, shape, dtype)
        return Value(name, shape, dtype, scale(self.rng) if size is None else size, zero_point(self.rng, dtype))

    # -- pairs -----------------------------------------------------------------------------------------------------
    def dequantize(self, value: Value, **attributes: Any) -> str:
        """A dequantization of `value`; one that is there already now and then."""
        assert value.scale is not None
        operands = [value.name, self.constant(value.scale)]
        bare = value.zero is None or (not np.any(value.zero) and self.rng.random() < 0.1)
        if not bare:
            operands.append(self.constant(value.zero))
        return self.node("DequantizeLinear", *operands, **attributes)[0]

    def quantize(
        self, name: str, shape: tuple[int, ...], like: Value, *, same: bool = False, low: bool = False
    ) -> None:
        """A quantization; with the parameters of `like` (same), or with the lowest zero point (low)."""
        if self.rng.random() < 0.06:
            # The result stays real.
            self.reals.append(Value(name, shape, np.dtype(np.float32)))
            self.outputs[name] = np.dtype(np.float32)
            return
        dtype = like.dtype if self.usually() or same else np.dtype(self.pick(np.uint8, np.int8))
        size, zero = (like.scale, like.zero) if same and self.usually() else (scale(self.rng), None)
        if zero is None or zero.dtype != dtype:
            zero = zero_point(self.rng, dtype)
        if low and self.usually():
            zero = np.array(np.iinfo(dtype).min, dtype)
        if size is None or size.ndim:
            size = scale(self.rng)
        operands = [name, self.constant(size), self.constant(zero)]
        if dtype == np.uint8 and not zero and self.rng.random() < 0.3:
            operands.pop()
        (result,) = self.node("QuantizeLinear", *operands)
        self.values.append(Value(result, shape, dtype, size, zero))

    def twin(self) -> None:
        """A second quantization of the same tensor, with the same constants or with equal ones."""
        nodes = [node for node in self.nodes if node.op_type == "QuantizeLinear" and len(node.input) == 3]
        if not nodes:
            return
        node = nodes[int(self.rng.integers(len(nodes)))]
        found = next(v for v in self.values if v.name == node.output[0])
        names = list(node.input)
        if self.rng.random() < 0.5:
            names[1:] = [self.constant(found.scale), self.constant(found.zero)]
        (name,) = self.node("QuantizeLinear", *names)
        self.values.append(Value(name, found.shape, found.dtype, found.scale, found.zero))

    def operand(self, *, rank: int | None = None) -> Value:
        """Quantized values that are there, or a new input."""
        fitting = [v for v in self.values if rank is None or len(v.shape) == rank]
        if fitting and self.rng.random() < 0.8:
            return fitting[int(self.rng.integers(max(0, len(fitting) - 3), len(fitting)))]
        shape = tuple(int(e) for e in self.rng.integers(1, 6, rank or 4))
        if len(shape) == 4:
            shape = (1, int(self.pick(2, 4)), int(self.pick(4, 6)), int(self.pick(4, 6)))
        dtype = self.pick(np.uint8, np.int8) if self.rng.random() < 0.93 else self.pick(np.uint16, np.int16)
        if np.dtype(dtype).itemsize == 2 and self.opset < 21:
            dtype = np.uint8
        value = self.input(shape, dtype)
        self.values.append(value)
        return value

    def clamp(self, name: str) -> tuple[str, bool]:
        """Now and then a clamp behind an operator, and whether there is one."""
        draw = self.rng.random()
        if draw > 0.4:
            return name, False
        if draw > 0.15:
            return self.node("Relu", name)[0], True
        limits = self.pick((0, 6), (-1000, 1000), (0, 1e6), (-1, 1))
        return self.node("Clip", name, *(self.constant(np.float32(v)) for v in limits))[0], True

    # -- operators -------------------------------------------------------------------------------------------------
    def unary(self) -> None:
        op_type = str(self.pick(*_UNARY))
        value = self.operand(rank=4)
        attributes: dict[str, Any] = {}
        shape = value.shape
        if op_type == "AveragePool":
            attributes = {"kernel_shape": [2, 2], "count_include_pad": int(self.pick(0, 1)), "pads": [0, 1, 1, 0]}
            shape = shape[:2] + shape[2:]
        if op_type in ("GlobalAveragePool", "ReduceMean"):
            shape = (*shape[:2], 1, 1)
            attributes = {"axes": [2, 3]} if op_type == "ReduceMean" and self.opset < 18 else {}
        if op_type == "Softmax":
            attributes = {"axis": int(self.pick(-1, 1, 3))}
        inputs = [self.dequantize(value)]
        if op_type == "ReduceMean" and self.opset >= 18:
            inputs.append(self.constant(np.array([2, 3])))
        (name,) = self.node(op_type, *inputs, **attributes)
        if op_type == "AveragePool":
            shape = (*shape[:2], shape[2], shape[3])
        name, clamped = self.clamp(name)
        self.quantize(name, shape, value, low=clamped or op_type == "Relu")

    def movement(self) -> None:
        op_type = str(self.pick(*_MOVEMENT))
        value = self.operand(rank=4)
        shape, extra, attributes = value.shape, [], {}
        if op_type == "MaxPool":
            attributes, shape = {"kernel_shape": [2, 2]}, (*shape[:2], shape[2] - 1, shape[3] - 1)
        elif op_type in ("Reshape", "Expand"):
            flat = int(np.prod(shape))
            shape = self.pick((flat,), (2, flat // 2)) if op_type == "Reshape" else (2, *shape[1:])
            extra = [np.array(shape)]
        elif op_type == "Transpose":
            order = [int(i) for i in self.rng.permutation(4)]
            attributes, shape = {"perm": order}, tuple(shape[i] for i in order)
        elif op_type == "Flatten":
            shape = (shape[0], int(np.prod(shape[1:])))
        elif op_type == "Gather":
            extra, attributes, shape = [np.array([0, 1, 1])], {"axis": 1}, (shape[0], 3, *shape[2:])
        elif op_type == "Slice":
            extra, shape = [np.array([0]), np.array([2]), np.array([2])], (*shape[:2], 2, shape[3])
        elif op_type == "Squeeze":
            extra, shape = [np.array([0])], shape[1:]
        elif op_type == "Unsqueeze":
            extra, shape = [np.array([0])], (1, *shape)
        elif op_type == "Tile":
            extra, shape = [np.array([1, 1, 2, 1])], (*shape[:2], shape[2] * 2, shape[3])
        elif op_type == "DepthToSpace":
            if shape[1] % 4:
                return
            attributes, shape = {"blocksize": 2}, (shape[0], shape[1] // 4, shape[2] * 2, shape[3] * 2)
        elif op_type == "SpaceToDepth":
            if shape[2] % 2 or shape[3] % 2:
                return
            attributes, shape = {"blocksize": 2}, (shape[0], shape[1] * 4, shape[2] // 2, shape[3] // 2)
        elif op_type in ("ReduceMax", "ReduceMin"):
            shape = (shape[0], 1, *shape[2:])
            if self.opset >= 18:
                extra = [np.array([1])]
            else:
                attributes = {"axes": [1]}
        if shape[0] != value.shape[0] and op_type in ("Transpose",) and 0 in shape:
            return
        if op_type == "Squeeze" and value.shape[0] != 1:
            return
        if op_type == "MaxPool" and min(shape) < 1:
            return
        if op_type == "Gather" and value.shape[1] < 2:
            return
        if op_type == "Expand" and value.shape[0] != 1:
            return
        if op_type == "Slice" and value.shape[2] < 2:
            return
        (name,) = self.node(op_type, self.dequantize(value), *(self.constant(array) for array in extra), **attributes)
        self.quantize(name, shape, value, same=True)

    def binary(self) -> None:
        op_type = str(self.pick("Add", "Mul", "Concat", "Where", "Sub"))
        first = self.operand()
        others = [v for v in self.values if v.shape == first.shape]
        second = self.pick(*others)
        names = [self.dequantize(first), self.dequantize(second)]
        if self.rng.random() < 0.1:
            names[1] = self.constant(np.float32(1.5))
        shape = first.shape
        if op_type == "Concat":
            if names[1].startswith("c") and not names[1].startswith("concat"):
                return
            (name,) = self.node("Concat", *names, axis=0)
            shape = (2 * shape[0], *shape[1:])
        elif op_type == "Where":
            (name,) = self.node("Where", self.constant(self.rng.random(shape) < 0.5), *names)
        else:
            (name,) = self.node(op_type, *names)
        name, clamped = self.clamp(name)
        self.quantize(name, shape, first, low=clamped)

    def _bias(self, product: np.ndarray, count: int) -> str | None:
        """An s32, real or other bias, or none."""
        draw = self.rng.random()
        if draw < 0.15:
            return None
        if draw < 0.4:
            return self.constant(self.rng.standard_normal(count).astype(np.float32))
        size = product
        if not self.usually():
            size = np.asarray(product * self.pick(2, np.float32(1.004), np.float32(1.00000012), 1), np.float32)
        quantized = self.rng.integers(-1000, 1000, count).astype(np.int32)
        zero = None if self.rng.random() < 0.7 else np.full(size.shape, 0 if self.usually() else 1, np.int32)
        return self.dequantize(Value(self.constant(quantized), (count,), quantized.dtype, size, zero), axis=0)

    def _weights(self, shape: tuple[int, ...], axis: int, like: Value) -> tuple[str, np.ndarray]:
        """Constant weights: 8 bits per tensor or per channel, or real ones."""
        real = self.rng.random() < 0.08
        dtype = np.dtype(np.int8 if like.dtype == np.int8 and self.usually() else self.pick(np.int8, np.uint8))
        if real:
            return self.constant(self.rng.standard_normal(shape).astype(np.float32)), np.float32(1)
        per_channel = self.rng.random() < 0.4
        size = scale(self.rng, shape[axis] if per_channel else ())
        zero = zero_point(self.rng, dtype, size.shape)
        if self.usually():
            zero = np.zeros(size.shape, dtype)
        quantized = integers(self.rng, shape, dtype)
        attributes = {"axis": axis} if per_channel else {}
        draw = self.rng.random() if self.moved else 1.0
        if draw < 0.1 and not per_channel:
            flat = Value(self.constant(quantized.reshape(-1)), (quantized.size,), dtype, size, zero)
            return self.node("Reshape", self.dequantize(flat), self.constant(np.array(shape)))[0], size
        if draw < 0.3:
            turned = Value(self.constant(np.ascontiguousarray(quantized.T)), shape[::-1], dtype, size, zero)
            if per_channel:
                attributes = {"axis": len(shape) - 1 - axis}
            order = {"perm": [*range(len(shape))][::-1]} if draw < 0.2 else {}
            return self.node("Transpose", self.dequantize(turned, **attributes), **order)[0], size
        return self.dequantize(Value(self.constant(quantized), shape, dtype, size, zero), **attributes), size

    def conv(self) -> None:
        value = self.operand(rank=4)
        assert value.scale is not None
        if value.scale.ndim or min(value.shape[2:]) < 2:
            return
        channels, filters = value.shape[1], int(self.pick(2, 4))
        weights, size = self._weights((filters, channels, 2, 2), 0, value)
        inputs = [self.dequantize(value), weights]
        bias = self._bias(np.asarray(value.scale * size, np.float32), filters)
        if bias is not None:
            inputs.append(bias)
        (name,) = self.node("Conv", *inputs)
        name, clamped = self.clamp(name)
        shape = (value.shape[0], filters, value.shape[2] - 1, value.shape[3] - 1)
        self.quantize(name, shape, value, low=clamped)

    def product(self) -> None:
        op_type = str(self.pick("MatMul", "Gemm", "sum"))
        value = self.operand(rank=2 if op_type == "Gemm" else int(self.pick(2, 2, 3)))
        assert value.scale is not None
        depth, columns = value.shape[-1], int(self.rng.integers(1, 5))
        transposed = op_type == "Gemm" and self.rng.random() < 0.5
        shape = (columns, depth) if transposed else (depth, columns)
        weights, size = self._weights(shape, 0 if transposed else 1, value)
        operands = [self.dequantize(value), weights]
        bias = self._bias(np.asarray(value.scale * size, np.float32), columns)
        if op_type == "Gemm":
            attributes: dict[str, Any] = {"transB": int(transposed)}
            if not self.usually():
                attributes |= {self.pick("alpha", "beta"): 2.0}
            (name,) = self.node("Gemm", *operands, *([] if bias is None else [bias]), **attributes)
        else:
            (name,) = self.node("MatMul", *operands)
            if op_type == "sum" and bias is not None:
                (name,) = self.node("Add", *((name, bias) if self.usually() else (bias, name)))
        name, clamped = self.clamp(name)
        self.quantize(name, (*value.shape[:-1], columns), value, low=clamped)

    def split(self) -> None:
        value = self.operand(rank=4)
        if value.shape[1] % 2 or value.scale is None:
            return
        attributes = {"num_outputs": 2} if self.opset >= 18 else {}
        names = self.node("Split", self.dequantize(value), outputs=2, axis=1, **attributes)
        for name in names:
            self.quantize(name, (value.shape[0], value.shape[1] // 2, *value.shape[2:]), value, same=True)

    def arg_max(self) -> None:
        value = self.operand(rank=4)
        (name,) = self.node("ArgMax", self.dequantize(value), axis=1)
        self.outputs[name] = np.dtype(np.int64)

    def real_input(self) -> None:
        value = self.input((1, 2, 4, 4), np.float32)
        self.quantize(value.name, value.shape, Value("", (), np.dtype(self.pick(np.uint8, np.int8))))

    def again(self) -> None:
        """A pair behind a pair."""
        value = self.operand()
        self.quantize(self.dequantize(value), value.shape, value, same=self.usually())

    # -- all -------------------------------------------------------------------------------------------------------
    def grow(self, steps: int) -> None:
        """Adds so many random operators, and makes results of what nothing reads."""
        parts = [self.unary, self.movement, self.binary, self.conv, self.conv, self.product, self.product]
        parts += [self.unary, self.movement, self.split, self.arg_max, self.real_input, self.again, self.twin]
        for _ in range(steps):
            parts[int(self.rng.integers(len(parts)))]()
        read = {name for node in self.nodes for name in node.input}
        written = {name for node in self.nodes for name in node.output}
        for value in self.values:
            if value.name in written and (value.name not in read or self.rng.random() < 0.05):
                self.outputs[value.name] = value.dtype
        for node in self.nodes:
            # Now and then a result inside of a group.
            if node.op_type == "DequantizeLinear" and self.rng.random() < 0.02:
                self.outputs[node.output[0]] = np.dtype(np.float32)
            if len(node.output) == 1 and node.output[0] not in read and node.output[0] not in self.outputs:
                self.outputs[node.output[0]] = np.dtype(np.float32)

    def model(self) -> tuple[bytes, list[np.ndarray]]:
        """The model, and what to feed it."""
        graph = helper.make_graph(
            self.nodes,
            "graph",
            [helper.make_tensor_value_info(n, _TYPES[a.dtype], a.shape) for n, a in self.inputs.items()],
            [helper.make_tensor_value_info(n, _TYPES[dtype], None) for n, dtype in self.outputs.items()],
            self.constants,
        )
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString(), list(
            self.inputs.values()
        )
