"""What matrix products and convolutions share whose scales and zero points are operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..graph import Attribute
from ..rules import accumulate, rescale, scale_form
from .accumulator import weight_sums
from .base import Bound, Call, Operand

REQUANTIZE_SLOTS = ("accumulate", "scale_form", "rescale", "store")


def check_single(call: Call, position: int, role: str) -> None:
    """Input `position`, when present, is a scalar or a vector of one element."""
    if call.has(position) and (call.input(position).rank > 1 or call.input(position).size != 1):
        raise call.invalid(
            "BT-QUANT-AXIS",
            f"{role} has shape {list(call.input(position).shape)}, expected one value for the whole tensor",
        )


def check_channels(call: Call, position: int, channels: int, role: str) -> None:
    """Input `position`, when present, is a scalar, a vector of one element, or one of all `channels`."""
    if call.has(position):
        operand = call.input(position)
        if operand.rank > 1 or operand.size not in (1, channels):
            raise call.invalid(
                "BT-QUANT-AXIS",
                f"{role} has shape {list(operand.shape)}, expected one value or {channels} (one per output channel)",
            )


def single(value: Any) -> Any:
    """The only element of an operand, None for none."""
    return None if value is None else np.asarray(value).reshape(-1)[0]


def zero_point_of(value: Any) -> int:
    """The zero point that an operand holds; 0 where it is absent."""
    return 0 if value is None else int(single(value))


def weight_zero_points(value: Any) -> tuple[dict[str, Attribute], dict[str, np.ndarray]]:
    """The zero points of weights: parameter `weight_zero_point`, or array `weight_zero_points` where they differ."""
    flat = np.zeros(1, np.int64) if value is None else np.asarray(value).reshape(-1).astype(np.int64)
    if flat.size and (flat == flat[0]).all():
        return {"weight_zero_point": int(flat[0])}, {}
    return {}, {"weight_zero_points": flat}


def prepare_multiplier(rules: Mapping[str, str], first: Any, second: Any, output: Any) -> rescale.Prepared:
    """Prepared rescale parameters of scales of a product over the output's; ValueError without a finite multiplier."""
    flat = np.asarray(second).reshape(-1)
    real = scale_form.form(rules["scale_form"], single(first), flat, single(output))
    prepared = rescale.prepare(rules["rescale"], real)
    for values in prepared.values():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(
                f"scales {single(first)!s} and {flat.max(initial=0)!s} over {single(output)!s} give no multiplier"
            )
    return prepared


def span(operand: Operand, zero_point: Operand | None) -> int:
    """Largest |q - zero point|: of this zero point where it is known, else of any."""
    low, high = operand.type.minimum, operand.type.maximum
    if zero_point is None:
        return max(-low, high)
    if zero_point.value is None:
        return high - low
    points = zero_point.value.reshape(-1).astype(np.int64)
    return max(high - int(points.min()), int(points.max()) - low) if points.size else 0


def bound(
    call: Call, source: tuple[int, int], weights: tuple[int, int], depth: int, axis: int, bias: int | None = None
) -> Bound:
    """|acc| <= max over channels of sum |w - zero point| * max |x - zero point| + |bias|.

    `source` and `weights`: positions of the codes and of their zero points; `depth`: products of a sum; `axis`: of the
    output channels in the weights, the first or the last one.
    """
    codes, points = (call.inputs[p] if call.has(p) else None for p in weights)
    assert codes is not None
    if codes.value is not None and (points is None or points.value is not None):
        values = np.zeros(1, np.int64) if points is None or points.value is None else points.value.reshape(-1)
        each = [int(v) for v in values]
        if codes.value.ndim and len(set(each)) > 1:
            parts = np.moveaxis(codes.value, axis, 0)
            sums = np.asarray([np.abs(w.astype(np.int64) - z).sum() for w, z in zip(parts, each, strict=True)])
        else:
            sums = weight_sums(codes.value, each[0] if each else 0, axis) if codes.value.size else np.zeros(1)
    else:
        sums = np.asarray([depth * span(codes, points)])
    factor = span(call.input(source[0]), call.inputs[source[1]] if call.has(source[1]) else None)
    worst = int(sums.max(initial=0)) * factor
    if bias is not None and call.has(bias):
        value = call.input(bias).value
        worst += 2**31 if value is None else int(np.abs(value.astype(np.int64)).max(initial=0))
    return Bound(worst, worst > accumulate.RULES[call.rules["accumulate"]].limit)
