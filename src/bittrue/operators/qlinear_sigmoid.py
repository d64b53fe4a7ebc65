"""qlinear_sigmoid and qlinear_leaky_relu: a real function of quantized numbers, as a table of 256 entries.

Operands: x, x_scale, x_zero_point, y_scale, y_zero_point; zero points may be absent (0). Steps with constant scales are
those of `logistic` with a table, which carries them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ..arithmetic import fused, tables
from ..graph import Attribute
from ..rules import table
from .base import Call, Lowered, Operator, Shape, Step
from .late import Prepared, Values, prepare_late, prepare_now
from .logistic import read_table
from .roles import OPERAND_UNARY
from .scalar_operands import check_scalars, pair

_PARAMETERS = (1, 2, 3, 4)


def infer(call: Call) -> list[Shape]:
    """The shape of x."""
    call.expect((4, 5))
    check_scalars(call, (1, 3), (2, 4))
    return [call.input(0).shape]


def _leaky(x: np.ndarray, alpha: np.float32) -> np.ndarray:
    """x where x >= 0, else f32(alpha * x)."""
    real = x.astype(np.float32)
    return np.where(real >= 0, real, alpha * real)


def _exact_leaky(x: Fraction, alpha: Fraction) -> Fraction:
    return x if x >= 0 else alpha * x


def _function(exact: bool, alpha: float | None) -> Callable[..., Any]:
    """The real function, of binary32 arrays or of fractions; `alpha` None: the logistic one."""
    if alpha is None:
        return tables.logistic_fraction if exact else fused.logistic_quotient
    return partial(_exact_leaky, alpha=Fraction(alpha)) if exact else partial(_leaky, alpha=np.float32(alpha))


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    rule = table.RULES[rules["table"]]
    (scale, zero_point), (output_scale, output_zero_point) = pair(values, 1, 2), pair(values, 3, 4)
    function = _function(rule.exact, known.get("alpha"))
    entries = rule.build(
        function, scale, zero_point, output_scale, output_zero_point, known["minimum"], known["maximum"]
    )
    return {}, {"table": entries}


def lower(call: Call) -> Lowered:
    """The finished table."""
    output = call.output
    known: dict[str, Attribute] = {
        "dtype": output.dtype,
        "minimum": output.type.minimum,
        "maximum": output.type.maximum,
    }
    if call.node.operator == "qlinear_leaky_relu":
        known["alpha"] = float(call.attribute("alpha"))
    parameters, arrays = prepare_now(call, _PARAMETERS, known, _prepare)
    if parameters["late"]:
        return Lowered(parameters, arrays)
    return Lowered(parameters, arrays, operator="logistic", inputs=(0,))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """With scales of this run."""
    return [read_table(prepare_late(step, inputs, _prepare), inputs[0])]


OPERATORS = (
    Operator(
        "qlinear_sigmoid",
        ("table",),
        infer,
        lower,
        reference,
        "1 / (1 + exp(-x)), the scales being operands",
        roles=OPERAND_UNARY,
        elementwise=1,
    ),
    Operator(
        "qlinear_leaky_relu",
        ("table",),
        infer,
        lower,
        reference,
        "x where x >= 0, else alpha * x, the scales being operands",
        roles=OPERAND_UNARY,
        elementwise=1,
    ),
)
