"""`tvm-qnn` and its variants: relay.qnn of TVM v0.18.0, run (docs/systems/tvm_qnn.md says what, and what was read).

The configuration of that system chooses how requantizations round and in which type they compute. Each choice is a
numerics; what a node says itself wins.
"""

from __future__ import annotations

from ..table import Numerics
from . import rows, stems
from .variants import COMPUTE, ROUNDING, Variant

_VERIFIED = (
    "977 operators, 25 networks and ten files run by TVM v0.18.0 (LLVM 14, x86-64), 389 of them recorded; the 311 check"
    " values of its own tests, and oracles on fractions"
)


def _table(name: str, variant: Variant) -> Numerics:
    return Numerics(
        name,
        f"relay.qnn of TVM v0.18.0, rounding {variant.rounding}, compute_dtype {variant.compute_dtype}",
        _VERIFIED,
        (*rows.rows(variant), *stems.rows(variant)),
        rewrites=("through_reals",),
    )


def name_of(rounding: str, compute_dtype: str) -> str:
    """The numerics of a configuration.

    >>> name_of("UPWARD", "int64"), name_of("TONEAREST", "float32")
    ('tvm-qnn', 'tvm-qnn-float32-tonearest')
    """
    parts = ["tvm-qnn", *([] if compute_dtype == "int64" else [compute_dtype])]
    return "-".join([*parts, *([] if rounding == "UPWARD" else [rounding.lower()])])


_TABLES = {
    name_of(rounding, compute): _table(name_of(rounding, compute), Variant(rounding, compute, sse=compute == "float32"))
    for compute in COMPUTE
    for rounding in ROUNDING
}
TVM_QNN = _TABLES["tvm-qnn"]
TVM_QNN_TONEAREST = _TABLES["tvm-qnn-tonearest"]
TVM_QNN_FLOAT32 = _TABLES["tvm-qnn-float32"]
TVM_QNN_FLOAT32_TONEAREST = _TABLES["tvm-qnn-float32-tonearest"]
TVM_QNN_FLOAT64 = _TABLES["tvm-qnn-float64"]
TVM_QNN_FLOAT64_TONEAREST = _TABLES["tvm-qnn-float64-tonearest"]
