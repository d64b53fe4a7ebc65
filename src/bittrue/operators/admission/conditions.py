"""Conditions under which a numerics row holds for a node, by name: which way its runtime takes there.

Each takes the call, whose output shapes are inferred, and the row's arguments, and says whether it holds. Unlike the
checks in `requirements`, a condition that does not hold is no error: the next row has its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

import numpy as np

from ...rules import accumulate, row_product, scale_form
from ..core import granularity
from ..core.base import Call, Operand
from ..core.lanes import broadcast_runs
from ..layers.conv_geometry import channels_first, convolution_windows, filter_sizes, listed_windows
from ..pooling import pooling, resized_places
from ..reduction import reduce


def constant_inputs(call: Call, *positions: int) -> bool:
    """The inputs at `positions` are constants before the first run (absent ones count as such)."""
    return all(not call.has(p) or call.is_stored(p) for p in positions)


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


def equal_sizes(call: Call, first: int, first_axis: int, second: int, second_axis: int) -> bool:
    """Two inputs have the same size along one axis each."""
    return call.input(first).shape[first_axis] == call.input(second).shape[second_axis]


def last_size_below(call: Call, position: int, limit: int) -> bool:
    """The last axis of the input at `position` is shorter than `limit`."""
    return call.input(position).rank > 0 and call.input(position).shape[-1] < limit


def last_size_in_blocks(call: Call, position: int, block: int) -> bool:
    """The last axis of the input at `position` holds whole blocks of `block` elements."""
    return call.input(position).rank > 0 and call.input(position).shape[-1] % block == 0


def size_in_blocks(call: Call, position: int, axis: int, block: int) -> bool:
    """An axis of the input at `position` holds whole blocks of `block` elements."""
    return axis < call.input(position).rank and call.input(position).shape[axis] % block == 0


def size_not_in_blocks(call: Call, position: int, axis: int, block: int) -> bool:
    """An axis of the input at `position` holds no whole blocks of `block` elements."""
    return not size_in_blocks(call, position, axis, block)


def zero_point_is_zero(call: Call, position: int) -> bool:
    """The input at `position` has the zero point 0; those of per-axis parameters are not looked at."""
    quantization = call.input(position).tensor.quantization
    return quantization is None or quantization.per_axis or not quantization.zero_points.any()


def output_zero_point_outside(call: Call, *ends: int) -> bool:
    """The output's zero point is not within `ends`, by default those of its type; per-axis ones are not looked at."""
    output, quantization = call.output, call.output.tensor.quantization
    if quantization is None or quantization.per_axis:
        return False
    low, high = ends or (output.type.minimum, output.type.maximum)
    return not low <= output.zero_point <= high


def broadcast_form(call: Call, *forms: str) -> bool:
    """Both inputs are walked in one of these forms (see `lanes.broadcast_runs`)."""
    return broadcast_runs(call.input(0).shape, call.input(1).shape)[0] in forms


def not_broadcast(call: Call) -> bool:
    """Both inputs have one shape, but for leading dimensions of 1."""
    one, two = call.input(0).shape, call.input(1).shape
    rank = max(len(one), len(two))
    return (1,) * (rank - len(one)) + one == (1,) * (rank - len(two)) + two


def constant_number_has_more_axes(call: Call) -> bool:
    """One of two inputs is a constant of the file with one element, and has a higher rank than the other one."""
    pairs = ((call.input(0), call.input(1)), (call.input(1), call.input(0)))
    return any(a.tensor.is_constant and a.size == 1 and a.rank > b.rank for a, b in pairs)


def equal_shapes(call: Call) -> bool:
    """Both inputs have one shape."""
    return call.input(0).shape == call.input(1).shape


def product_within_16_bits(call: Call) -> bool:
    """The rescaled product and the output's zero point surely add up to no more than 16 bits hold."""
    first, second, output = call.input(0), call.input(1), call.output
    spans = [max(abs(o.type.minimum - o.zero_point), abs(o.type.maximum - o.zero_point)) for o in (first, second)]
    real = float(first.scale) * float(second.scale) / float(output.scale) if output.scale else float("inf")
    # Two roundings and the encoding of the multiplier move the result by less than 2.
    return spans[0] * spans[1] * real + 2 + abs(output.zero_point) <= 32767


def reduces(call: Call, rank: int, *axes: int) -> bool:
    """An input of this rank is reduced along exactly these axes."""
    return call.input(0).rank == rank and reduce.reduced_axes(call) == axes


def reduces_rows(call: Call) -> bool:
    """Each output is made of neighbours in memory, and there are several outputs."""
    source, axes = call.input(0), reduce.reduced_axes(call)
    larger = [axis for axis in range(source.rank) if source.shape[axis] != 1]
    reduced = [axis for axis in larger if axis in axes]
    return 0 < len(reduced) < len(larger) and larger[-len(reduced) :] == reduced


def adds_more_neighbours(call: Call, count: int) -> bool:
    """More than `count` elements of an output lie side by side."""
    return reduce.neighbours(call.input(0).shape, reduce.reduced_axes(call)) > count


def doubles_image(call: Call) -> bool:
    """Height and width of [N, H, W, C] are doubled, with corners and centres of pixels left where they are."""
    before, after = call.input(0).shape[1:3], call.output.shape[1:3]
    return call.attribute("transformation") == "asymmetric" and tuple(after) == tuple(2 * size for size in before)


def resized_channels_last(call: Call) -> bool:
    """Axes 1 and 2 of four are resized, and the last one is not."""
    return resized_places.resized_axes(call) == (1, 2)


def resized_before_channels_or_kept(call: Call) -> bool:
    """Axes 1 and 2 of four are resized, and the last one is not; or nothing is."""
    return resized_channels_last(call) or call.input(0).shape == call.output.shape


def multiplies_one_vector(call: Call, rows: int, depth: int) -> bool:
    """One pixel or row of results, of at least `rows` filters (the weights' first axis) with `depth` taps or more."""
    filters, *taps = call.input(1).shape
    return filters >= rows and prod(taps) >= depth and prod(call.output.shape) == filters


def one_long_row(call: Call, position: int, least: int) -> bool:
    """The output at `position` is one row of at least `least` elements."""
    *rows, length = call.outputs[position].shape
    return prod(rows) == 1 and length >= least


def hybrid_product_is(call: Call, *ways: str) -> bool:
    """Rows of activations, quantized while running, meet their weights in one of these ways."""
    rows, columns = call.input(1).shape
    return row_product.way_of_product(prod(call.output.shape) // max(1, rows), rows, columns) in ways


def sums_in_one_block(call: Call, most: int) -> bool:
    """Filters (the weights' first axis) of at most so many terms, or a single one, or one pixel or row of results."""
    filters, *taps = call.input(1).shape
    return prod(taps) <= most or filters == 1 or prod(call.output.shape) == filters


def four_bits_in_blocks(call: Call) -> bool:
    """Weights are constants of 4 bits: four rows or more, of an even number of 32 columns or more."""
    weights = call.input(1)
    rows, columns = weights.shape
    return weights.dtype == "s4" and call.is_stored(1) and rows >= 4 and columns >= 32 and columns % 2 == 0


def every_output_its_group(call: Call) -> bool:
    """As many groups as output channels."""
    return convolution_windows(call)[1] == call.input(1).shape[0]


def every_channel_its_group(call: Call) -> bool:
    """As many groups as output channels and as input channels."""
    return every_output_its_group(call) and call.input(1).shape[0] == call.input(0).shape[1]


def single_tap(call: Call) -> bool:
    """Filters of one position."""
    return prod(call.input(1).shape[2:]) == 1


def blocks_interleave(call: Call) -> bool:
    """Blocked scales, and elements of different blocks lie between those of one (the axis is not the last one)."""
    axis, block = granularity.granularity(call)
    return block > 0 and any(size != 1 for size in call.input(0).shape[axis + 1 :])


def per_tensor(call: Call) -> bool:
    """No operand has a scale per slice of an axis."""
    operands = (*(o for o in call.inputs if o is not None), *call.outputs)
    return not any(o.tensor.quantization is not None and o.tensor.quantization.per_axis for o in operands)


def attends_alone(call: Call) -> bool:
    """Attention without mask, additions and cache to keys [B, L, N * H], whose only result is the sums of values."""
    # Most models have none.
    from ..attention import attention

    alone = len(call.outputs) == 1 and not any(map(call.has, range(attention.MASK, attention.LENGTHS)))
    return (
        alone and not call.attribute("causal") and not (call.has(attention.KEY) and call.input(attention.KEY).rank == 4)
    )


def attends_in_plain(call: Call) -> bool:
    """Causal attention to several keys by scores as they are, without caps and sinks, that gives no scores."""
    from ..attention import attention

    plain = not call.attribute("cap") and not call.attribute("smooth") and not call.has(attention.SINK)
    return (
        plain
        and bool(call.attribute("causal"))
        and len(call.outputs) == 3
        and call.integers(attention.TOTAL, "length")[0] > 1
    )


def attends_in_one_block(call: Call, cache: int) -> bool:
    """Blocks of queries and of keys as a second-level cache of so many bytes has them hold all of them."""
    from ..attention import attention

    sizes = attention.sizes_of(call)
    both = sizes.size + sizes.value_size
    return sizes.keys <= cache // (16 * both) and sizes.queries <= min(both, cache // (16 * both))


def experts_gate_by_blocks(call: Call) -> bool:
    """Experts with gated products (`swiglu`) both of whose layers meet kernels that know of blocks."""
    from ..layers import mixture_of_experts

    return call.attribute("activation") == "swiglu" and mixture_of_experts.both_by_blocks(call)


def rows_are_whole_blocks(call: Call, least: int, wanted: bool) -> bool:
    """Whether rows of K terms hold whole blocks of at least `least` each is as `wanted`."""
    block = int(call.attribute("block_size"))
    return (block >= least and int(call.attribute("k")) % block == 0) == wanted


def states_fill_vectors(call: Call, lanes: int = 16, *readers: int) -> bool:
    """States [K, V] of linear attention: K up to 256 in whole lanes, V in 32s, and that many queries that read one."""
    from ..attention import linear_attention

    _, _, heads, _, value_heads, size, value_size = linear_attention.sizes_of(call)
    whole = size % lanes == 0 and size <= 256 and value_size % 32 == 0
    return whole and max(1, heads // value_heads) in (readers or (1, 2, 4, 8))


def windows_of_7_for_two(call: Call) -> bool:
    """Several channels with two filters each, of 7 x 7 in steps of 2, and 3 zeros at every side of the image."""
    weights, size = call.input(1).shape, channels_first(call, call.input(0).shape)[2:]
    groups, auto = int(call.attribute("groups")), str(call.attribute("auto_pad"))
    # Pads that follow from the size are 3 where it is odd.
    pads = call.attribute("pads") == (3,) * 4 if auto == "NOTSET" else all(n % 2 for n in size)
    return (
        groups > 1
        and weights == (2 * groups, 1, 7, 7)
        and auto != "VALID"
        and pads
        and call.attribute("strides") == (2, 2)
        and call.attribute("dilations") in ((), (1, 1))
    )


def window_is_image(call: Call) -> bool:
    """The window of a pool is the whole image, and nothing is padded."""
    return all(
        one.taps == one.size and one.out == 1 and not (one.before or one.after) for one in pooling.pool_windows(call)
    )


def taps_in_pairs(call: Call) -> bool:
    """A depthwise convolution of 3x3 taps whose channels come in eights: pads of 1, stride 1 or 2, no dilation.

    Filters are [1, h, w, C * multiplier], or [C * multiplier, h, w, 1] with a group for each channel.
    """
    source, filters = call.input(0).shape, call.input(1).shape
    plain, strides = set(call.attribute("dilations")) == {1}, tuple(call.attribute("strides"))
    if filters[1:3] != (3, 3) or source[3] % 8 or not plain or strides not in ((1, 1), (2, 2)):
        return False
    if filter_sizes(call)[1] != 1:
        return False
    sides = listed_windows(call, source[1:3], (3, 3))
    return {pad for side in sides for pad in (side.before, side.after)} == {1}


def three_by_three_in_eights(call: Call, wanted: bool) -> bool:
    """Whether it is as `wanted` that a depthwise convolution has 3x3 taps for channels that come in eights, one filter
    each, steps of 1 or 2 in both directions, no dilation, and the same padding of 0 or 1 before both axes, behind which
    windows reach no farther; images of one line or column are single pixels.
    """
    (vertical, horizontal), groups = convolution_windows(call)
    both = (vertical, horizontal)
    found = (
        groups == call.output.shape[-1] == call.input(0).shape[-1]
        and groups % 8 == 0
        and all(one.taps == 3 and one.dilation == 1 for one in both)
        and vertical.stride == horizontal.stride <= 2
        and vertical.before == horizontal.before <= 1
        and all(one.reached <= one.size + 2 * one.before for one in both)
        and (vertical.before == 0 or 1 not in (vertical.size, horizontal.size) or vertical.size == horizontal.size)
    )
    return found == wanted


def several_filters_per_channel(call: Call) -> bool:
    """A depthwise convolution has more output than input channels."""
    return call.output.shape[3] != call.input(0).shape[3]


def pairs_can_saturate(call: Call) -> bool:
    """Two neighbouring taps of filters [1, h, w, C] of u8, 128 taken off, can leave 16 bits when multiplied by u8."""
    filters = call.input(1).value
    if filters is None:
        return True
    return bool(accumulate.risky_pairs(_signed(filters).reshape(-1, filters.shape[3])).any())


def _signed(quantized: np.ndarray) -> np.ndarray:
    """Quantized values as kernels multiply them: 128 is taken off those of u8."""
    return quantized.astype(np.int64) - (128 if quantized.dtype == np.uint8 else 0)


def filter_pairs_can_saturate(call: Call) -> bool:
    """Two neighbours in filters [M, ...], 128 taken off those of u8, can leave 16 bits when multiplied by u8."""
    filters = call.input(1).value
    return filters is None or bool(accumulate.risky_pairs(_signed(filters).reshape(len(filters), -1).T).any())


def window_pairs_can_saturate(call: Call) -> bool:
    """Two neighbouring terms of windows of u8, times filters [M, C, taps...] of s8, can leave 16 bits, where taps count
    before channels, or (attribute `pairs_by_tap`) within a tap. One channel with one filter is multiplied alone, if all
    filters (zero points are input 6) have one.
    """
    filters, groups = call.input(1).value, int(call.attribute("groups"))
    if filters is None or not filters.size:
        return True
    points = call.input(6).value if call.has(6) else np.zeros(1, np.int8)
    if filters.shape[1] == 1 and filters.shape[0] == groups and points is not None and not np.ptp(points):
        return False
    by_taps = accumulate.tap_by_tap(_signed(filters), bool(call.node.attributes.get("pairs_by_tap")))
    return bool(accumulate.risky_pairs(by_taps.T).any())


def single_filters(call: Call) -> bool:
    """A convolution's filters [M, C, taps...] have one channel each, and a group of their own."""
    filters = call.input(1).shape
    return filters[1] == 1 and filters[0] == int(call.attribute("groups"))


def filters_in_several_groups(call: Call) -> bool:
    """A convolution's filters [M, C, taps...] have groups, and are not `single_filters`."""
    return int(call.attribute("groups")) > 1 and not single_filters(call)


def moved_window_sums_within(call: Call, largest: int, limit: int) -> bool:
    """Windows of s8, 128 added, times filters [M, C, taps...] surely add up to no more than `limit`; filters that are
    not known hold no more than `largest`.
    """
    shape, filters = call.input(1).shape, call.input(1).value
    if filters is None:
        return 255 * largest * prod(shape[1:]) <= limit
    rows = filters.reshape(shape[0], -1).astype(np.int64)
    ends = [np.maximum(sign * rows, 0).sum(axis=1).max(initial=0) for sign in (1, -1)]
    return 255 * int(max(ends)) <= limit


def column_pairs_can_saturate(call: Call) -> bool:
    """Two neighbouring terms of rows of u8 and columns of s8 can leave 16 bits: of input 1, [K, N] or its transpose."""
    columns = call.input(1).value
    if columns is None or columns.ndim < 2:
        return True
    turned = call.node.attributes.get("transpose_b", False)
    signed = _signed(columns)
    return bool(accumulate.risky_pairs(signed.swapaxes(-1, -2) if turned else signed).any())


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


# Conditions under which a delegate takes a node over. It looks at the file, before any shape is inferred: shapes below
# are the declared ones. A place is the position of an input, `"output"`, or `"outputs"` for all of them; absent inputs
# satisfy every condition but `stored`.
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
    """Declared ranks lie between `low` and `high`, and no declared dimension is 0."""
    return all(low <= len(o.tensor.shape) <= high and min(o.tensor.shape, default=1) > 0 for o in _at(call, places))


def one_scale(call: Call, *places: object) -> bool:
    """8-bit tensors have one scale and one zero point for all elements."""
    operands = [o for o in _at(call, places) if o.dtype in ("s8", "u8")]
    return all(o.tensor.quantization is not None and not o.tensor.quantization.per_axis for o in operands)


def stored(call: Call, *positions: int) -> bool:
    """The inputs at `positions` are there, and constants before the first run."""
    return all(call.has(p) and call.is_stored(p) for p in positions)


def halves_of_halves(call: Call, position: int, other: int) -> bool:
    """Where the input at `position` is unpacked from binary16 numbers, the one at `other` is, too."""
    given = call.has(position) and call.input(position).unpacked_from == "f16"
    return not given or call.input(other).unpacked_from == "f16"


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
    if call.attribute("padding") == "explicit":
        return all(taps <= size for taps, size in zip(weights[1:3], output[1:3], strict=True))
    return all(taps >= stride for taps, stride in zip(weights[1:3], call.attribute("strides"), strict=True))


def filters_of_one_pixel(call: Call) -> bool:
    """A convolution in one group whose filters are one pixel large and move by one."""
    weights, source = call.input(1).shape, call.input(0).shape
    return weights[1:3] == (1, 1) and weights[3] == source[-1] and tuple(call.attribute("strides")) == (1, 1)


def filters_of_one_channel(call: Call, most_taps: int) -> bool:
    """A convolution whose groups have one input and one output channel each, with at most so many taps."""
    source, weights, channels = call.input(0).shape, call.input(1).shape, call.output.shape[-1]
    return filter_sizes(call)[1] == 1 and channels == source[-1] and weights[1] * weights[2] <= most_taps


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
    """Strides of a pooling window do not exceed its dimensions, and a window of one pixel has stride 1."""
    kernel, strides = call.attribute("kernel"), call.attribute("strides")
    if min(*kernel, *strides) < 1 or any(stride > taps for stride, taps in zip(strides, kernel, strict=True)):
        return False
    return not (set(kernel) == {1} and max(strides) > 1)


def one_tap(call: Call) -> bool:
    """A pooling window holds one pixel."""
    return set(call.attribute("kernel")) == {1}


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


def differences_leave_16_bits(call: Call, *pairs: tuple[int, int]) -> bool:
    """Of some pair (operand, zero point), both by position, the difference may leave 16 bits, as it may where the zero
    point is computed.
    """
    for operand, point in pairs:
        value, kind = call.input(point).value, call.input(operand).type
        if value is None or kind.minimum - int(value.max()) < -32768 or kind.maximum - int(value.min()) > 32767:
            return True
    return False


def indices_for_every_axis(call: Call, position: int) -> bool:
    """The first input has as many dimensions as the input at `position` has elements."""
    return call.has(position) and call.input(position).tensor.shape == (call.input(0).rank,)


def block_size_above_1(call: Call) -> bool:
    """Blocks are larger than one pixel."""
    return int(call.attribute("block_size")) > 1


def counts_within(call: Call, inputs: tuple[int, int], outputs: tuple[int, int]) -> bool:
    """The node has this many inputs and outputs."""
    return inputs[0] <= len(call.inputs) <= inputs[1] and outputs[0] <= len(call.outputs) <= outputs[1]


CONDITIONS: dict[str, Callable[..., bool]] = {
    "adds_more_neighbours": adds_more_neighbours,
    "attends_alone": attends_alone,
    "attends_in_one_block": attends_in_one_block,
    "attends_in_plain": attends_in_plain,
    "attribute_is": attribute_is,
    "bias_beyond": bias_beyond,
    "bias_scaled": bias_scaled,
    "block_size_above_1": block_size_above_1,
    "blocks_interleave": blocks_interleave,
    "broadcast_form": broadcast_form,
    "column_pairs_can_saturate": column_pairs_can_saturate,
    "filter_pairs_can_saturate": filter_pairs_can_saturate,
    "filters_in_several_groups": filters_in_several_groups,
    "single_filters": single_filters,
    "moved_window_sums_within": moved_window_sums_within,
    "constant_inputs": constant_inputs,
    "counts_within": counts_within,
    "declared_rank": declared_rank,
    "differences_leave_16_bits": differences_leave_16_bits,
    "doubles_image": doubles_image,
    "equal_sizes": equal_sizes,
    "equal_shapes": equal_shapes,
    "every_channel_its_group": every_channel_its_group,
    "every_output_its_group": every_output_its_group,
    "experts_gate_by_blocks": experts_gate_by_blocks,
    "size_in_blocks": size_in_blocks,
    "size_not_in_blocks": size_not_in_blocks,
    "four_bits_in_blocks": four_bits_in_blocks,
    "filters_of_one_channel": filters_of_one_channel,
    "filters_of_one_pixel": filters_of_one_pixel,
    "first_zero_point_is_zero": first_zero_point_is_zero,
    "halves_of_halves": halves_of_halves,
    "hybrid_product_is": hybrid_product_is,
    "input_per_axis": input_per_axis,
    "indices_for_every_axis": indices_for_every_axis,
    "input_rank": input_rank,
    "input_rank_at_most": input_rank_at_most,
    "last_size_below": last_size_below,
    "last_size_in_blocks": last_size_in_blocks,
    "layer_weights_scaled": layer_weights_scaled,
    "not_broadcast": not_broadcast,
    "not_empty": not_empty,
    "one_long_row": one_long_row,
    "one_scale": one_scale,
    "one_tap": one_tap,
    "output_is_empty": output_is_empty,
    "constant_number_has_more_axes": constant_number_has_more_axes,
    "output_zero_point_outside": output_zero_point_outside,
    "packed_rows_fill_bytes": packed_rows_fill_bytes,
    "pairs_can_saturate": pairs_can_saturate,
    "multiplies_one_vector": multiplies_one_vector,
    "per_tensor": per_tensor,
    "product_within_16_bits": product_within_16_bits,
    "reduces": reduces,
    "reduces_rows": reduces_rows,
    "rescaled_within_32_bits": rescaled_within_32_bits,
    "resized_before_channels_or_kept": resized_before_channels_or_kept,
    "resized_channels_last": resized_channels_last,
    "rows_are_whole_blocks": rows_are_whole_blocks,
    "same_scale_as_output": same_scale_as_output,
    "scale_product_within": scale_product_within,
    "three_by_three_in_eights": three_by_three_in_eights,
    "sums_in_one_block": sums_in_one_block,
    "scale_ratio_within": scale_ratio_within,
    "several_filters_per_channel": several_filters_per_channel,
    "single_tap": single_tap,
    "slopes_within": slopes_within,
    "states_fill_vectors": states_fill_vectors,
    "windows_of_7_for_two": windows_of_7_for_two,
    "stored": stored,
    "stored_in_file": stored_in_file,
    "taps_in_pairs": taps_in_pairs,
    "transposed_filter_fits": transposed_filter_fits,
    "values_within": values_within,
    "weights_in_rows": weights_in_rows,
    "weights_scaled_along": weights_scaled_along,
    "window_is_image": window_is_image,
    "window_pairs_can_saturate": window_pairs_can_saturate,
    "windows_overlap": windows_overlap,
    "zero_point_is_zero": zero_point_is_zero,
}
