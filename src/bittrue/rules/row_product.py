"""Slot `row_product`: a matrix of 8-bit weights times binary32 rows, which are quantized to 8 bits at run time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..arithmetic import fixed_point, row_quantize
from ..arithmetic.floats import fused_multiply_add
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
        self.rule, self.weights = rule, weights

    def add(self, start: np.ndarray, x: QuantizedRows) -> np.ndarray:
        """start + binary32(sum - zero point * row sum) * binary32(scale of the row * scale of the weights)."""
        if self.mirrored is self.plain:
            acc = exact_matmul(x.q, self.plain, self.bound).astype(np.int64)
        else:
            acc = exact_matmul(np.maximum(x.q, 0), self.plain, self.bound).astype(np.int64)
            acc += exact_matmul(np.minimum(x.q, 0), self.mirrored, self.bound).astype(np.int64)
        way = self.rule.way(len(x.q), *self.weights.shape)
        lost = row_quantize.wrapped_pairs(x.q, self.weights) if way == "rows" else None
        if lost is not None:
            acc += lost
        sums = fixed_point.wrap_s32(acc - x.zero_point[:, None] * self.row_sums).astype(np.float32)
        with np.errstate(all="ignore"):
            scales = (x.scale * self.scale)[:, None]
            return fused_multiply_add(sums, scales, start) if way in ("rows", "matrix") else start + sums * scales


def one_way(batches: int, rows: int, columns: int) -> str:
    """All products are made in one way."""
    return ""


def way_of_product(batches: int, rows: int, columns: int, matrices: bool = True) -> str:
    """How so many rows of activations meet [rows, columns] weights: by a `matrix` product, by `fours` of them, whose
    scaled sums are rounded before they are added, or by single `rows`, whose sums of pairs wrap to 16 bits. Some layers
    make no product of `matrices`.

    Source: the runtime's kernels for aarch64 with dot products, their machine code; verified by running.

    >>> [way_of_product(*sizes) for sizes in ((1, 8, 16), (4, 8, 16), (2, 128, 128), (16, 8, 8), (16, 64, 8))]
    ['rows', 'fours', 'fours', 'matrix', 'rows']
    """
    ratio = max(rows // max(1, columns), columns // max(1, rows))
    if matrices and rows % 4 == 0 and batches >= 16 and batches.bit_length() - ratio.bit_length() > 2:
        return "matrix"
    fits = rows % 2 == 0 and columns % 16 == 0 and rows >= batches
    return "fours" if fits and (batches % 4 == 0 or (batches > 1 and rows * columns >= 1 << 14)) else "rows"


@dataclass(frozen=True, eq=False)
class RowProductRule:
    """`symmetric` and `asymmetric` quantize rows; `row_sums` is what zero points are multiplied by; `mirrored` gives
    the weights that negative elements meet; `way` says how a product is made, by the numbers of rows of activations and
    of weights, and of columns. `nan_is_zero`: fours of elements that are zeros and NaNs count as zeros.
    """

    symmetric: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
    asymmetric: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
    row_sums: Callable[[np.ndarray], np.ndarray]
    mirrored: Callable[[np.ndarray], np.ndarray]
    formula: str
    source: str
    way: Callable[[int, int, int], str] = one_way
    nan_is_zero: bool = True

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
    "s8_fused_binary32_scale": RowProductRule(
        row_quantize.symmetric_away,
        row_quantize.asymmetric_away,
        lambda weights: weights.sum(axis=1, dtype=np.int64),
        lambda weights: weights,
        "sum of 8-bit products times the product of the binary32 scales, rounded once with what it is added to, but "
        "for fours of rows; rows round once",
        "the runtime's kernels for aarch64 with dot products, their machine code; verified by running",
        way_of_product,
        False,
    ),
    "s8_fused_binary32_scale_by_rows": RowProductRule(
        row_quantize.symmetric_away,
        row_quantize.asymmetric_away,
        lambda weights: weights.sum(axis=1, dtype=np.int64),
        lambda weights: weights,
        "the same, and fours of rows are taken however many rows there are",
        "the runtime's kernels for aarch64 with dot products, their machine code; verified by running",
        partial(way_of_product, matrices=False),
        False,
    ),
}
