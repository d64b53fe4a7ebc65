"""Mappings of conversions between real numbers, quantized values and sums."""

from __future__ import annotations

import numpy as np

from ...graph import Attribute
from .base import Mappers, Source
from .layers import range_of

_TYPES = {"int8": "s8", "uint8": "u8"}
_ENDS = ("_output1", "_output2")
# What inputs that are quantized values already stand for: half a step more than the largest quantized value.
_CODES = {"s8": (-127.5, 127.5), "u8": (0.0, 255.5)}


def calibrated(source: Source) -> bool:
    """Whether the node holds both ends of the range of its result."""
    return source.has("min_calib_range") & source.has("max_calib_range")


def calibrated_type(source: Source) -> str:
    """u8 when the calibrated range has nothing below 0, else s8."""
    return "u8" if calibrated(source) and source.real("min_calib_range") >= 0 else "s8"


def _chosen(source: Source, default: str) -> str:
    """Attribute out_type."""
    name = source.text("out_type", default, ("auto", "int8", "uint8"))
    return calibrated_type(source) if name == "auto" else _TYPES[name]


def _quantize(source: Source) -> None:
    source.expect(3)
    dtype = _TYPES[source.text("out_type", "uint8", ("int8", "uint8"))]
    source.type(0)
    low, high = source.ranges(1, 2)
    _quantized(source, low, high, dtype, "1")


def _quantized(source: Source, low: int, high: int, dtype: str, version: str) -> None:
    """Quantized values of a range; u8 keeps the range as it is."""
    (output,) = source.emit(
        "quantize", [source.inputs[0], low, high], [dtype], ["_output0"], {"version": version, "ranged": True}
    )
    source.keeps_shape(output, 0)
    if dtype == "s8":
        low, high = range_of("symmetric", source, [low, high], _ENDS, {"unsigned": False})
    else:
        low, high = (
            source.emit("identity", [end], ["f32"], [name])[0] for end, name in zip((low, high), _ENDS, strict=True)
        )
    source.give(output, low, high)


def _quantize_v2(source: Source) -> None:
    source.expect(1)
    given = source.type(0)
    dtype = _chosen(source, "int8")
    if calibrated(source):
        low, high = (source.end(source.real(f"{end}_calib_range"), f"{end}_calib") for end in ("min", "max"))
    elif given in _CODES:
        low, high = (source.end(value, role) for value, role in zip(_CODES[given], ("low", "high"), strict=True))
    else:
        low, high = range_of("values", source, source.inputs[:1], ["_low", "_high"])
    if given in _CODES:
        source.give(source.inputs[0], low, high)
    else:
        _quantized(source, low, high, dtype, "2")


def _quantize_asym(source: Source) -> None:
    """u8 by a scale and a shift, which are given beside it: what recurrent layers read."""
    source.expect(1)
    source.type(0)
    if calibrated(source):
        low, high = (source.end(source.real(f"{end}_calib_range"), f"{end}_calib") for end in ("min", "max"))
    else:
        low, high = range_of("values", source, source.inputs[:1], ["_low", "_high"])
    most = source.end(255, "most")

    def of_two(stem: str, one: int, two: int, name: str) -> int:
        (found,) = source.emit(stem, [one, two], ["f32"], [name], {"activation": "none", "broadcasts": True})
        return found

    scale = of_two("div", most, of_two("sub", high, low, "_span"), "_scale")
    shift = of_two("sub", most, of_two("mul", high, scale, "_scaled_high"), "_shift")
    moved = of_two("add", of_two("mul", source.inputs[0], scale, "_scaled"), shift, "_moved")
    one, zero = (source.builder.constant(v, f"{source.label}_{v}") for v in (np.float32(1), np.uint8(0)))
    whole: dict[str, Attribute] = {"axis": -1, "block_size": 0, "version": "asymmetric"}
    (output,) = source.emit("quantize", [moved, one, zero], ["u8"], ["_output"], whole)
    source.keeps_shape(output, 0)
    source.give(output, scale, shift)


def _dequantize(source: Source) -> None:
    source.expect(3)
    source.text("out_type", "float32", ("float32",))
    source.type(0, "s8")
    low, high = source.ranges(1, 2)
    outputs = source.emit("dequantize", [source.inputs[0], low, high], ["f32"], ["_output"], {"ranged": True})
    source.keeps_shape(outputs[0], 0)
    source.give(*outputs)


def _requantize(source: Source) -> None:
    source.expect(3)
    dtype = _chosen(source, "int8")
    source.type(0, "s32")
    low, high = source.ranges(1, 2)
    unsigned: dict[str, Attribute] = {"unsigned": dtype == "u8"}
    if calibrated(source):
        ends = [source.end(source.real(f"{end}_calib_range"), f"{end}_calib") for end in ("min", "max")]
        wanted = range_of("symmetric", source, ends, _ENDS, unsigned)
    else:
        wanted = range_of("sums", source, [source.inputs[0], low, high], _ENDS, unsigned)
    operands = [source.inputs[0], *wanted, low, high]
    (output,) = source.emit("quantize", operands, [dtype], ["_output0"], {"ranged": True})
    source.keeps_shape(output, 0)
    source.give(output, *wanted)


MAPPERS: Mappers = {
    "_contrib_dequantize": _dequantize,
    "_contrib_quantize": _quantize,
    "_contrib_quantize_asym": _quantize_asym,
    "_contrib_quantize_v2": _quantize_v2,
    "_contrib_requantize": _requantize,
}
