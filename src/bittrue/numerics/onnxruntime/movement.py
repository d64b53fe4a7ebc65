"""Rows of `onnxruntime`: data movement. Element types are those that the provider has kernels for."""

from __future__ import annotations

from ..table import Row

FLOATS = ("f32", "f64", "f16")
INTEGERS = ("u8", "s8", "u16", "s16", "s32", "s64", "u32", "u64")
COMMON = (*FLOATS, *INTEGERS, "bool")
EVERY = (*COMMON, "bf16")
NARROW = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")
# The runtime has no kernel of its own for f16 here: it widens and narrows again.
QUIET = "NaNs keep their payload here; the runtime makes every NaN the quiet one with its sign"
_MOVED = "run: elements are copied"
_LARGE = "run; numbers that the type cannot hold have what x86's conversions give"
_BY_HALVES = {"cast": "truncate_low_bits_by_halves", "cast_tail": "truncate_low_bits"}

# Operators on one data tensor: stem, further operands, element types.
_POSITIONS = "s32|s64"
_ONE: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("reshape", "s64", (*EVERY, *NARROW)),
    ("flatten", "", EVERY),
    ("squeeze", "s64|-", EVERY),
    ("expand_dims", _POSITIONS, EVERY),
    ("identity", "", (*EVERY, *NARROW)),
    ("inference", "bool", EVERY),
    ("transpose", "s64|-", (*EVERY, *NARROW, "u4", "s4")),
    ("transpose", "s64|-", ("u2", "s2")),
    ("slice_axes", "s64 s64 s64|- s64|-", EVERY),
    ("slice_axes", "s32 s32 s32|- s32|-", EVERY),
    ("split", "s64|-", EVERY),
    ("broadcast_to", "s64", COMMON),
    ("tile", "s64", ("f32", "f64", *INTEGERS, "bool")),
    ("space_to_depth", "", ("f32", "f64", "u8", "s8")),
    ("depth_to_space", "", ("f32", "f64", "u8", "s8")),
    ("gather", _POSITIONS, EVERY),
    ("gather_nd", _POSITIONS, EVERY),
)

_OF_ONE_WIDTH = ("u8|s8", "u16|s16|f16|bf16", "u32|s32|f32", "u64|s64|f64")

_CHECKED = {"squeeze": (("rank_within", 1, 1, 1),), "expand_dims": (("rank_within", 1, 0, 1),)}

MOVED: tuple[Row, ...] = (
    Row(
        "split",
        ("T s64 -> T...",),
        where=("u8", "s8", "u16", "s16", "u32", "u64", "bf16"),
        when=(("attribute_is", "of_sequence", True),),
        refuses="the runtime has no kernel for SplitToSequence of this type",
        advice="use Split",
    ),
    *(
        Row(
            stem,
            (f"T {more} -> T...".replace("...", "..." if stem == "split" else ""),),
            {},
            _MOVED,
            where=types,
            requires=_CHECKED.get(stem, ()),
        )
        for stem, more, types in _ONE
    ),
    *(
        Row(stem, (f"f16 {more} -> f16",), {}, _MOVED, limit=QUIET)
        for stem, more in (("space_to_depth", ""), ("depth_to_space", ""), ("tile", "s64"))
    ),
    Row(
        "einsum_view",
        ("T... -> T",),
        {},
        _MOVED,
        where=EVERY,
        limit="sums over what has one element in one operand and several in the other are refused",
    ),
    Row("concatenation", ("T... -> T",), {"combine": "copy"}, _MOVED, where=EVERY, requires=(("rank_within", 0, 1),)),
    Row(
        "pad",
        ("T s64 T|- s64|- -> T",),
        {},
        _MOVED,
        where=("f32", "f64", "u8", "s8", "s32", "s64", "u32", "u64", "bool"),
        requires=(("rank_within", 0, 1),),
    ),
    Row("pad", ("f16 s64 f16|- s64|- -> f16",), {}, _MOVED, limit=QUIET, requires=(("rank_within", 0, 1),)),
    Row("select", ("bool T T -> T",), {}, _MOVED, where=("u8", "s8", "s32", "s64", "u32")),
    Row("select", ("bool f32 f32 -> f32",), {}, _MOVED, when=(("attribute_is", "copies", True),)),
    Row("select", ("bool T T -> T",), {"choice": "one_unless_zero"}, _MOVED, where=("f32", "f64")),
    Row("select", ("bool f16 f16 -> f16",), {"choice": "one_unless_zero"}, _MOVED, limit=QUIET),
    Row("fill", ("s64 T -> T",), {}, _MOVED, where=COMMON),
    Row("fill", ("s64 bf16 -> bf16",), {}, _MOVED),
    Row(
        "scatter_nd",
        (f"T {_POSITIONS} T -> T",),
        {},
        "run",
        where=EVERY,
        when=(("attribute_is", "coordinates", "along_axis"),),
    ),
    Row("scatter_nd", ("T s64 T -> T",), {}, "run", where=EVERY),
    *(Row("bitcast", (f"{types} -> {types}",), {}, _MOVED) for types in _OF_ONE_WIDTH),
    Row("tensor_scatter", ("T T s64|- -> T",), {}, "run: random models", where=EVERY),
)

SHAPES: tuple[Row, ...] = (
    Row("shape", ("T -> s64",), {}, "run", where=(*EVERY, *NARROW), when=(("attribute_is", "of", "dimensions"),)),
    Row("shape", ("T -> s64",), {}, "run", where=COMMON, when=(("attribute_is", "of", "elements"),)),
    Row("range", ("T T T -> T",), {}, "run", where=("f32", "f64", "s16", "s32", "s64")),
)

_INTEGER = "|".join(INTEGERS)
SHORTENED = "of two casts in a row the runtime may leave the first one out (to 8 bits by way of bf16)"
_SIGNS = "u4|s4|u2|s2"
_WIDE = f"{_INTEGER}|{_SIGNS}|bool|f16|bf16|f32|f64"
_EIGHT = "|".join(NARROW)
_POWERS = "run: every code, and 40,000 binary32 numbers with every rounding"
CASTS: tuple[Row, ...] = (
    Row("convert", (f"{_INTEGER}|bool -> {_INTEGER}|bool|f16|bf16|f32|f64",), {}, "run"),
    Row(
        "convert",
        ("f16 -> f32",),
        {"widen": "quiet_by_16"},
        "run",
        limit="where several threads share a tensor, a signalling NaN stays one at the end of each one's part",
    ),
    Row(
        "convert",
        ("f32 -> f16",),
        {"half_nan": "payload_by_8"},
        "run",
        limit="where several threads share a tensor, a NaN loses its payload at the end of each one's part",
    ),
    Row("convert", ("f16|bf16|f32|f64 -> f16|bf16|f32|f64|bool",), {}, "run"),
    Row("convert", ("bf16|f32|f64 -> u32",), _BY_HALVES, _LARGE),
    Row("convert", (f"f16|bf16|f32|f64 -> {_INTEGER}",), {"cast": "truncate_low_bits"}, _LARGE, limit=SHORTENED),
)

NARROW_CASTS: tuple[Row, ...] = (
    Row("convert", (f"{_WIDE}|{_EIGHT} -> f8e8m0",), {"power_code": "of_binary32_between_ends"}, _POWERS),
    Row(
        "convert",
        (f"{_WIDE}|{_EIGHT}|f8e8m0 -> {_EIGHT}",),
        {"narrow": "even_overflow_by_carry"},
        "run",
        when=(("attribute_is", "saturate", False),),
    ),
    Row("convert", (f"{_WIDE}|{_EIGHT}|f8e8m0 -> {_EIGHT}",), {"narrow": "even_saturate_nan_ones"}, "run"),
    Row("convert", (f"f16|bf16|f32|f64|{_EIGHT}|f8e8m0 -> {_SIGNS}",), {"cast": "round_away_low_bits"}, "run"),
)
FROM_NARROW: tuple[Row, ...] = (
    Row("convert", (f"{_EIGHT} -> {_INTEGER}",), {"cast": "truncate_low_bits"}, "run"),
    Row("convert", (f"f8e8m0 -> {_INTEGER}",), {"cast": "truncate_low_bits_nan_zero"}, _POWERS),
    Row("convert", (f"{_EIGHT}|f8e8m0 -> f16|bf16|f32|f64",), {}, "run"),
    Row("convert", ("f8e8m0 -> f8e8m0",), {}, _POWERS),
    Row("convert", ("f8e8m0 -> bool",), {}, _POWERS, limit="2^-127 is true here; the runtime takes it for false"),
    Row("convert", (f"{_EIGHT} -> bool",), {}, "run", limit="-0 is false here; the runtime takes it for true"),
    Row("convert", (f"{_SIGNS} -> {_INTEGER}|bool|f16|bf16|f32|f64",), {}, "run"),
    Row("convert", (f"{_INTEGER}|bool|{_SIGNS} -> {_SIGNS}",), {}, "run"),
)

ROWS: tuple[Row, ...] = (*MOVED, *SHAPES, *CASTS, *NARROW_CASTS, *FROM_NARROW)
