"""Conditions under which a numerics row holds for a node, by name: which way its runtime takes there.

Each takes the call, whose output shapes are inferred, and the row's arguments, and says whether it holds. Unlike the
checks in `requirements`, a condition that does not hold is no error: the next row has its turn.
"""

from __future__ import annotations

from collections.abc import Callable

from .base import Call
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


CONDITIONS: dict[str, Callable[..., bool]] = {
    "attribute_is": attribute_is,
    "blocks_interleave": blocks_interleave,
    "broadcast_form": broadcast_form,
    "constant_inputs": constant_inputs,
    "doubles_picture": doubles_picture,
    "equal_extents": equal_extents,
    "every_channel_its_group": every_channel_its_group,
    "every_output_its_group": every_output_its_group,
    "input_per_axis": input_per_axis,
    "input_rank": input_rank,
    "last_extent_below": last_extent_below,
    "last_extent_in_blocks": last_extent_in_blocks,
    "not_broadcast": not_broadcast,
    "output_zero_point_outside": output_zero_point_outside,
    "per_tensor": per_tensor,
    "product_within_16_bits": product_within_16_bits,
    "reduces": reduces,
    "reduces_rows": reduces_rows,
    "window_is_picture": window_is_picture,
    "resized_channels_last": resized_channels_last,
    "single_tap": single_tap,
    "zero_point_is_zero": zero_point_is_zero,
    **PARTITION,
}
