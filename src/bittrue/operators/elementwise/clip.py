"""clip: raised to a lower end, then lowered to an upper end; both are operands of one element and may be absent.

Results may have another type, of 8 bits or binary32, where their numbers stay the same; one that the type does not hold
is an error. Inputs of 8 bits then have a table with an entry per value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...graph import DATA_TYPES, Attribute
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.elementwise import blockwise
from ..quantization.level_storage import at_plan_time, quantized


def infer(call: Call) -> list[Shape]:
    """The first input's shape."""
    call.expect((1, 3))
    for position, role in ((1, "lower end"), (2, "upper end")):
        if call.has(position) and call.input(position).size != 1:
            raise call.invalid(
                "BT-CLIP-END", f"the {role} must be one number, found shape {list(call.input(position).shape)}"
            )
    return [call.input(0).shape]


def lower(call: Call) -> Lowered:
    """Known ends; an absent end is the last finite number of the type, or none where the type changes."""
    kind = call.output.type
    if call.input(0).dtype != kind.name:
        return _into_another_type(call)
    if kind.is_integer:
        low, high = kind.minimum, kind.maximum
        return Lowered(parameters={"low": int(low), "high": int(high)})
    largest = float(np.finfo(kind.numpy).max)
    return Lowered(parameters={"low": -largest, "high": largest})


def _into_another_type(call: Call) -> Lowered:
    low, high = (
        float(call.constant(position, "end").reshape(-1)[0]) if call.has(position) else usual
        for position, usual in ((1, -np.inf), (2, np.inf))
    )
    source, dtype = call.input(0), call.output.dtype
    parameters: dict[str, Attribute] = {"low": low, "high": high, "dtype": dtype}
    if not source.type.is_integer:
        return Lowered(parameters, inputs=(0,))
    entries = at_plan_time(call, lambda: _converted(quantized(source.dtype), low, high, dtype, call.place))
    parameters["minimum"] = source.type.minimum
    arrays = {"table": entries.astype(np.int64) if entries.dtype.kind != "f" else entries}
    return Lowered(parameters, arrays, inputs=(0,))


def _limited(values: np.ndarray, low: Any, high: Any) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        raised = np.where(values < low, low, values)
        return np.where(raised > high, high, raised)


def _converted(values: np.ndarray, low: float, high: float, dtype: str, place: str) -> np.ndarray:
    limited = _limited(values.astype(np.float32), np.float32(low), np.float32(high))
    with np.errstate(invalid="ignore"):
        stored = limited.astype(DATA_TYPES[dtype].numpy)
    wrong = limited[~((stored == limited) | np.isnan(limited) & (stored.dtype.kind == "f"))]
    if wrong.size:
        raise RunError(
            "BT-LEVEL",
            f"a result is {float(wrong.reshape(-1)[0])!r}, which {dtype} does not hold",
            place=place,
            advice="inputs that are no numbers, or no whole ones, have no place in a tensor of 8 bits",
        )
    return stored


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """x < low ? low : x, then that > high ? high : that; so NaN and -0 next to 0 stay, and ends that are NaN do
    nothing.
    """
    x = inputs[0]
    if "table" in step.arrays:
        return [step.arrays["table"].astype(DATA_TYPES[step["dtype"]].numpy)[x.astype(np.intp) - step["minimum"]]]
    if "dtype" in step.parameters:
        low, high, dtype = step["low"], step["high"], step["dtype"]
        block = np.dtype(np.float32)
        result = DATA_TYPES[dtype].numpy
        return [blockwise(lambda part: _converted(part, low, high, dtype, step.place), [x], result, block)]
    ends = [
        inputs[i].reshape(-1)[0] if len(inputs) > i and inputs[i] is not None else x.dtype.type(step[name])
        for i, name in ((1, "low"), (2, "high"))
    ]
    return [blockwise(lambda values: _limited(values, *ends), [x], x.dtype, x.dtype)]


def limits(step: Step, values: Sequence[np.ndarray | None]) -> tuple[float, float] | None:
    """Both ends, where they are known and keep the type."""
    if "dtype" in step.parameters or "table" in step.arrays:
        return None
    ends = []
    for position, name in ((1, "low"), (2, "high")):
        given = len(step.inputs) > position and step.inputs[position] is not None
        value = values[position] if given else np.array(step[name])
        if value is None:
            return None
        ends.append(float(value.reshape(-1)[0]))
    return ends[0], ends[1]


OPERATOR = Operator(
    "clip",
    (),
    infer,
    lower,
    reference,
    "min(max(x, low), high), ends as operands",
    limits=limits,
    elementwise=1,
)
