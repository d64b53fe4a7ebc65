"""sqrt and rsqrt: the square root and its inverse; negative real input has no result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...graph import DATA_TYPES
from ...rules import inverse_root, square_root
from ..core.base import Call, Lowered, Operator, Step, same_shape
from ..core.elementwise import blockwise
from ..core.functions import INVERSE_ROOT
from .logistic import evaluate, read_table, table_lowered
from .rounded_table import with_rounded_table


def _not_negative(step: Step, q: np.ndarray) -> None:
    if q.size and int(q.min()) < step["input_zero_point"]:
        raise RunError(
            "BT-RUN-NEGATIVE",
            f"input {int(q.min())} is below zero point {step['input_zero_point']}: "
            "a negative number has no real square root",
            place=step.place,
        )


def lower_sqrt(call: Call) -> Lowered:
    """Scales and zero points as they are: the root is taken in floating point."""
    source, output = call.input(0), call.output
    if not output.type.is_integer:
        return Lowered()
    return Lowered(
        parameters={
            "input_scale": float(source.scale),
            "input_zero_point": source.zero_point,
            "output_scale": float(output.scale),
            "output_zero_point": output.zero_point,
            "low": output.type.minimum,
            "high": output.type.maximum,
            "dtype": output.dtype,
        }
    )


def reference_sqrt(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Element by element; real numbers by the rule's function, or rounded correctly."""
    x = inputs[0]
    if "real_function" in step.rules:
        return [evaluate(step, x, "sqrt")]
    if "dtype" not in step.parameters:
        with np.errstate(invalid="ignore"):
            return [np.sqrt(x)]
    _not_negative(step, x)
    rule = square_root.RULES[step.rules["square_root"]]
    names = ("input_scale", "input_zero_point", "output_scale", "output_zero_point", "low", "high")
    arguments = [step[name] for name in names]
    return [blockwise(lambda q: rule(q, *arguments), [x], DATA_TYPES[step["dtype"]].numpy)]


def lower_rsqrt(call: Call) -> Lowered:
    """A table: one entry per input for 8 bits, an interpolated one for 16 bits."""
    source, output = call.input(0), call.output
    if not output.type.is_integer:
        return Lowered()
    low, high = output.type.minimum, output.type.maximum
    if source.dtype == "s16":
        largest = np.float32(high) * output.scale
        lowered = table_lowered(call, lambda x: _inverse(x, largest))
        return Lowered({**lowered.parameters, "input_zero_point": source.zero_point}, lowered.arrays)
    rule = inverse_root.RULES[call.rules["inverse_root"]]
    # Inputs below the zero point are refused when they occur; their entries stand for the zero point itself.
    values = np.maximum(np.arange(source.type.minimum, source.type.maximum + 1) - source.zero_point, 0)
    try:
        entries = rule(values, float(source.scale), float(output.scale), output.zero_point, low, high)
    except OverflowError as error:
        raise call.invalid("BT-MULTIPLIER", f"{error}: the kernels' shift would be undefined") from None
    return Lowered(
        {"dtype": output.dtype, "minimum": source.type.minimum, "input_zero_point": source.zero_point},
        {"entries": entries},
    )


def _inverse(x: np.ndarray, at_zero: np.float32) -> np.ndarray:
    """1 / sqrt(x) in binary32, `at_zero` for x <= 0."""
    x = x.astype(np.float32)
    positive = np.where(x > 0, x, np.float32(1))
    return np.where(x > 0, np.float32(1) / np.sqrt(positive), at_zero)


def reference_rsqrt(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Look up, or the rule's function, or two binary32 operations."""
    x = inputs[0]
    if "real_function" in step.rules:
        return [evaluate(step, x, "rsqrt")]
    if "dtype" not in step.parameters:
        with np.errstate(divide="ignore", invalid="ignore"):
            return [np.float32(1) / np.sqrt(x)]
    _not_negative(step, x)
    if "table" in step.arrays:
        return [read_table(step, x)]
    entries, minimum = step.arrays["entries"], step["minimum"]
    return [blockwise(lambda q: entries[q - minimum], [x], DATA_TYPES[step["dtype"]].numpy)]


OPERATORS = (
    with_rounded_table(
        Operator(
            "sqrt",
            ("square_root", "real_function"),
            same_shape,
            lower_sqrt,
            reference_sqrt,
            "square root",
            elementwise=1,
        )
    ),
    with_rounded_table(
        Operator(
            "rsqrt",
            ("inverse_root", "table", "real_function"),
            same_shape,
            lower_rsqrt,
            reference_rsqrt,
            "one over the square root",
            elementwise=1,
            function=INVERSE_ROOT,
        )
    ),
)
