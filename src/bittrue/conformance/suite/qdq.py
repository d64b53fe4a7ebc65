"""Cases of .tflite models as .onnx: DequantizeLinear, the operator on real numbers, QuantizeLinear.

Names, shapes and types of inputs and outputs stay; transpositions that channels-first operators need are inside, on
quantized values. The arithmetic is another one: what such a model means in real numbers is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import BittrueError
from ...graph import Graph, Node, Tensor
from ...operators.core.geometry import window
from .case import SuiteCase
from .onnx_model import OnnxModel

CHANNELS_FIRST, CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
_CLAMPS = {"relu": (0.0, None), "relu6": (0.0, 6.0), "relu_n1_to_1": (-1.0, 1.0)}


class NotSaid(Exception):
    """ONNX cannot say this; the reason is the text."""


@dataclass(frozen=True)
class QdqForm:
    """What became of a case.

    Attributes:
        content: the .onnx file; None where ONNX cannot say it.
        reason: then, why.
    """

    content: bytes | None
    reason: str = ""


class Writer:
    """Writes the ONNX form of one node.

    Attributes:
        node: of the .tflite model.
        model: what is written.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.node: Node = graph.nodes[0]
        self.opset = 21 if any(t.dtype in ("s16", "s4", "u4") for t in graph.tensors) else 13
        self.model = OnnxModel(self.opset)
        for index in graph.inputs:
            tensor = graph.tensors[index]
            self.model.input(tensor.name, tensor.dtype, tensor.shape)

    # -- what the node reads ---------------------------------------------------------------------------------------
    @property
    def attributes(self) -> Mapping[str, Any]:
        return self.node.attributes

    def has(self, position: int) -> bool:
        return position < len(self.node.inputs) and self.node.inputs[position] is not None

    def tensor(self, position: int) -> Tensor:
        index = self.node.inputs[position] if self.has(position) else None
        if index is None:
            raise NotSaid(f"input {position} is absent")
        return self.graph.tensors[index]

    @property
    def result(self) -> Tensor:
        return self.graph.tensors[self.node.outputs[0]]

    def integers(self, position: int) -> list[int]:
        """Values of a constant operand."""
        tensor = self.tensor(position)
        if not tensor.is_constant:
            raise NotSaid(f"'{tensor.name}' is no constant")
        return [int(value) for value in tensor.values().reshape(-1)]

    def name(self, position: int) -> str:
        """An operand as it is: the input of the model, or a constant."""
        tensor = self.tensor(position)
        return self.model.constant(tensor.values(), tensor.dtype) if tensor.is_constant else tensor.name

    # -- nodes -----------------------------------------------------------------------------------------------------
    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.model.node(operator, inputs, attributes=attributes)

    def transposed(self, name: str, order: Sequence[int]) -> str:
        return self.add("Transpose", name, perm=list(order))

    def shaped(self, name: str, shape: Sequence[int]) -> str:
        return self.add("Reshape", name, self.model.constant(np.array(shape, np.int64)))

    def real(
        self,
        position: int,
        order: Sequence[int] = (),
        shape: Sequence[int] = (),
        product: np.ndarray | None = None,
    ) -> str:
        """An operand as real numbers.

        Args:
            order: of its axes, applied to quantized values.
            shape: another shape, given to quantized values.
            product: scale of an operand that has none of its own: a bias.
        """
        tensor = self.tensor(position)
        found, axis = tensor.quantization, None
        if tensor.is_constant:
            values = tensor.values()
            values = np.transpose(values, order) if order else values
            name = self.model.constant(values.reshape(shape) if shape else values, tensor.dtype)
        else:
            name = self.transposed(tensor.name, order) if order else tensor.name
            name = self.shaped(name, shape) if shape else name
        if tensor.dtype == "f32":
            return name
        if found is None and product is None:
            raise NotSaid(f"'{tensor.name}' has no scale")
        scales = product if found is None else found.scales
        points = np.zeros(1, np.int64) if found is None else found.zero_points
        assert scales is not None
        if scales.size > 1:
            axis = 0 if found is None or found.axis is None else found.axis
            axis = list(order).index(axis) if order else axis
        if tensor.dtype == "s64":
            # DequantizeLinear does not take 64 bits.
            wide = self.add("Cast", name, to=1)
            return self.add("Mul", wide, self.model.constant(scales if scales.size > 1 else scales.reshape(())))
        more = {} if axis is None else {"axis": axis}
        operands = [name, self.model.constant(scales if scales.size > 1 else scales.reshape(()))]
        if tensor.dtype != "s32":
            points = points if scales.size > 1 else points.reshape(-1)[:1].reshape(())
            operands.append(self.model.constant(points, tensor.dtype))
        return self.add("DequantizeLinear", *operands, **more)

    def clamped(self, name: str) -> str:
        """With the node's own activation."""
        activation = str(self.attributes.get("activation", "none"))
        if activation == "none":
            return name
        if activation not in _CLAMPS:
            raise NotSaid(f"activation {activation}")
        return self.clamp(name, *_CLAMPS[activation])

    def clamp(self, name: str, low: float | None, high: float | None) -> str:
        if low == 0 and high is None:
            return self.add("Relu", name)
        ends = ["" if end is None else self.model.constant(np.float32(end)) for end in (low, high)]
        return self.add("Clip", name, *ends)

    def quantized(self, name: str) -> str:
        """Quantized values of the result's type and parameters."""
        tensor = self.result
        if tensor.dtype == "f32":
            return name
        if tensor.quantization is None:
            raise NotSaid(f"'{tensor.name}' has no scale")
        if tensor.quantization.per_axis:
            raise NotSaid("a result with scales per axis")
        if tensor.dtype not in ("s8", "u8", "s16", "u16"):
            raise NotSaid(f"a result of {tensor.dtype}")
        scale = self.model.constant(tensor.quantization.scales[0])
        point = self.model.constant(int(tensor.quantization.zero_points[0]), tensor.dtype)
        return self.add("QuantizeLinear", name, scale, point)

    def finish(self, name: str) -> bytes:
        """The file; `name` becomes the output under the name that it has in the .tflite model."""
        self.model.node("Identity", [name], [self.result.name])
        self.model.output(self.result.name, self.result.dtype, self.result.shape)
        return self.model.write()


Mapper = Callable[[Writer], str]


def _window(w: Writer, kernel: Sequence[int]) -> dict[str, list[int]]:
    """Attributes of a window; padding as numbers, since runtimes differ about SAME with dilation."""
    strides, dilations = ([int(v) for v in w.attributes[name]] for name in ("strides", "dilations"))
    found = {"kernel_shape": list(kernel), "strides": strides}
    if set(dilations) - {1}:
        found["dilations"] = dilations
    if w.attributes["padding"] == "same_upper":
        dilations = dilations or [1] * len(kernel)
        axes = zip(w.tensor(0).shape[1:3], kernel, strides, dilations, strict=True)
        sides = [window(*axis, padding="same_upper") for axis in axes]
        found["pads"] = [one.before for one in sides] + [one.after for one in sides]
    return found


def _bias_scale(w: Writer, weights: int = 1) -> np.ndarray | None:
    one, two = w.tensor(0).quantization, w.tensor(weights).quantization
    return None if one is None or two is None else np.asarray(one.scales * two.scales, np.float32)


# What brings filters of these orders into that of ONNX.
_FILTERS = {"OSI": (0, 3, 1, 2), "ISO": (3, 0, 1, 2)}


def _convolution(w: Writer) -> str:
    layout = w.attributes["filter_layout"]
    if layout not in _FILTERS:
        raise NotSaid("convolutions over three axes")
    filters = w.tensor(1).shape
    attributes: dict[str, object] = dict(_window(w, filters[1:3]))
    channels = w.tensor(0).shape[3]
    group = channels if layout == "ISO" else channels // max(filters[3], 1)
    if group > 1:
        attributes["group"] = group
    operands = [w.real(0, CHANNELS_FIRST), w.real(1, _FILTERS[layout])]
    if w.has(2):
        operands.append(w.real(2, product=_bias_scale(w)))
    made = w.clamped(w.add("Conv", *operands, **attributes))
    return w.transposed(w.quantized(made), CHANNELS_LAST)


def _fully_connected(w: Writer) -> str:
    if w.attributes.get("weights_format", "default") != "default":
        raise NotSaid("shuffled weights")
    shape = w.tensor(0).shape
    terms = w.tensor(1).shape[1]
    rows = int(np.prod(shape)) // max(terms, 1)
    operands = [w.real(0, shape=() if len(shape) == 2 else (rows, terms)), w.real(1)]
    if w.has(2):
        operands.append(w.real(2, product=_bias_scale(w)))
    made = w.quantized(w.clamped(w.add("Gemm", *operands, transB=1)))
    wanted = w.result.shape
    return made if len(wanted) == 2 else w.shaped(made, wanted)


def _pool(operator: str) -> Mapper:
    def mapper(w: Writer) -> str:
        made = w.add(operator, w.real(0, CHANNELS_FIRST), **_window(w, w.attributes["kernel"]))
        return w.transposed(w.quantized(w.clamped(made)), CHANNELS_LAST)

    return mapper


def _binary(operator: str) -> Mapper:
    def mapper(w: Writer) -> str:
        return w.quantized(w.clamped(w.add(operator, w.real(0), w.real(1))))

    return mapper


def _compare(operator: str, negated: bool = False) -> Mapper:
    def mapper(w: Writer) -> str:
        made = w.add(operator, w.real(0), w.real(1))
        return w.add("Not", made) if negated else made

    return mapper


def _unary(operator: str) -> Mapper:
    def mapper(w: Writer) -> str:
        return w.quantized(w.add(operator, w.real(0)))

    return mapper


def _relu(w: Writer) -> str:
    return w.quantized(w.clamped(w.real(0)))


def _leaky_relu(w: Writer) -> str:
    return w.quantized(w.add("LeakyRelu", w.real(0), alpha=float(w.attributes["alpha"])))


def _hard_swish(w: Writer) -> str:
    x = w.real(0)
    moved = w.add("Add", x, w.model.constant(np.float32(3)))
    gate = w.add("Mul", w.clamp(moved, 0.0, 6.0), w.model.constant(np.float32(1 / 6)))
    return w.quantized(w.add("Mul", x, gate))


def _softmax(w: Writer) -> str:
    x = w.real(0)
    beta = float(w.attributes.get("beta", 1.0))
    if beta != 1:
        x = w.add("Mul", x, w.model.constant(np.float32(beta)))
    return w.quantized(w.add("Softmax", x, axis=-1))


def _log_softmax(w: Writer) -> str:
    return w.quantized(w.add("LogSoftmax", w.real(0), axis=-1))


def _l2_normalization(w: Writer) -> str:
    return w.quantized(w.clamped(w.add("LpNormalization", w.real(0), axis=-1, p=2)))


def _concatenation(w: Writer) -> str:
    parts = [w.real(position) for position in range(len(w.node.inputs))]
    return w.quantized(w.clamped(w.add("Concat", *parts, axis=int(w.attributes["axis"]))))


def _reduce(operator: str) -> Mapper:
    def mapper(w: Writer) -> str:
        rank = len(w.tensor(0).shape)
        axes = sorted({axis % rank for axis in w.integers(1)})
        keep = int(bool(w.attributes["keep_dims"]))
        if operator == "ReduceSum" or w.opset >= 18:
            made = w.add(operator, w.real(0), w.model.constant(np.array(axes, np.int64)), keepdims=keep)
        else:
            made = w.add(operator, w.real(0), axes=axes, keepdims=keep)
        return w.quantized(made)

    return mapper


def _shape_change(w: Writer) -> str:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: the shape that the file says."""
    return w.quantized(w.shaped(w.real(0), w.result.shape))


def _transpose(w: Writer) -> str:
    return w.quantized(w.add("Transpose", w.real(0), perm=w.integers(1)))


def _pad(w: Writer) -> str:
    pairs = np.array(w.integers(1), np.int64).reshape(-1, 2)
    operands = [w.real(0), w.model.constant(pairs.T.reshape(-1))]
    if w.has(2):
        operands.append(w.real(2, shape=()) if not w.tensor(2).shape else w.shaped(w.real(2), ()))
    return w.quantized(w.add("Pad", *operands))


def _slice(w: Writer) -> str:
    begins, sizes = w.integers(1), w.integers(2)
    shape = w.tensor(0).shape
    ends = [
        dimension if size == -1 else begin + size for begin, size, dimension in zip(begins, sizes, shape, strict=True)
    ]
    parts = (begins, ends, list(range(len(shape))))
    return w.quantized(w.add("Slice", w.real(0), *(w.model.constant(np.array(part, np.int64)) for part in parts)))


def _gather(w: Writer) -> str:
    if w.attributes.get("batch_dims", 0):
        raise NotSaid("batch dimensions")
    return w.quantized(w.add("Gather", w.real(0), w.name(1), axis=int(w.attributes["axis"])))


def _blocks(operator: str) -> Mapper:
    def mapper(w: Writer) -> str:
        made = w.add(operator, w.real(0, CHANNELS_FIRST), blocksize=int(w.attributes["block_size"]))
        return w.transposed(w.quantized(made), CHANNELS_LAST)

    return mapper


def _resize_linear(w: Writer) -> str:
    height, width = w.integers(1)
    shape = w.tensor(0).shape
    sizes = w.model.constant(np.array([shape[0], shape[3], height, width], np.int64))
    mode = str(w.attributes["transformation"]).replace("align_corners_half_pixel", "align_corners")
    made = w.add("Resize", w.real(0, CHANNELS_FIRST), "", "", sizes, mode="linear", coordinate_transformation_mode=mode)
    return w.transposed(w.quantized(made), CHANNELS_LAST)


def _space_to_batch(w: Writer) -> str:
    """Pad, then split every spatial axis and bring the parts to the front."""
    x, shape = w.tensor(0), list(w.tensor(0).shape)
    blocks, pads = w.integers(1), np.array(w.integers(2), np.int64).reshape(-1, 2)
    count, rank = len(blocks), len(shape)
    before = [0] + [int(p) for p in pads[:, 0]] + [0] * (rank - count - 1)
    after = [0] + [int(p) for p in pads[:, 1]] + [0] * (rank - count - 1)
    real = w.add("Pad", w.real(0), w.model.constant(np.array(before + after, np.int64)))
    padded = [size + a + b for size, a, b in zip(x.shape, before, after, strict=True)]
    split = [padded[0]]
    for axis, block in enumerate(blocks):
        split += [padded[1 + axis] // block, block]
    split += padded[1 + count :]
    # [n, h', bh, w', bw, ...] -> [bh, bw, n, h', w', ...]
    order = [2 + 2 * axis for axis in range(count)] + [0] + [1 + 2 * axis for axis in range(count)]
    order += list(range(1 + 2 * count, len(split)))
    return w.quantized(w.shaped(w.add("Transpose", w.shaped(real, split), perm=order), w.result.shape))


def _batch_to_space(w: Writer) -> str:
    """The other way round: parts back beside their axes, then the margins go."""
    shape = list(w.tensor(0).shape)
    blocks, crops = w.integers(1), np.array(w.integers(2), np.int64).reshape(-1, 2)
    count = len(blocks)
    batch = shape[0] // int(np.prod(blocks))
    split = [*blocks, batch, *shape[1:]]
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    order += list(range(2 * count + 1, len(split)))
    whole = [batch, *(shape[1 + axis] * block for axis, block in enumerate(blocks)), *shape[1 + count :]]
    made = w.shaped(w.add("Transpose", w.shaped(w.real(0), split), perm=order), whole)
    begins = [int(pair[0]) for pair in crops]
    ends = [whole[1 + axis] - int(pair[1]) for axis, pair in enumerate(crops)]
    parts = (begins, ends, list(range(1, 1 + count)))
    return w.quantized(w.add("Slice", made, *(w.model.constant(np.array(part, np.int64)) for part in parts)))


def _arg(operator: str) -> Mapper:
    def mapper(w: Writer) -> str:
        made = w.add(operator, w.real(0), axis=w.integers(1)[0], keepdims=0)
        return w.add("Cast", made, to=6) if w.result.dtype == "s32" else made

    return mapper


def _shape(w: Writer) -> str:
    made = w.add("Shape", w.name(0))
    return w.add("Cast", made, to=6) if w.result.dtype == "s32" else made


def _quantize(w: Writer) -> str:
    return w.quantized(w.real(0))


MAPPERS: Mapping[str, Mapper] = {
    "abs": _unary("Abs"),
    "add": _binary("Add"),
    "arg_max": _arg("ArgMax"),
    "arg_min": _arg("ArgMin"),
    "average_pool": _pool("AveragePool"),
    "batch_to_space": _batch_to_space,
    "concatenation": _concatenation,
    "conv": _convolution,
    "depth_to_space": _blocks("DepthToSpace"),
    "dequantize": _quantize,
    "div": _binary("Div"),
    "elu": _unary("Elu"),
    "equal": _compare("Equal"),
    "expand_dims": _shape_change,
    "fully_connected": _fully_connected,
    "gather": _gather,
    "greater": _compare("Greater"),
    "greater_equal": _compare("GreaterOrEqual"),
    "hard_swish": _hard_swish,
    "lp_normalization": _l2_normalization,
    "leaky_relu": _leaky_relu,
    "less": _compare("Less"),
    "less_equal": _compare("LessOrEqual"),
    "log_softmax": _log_softmax,
    "logistic": _unary("Sigmoid"),
    "max_pool": _pool("MaxPool"),
    "maximum": _binary("Max"),
    "mean": _reduce("ReduceMean"),
    "minimum": _binary("Min"),
    "mul": _binary("Mul"),
    "neg": _unary("Neg"),
    "not_equal": _compare("Equal", negated=True),
    "pad": _pad,
    "quantize": _quantize,
    "reduce_max": _reduce("ReduceMax"),
    "reduce_min": _reduce("ReduceMin"),
    "relu": _relu,
    "reshape": _shape_change,
    "resize_linear": _resize_linear,
    "shape": _shape,
    "slice": _slice,
    "softmax": _softmax,
    "space_to_batch": _space_to_batch,
    "space_to_depth": _blocks("SpaceToDepth"),
    "squeeze": _shape_change,
    "sub": _binary("Sub"),
    "sum": _reduce("ReduceSum"),
    "tanh": _unary("Tanh"),
    "transpose": _transpose,
}


def qdq_form(case: SuiteCase) -> QdqForm:
    """The ONNX form of a .tflite case, or why there is none.

    Raises:
        UnsupportedError: the package `onnx` is not installed.
    """
    if case.format != "tflite":
        return QdqForm(None, f"it is a model of the format {case.format}")
    if case.rejects:
        return QdqForm(None, "a model that must be refused")
    try:
        graph = case.model.graph
    except BittrueError as error:
        return QdqForm(None, str(error))
    if len(graph.nodes) != 1 or len(graph.outputs) != 1:
        return QdqForm(None, f"{len(graph.nodes)} operators, {len(graph.outputs)} results")
    mapper = MAPPERS.get(graph.nodes[0].operator)
    if mapper is None:
        return QdqForm(None, f"no ONNX form of {case.operator} is known here")
    try:
        writer = Writer(graph)
        return QdqForm(writer.finish(mapper(writer)))
    except NotSaid as reason:
        return QdqForm(None, str(reason))


def as_qdq_onnx(case: SuiteCase) -> bytes | None:
    """A .tflite case as .onnx, inputs and outputs as they are; None where ONNX cannot say it (`qdq_form` says why)."""
    return qdq_form(case).content
