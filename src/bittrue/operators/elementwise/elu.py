"""elu: x above 0, an exponential below: alpha (e^x - 1), all times gamma; quantized values by a table.

Attributes, each of which may be absent: `alpha`, `gamma`, and `continuous`, with which x is divided by alpha below 0.
Which of them a file's operator has decides which function of the rule it is, since a factor of 1 may change a zero's
sign.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arithmetic import elementary
from ...graph import Attribute
from ...rules import real_function
from ..core.base import Call, Lowered, Operator, Step, same_shape
from ..core.elementwise import blockwise
from ..core.functions import ELU
from .logistic import read_table, table_lowered

# Names of attributes to the rules' function of them.
_FUNCTIONS = {
    (): "elu",
    ("alpha",): "parametric_elu",
    ("alpha", "gamma"): "selu",
    ("alpha", "continuous"): "celu",
}


def _of_table(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, elementary.expm1(x), x.astype(np.float32))


def lower(call: Call) -> Lowered:
    """The finished table, or the function and its factors as binary32 numbers."""
    given = tuple(name for name in ("alpha", "gamma", "continuous") if call.node.attributes.get(name) is not None)
    function = _FUNCTIONS.get(given, "")
    if "table" in call.rules and not given:
        return table_lowered(call, _of_table)
    if "table" in call.rules or function not in real_function.RULES[call.rules["real_function"]].functions:
        raise call.unsupported("BT-ELU-FUNCTION", f"no rule for an exponential with {', '.join(given) or 'no factors'}")
    factors: dict[str, Attribute] = {
        name: float(np.float32(call.attribute(name))) for name in ("alpha", "gamma") if name in given
    }
    return Lowered({"function": function, **factors})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Look up, or evaluate block by block."""
    x = inputs[0]
    if "table" in step.arrays:
        return [read_table(step, x)]
    function = real_function.RULES[step.rules["real_function"]].functions[step["function"]]
    factors = {name: step[name] for name in ("alpha", "gamma") if name in step.parameters}

    def block(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return function(x, **factors)

    return [blockwise(block, [x], x.dtype, np.dtype(np.float32))]


OPERATOR = Operator(
    "elu",
    ("table", "real_function"),
    same_shape,
    lower,
    reference,
    "x above 0, alpha (e^x - 1) below, both times gamma",
    elementwise=1,
    function=ELU,
)
