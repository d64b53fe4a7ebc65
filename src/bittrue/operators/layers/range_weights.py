"""fold_normalization, range_weights, rescale_bias: what layers over tensors with ranges make of their parameters.

fold_normalization: w [O, ...], gamma, beta, mean, variance and bias (may be absent) [O]: w and bias, all f32.
range_weights: w (f32), low and high of the data, bias (f32, may be absent): quantized values s8, bias s32, scales
f32 [O] or [1].
rescale_bias: w (s8), low and high of the data and of w, bias (s8, may be absent), its low and high: the same results.
Attribute `codes` is the type of the data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules.range_layer import BIAS, FOLD, WEIGHTS
from ...rules.range_levels import scale_of
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..quantization.range_operands import check_range, ends_of


def _check(call: Call, *vectors: int) -> int:
    """The number of output channels, which the inputs at `vectors` have, too, where they are present."""
    weights = call.input(0, "weights")
    call.rank(weights, 2, 5)
    channels = weights.shape[0]
    if not weights.size:
        raise call.invalid("BT-WEIGHTS-EMPTY", f"weights have shape {list(weights.shape)}, without elements")
    for position in vectors:
        if call.has(position) and call.input(position).shape != (channels,):
            raise call.invalid(
                "BT-BIAS-LENGTH",
                f"input {position} has shape {list(call.input(position).shape)} for {channels} output channels",
            )
    return channels


def infer_fold(call: Call) -> list[Shape]:
    """The shapes of weights and bias."""
    call.expect((5, 6), 2)
    return [call.input(0).shape, (_check(call, 1, 2, 3, 4, 5),)]


def infer(call: Call) -> list[Shape]:
    """Quantized values, bias, and one scale or one per channel."""
    call.expect((3, 4), 3)
    check_range(call, 1, 2)
    channels = _check(call, 3)
    return [call.input(0).shape, (channels,), (channels if call.attribute("per_channel") else 1,)]


def infer_bias(call: Call) -> list[Shape]:
    """Quantized values, bias and one scale."""
    call.expect((5, 8), 3)
    check_range(call, 1, 2, 3, 4, *((6, 7) if call.has(5) else ()))
    return [call.input(0).shape, (_check(call, 5),), (1,)]


def lower_fold(call: Call) -> Lowered:
    """What is added to the variance."""
    return Lowered({"epsilon": float(call.attribute("epsilon"))})


def lower(call: Call) -> Lowered:
    """The data's type, and how many scales there are."""
    return Lowered({"codes": call.attribute("codes"), "per_channel": bool(call.attribute("per_channel"))})


def lower_bias(call: Call) -> Lowered:
    """The data's type."""
    return Lowered({"codes": call.attribute("codes")})


def _present(inputs: Sequence[np.ndarray], position: int) -> np.ndarray | None:
    return inputs[position] if position < len(inputs) else None


def reference_fold(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Channel by channel."""
    w, rows = inputs[0], inputs[0].reshape(inputs[0].shape[0], -1)
    folded, bias = FOLD[step.rules["fold_normalization"]](rows, _present(inputs, 5), inputs[1:5], step["epsilon"])
    return [folded.astype(np.float32).reshape(w.shape), bias.astype(np.float32)]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Channel by channel; a bias that is absent is 0."""
    w, bias = inputs[0], _present(inputs, 3)
    bias = np.zeros(w.shape[0], np.float32) if bias is None else bias
    rule = WEIGHTS[step.rules["weight_codes"]]
    codes, wide, scales = rule(w.reshape(w.shape[0], -1), bias, ends_of(inputs, 1), step["codes"], step["per_channel"])
    return [codes.reshape(w.shape), wide, scales.astype(np.float32)]


def reference_bias(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A bias that is absent is 0."""
    w, data, own = inputs[0], ends_of(inputs, 1), ends_of(inputs, 3)
    bias = _present(inputs, 5)
    if bias is None:
        scale = np.array([scale_of(own, "s8")], np.float32)
        return [w, np.zeros(w.shape[0], np.int32), scale]
    ends = data, own, ends_of(inputs, 6)
    codes, wide, scales = BIAS[step.rules["bias_codes"]](w, bias, ends, step["codes"])
    return [codes, wide, scales]


OPERATORS = (
    Operator(
        "fold_normalization",
        ("fold_normalization",),
        infer_fold,
        lower_fold,
        reference_fold,
        "weights and bias that do what a normalization behind them would",
    ),
    Operator(
        "range_weights",
        ("weight_codes",),
        infer,
        lower,
        reference,
        "quantized values and scales of a layer's real weights",
    ),
    Operator(
        "rescale_bias", ("bias_codes",), infer_bias, lower_bias, reference_bias, "a bias in units of a layer's products"
    ),
)
