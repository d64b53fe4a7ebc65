"""pad and mirror_pad: a border around a tensor.

pad fills with the value of its third input as it is stored, or with real zero in the output's parameters; mirror_pad
with the tensor's own elements (reflect: without the edge, symmetric: with it).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded, parameters_or_zero

# Source: docs/facts/litert.md 2.7; the kernel's rank limit, run.
_PAD_RANK = 5


def _paddings(call: Call) -> list[tuple[int, int]]:
    source, paddings = call.input(0), call.input(1, "paddings")
    if paddings.shape != (source.rank, 2):
        raise call.invalid("BT-PAD", f"paddings must have the shape [{source.rank}, 2], found {list(paddings.shape)}")
    values = call.integers(1, "paddings")
    if any(value < 0 for value in values):
        raise call.invalid("BT-PAD", f"paddings {values} must not be negative")
    return list(zip(values[0::2], values[1::2], strict=True))


def infer(call: Call) -> list[Shape]:
    """Each dimension grows by the padding before and after it."""
    call.expect((2, 3))
    source = call.input(0)
    call.rank(source, 0, _PAD_RANK)
    if call.has(2) and call.input(2).size != 1:
        raise call.invalid("BT-PAD", f"the value must be one number, found {call.input(2).size}")
    return [bounded(call, [e + a + b for e, (a, b) in zip(source.shape, _paddings(call), strict=True)])]


def lower(call: Call) -> Lowered:
    """Padding before each axis, and the value unless it is an input."""
    source, out = call.input(0), call.output
    parameters: dict[str, Attribute] = {
        "before": tuple(before for before, _ in _paddings(call)),
        "shape": out.shape,
        "value_is_input": call.has(2),
    }
    # s8 and s16 without quantization are plain integers; u8 always has a zero point, 0 when none is written.
    quantized = out.dtype == "u8" or (out.dtype in ("s8", "s16") and source.tensor.quantization is not None)
    if quantized and call.has(2) and parameters_or_zero(call.input(2)) != parameters_or_zero(out):
        raise call.invalid(
            "BT-QUANT-SAME",
            f"the value '{call.input(2).name}' must have the scale and zero point of the output",
            "the value is stored as it is, without conversion",
        )
    if not call.has(2):
        value = parameters["value"] = parameters_or_zero(out)[1] if quantized else 0
        if quantized and not out.type.minimum <= value <= out.type.maximum:
            raise call.invalid("BT-QUANT-ZERO-POINT", f"zero point {value} lies outside {out.type.title}")
    return Lowered(parameters)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A filled array with the input in the middle."""
    x = inputs[0]
    value = inputs[2].reshape(()) if step["value_is_input"] else step["value"]
    out = np.full(step["shape"], value, x.dtype)
    out[tuple(slice(start, start + extent) for start, extent in zip(step["before"], x.shape, strict=True))] = x
    return [out]


def _edge(call: Call) -> int:
    """Elements at each end that are not mirrored: 1 for reflect, 0 for symmetric."""
    return 1 if call.attribute("mode") == "reflect" else 0


def infer_mirror(call: Call) -> list[Shape]:
    """As pad; no padding exceeds what can be mirrored."""
    call.expect(2)
    shape = []
    for extent, (before, after) in zip(call.input(0).shape, _paddings(call), strict=True):
        if max(before, after) > extent - _edge(call):
            raise call.invalid(
                "BT-PAD", f"{max(before, after)} elements cannot be mirrored from {extent} ({call.attribute('mode')})"
            )
        shape.append(extent + before + after)
    return [bounded(call, shape)]


def lower_mirror(call: Call) -> Lowered:
    """Padding before and after each axis."""
    before, after = zip(*_paddings(call), strict=True) if call.input(0).rank else ((), ())
    return Lowered(
        parameters={"before": before, "after": after, "edge": _edge(call)},
        scratch=call.output.size * call.output.type.numpy.itemsize,
    )


def reference_mirror(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One axis after the other, by position."""
    out, edge = inputs[0], step["edge"]
    for axis, (before, after) in enumerate(zip(step["before"], step["after"], strict=True)):
        if before or after:
            extent = out.shape[axis]
            positions = np.concatenate(
                [
                    np.arange(before - 1 + edge, edge - 1, -1),
                    np.arange(extent),
                    np.arange(extent - 1 - edge, extent - 1 - edge - after, -1),
                ]
            )
            out = np.take(out, positions, axis=axis)
    return [out.copy() if out is inputs[0] else out]


OPERATORS = (
    Operator("pad", (), infer, lower, reference, "a border of one value", moves=True, mistaken_for=("mirror_pad",)),
    Operator(
        "mirror_pad", (), infer_mirror, lower_mirror, reference_mirror, "a border of mirrored elements", moves=True
    ),
)
