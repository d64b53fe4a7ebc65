"""Numerics `litert-as-compiled`: `litert` with what its builds make of shifts that C++ leaves undefined.

Some models ask the reference kernels for shifts by more bits than the register has. `litert` refuses them: another
compiler, or the next release of the same one, may give other bits. What the released wheels do is the same on x86-64
and on aarch64: the count is taken modulo 32. The same holds for sums of s8, which read and store quantized values as
unsigned bytes.
"""

from __future__ import annotations

from ..records import replace
from .litert import LITERT
from .table import Numerics, Row

_EVIDENCE = "run on x86-64, and on aarch64 under qemu; docs/facts/litert.md 1.10"
# Kernels with multipliers of any size; the others ask for one below 1, or have no rows for such scales.
_ANY_MULTIPLIER = frozenset(
    {"conv", "conv_transpose", "matmul", "mul", "sum", "mean", "relu", "leaky_relu", "prelu", "quantize", "abs"}
)
_TWO_STEPS = frozenset({"q31_two_step_up_away", "q31_count_folded_two_step_up_away"})
_LEFT_SHIFT = (
    "left shifts by more than 30 bits are undefined in C++: here the count is taken modulo 32, as the wheels of "
    "ai-edge-litert 2.3.0 for x86-64 and aarch64 do; plans name such shifts (undefined_shift)"
)
_DIVISION = (
    "right shifts outside 0..31, as small numerators beside large divisors need, are undefined in C++: here counts are "
    "taken modulo 32 and 64, as the wheels of ai-edge-litert 2.3.0 for x86-64 and aarch64 do"
)
_BYTES = (
    "quantized values are read and stored as unsigned bytes, as the kernel does (LiteRT issue 4079): the results are "
    "its own, and mean nothing"
)
_HALF_WRITTEN = (
    "the kernel writes the first half of this type's bytes alone; the others hold what was in memory before, so that "
    "there is nothing to reproduce"
)


def _as_compiled(row: Row) -> Row:
    rules = row.rules
    if "divide" in rules:
        return replace(
            row, rules={**rules, "divide": f"{rules['divide']}_modulo_32"}, evidence=_EVIDENCE, limit=_DIVISION
        )
    if row.operator == "sum" and row.types[0].startswith("s16"):
        return Row(row.operator, row.types, refuses=_HALF_WRITTEN, advice="use MEAN, or real numbers")
    if row.operator not in _ANY_MULTIPLIER or not _TWO_STEPS.intersection(rules.values()):
        return row
    rules = {**rules, "shift_count": "modulo_32"}
    if row.operator == "sum" and row.types[0].startswith("s8"):
        return replace(
            row, rules={**rules, "read_as": "unsigned_bytes"}, evidence=_EVIDENCE, limit=_BYTES, inexact=False
        )
    return replace(row, rules=rules, evidence=_EVIDENCE, limit=_LEFT_SHIFT)


LITERT_AS_COMPILED = Numerics(
    "litert-as-compiled",
    f"{LITERT.reproduces} and aarch64, undefined shifts included",
    "as `litert`; random models with such shifts and sums against the wheels for x86-64 and aarch64 (under qemu)",
    tuple(map(_as_compiled, LITERT.rows)),
    LITERT.versions,
    LITERT.rewrites,
    completes=LITERT.name,
)
