"""Rows of `onnxruntime`: arithmetic, comparisons and logic of integers and truth values, and what reals share."""

from __future__ import annotations

from ..table import Row
from .movement import INTEGERS

_WRAPS = {"plain_range": "type_limits"}
SHIFT = {"shift": "nothing_beyond"}
OF_DIVISOR, OF_DIVIDEND = (("attribute_is", "sign_of", whose) for whose in ("divisor", "dividend"))
# Of a kernel for binary16 that widens by itself.
HALF = ("attribute_is", "half", True)
_SIGNED = ("s8", "s16", "s32", "s64")
_REAL = ("f32", "f64")
_STRETCHES = "run: 3,000 random pairs of shapes with zeros of both signs; docs/facts/onnxruntime.md 5.15"
_EIGHT = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")
_UNSIGNED = ("u8", "u32", "u64")

ROWS: tuple[Row, ...] = (
    *(Row(stem, ("T T -> T",), _WRAPS, "run: integers wrap", where=INTEGERS) for stem in ("add", "sub", "mul")),
    Row(
        "div",
        ("T T -> T",),
        _WRAPS,
        "run: toward zero; a divisor of 0 is an error",
        where=INTEGERS,
        limit="the runtime's process ends at minimum / -1 in 32 and 64 bits",
    ),
    Row("neg", ("T -> T",), {}, "run: integers wrap", where=(*_SIGNED, *_REAL)),
    Row("abs", ("T -> T",), {}, "run: integers wrap", where=(*INTEGERS, *_REAL)),
    Row("sign", ("T -> T",), {}, "run", where=INTEGERS),
    *(
        Row(
            stem,
            ("T T -> T",),
            {"extreme": "nan_else_last_in_vectors"},
            _STRETCHES,
            where=_REAL,
            when=(("attribute_is", "broadcasts", False),),
            requires=(("equal_shapes",),),
        )
        for stem in ("maximum", "minimum")
    ),
    *(
        Row(stem, ("T T -> T",), {}, "run", where=("u8", "s8", "s32", "s64", "u32", "u64"))
        for stem in ("maximum", "minimum")
    ),
    *(
        Row(stem, ("f32 f32 -> f32",), {"extreme": "nan_else_first"}, "run, on binary16 numbers", when=(HALF,))
        for stem in ("maximum", "minimum")
    ),
    *(
        Row(stem, ("T T -> T",), {"extreme": "nan_else_last_in_vectors"}, _STRETCHES, where=_REAL)
        for stem in ("maximum", "minimum")
    ),
    Row("remainder", ("T T -> T",), {}, "run; a divisor of 0 is an error", where=INTEGERS, when=(OF_DIVISOR,)),
    Row("remainder", ("T T -> T",), {"remainder": "binary64"}, "run; a divisor of 0 is an error", where=INTEGERS),
    Row(
        "remainder",
        ("T T -> T",),
        {},
        "run",
        where=_REAL,
        when=(OF_DIVIDEND,),
        limit="of two NaN operands of binary16 the runtime may keep the other one",
    ),
    Row("matmul", ("T T -> T",), {}, "run: 500 random models; integers wrap", where=("s32", "u32", "s64", "u64")),
    *(
        Row(stem, ("bool s64|- -> bool",), {}, "run: 500 random models", requires=(("axes_exist", 1),))
        for stem in ("reduce_max", "reduce_min")
    ),
    Row("shift", ("T T -> T",), SHIFT, "run", where=_UNSIGNED),
    *(Row(f"bitwise_{stem}", ("T T -> T",), {}, "run", where=(*INTEGERS, "bool")) for stem in ("and", "or")),
    Row("bitwise_xor", ("T T -> T",), {}, "run", where=INTEGERS),
    Row("bitwise_not", ("T -> T",), {}, "run", where=(*INTEGERS, "bool")),
    *(Row(stem, ("T T -> bool",), {}, "run", where=(*INTEGERS, *_REAL, "bool")) for stem in ("equal", "not_equal")),
    *(
        Row(stem, ("T T -> bool",), {}, "run", where=(*INTEGERS, *_REAL))
        for stem in ("less", "less_equal", "greater", "greater_equal")
    ),
    *(Row("not_finite", ("T -> bool",), {}, "run", where=where) for where in ((*_REAL, "f16", "bf16"), _EIGHT)),
    Row(
        "cumsum",
        ("T s32|s64 -> T",),
        {"start": "first_element"},
        "run",
        where=(*_REAL, "s32", "s64"),
        requires=(("rank_within", 1, 0, 1),),
    ),
    Row(
        "cumprod",
        ("T s32|s64 -> T",),
        {"start": "first_element"},
        "run: 60 random single-node models, every bit",
        where=(*_REAL, "s32", "s64", "u32", "u64"),
        requires=(("rank_within", 1, 0, 1),),
    ),
)
