"""Numerics `litert-optimized`: the built-in kernels without delegates of ai-edge-litert 2.3 on x86-64, one thread.

`OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES`. Rows of its own come first. Behind them stand the rows of `litert`:
the operators for which both resolvers share a kernel, or compute the same; every operator test runs under both.
"""

from __future__ import annotations

from ..litert import LITERT
from ..litert.differences import with_differences
from ..litert.elementwise import STORED
from ..table import Numerics, reached
from . import convolution, elementwise, layers, reduction, refused, unary
from .versions import VERSIONS

_OWN = STORED + convolution.ROWS + layers.ROWS + elementwise.ROWS + reduction.ROWS + unary.ROWS + refused.ROWS

LITERT_OPTIMIZED = Numerics(
    "litert-optimized",
    "ai-edge-litert 2.3.0, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, x86-64 with AVX2 and FMA, one thread",
    "every output of every shared model and Hypothesis-built single-operator models, byte for byte",
    reached(with_differences(_OWN) + LITERT.rows),
    VERSIONS,
)
