"""Numerics `xnnpack`: ai-edge-litert 2.3 as most programs use it, with the XNNPACK delegate, on x86-64, one thread.

Rows of what the delegate takes come first, each with the conditions under which it does; what it leaves runs on the
built-in kernels. Delegated nodes are never prepared by those, so what they check does not hold here: the requirements
of these rows are the delegate's own. Evidence: "run" = the single-operator tests of tests/operators with the default
resolver.
"""

from __future__ import annotations

from ..litert.elementwise import STORED
from ..litert_optimized import LITERT_OPTIMIZED
from ..table import Numerics, reached
from . import elementwise, matrix, movement, reduction

XNNPACK = Numerics(
    "xnnpack",
    "ai-edge-litert 2.3.0, OpResolverType.BUILTIN (default XNNPACK delegate), x86-64, one thread",
    "Hypothesis-built single-operator models and the outputs of real models, byte for byte",
    reached(STORED + matrix.ROWS + elementwise.ROWS + reduction.ROWS + movement.ROWS + LITERT_OPTIMIZED.rows),
    LITERT_OPTIMIZED.versions,
    prepares_constants=True,
    limit=(
        "on processors without AVX-512 the delegate's SOFTMAX, LOGISTIC, ELU, LOG and, along the last axis, SUM, MEAN, "
        "REDUCE_MAX and REDUCE_MIN of real numbers have other bits; those of AVX2 are in the numerics 'xnnpack-avx2'"
    ),
    # DENSIFY is an identity of a constant here.
    unpacks={"dequantize": ("f16", "s8"), "identity": ("f16", "f32")},
)
