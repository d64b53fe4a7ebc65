"""Slot `row_product`: a matrix of 8-bit weights times binary32 rows, which are quantized to 8 bits at run time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point, row_quantize
from ..arithmetic.matmul import exact_matmul, product_type
from ..records import dataclass


@dataclass(frozen=True)
class QuantizedRows:
    """Rows as integers, with one binary32 scale and one zero point per row."""

    q: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray


class Weights:
    """A constant [rows, n] matrix of s8, ready to be multiplied, with its binary32 scale."""

    def __init__(self, rule: RowProductRule, weights: np.ndarray, scale: float) -> None:
        self.bound = 128 * 128 * max(1, weights.shape[1])
        kind = product_type(self.bound)
        self.plain = np.ascontiguousarray(weights.T, kind)
        mirrored = rule.mirrored(weights) if weights.size and weights.min() == -128 else weights
        self.mirrored = self.plain if (mirrored == weights).all() else np.ascontiguousarray(mirrored.T, kind)
        self.scale = np.float32(scale)
        self.row_sums = rule.row_sums(weights)

    def add(self, start: np.ndarray, x: QuantizedRows) -> np.ndarray:
        """start + binary32(sum - zero point * row sum) * binary32(scale of the row * scale of the weights)."""
        if self.mirrored is self.plain:
            acc = exact_matmul(x.q, self.plain, self.bound).astype(np.int64)
        else:
            acc = exact_matmul(np.maximum(x.q, 0), self.plain, self.bound).astype(np.int64)
            acc += exact_matmul(np.minimum(x.q, 0), self.mirrored, self.bound).astype(np.int64)
        acc = fixed_point.wrap_s32(acc - x.zero_point[:, None] * self.row_sums)
        with np.errstate(all="ignore"):
            return start + acc.astype(np.float32) * (x.scale * self.scale)[:, None]


@dataclass(frozen=True, eq=False)
class RowProductRule:
    """`symmetric` and `asymmetric` quantize rows; `row_sums` is what zero points are multiplied by; `mirrored` gives
    the weights that negative elements meet.
    """

    symmetric: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
    asymmetric: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
    row_sums: Callable[[np.ndarray], np.ndarray]
    mirrored: Callable[[np.ndarray], np.ndarray]
    formula: str
    source: str

    def quantize(self, x: np.ndarray, asymmetric: bool) -> QuantizedRows:
        """Raises OverflowError for rows whose conversion is undefined."""
        return QuantizedRows(*(self.asymmetric if asymmetric else self.symmetric)(x))


RULES: dict[str, RowProductRule] = {
    "s8_vectors_binary32_scale": RowProductRule(
        row_quantize.symmetric,
        row_quantize.asymmetric,
        row_quantize.row_sums_s16,
        row_quantize.mirrored_lowest,
        "sum of 8-bit products times the product of the binary32 scales; rows round by vectors of eight, then singly",
        "the runtime's SSE kernels, read; verified by running",
    ),
}
