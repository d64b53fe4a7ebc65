"""function_of_codes: a real function of 8-bit values, as a table with one entry per quantized value.

Attribute `function`: abs, erf, exp, hard_swish, log, logistic, rsqrt, sqrt or tanh. Functions that take several steps
are taken in binary32 steps, each one rounded to nearest: logistic 1 / (1 + exp(-x)), rsqrt 1 / sqrt(x),
hard_swish x * min(max(x + 3, 0), 6) / 6. Quantized values for which a function has no value are refused when they
occur.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...arithmetic.rounded_functions import FUNCTIONS
from ...errors import RunError
from ..core.base import Call, Lowered, Operator, Step, same_shape
from .logistic import read_table, table_lowered

_F32 = np.float32
_ONE = _F32(1)


def _logistic(x: np.ndarray) -> np.ndarray:
    return _ONE / (_ONE + FUNCTIONS["exp"](-x).astype(_F32))


def _hard_swish(x: np.ndarray) -> np.ndarray:
    return x * np.clip(x + _F32(3), _F32(0), _F32(6)) / _F32(6)


# binary32 to binary32
_FUNCTIONS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "abs": np.abs,
    "erf": FUNCTIONS["erf"],
    "exp": FUNCTIONS["exp"],
    "hard_swish": _hard_swish,
    "log": lambda x: np.where(x > 0, FUNCTIONS["log"](np.where(x > 0, x, _ONE)), np.where(x < 0, np.nan, -np.inf)),
    "logistic": _logistic,
    "rsqrt": lambda x: _ONE / np.sqrt(x),
    "sqrt": np.sqrt,
    "tanh": FUNCTIONS["tanh"],
}


def lower(call: Call) -> Lowered:
    """The table, and which of its entries stand for no number."""
    name = call.attribute("function")
    if name not in _FUNCTIONS:
        raise call.unsupported("BT-NODE-ATTRIBUTE", f"no function '{name}'", f"functions: {', '.join(_FUNCTIONS)}")
    source, output = call.input(0), call.output
    if source.dtype != output.dtype:
        raise call.invalid("BT-NODE-TYPE", f"quantized values are {source.dtype}, results {output.dtype}")
    missing = np.zeros(0, bool)

    def function(x: np.ndarray) -> np.ndarray:
        nonlocal missing
        with np.errstate(all="ignore"):
            value = np.asarray(_FUNCTIONS[name](x.astype(_F32)), _F32)
        missing = np.isnan(value)
        return np.where(missing, _F32(0), value)

    lowered = table_lowered(call, function)
    if missing.any():
        return replace(lowered, arrays={**lowered.arrays, "missing": missing})
    # A lookup like any other.
    return replace(lowered, operator="logistic")


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Look up."""
    x = inputs[0]
    absent = step.arrays["missing"][x.astype(np.int64) - step["minimum"]]
    if absent.any():
        code = int(x[absent].reshape(-1)[0])
        raise RunError(
            "BT-RUN-NAN",
            f"the function has no value for quantized value {code}: its real number lies outside of the domain",
            place=step.place,
            advice="keep quantized values inside of the function's domain",
        )
    return [read_table(step, x)]


OPERATOR = Operator(
    "function_of_codes",
    ("table",),
    same_shape,
    lower,
    reference,
    "a real function of 8-bit values, by a table",
    elementwise=1,
)
