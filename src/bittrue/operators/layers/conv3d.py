"""conv3d and conv3d_transpose: binary32 sums over three spatial axes, in the order of memory.

conv3d: out[n, p, o] = clamp(sum over taps t and channels c of x[n, p * stride - pad + t * dilation, c] * w[t, c, o]
+ bias[o]); taps outside of the image are left out. conv3d_transpose adds x[n, p, c] * w[t, o, c] to every
out[n, p * stride - pad + t * dilation, o] inside of the output, input position by input position.
Source: the kernels, read and run.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ...arithmetic.ordered_sums import add_products
from ...graph import Attribute
from ...rules import plain_range
from ..core.base import Call, Lowered, Operator, Role, Shape, Step
from ..core.geometry import Window, meeting, windows_by_letter
from ..core.roles import LAYER
from ..elementwise.add import plain_parameters
from .transpose_conv import check_shape_input, planned_shape

_MOST = 2**31 - 1


def _check_channels(call: Call, channels: int, depth: int, filters: int, bias: int) -> None:
    if channels != depth or min(channels, filters) < 1:
        raise call.invalid("BT-CONV-CHANNELS", f"{channels} input channels meet filters of {depth} channels")
    if call.has(bias) and call.input(bias).size != filters:
        raise call.invalid("BT-BIAS-LENGTH", f"bias has {call.input(bias).size} values for {filters} filters")


def _geometry(call: Call) -> tuple[Window, ...]:
    call.expect((2, 3))
    source, weights = call.input(0), call.input(1, "weights")
    call.rank(source, 5)
    call.rank(weights, 5)
    _check_channels(call, source.shape[4], weights.shape[3], weights.shape[4], 2)
    return windows_by_letter(call, source.shape[1:4], weights.shape[:3], most=_MOST)


def infer(call: Call) -> list[Shape]:
    """[N, D, H, W, C] with weights [kd, kh, kw, C, O] gives [N, D', H', W', O]."""
    windows = _geometry(call)
    return [(call.input(0).shape[0], *(found.out for found in windows), call.input(1).shape[4])]


def _transposed_geometry(call: Call) -> tuple[Shape, tuple[Window, ...]]:
    """The output shape, and the windows of the convolution that would turn the output into the input."""
    call.expect((3, 4))
    weights, source = call.input(1, "weights"), call.input(2)
    call.rank(source, 5)
    call.rank(weights, 5)
    shape = planned_shape(call, 5)
    _check_channels(call, source.shape[4], weights.shape[4], weights.shape[3], 3)
    found = windows_by_letter(call, shape[1:4], weights.shape[:3], most=_MOST)
    expected = (source.shape[0], *(one.out for one in found), weights.shape[3])
    if (shape[0], *source.shape[1:4], shape[4]) != expected:
        raise call.invalid(
            "BT-SHAPE-OUTPUT",
            f"output shape {list(shape)} does not belong to input shape {list(source.shape)} and filter shape "
            f"{list(weights.shape)}",
            "export the model again; the output shape contradicts the input's",
        )
    return shape, found


def infer_transposed(call: Call) -> list[Shape]:
    """The first input is the output's shape; weights are [kd, kh, kw, O, C] and the input is [N, D, H, W, C]."""
    return [_transposed_geometry(call)[0]]


def _lowered(call: Call, found: Sequence[Window], source: int, positions: int) -> Lowered:
    parameters: dict[str, Attribute] = {
        "filter": tuple(one.taps for one in found),
        "stride": tuple(one.stride for one in found),
        "dilation": tuple(one.dilation for one in found),
        "pad": tuple(one.before for one in found),
        "output_shape": tuple(call.output.shape),
        **plain_parameters(call),
    }
    weights = call.input(1)
    filters = call.output.shape[-1]
    work = positions * (weights.size // max(1, filters))
    return Lowered(parameters=parameters, work=work, scratch=8 * (call.output.size + call.input(source).size))


def lower(call: Call) -> Lowered:
    """The geometry and the clamp."""
    return _lowered(call, _geometry(call), 0, call.output.size)


def lower_transposed(call: Call) -> Lowered:
    """The geometry and the clamp."""
    source = call.input(2)
    positions = source.size // source.shape[4] * call.output.shape[-1]
    return _lowered(call, _transposed_geometry(call)[1], 2, positions)


def _add_up(step: Step, x: np.ndarray, weights: np.ndarray, transposed: bool) -> np.ndarray:
    """All products in order: taps in order, or the last one first where each stands for an earlier input position."""
    total = np.zeros(step["output_shape"], np.float32)
    small, large = (x, total) if transposed else (total, x)
    taps = list(itertools.product(*(range(count) for count in step["filter"])))
    for tap in reversed(taps) if transposed else taps:
        geometry = zip(step["stride"], step["pad"], step["dilation"], tap, strict=True)
        meetings = [
            meeting(small.shape[axis], large.shape[axis], stride, t * dilation - pad)
            for axis, (stride, pad, dilation, t) in enumerate(geometry, 1)
        ]
        stepped, reached = tuple(one[0] for one in meetings), tuple(one[1] for one in meetings)
        source, target = (stepped, reached) if transposed else (reached, stepped)
        matrix = np.ascontiguousarray(weights[tap].T if transposed else weights[tap])
        for pixels, sums in zip(x, total, strict=True):
            seen = pixels[source]
            if seen.size:
                part = np.ascontiguousarray(sums[target])
                add_products(part.reshape(-1, part.shape[-1]), seen.reshape(-1, seen.shape[-1]), matrix)
                sums[target] = part
    return total


def _finish(step: Step, total: np.ndarray, bias: np.ndarray | None) -> list[np.ndarray]:
    if bias is not None:
        with np.errstate(all="ignore"):
            total += bias.reshape(-1)
    return [plain_range.clamp(total, step["low"], step["high"])]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One pass per tap and channel over all outputs that meet it."""
    total = _add_up(step, inputs[0], inputs[1], transposed=False)
    return _finish(step, total, inputs[2] if len(inputs) > 2 else None)


def reference_transposed(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One pass per tap and channel over all inputs whose copy falls into the output."""
    check_shape_input(step, inputs[0], step["output_shape"])
    total = _add_up(step, inputs[2], inputs[1], transposed=True)
    return _finish(step, total, inputs[3] if len(inputs) > 3 else None)


OPERATORS = (
    Operator(
        "conv3d",
        ("plain_range",),
        infer,
        lower,
        reference,
        "3-D convolution",
        roles=LAYER,
        weights="SIO",
        channels_last=True,
        multiplies=True,
    ),
    Operator(
        "conv3d_transpose",
        ("plain_range",),
        infer_transposed,
        lower_transposed,
        reference_transposed,
        "transposed 3-D convolution",
        roles=(Role("input", 2), Role("weights", 1), Role("bias", 3)),
        weights="SOI",
        channels_last=True,
        transposed=True,
        multiplies=True,
    ),
)
