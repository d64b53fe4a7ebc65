"""Conditions under which a delegate takes a node over, for `conditions.CONDITIONS`.

A delegate looks at the file, before any shape is inferred: shapes here are the declared ones. A place is the position
of an input, ``"output"``, or ``"outputs"`` for all of them; absent inputs satisfy every condition but `stored`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from .base import Call, Operand

_SMALLEST_NORMAL = np.finfo(np.float32).tiny


def _at(call: Call, places: Iterable[object]) -> list[Operand]:
    found: list[Operand | None] = []
    for place in places:
        if isinstance(place, int):
            found.append(call.inputs[place] if place < len(call.inputs) else None)
        else:
            found.extend(call.outputs if place == "outputs" else call.outputs[:1])
    return [operand for operand in found if operand is not None]


def declared_rank(call: Call, low: int, high: int, *places: object) -> bool:
    """Declared ranks lie between `low` and `high`, and no declared extent is 0."""
    return all(low <= len(o.tensor.shape) <= high and min(o.tensor.shape, default=1) > 0 for o in _at(call, places))


def one_scale(call: Call, *places: object) -> bool:
    """8-bit tensors have one scale and one zero point for all elements."""
    operands = [o for o in _at(call, places) if o.dtype in ("s8", "u8")]
    return all(o.tensor.quantization is not None and not o.tensor.quantization.per_axis for o in operands)


def stored(call: Call, *positions: int) -> bool:
    """The inputs at `positions` are there, and in the file or made of what is in the file."""
    return all(call.has(p) and call.input(p).value is not None for p in positions)


def stored_in_file(call: Call, *positions: int) -> bool:
    """The inputs at `positions` are there and constants of the file, not results of other nodes."""
    return all(call.has(p) and call.input(p).tensor.is_constant for p in positions)


def _normal(scales: np.ndarray) -> bool:
    return bool((np.isfinite(scales) & (scales >= _SMALLEST_NORMAL)).all())


def weights_scaled_along(call: Call, axis: int, position: int = 1) -> bool:
    """Weights have one scale, or several along `axis` with zero points that begin with 0; scales are normal numbers."""
    quantization = call.input(position).tensor.quantization
    if quantization is None or not _normal(quantization.scales):
        return False
    first = int(quantization.zero_points[0])
    if quantization.per_axis:
        return quantization.axis == axis and first == 0
    kind = call.input(position).type
    return kind.minimum <= first <= kind.maximum


def layer_weights_scaled(call: Call) -> bool:
    """Weights have one scale and zero point 0, or several scales along axis 0."""
    quantization = call.input(1).tensor.quantization
    if quantization is None:
        return False
    return quantization.axis == 0 if quantization.per_axis else int(quantization.zero_points[0]) == 0


def packed_rows_fill_bytes(call: Call) -> bool:
    """Rows of 4-bit and 2-bit weights end with a byte, and 2-bit ones have a scale per row."""
    weights = call.input(1)
    if not weights.type.is_packed:
        return True
    quantization = weights.tensor.quantization
    per_row = quantization is not None and quantization.scales.size == weights.shape[0]
    return weights.shape[-1] % (8 // weights.type.bits) == 0 and (weights.dtype != "s2" or per_row)


def weights_in_rows(call: Call) -> bool:
    """Weights have one scale, or several along axis 0."""
    quantization = call.input(1).tensor.quantization
    return quantization is not None and (not quantization.per_axis or quantization.axis == 0)


def transposed_filter_fits(call: Call) -> bool:
    """A transposed convolution whose filters fit into its output (without padding) or reach its strides (with it)."""
    weights, output = call.input(1).tensor.shape, call.output.shape
    strides = call.attribute("stride_h"), call.attribute("stride_w")
    if call.attribute("padding") == "valid":
        return all(taps <= extent for taps, extent in zip(weights[1:3], output[1:3], strict=True))
    return all(taps >= stride for taps, stride in zip(weights[1:3], strides, strict=True))


def filters_of_one_pixel(call: Call) -> bool:
    """A convolution in one group whose filters are one pixel large and move by one."""
    weights, source = call.input(1).shape, call.input(0).shape
    return (
        weights[1:3] == (1, 1)
        and weights[3] == source[-1]
        and call.attribute("stride_h") == call.attribute("stride_w") == 1
    )


def filters_of_one_channel(call: Call, most_taps: int) -> bool:
    """A convolution whose groups have one input and one output channel each, with at most so many taps."""
    source, weights, channels = call.input(0).shape, call.input(1).shape, call.output.shape[-1]
    depth = 1 if call.node.operator == "depthwise_conv2d" else weights[3]
    return depth == 1 and channels == source[-1] and weights[1] * weights[2] <= most_taps


def bias_scaled(call: Call, position: int = 2) -> bool:
    """The bias has normal scales along its only axis, and 32-bit integers zero points that begin with 0."""
    if not call.has(position) or call.input(position).dtype != "s32":
        return True
    quantization = call.input(position).tensor.quantization
    return quantization is not None and _normal(quantization.scales) and int(quantization.zero_points[0]) == 0


def scale_ratio_within(call: Call, low: float, high: float, closed: bool, *positions: int) -> bool:
    """low <= f32(input scale / output scale) < high (or <= high) for 8-bit inputs of the output's type."""
    if call.output.dtype not in ("s8", "u8"):
        return True
    for operand in _at(call, positions):
        ratio = np.float32(operand.scale) / np.float32(call.output.scale)
        if not (low <= ratio and (ratio <= high if closed else ratio < high)):
            return False
    return True


def scale_product_within(call: Call, low: float, high: float) -> bool:
    """low <= f32(f32(first scale * second scale) / output scale) < high."""
    if call.output.dtype not in ("s8", "u8"):
        return True
    ratio = np.float32(call.input(0).scale) * np.float32(call.input(1).scale) / np.float32(call.output.scale)
    return bool(low <= ratio < high)


def slopes_within(call: Call, low: float, high: float, lowest_slope: float) -> bool:
    """alpha is a normal number; low <= f32(input / output scale) <= high, and that times alpha lies between
    `lowest_slope` and `high` and is not smaller than `low`.
    """
    alpha = np.float32(call.attribute("alpha"))
    if not (np.isfinite(alpha) and abs(alpha) >= _SMALLEST_NORMAL):
        return False
    if call.output.dtype not in ("s8", "u8"):
        return True
    positive = np.float32(call.input(0).scale) / np.float32(call.output.scale)
    negative = positive * alpha
    return bool(low <= positive <= high and lowest_slope <= negative <= high and abs(negative) >= low)


def same_scale_as_output(call: Call, *positions: int) -> bool:
    """8-bit inputs at `positions` have the output's scale and zero point."""
    if call.output.dtype not in ("s8", "u8"):
        return True
    output = call.output.quantization
    return all(o.tensor.quantization is not None and o.quantization.same_as(output) for o in _at(call, positions))


def first_zero_point_is_zero(call: Call, *positions: int) -> bool:
    """Inputs at `positions` have zero points that begin with 0."""
    found = [o.tensor.quantization for o in _at(call, positions)]
    return all(q is None or int(q.zero_points[0]) == 0 for q in found)


def windows_overlap(call: Call) -> bool:
    """Strides of a pooling window do not exceed its extents, and a window of one pixel has stride 1."""
    height, width = call.attribute("filter_h"), call.attribute("filter_w")
    stride_h, stride_w = call.attribute("stride_h"), call.attribute("stride_w")
    if min(height, width, stride_h, stride_w) < 1 or stride_h > height or stride_w > width:
        return False
    return not (height == width == 1 and max(stride_h, stride_w) > 1)


def bias_beyond(call: Call, limit: int, position: int = 2) -> bool:
    """Weights are packed, and the bias is known and leaves -limit..limit."""
    value = call.input(position).value if call.has(position) else None
    return call.input(1).type.is_packed and value is not None and bool((np.abs(value.astype(np.int64)) > limit).any())


def output_is_empty(call: Call) -> bool:
    """The result, as its shape is inferred, has no element."""
    return call.output.size == 0


def input_rank_at_most(call: Call, position: int, limit: int) -> bool:
    """The input at `position` has at most this rank."""
    return call.has(position) and len(call.input(position).tensor.shape) <= limit


def not_empty(call: Call, *positions: int) -> bool:
    """Inputs at `positions` hold at least one element."""
    return all(o.size > 0 for o in _at(call, positions))


def values_within(call: Call, position: int, low: int, high: int) -> bool:
    """The input at `position` is known and holds integers from `low` to `high`."""
    value = call.input(position).value if call.has(position) else None
    return value is not None and bool(((value >= low) & (value <= high)).all())


def block_size_above_1(call: Call) -> bool:
    """Blocks are larger than one pixel."""
    return int(call.attribute("block_size")) > 1


def counts_within(call: Call, inputs: tuple[int, int], outputs: tuple[int, int]) -> bool:
    """The node has this many inputs and outputs."""
    return inputs[0] <= len(call.inputs) <= inputs[1] and outputs[0] <= len(call.outputs) <= outputs[1]


PARTITION: dict[str, Callable[..., bool]] = {
    "bias_beyond": bias_beyond,
    "bias_scaled": bias_scaled,
    "block_size_above_1": block_size_above_1,
    "counts_within": counts_within,
    "declared_rank": declared_rank,
    "input_rank_at_most": input_rank_at_most,
    "filters_of_one_channel": filters_of_one_channel,
    "filters_of_one_pixel": filters_of_one_pixel,
    "layer_weights_scaled": layer_weights_scaled,
    "not_empty": not_empty,
    "one_scale": one_scale,
    "output_is_empty": output_is_empty,
    "packed_rows_fill_bytes": packed_rows_fill_bytes,
    "same_scale_as_output": same_scale_as_output,
    "scale_product_within": scale_product_within,
    "scale_ratio_within": scale_ratio_within,
    "slopes_within": slopes_within,
    "stored": stored,
    "stored_in_file": stored_in_file,
    "transposed_filter_fits": transposed_filter_fits,
    "values_within": values_within,
    "weights_in_rows": weights_in_rows,
    "weights_scaled_along": weights_scaled_along,
    "windows_overlap": windows_overlap,
    "first_zero_point_is_zero": first_zero_point_is_zero,
}
