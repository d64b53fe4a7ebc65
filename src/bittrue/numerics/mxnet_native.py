"""`mxnet-native`: MXNet built without oneDNN: affine u8, ties away from zero, no kernels of layers."""

from __future__ import annotations

from ..records import replace
from .mxnet.floating import ROWS, rows_by_rank
from .mxnet.layers import ROWS as LAYERS
from .mxnet.pointwise import KERNELS, MOVED, PRODUCTS
from .table import Numerics, Row

_RUN = "run: random tensors and ranges, ties, NaN, infinities; docs/facts/mxnet.md 4"
_NONE = "this build has no kernel of it for processors: it needs oneDNN (numerics 'mxnet')"
# Fully-connected layers turn constants and flatten images like everybody else.
_EVERYWHERE = ("flatten", "transpose")
_REFUSED = tuple(
    Row(row.operator, row.types, refuses=_NONE, where=row.where)
    for row in (*KERNELS, *LAYERS)
    if row.operator not in _EVERYWHERE and not any(condition[1] == "fused" for condition in row.when)
)
_NAN = "NaN becomes 0, the runtime keeps it"
_FLOATING = (
    rows_by_rank(1, 3, 4, 5),
    *(replace(row, limit=_NAN) if row.operator == "thresholded_relu" else row for row in ROWS),
)

MXNET_NATIVE = Numerics(
    name="mxnet-native",
    reproduces="MXNet 1.8.0 without oneDNN (mxnet-native 1.8.0.post0), x86-64",
    verified="run against mxnet-native 1.8.0: random calls of every operator that this build has; recorded vectors",
    rows=(
        *MOVED,
        *PRODUCTS,
        Row(
            "quantize",
            ("f32 f32 f32 -> s8|u8",),
            {"range_quantize": "binary32_symmetric_away_or_affine_up"},
            _RUN,
        ),
        Row(
            "dequantize",
            ("s8|u8 f32 f32 -> f32",),
            {"range_dequantize": "binary32_whole_level_step_or_affine"},
            _RUN,
        ),
        Row(
            "quantize",
            ("s32 f32 f32 f32 f32 -> s8",),
            {"range_requantize": "binary32_two_products_away"},
            _RUN,
        ),
        *_FLOATING,
        Row(
            "identity",
            ("T -> T",),
            {},
            "ranges and quantized values that pass through",
            where=("f32", "s8", "u8", "s32"),
        ),
        Row("range_of", ("s32 f32 f32 -> f32 f32", "f32... -> f32 f32"), {}, _RUN),
        *_REFUSED,
    ),
)
