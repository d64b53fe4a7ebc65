"""Rows of `litert`: data movement: elements are copied, parameters are ignored unless a condition says otherwise."""

from __future__ import annotations

from ..table import Row

_BYTES = ("s8", "u8", "bool")
_WIDE_TYPES = ("s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f64", "c64")
_EVERY = _BYTES + _WIDE_TYPES
_SIZED = ("s4", "u4", *_EVERY, "c128")
_COMMON = ("s8", "u8", "s16", "s32", "s64", "f32")
_MOVED = "run; docs/facts/litert.md 2.7"
# How a border is filled, and the rank that the kernel of one value takes.
MIRRORED, ONE_VALUE = (("attribute_is", "mode", "reflect", "symmetric"),), (("attribute_is", "mode", "constant"),)
# Coordinates of slices, not of boxes.
# EMBEDDING_LOOKUP, and GATHER.
TABLE, NO_TABLE = (("attribute_is", "table", True),), (("attribute_is", "table", False, None),)
SLICES = (("attribute_is", "boxes", False, None),)
DIMENSIONS = (("attribute_is", "of", "dimensions"),)
PAD_RANK = (("rank_within", 0, 0, 5),)
_HALF_BYTES = "an odd number of elements behind the axis is refused: the kernel leaves parts of the output unwritten"


def _same_or_zero(
    operator: str,
    types: str,
    *positions: int,
    where: tuple[str, ...],
    when: tuple[tuple[object, ...], ...] = (),
    requires: tuple[tuple[object, ...], ...] = (),
) -> tuple[Row, ...]:
    """Rows for `where` whose inputs at `positions` share the output's parameters; s16 with zero point 0."""
    same = (("same_parameters", *positions), *requires)
    narrow = tuple(t for t in where if t != "s16")
    rows = (Row(operator, (types,), {}, _MOVED, where=narrow, when=when, requires=same),)
    if "s16" not in where:
        return rows
    zero = ("zero_points_are_zero", *positions)
    return (*rows, Row(operator, (types,), {}, _MOVED, where=("s16",), when=when, requires=(*same, zero)))


ROWS: tuple[Row, ...] = (
    Row("reshape", ("T s32|- -> T",), {}, _MOVED, where=_SIZED),
    Row("squeeze", ("T -> T",), {}, _MOVED, where=_SIZED, requires=(("rank_within", 0, 0, 8),)),
    *_same_or_zero("expand_dims", "T s32|s64 -> T", 0, where=_SIZED, requires=(("one_element", 1),)),
    # Constant scalars are joined while the kernel prepares, before it looks at parameters.
    Row(
        "concatenation",
        ("T... -> T",),
        {"combine": "copy"},
        _MOVED,
        where=("s8", "u8", "s16"),
        when=(("input_rank", 0, 0),),
    ),
    Row("concatenation", ("s8... -> s8",), {"combine": "copy"}, _MOVED, requires=(("same_parameters",),)),
    Row("concatenation", ("u8... -> u8",), {"combine": "binary32_affine_away"}, _MOVED),
    Row("concatenation", ("s16... -> s16",), {"combine": "copy"}, _MOVED, requires=(("zero_points_are_zero",),)),
    Row(
        "concatenation",
        ("T... -> T",),
        {"combine": "copy"},
        _MOVED,
        where=("s4", "s32", "u32", "s64", "f16", "bf16", "f32", "bool"),
    ),
    Row("space_to_depth", ("T -> T",), {}, _MOVED, where=("s8", "u8", "s32", "s64", "f32")),
    Row("depth_to_space", ("T -> T",), {}, _MOVED, where=("s8", "u8", "s32", "s64", "f32")),
    *_same_or_zero("pad", "T s32|s64 -> T", 0, where=("s8", "u8", "s16"), when=MIRRORED),
    Row("pad", ("T s32|s64 -> T",), {}, _MOVED, where=("bool", *_WIDE_TYPES[1:]), when=MIRRORED),
    Row(
        "pad",
        ("T s8|s16|s32|s64 T|- -> T",),
        {},
        _MOVED,
        where=(*_COMMON, "f16", "bf16", "bool"),
        when=ONE_VALUE,
        requires=PAD_RANK,
    ),
    Row("gather", ("T s16|s32|s64 -> T",), {}, _MOVED, where=(*_COMMON, "f16", "bf16", "bool"), when=NO_TABLE),
    Row(
        "gather",
        ("s4 s16|s32|s64 -> s4",),
        {},
        _MOVED,
        when=NO_TABLE,
        requires=(("slices_are_whole_bytes",),),
        limit=_HALF_BYTES,
    ),
    Row(
        "gather_nd",
        ("T s16|s32|s64 -> T",),
        {},
        _MOVED,
        where=(*_COMMON, "f16", "bf16", "bool"),
        when=SLICES,
    ),
    *_same_or_zero("batch_to_space", "T s32 s32 -> T", 0, where=("s8", "u8", "s16")),
    Row("batch_to_space", ("T s32 s32 -> T",), {}, _MOVED, where=("bool", *_WIDE_TYPES[1:])),
    *_same_or_zero("space_to_batch", "T s32 s32 -> T", 0, where=("s8", "u8", "s16")),
    Row("space_to_batch", ("T s32 s32 -> T",), {}, _MOVED, where=("bool", *_WIDE_TYPES[1:])),
    Row(
        "transpose",
        ("T s32 -> T",),
        {},
        _MOVED,
        where=("s4", *_EVERY),
        limit="a permutation that names an axis twice, and rank 0, are refused: the kernel reads the wrong elements",
    ),
    Row("slice", ("T s32 s32 -> T", "T s64 s64 -> T"), {}, _MOVED, where=("s4", *_EVERY)),
    Row(
        "strided_slice",
        ("T s32 s32 s32 -> T",),
        {},
        _MOVED,
        where=_EVERY,
        limit="an axis that shrinks outside the tensor or backwards is refused: the kernel leaves the output unwritten",
    ),
    Row("shape", ("* -> s32|s64",), {}, _MOVED, when=DIMENSIONS),
    Row("shape", ("* -> s32",), {}, "run", when=(("attribute_is", "of", "rank"),)),
    Row("split", ("T - s32 -> T...", "T s32|s64 s32 -> T..."), {}, _MOVED, where=_COMMON),
    Row("pack", ("T... -> T",), {}, _MOVED, where=(*_COMMON, "u32"), requires=(("same_parameters",),)),
    Row(
        "split",
        ("T -> T...",),
        {},
        _MOVED,
        where=("s8", "u8", "s16", "s32", "f16", "bf16", "f32", "bool"),
        requires=(("same_parameters",),),
    ),
    Row("tile", ("T s32|s64 -> T",), {}, _MOVED, where=_EVERY),
    Row(
        "reverse_v2",
        ("T s32 -> T",),
        {},
        _MOVED,
        where=(*_COMMON, "f16", "bf16", "bool"),
        limit="an empty list of axes is refused: undefined in the kernel",
    ),
    Row("broadcast_to", ("T s32|s64 -> T",), {}, _MOVED, where=(*_EVERY, "c128")),
    *_same_or_zero("fill", "s32|s64 T -> T", 1, where=_EVERY),
    Row(
        "range",
        ("T T T -> T",),
        {},
        _MOVED,
        where=("s32", "s64", "f32"),
        requires=(("rank_zero", 0, 1, 2),),
    ),
)
