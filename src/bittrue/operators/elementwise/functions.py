"""exp, log, sin and cos: 8 bits by a table with one entry per input, 16 bits by one that is interpolated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ...arithmetic import elementary
from ...rules import real_function
from ..core import functions
from ..core.base import Call, Function, Lowered, Operator, Step, same_shape
from .logistic import evaluate, read_table, table_lowered
from .rounded_table import with_rounded_table


def _log_from(call: Call) -> real_function.Function:
    """The logarithm, and the real number of the smallest stored output for what has none."""
    output = call.output
    least = np.float32(output.type.minimum - output.zero_point) * output.scale

    def log(x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, elementary.log(np.where(x > 0, x, 1)), least)

    return log


# Stem to the function whose values the table of a call holds.
_TABLED: dict[str, Callable[[Call], real_function.Function]] = {
    "exp": lambda call: elementary.exp,
    "log": _log_from,
}


def lower(call: Call, function: str) -> Lowered:
    """The finished table; real numbers need nothing."""
    return table_lowered(call, _TABLED[function](call)) if call.output.type.is_integer else Lowered()


def reference(step: Step, inputs: Sequence[np.ndarray], function: str) -> list[np.ndarray]:
    """Look up, or evaluate."""
    return [read_table(step, inputs[0]) if "table" in step.arrays else evaluate(step, inputs[0], function)]


def _operator(stem: str, summary: str, function: Function | None = None) -> Operator:
    slots = ("table", "real_function") if stem in _TABLED else ("real_function",)
    return Operator(
        stem,
        slots,
        same_shape,
        partial(lower, function=stem),
        partial(reference, function=stem),
        summary,
        elementwise=1,
        function=function,
    )


OPERATORS = (
    with_rounded_table(_operator("exp", "e^x", functions.EXP)),
    with_rounded_table(_operator("log", "natural logarithm", functions.LOG)),
    _operator("sin", "sine"),
    _operator("cos", "cosine"),
)
