"""`quantize` and `dequantize` as functions on arrays, under a named numerics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import numerics as numerics_tables
from .errors import BittrueError, InputError
from .graph import DATA_TYPES, DataType, Graph, Node, Tensor, data_type
from .numerics import Numerics
from .plan import make_plan
from .rules.quantize import DEQUANTIZE, QUANTIZE
from .runtime.reference import ReferenceExecutor

if TYPE_CHECKING:
    import numpy.typing as npt

# Version of the operators whose scales are operands: the newest that every numerics with them knows.
_VERSION = 25
_SOURCES = ("f32", "f16", "bf16", "s32")
_SCALES = (*_SOURCES, "f8e8m0")
_PRECISIONS = ("f32", "f16", "bf16", "f64")


def quantize(
    x: npt.ArrayLike,
    scale: npt.ArrayLike,
    zero_point: npt.ArrayLike = 0,
    dtype: Any = "int8",
    *,
    axis: int | None = None,
    block_size: int = 0,
    saturate: bool = True,
    precision: Any = None,
    numerics: str = numerics_tables.DEFAULT,
) -> np.ndarray:
    """Real numbers to quantized ones: saturate(round(x / scale) + zero_point), with the numerics' ties and precision.

    Args:
        x: array of any shape. float16, bfloat16 and (under ``"onnx"``) int32 are taken as they are, the rest as
            float32; ``"litert"`` takes everything as float32.
        scale: one scale, one per slice of `axis`, or (with `block_size`) an array of x's rank whose dimension on `axis`
            is ceil(size of x / block_size). float16, bfloat16 and float8_e8m0 scales keep their type, the rest take
            that of x.
        zero_point: one number, or as many as there are scales.
        dtype: what is stored, by everyday name or as a NumPy or ml_dtypes type: ``"int8"``, ``"uint4"``, ``"int2"``,
            ``"float8_e4m3fn"``, ``"float4_e2m1"``, ... Integers narrower than a byte are returned one per byte.
        axis: the axis that several scales belong to.
        block_size: neighbours along `axis` that share a scale; 0 for none.
        saturate: whether 8-bit floats beyond the largest number become that number, or else infinity or NaN.
        precision: type in which x / scale is rounded, where the numerics asks for it; None: that of the scale.
        numerics: whose rounding: ``"onnx"`` and ``"onnxruntime"`` know all types, ``"litert"`` and its relatives
            8- and 16-bit integers per tensor or per axis.

    Raises:
        InputError: types that the numerics has no result for, a zero point outside the type, shapes that do not fit.

    >>> quantize([0.05, -0.05, 99.0], 0.1, 3).tolist()
    [4, 2, 127]
    >>> quantize([0.25, 0.75, -9.0], 0.5, 8, "uint4", numerics="onnx").tolist()
    [8, 10, 0]
    >>> quantize([[1, 2, 3], [4, 5, 6]], [[1, 2], [4, 1]], 0, axis=1, block_size=2, numerics="onnxruntime").tolist()
    [[1, 2, 2], [1, 1, 6]]
    >>> quantize([1.0, 500.0], 1.0, 0, "float8_e4m3fn", saturate=False, numerics="onnx").astype(float).tolist()
    [1.0, nan]
    """
    table = numerics_tables.find(numerics)
    target = named_type(dtype)
    if not _takes_operands(table, "quantize"):
        if block_size or not saturate or precision is not None:
            raise InputError(
                "BT-QUANTIZE",
                f"numerics '{numerics}' has no block_size, saturate or precision",
                advice="use numerics='onnx' or 'onnxruntime'",
            )
        return _quantize_integers(table, real_array(x), scale, zero_point, target, axis)
    real = _real(as_array(x), _SOURCES)
    scales = _scales(scale, real)
    rounding = named_type(precision).name if precision is not None else _precision_of(_name(real), _name(scales))
    if rounding not in _PRECISIONS:
        raise InputError("BT-DTYPE", f"nothing is divided in {rounding}", advice=f"types are {', '.join(_PRECISIONS)}")
    attributes = {"saturate": int(saturate), "precision": rounding}
    scales, points = _operands(real, scales, zero_point, target, axis, block_size)
    return _run(table, "quantize", real, _name(real), scales, points, target, target, axis, block_size, attributes)


def dequantize(
    q: npt.ArrayLike,
    scale: npt.ArrayLike,
    zero_point: npt.ArrayLike = 0,
    *,
    dtype: Any = None,
    axis: int | None = None,
    block_size: int = 0,
    output_dtype: Any = None,
    numerics: str = numerics_tables.DEFAULT,
) -> np.ndarray:
    """Quantized numbers to real ones: (q - zero_point) * scale, with the numerics' precision.

    Args:
        q: integers, or 4- to 8-bit floats as arrays of ml_dtypes.
        scale, zero_point, axis, block_size, numerics: as for `quantize`; the rest of the scales is float32.
        dtype: type of q where its array does not say it, as ``"int4"`` for 4-bit integers in an int8 array.
        output_dtype: type of the result; None: that of the scale, float32 for float8_e8m0.

    >>> dequantize(np.int8([4, 2]), 0.5, 3).tolist()
    [0.5, -0.5]
    >>> dequantize([15, 0], 0.5, 8, dtype="uint4", output_dtype="float16", numerics="onnx")
    array([ 3.5, -4. ], dtype=float16)
    """
    table = numerics_tables.find(numerics)
    array = as_array(q)
    source = named_type(array.dtype if dtype is None else dtype)
    if array.dtype.kind in "iu":
        array = _stored(array, source, "a quantized value")
    elif _name(array) != source.name:
        raise InputError("BT-DEQUANTIZE", f"expected {source.title}, found {array.dtype}")
    if not _takes_operands(table, "dequantize"):
        if block_size or named_type(output_dtype or "float32").name != "f32":
            raise InputError(
                "BT-DEQUANTIZE",
                f"numerics '{numerics}' has no block_size and gives float32 alone",
                advice="use numerics='onnx' or 'onnxruntime'",
            )
        return _dequantize_integers(table, array, scale, zero_point, source, axis)
    scales = _scales(scale, np.zeros(0, np.float32))
    kept = _name(scales) if _name(scales) in ("f32", "f16", "bf16") else "f32"
    target = data_type(kept) if output_dtype is None else named_type(output_dtype)
    scales, points = _operands(array, scales, zero_point, source, axis, block_size)
    return _run(table, "dequantize", array, source.name, scales, points, source, target, axis, block_size, {})


def _takes_operands(table: Numerics, operator: str) -> bool:
    """Whether scales and zero points may be operands."""
    return any(row.operator == operator and "zero_points" in row.rules for row in table.rows)


def named_type(dtype: Any) -> DataType:
    """The type with an everyday name, a short name, the name of an ml_dtypes type, or a NumPy dtype.

    Raises:
        InputError: there is none.

    >>> [named_type(name).name for name in ("uint4", "s16", "float8_e8m0fnu", np.int8)]
    ['u4', 's16', 'f8e8m0', 's8']
    """
    try:
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
        return next((t for t in DATA_TYPES.values() if t.array == name), None) or data_type(name)
    except (KeyError, TypeError, ValueError):
        advice = "names are 'int8', 'uint4', 'float8_e4m3fn', ..."
        raise InputError("BT-DTYPE", f"{dtype!r} is no element type", advice=advice) from None


def as_array(values: npt.ArrayLike) -> np.ndarray:
    """What NumPy makes of an argument; InputError when it makes none."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError("BT-SHAPE", f"expected an array: {error}") from None


def real_array(values: npt.ArrayLike) -> np.ndarray:
    """An argument as binary32 numbers."""
    return _real(as_array(values), ())


def _name(array: np.ndarray) -> str:
    return named_type(array.dtype).name


def _real(array: np.ndarray, kept: tuple[str, ...]) -> np.ndarray:
    """As it is where the type is among `kept`, else binary32."""
    if array.dtype.kind not in "biufV":
        raise InputError("BT-DTYPE", f"expected numbers, found {array.dtype}")
    with np.errstate(over="ignore"):
        return array if array.dtype.kind != "b" and _name(array) in kept else array.astype(np.float32)


def _scales(scale: npt.ArrayLike, real: np.ndarray) -> np.ndarray:
    array = as_array(scale)
    if isinstance(scale, (np.ndarray, np.generic)) and array.dtype != np.float64 and _name(array) in _SCALES:
        return array
    return _real(array, ()).astype(real.dtype if _name(real) in ("f16", "bf16") else np.float32)


def _precision_of(real: str, scale: str) -> str:
    """As for a file without the attribute: that of the scale; of x where the scale has none."""
    if scale == "s32":
        return "f64"
    return scale if scale in _PRECISIONS else real if real in _PRECISIONS else "f32"


def _stored(values: npt.ArrayLike, dtype: DataType, role: str) -> np.ndarray:
    """Numbers in a type that holds all of them."""
    given = as_array(values)
    if not dtype.is_integer:
        found = given.astype(np.float32).astype(dtype.numpy)
        exact = found.astype(np.float32) == given.astype(np.float32)
        if not exact.all():
            raise InputError("BT-QUANT-ZERO-POINT", f"{role} is no number of {dtype.title}")
        return found
    if given.dtype.kind not in "iu":
        raise InputError("BT-QUANT-ZERO-POINT", f"zero points must be integers, found {given.dtype}")
    if ((given < dtype.minimum) | (given > dtype.maximum)).any():
        raise InputError("BT-QUANT-ZERO-POINT", f"{role} lies outside {dtype.title}")
    return given.astype(dtype.numpy)


def _operands(
    data: np.ndarray, scales: np.ndarray, zero_point: npt.ArrayLike, stored: DataType, axis: int | None, block: int
) -> tuple[np.ndarray, np.ndarray]:
    """Scales, and as many zero points; a single one serves all scales, and a single scale the whole array."""
    points = _stored(zero_point, stored, "a zero point")
    if axis is None and (scales.size != 1 or points.size != 1 or block):
        raise InputError("BT-QUANT-AXIS", "several scales or zero points need an axis", advice="pass axis=")
    if not block and max(scales.size, points.size) == 1:
        return scales.reshape(()), points.reshape(())
    shape = scales.shape if scales.size >= points.size else points.shape
    if scales.size not in (1, int(np.prod(shape))) or points.size not in (1, int(np.prod(shape))):
        raise InputError("BT-QUANT-AXIS", f"{scales.size} scales do not go with {points.size} zero points")
    flat = [np.broadcast_to(a.reshape(-1), int(np.prod(shape))).reshape(shape) for a in (scales, points)]
    return flat[0], flat[1]


def _run(
    table: Numerics,
    operator: str,
    data: np.ndarray,
    data_name: str,
    scales: np.ndarray,
    points: np.ndarray,
    stored: DataType,
    result: DataType,
    axis: int | None,
    block: int,
    attributes: dict[str, Any],
) -> np.ndarray:
    """A graph of one node, planned and run."""
    tensors = (
        Tensor("x", data_name, data.shape),
        Tensor("scale", _name(scales), scales.shape, data=np.ascontiguousarray(scales).reshape(-1)),
        # Constants of files are packed, so narrow zero points come as an input.
        Tensor("zero_point", stored.name, points.shape),
        Tensor("y", result.name, ()),
    )
    everything = {"axis": 0 if axis is None else axis, "block_size": block, "domain": "", **attributes}
    node = Node(0, operator, operator, _VERSION, everything, (0, 1, 2), (3,))
    try:
        plan = make_plan(Graph("arrays", tensors, (node,), (0, 2), (3,)), table)
        return ReferenceExecutor(plan).run({0: data, 2: points})[0]
    except BittrueError as error:
        raise InputError(error.code, error.message, place=error.place, advice=error.advice) from None


def _quantize_integers(
    table: Numerics,
    array: np.ndarray,
    scale: npt.ArrayLike,
    zero_point: npt.ArrayLike,
    target: DataType,
    axis: int | None,
) -> np.ndarray:
    if not target.is_integer:
        raise InputError(
            "BT-DTYPE",
            f"{target.title} is no integer type, numerics '{table.name}' has no other",
            advice="use 'int8', 'uint8' or 'int16', or numerics='onnx' or 'onnxruntime'",
        )
    scales, zero_points = _parameters(array, scale, zero_point, axis, target)
    row = table.find("quantize", ("f32",), (target.name,))
    if row is None or "quantize" not in row.rules:
        raise InputError("BT-QUANTIZE", f"numerics '{table.name}' does not quantize float32 to {target.title}")
    stored = QUANTIZE[row.rules["quantize"]](array, scales, zero_points, target.minimum, target.maximum)
    return stored.astype(target.numpy)


def _dequantize_integers(
    table: Numerics,
    array: np.ndarray,
    scale: npt.ArrayLike,
    zero_point: npt.ArrayLike,
    source: DataType,
    axis: int | None,
) -> np.ndarray:
    if not source.is_integer:
        raise InputError("BT-DEQUANTIZE", f"expected integers, found {source.title}")
    scales, zero_points = _parameters(array, scale, zero_point, axis, None)
    row = table.find("dequantize", (source.name,), ("f32",))
    if row is None:
        raise InputError("BT-DEQUANTIZE", f"numerics '{table.name}' does not dequantize {source.title}")
    return DEQUANTIZE[row.rules["dequantize"]](array, scales, zero_points)


def _parameters(
    array: np.ndarray, scale: npt.ArrayLike, zero_point: npt.ArrayLike, axis: int | None, target: DataType | None
) -> tuple[np.ndarray, np.ndarray]:
    scales = real_array(scale)
    zero_points = as_array(zero_point)
    if zero_points.dtype.kind not in "iu":
        raise InputError("BT-QUANT-ZERO-POINT", f"zero points must be integers, found {zero_points.dtype}")
    zero_points = zero_points.astype(np.int64)
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise InputError("BT-QUANT-SCALE", "every scale must be positive, finite and representable in float32")
    if target is not None and ((zero_points < target.minimum) | (zero_points > target.maximum)).any():
        raise InputError("BT-QUANT-ZERO-POINT", f"a zero point lies outside {target.title}")
    if axis is None:
        if scales.size != 1 or zero_points.size != 1:
            raise InputError("BT-QUANT-AXIS", "several scales or zero points need an axis", advice="pass axis=")
        return scales.reshape(()), zero_points.reshape(())
    if not -array.ndim <= axis < array.ndim:
        raise InputError("BT-QUANT-AXIS", f"axis {axis} is outside an array of {array.ndim} dimensions")
    size = array.shape[axis]
    shape = [1] * array.ndim
    shape[axis] = size
    if scales.size not in (1, size) or zero_points.size not in (1, size):
        raise InputError("BT-QUANT-AXIS", f"axis {axis} has size {size}, found {scales.size} scales")
    return (
        np.broadcast_to(scales.reshape(-1), (size,)).reshape(shape),
        np.broadcast_to(zero_points.reshape(-1), (size,)).reshape(shape),
    )
