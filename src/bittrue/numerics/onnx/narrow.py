"""Rows of `onnx`: conversions to and from narrow types."""

from __future__ import annotations

from ..onnxruntime.movement import INTEGERS, NARROW
from ..table import Row

_FLOATS = "f16|bf16|f32|f64"
_EIGHT = "|".join(NARROW)
# Types without infinity and NaN: these always saturate.
_SMALL = "f4e2m1|f6e2m3|f6e3m2"
_POWER = "f8e8m0"
_FEW_BITS = "u2|s2|u4|s4"
_WHOLE = "|".join(INTEGERS)
_NARROW_FLOATS = f"{_EIGHT}|{_SMALL}|{_POWER}"
_EVERYTHING = f"{_FLOATS}|{_NARROW_FLOATS}|{_FEW_BITS}|{_WHOLE}|bool"
_TEXT = "the specification's tables, checked against fractions; vectors of the specification"
_UNSAID = "numbers beyond an integer type are left open by the specification: here x86's conversion and its low bits"
_SIGNS = "the specification leaves open what negative numbers become; here their signs are dropped"

_MODES = {"up": "up", "down": "down", "nearest": "nearest_up"}


def _powers(mode: str, rule: str) -> tuple[Row, Row]:
    types, chosen = (f"{_EVERYTHING} -> {_POWER}",), ("attribute_is", "round_mode", mode)
    return (
        Row(
            "convert_narrow",
            types,
            {"power_of_two": f"{rule}_missing"},
            _TEXT,
            limit=_SIGNS,
            when=(chosen, ("attribute_is", "saturate", False)),
        ),
        Row("convert_narrow", types, {"power_of_two": f"{rule}_saturate"}, _TEXT, limit=_SIGNS, when=(chosen,)),
    )


ROWS: tuple[Row, ...] = (
    Row(
        "convert_narrow",
        (f"{_NARROW_FLOATS}|{_FEW_BITS} -> bool|f64", f"{_FEW_BITS} -> {_WHOLE}|{_FEW_BITS}"),
        {},
        _TEXT,
    ),
    Row("convert_narrow", (f"{_WHOLE}|bool -> {_FEW_BITS}",), {}, _TEXT),
    Row("convert_narrow", (f"{_NARROW_FLOATS}|{_FEW_BITS} -> f16|bf16|f32",), {"narrow": "even_overflow"}, _TEXT),
    Row(
        "convert_narrow",
        (f"{_FLOATS}|{_NARROW_FLOATS} -> {_FEW_BITS}", f"{_NARROW_FLOATS} -> {_WHOLE}"),
        {"cast": "truncate_low_bits"},
        _TEXT,
        limit=_UNSAID,
    ),
    Row(
        "convert_narrow",
        (f"{_EVERYTHING} -> {_EIGHT}",),
        {"narrow": "even_overflow"},
        _TEXT,
        when=(("attribute_is", "saturate", False),),
    ),
    Row("convert_narrow", (f"{_EVERYTHING} -> {_EIGHT}|{_SMALL}",), {"narrow": "even_saturate"}, _TEXT),
    *(row for mode, rule in _MODES.items() for row in _powers(mode, rule)),
)
