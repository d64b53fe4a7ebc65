"""add, subtract, mul, concatenate, functions of quantized values, leaky_relu, softmax, clip and relu."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...graph import Attribute, data_type
from . import checks
from .building import build
from .config import check_compiled_axis, check_single_number, resolved
from .expr import Expr, Tensor


def _broadcast(function: str, first: Expr, second: Expr) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise checks.wrong(
            function,
            "rhs",
            f"shape {list(second.shape)} does not broadcast with {list(first.shape)}",
            code="BT-QNN-SHAPE",
        ) from None


def _side(
    function: str, prefix: str, data: Expr, scale: Any, point: Any, axis: Any
) -> tuple[np.ndarray, tuple[int, ...], int]:
    """Scale, sizes of vectors and axis of an operand; the axis is looked at only where there is a vector."""
    sizes: tuple[int, ...] = ()
    at = -1
    if any(checks.dimensions(p) == 1 for p in (scale, point)):
        at = checks.axis(function, f"{prefix}_axis", axis, data.rank) if data.rank > 1 else 0
        sizes = (data.shape[at],) if data.rank else (1,)
    return checks.scale(function, f"{prefix}_scale", scale, sizes), sizes, at


def _binary(
    function: str,
    lhs: Tensor,
    rhs: Tensor,
    lhs_parameters: tuple[Any, Any, Any],
    rhs_parameters: tuple[Any, Any, Any],
    output_scale: Any,
    output_zero_point: Any,
) -> Any:
    first = checks.tensor(function, "lhs", lhs, checks.CODES)
    second = checks.tensor(function, "rhs", rhs, (first.dtype,))
    shape = _broadcast(function, first, second)
    choice = resolved(function)
    for name, (*_, axis) in (("lhs_axis", lhs_parameters), ("rhs_axis", rhs_parameters)):
        # The system looks at it wherever there is more than one, whether it plays a part or not.
        if len(shape) > 1:
            checks.axis(function, name, axis, len(shape))
        elif function != "mul" and (first.rank, second.rank) == (1, 1) and axis < -1:
            raise checks.wrong(
                function, name, f"found {axis}: vectors have no axis below -1 there", "count from the front"
            )
    parameters, attributes = dict[str, np.ndarray](), dict[str, Attribute](choice)
    points: dict[str, tuple[Any, tuple[int, ...]]] = {}
    for prefix, data, given in (("lhs", first, lhs_parameters), ("rhs", second, rhs_parameters)):
        scale, sizes, axis = _side(function, prefix, data, *given)
        check_compiled_axis(function, f"{prefix}_axis", given[2], scale, choice)
        parameters[f"{prefix}_scale"], points[f"{prefix}_zero_point"] = scale, (given[1], sizes)
        attributes[f"{prefix}_axis"] = axis
    parameters["output_scale"] = checks.scale(function, "output_scale", output_scale)
    constants, computed = checks.points(function, **points, output_zero_point=(output_zero_point, ()))
    parameters |= constants
    for prefix in ("lhs", "rhs") if function != "mul" else ():
        names = (f"{prefix}_zero_point", "output_zero_point")
        same = parameters[f"{prefix}_scale"].tolist() == parameters["output_scale"].tolist()
        # What has the output's parameters is not requantized.
        if not (same and len({constants[n].tolist() if n in constants else n for n in names}) == 1):
            check_single_number(function, prefix, shape, constants.get(names[0]))
    if function == "mul" and any(parameters[f"{p}_scale"].ndim for p in ("lhs", "rhs")):
        counts = {parameters[f"{p}_scale"].size for p in ("lhs", "rhs")}
        axes = {attributes[f"{p}_axis"] for p in ("lhs", "rhs")} - {-1}
        if lhs_parameters[2] != rhs_parameters[2]:
            raise checks.wrong(function, "rhs_axis", "the system wants it written as lhs_axis is")
        if len(axes) > 1 or len(counts) > 1 or len(first.shape) != len(second.shape):
            raise checks.wrong(function, "rhs_axis", "scales per channel must belong to the same axis of both operands")
        # One number beside a vector of one.
        attributes |= dict.fromkeys(("lhs_axis", "rhs_axis"), axes.pop())
    return build(f"qnn.{function}", (first, second), shape, first.dtype, parameters, attributes, 2, computed)


def add(
    lhs: Tensor,
    rhs: Tensor,
    lhs_scale: Any,
    lhs_zero_point: Any,
    rhs_scale: Any,
    rhs_zero_point: Any,
    output_scale: Any,
    output_zero_point: Any,
    lhs_axis: Any = -1,
    rhs_axis: Any = -1,
) -> Any:
    """clip(A + B - z_out): both operands requantized to the output's scale and zero point first.

    Args:
        lhs, rhs: int8, uint8, int16, uint16 or int32, of one type, shapes that broadcast; int32 results wrap.
        lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point: one, or one per slice of `lhs_axis`, `rhs_axis`.
        output_scale, output_zero_point: one. All zero points may be symbolic tensors.

    Raises:
        InputError: other types, shapes that do not fit.

    Source: tvm v0.18.0, src/relay/qnn/op/add.cc, read.

    >>> import numpy as np
    >>> add(np.uint8([10, 20]), np.uint8([1, 3]), 1.0, 0, 0.5, 0, 2.0, 5).tolist()
    [10, 16]
    """
    return _binary(
        "add",
        lhs,
        rhs,
        (lhs_scale, lhs_zero_point, lhs_axis),
        (rhs_scale, rhs_zero_point, rhs_axis),
        output_scale,
        output_zero_point,
    )


def subtract(
    lhs: Tensor,
    rhs: Tensor,
    lhs_scale: Any,
    lhs_zero_point: Any,
    rhs_scale: Any,
    rhs_zero_point: Any,
    output_scale: Any,
    output_zero_point: Any,
    lhs_axis: Any = -1,
    rhs_axis: Any = -1,
) -> Any:
    """clip(A - B + z_out): both operands requantized to the output's scale and zero point first.

    Args:
        lhs, rhs: int8, uint8, int16, uint16 or int32, of one type, shapes that broadcast; int32 results wrap.
        lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point: one, or one per slice of `lhs_axis`, `rhs_axis`.
        output_scale, output_zero_point: one. All zero points may be symbolic tensors.

    Returns:
        A tensor of their type.

    Raises:
        InputError: other types, shapes that do not fit.

    Source: tvm v0.18.0, src/relay/qnn/op/subtract.cc, read.

    >>> import numpy as np
    >>> subtract(np.uint8([10, 20]), np.uint8([1, 3]), 1.0, 0, 0.5, 0, 1.0, 5).tolist()
    [14, 23]
    """
    return _binary(
        "subtract",
        lhs,
        rhs,
        (lhs_scale, lhs_zero_point, lhs_axis),
        (rhs_scale, rhs_zero_point, rhs_axis),
        output_scale,
        output_zero_point,
    )


def mul(
    lhs: Tensor,
    rhs: Tensor,
    lhs_scale: Any,
    lhs_zero_point: Any,
    rhs_scale: Any,
    rhs_zero_point: Any,
    output_scale: Any,
    output_zero_point: Any,
    lhs_axis: Any = -1,
    rhs_axis: Any = -1,
) -> Any:
    """requantize((A - z_a)(B - z_b)) from the scale float32(s_a * s_b).

    Args:
        lhs, rhs: int8, uint8, int16, uint16 or int32, of one type, shapes that broadcast; int32 results wrap.
        lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point: one, or one per slice of `lhs_axis`, `rhs_axis`,
            which must be one axis of both operands, and the same number where there is a vector of scales.
        output_scale, output_zero_point: one. All zero points may be symbolic tensors.

    Returns:
        A tensor of their type.

    Raises:
        InputError: other types, shapes that do not fit.

    Source: tvm v0.18.0, src/relay/qnn/op/mul.cc, read.

    >>> import numpy as np
    >>> mul(np.uint8([10, 20]), np.uint8([1, 3]), 1.0, 0, 0.5, 0, 1.0, 5).tolist()
    [10, 35]
    """
    return _binary(
        "mul",
        lhs,
        rhs,
        (lhs_scale, lhs_zero_point, lhs_axis),
        (rhs_scale, rhs_zero_point, rhs_axis),
        output_scale,
        output_zero_point,
    )


def concatenate(
    data: Sequence[Tensor],
    input_scales: Sequence[Any],
    input_zero_points: Sequence[Any],
    output_scale: Any,
    output_zero_point: Any,
    axis: int,
) -> Any:
    """Inputs side by side along `axis`, each requantized to the output's scale and zero point where it differs.

    Args:
        data: tensors of one type (int8, uint8, int16, uint16 or int32), equal sizes along all other axes.
        input_scales, input_zero_points: one number per input; all zero points may be symbolic tensors.
        axis: counts from the end where negative.

    Raises:
        InputError: other types, shapes and numbers of parameters that do not fit.

    Source: tvm v0.18.0, src/relay/qnn/op/concatenate.cc, read.

    >>> import numpy as np
    >>> concatenate([np.uint8([10]), np.uint8([10])], [1.0, 0.5], [0, 0], 1.0, 0, axis=0).tolist()
    [10, 5]
    """
    name = "concatenate"
    given_parts = checks.parts(name, "data", data)
    if not given_parts:
        raise checks.wrong(name, "data", "expected at least one tensor", code="BT-QNN-SHAPE")
    first = checks.tensor(name, "data", given_parts[0], checks.CODES, (1, 8))
    parts = [checks.tensor(name, "data", part, (first.dtype,), first.rank) for part in given_parts]
    at = checks.axis(name, "axis", axis, first.rank)
    for part in parts:
        if any(a != b for k, (a, b) in enumerate(zip(part.shape, first.shape, strict=True)) if k != at):
            raise checks.wrong(
                name, "data", f"shapes {list(first.shape)} and {list(part.shape)} do not fit", code="BT-QNN-SHAPE"
            )
    scales = checks.parts(name, "input_scales", input_scales, len(parts))
    points = checks.parts(name, "input_zero_points", input_zero_points, len(parts))
    parameters = {"output_scale": checks.scale(name, "output_scale", output_scale)}
    for position, scale in enumerate(scales):
        parameters[f"input_{position}_scale"] = checks.scale(name, "input_scales", scale)
    given = {f"input_{position}_zero_point": (point, ()) for position, point in enumerate(points)}
    constants, computed = checks.points(name, **given, output_zero_point=(output_zero_point, ()))
    parameters |= constants
    shape = list(first.shape)
    shape[at] = sum(part.shape[at] for part in parts)
    attributes: dict[str, Attribute] = {"axis": at, **resolved(name)}
    return build("qnn.concatenate", parts, shape, first.dtype, parameters, attributes, len(parts), computed)


concat = concatenate


def _function(name: str, formula: str, stem: str) -> Callable[..., Any]:
    def function(x: Tensor, scale: Any, zero_point: Any, output_scale: Any, output_zero_point: Any) -> Any:
        data = checks.tensor(name, "x", x, checks.INTEGERS_8)
        parameters = {
            "input_scale": checks.scale(name, "scale", scale),
            "input_zero_point": checks.zero_point(name, "zero_point", zero_point),
            "output_scale": checks.scale(name, "output_scale", output_scale),
            "output_zero_point": checks.zero_point(name, "output_zero_point", output_zero_point),
        }
        return build(f"qnn.{name}", (data,), data.shape, data.dtype, parameters, {"function": stem})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""quantize({formula}) of x = dequantize(q), by a table of 256 entries.

    Args:
        x: int8 or uint8, any shape.
        scale, zero_point, output_scale, output_zero_point: scalars.

    Returns:
        A tensor of the type and shape of `x`. Infinite results saturate; where there is no value, the largest one
        stands.

    Raises:
        InputError: other types.

    Source: tvm v0.18.0, python/tvm/relay/qnn/op/canonicalizations.py, read; its NumPy functions are taken in float32
    steps, each rounded to nearest.
    """
    return function


tanh = _function("tanh", "tanh(x)", "tanh")
exp = _function("exp", "exp(x)", "exp")
sqrt = _function("sqrt", "sqrt(x)", "sqrt")
rsqrt = _function("rsqrt", "1 / sqrt(x)", "rsqrt")
erf = _function("erf", "erf(x)", "erf")
sigmoid = _function("sigmoid", "1 / (1 + exp(-x))", "logistic")
hardswish = _function("hardswish", "x * min(max(x + 3, 0), 6) / 6", "hard_swish")
log = _function("log", "ln(x)", "log")
abs = _function("abs", "|x|", "abs")  # the name that the system has


def leaky_relu(
    x: Tensor,
    alpha: Any,
    input_scale: Any,
    input_zero_point: Any,
    output_scale: Any,
    output_zero_point: Any,
) -> Any:
    """requantize(x), and where x < input_zero_point that times alpha, by fixed-point products.

    Args:
        x: int8 or uint8, of rank 1 or more.
        alpha: a number other than 0 and 1, for which the system compiles no code.
        input_scale, input_zero_point, output_scale, output_zero_point: scalars; zero points may be symbolic tensors.

    Raises:
        InputError: other types; multipliers that leave the shifts undefined.

    Source: tvm v0.18.0, src/relay/qnn/op/leaky_relu.cc, read.

    >>> import numpy as np
    >>> leaky_relu(np.uint8([255, 133, 0, 9]), 0.9, 0.125, 60, 0.6, 17).tolist()
    [58, 32, 6, 7]
    """
    name = "leaky_relu"
    data = checks.tensor(name, "x", x, checks.INTEGERS_8)
    if not data.rank:
        raise checks.wrong(name, "x", "the system takes no single number", "give it an axis: shape [1]", "BT-QNN-SHAPE")
    if not isinstance(alpha, int | float | np.floating | np.integer) or isinstance(alpha, bool):
        raise checks.wrong(name, "alpha", f"expected a number, found {alpha!r}")
    if not alpha:
        raise checks.wrong(name, "alpha", "the system does not compile it for 0", "qnn.relu or qnn.clip are for that")
    points, computed = checks.points(
        name, input_zero_point=(input_zero_point, ()), output_zero_point=(output_zero_point, ())
    )
    parameters = {
        **points,
        "input_scale": checks.scale(name, "input_scale", input_scale),
        "output_scale": checks.scale(name, "output_scale", output_scale),
    }
    attributes: dict[str, Attribute] = {"alpha": float(alpha), **resolved(name)}
    return build("qnn.leaky_relu", (data,), data.shape, data.dtype, parameters, attributes, computed=computed)


def softmax(x: Tensor, scale: Any, zero_point: Any, output_scale: Any, output_zero_point: Any, axis: int = -1) -> Any:
    """Probabilities along `axis` by shifts and additions (algorithm 1 of arXiv:2207.01405), then requantized.

    Args:
        x: int8, rank 1 or more.
        scale: a scalar, at most 1.
        zero_point, output_scale, output_zero_point: scalars; zero points may be symbolic tensors.

    Raises:
        InputError: other types, a scale above 1; with arrays, exponentials that add up to 0 modulo 2^32.

    Source: tvm v0.18.0, src/relay/qnn/op/softmax.cc, read.

    >>> import numpy as np
    >>> softmax(np.int8([[0, 10]]), 0.1, 0, 1 / 256, -128).tolist()
    [[-56, 54]]
    """
    name = "softmax"
    data = checks.tensor(name, "x", x, ("s8",), (1, 8))
    points, computed = checks.points(name, input_zero_point=(zero_point, ()), output_zero_point=(output_zero_point, ()))
    parameters = {
        **points,
        "input_scale": checks.scale(name, "scale", scale),
        "output_scale": checks.scale(name, "output_scale", output_scale),
    }
    if float(parameters["input_scale"]) > 1:
        raise checks.wrong(name, "scale", f"at most 1 is possible, found {parameters['input_scale']}")
    attributes: dict[str, Attribute] = {"axis": checks.axis(name, "axis", axis, data.rank), **resolved(name)}
    return build("qnn.softmax", (data,), data.shape, "s8", parameters, attributes, computed=computed)


def _end(argument: str, value: Any) -> int:
    """An end of `clip`; frontends write it as a real number."""
    whole = isinstance(value, float | np.floating) and math.isfinite(value) and value == int(value)
    return int(value) if whole else checks.whole("clip", argument, value)


def clip(data: Tensor, a_min: Any, a_max: Any) -> Any:
    """min(max(data, a_min), a_max) of quantized values: what frontends make of ReLU, ReLU6 and so on.

    Args:
        data: int8, uint8, int16, uint16 or int32, any shape.
        a_min, a_max: integers; what lies outside of a signed type is the type's own end, unsigned ones take no end
            below 0.

    >>> import numpy as np
    >>> clip(np.uint8([1, 100, 200]), 3, 150).tolist()
    [3, 100, 150]
    """
    x = checks.tensor("clip", "data", data, checks.CODES)
    kind, ends = data_type(x.dtype), {"a_min": _end("a_min", a_min), "a_max": _end("a_max", a_max)}
    for role, end in ends.items():
        if not kind.minimum and end < 0:
            raise checks.wrong("clip", role, f"the system cannot make {kind.title} from negative value {end}")
    low, high = (min(max(end, kind.minimum), kind.maximum) for end in ends.values())
    return build("clip", (x,), x.shape, x.dtype, {}, {"a_min": low, "a_max": high})


def relu(data: Tensor, zero_point: Any = 0) -> Any:
    """max(data, zero_point) of quantized values.

    >>> import numpy as np
    >>> relu(np.uint8([1, 100, 200]), 128).tolist()
    [128, 128, 200]
    """
    x = checks.tensor("relu", "data", data, checks.CODES)
    point = int(checks.zero_point("relu", "zero_point", zero_point))
    return clip(data, point, data_type(x.dtype).maximum)
