"""logistic and tanh: 8 bits by a table with one entry per input, 16 bits by interpolating in a table of 256 samples,
real numbers by evaluation.

Inputs: x, and where scales are operands: scale and zero point of x, then of the result; the table is made when they are
known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...arithmetic import elementary, fused, tables
from ...graph import DATA_TYPES, Attribute
from ...rules import real_function, sigmoid, table, table_function
from ..core.base import Call, Function, Lowered, Operator, Role, Step, same_shape
from ..core.elementwise import blockwise
from ..core.functions import LOGISTIC, TANH
from ..core.late import Prepared, Values, prepare_late, prepare_now
from ..core.roles import OPERAND_UNARY
from ..core.scalar_operands import pair, unary_shape
from . import level_functions

_FUNCTIONS: dict[str, tables.Function] = {"logistic": tables.logistic, "tanh": elementary.tanh}
# Largest n for which an input scale of 2^(n - 12) is taken without rescaling.
_LARGEST_SHIFT = {"logistic": 0, "tanh": 1}


def table_lowered(call: Call, function: tables.Function) -> Lowered:
    """The table of `function` between the scales of input and output."""
    source, output = call.input(0), call.output
    rule = table.RULES[call.rules["table"]]
    try:
        entries = rule.build(
            function,
            float(source.scale),
            source.zero_point,
            float(output.scale),
            output.zero_point,
            output.type.minimum,
            output.type.maximum,
        )
    except ValueError as error:
        raise call.invalid("BT-TABLE", str(error), "keep the input's range where the function is defined") from None
    return Lowered(parameters={"dtype": output.dtype, "minimum": source.type.minimum}, arrays={"table": entries})


# The real function that the operator's table has under a rule, for what is known of the step.
FunctionOf = Callable[[table.TableRule, Mapping[str, Any]], Any]


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values, function: FunctionOf) -> Prepared:
    rule = table.RULES[rules["table"]]
    ends = known["minimum"], known["maximum"]
    return {}, {"table": rule.build(function(rule, known), *pair(values, 1, 2), *pair(values, 3, 4), *ends)}


def operands_lowered(call: Call, function: FunctionOf, **known: float) -> Lowered:
    """The table of a function between scales that are operands, or what makes it while running."""
    output = call.output
    ends: dict[str, Attribute] = {"minimum": output.type.minimum, "maximum": output.type.maximum}
    given = {**known, **ends, "dtype": output.dtype}
    parameters, arrays = prepare_now(call, (1, 2, 3, 4), given, partial(_prepare, function=function), OPERAND_UNARY)
    return Lowered(parameters, arrays) if parameters["late"] else Lowered(parameters, arrays, inputs=(0,))


def with_table(step: Step, inputs: Sequence[np.ndarray], function: FunctionOf) -> Step:
    """The step with the table of this run's scales, where they are operands."""
    if "late" not in step.parameters:
        return step
    return prepare_late(step, inputs, partial(_prepare, function=function))


def read_table(step: Step, x: np.ndarray) -> np.ndarray:
    """The table's answer for every element, block by block."""
    rule, entries, minimum = table.RULES[step.rules["table"]], step.arrays["table"], step["minimum"]
    return blockwise(lambda q: rule.read(entries, q, minimum), [x], DATA_TYPES[step["dtype"]].numpy)


def evaluate(step: Step, x: np.ndarray, function: str) -> np.ndarray:
    """The rule's function of real numbers, block by block."""
    rule = real_function.RULES[step.rules["real_function"]]
    with np.errstate(over="ignore", under="ignore"):  # when results are rounded to binary16
        return blockwise(rule.functions[function], [x], x.dtype, rule.type or x.dtype)


def _logistic(rule: table.TableRule, known: Mapping[str, Any]) -> Any:
    """The function that tables of scales that are operands have."""
    return tables.logistic_fraction if rule.exact else fused.logistic_quotient


def lower(call: Call, function: str) -> Lowered:
    """The finished table of 8 bits, or the argument's multiplier and the samples of 16 bits; reals need nothing."""
    if "levels" in call.rules:
        return level_functions.lower(call, function)
    if "table_function" in call.rules:
        chosen = table_function.RULES[call.rules["table_function"]].functions[function]
        with np.errstate(all="ignore"):
            return table_lowered(call, lambda x: np.asarray(chosen(x.astype(np.float32)), np.float32))
    if not call.output.type.is_integer:
        return Lowered()
    if len(call.inputs) > 1:
        return operands_lowered(call, _logistic)
    if call.input(0).dtype != "s16":
        rule = table.RULES[call.rules["table"]]
        chosen = _FUNCTIONS[function]
        if function == "logistic" and rule.binary64:
            chosen = tables.logistic_binary64
        return table_lowered(call, chosen)
    samples = sigmoid.RULES[call.rules["sigmoid"]]
    try:
        multiplier, right_shift = samples.prepare(float(call.input(0).scale), _LARGEST_SHIFT[function])
    except OverflowError as error:
        raise call.invalid("BT-MULTIPLIER", f"{error}: the kernels' 32-bit product would be undefined") from None
    return Lowered(
        parameters={"multiplier": multiplier, "right_shift": right_shift}, arrays={"samples": samples.table()}
    )


def reference(step: Step, inputs: Sequence[np.ndarray], function: str) -> list[np.ndarray]:
    """Look up, or rescale and interpolate, or evaluate."""
    if level_functions.made(step):
        return level_functions.reference(step, inputs, function)
    step = with_table(step, inputs, _logistic)
    if "table" in step.arrays:
        return [read_table(step, inputs[0])]
    if not step.arrays:
        return [evaluate(step, inputs[0], function)]
    rule = sigmoid.RULES[step.rules["sigmoid"]]
    apply = rule.logistic if function == "logistic" else rule.tanh
    multiplier, right_shift, samples = step["multiplier"], step["right_shift"], step.arrays["samples"]
    return [blockwise(lambda q: apply(q, multiplier, right_shift, samples), [inputs[0]], np.dtype(np.int16))]


def _operator(
    stem: str,
    function: Function,
    mistaken_for: tuple[str, ...],
    unread: tuple[str, ...],
    roles: tuple[Role, ...] = (),
) -> Operator:
    return Operator(
        stem,
        ("table", "table_function", "sigmoid", "real_function", *(("levels",) if roles else ())),
        unary_shape if roles else same_shape,
        partial(lower, function=stem),
        partial(reference, function=stem),
        function.text,
        roles=roles,
        elementwise=1,
        mistaken_for=mistaken_for,
        function=function,
        gates="gelu" if stem == "logistic" else "",
        unread=unread,
    )


OPERATORS = (
    _operator("logistic", LOGISTIC, ("tanh", "relu", "hard_swish"), ("minimum", "maximum"), OPERAND_UNARY),
    _operator("tanh", TANH, ("logistic", "relu"), ("minimum",)),
)
