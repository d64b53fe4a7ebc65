"""fold_normalization, range_weights: what layers over tensors with ranges make of their parameters.

fold_normalization: w [O, ...], gamma, beta, mean, variance and bias (may be absent) [O]: w and bias, all f32.
range_weights: w, bias (may be absent), low and high of the data; where w and bias are s8 and not f32, low and high of
w and of the bias: quantized values s8, bias in units of the products f32, scales f32 [O] or [1]. Attributes:
`data_type`, the type of the data, and `per_channel` for real weights.
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
    call.expect((4, 8), 3)
    whole, bias = call.input(0).type.is_integer, call.has(1)
    check_range(call, 2, 3, *((4, 5) if whole else ()), *((6, 7) if whole and bias else ()))
    channels = _check(call, 1)
    return [call.input(0).shape, (channels,), (channels if _per_channel(call) else 1,)]


def _per_channel(call: Call) -> bool:
    return not call.input(0).type.is_integer and bool(call.attribute("per_channel"))


def lower_fold(call: Call) -> Lowered:
    """What is added to the variance."""
    return Lowered({"epsilon": float(call.attribute("epsilon"))})


def lower(call: Call) -> Lowered:
    """The data's type, and whether there is a scale per channel."""
    return Lowered({"data_type": call.attribute("data_type"), "per_channel": _per_channel(call)})


def _present(inputs: Sequence[np.ndarray], position: int) -> np.ndarray | None:
    return inputs[position] if position < len(inputs) else None


def reference_fold(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Channel by channel."""
    w, rows = inputs[0], inputs[0].reshape(inputs[0].shape[0], -1)
    folded, bias = FOLD[step.rules["fold_normalization"]](rows, _present(inputs, 5), inputs[1:5], step["epsilon"])
    return [folded.astype(np.float32).reshape(w.shape), bias.astype(np.float32)]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Channel by channel; a bias that is absent is 0."""
    w, bias, data = inputs[0], _present(inputs, 1), ends_of(inputs, 2)
    if "quantized_weights" in step.rules:
        bias = np.zeros(w.shape[0], np.float32) if bias is None else bias
        rule = WEIGHTS[step.rules["quantized_weights"]]
        quantized, wide, scales = rule(w.reshape(w.shape[0], -1), bias, data, step["data_type"], step["per_channel"])
        return [quantized.reshape(w.shape), wide, scales.astype(np.float32)]
    own = ends_of(inputs, 4)
    if bias is None:
        return [w, np.zeros(w.shape[0], np.float32), np.array([scale_of(own, "s8")], np.float32)]
    return list(BIAS[step.rules["quantized_bias"]](w, bias, (data, own, ends_of(inputs, 6)), step["data_type"]))


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
        ("quantized_weights", "quantized_bias"),
        infer,
        lower,
        reference,
        "quantized weights, bias in units of the products, and scales, of a layer whose data has a range",
    ),
)
