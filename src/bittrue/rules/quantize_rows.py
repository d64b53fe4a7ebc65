"""Slots `quantize_symmetric` and `quantize_asymmetric`: real rows become bytes with scales of their own at run time.

A row is what shares one scale: a picture of a convolution, a row of a matrix product.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import row_quantize

# [rows, n] binary32 -> integers [rows, n], binary32 scales [rows], zero points [rows], both integers as s64.
QuantizeRowsRule = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]

SYMMETRIC: dict[str, QuantizeRowsRule] = {"binary32_range_over_127_by_eights": row_quantize.symmetric}
ASYMMETRIC: dict[str, QuantizeRowsRule] = {"binary32_range_over_255_by_eights": row_quantize.asymmetric}
