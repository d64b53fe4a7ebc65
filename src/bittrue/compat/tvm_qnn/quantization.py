"""quantize, dequantize, requantize."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph import Attribute, data_type
from . import checks
from .building import build
from .config import OPEN, check_compiled_axis, check_single_number, resolved
from .expr import Expr, Tensor, constant
from .layers import reshaped


def _first(function: str, argument: str, *given: Any) -> Any:
    """The one value among spellings of one argument that is given."""
    found = [value for value in given if value is not None]
    if len(found) != 1:
        what = "is missing" if not found else "is given twice, under two names"
        raise checks.wrong(function, argument, what, code="BT-QNN-ARGUMENT")
    return found[0]


def _axis_or_type(axis: Any, out_dtype: Any) -> tuple[int, Any]:
    """The RFC's fourth argument is the type, TVM's is the axis."""
    return (int(axis), out_dtype) if isinstance(axis, int | np.integer) and not isinstance(axis, bool) else (-1, axis)


def _per_axis(function: str, axis: Any, data: Expr, scale: Any, zero_point: Any) -> tuple[int, tuple[int, ...]]:
    """Axis and its dimension; the axis is looked at only where one of the two is no scalar."""
    if all(checks.dimensions(p) == 0 for p in (scale, zero_point)):
        return -1, ()
    if not data.rank:
        raise checks.wrong(function, "axis", "one number has no axis for a vector of scales or zero points")
    # One element serves the whole tensor.
    found = checks.axis(function, "axis", axis, data.rank)
    return found, (data.shape[found], 1)


def _computed(function: str, kind: str, x: Expr, axis: Any, scale: Any, point: Any) -> tuple[int, list[Expr]]:
    """Axis and operands where scale or zero point are computed: scale, then zero point, in one shape."""
    operands = []
    for role, value, dtype in (("scale", scale, "f32"), ("zero_point", point, "s32")):
        given = value if isinstance(value, Expr) else constant(value, dtype)
        operands.append(checks.tensor(function, f"{kind}_{role}", given, (dtype,), (0, 1)))
    one = [operand.rank == 0 or operand.shape == (1,) for operand in operands]
    if all(one):
        return -1, operands
    at = checks.axis(function, "axis", axis, x.rank)
    for role, operand, single in zip(("scale", "zero_point"), operands, one, strict=True):
        if not single and operand.shape != (x.shape[at],):
            shown = f"expected one number or {x.shape[at]}, found shape {list(operand.shape)}"
            raise checks.wrong(function, f"{kind}_{role}", shown, code="BT-QNN-SHAPE")
    spread = []
    for operand, single in zip(operands, one, strict=True):
        if not single:
            spread.append(operand)
        elif operand.value is not None:
            spread.append(constant(np.full(x.shape[at], operand.value.reshape(())), operand.dtype))
        else:
            spread.append(Expr("tile", (reshaped(operand, (1,)),), (x.shape[at],), operand.dtype))
    return at, spread


def _squeezed(array: np.ndarray) -> np.ndarray:
    return array.reshape(()) if array.size == 1 else array


def quantize(
    data: Tensor,
    output_scale: Any = None,
    output_zero_point: Any = None,
    axis: Any = -1,
    out_dtype: Any = "int8",
    *,
    scale: Any = None,
    zero_point: Any = None,
) -> Any:
    """q = clip(round(data / scale) + zero_point), ties away from zero, in float32.

    One constant scale, a number and no vector, is not divided by: compiled code multiplies by float32(1 / scale).

    The RFC's spelling ``quantize(data, scale, zero_point, out_dtype)`` works, too, by position and by keyword.

    Args:
        data: float32, any shape.
        output_scale: float32, one or one per slice of `axis`; it may be a symbolic tensor.
        output_zero_point: int32, likewise.
        axis: counts from the end where negative.
        out_dtype: ``"int8"``, ``"uint8"``, ``"int16"``, ``"uint16"`` or ``"int32"``.

    Returns:
        A tensor of the same shape.

    Raises:
        InputError: other types, shapes that do not fit, scales that are not positive.

    Source: the RFC; tvm v0.18.0, src/relay/qnn/op/quantize.cc and src/arith/rewrite_simplify.cc, verified by
    running.

    >>> import numpy as np
    >>> quantize(np.float32([0.25, -0.25, 99]), 0.5, 3, out_dtype="int8").tolist()
    [4, 2, 127]
    >>> [int(quantize(np.float32([1.65]), scale, 0)[0]) for scale in (0.3, [0.3])]
    [6, 5]
    >>> quantize(np.float32([0.25, -0.25, 99]), 0.5, 3, "uint8").tolist()
    [4, 2, 201]
    """
    axis, out_dtype = _axis_or_type(axis, out_dtype)
    x = checks.tensor("quantize", "data", data, ("f32",))
    wanted = _first("quantize", "output_scale", output_scale, scale)
    point = _first("quantize", "output_zero_point", output_zero_point, zero_point)
    dtype = checks.element_type("quantize", "out_dtype", out_dtype, checks.CODES)
    if any(isinstance(p, Expr) and p.value is None for p in (wanted, point)):
        at, operands = _computed("quantize", "output", x, axis, wanted, point)
        return build("qnn.quantize", (x, *operands), x.shape, dtype, {}, {"axis": at})
    at, sizes = _per_axis("quantize", axis, x, wanted, point)
    scales = checks.scale("quantize", "output_scale", wanted, sizes)
    # A vector of one scale divides, as longer ones do; one number multiplies.
    several = scales.ndim == 1 and 0 not in x.shape and at >= 0
    parameters = {
        "output_scale": np.broadcast_to(scales, (x.shape[at],)) if several else _squeezed(scales),
        "output_zero_point": _squeezed(checks.zero_point("quantize", "output_zero_point", point, sizes)),
    }
    return build("qnn.quantize", (x,), x.shape, dtype, parameters, {"axis": at})


def dequantize(
    data: Tensor | None = None,
    input_scale: Any = None,
    input_zero_point: Any = None,
    axis: Any = -1,
    out_dtype: Any = "float32",
    *,
    quantized_data: Tensor | None = None,
    scale: Any = None,
    zero_point: Any = None,
) -> Any:
    """float32(data - zero_point) * scale.

    The RFC's spelling ``dequantize(quantized_data, scale, zero_point, out_dtype)`` works, too.

    Args:
        data: int8, uint8, int16, uint16 or int32, any shape.
        input_scale, input_zero_point: one, or one per slice of `axis`; they may be symbolic tensors.
        out_dtype: ``"float32"``, or ``"float16"``: limited to its finite numbers, then rounded.

    Raises:
        InputError: as `quantize`.

    Source: the RFC; tvm v0.18.0, src/relay/qnn/op/dequantize.cc, read.

    >>> import numpy as np
    >>> dequantize(np.int8([4, 2]), 0.5, 3).tolist()
    [0.5, -0.5]
    >>> dequantize(np.uint8([4, 2]), 0.5, 3, "float32").tolist()
    [0.5, -0.5]
    """
    axis, out_dtype = _axis_or_type(axis, out_dtype)
    x = checks.tensor("dequantize", "data", _first("dequantize", "data", data, quantized_data), checks.CODES)
    given = _first("dequantize", "input_scale", input_scale, scale)
    point = _first("dequantize", "input_zero_point", input_zero_point, zero_point)
    dtype = checks.element_type("dequantize", "out_dtype", out_dtype, ("f32", "f16"))
    if any(isinstance(p, Expr) and p.value is None for p in (given, point)):
        at, operands = _computed("dequantize", "input", x, axis, given, point)
        return build("qnn.dequantize", (x, *operands), x.shape, dtype, {}, {"axis": at})
    at, sizes = _per_axis("dequantize", axis, x, given, point)
    parameters = {
        "input_scale": _squeezed(checks.scale("dequantize", "input_scale", given, sizes)),
        "input_zero_point": _squeezed(checks.zero_point("dequantize", "input_zero_point", point, sizes)),
    }
    return build("qnn.dequantize", (x,), x.shape, dtype, parameters, {"axis": at})


def requantize(
    data: Tensor,
    input_scale: Any,
    input_zero_point: Any,
    output_scale: Any,
    output_zero_point: Any,
    axis: Any = -1,
    rounding: Any = OPEN,
    compute_dtype: Any = OPEN,
    out_dtype: Any = "int8",
) -> Any:
    """From one scale and zero point to another: round((data - z_in) * s_in / s_out) + z_out, clipped unless int32.

    Args:
        data: int8, uint8, int16, int32 or int64, any shape; int64 is narrowed to int32 first.
        input_scale, input_zero_point: one, or one per slice of `axis`.
        output_scale, output_zero_point: one. Both zero points may be symbolic tensors.
        axis: counts from the end where negative; with several scales, those below -1 need UPWARD and int64.
        rounding: ``"UPWARD"`` (ties to plus infinity), ``"TONEAREST"`` (ties away from zero), or ``"None"``: as
            `requantize_config` says, else as the numerics that runs it.
        compute_dtype: ``"int64"`` (a 31-bit multiplier and one rounding), ``"float32"``, ``"float64"`` (the zero point
            is added before rounding), or ``"None"``.
        out_dtype: ``"int8"``, ``"uint8"``, ``"int16"`` or ``"int32"``.

    Raises:
        InputError: other types and choices, shapes that do not fit, an output scale that is not positive, multipliers
            that leave the shifts undefined.

    Source: tvm v0.18.0, src/relay/qnn/op/requantize.cc and utils.cc, read.

    >>> import numpy as np
    >>> requantize(np.int32([-3, -1, 1, 3]), 0.5, 0, 1.0, 0).tolist()
    [-1, 0, 1, 2]
    >>> requantize(np.int32([-3, -1, 1, 3]), 0.5, 0, 1.0, 0, rounding="TONEAREST").tolist()
    [-2, -1, 1, 2]
    """
    x = checks.tensor("requantize", "data", data, ("s8", "u8", "s16", "s32", "s64"))
    if x.rank:
        # The system asks for one that fits also where it plays no part.
        checks.axis("requantize", "axis", axis, x.rank)
    at, sizes = _per_axis("requantize", axis, x, input_scale, input_zero_point)
    if sizes and x.rank and x.shape[at] != 1:
        sizes = (x.shape[at],)
    points, computed = checks.points(
        "requantize", input_zero_point=(input_zero_point, sizes), output_zero_point=(output_zero_point, ())
    )
    check_single_number("requantize", "data", x.shape, points.get("input_zero_point"))
    parameters = {
        **points,
        "input_scale": checks.scale("requantize", "input_scale", input_scale, sizes, zero=True),
        "output_scale": checks.scale("requantize", "output_scale", output_scale),
    }
    dtype = checks.element_type("requantize", "out_dtype", out_dtype, ("s8", "u8", "s16", "s32"))
    choice = resolved("requantize", rounding, compute_dtype)
    check_compiled_axis("requantize", "axis", axis, parameters["input_scale"], choice)
    attributes: dict[str, Attribute] = {"axis": at, **choice}
    return build("qnn.requantize", (x,), x.shape, dtype, parameters, attributes, computed=computed)


_SIMULATED = ("s8", "u8", "s32")


def _simulated(function: str, kind: str, data: Tensor, scale: Any, point: Any, axis: Any, dtype: Any) -> Any:
    x = checks.tensor(function, "data", data, ("f32",))
    at = checks.axis(function, "axis", axis, x.rank)
    argument = "out_dtype" if kind == "output" else "in_dtype"
    if isinstance(dtype, str) and dtype == "disable":
        return data if isinstance(data, Expr) else np.array(x.value)
    chosen = data_type(checks.element_type(function, argument, dtype, _SIMULATED))
    parameters: dict[str, np.ndarray] = {}
    computed: dict[str, Expr] = {}
    for role, value, kept in (("scale", scale, "f32"), ("zero_point", point, "s32")):
        name = f"{kind}_{role}"
        if isinstance(value, Expr) and value.value is None:
            computed[name] = checks.tensor(function, name, value, (kept,), (0, 1))
            continue
        array = checks.given_array(function, name, value.value if isinstance(value, Expr) else value)
        check = checks.scale if role == "scale" else checks.zero_point
        parameters[name] = check(function, name, value, (array.size,) if array.size else ())
    ends = {"low": float(chosen.minimum), "high": float(chosen.maximum)} if kind == "output" else {}
    attributes = {"axis": at, **ends}
    return build(f"qnn.{function}", (x,), x.shape, "f32", parameters, attributes, computed=computed)


def simulated_quantize(
    data: Tensor, output_scale: Any, output_zero_point: Any, axis: Any = -1, out_dtype: Any = "int8"
) -> Any:
    """clip(round(data / scale) + zero_point) as float32 numbers, ties away from zero.

    Args:
        data: float32, any shape.
        output_scale, output_zero_point: numbers, vectors or symbolic tensors; element i of `axis` takes entry i modulo
            their length.
        out_dtype: ``"int8"``, ``"uint8"``, ``"int32"``, or ``"disable"``: the data as it is.

    Raises:
        InputError: other types.

    Source: tvm v0.18.0, python/tvm/topi/nn/qnn.py, read.

    >>> import numpy as np
    >>> simulated_quantize(np.float32([0.25, -0.25, 99]), 0.5, 3).tolist()
    [4.0, 2.0, 127.0]
    """
    return _simulated("simulated_quantize", "output", data, output_scale, output_zero_point, axis, out_dtype)


def simulated_dequantize(
    data: Tensor, input_scale: Any, input_zero_point: Any, axis: Any = -1, in_dtype: Any = "int8"
) -> Any:
    """(data - zero_point) * scale of float32 numbers.

    Args:
        data: float32 numbers that hold quantized values, any shape.
        input_scale, input_zero_point: numbers, vectors or symbolic tensors; element i of `axis` takes entry i modulo
            their length.
        in_dtype: ``"int8"``, ``"uint8"``, ``"int32"``, or ``"disable"``: the data as it is.

    Returns:
        float32, of the same shape.

    Raises:
        InputError: other types, axes and scales.

    Source: tvm v0.18.0, python/tvm/topi/nn/qnn.py, read.

    >>> import numpy as np
    >>> simulated_dequantize(np.float32([4.0, 2.0]), 0.5, 3).tolist()
    [0.5, -0.5]
    """
    return _simulated("simulated_dequantize", "input", data, input_scale, input_zero_point, axis, in_dtype)
