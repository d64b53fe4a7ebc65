"""Numerics `litert@1.2`: the reference kernels (BUILTIN_REF) of ai-edge-litert 1.2 and of TensorFlow before 2.20.

What later versions changed: fully-connected layers were requantized in fixed point, as convolutions are, before LiteRT
commit 921360770 (2025-04-14) moved them to binary64; many types, and versions of operators, came later.
"""

from __future__ import annotations

from ..records import replace
from .litert import LITERT
from .litert.convolution import DEPTHWISE
from .litert.elementwise import BROADCAST, NOT_BROADCAST, NOT_ROUNDED
from .litert.movement import MIRRORED, NO_TABLE
from .litert.selection import BOXES, GAPS
from .litert.versions import VERSIONS
from .table import Numerics, Row

_EVIDENCE = "run against 1.2.0, and recorded"
_FIXED = {
    "accumulate": "s32_wrap",
    "scale_form": "binary32_product",
    "scale_form_per_axis": "binary64",
    "rescale": "q31_two_step_up_away",
    "store": "zero_point_then_clamp",
    "activation_range": "binary32_quotient_away",
}
_WIDE = {**_FIXED, "accumulate": "s64", "rescale": "q15_one_step_up"}
_CHECKS = (("bias_scale_within", 0.02), ("activation_is_clamp",))
_WIDE_CHECKS = (("zero_points_are_zero", 0), *_CHECKS)
_SPLIT_LIMIT = "the kernel drops input elements that do not fill a row; bittrue refuses such shapes"

_OWN: tuple[Row, ...] = (
    Row("fully_connected", ("s8 s8|s4 s32|- -> s8",), _FIXED, _EVIDENCE, requires=_CHECKS, limit=_SPLIT_LIMIT),
    Row("fully_connected", ("u8 u8 s32|- -> u8",), _FIXED, _EVIDENCE, requires=_CHECKS, limit=_SPLIT_LIMIT),
    Row(
        "fully_connected",
        ("u8 u8 s32 -> s16",),
        {**_FIXED, "store": "clamp_then_zero_point"},
        _EVIDENCE,
        requires=_CHECKS,
        limit=_SPLIT_LIMIT,
    ),
    Row("fully_connected", ("s16 s8|s4 s64|- -> s16",), _WIDE, _EVIDENCE, requires=_WIDE_CHECKS, limit=_SPLIT_LIMIT),
    Row("fully_connected", ("s16 s8|s4 s32 -> s16",), _FIXED, _EVIDENCE, requires=_WIDE_CHECKS, limit=_SPLIT_LIMIT),
)
# Types that came after 1.2, for every operator and for some, or for their rows with a condition.
_LATER = {"s2", "u4"}
_LATER_OF: dict[object, set[str]] = {
    ("div", NOT_ROUNDED): {"s8", "s16"},
    "round_to_integer": {"f16"},
    ("gather", *NO_TABLE): {"f16"},
    ("pad", *MIRRORED): {"u32", "bool", "f64"},
    "gather_nd": {"f16"},
    "equal": {"s16"},
    "greater": {"s16"},
    "less_equal": {"s16"},
    "neg": {"s8", "s16", "f16"},
    "not_equal": {"s16"},
    "resize_nearest": {"f16", "bool", "s32", "u32"},
    ("select", NOT_BROADCAST): {"f16"},
    ("select", BROADCAST): {"f16", "f64"},
    "slice": {"f16", "f64", "s4", "u32"},
    "sqrt": {"s8", "s16"},
    "transpose": {"f16", "s4", "u32"},
    "split": {"f16"},
}
_LIMITS: dict[object, str] = {
    "cast": "real numbers outside of the target's range are left to the processor there, and saturate here",
    "abs": "the sign of NaN differs",
    "sign": "the sign of NaN is 0",
    "relu": "by RELU, NaN becomes 0 or stays, depending on its place in the kernel's vector loop",
    "arg_max": "NaN among the values",
    "arg_min": "NaN among the values",
    ("conv", *DEPTHWISE): (
        "16 bits: a depth_multiplier option that contradicts the shapes is obeyed there, ignored here"
    ),
    "log": "the sign of NaN differs",
    "max_pool": "NaN among the values",
}


def _older(row: Row) -> Row | None:
    """A row of `litert` as 1.2 has it: without the types that came later; None when nothing is left."""
    later = _LATER | _LATER_OF.get(row.operator, set()) | _LATER_OF.get((row.operator, *row.when), set())
    where = tuple(name for name in row.where if name not in later)
    if row.where:
        later = _LATER
    types = tuple(
        kept
        for pattern in row.types
        if all(words := ["|".join(t for t in word.split("|") if t not in later) for word in pattern.split()])
        and (kept := " ".join(words))
    )
    if not types or (row.where and not where):
        return None
    known = _LIMITS.get(row.operator, "") or _LIMITS.get((row.operator, *row.when), "")
    limit = "; ".join(filter(None, (row.limit, known)))
    return replace(row, types=types, where=where, limit=limit, evidence=_EVIDENCE)


def _inherited(row: Row) -> bool:
    """Integer fully-connected layers have rows of their own; what 1.2 computes differently has none."""
    if row.operator.endswith("lstm") or row.operator.startswith("stablehlo_"):
        return row.types[0].startswith("s8")
    if row.when in (BOXES, GAPS):
        # STABLEHLO_GATHER is not known, nor is STABLEHLO_PAD, which has its factors in attributes.
        return row.types == ("T s32 T -> T",)
    return row.operator != "fully_connected" or row.types[0].startswith("f32")


_INHERITED = (_older(row) for row in LITERT.rows if _inherited(row))

# Oldest and newest version of the operators whose newest one came later, probed in the wheel.
_OLDER_VERSIONS = {
    "BATCH_MATMUL": (1, 3),
    "BROADCAST_TO": (2, 3),
    "CAST": (1, 4),
    "CONCATENATION": (1, 3),
    "DEQUANTIZE": (1, 4),
    "DYNAMIC_UPDATE_SLICE": (1, 1),
    "EMBEDDING_LOOKUP": (1, 3),
    "EQUAL": (1, 4),
    "FILL": (1, 3),
    "FULLY_CONNECTED": (1, 11),
    "GATHER": (1, 6),
    "GATHER_ND": (1, 5),
    "NOT_EQUAL": (1, 3),
    "PACK": (1, 3),
    "PAD": (1, 4),
    "PADV2": (1, 4),
    "QUANTIZE": (1, 2),
    "REVERSE_V2": (1, 2),
    "SELECT": (1, 2),
    "SELECT_V2": (1, 1),
    "SIGN": (1, 1),
    "SLICE": (1, 5),
    "SPLIT": (1, 4),
    "SPLIT_V": (1, 2),
    "SQRT": (1, 1),
    "TRANSPOSE": (1, 5),
    "UNPACK": (1, 4),
}

LITERT_1_2 = Numerics(
    "litert@1.2",
    "ai-edge-litert 1.2.0, OpResolverType.BUILTIN_REF, x86-64",
    "the operator tests against ai-edge-litert 1.2.0, and vectors recorded from it: values, wherever it runs a model; "
    "some models that it refuses for their shapes or parameters run here",
    (*_OWN, *(row for row in _INHERITED if row is not None)),
    {**VERSIONS, **_OLDER_VERSIONS},
)
