"""Rows of `onnx`: QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.

What the specification leaves open is decided like this: both operands of the division are rounded to its precision, as
the reference evaluator does where `precision` says so; NaN becomes the smallest integer, as in every implementation
tried; the product of DequantizeLinear is rounded once, to the output's type.
"""

from __future__ import annotations

from ..table import Row

_TEXT = "text of versions 10 to 28, oracle in exact fractions; vectors of onnx 1.23.2 and 1.12"
_INTEGERS = ("u8", "s8", "u16", "s16", "u4", "s4", "u2", "s2")
_EIGHT = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")
_NARROWER = ("f6e2m3", "f6e3m2", "f4e2m1")
_OPERANDS = "f32|f16|bf16|s32 f32|f16|bf16|s32|f8e8m0"
_QUOTIENTS = {"f32": "binary32", "f16": "binary16", "bf16": "brain16", "f64": "binary64"}


def _quantize(precision: str, quotient: str) -> tuple[Row, ...]:
    when = (("attribute_is", "precision", precision),)
    divided = {"zero_points": "used", "quotient": quotient}

    def row(types: tuple[str, ...], finish: dict[str, str], when: tuple[tuple[object, ...], ...]) -> Row:
        return Row("quantize", (f"{_OPERANDS} -|T -> T",), {**divided, **finish}, _TEXT, where=types, when=when)

    return (
        row(_INTEGERS, {"to_integer": "clamp_even"}, when),
        row(_EIGHT, {"narrow": "even_overflow"}, (*when, ("attribute_is", "saturate", 0))),
        row((*_EIGHT, *_NARROWER), {"narrow": "even_saturate"}, when),
    )


def _dequantize(types: tuple[str, ...], zero_points: str) -> Row:
    return Row(
        "dequantize",
        ("T f32|f16|bf16|f8e8m0 -|T -> f32|f16|bf16",),
        {"zero_points": zero_points, "dequantize": "exact_multiply_odd", "narrow": "even_overflow"},
        _TEXT,
        where=types,
    )


ROWS: tuple[Row, ...] = (
    *(row for precision, quotient in _QUOTIENTS.items() for row in _quantize(precision, quotient)),
    _dequantize((*_INTEGERS, *_EIGHT, *_NARROWER), "used"),
    _dequantize(("s32",), "zero"),
    Row(
        "dynamic_quantize_linear",
        ("f32 -> u8 f32 u8",),
        {"dynamic_range": "binary32_over_255", "quotient": "binary32", "to_integer": "clamp_even"},
        "function body of version 11, every operation rounded once; vectors of onnx 1.23.2 and 1.12",
        limit="refused while running: zeros alone, no numbers, NaN, infinities (the body divides by 0 or stores NaN)",
    ),
)
