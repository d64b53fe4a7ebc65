"""convert: the same number in another type. NaNs keep their sign; narrowed ones are quiet.

Widened from 16 bits NaNs keep their payload, and whether they become quiet is the rule `widen`, if there is one; what
binary32's become in f16 is the rule `half_nan`.
With `one_nan`, bf16 has one NaN for all of binary32, as kernels store it that widen their operands.
Integers keep their low bits, anything but 0 is true; f64 and integers reach f16 and bf16 by way of f32. Floats of 8
bits and fewer are made by the rule `narrow`, scales of 8 exponent bits by `power`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import DATA_TYPES, Attribute, DataType
from ...rules import cast as cast_rules
from ...rules import half_nan, power_code, widen
from ...rules import narrow as narrow_rules
from ..core.base import Call, Lowered, Operator, Step, same_shape
from ..core.elementwise import blockwise, in_lanes
from .cast import narrow

_ONE_NAN = 0x7FC1
# Elements that a vector conversion takes at once, by the source and the bits of the target.
_LANES = {
    **{("bf16", bits): lanes for bits, lanes in ((8, 16), (16, 8), (32, 8))},
    **{("f32", bits): lanes for bits, lanes in ((8, 8), (16, 8), (32, 4))},
    **{("f64", bits): lanes for bits, lanes in ((8, 16), (16, 8), (32, 4))},
}


def lower(call: Call) -> Lowered:
    """The two types, how scales are rounded, and how many elements vectors take at once."""
    source, target = call.input(0), call.output
    parameters: dict[str, Attribute] = {"from": source.dtype, "to": target.dtype}
    if target.dtype == "f8e8m0":
        rounding = call.attribute("round_mode")
        if rounding not in power_code.ROUNDINGS:
            raise call.invalid("BT-CONVERT", f"round_mode '{rounding}' is not among {list(power_code.ROUNDINGS)}")
        parameters.update(round_mode=rounding, saturate=bool(call.attribute("saturate")))
    if target.dtype == "bf16" and source.dtype == "f32" and call.node.attributes.get("one_nan"):
        parameters["one_nan"] = True
    if "cast_tail" in call.rules:
        parameters["lanes"] = _LANES[source.dtype, target.type.bits]
    return Lowered(parameters, scratch=16 * source.size)


def _to_integer(step: Step, x: np.ndarray, target: DataType) -> np.ndarray:
    low, high = target.minimum, target.maximum
    body, real = cast_rules.RULES[step.rules["cast"]], np.dtype(np.float64)
    if "cast_tail" not in step.rules:
        if target.bits < 8:
            # Stored wider than it is: the low bits, with their sign.
            return blockwise(lambda block: (body(block, low, high) - low & high - low) + low, [x], target.numpy, real)
        return blockwise(lambda block: body(block, low, high), [x], target.numpy, real)
    tail, split = cast_rules.RULES[step.rules["cast_tail"]], x.size // step["lanes"] * step["lanes"]
    return in_lanes(
        lambda block: body(block, low, high), lambda block: tail(block, low, high), split, [x], target.numpy, real
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Float to integer by the rules."""
    x, source, target = np.asarray(inputs[0], order="C"), DATA_TYPES[step["from"]], DATA_TYPES[step["to"]]
    if source.name == target.name:
        return [x.copy()]
    if target.name == "bool":
        return [np.asarray(x.astype(np.float32) != 0) if source.is_float and x.itemsize == 1 else x != 0]
    with np.errstate(over="ignore", invalid="ignore"):
        if source.name in ("f16", "bf16"):
            x = widen.RULES[step.rules.get("widen", "exact")](x)
        elif source.is_float and x.itemsize == 1:
            x = x.astype(np.float32)
        if target.name == "f8e8m0":
            codes = power_code.RULES[step.rules["power_code"]](x, step["round_mode"], step["saturate"])
            return [codes.view(target.numpy)]
        if target.is_float and target.numpy.itemsize == 1:
            real = x if source.is_float else x.astype(np.float32)
            return [narrow_rules.RULES[step.rules["narrow"]](real, target.name).view(target.numpy)]
        if target.is_integer and target.bits < 8 and not source.is_float:
            low, mask = target.minimum, target.maximum - target.minimum
            return [blockwise(lambda block: (block - low & mask) + low, [x], target.numpy)]
        if source.is_float and target.is_integer:
            return [_to_integer(step, x, target)]
        if target.name in ("f16", "bf16"):
            result = narrow(x.astype(np.float32), target.numpy)
            if "one_nan" in step.parameters:
                result.view(np.uint16)[np.isnan(x)] = _ONE_NAN
            if "half_nan" in step.rules:
                places = np.flatnonzero(np.isnan(x))
                bits = half_nan.RULES[step.rules["half_nan"]](x.reshape(-1).view(np.uint32)[places], places, x.size)
                result.reshape(-1).view(np.uint16)[places] = bits
            return [result]
        return [x.astype(target.numpy, copy=x is inputs[0])]


OPERATOR = Operator(
    "convert",
    ("cast", "cast_tail", "half_nan", "narrow", "power_code", "widen"),
    same_shape,
    lower,
    reference,
    "the same number in another type",
    elementwise=1,
)
