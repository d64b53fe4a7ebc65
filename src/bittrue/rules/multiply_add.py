"""Slot `multiply_add`: a product of real numbers and what it is added to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..arithmetic.floats import fused_multiply_add, fused_multiply_add_64
from ..records import dataclass


@dataclass(frozen=True, eq=False)
class MultiplyAddRule:
    """`apply(a, b, c)`: a b + c of binary32 or binary64 numbers, which broadcast."""

    apply: Callable[[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike], np.ndarray]
    formula: str
    source: str
    pairs_apart: bool = False

    def pair(self, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, d: npt.ArrayLike) -> np.ndarray:
        """a b + c d: the second product is rounded first, and with `pairs_apart` both are.

        >>> a, b = np.float32([1 + 2**-12]), np.float32([-1])
        >>> [rule.pair(a, a, b, a).tolist() for rule in RULES.values()]
        [[0.000244140625], [0.0002442002296447754], [0.000244140625]]
        """
        if self.pairs_apart:
            return np.asarray(np.multiply(a, b) + np.multiply(c, d))
        return self.apply(a, b, np.multiply(c, d))


def _rounded_twice(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> np.ndarray:
    return np.asarray(np.multiply(a, b) + c)


def _rounded_once(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> np.ndarray:
    wide = np.result_type(a, b, c) == np.float64
    return (fused_multiply_add_64 if wide else fused_multiply_add)(a, b, c)


RULES: dict[str, MultiplyAddRule] = {
    "rounded_twice": MultiplyAddRule(
        _rounded_twice,
        "the product is rounded to the numbers' type, and so is the sum",
        "IEEE 754",
    ),
    "rounded_once": MultiplyAddRule(
        _rounded_once,
        "one rounding of a b + c; of two products that are added up the second one is rounded first",
        "docs/facts/onnxruntime.md 3.8, verified by running",
    ),
    "rounded_once_but_pairs": MultiplyAddRule(
        _rounded_once,
        "one rounding of a b + c; two products that are added up are rounded each",
        "docs/facts/onnxruntime.md 3.8, verified by running",
        pairs_apart=True,
    ),
}
