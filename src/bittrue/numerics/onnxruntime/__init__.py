"""`onnxruntime`: ONNX Runtime's CPU provider on x86-64 with AVX-512 VNNI, quantized graphs fused.

Products of 8 bits are exact there, and real numbers are computed in vectors of 512 bits.
"""

from __future__ import annotations

from ..table import Numerics
from . import attention, control, floating, indexing, integers, layers, linear, movement, quantized, recurrent

ONNXRUNTIME = Numerics(
    name="onnxruntime",
    reproduces="ONNX Runtime 1.31 CPU provider, x86-64 with VNNI, session.qdqisint8allowed=1",
    verified=(
        "run against onnxruntime 1.31.1: every row by random single-node models, recorded vectors, whole models;"
        " softmax, convolutions and functions of real numbers hold for vectors of 512 bits (AVX-512) alone"
    ),
    rows=(
        *linear.ROWS,
        *layers.ROWS,
        *quantized.ROWS,
        *recurrent.ROWS,
        *floating.ROWS,
        *movement.ROWS,
        *integers.ROWS,
        *indexing.ROWS,
        *attention.ROWS,
        *control.ROWS,
    ),
    limit=(
        "NaN: the sign and payload of a NaN that a sum, a product or a function gives may differ from the runtime's,"
        " and so may what a comparison with NaN keeps"
    ),
    rewrites=(
        "unblock_channels",
        "keep_axes_of_nothing",
        "slice_to_front",
        "settle_constants",
        "fold_reals",
        "cast_halves",
        "fuse_quantized",
        "fuse_reals",
        "mark_planes",
        "move_transposes",
        "cast_last",
        "clear_overwritten",
    ),
    prepares_constants=True,
)
