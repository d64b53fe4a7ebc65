"""maximum and minimum: of the quantized values, whatever their scales say; slot `extreme`: what becomes of NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...rules import extreme
from ..core.base import Call, Lowered, Operator, Step, broadcast_shape
from ..core.elementwise import blockwise


def lower(call: Call) -> Lowered:
    """Whether operands change places: where the rule says so, a first one of one element along the last axis does."""
    rule = extreme.RULES.get(call.rules.get("extreme", ""))
    shape = call.output.shape
    axis = next((axis for axis in reversed(range(len(shape))) if shape[axis] != 1), None)
    sizes = (1,) * (len(shape) - call.input(0).rank) + call.input(0).shape
    return Lowered({"exchanged": rule is not None and rule.exchanges and (axis is None or sizes[axis] == 1)})


def _choose(comparison: Callable[[np.ndarray, np.ndarray], np.ndarray], sign: int) -> Callable[..., list[np.ndarray]]:
    """`first if comparison(first, second) else second` without a rule: a NaN, or two equal zeros, give the second."""

    def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        first, second = inputs[::-1] if step["exchanged"] else inputs
        rule = extreme.RULES[step.rules["extreme"]] if "extreme" in step.rules else None

        def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            if rule is not None:
                return rule.apply(np.stack([a, b], axis=1), sign)
            with np.errstate(invalid="ignore"):
                return np.where(comparison(a, b), a, b)

        return [blockwise(block, [first, second], first.dtype, first.dtype)]

    return reference


def _operator(stem: str, comparison: Callable[[np.ndarray, np.ndarray], np.ndarray], sign: int, word: str) -> Operator:
    reference = _choose(comparison, sign)
    other = "minimum" if sign > 0 else "maximum"
    return Operator(
        stem,
        ("extreme",),
        broadcast_shape,
        lower,
        reference,
        f"the {word} of two elements",
        elementwise=2,
        compares=True,
        largest=sign > 0,
        commutes=True,
        mistaken_for=(other, "add", "mul", "sub"),
    )


OPERATORS = (_operator("maximum", np.greater, 1, "larger"), _operator("minimum", np.less, -1, "smaller"))
