"""Numerics `xnnpack-avx2`: ai-edge-litert 2.3 with the XNNPACK delegate on x86-64 with AVX2 and FMA, without AVX-512.

Vectors have 8 lanes there: sums and extremes along rows, and softmax, are folded otherwise, and three functions have
polynomials of their own. Integers differ where sums or products are far out of range. All else is as in `xnnpack`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..records import replace
from .table import Row
from .xnnpack import XNNPACK
from .xnnpack.matrix import SUBNORMAL

_RUN = "run on x86-64 with AVX2 and FMA; docs/facts/xnnpack.md 3.18"
_FUNCTIONS = {"real_function": "binary32_fused_by_exponent"}
_SOFTMAX = {"real_softmax": "binary32_fused_8_lanes"}
_LANES = "parts_in_8_lanes"
_ROOTS = (
    "the estimate of 1 / sqrt(x) is that of AMD's processors; Intel's instruction has other tables, which were not run"
)
_APART = (("real_function", "binary32_short", ("cos", "sin")), ("real_gelu", "binary32_short", ("gelu",)))
_NANS = (
    "where NaNs meet in sums along axes that lie apart and not last, which one's bits stay follows the order of the "
    "kernel's operands"
)
# More neighbours than this leave a lane of 16 bits.
_MOST_NEIGHBOURS = 8192


def _of_reals(row: Row) -> Row:
    """The row with the vectors of this processor; `row` itself where they are the same."""
    if row.operator in ("elu", "log", "logistic") and row.rules == {"real_function": "binary32_fused"}:
        return replace(row, rules=_FUNCTIONS, evidence=_RUN, limit="")
    if row.rules == {"real_function": "binary32_refined_lines"}:
        return replace(row, rules={"real_function": "binary32_refined_tables"}, evidence=_RUN, limit=_ROOTS)
    for slot, rule, stems in _APART:
        if row.operator in stems and row.rules.get(slot) == rule:
            return replace(row, rules={slot: f"{rule}_apart"}, evidence=_RUN)
    if row.rules == {"slope": "scaled_below_zero"}:
        return replace(row, rules={"slope": "scaled_by_sign_bit"}, evidence=_RUN)
    if row.rules == {"real_softmax": "binary32_fused_16_lanes"}:
        return replace(row, rules=_SOFTMAX, evidence=_RUN, limit="")
    if row.rules.get("plain_range") == "unlimited" and "quantize_asymmetric" in row.rules:
        return replace(row, rules={**row.rules, "plain_range": "lower_for_nan"}, evidence=_RUN)
    for slot in ("order", "extreme"):
        if row.rules.get(slot) == "parts_in_16_lanes":
            limit = f"{_NANS}; {SUBNORMAL}" if slot == "order" else SUBNORMAL
            return replace(row, rules={**row.rules, slot: _LANES}, evidence=_RUN, limit=limit)
    return row


def _of_sums(row: Row) -> Iterator[Row]:
    """Rows of many s8 neighbours are added up in 16 bits."""
    exact = replace(row, limit="")
    yield replace(
        exact,
        where=("s8",),
        rules={**row.rules, "row_sums": "s16_pairs_in_32_lanes"},
        evidence=_RUN,
        when=(*row.when, ("adds_more_neighbours", _MOST_NEIGHBOURS)),
    )
    yield exact


def _rows() -> Iterator[Row]:
    for row in XNNPACK.rows:
        if row.rules.get("mean") == "binary32_affine_even":
            yield from _of_sums(row)
        elif ("output_zero_point_outside", 0, 255) not in row.when:
            # Products are limited to 16 bits before a zero point is added: one row for all zero points.
            yield _of_reals(row)


XNNPACK_AVX2 = replace(
    XNNPACK,
    name="xnnpack-avx2",
    reproduces=(
        "ai-edge-litert 2.3.0, OpResolverType.BUILTIN (default XNNPACK delegate), x86-64 with AVX2 and FMA and without "
        "AVX-512, one thread"
    ),
    verified=(
        "Hypothesis-built single-operator models and every tensor of real models, byte for byte, on an AMD EPYC with "
        "AVX2; recorded vectors"
    ),
    rows=tuple(_rows()),
    limit=(
        "on AMD's first Zen and on Hygon's Dhyana the delegate adds up the terms of CONV_2D, TRANSPOSE_CONV, "
        "FULLY_CONNECTED and BATCH_MATMUL of real numbers in rotated fours (docs/facts/xnnpack.md 3.19), so that last "
        "bits differ; on other processors one after the other, as here"
    ),
)
