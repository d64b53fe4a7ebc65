"""reduce_window: one value per position of a sliding window."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from ...graph import Attribute
from ...records import replace
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.geometry import spatial_shape, windows
from ..core.indexing import bounded
from ..movement import dilate

_MOST_AXES = 6
# Operands have 64 bits.
_MOST = 2**63 - 1
_ROLES = ("window", "strides", "dilations")
Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]

# Of equal numbers the accumulator stays; where a NaN takes part, the element.
_FUNCTIONS: dict[str, Combine] = {
    "add": np.add,
    "mul": np.multiply,
    "minimum": lambda a, b: np.where(a <= b, a, b),
    "maximum": lambda a, b: np.where(a >= b, a, b),
    "all": np.logical_and,
    "any": np.logical_or,
}


def _geometry(call: Call) -> dict[str, tuple[int, ...]]:
    call.rank(call.input(0), 1, _MOST_AXES)
    if "window" not in call.node.attributes:
        return {role: tuple(call.integers(place, role)) for place, role in enumerate(_ROLES, 2)}
    found = {role: tuple(call.attribute(role)) for role in _ROLES}
    if any(len(numbers) != call.input(0).rank or min(numbers) < 1 for numbers in found.values()):
        raise call.invalid("BT-WINDOW", f"{found} must be {call.input(0).rank} numbers of at least 1 each")
    return found


def _spread(call: Call) -> tuple[Shape, tuple[int, ...], tuple[int, ...]]:
    """The shape that windows move over, where the first element lies in it, and how far apart elements are."""
    shape = call.input(0).shape
    rank = len(shape)
    if "window" not in call.node.attributes:
        return shape, (0,) * rank, (1,) * rank
    factors, paddings = tuple(call.attribute("gaps")), tuple(call.attribute("paddings"))
    if len(factors) != rank or len(paddings) != 2 * rank or min(factors) < 1 or 0 in shape:
        raise call.invalid("BT-WINDOW", f"gaps {factors} and paddings {paddings} do not fit shape {list(shape)}")
    low, high = paddings[::2], paddings[1::2]
    around = zip(shape, factors, low, high, strict=True)
    sizes = tuple((size - 1) * factor + 1 + before + after for size, factor, before, after in around)
    if min(sizes) < 1:
        raise call.invalid("BT-WINDOW", f"paddings {paddings} leave nothing of shape {list(shape)}")
    return sizes, low, factors


def infer(call: Call) -> list[Shape]:
    """Positions at which the window lies inside."""
    call.expect(2 if "window" in call.node.attributes else 5)
    if call.input(1, "first value").size < 1:
        raise call.invalid("BT-WINDOW", "the first value is empty")
    function = call.attribute("reduce_function")
    if function not in _FUNCTIONS:
        raise call.invalid("BT-WINDOW", f"function '{function}' is not one of {', '.join(_FUNCTIONS)}")
    if call.input(0).dtype == "bool" and function == "add":
        raise call.invalid("BT-WINDOW", "sums of truth values are no truth values", "use the function any")
    taps, strides, dilations = _geometry(call).values()
    found = windows(call, _spread(call)[0], taps, strides, dilations, size="floor_or_none", most=_MOST)
    return [bounded(call, spatial_shape(found))]


def lower(call: Call) -> Lowered:
    """Window, strides, dilations and function."""
    geometry, (sizes, low, factors) = _geometry(call), _spread(call)
    # What is spread or cropped first; all others have windows of the tensor as it is.
    around: dict[str, Attribute] = {"spread": sizes, "low": low, "factors": factors}
    moves = sizes != call.input(0).shape or any(low)
    return Lowered(
        parameters={
            **geometry,
            "function": str(call.attribute("reduce_function")),
            "shape": call.output.shape,
            **(around if moves else {}),
        },
        work=call.output.size * math.prod(geometry["window"]),
        scratch=(3 * call.output.size + math.prod(sizes)) * call.output.type.numpy.itemsize,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """From the first value on, element by element of the window in row-major order; integers wrap."""
    x, combine = inputs[0], _FUNCTIONS[step["function"]]
    if "spread" in step.parameters:
        (x,) = dilate.reference(replace(step, parameters={**step.parameters, "shape": step["spread"]}), inputs[:2])
    out = np.full(step["shape"], inputs[1].reshape(-1)[0], x.dtype)
    if not out.size:
        return [out]
    for place in itertools.product(*map(range, step["window"])):
        part = tuple(
            slice(at * d, at * d + (size - 1) * s + 1, s)
            for at, d, s, size in zip(place, step["dilations"], step["strides"], step["shape"], strict=True)
        )
        with np.errstate(all="ignore"):
            out = combine(out, x[part]).astype(x.dtype, copy=False)
    return [out]


OPERATOR = Operator("reduce_window", (), infer, lower, reference, "one value per position of a sliding window")
