"""Rows of `litert`: element-wise arithmetic and comparisons."""

from __future__ import annotations

from ..table import Row

NOT_ROUNDED, ROUNDED_DOWN = (("attribute_is", "rounding", value) for value in (None, "down"))
SQUARES, NOT_SQUARES = (("attribute_is", "squares", value) for value in (True, None))
OF_DIVISOR = ("attribute_is", "sign_of", "divisor")
SHIFTED_DOWN = ("attribute_is", "up", False)
BROADCAST, NOT_BROADCAST = (("attribute_is", "broadcasts", value) for value in (True, False))
PLAIN = {"plain_range": "type_limits"}
_ALIGNED = {
    "align": "left_20",
    "rescale": "q31_two_step_up_away",
    "store": "zero_point_then_clamp",
    "activation_range": "binary32_quotient_away",
}
ALIGNED_S16 = {**_ALIGNED, **PLAIN, "align": "power_of_two_or_left_15"}
_MULTIPLIED = {
    "product": "exact_s32",
    "scale_form": "binary32",
    "rescale": "q31_two_step_up_away",
    "store": "zero_point_then_clamp",
    "activation_range": "binary32_quotient_away",
}
_DIVIDED = {
    "divide": "q31_reciprocal_up_away",
    "store": "zero_point_then_clamp",
    "activation_range": "binary32_quotient_away",
}
_COMPARED = {"compare": "rescaled_left_8", "rescale": "q31_two_step_up_away"}
_RAW = {"compare": "raw"}
# Kernels that broadcast abort above rank 8; some recognise shapes that differ only in leading dimensions of 1.
_RANK = ("broadcast_rank_within", 8)
_RANK_ONES = ("broadcast_rank_within", 8, True)
TWO_NANS = (
    "where both operands are NaN, the kernels keep the payload of one or the other, depending on the element's place "
    "in their vector loop; bittrue keeps the first one's"
)
_DIV_LIMIT = (
    "elements that need a right shift outside 0..31 (numerators small beside the divisor, many zeros among them) stop "
    "the run: the kernels shift by an undefined amount there"
)
_LEFT_SHIFT = (
    "output scales that need a left shift of the product by 31 bits or more are refused: the kernel shifts by more "
    "than the register is wide, which has no meaning (x86-64 takes the count modulo 32)"
)
_PLAIN_TYPES = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "f32", "f64", "bool")
_WIDTHS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f64", "c64", "bool")

# Operators on stored values, whatever the scales are; they stand ahead of all rows of tables that build on this one.
STORED: tuple[Row, ...] = tuple(
    Row(
        stem,
        ("T T -> T",),
        {slot: rule},
        "run",
        where=_PLAIN_TYPES,
        when=(("attribute_is", "stored_values", True),),
        requires=(("equal_shapes",),),
    )
    for stem, slot, rule in (
        ("add", "plain_range", "unlimited"),
        ("mul", "plain_range", "unlimited"),
        ("maximum", "extreme", "first_unless_beyond"),
        ("minimum", "extreme", "first_unless_beyond"),
    )
)

ROWS: tuple[Row, ...] = (
    *STORED,
    Row(
        "add", ("s8 s8 -> s8",), _ALIGNED, "run, in whole models, too; docs/facts/litert.md 2.2", requires=(_RANK_ONES,)
    ),
    Row(
        "add", ("u8 u8 -> u8",), _ALIGNED, "run, in whole models, too; docs/facts/litert.md 2.2", requires=(_RANK_ONES,)
    ),
    Row(
        "add",
        ("s16 s16 -> s16",),
        ALIGNED_S16,
        "run; docs/facts/litert.md 2.2",
        requires=(("zero_points_are_zero",), ("rank_without_scale_within", 8), _RANK_ONES),
    ),
    Row("add", ("T T -> T",), PLAIN, "run", where=("s32", "s64"), requires=(_RANK_ONES,)),
    Row("add", ("f16 f16 -> f16",), PLAIN, "run", requires=(_RANK_ONES,), limit=TWO_NANS),
    Row("add", ("f32 f32 -> f32",), PLAIN, "run", requires=(_RANK_ONES,), limit=TWO_NANS),
    Row(
        "sub",
        ("T T -> T",),
        _ALIGNED,
        "run, in whole models, too; docs/facts/litert.md 2.2",
        where=("s8", "u8"),
        requires=(("zero_points_fit",), _RANK_ONES),
    ),
    Row(
        "sub",
        ("s16 s16 -> s16",),
        ALIGNED_S16,
        "run; docs/facts/litert.md 2.2",
        requires=(("zero_points_are_zero",), _RANK_ONES),
    ),
    Row("sub", ("T T -> T",), PLAIN, "run", where=("s32", "s64", "f32"), requires=(_RANK,)),
    Row("mul", ("f32 f32 -> f32",), {"plain_range": "unlimited"}, "run", when=(SQUARES,)),
    Row(
        "mul",
        ("T T -> T",),
        _MULTIPLIED,
        "run, in whole models, too; docs/facts/litert.md 2.2",
        where=("s8", "u8"),
        requires=(_RANK_ONES,),
        limit=_LEFT_SHIFT,
    ),
    Row(
        "mul",
        ("s16 s16 -> s16",),
        {**_MULTIPLIED, **PLAIN},
        "run; docs/facts/litert.md 2.2",
        requires=(("zero_points_are_zero",), _RANK_ONES),
        limit=_LEFT_SHIFT,
    ),
    Row(
        "mul",
        ("s16 s16 -> s8|u8",),
        {
            "product": "q15_up_then_256_away",
            "store": "clamp_then_zero_point",
            "activation_range": "binary32_quotient_away",
        },
        "run; docs/facts/litert.md 2.2",
        requires=(("zero_points_fit",),),
    ),
    Row("mul", ("T T -> T",), PLAIN, "run", where=("s32", "s64", "u32"), requires=(_RANK_ONES,)),
    Row("mul", ("f16 f16 -> f16",), PLAIN, "run", requires=(_RANK_ONES,), limit=TWO_NANS),
    Row("mul", ("f32 f32 -> f32",), PLAIN, "run", requires=(_RANK_ONES,), limit=TWO_NANS),
    Row(
        "div",
        ("T T -> T",),
        _DIVIDED,
        "run; docs/facts/litert.md 2.2",
        where=("s8", "u8", "s16"),
        when=(NOT_ROUNDED,),
        requires=(_RANK_ONES,),
        limit=_DIV_LIMIT,
    ),
    Row("div", ("T T -> T",), PLAIN, "run", where=("s32", "f32"), when=(NOT_ROUNDED,), requires=(_RANK,)),
    *(
        Row(
            stem,
            ("T T -> T",),
            {},
            "run: scales are ignored; docs/facts/litert.md 2.2",
            where=("s8", "u8", "s16", "s32", "s64", "f32", "f16", "bf16"),
            requires=(_RANK,),
        )
        for stem in ("maximum", "minimum")
    ),
    *(
        Row(stem, ("T T -> bool",), _COMPARED, "run; docs/facts/litert.md 2.2", where=("s8", "u8"), requires=(_RANK,))
        for stem in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
    ),
    Row("equal", ("s16 s16 -> bool",), _COMPARED, "run", requires=(_RANK,)),
    Row(
        "not_equal",
        ("s16 s16 -> bool",),
        _COMPARED,
        "run",
        requires=(("has_scale", 0), _RANK),
        limit="16-bit integers without a scale are refused: the kernel returns without writing its output",
    ),
    *(
        Row(stem, ("T T -> bool",), _RAW, "run", where=("bool", "s32", "s64", "f32", "f16"), requires=(_RANK,))
        for stem in ("equal", "not_equal")
    ),
    *(
        Row(stem, ("T T -> bool",), _RAW, "run", where=("s16", "s32", "s64", "f32", "f16"), requires=(_RANK,))
        for stem in ("greater", "greater_equal", "less", "less_equal")
    ),
    *(Row(stem, ("bf16 bf16 -> bool",), _RAW, "run", requires=(_RANK,)) for stem in ("greater", "less")),
    Row("div", ("s32 s32 -> s32",), {"beyond_32_bits": "lowest"}, "run", when=(ROUNDED_DOWN,), requires=(_RANK,)),
    Row(
        "div",
        ("T T -> T",),
        {},
        "run",
        where=("s8", "s16"),
        when=(ROUNDED_DOWN,),
        requires=(_RANK,),
        limit="minimum / -1 stops the run: the kernel's result depends on the element's place in its vector loop",
    ),
    Row("div", ("f32 f32 -> f32",), {}, "run", when=(ROUNDED_DOWN,), requires=(_RANK,), limit=TWO_NANS),
    Row("remainder", ("T T -> T",), {}, "run", where=("s8", "s16"), when=(OF_DIVISOR,), requires=(_RANK,)),
    Row(
        "remainder",
        ("T T -> T",),
        {},
        "run; minimum mod -1 traps in the kernel and is refused",
        where=("s32", "s64"),
        when=(OF_DIVISOR,),
        requires=(_RANK,),
    ),
    Row(
        "remainder",
        ("f32 f32 -> f32",),
        {"modulo": "zero_of_dividend"},
        "run",
        when=(OF_DIVISOR,),
        requires=(_RANK,),
        limit=TWO_NANS,
    ),
    Row(
        "squared_difference",
        ("s8 s8 -> s8",),
        {**_ALIGNED, "align": "left_7"},
        "run; docs/facts/litert.md 2.2",
        requires=(("zero_points_fit",), _RANK),
    ),
    Row("squared_difference", ("T T -> T",), {}, "run", where=("s32", "f32"), requires=(_RANK,)),
    *(Row(stem, ("bool bool -> bool",), {}, "run", requires=(_RANK,)) for stem in ("bitwise_and", "bitwise_or")),
    Row("bitwise_not", ("bool -> bool",), {}, "run"),
    Row("select", ("bool T T -> T",), {}, "run", where=_WIDTHS, when=(NOT_BROADCAST,)),
    Row("select", ("bool T T -> T",), {}, "run", where=_WIDTHS, when=(BROADCAST,), requires=(_RANK,)),
    Row(
        "power",
        ("s32 s32 -> s32",),
        {"beyond_32_bits": "lowest"},
        "run",
        requires=(_RANK,),
        limit="a single exponent above 0 is refused beyond rank 8 although the kernel does not broadcast it",
    ),
    Row(
        "power",
        ("f32 f32 -> f32",),
        {"power": "finite_products_or_library"},
        "run: 2^28 pairs against the C library",
        requires=(_RANK,),
        limit="the runtime calls the C library of its machine; the bits here are those of glibc 2.36 for x86-64; its "
        "form for processors with fused multiply-add differed in 1 of 2^28 pairs; " + TWO_NANS,
    ),
    Row(
        "atan2",
        ("T T -> T",),
        {"multiply_add": "rounded_twice"},
        "run",
        where=("f32", "f16", "bf16"),
        limit="different shapes of one rank are refused: the kernel does not compare them and reads past the end; "
        + TWO_NANS,
    ),
    Row(
        "add_n",
        ("T T... -> T",),
        PLAIN,
        "run",
        where=("s32", "f32"),
        limit="with several threads and four or more inputs the kernel adds in another order; " + TWO_NANS,
    ),
    *(
        Row(stem, ("T T -> T",), rules, "run", ("s8", "u8", "s16", "u16", "s32", "u32"), when=when, requires=(_RANK,))
        for stem, rules, when in (
            ("bitwise_xor", {}, ()),
            ("shift", {"shift": "places_clamped"}, (SHIFTED_DOWN,)),
        )
    ),
)
