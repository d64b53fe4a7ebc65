"""Conditions under which a numerics row holds for a node, by name: which way its runtime takes there.

Each takes the call, whose output shapes are inferred, and the row's arguments, and says whether it holds. Unlike the
checks in `requirements`, a condition that does not hold is no error: the next row has its turn.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..rules import accumulate, scale_form
from .base import Call
from .geometry import windows_by_letter
from .granularity import blocks_interleave
from .lanes import broadcast_runs
from .partition import PARTITION
from .reduce import reduced_axes
from .resample import resized_axes
from .whole_conv import every_channel_its_group, every_output_its_group, single_tap


def constant_inputs(call: Call, *positions: int) -> bool:
    """The inputs at `positions` are known at plan time (absent ones count as known)."""
    return all(not call.has(p) or call.input(p).value is not None for p in positions)


def input_rank(call: Call, position: int, *ranks: int) -> bool:
    """The input at `position` has one of these ranks."""
    return call.has(position) and call.input(position).rank in ranks


def attribute_is(call: Call, name: str, *values: object) -> bool:
    """Attribute `name` has one of these values."""
    return call.node.attributes.get(name) in values


def input_per_axis(call: Call, position: int) -> bool:
    """The input at `position` has a scale per slice of an axis."""
    quantization = call.input(position).tensor.quantization if call.has(position) else None
    return quantization is not None and quantization.per_axis


def equal_extents(call: Call, first: int, first_axis: int, second: int, second_axis: int) -> bool:
    """Two inputs have the same extent along one axis each."""
    return call.input(first).shape[first_axis] == call.input(second).shape[second_axis]


def last_extent_below(call: Call, position: int, limit: int) -> bool:
    """The last axis of the input at `position` is shorter than `limit`."""
    return call.input(position).rank > 0 and call.input(position).shape[-1] < limit


def last_extent_in_blocks(call: Call, position: int, block: int) -> bool:
    """The last axis of the input at `position` holds whole blocks of `block` elements."""
    return call.input(position).rank > 0 and call.input(position).shape[-1] % block == 0


def extent_in_blocks(call: Call, position: int, axis: int, block: int) -> bool:
    """An axis of the input at `position` holds whole blocks of `block` elements."""
    return axis < call.input(position).rank and call.input(position).shape[axis] % block == 0


def extent_not_in_blocks(call: Call, position: int, axis: int, block: int) -> bool:
    """An axis of the input at `position` holds no whole blocks of `block` elements."""
    return not extent_in_blocks(call, position, axis, block)


def zero_point_is_zero(call: Call, position: int) -> bool:
    """The input at `position` has the zero point 0; those of per-axis parameters are not looked at."""
    quantization = call.input(position).tensor.quantization
    return quantization is None or quantization.per_axis or not quantization.zero_points.any()


def output_zero_point_outside(call: Call) -> bool:
    """The output's zero point is no value of its type; those of per-axis parameters are not looked at."""
    output, quantization = call.output, call.output.tensor.quantization
    if quantization is None or quantization.per_axis:
        return False
    return not output.type.minimum <= output.zero_point <= output.type.maximum


def broadcast_form(call: Call, *forms: str) -> bool:
    """Both inputs are walked in one of these forms (see `lanes.broadcast_runs`)."""
    return broadcast_runs(call.input(0).shape, call.input(1).shape)[0] in forms


def not_broadcast(call: Call) -> bool:
    """Both inputs have one shape, but for leading extents of 1."""
    one, two = call.input(0).shape, call.input(1).shape
    rank = max(len(one), len(two))
    return (1,) * (rank - len(one)) + one == (1,) * (rank - len(two)) + two


def product_within_16_bits(call: Call) -> bool:
    """The rescaled product and the output's zero point surely add up to no more than 16 bits hold."""
    first, second, output = call.input(0), call.input(1), call.output
    spans = [max(abs(o.type.minimum - o.zero_point), abs(o.type.maximum - o.zero_point)) for o in (first, second)]
    real = float(first.scale) * float(second.scale) / float(output.scale) if output.scale else float("inf")
    # Two roundings and the encoding of the multiplier move the result by less than 2.
    return spans[0] * spans[1] * real + 2 + abs(output.zero_point) <= 32767


def reduces(call: Call, rank: int, *axes: int) -> bool:
    """An input of this rank is reduced along exactly these axes."""
    return call.input(0).rank == rank and reduced_axes(call) == axes


def reduces_rows(call: Call) -> bool:
    """Each output is made of neighbours in memory, and there are several outputs."""
    source, axes = call.input(0), reduced_axes(call)
    larger = [axis for axis in range(source.rank) if source.shape[axis] != 1]
    reduced = [axis for axis in larger if axis in axes]
    return 0 < len(reduced) < len(larger) and larger[-len(reduced) :] == reduced


def doubles_picture(call: Call) -> bool:
    """Height and width of [N, H, W, C] are doubled, with corners and centres of pixels left where they are."""
    modes = call.node.attributes.get("align_corners"), call.node.attributes.get("half_pixel_centers")
    before, after = call.input(0).shape[1:3], call.output.shape[1:3]
    return not any(modes) and tuple(after) == tuple(2 * extent for extent in before)


def resized_channels_last(call: Call) -> bool:
    """Axes 1 and 2 of four are resized, and the last one is not."""
    return resized_axes(call) == (1, 2)


def per_tensor(call: Call) -> bool:
    """No operand has a scale per slice of an axis."""
    operands = (*(o for o in call.inputs if o is not None), *call.outputs)
    return not any(o.tensor.quantization is not None and o.tensor.quantization.per_axis for o in operands)


def window_is_picture(call: Call) -> bool:
    """The window of a pool is the whole picture, and nothing is padded."""
    shape, result = call.input(0).shape, call.output.shape
    picture, out = (shape[1:-1], result[1:-1]) if call.attribute("channels_last") else (shape[2:], result[2:])
    return tuple(call.attribute("kernel_shape")) == picture and set(out) == {1} and not any(call.attribute("pads"))


def taps_in_pairs(call: Call) -> bool:
    """A depthwise convolution of 3x3 taps whose channels come in eights: pads of 1, stride 1 or 2, no dilation.

    Filters are [1, h, w, C * multiplier], or [C * multiplier, h, w, 1] with a group for each channel.
    """
    source, filters = call.input(0).shape, call.input(1).shape
    plain = {call.attribute(f"dilation_{side}") for side in "hw"} == {1}
    strides = call.attribute("stride_h"), call.attribute("stride_w")
    if filters[1:3] != (3, 3) or source[3] % 8 or not plain or strides not in ((1, 1), (2, 2)):
        return False
    if filters[0 if call.node.operator == "depthwise_conv2d" else 3] != 1:
        return False
    sides = windows_by_letter(call, source[1:3], (3, 3))
    return {pad for side in sides for pad in (side.before, side.after)} == {1}


def several_filters_per_channel(call: Call) -> bool:
    """A depthwise convolution has more output than input channels."""
    return call.output.shape[3] != call.input(0).shape[3]


def pairs_can_saturate(call: Call) -> bool:
    """Two neighbouring taps of filters [1, h, w, C] of u8, 128 taken off, can leave 16 bits when multiplied by u8."""
    filters = call.input(1).value
    if filters is None:
        return True
    signed = filters.reshape(-1, filters.shape[3]).astype(np.int64) - 128
    return bool(accumulate.risky_pairs(signed).any())


def one_channel_spans_rows(call: Call) -> bool:
    """A convolution whose filters (input 1, depth second) see one channel, with one window along the last axis."""
    return call.input(1).shape[1:2] == (1,) and call.output.shape[-1:] == (1,)


def rescaled_within_32_bits(call: Call) -> bool:
    """Accumulators of a layer (weights are input 1, a bias may be input 2), rescaled, surely fit 32 bits."""
    source, weights, output = call.input(0), call.input(1), call.output
    spans = [
        max(abs(operand.type.minimum - operand.zero_point), abs(operand.type.maximum - operand.zero_point))
        for operand in (source, weights)
    ]
    bias = call.input(2).value if call.has(2) else np.zeros(1, np.int32)
    addend = 2**31 if bias is None else int(np.abs(bias.astype(np.int64)).max(initial=0))
    magnitude = weights.size // max(1, output.shape[-1]) * spans[0] * spans[1] + addend
    real = float(scale_form.form("binary32", source.scale, weights.scale, output.scale))
    # Two roundings to 24 bits move the product by less than 2^-20 of it.
    return magnitude * real < 2.0**31 * (1 - 2.0**-20)


CONDITIONS: dict[str, Callable[..., bool]] = {
    "attribute_is": attribute_is,
    "blocks_interleave": blocks_interleave,
    "broadcast_form": broadcast_form,
    "constant_inputs": constant_inputs,
    "doubles_picture": doubles_picture,
    "equal_extents": equal_extents,
    "every_channel_its_group": every_channel_its_group,
    "every_output_its_group": every_output_its_group,
    "extent_in_blocks": extent_in_blocks,
    "extent_not_in_blocks": extent_not_in_blocks,
    "input_per_axis": input_per_axis,
    "input_rank": input_rank,
    "last_extent_below": last_extent_below,
    "last_extent_in_blocks": last_extent_in_blocks,
    "not_broadcast": not_broadcast,
    "one_channel_spans_rows": one_channel_spans_rows,
    "output_zero_point_outside": output_zero_point_outside,
    "pairs_can_saturate": pairs_can_saturate,
    "per_tensor": per_tensor,
    "product_within_16_bits": product_within_16_bits,
    "reduces": reduces,
    "reduces_rows": reduces_rows,
    "window_is_picture": window_is_picture,
    "rescaled_within_32_bits": rescaled_within_32_bits,
    "resized_channels_last": resized_channels_last,
    "several_filters_per_channel": several_filters_per_channel,
    "taps_in_pairs": taps_in_pairs,
    "single_tap": single_tap,
    "zero_point_is_zero": zero_point_is_zero,
    **PARTITION,
}
