"""discrete_fourier: the Fourier transform of a signal along an axis, or of windows of it, in the signal's type.

Operands: a signal [..., 1] or, of complex numbers, [..., 2]; how many numbers a transform has (absent: all of the
axis, or the size of the window); the axis (absent: the attribute); a window; from where to where windows step. With
`framed`, the signal is [batch, time, 1 or 2] or, of real numbers, [batch, time], and the result is [batch, windows,
frequencies, 2]. `onesided`: only the frequencies up to the middle; of an inverse transform the result is real, and the
operand begins with those.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arithmetic import spectra
from ...rules import multiply_add
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded

LENGTH, AXIS, WINDOW, STEP = 1, 2, 3, 4


def _one(call: Call, position: int, role: str) -> int:
    values = call.integers(position, role)
    if len(values) != 1:
        raise call.invalid("BT-FOURIER", f"the {role} must be one number, found {len(values)}")
    return values[0]


def _geometry(call: Call) -> tuple[int, int, int]:
    """Axis, length, and how many frequencies or numbers come out."""
    x, framed, inverse, onesided = call.input(0), *(call.attribute(n) for n in ("framed", "inverse", "onesided"))
    call.rank(x, 2 if framed else 3, 3 if framed else 8)
    bare = x.rank == 2
    if (x.shape[-1] not in (1, 2) and not bare) or 0 in x.shape:
        raise call.invalid("BT-FOURIER", f"a signal ends in 1 or 2 numbers and is not empty, found {list(x.shape)}")
    given = _one(call, AXIS, "axis") if call.has(AXIS) else int(call.attribute("axis"))
    axis = call.axis(given, x.rank)
    if axis == x.rank - 1 and not bare:
        raise call.invalid("BT-FOURIER", "the last axis holds real and imaginary parts")
    if onesided and not framed and (x.shape[-1] == 1) == bool(inverse):
        raise call.invalid("BT-FOURIER", "half of the frequencies is what real signals have")
    count = x.shape[axis]
    if call.has(WINDOW):
        call.rank(call.input(WINDOW), 1)
        length = call.input(WINDOW).shape[0]
        if call.has(LENGTH) and _one(call, LENGTH, "length") != length:
            raise call.invalid("BT-FOURIER", f"the window has {length} numbers, the length is another one")
    elif call.has(LENGTH):
        length = _one(call, LENGTH, "length")
    elif framed:
        raise call.invalid("BT-FOURIER", "neither a window nor its length is given")
    else:
        length = 2 * (count - 1) if onesided and inverse else count
    half = length // 2 + 1
    if onesided and inverse and (count > length or not length):
        raise call.unsupported(
            "BT-FOURIER-HALF",
            f"the runtime writes {count} frequencies beyond its memory for {length}",
            "cut the signal",
        )
    if not 0 < length <= 1 << 24 or (framed and length > count):
        raise call.invalid("BT-FOURIER", f"a transform of {length} numbers over {count}")
    if not framed and length & (length - 1) and count > spectra.chirp_length(length):
        raise call.unsupported(
            "BT-FOURIER-LENGTH", f"the runtime writes {count} numbers beyond its memory for {length}", "cut the signal"
        )
    return axis, length, half if onesided and not inverse else length


def _windows(call: Call, length: int) -> tuple[int, int]:
    """How many windows there are, and their distance."""
    step = _one(call, STEP, "step")
    if step < 1:
        raise call.invalid("BT-FOURIER", f"windows step by {step}")
    return (call.input(0).shape[1] - length) // step + 1, step


def infer(call: Call) -> list[Shape]:
    """The signal's shape with other numbers along the axis, and real and imaginary parts."""
    call.expect((1, 5))
    axis, length, count = _geometry(call)
    shape = list(call.input(0).shape)
    if call.attribute("framed"):
        return [bounded(call, (shape[0], _windows(call, length)[0], count, 2))]
    shape[axis], shape[-1] = count, 1 if call.attribute("onesided") and call.attribute("inverse") else 2
    return [bounded(call, shape)]


def lower(call: Call) -> Lowered:
    """The axis, the length, and where windows lie."""
    axis, length, count = _geometry(call)
    framed = bool(call.attribute("framed"))
    windows, step = _windows(call, length) if framed else (0, 0)
    numbers = {"axis": axis, "length": length, "count": count, "windows": windows, "step": step}
    flags = {name: bool(call.attribute(name)) for name in ("inverse", "onesided")}
    return Lowered(
        {**numbers, **flags},
        inputs=(0, WINDOW) if call.has(WINDOW) else (0,),
        work=call.output.size * max(1, math.ceil(math.log2(length))),
        scratch=64 * (call.input(0).size + 4 * call.output.size + 4 * length),
    )


def reference(step: Step, inputs: Sequence[Any]) -> list[np.ndarray]:
    """Transforms along the last axis, which then goes back to its place."""
    x, window = inputs[0], inputs[1] if len(inputs) > 1 else None
    x = x[..., None] if x.ndim == 2 else x
    real, length = x.shape[-1] == 1, step["length"]
    if step["windows"]:
        places = np.arange(step["windows"])[:, None] * step["step"] + np.arange(length)
        parts = [x[..., part][:, places] for part in range(x.shape[-1])]
    else:
        parts = [np.moveaxis(x[..., part], step["axis"], -1) for part in range(x.shape[-1])]
    if step["inverse"] and step["onesided"]:
        parts = [_mirrored(part, length, sign) for part, sign in zip(parts, (1, -1), strict=True)]
    add = multiply_add.RULES[step.rules["multiply_add"]].pair
    found = spectra.transform((parts[0], parts[-1]), length, window, inverse=step["inverse"], real=real, add=add)
    kept = found[:1] if step["inverse"] and step["onesided"] else found
    result = np.stack([part[..., : step["count"]] for part in kept], -1)
    return [np.ascontiguousarray(result if step["windows"] else np.moveaxis(result, -2, step["axis"]))]


def _mirrored(part: np.ndarray, length: int, sign: int) -> np.ndarray:
    """The given frequencies, zeros, and from the end the given ones behind the first (but the last for an even
    length, which has one in the middle), wherever the middle is.
    """
    given = part.shape[-1]
    out = np.zeros((*part.shape[:-1], length), part.dtype)
    out[..., :given] = part
    turned = np.arange(1, given - (length % 2 == 0))
    out[..., length - turned] = part[..., turned] * part.dtype.type(sign)
    return out


OPERATOR = Operator(
    "discrete_fourier",
    ("multiply_add",),
    infer,
    lower,
    reference,
    "Fourier transforms of a signal or of its windows",
)
