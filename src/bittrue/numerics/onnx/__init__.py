"""`onnx`: the text of the ONNX specification, real arithmetic correctly rounded, node by node."""

from __future__ import annotations

from ..table import Numerics
from . import control, floating, indexing, integers, layers, linear, movement, quantized, recurrent

ONNX = Numerics(
    name="onnx",
    reproduces="the ONNX operator specification up to operator set 28, every real result correctly rounded",
    verified="the backend test vectors of onnx 1.23.2 and 1.12, and exact oracles",
    rows=(
        *linear.ROWS,
        *layers.ROWS,
        *quantized.ROWS,
        *recurrent.ROWS,
        *floating.ROWS,
        *movement.ROWS,
        *integers.ROWS,
        *indexing.ROWS,
        *control.ROWS,
    ),
)
