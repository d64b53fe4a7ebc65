"""Mappings of operators on real numbers, as they stand around the quantized part of a model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...graph import Attribute
from .base import Mapper, Mappers, Source
from .layers import check_outputs, convolution_attributes, expect_images, rows
from .windows import pool

_OUTPUT = ["_output"]
_F32 = ["f32"]
_ACTIVATIONS = {
    "relu": "thresholded_relu",
    "sigmoid": "logistic",
    "softrelu": "softplus",
    "softsign": "softsign",
    "tanh": "tanh",
}
# Beyond the end of every axis.
_FAR = 2**31 - 1
_PLAIN: Mapping[str, Attribute] = {"activation": "none"}


def _unary(source: Source, stem: str, attributes: Mapping[str, Attribute] | None = None) -> None:
    source.type(0)
    (output,) = source.emit(stem, [source.inputs[0]], _F32, _OUTPUT, attributes)
    source.keeps_shape(output, 0)
    source.give(output)


def _function(stem: str) -> Mapper:
    def apply(source: Source) -> None:
        source.expect(1)
        _unary(source, stem)

    return apply


def _activation(source: Source) -> None:
    source.expect(1)
    stem = _ACTIVATIONS[source.text("act_type", "", tuple(_ACTIVATIONS))]
    # What is not above 0, NaN included, becomes +0.
    _unary(source, stem, {"alpha": 0.0} if stem == "thresholded_relu" else None)


def _relu(source: Source) -> None:
    """Unlike the activation, NaN stays; -0 becomes 0."""
    source.expect(1)
    source.type(0)
    zero = source.builder.constant(np.zeros((), np.float32), f"{source.label}_zero")
    (limited,) = source.emit("relu", [source.inputs[0]], _F32, ["_limited"], {"activation": "relu"})
    (output,) = source.emit("add", [limited, zero], _F32, _OUTPUT, {**_PLAIN, "broadcasts": True})
    source.keeps_shape(output, 0)
    source.give(output)


def _leaky(source: Source) -> None:
    """Slopes for negative numbers: constant, exponential, or an operand's."""
    kind = source.text("act_type", "leaky", ("elu", "gelu", "leaky", "prelu"))
    slope = float(source.real("slope", 0.25))
    source.ignore("lower_bound", "upper_bound")
    if kind == "prelu":
        raise source.unsupported("BT-MXNET-ATTRIBUTE", "act_type 'prelu' is not read", "fold its slopes into a model")
    source.expect(1)
    if kind == "gelu":
        _unary(source, "gelu", {"approximate": False})
    else:
        _unary(source, "leaky_relu" if kind == "leaky" else "elu", {"alpha": slope})


def _clip(source: Source) -> None:
    source.expect(1)
    source.type(0)
    ends = [
        source.builder.constant(np.asarray(source.real(name), np.float32), f"{source.label}_{name}")
        for name in ("a_min", "a_max")
    ]
    (output,) = source.emit("clip", [source.inputs[0], *ends], _F32, _OUTPUT)
    source.keeps_shape(output, 0)
    source.give(output)


def _binary(stem: str, elementwise: bool) -> Mapper:
    def apply(source: Source) -> None:
        source.expect(2)
        for position in (0, 1):
            source.type(position)
        attributes = {**_PLAIN, "broadcasts": not elementwise}
        (output,) = source.emit(stem, source.inputs, _F32, _OUTPUT, attributes)
        if elementwise:
            source.keeps_shape(output, 0)
        source.give(output)

    return apply


def _with_scalar(stem: str, swapped: bool = False) -> Mapper:
    def apply(source: Source) -> None:
        source.expect(1)
        source.type(0)
        source.ignore("is_int")
        scalar = source.builder.constant(np.asarray(source.real("scalar"), np.float32), f"{source.label}_scalar")
        operands = [scalar, source.inputs[0]] if swapped else [source.inputs[0], scalar]
        (output,) = source.emit(stem, operands, _F32, _OUTPUT, {**_PLAIN, "broadcasts": True})
        source.keeps_shape(output, 0)
        source.give(output)

    return apply


def _bias(source: Source, default: bool) -> bool:
    """Whether there is a bias; the operands are data, weights and that."""
    has_bias = not source.flag("no_bias", default)
    source.expect(3 if has_bias else 2)
    for position in range(len(source.inputs)):
        source.type(position)
    return has_bias


def _convolution(source: Source) -> None:
    _bias(source, False)
    attributes = convolution_attributes(source)
    check_outputs(source, "num_filter", 1)
    expect_images(source, int(str(attributes["groups"])), 1)
    source.give(*source.emit("conv", source.inputs, _F32, _OUTPUT, attributes))


def _fully_connected(source: Source) -> None:
    """x w^T + bias; all axes but the first are one, unless `flatten` is off."""
    has_bias, flatten = _bias(source, False), source.flag("flatten", True)
    check_outputs(source, "num_hidden", 1)
    if flatten:
        attributes = {"alpha": 1.0, "beta": 1.0, "transpose_a": False, "transpose_b": True, "matrices": True}
        operands = [rows(source, True, "f32"), *source.inputs[1:]]
        source.give(*source.emit("matmul", operands, _F32, _OUTPUT, attributes))
        return
    order = source.builder.constant(np.array([1, 0], np.int64), f"{source.label}_order")
    turned = source.emit("transpose", [source.inputs[1], order], _F32, ["_turned"])
    (output,) = source.emit("matmul", [source.inputs[0], *turned], _F32, ["_product" if has_bias else "_output"])
    if has_bias:
        (output,) = source.emit("add", [output, source.inputs[2]], _F32, _OUTPUT, {**_PLAIN, "broadcasts": True})
    source.give(output)


def _batch_norm(source: Source) -> None:
    """With the statistics of training; gamma is 1 with `fix_gamma`."""
    source.expect(5)
    source.ignore("cudnn_off", "max_calib_range", "min_calib_range", "momentum", "use_global_stats")
    for position in range(5):
        source.type(position)
    if source.integer("axis", 1) != 1 or source.flag("output_mean_var"):
        raise source.unsupported("BT-MXNET-ATTRIBUTE", "channels must be axis 1, and the only result the tensor")
    epsilon = source.wide("eps", 1e-3)
    x, gamma, *others = source.inputs
    channels = source.known(1)
    if source.flag("fix_gamma", True):
        if channels is None:
            raise source.unsupported(
                "BT-MXNET-ATTRIBUTE", "fix_gamma, but gamma is no parameter", "give the .params file with the symbol"
            )
        gamma = source.builder.constant(np.ones(channels, np.float32), f"{source.label}_ones")
    (output,) = source.emit("batch_normalization", [x, gamma, *others], _F32, _OUTPUT, {"epsilon": epsilon})
    source.keeps_shape(output, 0)
    source.give(output)


def _pooling(source: Source) -> None:
    source.expect(1)
    dtype, kernel = source.type(0), source.integers("kernel")
    whole = source.flag("global_pool")
    if not 1 <= len(kernel) <= 3 and not whole:
        raise source.invalid("BT-MXNET-ATTRIBUTE", f"kernel {list(kernel)} has 1 to 3 spatial axes")
    source.text("layout", "None", ("None", "NCW", "NCHW", "NCDHW"))
    source.text("pooling_convention", "valid", ("valid", "full"))
    source.give(pool(source, dtype, () if whole else kernel))


def _softmax(stem: str) -> Mapper:
    def apply(source: Source) -> None:
        source.expect(1)
        source.ignore("dtype", "use_length")
        if float(source.real("temperature", 1.0)) != 1 or source.flag("use_length"):
            raise source.unsupported("BT-MXNET-ATTRIBUTE", "only a temperature of 1 and whole rows are read")
        _unary(source, stem, {"axis": source.integer("axis", -1), "flattened": False, "beta": 1.0})

    return apply


def _softmax_output(source: Source) -> None:
    """The label is for training. Rows are those of the last axis, or of all axes but the first: that depends on the
    rank, and on the build of the runtime.
    """
    source.expect(1, 2)
    source.ignore("grad_scale", "ignore_label", "normalization", "out_grad", "smooth_alpha", "use_ignore")
    by_channel, kept = source.flag("multi_output"), source.flag("preserve_shape")
    attributes: dict[str, Attribute] = {"axis": 1 if by_channel else -1, "flattened": False, "beta": 1.0}
    _unary(source, "softmax", {**attributes, "rows_by_rank": not by_channel and not kept})


def _softmax_activation(source: Source) -> None:
    source.expect(1)
    by_channel = source.text("mode", "instance", ("instance", "channel")) == "channel"
    _unary(source, "softmax", {"axis": 1 if by_channel else -1, "flattened": False, "beta": 1.0})


def _concat(source: Source) -> None:
    source.expect(source.integer("num_args", len(source.inputs)))
    types = [source.type(position) for position in range(len(source.inputs))]
    attributes: dict[str, Attribute] = {"axis": source.integer("dim", 1), "activation": "none"}
    source.give(*source.emit("concatenation", source.inputs, types[:1], _OUTPUT, attributes))


def _flatten(source: Source) -> None:
    source.expect(1)
    source.give(*source.emit("flatten", [source.inputs[0]], [source.type(0)], _OUTPUT, {"axis": 1}))


def _reshape(source: Source) -> None:
    """0 keeps a dimension, -1 is what is left."""
    source.expect(1)
    shape = source.integers("shape")
    if source.flag("reverse") or not shape or any(size < -1 for size in shape):
        raise source.unsupported(
            "BT-MXNET-ATTRIBUTE", f"shape {list(shape)}: dimensions, 0 and one -1 are read", "write the dimensions out"
        )
    target = source.builder.constant(np.array(shape, np.int64), f"{source.label}_shape")
    operands = [source.inputs[0], target]
    source.give(*source.emit("reshape", operands, [source.type(0)], _OUTPUT, {"zeros": "copied"}))


def _transpose(source: Source) -> None:
    source.expect(1)
    operands = [source.inputs[0]]
    if source.has("axes") and source.integers("axes"):
        axes = np.array(source.integers("axes"), np.int64)
        operands.append(source.builder.constant(axes, f"{source.label}_axes"))
    source.give(*source.emit("transpose", operands, [source.type(0)], _OUTPUT))


def _with_integers(source: Source, stem: str, *operands: tuple[str, tuple[int, ...]]) -> None:
    """A node with constant integers behind its input."""
    constants = [
        source.builder.constant(np.array(numbers, np.int64), f"{source.label}_{role}") for role, numbers in operands
    ]
    source.give(*source.emit(stem, [source.inputs[0], *constants], [source.type(0)], _OUTPUT))


def _expand_dims(source: Source) -> None:
    source.expect(1)
    _with_integers(source, "expand_dims", ("axes", (source.integer("axis"),)))


def _squeeze(source: Source) -> None:
    source.expect(1)
    axes = source.integers("axis")
    _with_integers(source, "squeeze", *([("axes", axes)] if axes else []))


def _slice_axis(source: Source) -> None:
    """From `begin` to `end` (None: to the last) of one axis; negative places count from the back."""
    source.expect(1)
    first, last = source.integer("begin"), source.integer("end", _FAR)
    _with_integers(source, "slice_axes", ("begin", (first,)), ("end", (last,)), ("axes", (source.integer("axis"),)))


def _mean(source: Source) -> None:
    source.expect(1)
    source.type(0)
    axes = source.integers("axis")
    if source.flag("exclude"):
        raise source.unsupported("BT-MXNET-ATTRIBUTE", "axes that are excluded are not read", "name the others")
    operands = [source.inputs[0]]
    if axes:
        operands.append(source.builder.constant(np.array(axes, np.int64), f"{source.label}_axes"))
    kept = source.flag("keepdims")
    attributes: dict[str, Attribute] = {"keep_dims": kept, "keeps_without_axes": False}
    if axes or kept:
        source.give(*source.emit("mean", operands, _F32, _OUTPUT, attributes))
        return
    # There are no scalars: the mean of everything has the shape [1].
    whole = source.emit("mean", operands, _F32, ["_mean"], attributes)
    shape = source.builder.constant(np.array([1], np.int64), f"{source.label}_shape")
    source.give(*source.emit("reshape", [*whole, shape], _F32, _OUTPUT, {"zeros": "copied"}))


def _same(source: Source) -> None:
    """Nothing happens outside of training."""
    source.ignore("p", "axes", "cudnn_off")
    if source.text("mode", "training", ("always", "training")) == "always":
        raise source.unsupported("BT-MXNET-ATTRIBUTE", "mode 'always' draws random numbers")
    source.give(source.copy(0, "_output"))


_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "div": "div"}
_SCALAR = {
    "_plus_scalar": ("add", False),
    "_minus_scalar": ("sub", False),
    "_rminus_scalar": ("sub", True),
    "_mul_scalar": ("mul", False),
    "_div_scalar": ("div", False),
    "_rdiv_scalar": ("div", True),
}
_OLD = {"_plus": "add", "_Plus": "add", "_minus": "sub", "_Minus": "sub", "_mul": "mul", "_Mul": "mul", "_div": "div"}

MAPPERS: Mappers = {
    **{f"elemwise_{name}": _binary(stem, True) for name, stem in _BINARY.items()},
    **{f"broadcast_{name}": _binary(stem, False) for name, stem in _BINARY.items()},
    **{name: _binary(stem, True) for name, stem in _OLD.items()},
    **{name: _with_scalar(stem, swapped) for name, (stem, swapped) in _SCALAR.items()},
    "Activation": _activation,
    "BatchNorm": _batch_norm,
    "BlockGrad": _same,
    "Concat": _concat,
    "Convolution": _convolution,
    "Dropout": _same,
    "Flatten": _flatten,
    "FullyConnected": _fully_connected,
    "LeakyReLU": _leaky,
    "Pooling": _pooling,
    "Reshape": _reshape,
    "SoftmaxActivation": _softmax_activation,
    "SoftmaxOutput": _softmax_output,
    "_copy": _same,
    "abs": _function("abs"),
    "clip": _clip,
    "concat": _concat,
    "exp": _function("exp"),
    "expand_dims": _expand_dims,
    "flatten": _flatten,
    "identity": _same,
    "log": _function("log"),
    "log_softmax": _softmax("log_softmax"),
    "mean": _mean,
    "negative": _function("neg"),
    "relu": _relu,
    "reshape": _reshape,
    "sigmoid": _function("logistic"),
    "slice_axis": _slice_axis,
    "softmax": _softmax("softmax"),
    "sqrt": _function("sqrt"),
    "squeeze": _squeeze,
    "tanh": _function("tanh"),
    "transpose": _transpose,
}
