"""equal, not_equal, greater, greater_equal, less, less_equal: truth values, with NumPy broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...graph import Attribute
from ...rules import compare, rescale
from ..core.base import Call, Lowered, Operator, Step, broadcast_shape
from ..core.elementwise import blockwise

_COMPARISONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
}


def lower(call: Call) -> Lowered:
    """Both inputs' scales as multipliers; 16-bit integers without a scale are compared as they are."""
    first, second = call.input(0), call.input(1)
    plain = first.dtype == "s16" and first.tensor.quantization is None
    if plain or call.rules.get("compare", "raw") == "raw":
        return Lowered(parameters={"form": "plain"})
    parameters: dict[str, Attribute] = {"form": "rescaled"}
    arrays: dict[str, np.ndarray] = {}
    for prefix, operand in (("first_", first), ("second_", second)):
        if not operand.scale < 1:
            raise call.invalid(
                "BT-COMPARE-SCALE",
                f"scale {float(operand.scale)!r} of '{operand.name}' must be below 1",
                "at 1 the kernels abort, above they shift by a negative amount; quantize with a smaller scale",
            )
        parameters[prefix + "zero_point"] = operand.zero_point
        arrays.update(rescale.prepare(call.rules["rescale"], [operand.scale], prefix))
    return Lowered(parameters=parameters, arrays=arrays)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """NaN is unequal to everything and in no order; -0 equals 0."""
    first, second = inputs
    comparison = _COMPARISONS[step.operator]
    truth = np.dtype(np.bool_)
    if first.dtype == truth:
        # NumPy compares bytes of truth values in some of its loops.
        first, second = first.view(np.uint8) != 0, second.view(np.uint8) != 0
    if step["form"] == "plain":
        with np.errstate(invalid="ignore"):
            return [blockwise(comparison, [first, second], truth, first.dtype)]
    prepare = compare.RULES[step.rules["compare"]]

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        one = prepare(a, step["first_zero_point"], step.rules["rescale"], step.arrays, "first_")
        two = prepare(b, step["second_zero_point"], step.rules["rescale"], step.arrays, "second_")
        return comparison(one, two)

    return [blockwise(block, [first, second], truth)]


OPERATORS = tuple(
    Operator(
        stem,
        ("compare", "rescale"),
        broadcast_shape,
        lower,
        reference,
        f"element-wise {stem.replace('_', ' ')}",
        elementwise=2,
        compares=True,
        truth=comparison,
        commutes=stem in ("equal", "not_equal"),
    )
    for stem, comparison in _COMPARISONS.items()
)
