"""Functions of one real number, element by element, most of them with parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ...rules import real_function
from ..core.base import Call, Lowered, Operator, Step, same_shape
from ..core.elementwise import blockwise
from .rounded_table import with_rounded_table

_F32 = np.dtype(np.float32)

# Stem to the names of its parameters.
_PARAMETERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan"), ()),
    "erf": (),
    "hard_sigmoid": ("alpha", "beta"),
    "mish": (),
    "softplus": (),
    "softsign": (),
    "thresholded_relu": ("alpha",),
}


def lower(call: Call, names: Sequence[str]) -> Lowered:
    """The parameters, as binary32 numbers."""
    return Lowered(parameters={name: float(np.float32(call.attribute(name))) for name in names})


def reference(step: Step, inputs: Sequence[np.ndarray], names: Sequence[str]) -> list[np.ndarray]:
    """The rule's function, block by block."""
    function = real_function.RULES[step.rules["real_function"]].functions[step.operator]
    parameters = {name: step[name] for name in names}

    def block(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return function(x, **parameters)

    return [blockwise(block, [inputs[0]], inputs[0].dtype, _F32)]


def _thresholded(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    x = inputs[0]
    return [np.where(x > x.dtype.type(step["alpha"]), x, x.dtype.type(0))]


def _operator(stem: str, summary: str) -> Operator:
    names = _PARAMETERS[stem]
    return Operator(
        stem,
        ("real_function",),
        same_shape,
        partial(lower, names=names),
        partial(reference, names=names),
        summary,
        elementwise=1,
    )


OPERATORS = (
    _operator("acos", "arc cosine"),
    _operator("acosh", "inverse hyperbolic cosine"),
    _operator("asin", "arc sine"),
    _operator("asinh", "inverse hyperbolic sine"),
    _operator("atan", "arc tangent"),
    _operator("atanh", "inverse hyperbolic tangent"),
    _operator("cosh", "hyperbolic cosine"),
    with_rounded_table(_operator("erf", "error function")),
    _operator("hard_sigmoid", "clamp(alpha x + beta, 0, 1)"),
    _operator("mish", "x tanh(log(1 + e^x))"),
    _operator("sinh", "hyperbolic sine"),
    _operator("softplus", "log(1 + e^x)"),
    _operator("softsign", "x / (1 + |x|)"),
    _operator("tan", "tangent"),
    Operator(
        "thresholded_relu",
        (),
        same_shape,
        partial(lower, names=_PARAMETERS["thresholded_relu"]),
        _thresholded,
        "x where x > alpha, else 0",
        elementwise=1,
    ),
)
