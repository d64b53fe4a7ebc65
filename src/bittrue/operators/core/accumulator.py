"""What operators with multiply-accumulates share: multipliers, clamps and proven accumulator bounds."""

from __future__ import annotations

import math

import numpy as np

from ...graph import Attribute, data_type
from ...rules import accumulate, activation_range, rescale, scale_form
from .base import Bound, Call, Operand, Step


def fused_range(call: Call) -> dict[str, Attribute]:
    """`low`, `high` and `output_zero_point` of the stored value, from the output type and the fused activation."""
    output = call.output
    rule = activation_range.RULES[call.rules["activation_range"]]
    activation = str(call.node.attributes.get("activation", "none"))
    try:
        low, high = rule(activation, float(output.scale), output.zero_point, output.type.minimum, output.type.maximum)
    except OverflowError as error:
        raise call.invalid(
            "BT-ACTIVATION-RANGE", f"fused {activation}: {error}", "the output scale is too small"
        ) from None
    return {"low": low, "high": high, "output_zero_point": output.zero_point}


def multiplier_arrays(call: Call, first: object, second: object, prefix: str = "") -> rescale.Prepared:
    """Prepared rescale parameters for the product of two scales over the output's scale.

    `first` and `second` are scales (scalars or 1-D); the rules come from the call.
    """
    real = scale_form.form(call.rules["scale_form"], first, second, call.output.scale)  # type: ignore[arg-type]
    return prepare_rescale(call, real, prefix)


def prepare_rescale(call: Call, real: object, prefix: str = "") -> rescale.Prepared:
    """Prepared rescale parameters for real multipliers; a typed error when they are not finite or too large."""
    try:
        shift_count = call.rules.get("shift_count", "")
        return rescale.prepare(call.rules["rescale"], real, prefix, shift_count)  # type: ignore[arg-type]
    except ValueError as error:
        raise call.invalid(
            "BT-MULTIPLIER",
            f"the scales give no usable multiplier: {error}",
            "the output scale is far too small beside the input's; quantize the model again",
        ) from None


def signed_span(operand: Operand, zero_point: int) -> int:
    """Largest |q - zero_point| over the operand's type."""
    return max(abs(operand.type.minimum - zero_point), abs(operand.type.maximum - zero_point))


def stored_type(step: Step, usual: np.dtype) -> np.dtype:
    """The type of a layer's result: what the step names, else the usual one."""
    return data_type(step["dtype"]).numpy if "dtype" in step.parameters else usual


# Weights converted at a time: temporaries stay in cache, and a large matrix is never held twice.
_BLOCK = 1 << 18


def weight_sums(weights: np.ndarray, zero_point: int, axis: int = 0) -> np.ndarray:
    """sum |w - zero_point| per index of `axis`, the first or the last one, as s64.

    >>> weight_sums(np.int8([[1, -128], [2, 3]]), 0).tolist(), weight_sums(np.int8([[1, -128], [2, 3]]), 1, 1).tolist()
    ([129, 5], [1, 131])
    """
    largest = min((1 << 8 * weights.dtype.itemsize) + abs(zero_point), 1 << 62)
    work = np.min_scalar_type(-largest)
    # Not -1: of no rows or columns, any number would do.
    kept = weights.shape[0] if axis == 0 else weights.shape[-1]
    others = math.prod(weights.shape[1:] if axis == 0 else weights.shape[:-1])
    matrix = weights.reshape((kept, others) if axis == 0 else (others, kept))
    sums = np.zeros(matrix.shape[0] if axis == 0 else matrix.shape[1], np.int64)
    rows = max(1, _BLOCK // max(1, matrix.shape[1]))
    # Narrow sums of a block take half the time.
    narrow = np.min_scalar_type(min(largest * (matrix.shape[1] if axis == 0 else rows), 1 << 63))
    for first in range(0, matrix.shape[0], rows):
        block = matrix[first : first + rows]
        if zero_point:
            block = block.astype(work) - work.type(zero_point)
        # The magnitude of a type's least number fits without a sign.
        magnitudes = np.abs(block).view(f"u{block.itemsize}")
        if axis == 0:
            sums[first : first + rows] = magnitudes.sum(axis=1, dtype=narrow)
        else:
            sums += magnitudes.sum(axis=0, dtype=narrow).astype(np.int64)
    return sums


def proven_bound(call: Call, weight_sums: np.ndarray | int, span: int, bias: Operand | None) -> Bound:
    """Bound of |acc| from sum|w| per output channel (or a worst case), the input span and the bias.

    Triangle inequality: every partial sum in any order stays below it, too.
    """
    sums = np.atleast_1d(np.asarray(weight_sums, np.int64))
    # Zero points of 32 bits take sums far beyond 64: Python's integers, then.
    fits = int(sums.max(initial=1)) * span < 1 << 62 and (bias is None or bias.dtype == "s32")
    number = np.int64 if fits else object
    magnitude = sums.astype(number) * span
    if bias is not None:
        magnitude = magnitude + (
            -bias.type.minimum if bias.value is None else abs(bias.value.reshape(-1).astype(number))
        )
    worst, rule = int(magnitude.max(initial=0)), accumulate.RULES[call.rules["accumulate"]]
    # Where something is lost before the register, it does not hold the sum, however small that is.
    return Bound(worst, worst > rule.limit or rule.lost is not None)


def finish_accumulator(rule: str, bound: Bound | None, exact: np.ndarray) -> np.ndarray:
    """What the register holds of an exact int64 sum; skips the wrap when the bound proves it is the identity."""
    if bound is not None and not bound.wraps:
        return exact
    return accumulate.RULES[rule].finish(exact)
