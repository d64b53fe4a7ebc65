"""`onnxruntime-defaults`, `onnxruntime-avx2-defaults`: ONNX Runtime in sessions whose options nobody has set.

On x86-64 such a session has `session.qdqisint8allowed` off: before it fuses what stands between pairs, it makes pairs
of s8 unsigned where it can; elsewhere convolutions and matrix products of s8 stay real. On Arm the option is on.
"""

from __future__ import annotations

from ..records import replace
from .onnxruntime import ONNXRUNTIME
from .onnxruntime_avx2 import ONNXRUNTIME_AVX2
from .table import Numerics

_FUSE = ("fuse_quantized", "cast_halves")


def _defaults(table: Numerics) -> Numerics:
    return replace(
        table,
        name=f"{table.name}-defaults",
        reproduces=table.reproduces.replace("session.qdqisint8allowed=1", "default session options"),
        verified="random QDQ networks against onnxruntime 1.31.1 with default options; rows as " + table.name,
        rewrites=tuple(f"{name}:u8" if name.partition(":")[0] in _FUSE else name for name in table.rewrites),
        completes=table.name,
    )


ONNXRUNTIME_DEFAULTS = _defaults(ONNXRUNTIME)
ONNXRUNTIME_AVX2_DEFAULTS = _defaults(ONNXRUNTIME_AVX2)
