"""Binary floating-point formats of 16 bits and fewer: rounding to them, and their codes, in exact binary64 steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

F64 = np.ndarray[Any, np.dtype[np.float64]]


class Format(NamedTuple):
    """A sign, `exponent_bits` and `mantissa_bits`; exponent field 0 holds zeros and subnormal numbers.

    Attributes:
        bias: a number of exponent field e > 0 is (1 + mantissa / 2^mantissa_bits) 2^(e - bias).
        largest: code of the largest finite number.
        infinity: code of infinity; None where the format has none.
        missing: code of NaN without its sign (the quiet one with no payload); formats without NaN have a zero there.
        missing_ones: the NaN whose bits are all ones, where there are several.
        signed: zero and NaN have signs of their own; else the code of a negative zero is what NaN has.
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest: int
    infinity: int | None
    missing: int
    missing_ones: int
    signed: bool = True

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.exponent_bits + self.mantissa_bits)

    @property
    def smallest_exponent(self) -> int:
        """Exponent of the smallest normal number, and of all subnormal ones."""
        return 1 - self.bias

    @property
    def maximum(self) -> float:
        """The largest finite number."""
        field, mantissa = self.largest >> self.mantissa_bits, self.largest & ((1 << self.mantissa_bits) - 1)
        return float(np.ldexp(1 + mantissa / (1 << self.mantissa_bits), field - self.bias))


FORMATS: dict[str, Format] = {
    "f16": Format(5, 10, 15, 0x7BFF, 0x7C00, 0x7E00, 0x7FFF),
    "bf16": Format(8, 7, 127, 0x7F7F, 0x7F80, 0x7FC0, 0x7FFF),
    "f8e4m3fn": Format(4, 3, 7, 0x7E, None, 0x7F, 0x7F),
    "f8e4m3fnuz": Format(4, 3, 8, 0x7F, None, 0x80, 0x80, signed=False),
    "f8e5m2": Format(5, 2, 15, 0x7B, 0x7C, 0x7E, 0x7F),
    "f8e5m2fnuz": Format(5, 2, 16, 0x7F, None, 0x80, 0x80, signed=False),
    "f6e2m3": Format(2, 3, 1, 0x1F, None, 0x20, 0x20),
    "f6e3m2": Format(3, 2, 3, 0x1F, None, 0x20, 0x20),
    "f4e2m1": Format(2, 1, 1, 0x7, None, 0x8, 0x8),
}


def _quantum(x: F64, form: Format) -> F64:
    """Distance of neighbours of `form` (with unlimited range) around x."""
    _, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    return np.ldexp(1.0, np.maximum(exponent - 1, form.smallest_exponent) - form.mantissa_bits)


def round_to_mantissa(x: npt.ArrayLike, form: Format) -> F64:
    """x with as many bits as `form` has there, ties to even, as if exponents had no upper limit.

    NaN, infinities and signed zero pass through.

    >>> round_to_mantissa([17.0, 19.0, 500.0, 2.0**-10, 1.5 * 2.0**-10], FORMATS["f8e4m3fn"]).tolist()
    [16.0, 20.0, 512.0, 0.0, 0.001953125]
    """
    x = np.asarray(x, np.float64)
    quantum = _quantum(x, form)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.rint(x / quantum) * quantum)


def nearest(x: npt.ArrayLike, form: Format) -> F64:
    """The nearest number of a format with infinities, ties to even; numbers too large become infinities.

    >>> nearest([65519.0, 65520.0, -1e9, 2049.0], FORMATS["f16"]).tolist()
    [65504.0, inf, -inf, 2048.0]
    """
    rounded = round_to_mantissa(x, form)
    return np.where(np.abs(rounded) > form.maximum, np.copysign(np.inf, rounded), rounded)


def encode(x: F64, form: Format) -> npt.NDArray[np.uint16]:
    """Codes without signs of the magnitudes of finite numbers that `form` has.

    >>> [hex(v) for v in encode(np.array([0.0, 2.0**-9, 1.0, -448.0]), FORMATS["f8e4m3fn"])]
    ['0x0', '0x1', '0x38', '0x7e']
    """
    magnitude = np.abs(x)
    units = (magnitude / _quantum(magnitude, form)).astype(np.int64)
    _, exponent = np.frexp(magnitude)
    # A normal number's leading bit, 2^mantissa_bits units, is one step of the exponent field.
    field = np.where(units >> form.mantissa_bits != 0, exponent - 1 - form.smallest_exponent, 0)
    return ((field << form.mantissa_bits) + units).astype(np.uint16)
