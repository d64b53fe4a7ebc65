"""What matrix products and convolutions share whose scales and zero points are operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...arithmetic.matmul import exact_matmul, product_type
from ...graph import Attribute
from ...rules import accumulate, center, requantize, rescale, scale_form, store
from ..core.accumulator import finish_accumulator, weight_sums
from ..core.base import Bound, Call, Operand, Shape, Step


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


def check_rows(call: Call, position: int, source: int, role: str) -> None:
    """Input `position`, when present, is one value, or one per row of input `source`: [M] for a matrix, [..., M, 1]."""
    if call.has(position):
        found, shape = call.input(position).shape, call.input(source).shape
        matrix = len(shape) == 2 and found == shape[:1]
        if found not in ((), (1,)) and not matrix and not (len(shape) > 1 and found == (*shape[:-1], 1)):
            raise call.invalid(
                "BT-QUANT-AXIS",
                f"{role} has shape {list(found)} for an operand of shape {list(shape)}",
                "it holds one value, or one per row",
            )


def fits_columns(found: Shape, shape: Shape) -> bool:
    """Whether parameters are one value, or one per column of a factor: [N] for a matrix, [..., 1, N] with all axes."""
    if found in ((), (1,)) or (len(shape) == 2 and found == shape[1:]):
        return True
    return len(shape) > 1 and found == (*shape[:-2], 1, shape[-1])


def check_columns(call: Call, position: int, source: int, role: str) -> None:
    """Input `position`, when present, has a shape that `fits_columns` of input `source`."""
    if call.has(position) and not fits_columns(call.input(position).shape, call.input(source).shape):
        raise call.invalid(
            "BT-QUANT-AXIS",
            f"{role} has shape {list(call.input(position).shape)} for an operand of shape "
            f"{list(call.input(source).shape)}",
            "it holds one value, or one per column: [N] for a matrix, [..., 1, N] for a batch of matrices",
        )


def single(value: Any) -> Any:
    """The only element of an operand."""
    return np.asarray(value).reshape(-1)[0]


def zero_point_of(value: Any) -> int:
    """The zero point that an operand holds; 0 where it is absent."""
    return 0 if value is None else int(single(value))


def of_rows(value: Any) -> np.ndarray:
    """Parameters of a left factor, one or one per row, in a shape that goes with it."""
    array = np.asarray(value)
    return array.reshape(-1)[0] if array.size == 1 else array[:, None] if array.ndim == 1 else array


def of_columns(value: Any) -> np.ndarray:
    """Parameters of a right factor in a shape that goes with it: a vector wherever that is possible."""
    array = np.asarray(value)
    return array.reshape(-1) if array.ndim == 0 or array.size == array.shape[-1] else array


def zero_points(value: Any, name: str, several: str) -> tuple[dict[str, Attribute], dict[str, np.ndarray]]:
    """Zero points as parameter `name`, or as array `several` (in the operand's shape) where they differ."""
    points = np.zeros(1, np.int64) if value is None else np.asarray(value).astype(np.int64)
    first = points.reshape(-1)[:1]
    if (points == first).all():
        return {name: int(first[0]) if first.size else 0}, {}
    return {}, {several: points}


def weight_zero_points(value: Any) -> tuple[dict[str, Attribute], dict[str, np.ndarray]]:
    """Parameter `weight_zero_point`, or array `weight_zero_points` where they differ."""
    return zero_points(value, "weight_zero_point", "weight_zero_points")


def points_of(step: Step, name: str) -> Any:
    """What `zero_points` has put into a step, ready to be subtracted."""
    return step.arrays[f"{name}s"] if f"{name}s" in step.arrays else step[name]


def prepare_multiplier(rules: Mapping[str, str], first: Any, second: Any, output: Any) -> rescale.Prepared:
    """Prepared rescale parameters of scales of a product over the output's.

    Binary32 factors that are not all finite go by the name `open_factor`, which no kernel reads but `requantized`.
    """
    if "requantize" in rules:
        return requantize.RULES[rules["requantize"]].prepare(first, second, output)
    with np.errstate(over="ignore"):
        prepared = rescale.prepare(rules["rescale"], scale_form.form(rules["scale_form"], first, second, output))
    if "factor" in prepared and not np.isfinite(prepared["factor"]).all():
        return {"open_factor": prepared["factor"]}
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


def _absolute_sums(quantized: np.ndarray, points: np.ndarray, axis: int) -> int:
    """The largest sum of |w - zero point| of an output channel: along all axes but the first, or of a column."""
    each = set(points.reshape(-1).tolist())
    if not quantized.size:
        return 0
    if axis and quantized.ndim == 1:
        quantized = quantized[:, None]
    if len(each) <= 1:
        return int(weight_sums(quantized, each.pop() if each else 0, axis).max())
    if axis:
        return int(np.abs(quantized.astype(np.int32) - points).sum(axis=-2, dtype=np.int64).max())
    return max(int(np.abs(w.astype(np.int32) - z).sum(dtype=np.int64)) for w, z in zip(quantized, points, strict=True))


def bound(
    call: Call, source: tuple[int, int], weights: tuple[int, int], depth: int, axis: int, bias: int | None = None
) -> Bound:
    """|acc| <= max over channels of sum |w - zero point| * max |x - zero point| + |bias|.

    `source` and `weights`: positions of the quantized values and of their zero points; `depth`: products of a sum;
    `axis`: of the output channels in the weights, the first or the last one.
    """
    quantized, points = call.input(weights[0]), call.inputs[weights[1]] if call.has(weights[1]) else None
    if quantized.value is not None and (points is None or points.value is not None):
        known = np.zeros(1, np.int32) if points is None or points.value is None else points.value.astype(np.int32)
        sums = _absolute_sums(quantized.value, known, axis)
    else:
        sums = depth * span(quantized, points)
    worst = sums * span(call.input(source[0]), call.inputs[source[1]] if call.has(source[1]) else None)
    if bias is not None and call.has(bias):
        value = call.input(bias).value
        worst += 2**31 if value is None else int(np.abs(value.astype(np.int64)).max(initial=0))
    rule = accumulate.RULES[call.rules["accumulate"]]
    # Where something is lost before the register, it does not hold the sum, however small that is.
    return Bound(worst, worst > rule.limit or rule.lost is not None)


def centered(step: Step, array: np.ndarray, zero_point: Any, dtype: np.dtype) -> np.ndarray:
    """array - zero point in a type that holds the difference, or by the step's rule."""
    if "center" in step.rules:
        rule = center.RULES[step.rules["center"]]
        return rule(array.astype(np.int64), np.asarray(zero_point, np.int64)).astype(dtype)
    moved = array.astype(dtype)
    moved -= np.asarray(zero_point).astype(dtype)
    return moved


def centered_product(step: Step, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The register after the sums of (a - z_a)(b - z_b) over the inner axis, [..., M, N], vectors taken as matrices."""
    limit = step.accumulator.magnitude if step.accumulator else 2**62
    work_type = product_type(limit)
    rows, columns = a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None]
    left = centered(step, rows, points_of(step, "input_zero_point"), work_type)
    right = centered(step, columns, points_of(step, "weight_zero_point"), work_type)
    exact = exact_matmul(left, right, limit).astype(np.int64)
    lost = accumulate.RULES[step.rules["accumulate"]].lost
    if lost is not None:
        exact -= lost(rows, columns)
    return finish_accumulator(step.rules["accumulate"], step.accumulator, exact)


def requantized(step: Step, acc: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Accumulators [..., M, N] rescaled and stored, whatever axes the multipliers follow.

    Products with infinite factors saturate; what is no number is stored as the lowest value.
    """
    arrays = {"factor" if name == "open_factor" else name: array for name, array in step.arrays.items()}
    exact, finite = "requantize" in step.rules, "open_factor" not in step.arrays
    rule = requantize.RULES[step.rules["requantize"]] if exact else rescale.RULES[step.rules["rescale"]]
    with np.errstate(over="ignore", invalid="ignore"):
        if not exact and finite and all(array.ndim <= 1 for array in arrays.values()):
            return store.rescale_and_store(acc, step.rules, arrays, step.parameters, dtype)
        rescaled = rule.apply(acc, arrays)
        stored = store.RULES[step.rules["store"]](rescaled, step["output_zero_point"], step["low"], step["high"])
        if not finite:
            stored = np.where(np.isnan(acc.astype(np.float32) * arrays["factor"]), step["low"], stored)
    return stored.astype(dtype)


def adds_exactly(step: Step) -> bool:
    """Whether a step adds up exact products and, if it rescales, does so by finite multipliers."""
    return accumulate.RULES[step.rules["accumulate"]].lost is None and "open_factor" not in step.arrays


def is_plain(step: Step) -> bool:
    """Whether operators may carry a step out that know of no other sums: layers whose scales are no operands."""
    return adds_exactly(step) and "requantize" not in step.rules


def check_bias_type(call: Call, source: int = 0, position: int = 2) -> None:
    """With 16-bit activations the attribute `bias_type` must agree with the bias tensor.

    Unset (f32) means s64 beside 8-bit and narrower weights, s32 beside 16-bit weights.
    """
    if call.input(source).dtype != "s16":
        return
    declared = call.attribute("bias_type")
    if declared not in ("f32", "s32", "s64"):
        raise call.invalid("BT-BIAS-TYPE", f"the operator declares a bias of type {declared}, expected s32 or s64")
    read_as = ("s32" if call.input(1).dtype == "s16" else "s64") if declared == "f32" else declared
    if call.has(position) and call.input(position).dtype != read_as:
        bias = call.input(position)
        raise call.invalid(
            "BT-BIAS-TYPE",
            f"the operator reads a bias of type {read_as}, but tensor '{bias.name}' is {bias.dtype}",
            "kernels read the bias by the declared type, so the result would be undefined; "
            "set quantized_bias_type when converting",
        )


def check_weight_scales(call: Call, channels: int, axis: int) -> None:
    """Weights carry one scale, or one per output channel."""
    quantization = call.input(1, "weights").quantization
    if call.input(1).dtype == "u8" and quantization.per_axis:
        raise call.invalid("BT-QUANT-PER-AXIS", "uint8 weights cannot have several scales")
    size = call.input(1).shape[quantization.axis] if quantization.axis is not None else channels
    if quantization.per_axis and (quantization.scales.size != channels or size != channels):
        raise call.invalid(
            "BT-QUANT-AXIS",
            f"weights have {quantization.scales.size} scales along axis {quantization.axis}, "
            f"expected {channels} (one per output channel, axis {axis})",
        )
