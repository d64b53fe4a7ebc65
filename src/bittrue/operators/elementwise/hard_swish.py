"""hard_swish: x * clamp(x / 6 + 1/2, 0, 1), by a table of 256 entries for 8 bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...graph import DATA_TYPES, Attribute
from ...records import replace
from ...rules import hard_swish, lanes
from ..core.base import Call, Lowered, Operator, Step, same_shape
from ..core.elementwise import blockwise, in_lanes
from ..core.functions import HARD_SWISH
from .logistic import evaluate, table_lowered
from .rounded_table import with_rounded_table


def _real(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x, np.float32)
    with np.errstate(all="ignore"):
        shifted = x + np.float32(3)
        # NaN is not greater than 0 and gives 0 here, but stays in the product.
        gate = np.where(shifted > 0, shifted, np.float32(0))
        return x * np.where(gate < 6, gate, np.float32(6)) / np.float32(6)


def lower(call: Call) -> Lowered:
    """The rules' answers to every quantized value; real numbers need nothing."""
    source, output = call.input(0), call.output
    if not output.type.is_integer:
        return Lowered()
    if "table" in call.rules:
        # A lookup like any other.
        return replace(table_lowered(call, _real), operator="logistic")
    low, high = output.type.minimum, output.type.maximum
    q = np.arange(low, high + 1)
    about = float(source.scale), source.zero_point, float(output.scale), output.zero_point, low, high
    chosen = {"entries": "hard_swish", "entries_tail": "hard_swish_tail"}
    parameters: dict[str, Attribute] = {"dtype": output.dtype, "minimum": low}
    if "lanes" in call.rules:
        parameters["body"] = lanes.RULES[call.rules["lanes"]].body(output.size)
    try:
        with np.errstate(over="ignore", under="ignore"):
            arrays = {
                name: hard_swish.RULES[call.rules[slot]](q, *about)
                for name, slot in chosen.items()
                if slot in call.rules
            }
    except (OverflowError, ValueError) as error:
        raise call.invalid(
            "BT-MULTIPLIER", f"the scales give no usable multiplier: {error}", "quantize the model again"
        ) from None
    return Lowered(parameters, arrays)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Look up, or evaluate; without a rule four binary32 operations."""
    if "real_function" in step.rules:
        return [evaluate(step, inputs[0], "hard_swish")]
    if not step.arrays:
        return [blockwise(_real, [inputs[0]], np.dtype(np.float32), np.dtype(np.float32))]
    minimum, dtype = step["minimum"], DATA_TYPES[step["dtype"]].numpy

    def read(entries: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda q: entries[q - minimum]

    body, tail = read(step.arrays["entries"]), read(step.arrays.get("entries_tail", step.arrays["entries"]))
    split = step["body"] if "body" in step.parameters else inputs[0].size
    return [in_lanes(body, tail, split, inputs, dtype)]


OPERATOR = with_rounded_table(
    Operator(
        "hard_swish",
        ("hard_swish", "hard_swish_tail", "lanes", "real_function", "table"),
        same_shape,
        lower,
        reference,
        "x * clamp(x / 6 + 1/2, 0, 1)",
        elementwise=1,
        function=HARD_SWISH,
    )
)
