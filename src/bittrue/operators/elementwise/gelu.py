"""gelu: x times the normal distribution function of x, exactly, by tanh or a logistic function; integers by tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...arithmetic import elementary
from ...rules import real_function, real_gelu
from ..core.base import Call, Lowered, Operator, Step, same_shape
from ..core.elementwise import BLOCK, blockwise
from ..core.functions import GELU
from .logistic import read_table, table_lowered

_HALF, _ONE = np.float32(0.5), np.float32(1)


def _exact(x: np.ndarray) -> np.ndarray:
    """x / 2 * erfc(-x / sqrt 2)."""
    x = x.astype(np.float32)
    return np.asarray(_HALF * x * elementary.erfc(x * np.float32(-0.7071067811865476)))


def _approximate(x: np.ndarray) -> np.ndarray:
    """x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    x = x.astype(np.float32)
    inner = np.float32(0.7978845608028654) * (x + np.float32(0.044715) * x * x * x)
    return np.asarray(_HALF * x * (_ONE + elementary.tanh(inner)))


def _functions(rules: Mapping[str, str]) -> Mapping[str, real_function.Function]:
    return real_function.RULES[rules["real_function"]].functions if "real_function" in rules else {}


def lower(call: Call) -> Lowered:
    """The finished table; real numbers need only to know which form."""
    if call.node.attributes.get("form") == "logistic":
        if "quick_gelu" not in _functions(call.rules):
            raise call.unsupported("BT-GELU-FORM", "no rule for x times a logistic function of it")
        return Lowered({"alpha": float(np.float32(call.attribute("alpha")))})
    approximate = bool(call.attribute("approximate"))
    if call.output.type.is_integer:
        return table_lowered(call, _approximate if approximate else _exact)
    return Lowered(parameters={"approximate": approximate})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Look up, or evaluate in blocks of whole groups."""
    x = inputs[0]
    if "table" in step.arrays:
        return [read_table(step, x)]
    if "alpha" in step.parameters:
        quick, alpha = _functions(step.rules)["quick_gelu"], step["alpha"]
        with np.errstate(all="ignore"):
            return [blockwise(lambda part: quick(part, alpha=alpha), [x], x.dtype, np.dtype(np.float32))]
    rule = real_gelu.RULES[step.rules["real_gelu"]]
    flat, out = x.reshape(-1), np.empty(x.size, x.dtype)
    for begin in range(0, x.size, BLOCK):
        out[begin : begin + BLOCK] = rule.apply(flat[begin : begin + BLOCK], step["approximate"])
    return [out.reshape(x.shape)]


OPERATOR = Operator(
    "gelu",
    ("table", "real_gelu", "real_function"),
    same_shape,
    lower,
    reference,
    "x times the normal distribution function",
    elementwise=1,
    function=GELU,
)
