"""`mxnet`: MXNet 1.9 with oneDNN on x86-64 with VNNI; ranges travel beside tensors."""

from __future__ import annotations

from ..table import Numerics
from . import conversions, floating, layers, pointwise

MXNET = Numerics(
    name="mxnet",
    reproduces="MXNet 1.9.1 with oneDNN 2.4.4, x86-64 with AVX-512 VNNI",
    verified="run against MXNet 1.9.1: random single nodes; recorded vectors of every operator, whole models",
    rows=(*conversions.ROWS, *layers.ROWS, *pointwise.ROWS, *floating.ROWS),
)
