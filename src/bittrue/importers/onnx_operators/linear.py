"""Mappings of QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, all versions."""

from __future__ import annotations

from ...graph import Attribute
from ..onnx_tensors import type_name
from .base import MICROSOFT, Mappers, Source

_EIGHT = ("u8", "s8")
_FLOATS_8 = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")
# Types that a version added, with the version: of quantized values, of real numbers, of scales.
_STORED = {
    10: _EIGHT,
    19: _FLOATS_8,
    21: ("u16", "s16", "u4", "s4"),
    23: ("f4e2m1",),
    25: ("u2", "s2"),
    28: ("f6e2m3", "f6e3m2"),
}
_REAL = {10: ("f32",), 19: ("f16", "bf16")}
_SCALE = {**_REAL, 24: ("f8e8m0",)}
_MICROSOFT_STORED = (*_EIGHT, "u16", "s16", "u4", "s4")
_MICROSOFT_REAL = ("f32", "f16")
# A quotient in the precision of the scale, where that is none that numbers can be divided in.
_PRECISIONS = ("f32", "f16", "bf16", "f64")


def _until(table: dict[int, tuple[str, ...]], version: int) -> tuple[str, ...]:
    return tuple(name for first, names in table.items() if first <= version for name in names)


def _expect(source: Source, role: str, found: str, wanted: tuple[str, ...]) -> None:
    if found not in wanted:
        raise source.invalid(
            "BT-ONNX-TYPE",
            f"{role} is {found}, which {source.op_type} version {source.version} does not define",
            f"types are {', '.join(wanted)}",
        )


def _types(source: Source) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Types of quantized values, of real numbers and of scales that this version has."""
    if source.domain == MICROSOFT:
        return _MICROSOFT_STORED, _MICROSOFT_REAL, _MICROSOFT_REAL
    version = source.version
    return _until(_STORED, version), _until(_REAL, version), _until(_SCALE, version)


def _places(source: Source) -> dict[str, int | str]:
    """Which elements share a scale; `domain` tells runtimes with two kernels which one is meant."""
    has_axis = source.domain == MICROSOFT or source.version >= 13
    return {
        "axis": source.integer("axis", 1) if has_axis else 1,
        "block_size": source.integer("block_size", 0) if source.version >= 21 else 0,
        "domain": source.domain,
    }


def _type_attribute(source: Source, name: str, since: int) -> str:
    """A type that an attribute names, or nothing."""
    number = source.integer(name, 0) if source.version >= since else 0
    return type_name(number, source.place) if number else ""


def _quantize(source: Source) -> None:
    """The quotient's precision is settled here: the attribute, else the type of the scale.

    A scale that is a power of two alone has no precision: it takes that of x, an integer x counting as f32. Integers
    divided by integers do not round.
    """
    stored, real, scales = _types(source)
    x, scale, version = source.type(0), source.type(1), source.version
    whole = () if source.domain == MICROSOFT else ("s32",)
    _expect(source, "x", x, (*real, *whole))
    if source.domain == MICROSOFT or 19 <= version < 23:
        _expect(source, "the scale", scale, (x,))
    else:
        _expect(source, "the scale", scale, (*scales, *(whole if version >= 23 else ())))
    target = named = _type_attribute(source, "output_dtype", 21)
    if source.present(2):
        if target and target != source.type(2):
            raise source.invalid("BT-ONNX-TYPE", f"output_dtype is {target}, the zero point is {source.type(2)}")
        target = source.type(2)
    target = target or "u8"
    _expect(source, "the output", target, stored)
    precision = _type_attribute(source, "precision", 23)
    if precision:
        _expect(source, "precision", precision, _PRECISIONS)
    elif scale == "s32":
        precision = "f64"
    else:
        precision = scale if scale in _PRECISIONS else x if x in _PRECISIONS else "f32"
    saturate = int(source.flag("saturate", True)) if source.version >= 19 else 1
    attributes: dict[str, Attribute] = {**_places(source), "saturate": saturate, "precision": precision}
    if named:
        attributes["names_type"] = True
    source.emit("quantize", target, attributes)


def _dequantize(source: Source) -> None:
    stored, real, scales = _types(source)
    scale = source.type(1)
    _expect(source, "x", source.type(0), (*stored, "s32"))
    _expect(source, "the scale", scale, scales)
    if source.present(2) and source.type(2) != source.type(0):
        raise source.invalid("BT-ONNX-TYPE", f"x is {source.type(0)}, its zero point {source.type(2)}")
    result = _type_attribute(source, "output_dtype", 23) or scale
    _expect(source, "the output", result, real)
    source.emit("dequantize", result, _places(source))


def _dynamic(source: Source) -> None:
    source.emit("dynamic_quantize_linear", ("u8", "f32", "u8"))


MAPPERS: Mappers = {
    ("", "DequantizeLinear"): _dequantize,
    ("", "DynamicQuantizeLinear"): _dynamic,
    ("", "QuantizeLinear"): _quantize,
    (MICROSOFT, "DequantizeLinear"): _dequantize,
    (MICROSOFT, "QuantizeLinear"): _quantize,
}
