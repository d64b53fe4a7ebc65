"""mul: first * second, with NumPy broadcasting; scales may be operands (`operand_pairs`).

A square is the product of a tensor with itself: its step reads one input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...graph import data_type
from ...rules import product, store
from ..core.accumulator import fused_range, multiplier_arrays
from ..core.base import Call, Lowered, Operator, Step
from ..core.lanes import run_parameters, zip_in_runs
from ..core.roles import OPERAND_PAIR
from . import operand_pairs, range_pairs
from .add import equal_counts, has_operands, infer, plain, plain_parameters


def lower(call: Call) -> Lowered:
    """Multiplier and clamps; 16-bit tensors without scales are multiplied as plain integers."""
    if has_operands(call):
        return operand_pairs.lower(call, "affine_product")
    first, second, output = call.input(0), call.input(1), call.output
    if call.node.attributes.get("squares"):
        if call.rules.get("plain_range") != "unlimited" or output.dtype != "f32":
            raise call.unsupported("BT-OPERATOR", f"squares of {output.type.title} have no rule")
        return Lowered(parameters={"form": "square"}, inputs=(0,))
    if "product" not in call.rules or ("plain_range" in call.rules and output.tensor.quantization is None):
        return Lowered(parameters=plain_parameters(call))
    if not product.RULES[call.rules["product"]].rescaled:
        equal_counts(call)
        zero_points = {"first_zero_point": 0, "second_zero_point": 0}
        return Lowered(parameters={**fused_range(call), **zero_points, "form": "quantized", "dtype": output.dtype})
    return Lowered(
        parameters={
            **fused_range(call),
            "first_zero_point": first.zero_point,
            "second_zero_point": second.zero_point,
            "form": "quantized",
            "dtype": output.dtype,
            **run_parameters(call),
        },
        arrays=multiplier_arrays(call, [first.scale], [second.scale]),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Multiply without zero points, rescale, store."""
    if step["form"] == "ranges":
        return range_pairs.reference(step, inputs)
    if step["form"] == "operands":
        return operand_pairs.reference(step, inputs, "affine_product")
    if step["form"] == "square":
        with np.errstate(all="ignore"):
            return [np.asarray(np.square(inputs[0]))]
    first, second = inputs
    if step["form"] == "plain":
        return [plain(step, np.multiply, first, second)]
    multiply = product.RULES[step.rules["product"]].apply
    zero_points = step["first_zero_point"], step["second_zero_point"]
    low, high, zero_point = step["low"], step["high"], step["output_zero_point"]

    def block(rules: Mapping[str, str]) -> Callable[..., np.ndarray]:
        finish = store.RULES[rules["store"]]

        def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            rescaled = multiply(a - zero_points[0], b - zero_points[1], rules.get("rescale", ""), step.arrays)
            return finish(rescaled, zero_point, low, high)

        return function

    return [zip_in_runs(step, block, [first, second], data_type(step["dtype"]).numpy)]


OPERATOR = Operator(
    "mul",
    (
        "product",
        "affine_product",
        "range_product",
        "scale_form",
        "rescale",
        "shift_count",
        "store",
        "store_tail",
        "lanes",
        "activation_range",
        "plain_range",
    ),
    infer,
    lower,
    reference,
    "element-wise product",
    roles=OPERAND_PAIR,
    elementwise=2,
    gated=True,
    mistaken_for=("add", "maximum", "minimum"),
)
