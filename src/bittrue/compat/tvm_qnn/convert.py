"""From the graph of a quantized .tflite file to calls of `bittrue.qnn`, as TVM's frontend for such files makes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedError
from ...graph import Node, data_type
from ...operators.core.geometry import WindowError, window
from .calls import Calls, Conversion
from .expr import Expr
from .frontend import refusal
from .plain_lowering import OF_STORED

if TYPE_CHECKING:
    from ...api import Model

_INTERVALS: dict[str, tuple[float, float | None]] = {
    "relu": (0.0, None),
    "relu6": (0.0, 6.0),
    "relu_n1_to_1": (-1.0, 1.0),
}


@dataclass
class _Converter(Calls):
    # -- tensors ---------------------------------------------------------------------------------------------------
    def scale(self, index: int | None) -> np.float32 | np.ndarray:
        scales = self._quantization(index).scales.astype(np.float32)
        return scales if scales.size > 1 else np.float32(scales.reshape(-1)[0])

    def zero_point(self, index: int | None) -> int:
        return int(self._quantization(index).zero_points.reshape(-1)[0])

    def _quantization(self, index: int | None) -> Any:
        given = self.tensor(index).quantization
        if given is None:
            raise UnsupportedError(
                "BT-QNN-CONVERT",
                f"tensor '{self.tensor(index).name}' has no scale",
                advice="only quantized operators are converted",
            )
        return given

    def clamp(self, y: Any, node: Node, of: int | None = None) -> Any:
        """The fused activation, as quantized values of the output, or of the tensor `of`."""
        activation = str(node.attributes.get("activation", "none"))
        if activation == "none":
            return y
        if activation not in _INTERVALS:
            raise self.unsupported(node, f"fused activation '{activation}'")
        out = node.outputs[0] if of is None else of
        kind = self.tensor(out).type
        lower, upper = _INTERVALS[activation]
        real, point = float(self.scale(out)), self.zero_point(out)
        low = max(kind.minimum, round(lower / real) + point)
        high = kind.maximum if upper is None else min(kind.maximum, round(upper / real) + point)
        return self.call("clip", y, low, high)

    # -- operators -------------------------------------------------------------------------------------------------
    def padding(self, node: Node, taps: Sequence[int]) -> tuple[int, int, int, int]:
        """Top, left, bottom, right."""
        if node.attributes["padding"] == "explicit":
            return (0, 0, 0, 0)
        sizes = self._shape(node.inputs[0])[1:3]
        given = [node.attributes[name] or (1, 1) for name in ("strides", "dilations")]
        strides, dilations = (numbers if isinstance(numbers, tuple) else () for numbers in given)
        try:
            rows, columns = (
                window(*one, padding="same_upper") for one in zip(sizes, taps, strides, dilations, strict=True)
            )
        except WindowError as error:
            raise self.unsupported(node, str(error)) from None
        return rows.before, columns.before, rows.after, columns.after

    def _shape(self, index: int | None) -> tuple[int, ...]:
        return tuple(self.value(index).shape)

    def finish(self, node: Node, acc: Any, axis: int, clamps: bool = True) -> Any:
        """Bias, requantization and activation behind a layer."""
        out = node.outputs[0]
        if len(node.inputs) > 2 and node.inputs[2] is not None:
            acc = self.call("bias_add", acc, self.value(node.inputs[2]).reshape(-1), axis)
        y = self.call(
            "requantize",
            acc,
            self.scale(node.inputs[0]) * self.scale(node.inputs[1]),
            0,
            self.scale(out),
            self.zero_point(out),
            axis=axis,
            out_dtype=data_type(self.tensor(out).dtype).title,
            **self.rounding(node),
        )
        return self.clamp(y, node) if clamps else y

    def rounding(self, node: Node) -> dict[str, Any]:
        """What nodes of graphs that were made here say about requantization; files say nothing."""
        return {key: node.attributes[key] for key in ("rounding", "compute_dtype") if key in node.attributes}

    def wide(self, node: Node) -> str:
        return "int64" if self.tensor(node.outputs[0]).dtype == "s16" else "int32"

    def conv2d(self, node: Node) -> Any:
        order = node.attributes.get("filter_layout")
        if order not in ("OSI", "ISO"):
            raise self.unsupported(node, "a convolution that is neither CONV_2D nor DEPTHWISE_CONV_2D")
        x, w = node.inputs[:2]
        kernel, channels = self.value(w), self._shape(x)[3]
        if isinstance(kernel, Expr):
            raise self.unsupported(node, "a kernel that is computed")
        taps = kernel.shape[1:3]
        if order == "ISO":
            kernel = kernel.reshape(*taps, channels, -1)
            groups, layout = channels, "HWIO" if channels == 1 else "HWOI"
            count = kernel.shape[2] * kernel.shape[3]
        else:
            groups, layout, count = channels // kernel.shape[3], "HWIO", kernel.shape[0]
            kernel = kernel.transpose(1, 2, 3, 0)
            if groups > 1 and groups == channels:
                # One channel per group: that is a depthwise layer, whose kernel is [height, width, channel, filter].
                kernel, layout = kernel.reshape(*taps, channels, -1), "HWOI"
        a = node.attributes
        acc = self.call(
            "conv2d",
            self.value(x),
            np.ascontiguousarray(kernel),
            self.zero_point(x),
            self.zero_point(w),
            self.scale(x),
            self.scale(w),
            kernel_size=taps,
            channels=count,
            strides=a["strides"],
            padding=self.padding(node, taps),
            dilation=a["dilations"],
            groups=groups,
            data_layout="NHWC",
            kernel_layout=layout,
            out_dtype=self.wide(node),
        )
        return self.finish(node, acc, 3)

    def fully_connected(self, node: Node) -> Any:
        x, w = node.inputs[:2]
        weights, shape = self.value(w), self._shape(x)
        if isinstance(weights, Expr):
            raise self.unsupported(node, "weights that are computed")
        data = self.value(x)
        if len(shape) != 2 or shape[1] != weights.shape[1]:
            data = self.call("reshape", data, (-1, weights.shape[1]))
        acc = self.call(
            "dense",
            data,
            weights,
            self.zero_point(x),
            self.zero_point(w),
            self.scale(x),
            self.scale(w),
            weights.shape[0],
            self.wide(node),
        )
        y = self.finish(node, acc, 1)
        if not node.attributes["keep_num_dims"]:
            return y
        return self.call("reshape", y, (*shape[:-1], weights.shape[0]))

    def binary(self, node: Node, function: str) -> Any:
        parameters = [
            p for index in (*node.inputs, node.outputs[0]) for p in (self.scale(index), self.zero_point(index))
        ]
        return self.clamp(self.call(function, *(self.value(i) for i in node.inputs), *parameters), node)

    def concatenation(self, node: Node) -> Any:
        out = node.outputs[0]
        axis = int(str(node.attributes["axis"]))
        parts = [self.value(i) for i in node.inputs]
        scales = [self.scale(i) for i in node.inputs]
        points = [self.zero_point(i) for i in node.inputs]
        return self.call("concatenate", parts, scales, points, self.scale(out), self.zero_point(out), axis)

    def _pool(self, node: Node) -> tuple[Any, ...]:
        a = node.attributes
        numbers: list[Any] = [a[name] for name in ("kernel", "strides", "pads")]
        taps, strides, pads = numbers
        if not a["channels_last"] or len(taps) != 2:
            raise self.unsupported(node, "a pool of another format")
        before, after = (pads[:2], pads[2:]) if pads else ((0, 0), (0, 0))
        axes = zip(self._shape(node.inputs[0])[1:3], taps, strides, zip(before, after, strict=True), strict=True)
        try:
            found = [window(n, t, s, pads=p, padding=str(a["padding"])) for n, t, s, p in axes]
        except WindowError as error:
            raise self.unsupported(node, str(error)) from None
        return taps, strides, (*(one.before for one in found), *(one.after for one in found))

    def average_pool(self, node: Node) -> Any:
        x, out = node.inputs[0], node.outputs[0]
        self.same(node)
        taps, strides, pads = self._pool(node)
        if self.tensor(x).dtype == "s16":
            wide = self.call("cast", self.value(x), "int32")
            y = self.call("nn.avg_pool2d", wide, taps, strides, padding=pads, layout="NHWC")
            return self.clamp(self.call("cast", y, "int16"), node)
        parameters = (self.scale(x), self.zero_point(x), self.scale(out), self.zero_point(out))
        y = self.call(
            "avg_pool2d",
            self.value(x),
            *parameters,
            taps,
            strides,
            pads,
            (1, 1),
            count_include_pad=False,
            layout="NHWC",
        )
        return self.clamp(y, node)

    def max_pool(self, node: Node) -> Any:
        self.same(node)
        taps, strides, pads = self._pool(node)
        y = self.call("max_pool2d", self.value(node.inputs[0]), taps, strides, padding=pads, layout="NHWC")
        return self.clamp(y, node)

    def same(self, node: Node) -> None:
        """Input and output must share their parameters, as the frontend asserts."""
        given, out = self._quantization(node.inputs[0]), self._quantization(node.outputs[0])
        if not given.same_as(out):
            raise self.unsupported(node, "an operator on quantized values whose result has another scale or zero point")

    def matmul(self, node: Node) -> Any:
        """Sums of stored values, limited to int8: the frontend reads neither zero points nor scales."""
        shapes = [self._shape(index) for index in node.inputs[:2]]
        rank = len(shapes[0])
        types = {self.tensor(index).dtype for index in (*node.inputs[:2], *node.outputs)}
        lead, other = (shape[:-2] for shape in shapes)
        if not all(isinstance(self.value(index), Expr) for index in node.inputs[:2]):
            raise self.unsupported(node, "a product by a constant, which TVM's frontend does not find,")
        if types != {"s8"} or rank < 3 or (lead != other and (rank < len(shapes[1]) or math.prod(other) != 1)):
            raise self.unsupported(node, "a product of other types than int8, of matrices or of unequal batches")
        turned = (not node.attributes.get("transpose_b", False), bool(node.attributes.get("transpose_a", False)))
        sides = []
        for index, shape, turn in zip(node.inputs[:2], shapes, reversed(turned), strict=True):
            side = self.call("reshape", self.value(index), (math.prod(shape[:-2]), *shape[-2:]))
            sides.append(self.call("transpose", side, (0, 2, 1)) if turn else side)
        one = np.float32(1)
        sums = self.call("batch_matmul", *sides, 0, 0, one, one)
        sums = self.call("reshape", sums, (*lead, *sums.shape[1:]))
        return self.call("requantize", sums, one, 0, one, 0, out_dtype="int8", **self.rounding(node))

    def reduced(self, node: Node) -> Any:
        x, _out = node.inputs[0], node.outputs[0]
        axes = [int(a) for a in np.asarray(self.value(node.inputs[1])).reshape(-1)]
        y = self.call(
            node.operator, self.call("cast", self.value(x), "int32"), axes, bool(node.attributes["keep_dims"])
        )
        return self._requantized(y, x, node)

    def of_reals(self, node: Node, function: str, *arguments: Any) -> Any:
        """A function of real numbers between dequantize and quantize."""
        x = node.inputs[0]
        real = self.call("dequantize", self.value(x), self.scale(x), self.zero_point(x))
        return self._quantized(self.call(function, real, *arguments), node.outputs[0])

    def relu(self, node: Node) -> Any:
        """A clamp of the input's quantized values, then the output's parameters."""
        x = node.inputs[0]
        return self._requantized(self.clamp(self.value(x), node, x), x, node)

    def conv_transpose(self, node: Node) -> Any:
        """The fused activation is left out, as the frontend does."""
        x, w = node.inputs[:2]
        kernel, asked = self.value(w), self.value(node.inputs[9])
        if isinstance(kernel, Expr) or isinstance(asked, Expr):
            raise self.unsupported(node, "a kernel or a shape that is computed")
        wanted = [int(size) for size in asked.reshape(-1)]
        a, taps = node.attributes, kernel.shape[1:3]
        steps = a["strides"]
        assert isinstance(steps, tuple)
        pads = (0, 0, 0, 0)
        if a["padding"] == "same_upper":
            rows, columns = (window(*one, padding="same_upper") for one in zip(wanted[1:3], taps, steps, strict=True))
            pads = (rows.before, columns.before, rows.after, columns.after)
        acc = self.call(
            "conv2d_transpose",
            self.value(x),
            np.ascontiguousarray(kernel.transpose(3, 0, 1, 2)),
            self.zero_point(x),
            self.zero_point(w),
            self.scale(x),
            self.scale(w),
            strides=steps,
            padding=pads,
            channels=kernel.shape[0],
            kernel_size=taps,
            data_layout="NHWC",
            kernel_layout="IOHW",
            out_dtype=self.wide(node),
        )
        if list(acc.shape) != wanted:
            raise self.unsupported(node, f"a result of shape {wanted} where TVM makes {list(acc.shape)}")
        return self.finish(node, acc, 3, clamps=False)

    def _quantized(self, y: Any, out: int) -> Any:
        name = data_type(self.tensor(out).dtype).title
        return self.call("quantize", y, self.scale(out), self.zero_point(out), out_dtype=name)

    def _requantized(self, y: Any, given: int | None, node: Node) -> Any:
        out = node.outputs[0]
        parameters = (self.scale(given), self.zero_point(given), self.scale(out), self.zero_point(out))
        dtype = data_type(self.tensor(out).dtype).title
        return self.call("requantize", y, *parameters, out_dtype=dtype, **self.rounding(node))

    def quantize(self, node: Node) -> Any:
        y = self.value(node.inputs[0])
        if self.tensor(node.inputs[0]).dtype == "f32":
            return self._quantized(y, node.outputs[0])
        return self._requantized(y, node.inputs[0], node)

    def dequantize(self, node: Node) -> Any:
        x = node.inputs[0]
        return self.call("dequantize", self.value(x), self.scale(x), self.zero_point(x))

    def reshape(self, node: Node) -> Any:
        self.same(node)
        asked = self.value(node.inputs[1]) if len(node.inputs) > 1 else node.attributes["new_shape"]
        return self.call("reshape", self.value(node.inputs[0]), [int(e) for e in np.asarray(asked).reshape(-1)])

    def squeeze(self, node: Node) -> Any:
        self.same(node)
        # Without axes the frontend leaves the shape alone.
        x, named = self.value(node.inputs[0]), node.attributes.get("squeeze_dims", True)
        return self.call("reshape", x, self.tensor(node.outputs[0]).shape if named else x.shape)

    def gather(self, node: Node) -> Any:
        """The frontend does not read batch_dims."""
        x, places = (self.value(index) for index in node.inputs[:2])
        return self.call("take", x, places, node.attributes["axis"])

    def pad(self, node: Node) -> Any:
        self.same(node)
        widths = [tuple(int(w) for w in pair) for pair in np.asarray(self.value(node.inputs[1])).reshape(-1, 2)]
        value: Any = self.zero_point(node.inputs[0])
        if len(node.inputs) > 2:
            value = self.value(node.inputs[2])
            if isinstance(value, Expr):
                raise self.unsupported(node, "a value that is computed")
            value = int(np.asarray(value).reshape(-1)[0])
        return self.call("pad", self.value(node.inputs[0]), widths, value)

    def transpose(self, node: Node) -> Any:
        self.same(node)
        axes = [int(a) for a in np.asarray(self.value(node.inputs[1])).reshape(-1)]
        return self.call("transpose", self.value(node.inputs[0]), axes)

    def resize(self, node: Node) -> Any:
        size = [int(e) for e in np.asarray(self.value(node.inputs[1])).reshape(-1)]
        return self.of_reals(node, "resize2d", size, "NHWC", str(node.attributes["transformation"]))

    def arg_max(self, node: Node) -> Any:
        """int32, whatever type the file says."""
        axis = int(np.asarray(self.value(node.inputs[1])).reshape(-1)[0])
        return self.call("argmax", self.value(node.inputs[0]), axis)

    def slice(self, node: Node) -> Any:
        x = self.value(node.inputs[0])
        given = [self.value(index) for index in node.inputs[1:3]]
        if any(isinstance(value, Expr) for value in given):
            raise self.unsupported(node, "a part that is computed")
        begin, size = ([int(e) for e in np.asarray(value).reshape(-1)] for value in given)
        ends = [n if e < 0 else b + e for n, b, e in zip(x.shape, begin, size, strict=True)]
        return self.call("strided_slice", x, begin, ends)

    def blocks(self, node: Node) -> Any:
        given = [self.value(index) for index in node.inputs[1:3]]
        if any(isinstance(value, Expr) for value in given):
            raise self.unsupported(node, "blocks that are computed")
        sizes, borders = ([int(e) for e in np.asarray(value).reshape(-1)] for value in given)
        pairs = list(zip(borders[0::2], borders[1::2], strict=True))
        return self.call(f"{node.operator}_nd", self.value(node.inputs[0]), sizes, pairs)

    def of_stored(self, node: Node) -> Any:
        """Of the values as they are; scales are not read."""
        return self.call(node.operator, *(self.value(index) for index in node.inputs))

    def split(self, node: Node) -> list[Any]:
        x = self.value(node.inputs[0])
        axis = int(np.asarray(self.value(node.inputs[2])).reshape(-1)[0]) % len(x.shape)
        size, parts = x.shape[axis] // len(node.outputs), []
        for part in range(len(node.outputs)):
            begin, end = [0] * len(x.shape), list(x.shape)
            begin[axis], end[axis] = part * size, (part + 1) * size
            parts.append(self.call("strided_slice", x, begin, end))
        return parts


_OPERATORS: dict[str, Callable[[_Converter, Node], Any]] = {
    **{
        stem: lambda c, node, stem=stem: c.of_reals(node, f"nn.{stem}")  # type: ignore[misc]
        for stem in ("abs", "exp", "log", "log_softmax", "rsqrt", "sqrt")
    },
    "add": lambda c, node: c.binary(node, "add"),
    "arg_max": _Converter.arg_max,
    "average_pool": _Converter.average_pool,
    "batch_to_space": _Converter.blocks,
    "concatenation": _Converter.concatenation,
    "conv": _Converter.conv2d,
    "conv_transpose": _Converter.conv_transpose,
    "dequantize": _Converter.dequantize,
    "fully_connected": _Converter.fully_connected,
    "gather": _Converter.gather,
    "hard_swish": lambda c, node: c.of_reals(node, "nn.hard_swish"),
    "leaky_relu": lambda c, node: c.of_reals(node, "nn.leaky_relu", node.attributes["alpha"]),
    "logistic": lambda c, node: c.of_reals(node, "nn.sigmoid"),
    "matmul": _Converter.matmul,
    "max_pool": _Converter.max_pool,
    "mean": _Converter.reduced,
    "mul": lambda c, node: c.binary(node, "mul"),
    "pad": _Converter.pad,
    "quantize": _Converter.quantize,
    **dict.fromkeys(OF_STORED, _Converter.of_stored),
    "relu": _Converter.relu,
    "reshape": _Converter.reshape,
    "resize_linear": _Converter.resize,
    "slice": _Converter.slice,
    # The frontend does not read beta.
    "softmax": lambda c, node: c.of_reals(node, "softmax"),
    "space_to_batch": _Converter.blocks,
    "space_to_depth": lambda c, node: c.call(
        "space_to_depth", c.value(node.inputs[0]), node.attributes["block_size"], layout="NHWC"
    ),
    "split": _Converter.split,
    "squeeze": _Converter.squeeze,
    "sum": _Converter.reduced,
    "sub": lambda c, node: c.binary(node, "subtract"),
    "tanh": lambda c, node: c.of_reals(node, "nn.tanh"),
    "transpose": _Converter.transpose,
}


def opened(model: Any) -> Model:
    """The model itself, or the one of a file. Errors as for `bittrue.load`."""
    from ...api import Model, load

    return model if isinstance(model, Model) else load(model)


def from_tflite(model: Any) -> Conversion:
    """The main graph of a quantized .tflite file as calls of `bittrue.qnn`.

    Layers become conv2d or dense, bias_add, requantize and clip; sums, products and concatenations become theirs;
    average and largest of windows, means, softmax and moved values become what TVM's frontend makes of them. The model
    of the result has the operators of the file again, so that it gives the file's bytes in every numerics.

    Args:
        model: path or bytes of the file, or what `bittrue.load` gives for it. Shapes of its inputs are taken as the
            file declares them.

    Raises:
        InputError, ModelFormatError: as for `bittrue.load`.
        UnsupportedError: operators that TVM's frontend refuses, with its reason, or that have no form here, kernels
            that are computed, activations that are not clamps.

    Source: tvm v0.18.0, python/tvm/relay/frontend/tflite.py, read.
    """
    model = opened(model)
    graph = model.graph
    sources = {node.source: node.operator in _OPERATORS for node in graph.nodes}
    # Graphs that were made here have other names.
    reasons = {source: refusal(source) if model.file.format == "tflite" else "" for source in sources}
    refused = [reasons[source] for source in sorted(sources) if reasons[source]]
    missing = sorted(source for source, known in sources.items() if not known and not reasons[source])
    if refused or missing:
        unknown = [f"no form in bittrue.qnn for {', '.join(missing)}"] if missing else []
        raise UnsupportedError(
            "BT-QNN-CONVERT",
            "; ".join((*refused, *unknown)),
            place=f"graph '{graph.name}'",
            # What TVM refuses has no arithmetic of TVM.
            advice=f"run the file itself: `bittrue run MODEL{'' if refused else ' --numerics tvm-qnn'}`",
        )
    converter = _Converter(graph)
    for index in graph.inputs:
        converter.input(index, graph.tensors[index].shape)
    for node in graph.nodes:
        found = _OPERATORS[node.operator](converter, node)
        for index, result in zip(node.outputs, found if isinstance(found, list) else [found], strict=True):
            converter.values[index] = result
    return converter.finished()
