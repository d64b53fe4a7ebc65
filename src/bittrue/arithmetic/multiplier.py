"""Real multipliers as integers: value = multiplier * 2^(exponent - 31)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bittrue.arithmetic.fixed_point import S64, as_s64
from bittrue.arithmetic.floats import round_away

if TYPE_CHECKING:
    import numpy.typing as npt


def encode_q31(real: npt.ArrayLike) -> tuple[S64, S64]:
    """Write real values as (multiplier, exponent) with value ~ multiplier * 2^(exponent - 31).

    With real = f * 2^e and 1/2 <= |f| < 1: multiplier = f * 2^31 to nearest, exponent = e; a positive exponent is a
    left move. A multiplier of 2^31 becomes (2^30, e + 1). -2^31 stays as it is: it is s32. exponent < -31 gives (0, 0),
    and so does zero. Large exponents are not limited.

    Ties: away from zero. Domain: finite binary64 (binary32 and integers are converted). Types: two int64 arrays.
    Errors: ValueError for NaN and infinities.
    Source: docs/facts/litert.md 1.1 (QM), read and run.

    A tie, a negative tie, the carry to the next power of two, and a flush to zero:

    >>> half = 2.0**-32
    >>> multiplier, exponent = encode_q31([0.5 + half, -0.5 - half, 1 - half / 2, 2.0**-33])
    >>> multiplier.tolist(), exponent.tolist()
    ([1073741825, -1073741825, 1073741824, 0], [0, 0, 1, 0])
    """
    value = np.asarray(real, dtype=np.float64)
    if not np.isfinite(value).all():
        raise ValueError("expected finite multipliers, found NaN or infinity")
    fraction, binary_exponent = np.frexp(value)
    multiplier = np.asarray(round_away(fraction * 2.0**31)).astype(np.int64)  # scaling by 2^31 is exact
    exponent = np.asarray(binary_exponent).astype(np.int64)
    carry = multiplier == 1 << 31
    multiplier >>= carry
    exponent += carry
    kept = (multiplier != 0) & (exponent >= -31)
    multiplier *= kept
    exponent *= kept
    return multiplier, exponent


def reduce_to_q15(multiplier: npt.ArrayLike) -> S64:
    """Shorten a 31-bit multiplier to 15 bits: floor(multiplier / 2^16 + 1/2), at most 2^15 - 1.

    Ties: up. Domain: 0..2^31 - 1. Errors: ValueError outside.
    Source: docs/facts/litert.md 1.4 (first step of MBQM64), read and run.

    >>> reduce_to_q15([(1 << 30) + (1 << 15), 2**31 - 1]).tolist()
    [16385, 32767]
    """
    m = as_s64(multiplier)
    if m.size and (m.min() < 0 or m.max() >> 31):
        raise ValueError(f"expected multipliers in 0..2^31 - 1, found {int(m.min())}..{int(m.max())}")
    return np.asarray(np.minimum((m + (1 << 15)) >> 16, (1 << 15) - 1))
