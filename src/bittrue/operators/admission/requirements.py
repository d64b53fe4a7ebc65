"""Conditions that a numerics row may put on a node, by name: what its runtime checks before it runs.

Each takes the call and the row's arguments and raises a typed error when the condition does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from ...arithmetic.powers import nearly_power_of_two
from ..core import granularity
from ..core.base import Call, Operand
from ..core.geometry import counts, lacking, tap_count
from ..core.indexing import MAX_RANK, parameters_or_zero
from ..core.zero_points import differences_fit, products_fit, zero_points_fit, zero_points_fit_16_bits
from ..layers import whole_numbers
from ..pooling import pooling


def _same(call: Call, operands: list[Operand]) -> None:
    for other in operands[1:]:
        if not operands[0].quantization.same_as(other.quantization):
            raise call.invalid(
                "BT-QUANT-SAME",
                f"'{operands[0].name}' ({operands[0].quantization}) and '{other.name}' ({other.quantization}) "
                "must have the same scale and zero point",
                "insert a requantization before the operator",
            )


def same_quantization(call: Call) -> None:
    """All quantized inputs and all outputs share one scale and one zero point, exactly."""
    operands = [o for o in (*call.inputs, *call.outputs) if o is not None]
    _same(call, [o for o in operands if o.dtype == call.output.dtype])


def _zero_points_are_zero(call: Call, operands: Iterable[Operand | None]) -> None:
    for operand in operands:
        if operand is not None and operand.tensor.quantization is not None:
            if operand.quantization.per_axis and operand.type.bits >= 16:
                # Kernels look for one zero point of inputs and biases, and see 0 where there are several.
                continue
            bad = operand.quantization.zero_point_outside(0, 0)
            if bad is not None:
                raise call.invalid("BT-QUANT-ZERO-POINT", f"'{operand.name}' must have zero point 0, found {bad}")


def has_elements(call: Call, position: int) -> None:
    """The input at `position` is not empty."""
    if not call.input(position).size:
        raise call.invalid(
            "BT-SHAPE-EMPTY",
            f"tensor '{call.input(position).name}' of shape {list(call.input(position).shape)} has no elements",
            "the runtime makes no output of it, or one of another shape",
        )


def has_windows_with_channels_last(call: Call) -> None:
    """With channels behind the image, there is at least one window."""
    if call.attribute("channels_last") and not call.output.size and call.input(0).size:
        raise call.invalid(
            "BT-WINDOW-NONE",
            f"no window fits into shape {list(call.input(0).shape)}: the output has shape {list(call.output.shape)}",
            "the runtime divides by zero and dies; make the window smaller, or pad",
        )


def rank_within(call: Call, position: int, low: int, high: int = MAX_RANK) -> None:
    """The input at `position`, where present, has `low` to `high` axes."""
    if call.has(position):
        call.rank(call.input(position), low, high)


def not_negative(call: Call, position: int) -> None:
    """The integers at `position`, which decide shapes, are 0 or more."""
    if min(call.integers(position, "size"), default=0) < 0:
        raise call.invalid("BT-OPERAND-NEGATIVE", f"input {position} holds {call.integers(position, 'size')}")


def axes_exist(call: Call, position: int) -> None:
    """All axes that the input at `position` names, where present, are axes of input 0."""
    for axis in call.integers(position, "axes") if call.has(position) else ():
        call.axis(axis, call.input(0).rank)


def known(call: Call, position: int) -> None:
    """The input at `position` is known at plan time."""
    call.constant(position, "input")


def results_differ(call: Call) -> None:
    """No called graph returns one tensor twice, of which a kernel would write one only."""
    if any(graph.repeated for graph in call.graphs):
        raise call.unsupported(
            "BT-CONTROL-REPEATED", "its graph returns one tensor twice, and one of the results is never written"
        )


def one_element(call: Call, position: int) -> None:
    """The input at `position` holds one number."""
    operand = call.input(position)
    if operand.size != 1:
        raise call.invalid(
            "BT-OPERAND-SIZE", f"input {position} ('{operand.name}') must be one number, found {operand.size}"
        )


def rank_zero(call: Call, *positions: int) -> None:
    """Inputs at `positions` that are present are scalars, not vectors of one element."""
    for position in positions:
        if call.has(position) and call.input(position).rank:
            operand = call.input(position)
            raise call.invalid(
                "BT-SHAPE-RANK",
                f"tensor '{operand.name}' must be a scalar, found shape {list(operand.shape)}",
                "reshape it to []; the runtime refuses to load the model otherwise",
            )


def zero_points_are_zero(call: Call, *positions: int) -> None:
    """Inputs at `positions` (all when none are given) and every output have zero point 0 everywhere."""
    input_zero_points_are_zero(call, *(positions or range(len(call.inputs))))
    _zero_points_are_zero(call, call.outputs)


def input_zero_points_are_zero(call: Call, *positions: int) -> None:
    """Inputs at `positions` have zero point 0 everywhere; outputs are free."""
    _zero_points_are_zero(call, (call.inputs[p] for p in positions if p < len(call.inputs)))


def output_is(call: Call, scale: float, zero_point: int | None, relative: float = 0.0) -> None:
    """The output scale is `scale` (within the fraction `relative`) and its zero point is `zero_point` (None: any)."""
    found = float(call.output.scale)
    if abs(found - scale) > relative * scale:
        raise call.invalid("BT-QUANT-OUTPUT", f"output '{call.output.name}' must have scale {scale!r}, found {found!r}")
    if zero_point is not None and call.output.zero_point != zero_point:
        raise call.invalid(
            "BT-QUANT-OUTPUT",
            f"output '{call.output.name}' must have zero point {zero_point}, found {call.output.zero_point}",
        )


def bias_scale_within(call: Call, tolerance: float, source: int = 0, bias_input: int = 2) -> None:
    """|input scale * weight scale - bias scale| / output scale <= `tolerance`, for per-tensor weights."""
    if not call.has(bias_input):
        return
    weights, bias_tensor = call.input(1), call.input(bias_input).tensor
    if weights.quantization.per_axis:
        return
    product = np.float64(call.input(source).scale) * np.float64(weights.scale)
    stated = bias_tensor.quantization
    bias = np.float64(0 if stated is None or stated.per_axis else stated.scales[0])
    output = np.float64(call.output.scale)
    if abs(product - bias) / output > tolerance:
        raise call.invalid(
            "BT-QUANT-BIAS",
            f"bias scale {float(bias)!r} is not input scale times weight scale ({float(product)!r})",
            "quantize the bias with input scale x weight scale",
        )


def bias_scale_near(call: Call, tolerance: float, bias_input: int = 2) -> None:
    """|f32(bias scale - f32(input scale * weight scale))| <= `tolerance`, and the bias has zero point 0.

    A bias without parameters is taken as it is.
    """
    stated = call.input(bias_input).tensor.quantization if call.has(bias_input) else None
    if stated is None:
        return
    bias, product = call.input(bias_input).scale, call.input(0).scale * call.input(1).scale
    if call.input(bias_input).zero_point:
        raise call.invalid(
            "BT-QUANT-ZERO-POINT", f"the bias must have zero point 0, found {int(stated.zero_points[0])}"
        )
    if not abs(float(bias - product)) <= tolerance:
        raise call.invalid(
            "BT-QUANT-BIAS",
            f"bias scale {float(bias)!r} is not input scale times weight scale ({float(product)!r})",
            "quantize the bias with input scale x weight scale",
        )


def product_within_64_bits(call: Call) -> None:
    """The product of two quantized numbers, rescaled, fits 64 bits, whatever they are."""
    first, second, output = call.input(0), call.input(1), call.output
    largest = 1.0
    for operand in (first, second):
        largest *= max(abs(operand.type.minimum - operand.zero_point), abs(operand.type.maximum - operand.zero_point))
    with np.errstate(all="ignore"):
        real = float(first.scale * second.scale / output.scale)
    if not largest * real < 2.0**62:
        raise call.invalid(
            "BT-MULTIPLIER",
            f"products of up to {largest:.0f} times {real!r} leave 64 bits, where their conversion is undefined",
            "the output scale is far too small beside the inputs'; quantize the model again",
        )


def output_is_power_of_two(call: Call, exponent: int) -> None:
    """The output scale counts as 2^`exponent` (see `arithmetic.powers.nearly_power_of_two`)."""
    if nearly_power_of_two(float(call.output.scale)) != (exponent, True):
        raise call.invalid(
            "BT-QUANT-OUTPUT",
            f"output '{call.output.name}' must have scale 2^{exponent}, found {float(call.output.scale)!r}",
        )


def activation_is_clamp(call: Call) -> None:
    """The fused activation is none, relu, relu6 or relu_n1_to_1."""
    activation = call.attribute("activation")
    if activation not in ("none", "relu", "relu6", "relu_n1_to_1"):
        raise call.invalid(
            "BT-ACTIVATION", f"fused activation '{activation}' is refused here", "make it an operator of its own"
        )


def same_parameters(call: Call, *positions: int) -> None:
    """Inputs at `positions` (all when none are given) and every output have one scale and one zero point.

    Tensors without quantization, and with parameters per axis, count as scale 0 and zero point 0.
    """
    chosen = [call.inputs[p] for p in positions if p < len(call.inputs)] if positions else list(call.inputs)
    operands = [o for o in (*chosen, *call.outputs) if o is not None]
    for other in operands[1:]:
        if parameters_or_zero(operands[0]) != parameters_or_zero(other):
            shown = [f"'{o.name}' ({o.tensor.quantization or 'no quantization'})" for o in (operands[0], other)]
            raise call.invalid(
                "BT-QUANT-SAME",
                f"{shown[0]} and {shown[1]} must have the same scale and zero point",
                "insert a requantization before the operator",
            )


def broadcast_rank_within(call: Call, limit: int, leading_ones: bool = False) -> None:
    """No output rank above `limit` when the two inputs must be broadcast.

    Inputs of equal shape need no broadcast; with `leading_ones`, neither do shapes equal up to leading dimensions of 1.
    """
    shapes = [operand.shape for operand in call.inputs if operand is not None]
    rank = len(call.output.shape)
    if leading_ones:
        shapes = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    if rank > limit and any(shape != shapes[0] for shape in shapes):
        raise call.invalid(
            "BT-SHAPE-RANK",
            f"rank {rank} is broadcast, the limit is {limit}",
            "merge neighbouring axes with a reshape ahead of the operator",
        )


def rank_without_scale_within(call: Call, limit: int) -> None:
    """No output rank above `limit` when the output carries no scale, whether or not anything is broadcast."""
    if call.output.tensor.quantization is None and call.output.rank > limit:
        raise call.invalid(
            "BT-SHAPE-RANK",
            f"rank {call.output.rank} of integers without a scale, the limit is {limit}",
            "merge neighbouring axes with a reshape ahead of the operator",
        )


def has_scale(call: Call, *positions: int) -> None:
    """Inputs at `positions` carry quantization parameters."""
    for position in positions:
        _ = call.input(position).quantization


def input_has_no_scale(call: Call) -> None:
    """The first input carries no quantization parameters."""
    if call.input(0).tensor.quantization is not None:
        raise call.invalid(
            "BT-QUANT-UNEXPECTED",
            f"'{call.input(0).name}' has a scale ({call.input(0).tensor.quantization}), which is refused for its type",
        )


def scales_are_normal(call: Call) -> None:
    """Scales are neither 0 nor subnormal numbers."""
    for operand in (*call.inputs, *call.outputs):
        if operand is not None and operand.tensor.quantization is not None:
            scales = operand.quantization.scales
            small = scales[~(scales >= np.finfo(np.float32).tiny)]
            if small.size:
                raise call.invalid(
                    "BT-QUANT-SCALE", f"scale {float(small[0])!r} of '{operand.name}' is not a normal binary32 number"
                )


def multiplier_below(call: Call, limit: float, source: int = 0) -> None:
    """f32(f32(input scale * weight scale) / output scale) < `limit` for every weight scale; weights are input 1."""
    scales = call.input(1).quantization.scales.astype(np.float32)
    with np.errstate(over="ignore"):
        largest = float((np.float32(call.input(source).scale) * scales / np.float32(call.output.scale)).max())
    if not largest < limit:
        raise call.invalid(
            "BT-MULTIPLIER",
            f"input scale * weight scale / output scale is {largest!r}, it must be below {limit}",
            "the output scale is far too small beside the input's; quantize the model again",
        )


def scale_ratios_within(call: Call, low: float, high: float) -> None:
    """f32(input scale / output scale) lies in [`low`, `high`) for every quantized input."""
    for operand in call.inputs:
        if operand is not None and operand.tensor.quantization is not None:
            with np.errstate(over="ignore"):
                ratio = float(np.float32(operand.scale) / np.float32(call.output.scale))
            if not low <= ratio < high:
                raise call.invalid(
                    "BT-MULTIPLIER",
                    f"scale of '{operand.name}' / output scale is {ratio!r}, it must lie in [{low!r}, {high!r})",
                    "the runtime refuses it, too; quantize the model again",
                )


def equal_shapes(call: Call) -> None:
    """All inputs have one shape."""
    shapes = [operand.shape for operand in call.inputs if operand is not None]
    if len(set(shapes)) > 1:
        raise call.invalid(
            "BT-SHAPE-BROADCAST", f"shapes {', '.join(str(list(shape)) for shape in shapes)} differ", "broadcast ahead"
        )


def equal_batches(call: Call) -> None:
    """Both matrices have the same dimensions before the last two."""
    one, two = call.input(0).shape, call.input(1).shape
    if one[:-2] != two[:-2]:
        raise call.invalid(
            "BT-SHAPE-BROADCAST", f"batches {list(one[:-2])} and {list(two[:-2])} differ", "broadcast ahead"
        )


def activation_leaves_range(call: Call) -> None:
    """A fused relu leaves more than one value of the output's type."""
    if call.node.attributes.get("activation") == "relu" and call.output.zero_point >= call.output.type.maximum:
        raise call.invalid(
            "BT-ACTIVATION-RANGE",
            f"zero point {call.output.zero_point} leaves one value above zero",
            "the runtime refuses it, too; choose a smaller zero point",
        )


def alpha_within_unit(call: Call) -> None:
    """Attribute `alpha` lies above 0 and below 1."""
    if not 0 < call.attribute("alpha") < 1:
        raise call.invalid(
            "BT-ALPHA",
            f"alpha is {call.attribute('alpha')!r}, it must lie above 0 and below 1",
            "the runtime refuses it",
        )


def window_has_several_taps(call: Call, global_too: bool) -> None:
    """The window of a pool is larger than 1x1, or, unless `global_too`, all of an unpadded image with stride 1."""
    if tap_count(pooling.pool_windows(call)) != 1:
        return
    plain = set(call.attribute("strides")) <= {1} and not any(call.attribute("pads"))
    if global_too or not plain or call.input(0).shape[1:3] != (1, 1):
        raise call.invalid("BT-WINDOW", "a window of 1x1", "the runtime refuses it, too; leave the pool out")


def windows_have_elements(call: Call) -> None:
    """Every window of a pool has taps that count."""
    found = pooling.pool_windows(call)
    if not counts(found, pooling.counted(call)).all():
        raise call.unsupported(
            "BT-WINDOW-EMPTY",
            f"a window over {[one.taps for one in found]} lies beside the image {list(call.input(0).shape)}",
            "the runtime divides by 0 or by a negative count, or gives the lowest binary32 number; choose sizes, pads"
            " or a rule for the number of windows without such windows",
        )


def padded_windows_begin_inside(call: Call) -> None:
    """Where padding counts, no window has zero taps: one that begins behind the padding has as many as it is away from
    it, less one, with a minus sign; its sum is 0 whatever it is divided by.
    """
    for one in pooling.pool_windows(call):
        behind = np.arange(one.out) * one.stride - one.before - (one.size + one.after - 1)
        if pooling.counted(call) == "padded" and (behind // one.dilation == 1).any():
            raise call.invalid(
                "BT-WINDOW", "a window lies outside of the padded image: it would be divided by 0", "clear ceil_mode"
            )


def slices_one_axis(call: Call) -> None:
    """The output is shorter than the input along one axis at most, and ends (input 2) are not ahead of starts."""
    sizes = call.input(0).shape
    starts = call.integers(1, "starts")
    axes = call.integers(3, "axes") if call.has(3) else list(range(len(starts)))
    for axis, *places in zip(axes, starts, call.integers(2, "ends"), strict=True):
        start, end = (min(place + sizes[axis] if place < 0 else place, sizes[axis]) for place in places)
        if not 0 <= start <= end:
            raise call.invalid("BT-SLICE", f"axis {axis} of {sizes[axis]} positions is cut from {start} to {end}")
    cut = sum(a != b for a, b in zip(call.input(0).shape, call.output.shape, strict=True))
    if cut > 1:
        raise call.invalid(
            "BT-SLICE", f"{cut} axes are cut at once", "the runtime refuses it, too; cut one axis after the other"
        )


def bias_is_scaled_like_weights(call: Call, position: int = 2) -> None:
    """The bias, if there is one, has one scale where the weights (input 1) have one, and several where they have so."""
    if not call.has(position):
        return
    weights, bias = call.input(1).quantization, call.input(position).quantization
    if weights.per_axis != bias.per_axis:
        raise call.invalid(
            "BT-QUANT-BIAS",
            f"weights have {weights.scales.size} scales and the bias has {bias.scales.size}",
            "quantize the bias per channel exactly where the weights are",
        )


def images_are_not_empty(call: Call) -> None:
    """Height and width of input and output are at least 1."""
    sizes = (*call.input(0).shape[1:3], *call.output.shape[1:3])
    if 0 in sizes:
        raise call.invalid("BT-RESIZE-EMPTY", f"images of {sizes[:2]} and {sizes[2:]} pixels: the kernel aborts")


def slices_are_whole_bytes(call: Call) -> None:
    """The axes of the first input after attribute `axis` hold an even number of 4-bit elements."""
    source = call.input(0)
    inner = math.prod(source.shape[call.axis(call.attribute("axis"), source.rank) + 1 :])
    if inner % 2:
        raise call.invalid(
            "BT-SHAPE-HALF-BYTES",
            f"slices of {inner} 4-bit elements do not fill whole bytes",
            "make the dimensions after the axis even, or widen the elements",
        )


def same_padding_adds(call: Call, latest: int) -> None:
    """Pads that follow from the size of the image are not negative.

    They may be in pools that give positions, dilated ones, ones of images in blocks of 16 channels, averages that
    count padding with ceil_mode, and in versions after `latest`.
    """
    shape, padding = call.input(0).shape, str(call.attribute("padding"))
    if len(call.outputs) > 1 or call.node.version > latest or any(d != 1 for d in call.attribute("dilations")):
        return
    if len(shape) == 4 and shape[1] % 16 == 0:
        return
    if call.attribute("size") == "ceil_clipped" and pooling.counted(call) == "padded":
        return
    if padding.startswith("same"):
        taps = call.attribute("kernel")
        strides = tuple(call.attribute("strides")) or (1,) * len(taps)
        for dimension, size, stride in zip(call.input(0).shape[2:], taps, strides, strict=True):
            if lacking(dimension, size, stride) < 0:
                raise call.invalid(
                    "BT-WINDOW", f"windows of {size} every {stride} leave some of {dimension} positions out"
                )


def ends_in_order(call: Call, latest: int) -> None:
    """Up to version `latest`, the lower end (input 1) is not above the upper one (input 2)."""
    if call.node.version > latest or not (call.has(1) and call.has(2)):
        return
    low, high = (call.constant(position, "end").reshape(-1)[0] for position in (1, 2))
    if low > high:
        raise call.invalid("BT-CLIP-END", f"the lower end {low} is above the upper end {high}")


def version_at_most(call: Call, version: int) -> None:
    """The runtime knows the operator up to this version."""
    if call.node.version > version:
        raise call.unsupported(
            "BT-OPERATOR-VERSION",
            f"version {call.node.version} of {call.node.source} is newer than {version}, the newest that runs",
            "export the model with older versions of its operators",
        )


def undilated_same(call: Call) -> None:
    """Windows whose pads follow from `auto_pad` SAME_UPPER or SAME_LOWER have no dilation."""
    if str(call.attribute("auto_pad")).startswith("SAME") and any(d != 1 for d in call.attribute("dilations")):
        raise call.invalid(
            "BT-WINDOW",
            f"dilations {list(call.attribute('dilations'))} together with auto_pad {call.attribute('auto_pad')}",
            "the runtime refuses it, too; write the pads out",
        )


def folds_plainly(call: Call) -> None:
    """Columns become images of two axes, or windows are not dilated; or rows of one channel."""
    window = call.integers(2, "window")
    dilated = any(d > 1 and taps > 1 for d, taps in zip(call.attribute("dilations"), window, strict=False))
    row = len(window) == 1 and call.input(0).shape[1] == window[0]
    if dilated and len(window) != 2 and not row:
        raise call.unsupported(
            "BT-FOLD",
            "dilated windows in images that do not have two axes",
            "the runtime reads other elements there, beyond the columns, too; add an axis of size 1 to images of one",
        )


def single_values(call: Call, *positions: int) -> None:
    """Inputs at `positions`, where present, are scalars or vectors of one element."""
    for position in positions:
        if call.has(position) and call.input(position).shape not in ((), (1,)):
            operand = call.input(position)
            raise call.invalid(
                "BT-QUANT-AXIS",
                f"input {position} ('{operand.name}') has shape {list(operand.shape)}, expected one value",
                "the runtime refuses it, too",
            )


def sums_have_products(call: Call, factor: int) -> None:
    """The matrix product with input `factor` adds something up, or has no elements."""
    if call.output.size and not call.input(factor).size:
        raise call.invalid("BT-MATMUL-DEPTH", "sums of no products: the runtime leaves its output unwritten")


def names_hidden_size(call: Call) -> None:
    """Attribute `hidden_size` is given, and sequences are not the first axis."""
    if not call.attribute("hidden_size") or call.attribute("batch_first"):
        raise call.unsupported(
            "BT-RECURRENT-LAYOUT",
            "needs the attribute hidden_size, and sequences along the second axis (layout 0)",
            "the runtime refuses it, too; export the model that way",
        )


def layer_rows_fit(call: Call) -> None:
    """A layer normalization has rows of at least one element; behind a skipped sum, tensors as `skipped_sum_fits`."""
    x, axis = call.input(0), int(call.attribute("axis"))
    if 0 in x.shape[axis:]:
        raise call.invalid(
            "BT-SHAPE-EMPTY", f"rows of '{x.name}' of shape {list(x.shape)} have no elements from axis {axis} on"
        )
    if call.attribute("summed"):
        call.rank(x, 2, 3)
        for position in (1, 2):
            if call.has(position):
                _expect_row(call, call.input(position), x)


def skipped_sum_fits(call: Call) -> None:
    """The sums of a layer normalization with a skipped connection: [N, S, H] or [S, H], of which the second operand may
    leave out N, or be a row of H.
    """
    skipped = call.node.attributes.get("skipped")
    if skipped is None:
        return
    x, other = call.input(0), call.input(1)
    call.rank(x, 2, 3)
    if skipped == "row":
        _expect_row(call, other, x)
    elif other.shape[-2:] != x.shape[-2:] or not (
        other.shape == x.shape or (x.rank == 3 and other.shape[:-2] in ((), (1,)))
    ):
        raise call.invalid(
            "BT-SHAPE-BROADCAST",
            f"'{other.name}' of shape {list(other.shape)} cannot be added to '{x.name}' of shape {list(x.shape)} here",
            "the runtime takes equal shapes, or only one sequence for the whole batch",
        )


def _expect_row(call: Call, part: Operand, x: Operand) -> None:
    if part.shape != x.shape[-1:]:
        raise call.invalid(
            "BT-NORM-SHAPE", f"'{part.name}' has shape {list(part.shape)}, expected {list(x.shape[-1:])}"
        )


def neighbours_are_odd(call: Call) -> None:
    """A normalization over neighbouring channels takes an odd number of them, and positive numbers alpha and beta."""
    before, after, alpha, beta = (call.attribute(name) for name in ("before", "after", "alpha", "beta"))
    size = before + after + 1
    if size % 2 == 0 or not alpha > 0 or not beta > 0:
        raise call.invalid(
            "BT-NORM-SIZE", f"size is {size}, alpha {alpha}, beta {beta}: expected an odd size, positive alpha and beta"
        )


def refuse_block_size_per_tensor(call: Call) -> None:
    """`block_size` is 0 where one scale serves the whole tensor."""
    if granularity.granularity(call)[0] == granularity.PER_TENSOR and call.attribute("block_size"):
        raise call.invalid(
            "BT-QUANT-BLOCK",
            f"block_size is {call.attribute('block_size')}, but the scale '{call.input(1).name}' is one for the tensor",
            "leave block_size out, or give the scale the data's rank",
        )


def significand_within_31_bits(call: Call) -> None:
    """No multiplier has a significand that rounds to 2^31, and none is 0: the runtime stops at such ones."""
    real = whole_numbers.multipliers(call)
    fraction = np.frexp(real)[0]
    if not real.all() or (np.floor(fraction * 2.0**31 + 0.5) >= 2.0**31).any():
        raise call.invalid(
            "BT-MULTIPLIER",
            "input scale * weight scale / output scale is 0, or rounds to a power of two above it in 31 bits",
            "the runtime stops at this multiplier; change a scale a little",
        )


REQUIREMENTS: dict[str, Callable[..., None]] = {
    "alpha_within_unit": alpha_within_unit,
    "activation_leaves_range": activation_leaves_range,
    "neighbours_are_odd": neighbours_are_odd,
    "layer_rows_fit": layer_rows_fit,
    "skipped_sum_fits": skipped_sum_fits,
    "equal_batches": equal_batches,
    "equal_shapes": equal_shapes,
    "scale_ratios_within": scale_ratios_within,
    "slices_one_axis": slices_one_axis,
    "window_has_several_taps": window_has_several_taps,
    "activation_is_clamp": activation_is_clamp,
    "bias_is_scaled_like_weights": bias_is_scaled_like_weights,
    "multiplier_below": multiplier_below,
    "scales_are_normal": scales_are_normal,
    "images_are_not_empty": images_are_not_empty,
    "output_is_power_of_two": output_is_power_of_two,
    "same_quantization": same_quantization,
    "not_negative": not_negative,
    "axes_exist": axes_exist,
    "one_element": one_element,
    "known": known,
    "results_differ": results_differ,
    "rank_within": rank_within,
    "rank_zero": rank_zero,
    "zero_points_are_zero": zero_points_are_zero,
    "input_zero_points_are_zero": input_zero_points_are_zero,
    "output_is": output_is,
    "bias_scale_near": bias_scale_near,
    "bias_scale_within": bias_scale_within,
    "product_within_64_bits": product_within_64_bits,
    "same_parameters": same_parameters,
    "broadcast_rank_within": broadcast_rank_within,
    "rank_without_scale_within": rank_without_scale_within,
    "zero_points_fit": zero_points_fit,
    "zero_points_fit_16_bits": zero_points_fit_16_bits,
    "differences_fit": differences_fit,
    "products_fit": products_fit,
    "has_elements": has_elements,
    "has_scale": has_scale,
    "windows_have_elements": windows_have_elements,
    "padded_windows_begin_inside": padded_windows_begin_inside,
    "has_windows_with_channels_last": has_windows_with_channels_last,
    "input_has_no_scale": input_has_no_scale,
    "refuse_block_size_per_tensor": refuse_block_size_per_tensor,
    "significand_within_31_bits": significand_within_31_bits,
    "slices_are_whole_bytes": slices_are_whole_bytes,
    "version_at_most": version_at_most,
    "single_values": single_values,
    "sums_have_products": sums_have_products,
    "undilated_same": undilated_same,
    "folds_plainly": folds_plainly,
    "same_padding_adds": same_padding_adds,
    "ends_in_order": ends_in_order,
    "names_hidden_size": names_hidden_size,
}
