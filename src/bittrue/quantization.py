"""`quantize` and `dequantize` as functions on arrays, under a named numerics."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import numerics as numerics_tables
from .errors import InputError
from .graph import DataType, data_type
from .rules.quantize import DEQUANTIZE, QUANTIZE


def quantize(
    x: npt.ArrayLike,
    scale: npt.ArrayLike,
    zero_point: npt.ArrayLike = 0,
    dtype: Any = "int8",
    *,
    axis: int | None = None,
    numerics: str = numerics_tables.DEFAULT,
) -> np.ndarray:
    """Real numbers to stored integers: clamp(round(x / scale) + zero_point), with the numerics' ties and precision.

    Args:
        x: float array of any shape (used as binary32).
        scale: positive binary32 scale, or one per slice of `axis`.
        zero_point: integer, or one per slice of `axis`.
        dtype: ``"int8"``, ``"uint8"`` or ``"int16"`` (or the NumPy dtype).
        axis: the axis that several scales belong to.
        numerics: whose rounding.

    Raises:
        InputError: a scale that is not positive and finite, a zero point outside the type, lengths that do not fit.

    >>> quantize([0.05, -0.05, 99.0], 0.1, 3).tolist()
    [4, 2, 127]
    """
    target = _integer_type(dtype)
    array = np.asarray(x, np.float32)
    scales, zero_points = _parameters(array, scale, zero_point, axis, target)
    row = numerics_tables.find(numerics).find("quantize", ("f32",), (target.name,))
    if row is None or "quantize" not in row.rules:
        raise InputError("BT-QUANTIZE", f"numerics '{numerics}' does not quantize float32 to {target.title}")
    stored = QUANTIZE[row.rules["quantize"]](array, scales, zero_points, target.minimum, target.maximum)
    return stored.astype(target.numpy)


def dequantize(
    q: npt.ArrayLike,
    scale: npt.ArrayLike,
    zero_point: npt.ArrayLike = 0,
    *,
    axis: int | None = None,
    numerics: str = numerics_tables.DEFAULT,
) -> np.ndarray:
    """Stored integers to float32: scale * (q - zero_point), with the numerics' precision.

    Args:
        q: integer array.
        scale, zero_point, axis, numerics: as for `quantize`.

    >>> dequantize(np.int8([4, 2]), 0.5, 3).tolist()
    [0.5, -0.5]
    """
    array = np.asarray(q)
    if array.dtype.kind not in "iu":
        raise InputError("BT-DEQUANTIZE", f"expected integers, found {array.dtype}")
    source = _integer_type(array.dtype)
    scales, zero_points = _parameters(array, scale, zero_point, axis, None)
    row = numerics_tables.find(numerics).find("dequantize", (source.name,), ("f32",))
    if row is None:
        raise InputError("BT-DEQUANTIZE", f"numerics '{numerics}' does not dequantize {source.title}")
    return DEQUANTIZE[row.rules["dequantize"]](array, scales, zero_points)


def _integer_type(dtype: Any) -> DataType:
    try:
        found = data_type(dtype if isinstance(dtype, str) else np.dtype(dtype).name)
    except (KeyError, TypeError):
        found = None
    if found is None or not found.is_integer:
        raise InputError("BT-DTYPE", f"{dtype!r} is no integer type", advice="use 'int8', 'uint8' or 'int16'")
    return found


def _parameters(
    array: np.ndarray, scale: npt.ArrayLike, zero_point: npt.ArrayLike, axis: int | None, target: DataType | None
) -> tuple[np.ndarray, np.ndarray]:
    scales = np.asarray(scale, np.float32)
    zero_points = np.asarray(zero_point)
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
    extent = array.shape[axis]
    shape = [1] * array.ndim
    shape[axis] = extent
    if scales.size not in (1, extent) or zero_points.size not in (1, extent):
        raise InputError("BT-QUANT-AXIS", f"axis {axis} has extent {extent}, found {scales.size} scales")
    return (
        np.broadcast_to(scales.reshape(-1), (extent,)).reshape(shape),
        np.broadcast_to(zero_points.reshape(-1), (extent,)).reshape(shape),
    )
