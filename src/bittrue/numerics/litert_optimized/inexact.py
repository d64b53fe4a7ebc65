"""Rows of `litert-optimized` whose results differ from the runtime's in last bits: those of `litert`, with that limit.

These binary32 kernels sum in blocks or lanes. Shares of differing elements were measured on
about a million normally distributed numbers (weights of a layer scaled by the root of its summands).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...records import replace
from ..litert import LITERT
from ..litert.convolution import CUBES, DEPTHWISE, PLANES
from ..table import Row

_PRODUCTS = (
    "these kernels sum matrix products in blocks whose sizes follow the processor's caches, and matrix-vector products "
    "in lanes; here sums have the order of 'litert', and last bits differ for "
)
_HYBRID = "these kernels scale and sum by vectors; here sums have the order of 'litert', and last bits differ for "
_VECTORS = (
    "these kernels order their operations by vectors; here they have the order of 'litert', and last bits differ for "
)

# Operator (with conditions where they tell kernels apart), type of the weights, and how it differs.
_LIMITS: dict[object, dict[str, str]] = {
    ("conv", *PLANES): {
        "f32": f"{_PRODUCTS}none to 90 % of the results, growing with the number of taps",
        "s8": f"{_HYBRID}21 % of the results of 3x3 filters",
    },
    ("conv", *DEPTHWISE): {
        "f32": f"{_VECTORS}60 % of the results of 3x3 filters",
        "s8": f"{_HYBRID}9 % of the results of 3x3 filters",
    },
    "fully_connected": {
        "f32": f"{_PRODUCTS}none to 90 % of the results, most with one row",
        "s8": f"{_HYBRID}none to a half of the results",
    },
    "conv_transpose": {
        "f32": f"{_PRODUCTS}about half of the results",
        "s8": f"{_HYBRID}none to a half of the results",
    },
    "matmul": {
        "f32": f"{_PRODUCTS}none to 90 % of the results, most with one row",
        "s8": f"{_HYBRID}none to a half of the results",
    },
    ("conv", *CUBES): {"f32": f"{_PRODUCTS}78 % of the results of 3x3x3 filters"},
}
_REALS = ("f32", "f16", "bf16")


def _rows() -> Iterator[Row]:
    for row in LITERT.rows:
        inputs, outputs = next(row.signatures(1))
        limits = _LIMITS.get(row.operator) or _LIMITS.get((row.operator, *row.when))
        if not limits or row.refuses or outputs[0] not in _REALS:
            continue
        limit = limits["s8" if {"s8", "s4", "s2"}.intersection(inputs) else "f32"]
        yield replace(row, limit=f"{limit}. {row.limit}".removesuffix(". "), inexact=True)


ROWS = tuple(_rows())
