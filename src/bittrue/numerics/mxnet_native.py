"""`mxnet-native`: MXNet built without oneDNN: affine u8, ties away from zero, no kernels of layers."""

from __future__ import annotations

from dataclasses import replace

from .mxnet.floating import ROWS, rows_by_rank
from .mxnet.pointwise import MOVED, PRODUCTS
from .table import Numerics, Row

_RUN = "recorded runs of a build without oneDNN; facts/mxnet.md 4"
_PAIR, _RANGE = "f32 f32 f32 f32", "f32 f32 -> f32 f32"
_NONE = "this build has no kernel of it for processors: it needs oneDNN (numerics 'mxnet')"
# Stems, and what they take and give.
_REFUSED = (
    ("clip", ("s8 s8 - -> s8",)),
    ("convention_average_pool", ("s8|u8 -> s8|u8",)),
    ("convention_max_pool", ("s8|u8 -> s8|u8",)),
    ("ranged_add", (f"s8|u8 s8|u8 {_PAIR} -> s8|u8|s32",)),
    ("ranged_batch_normalization", ("s8|u8 f32 f32 f32 f32 f32 f32 -> s8",)),
    ("ranged_concat", ("s8|u8|f32... -> s8|u8",)),
)
_NAN = "NaN becomes 0, the runtime keeps it"
_FLOATING = (
    rows_by_rank(1, 3, 4, 5),
    *(replace(row, limit=_NAN) if row.operator == "thresholded_relu" else row for row in ROWS),
)

MXNET_NATIVE = Numerics(
    name="mxnet-native",
    reproduces="MXNet 1.8.0 without oneDNN (mxnet-native 1.8.0.post0), x86-64",
    verified="recorded vectors of every operator that this build has; its sources were read",
    rows=(
        *MOVED,
        *PRODUCTS,
        Row(
            "range_quantize",
            ("f32 f32 f32 -> s8|u8",),
            {"range_quantize": "binary32_symmetric_away_or_affine_up"},
            _RUN,
        ),
        Row(
            "range_dequantize",
            ("s8|u8 f32 f32 -> f32",),
            {"range_dequantize": "binary32_whole_level_step_or_affine"},
            _RUN,
        ),
        Row(
            "range_requantize",
            ("s32 f32 f32 f32 f32 -> s8",),
            {"range_requantize": "binary32_two_products_away"},
            _RUN,
        ),
        *_FLOATING,
        Row("identity", ("T -> T",), {}, "ranges and codes that pass through", where=("f32", "s8", "u8", "s32")),
        Row("joined_range", ("f32... -> f32 f32",), {}, _RUN),
        Row("product_range", (f"{_PAIR} -> f32 f32",), {}, _RUN),
        Row("range_of_sums", ("s32 f32 f32 -> f32 f32",), {}, _RUN),
        Row("range_of_values", ("f32 -> f32 f32",), {}, _RUN),
        Row("sum_range", (f"{_PAIR} -> f32 f32",), {}, _RUN),
        Row("symmetric_range", (_RANGE,), {}, _RUN),
        *(Row(stem, types, refuses=_NONE) for stem, types in _REFUSED),
    ),
)
