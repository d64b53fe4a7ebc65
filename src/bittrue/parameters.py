"""`choose_parameters`: scale and zero point for a range of real numbers, as three quantizers choose them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .arithmetic.floats import round_away
from .errors import InputError
from .graph import DataType
from .quantization import named_type, real_array
from .records import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

_F32 = np.float32
_TINY, _EPSILON = np.finfo(_F32).tiny, np.finfo(_F32).eps
# Ranges narrower than this are widened (source: LiteRT's converter).
_NEAR_ZERO = 1e-6


@dataclass(frozen=True)
class _Wish:
    dtype: DataType
    symmetric: bool
    narrow: bool

    @property
    def ends(self) -> tuple[int, int]:
        """Smallest and largest integer in use."""
        return self.dtype.minimum + self.narrow, self.dtype.maximum


_Chosen = tuple[np.ndarray, np.ndarray]


def choose_parameters(
    minimum: npt.ArrayLike,
    maximum: npt.ArrayLike,
    dtype: Any = "int8",
    *,
    symmetric: bool = False,
    narrow_range: bool = False,
    convention: str = "onnx",
) -> tuple[Any, Any]:
    """Scale and zero point for real numbers between `minimum` and `maximum`; the range is extended to hold 0.

    All three conventions come down to scale = (maximum - minimum) / (largest - smallest integer) and zero point =
    round(smallest integer - minimum / scale); they differ in precision, ties and empty ranges:

    - ``"onnx"`` (`compute_scale_zp` of ONNX Runtime's quantization tool): binary64, ties to even. Ranges so narrow that
      the scale would be subnormal have scale 1 and zero point 0. Symmetric int8 and int16 leave out the smallest
      integer; otherwise the zero point of symmetric ranges is the middle, rounded to even (128 for uint8).
    - ``"tflite"`` (LiteRT's converter): binary32, ties away from zero. Symmetric means signed integers without the
      smallest one, and int16 is always so. Ranges narrower than 1e-6 are widened (weights, which are symmetric, to
      1e-6, activations of 8 bits by 1e-6 on both sides).
    - ``"pytorch"`` (`calculate_qparams` of PyTorch's observers): binary32, ties to even, scales of 2^-23 at least;
      symmetric scales are the larger magnitude over half of the width, with zero point 0, or 128 for uint8.

    Args:
        minimum, maximum: numbers, used as binary32, or arrays of one shape, one range per channel.
        dtype: an integer type of 2 to 16 bits.
        symmetric: the range is mirrored at 0.
        narrow_range: the smallest integer is left out, so that a signed type has as many negative as positive ones.
        convention: who chooses.

    Returns:
        Scale (binary32) and zero point (integer): NumPy scalar and int for numbers, arrays for arrays.

    Raises:
        InputError: ranges that are not finite or upside down, what the convention does not have.

    >>> choose_parameters(-1.0, 1.55)
    (np.float32(0.01), -28)
    >>> choose_parameters(-1.0, 1.55, symmetric=True, convention="tflite")
    (np.float32(0.012204724), 0)
    >>> choose_parameters(-1.0, 1.55, "uint8", symmetric=True, convention="pytorch")
    (np.float32(0.012156863), 128)
    >>> scales, zero_points = choose_parameters([0.0, -2.0], [2.55, 3.1], "uint8")
    >>> zero_points.tolist()
    [0, 100]
    """
    wanted = named_type(dtype)
    if convention not in _CONVENTIONS:
        names = ", ".join(_CONVENTIONS)
        raise InputError("BT-CONVENTION", f"no convention '{convention}'", advice=f"conventions are {names}")
    if not wanted.is_integer or wanted.bits > 16:
        raise InputError("BT-DTYPE", f"{wanted.title} is no integer type of 2 to 16 bits")
    low, high = real_array(minimum), real_array(maximum)
    if low.shape != high.shape:
        raise InputError("BT-RANGE", f"minimum has shape {list(low.shape)}, maximum {list(high.shape)}")
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise InputError("BT-RANGE", "every minimum must be finite and at most its maximum, which must be finite, too")
    with np.errstate(over="ignore"):
        scales, points = _CONVENTIONS[convention](
            np.minimum(low, _F32(0)), np.maximum(high, _F32(0)), _Wish(wanted, bool(symmetric), bool(narrow_range))
        )
    if not np.isfinite(scales).all():
        raise InputError("BT-RANGE", "a range is wider than the numbers of binary32")
    if low.ndim:
        return scales.astype(_F32), points.astype(np.int64)
    return _F32(scales[()]), int(points[()])


def _onnx(low: np.ndarray, high: np.ndarray, wish: _Wish) -> _Chosen:
    """Source: onnxruntime 1.31.1, quantization/quant_utils.py, read and run."""
    smallest, largest = wish.ends
    if wish.symmetric:
        if wish.dtype.name in ("s8", "s16"):
            smallest = -largest
        high = np.maximum(np.abs(low), np.abs(high))
        low = -high
    if smallest > 0:
        raise InputError("BT-RANGE", f"a narrow {wish.dtype.title} leaves out 0, which this convention refuses")
    scale = (high.astype(np.float64) - low.astype(np.float64)) / float(largest - smallest)
    empty = scale < _TINY
    divisor = np.where(empty, 1.0, scale)
    middle = np.rint((smallest + largest) / 2) if wish.symmetric else np.rint(smallest - low / divisor)
    return np.where(empty, 1.0, scale).astype(_F32), np.where(empty, 0, middle).astype(np.int64)


def _tflite(low: np.ndarray, high: np.ndarray, wish: _Wish) -> _Chosen:
    """Source: tflite/converter/quantization/common/quantization_lib (DownCastScale), read; TensorFlow 2.21 run."""
    if wish.dtype.name == "s16" or wish.symmetric:
        return _tflite_symmetric(low, high, wish)
    # Unsigned integers are what signed ones are, moved: files are quantized to signed integers first.
    moved = 0 if wish.dtype.minimum else 1 << (wish.dtype.bits - 1)
    smallest, largest = (end - moved for end in wish.ends)
    wide_low, wide_high = low.astype(np.float64), high.astype(np.float64)
    near = wide_high - wide_low < _NEAR_ZERO
    wide_low, wide_high = (
        np.where(near, wide_low - _NEAR_ZERO, wide_low),
        np.where(near, wide_high + _NEAR_ZERO, wide_high),
    )
    scale = (wide_high.astype(_F32) - wide_low.astype(_F32)) / _F32(largest - smallest)
    point = (smallest - wide_low / scale.astype(np.float64)).astype(_F32)
    return scale, np.clip(round_away(point), smallest, largest).astype(np.int64) + moved


def _tflite_symmetric(low: np.ndarray, high: np.ndarray, wish: _Wish) -> _Chosen:
    if not wish.dtype.minimum:
        raise InputError(
            "BT-RANGE",
            f"this convention has no symmetric {wish.dtype.title}",
            advice="symmetric integers are signed: use 'int8'",
        )
    high = np.maximum(np.abs(low), np.abs(high))
    if wish.dtype.name == "s16":
        # Calibration gives an empty range the smallest normal number.
        high = np.where(high == 0, _TINY, high)
    else:
        high = np.where(high + high.astype(np.float64) > _NEAR_ZERO, high, _F32(_NEAR_ZERO / 2))
    scale = (high + high) / _F32(2 * wish.dtype.maximum)
    return scale, np.zeros(scale.shape, np.int64)


def _pytorch(low: np.ndarray, high: np.ndarray, wish: _Wish) -> _Chosen:
    """Source: torch/ao/quantization/observer.py (UniformQuantizationObserverBase), read."""
    smallest, largest = wish.ends
    if wish.dtype.name not in ("s8", "u8", "s16", "u16", "u4"):
        raise InputError("BT-RANGE", f"this convention has no {wish.dtype.title}")
    if wish.symmetric:
        scale = np.maximum(-low, high) / _F32((largest - smallest) / 2)
        point = (smallest + largest) // 2 if wish.narrow else 128
        zero_point = np.full(scale.shape, point if wish.dtype.name == "u8" else 0, np.int64)
        return np.maximum(scale, _EPSILON), zero_point
    scale = np.maximum((high - low) / _F32(largest - smallest), _EPSILON)
    return scale, np.clip(smallest - np.rint(low / scale).astype(np.int64), smallest, largest)


_CONVENTIONS: dict[str, Callable[[np.ndarray, np.ndarray, _Wish], _Chosen]] = {
    "onnx": _onnx,
    "pytorch": _pytorch,
    "tflite": _tflite,
}
