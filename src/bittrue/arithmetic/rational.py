"""logistic and tanh as short sequences of binary32 operations, without tables and without fused multiply-add.

Every operation is rounded to binary32 (ties to even); polynomials are evaluated in the order that is written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[Any]

_f32 = np.float32

_LOGISTIC_LARGEST = _f32(16.6355324)  # from here on e^x / (1 + e^x) is 1
_LOGISTIC_SMALLEST = _f32(-104.0)
_LOG2_E = _f32(1.44269504088896341)
_LN2_HIGH, _LN2_LOW = _f32(-0.693359375), _f32(2.12194440e-4)
_EXP_2, _EXP_3 = _f32(0.49999141693115234375), _f32(0.16666877269744873046875)
_EXP_4, _EXP_5 = _f32(4.1898667812347412109375e-2), _f32(8.33471305668354034423828125e-3)

_TANH_LARGEST = _f32(7.90738964080810547)  # from here on the quotient is 1
_TANH_ODD = tuple(_f32(c) for c in (1.394553628e-8, 2.102733560e-5, 3.520756727e-3, 1.340216100e-1))
_TANH_EVEN = tuple(_f32(c) for c in (8.015776984e-7, 3.326951409e-4, 2.597254514e-2, 4.673548340e-1, 1.0))


def logistic(x: npt.ArrayLike) -> F32:
    """e^x / (1 + e^x) with e^x = (2^m P(r))^2, m = floor(x / (2 ln 2) + 1/2), r = x / 2 - m ln 2, P of degree 5.

    x is limited to 16.6355324 from above; below -104 the result is 0. NaN stays NaN. No ties beyond those of the single
    operations. Source: a linear algebra library's vector logistic function, read; verified by running.

    >>> logistic([0.0, -200.0, 20.0, 1.0]).tolist()
    [0.5, 0.0, 1.0, 0.7310585379600525]
    """
    x = np.atleast_1d(np.asarray(x, np.float32))
    with np.errstate(all="ignore"):
        half = np.where(x > _LOGISTIC_LARGEST, _LOGISTIC_LARGEST, x) * _f32(0.5)
        half = np.where(x < _LOGISTIC_SMALLEST, _f32(0), half)
        m = np.floor(half * _LOG2_E + _f32(0.5))
        r = m * _LN2_LOW + (m * _LN2_HIGH + half)
        r2 = r * r
        even, odd = r2 * _EXP_4 + _EXP_2, r2 * _EXP_5 + _EXP_3
        p = r2 * (r * odd + even) + (r + _f32(1))
        # 2^m is normal, and so is the product.
        e = p * np.ldexp(_f32(1), np.where(np.isnan(m), 0, m).astype(np.int32))
        e = e * e
        return np.where(x < _LOGISTIC_SMALLEST, _f32(0), e / (_f32(1) + e))


def tanh(x: npt.ArrayLike) -> F32:
    """(x^3 P(x^2) + x) / Q(x^2) of degrees 9 and 8, x limited to +-7.9073896. NaN stays NaN, -0 stays -0.

    Source: a linear algebra library's hyperbolic tangent, read; verified by running.

    >>> tanh([0.0, 1.0, -1.0, 100.0]).tolist()
    [0.0, 0.7615941762924194, -0.7615941762924194, 1.0]
    """
    x = np.atleast_1d(np.asarray(x, np.float32))
    with np.errstate(all="ignore"):
        x = np.where(x > _TANH_LARGEST, _TANH_LARGEST, np.where(x < -_TANH_LARGEST, -_TANH_LARGEST, x))
        x2 = x * x
        p, q = np.full_like(x2, _TANH_ODD[0]), np.full_like(x2, _TANH_EVEN[0])
        for c in _TANH_ODD[1:]:
            p = p * x2 + c
        for c in _TANH_EVEN[1:]:
            q = q * x2 + c
        return (x2 * x * p + x) / q
