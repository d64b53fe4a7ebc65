"""Integers bit by bit, with NumPy broadcasting; scales and zero points are ignored.

A truth value is one bit in a byte of its own: bitwise_not turns that bit, the others work on the whole byte, which
shows where a byte is neither 0 nor 1. What shifts do with places that reach the width, or are negative, is a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ...rules import shift
from ..core.base import Call, Lowered, Operator, Step, broadcast_shape, nothing_to_prepare, same_shape
from ..core.elementwise import blockwise


def _words(x: np.ndarray) -> np.ndarray:
    return x.view(np.uint8) if x.dtype == np.bool_ else x


def reference_not(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Every bit the other way; of a truth value the only one."""
    x = inputs[0]
    return [np.asarray(_words(x) ^ np.uint8(1)).view(x.dtype) if x.dtype == np.bool_ else np.asarray(np.invert(x))]


def reference(step: Step, inputs: Sequence[np.ndarray], function: Callable[..., np.ndarray]) -> list[np.ndarray]:
    """Element by element in the type of the inputs."""
    first, second = (_words(x) for x in inputs)
    return [blockwise(function, [first, second], first.dtype, first.dtype).view(inputs[0].dtype)]


def lower_shift(call: Call) -> Lowered:
    """Whether bits move up."""
    return Lowered({"up": bool(call.attribute("up"))})


def reference_shift(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's way with places."""
    rule, up = shift.RULES[step.rules["shift"]], step["up"]
    return reference(step, inputs, lambda x, places: rule(x, places, up))


def _operator(stem: str, function: Callable[[np.ndarray, np.ndarray], np.ndarray], summary: str) -> Operator:
    return Operator(
        stem,
        (),
        broadcast_shape,
        nothing_to_prepare,
        partial(reference, function=function),
        summary,
        elementwise=2,
        commutes=True,
    )


OPERATORS = (
    _operator("bitwise_and", np.bitwise_and, "bits that two integers share"),
    _operator("bitwise_or", np.bitwise_or, "bits that one of two integers has"),
    Operator(
        "bitwise_not", (), same_shape, nothing_to_prepare, reference_not, "every bit the other way", elementwise=1
    ),
    _operator("bitwise_xor", np.bitwise_xor, "bits in which two integers differ"),
    Operator(
        "shift", ("shift",), broadcast_shape, lower_shift, reference_shift, "bits moved up or down", elementwise=2
    ),
)
