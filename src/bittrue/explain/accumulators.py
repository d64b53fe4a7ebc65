"""Exact accumulators of a whole step, and how far its unrounded results are from ties.

The sums come from the reference kernels themselves, run with a rescale by 1 and without clamps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..operators import Step, find
from ..operators.integer_layers import centered_product
from ..operators.qlinear_conv import sums_alone
from ..plan import Plan
from ..rules import accumulate

Inputs = Sequence["np.ndarray | None"]
# The rule that leaves integers below 2^53 alone when the factor is 1.
_PLAIN = {"rescale": "binary64_multiply_even", "store": "clamp_alone"}
_OPEN = {"low": -(2**62), "high": 2**62, "output_zero_point": 0}
# Steps whose reference stores accumulators in the type of its input, or in the one that a parameter names.
_LAYERS = {"conv2d": 0, "depthwise_conv2d": 0, "fully_connected": 0, "transpose_conv": 2, "batch_matmul": 0}


def accumulators(plan: Plan, step: Step, inputs: Inputs) -> np.ndarray | None:
    """What a step's accumulators hold before they are rescaled, s64 in the shape of its output.

    Args:
        plan: the step's plan.
        step: an accumulating layer on integers.
        inputs: one array per input of the step, None where it is absent.

    None for other steps, for layers whose scales only running tells, and where sums may leave 2^53.
    """
    bound = step.accumulator
    if bound is None or bound.magnitude >= 2**53 or "accumulate" not in step.rules or step.parameters.get("late"):
        return None
    if step.rules["accumulate"] not in ("s32_wrap", "s16_pairs_s32_wrap", "s64"):
        return None
    if step.operator in _LAYERS:
        return _layer(step, list(inputs)) if "rescale" in step.rules else _as_it_is(step, inputs)
    if step.operator == "qlinear_conv":
        return _convolution(step, inputs, (0, 3), 8, False)
    if step.operator == "conv_integer":
        return _convolution(step, inputs, (0, 1), None, True)
    if step.operator in ("qlinear_matmul", "matmul_integer", "qgemm"):
        return _product(step, inputs).reshape(plan.tensors[step.outputs[0]].shape)
    return None


def _layer(step: Step, inputs: list[np.ndarray | None]) -> np.ndarray | None:
    operator = find(step.operator)
    source = inputs[_LAYERS[step.operator]]
    if operator is None or source is None or source.dtype.kind not in "iu":
        return None
    inputs[_LAYERS[step.operator]] = source.astype(np.int64)
    names = {name: "s64" for name in ("dtype", "output_dtype") if name in step.parameters}
    alone = replace(
        step,
        rules={"accumulate": step.rules["accumulate"], **_PLAIN},
        parameters={**step.parameters, **_OPEN, **names},
        arrays={"factor": np.ones(1)},
    )
    return np.asarray(operator.reference(alone, inputs)[0])


def _as_it_is(step: Step, inputs: Inputs) -> np.ndarray | None:
    operator = find(step.operator)
    if operator is None or step.rules["accumulate"] == "binary32" or len(step.rules) > 1:
        return None
    return np.asarray(operator.reference(step, inputs)[0]).astype(np.int64)


def _convolution(
    step: Step, inputs: Inputs, codes: tuple[int, int], bias_at: int | None, weights_first: bool
) -> np.ndarray:
    x, weights = (inputs[position] for position in codes)
    assert x is not None
    assert weights is not None
    wide = replace(step, parameters={**step.parameters, "dtype": "s64"})
    total = sums_alone(wide, [x, weights], weights_first)[0]
    bias = inputs[bias_at] if bias_at is not None and bias_at < len(inputs) else None
    if bias is None:
        return total
    shape = (-1,) if step["channels_last"] else (1, -1, *(1,) * (total.ndim - 2))
    # Both are modulo the same power of two, or exact: so is their sum.
    return accumulate.RULES[step.rules["accumulate"]].finish(total + bias.astype(np.int64).reshape(shape))


def _product(step: Step, inputs: Inputs) -> np.ndarray:
    second = 1 if step.operator == "matmul_integer" else 3
    a, b = inputs[0], inputs[second]
    assert a is not None
    assert b is not None
    a, b = a.T if step.parameters.get("trans_a") else a, b.T if step.parameters.get("trans_b") else b
    acc = centered_product(step, a, b)
    if step.operator == "qgemm" and len(inputs) > 6 and inputs[6] is not None:
        acc = accumulate.RULES[step.rules["accumulate"]].finish(acc + inputs[6].astype(np.int64))
    return acc


def channel_axis(step: Step, rank: int) -> int:
    """The axis of the output that prepared multipliers go with."""
    first = step.operator in ("qlinear_conv", "conv_integer") and not step["channels_last"]
    return 1 if first else rank - 1


def _channelwise(step: Step, rank: int, name: str) -> np.ndarray | None:
    """Prepared values of one or all channels, ready to meet accumulators of `rank` axes."""
    array = step.arrays.get(name)
    if array is None or array.ndim > 1:
        return None
    shape = [1] * rank
    if array.size > 1:
        shape[channel_axis(step, rank)] = array.size
    return array.reshape(shape) if array.size == 1 or rank else None


def tie_distances(step: Step, acc: np.ndarray) -> np.ndarray | None:
    """How far acc times the plan's multiplier is from the nearest tie, 0 to 1/2, binary64, in the shape of `acc`.

    Exact before the last rounding to binary64 for encoded multipliers (the product has at most 62 bits), and for
    binary32 factors of accumulators below 2^29. None where the plan holds no multiplier for every channel.
    """
    encoded, exponent = (_channelwise(step, acc.ndim, name) for name in ("multiplier", "exponent"))
    if encoded is not None and exponent is not None:
        bits = 15 if step.rules.get("rescale", "").startswith("q15") else 31
        right = np.clip(bits - exponent.astype(np.int64), 0, 62)
        if bits == 31 and int(np.abs(acc).max(initial=0)) >= 2**32:
            return None
        behind = (acc * encoded.astype(np.int64)) & (np.left_shift(np.int64(1), right) - 1)
        return np.abs(np.ldexp(behind.astype(np.float64), -right) - 0.5)
    factor = _channelwise(step, acc.ndim, "factor")
    if factor is None:
        return None
    product = (
        acc.astype(np.float64) * factor.astype(np.float64) / (256 if step.rules["rescale"] == "q8_one_step_up" else 1)
    )
    return np.abs(product - np.floor(product) - 0.5)
