"""Numerics `litert`: the reference kernels (BUILTIN_REF) of ai-edge-litert 2.3 on x86-64.

Evidence: "run" = the single-operator differential tests of tests/operators against ai-edge-litert 2.3.0 and, where
named, whole models.
"""

from __future__ import annotations

from ..table import Numerics
from . import control, convolution, elementwise, floating, movement, recurrent, reduction, selection, unary
from .differences import with_differences
from .versions import VERSIONS

LITERT = Numerics(
    "litert",
    "ai-edge-litert 2.3.0, OpResolverType.BUILTIN_REF, x86-64",
    "every tensor of every shared model and Hypothesis-built single-operator models, byte for byte",
    with_differences(
        convolution.ROWS
        + floating.ROWS
        + elementwise.ROWS
        + reduction.ROWS
        + unary.ROWS
        + movement.ROWS
        + selection.ROWS
        + recurrent.ROWS
        + control.ROWS
    ),
    VERSIONS,
    goes_on="litert-as-compiled",
)
