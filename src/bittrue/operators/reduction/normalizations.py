"""Normalizations of real numbers, channels first: batch, group, layer, root mean square."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from ...rules import real_normalization
from ..core.base import Call, Lowered, Operand, Operator, Shape, Step
from . import affine_normalization, range_normalization

_SLOTS = ("real_normalization",)
# Numbers that are worked on together, beside whole rows, and by how many numbers sums of rows may depend on where
# their row begins.
_BLOCK, _APART = 1 << 16, 16


def _per_channel(call: Call, positions: Sequence[int], count: int, what: str) -> None:
    for position in positions:
        if call.input(position).shape != (count,):
            raise call.invalid(
                "BT-NORM-SHAPE",
                f"input {position} has shape {list(call.input(position).shape)}, expected [{count}] (one per {what})",
            )


def _lowered(call: Call, together: int, **parameters: object) -> Lowered:
    """`together`: numbers that cannot be worked on apart."""
    x = call.input(0)
    return Lowered(
        parameters={"epsilon": float(np.float32(call.attribute("epsilon"))), **parameters},  # type: ignore[dict-item]
        work=8 * x.size,
        scratch=96 * min(x.size, max(_BLOCK, together)),
    )


def _rows_apart(count: int) -> int:
    """How many rows of `count` numbers until one begins as the first one did."""
    return _APART // math.gcd(count, _APART)


def _by_rows(
    step: Step, rows: np.ndarray, parts: Callable[[slice], Sequence[np.ndarray | None]], centred: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rule's results, means and inverse deviations, some rows at a time; `parts` are their scales and biases."""
    rule = real_normalization.RULES[step.rules["real_normalization"]]
    unit = _rows_apart(rows.shape[1])
    some = max(unit, _BLOCK // rows.shape[1] // unit * unit)
    result, moments = np.empty_like(rows), []
    for begin in range(0, len(rows), some):
        own = slice(begin, min(begin + some, len(rows)))
        result[own], *found = rule.by_rows(rows[own], *parts(own), step["epsilon"], centred, step["kind"])
        moments.append(found)
    mean, inverse = (np.concatenate(part) for part in zip(*moments, strict=True))
    return result, mean, inverse


# -- batch_normalization
# -------------------------------------------------------------------------------------------------
def infer_batch(call: Call) -> list[Shape]:
    """The input's shape; scale, bias, mean and variance per channel: axis 1, or the last one with `channels_last`."""
    if len(call.inputs) > 5:
        return range_normalization.infer(call)
    if call.node.attributes.get("channels_last"):
        return affine_normalization.infer(call)
    call.expect(5)
    x = call.input(0)
    call.rank(x, 1, 8)
    _per_channel(call, (1, 2, 3, 4), x.shape[1] if x.rank > 1 else 1, "channel")
    return [x.shape]


def lower_batch(call: Call) -> Lowered:
    """What the rules make of the statistics, of scales or of ranges."""
    if "range_normalization" in call.rules:
        return range_normalization.lower(call)
    return affine_normalization.lower(call) if "affine_scale" in call.rules else _lowered(call, call.input(1).size)


def reference_batch(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias."""
    if "range_normalization" in step.rules:
        return range_normalization.reference(step, inputs)
    if "affine_scale" in step.rules:
        return affine_normalization.reference(step, inputs)
    x = inputs[0]
    rule = real_normalization.RULES[step.rules["real_normalization"]]
    channels = x.shape[1] if x.ndim > 1 else 1
    images, given = x.reshape(len(x), channels, math.prod(x.shape[2:])), [part.reshape(-1, 1) for part in inputs[1:]]
    out, places = np.empty_like(images), max(1, _BLOCK // max(1, channels))
    some = max(1, _BLOCK // max(1, math.prod(images.shape[1:])))
    for n, at in itertools.product(range(0, len(x), some), range(0, images.shape[2], places)):
        own = (slice(n, n + some), slice(None), slice(at, at + places))
        out[own] = rule.by_given(images[own], *given, step["epsilon"])
    return [out.reshape(x.shape)]


# -- batch_training
# -------------------------------------------------------------------------------------------------
def infer_training(call: Call) -> list[Shape]:
    """The input's shape, then per channel running mean and variance, and the batch's mean and inverse deviation;
    channels are axis 1.
    """
    call.expect(5, None)
    x = call.input(0)
    call.rank(x, 2, 8)
    if not x.size:
        raise call.invalid("BT-NORM-EMPTY", "a batch without elements has no mean")
    _per_channel(call, (1, 2, 3, 4), x.shape[1], "channel")
    return [x.shape, *[(x.shape[1],)] * 4][: len(call.outputs)]


def lower_training(call: Call) -> Lowered:
    """How much of the given statistics stays."""
    return _lowered(call, call.input(0).size, momentum=float(np.float32(call.attribute("momentum"))))


def reference_training(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias by the batch's own statistics, and the running ones."""
    x = inputs[0]
    rule = real_normalization.RULES[step.rules["real_normalization"]]
    planes = x.reshape(*x.shape[:2], -1)
    result, *statistics = rule.by_batch(planes, *inputs[1:], step["epsilon"], step["momentum"])
    return [result.reshape(x.shape), *statistics][: len(step.outputs)]


# -- by rows
# -------------------------------------------------------------------------------------------------------------
def _groups(call: Call) -> int:
    """How many groups there are; without the attribute `groups`, every channel is one."""
    groups = call.node.attributes.get("groups")
    return max(1, call.input(0).shape[1]) if groups is None else int(str(groups))


def lower_group(call: Call) -> Lowered:
    """The number of groups, and whether each is one channel by the file's operator."""
    kind = "instance" if call.node.attributes.get("groups") is None else "group"
    groups, shape = _groups(call), call.input(0).shape
    count = math.prod(shape[1:]) // groups
    return _lowered(call, count * _rows_apart(count), groups=groups, kind=kind)


def infer_group(call: Call) -> list[Shape]:
    """The input's shape [N, C, ...]; scale and bias per channel, or per group with `per_group`."""
    call.expect(3)
    x = call.input(0)
    call.rank(x, 2, 8)
    groups = _groups(call)
    if groups < 1 or x.shape[1] % groups:
        raise call.invalid("BT-NORM-GROUPS", f"{x.shape[1]} channels do not fall into {groups} groups")
    _per_channel(call, (1, 2), groups if call.attribute("per_group") else x.shape[1], "group or channel")
    return [x.shape]


def reference_group(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Every group of channels on its own, channels scaled."""
    x, groups = inputs[0], step["groups"]
    if not x.size:
        return [x.copy()]
    rows, inner = x.reshape(x.shape[0] * groups, -1), math.prod(x.shape[2:])

    def parts(own: slice) -> list[np.ndarray]:
        chosen = np.arange(own.start, own.stop) % groups
        # One number for a row, or one for each channel.
        return [np.repeat(p.reshape(groups, -1)[chosen], 1 if p.size == groups else inner, axis=1) for p in inputs[1:]]

    return [_by_rows(step, rows, parts, True)[0].reshape(x.shape)]


def infer_layer(call: Call) -> list[Shape]:
    """The input's shape; mean and inverse deviation, where wanted, keep dimensions of 1."""
    call.expect((2, 3), None)
    x = call.input(0)
    axis = call.axis(int(call.attribute("axis")), x.rank)
    for position in (1, 2):
        if call.has(position):
            part = call.input(position)
            whole = (1,) * (x.rank - part.rank) + part.shape
            if len(whole) > x.rank or any(e not in (1, w) for e, w in zip(whole, x.shape, strict=True)):
                raise call.invalid(
                    "BT-SHAPE-BROADCAST", f"'{part.name}' of shape {list(part.shape)} does not broadcast over {x.shape}"
                )
    few = (*x.shape[:axis], *(1,) * (x.rank - axis))
    return [x.shape, few, few][: len(call.outputs)]


def _is_row(part: Operand, x: Operand, axis: int) -> bool:
    """Whether a scale or bias has exactly one number for each place of a normalized row."""
    whole = (1,) * (x.rank - part.rank) + part.shape
    return whole == (*(1,) * axis, *x.shape[axis:])


def lower_layer(call: Call) -> Lowered:
    """The first normalized axis, and whose rows these are."""
    x = call.input(0)
    axis = call.axis(int(call.attribute("axis")), x.rank)
    rows = all(_is_row(call.input(position), x, axis) for position in (1, 2) if call.has(position))
    whole = "half" if call.node.attributes.get("half") else "layer"
    summed = call.attribute("summed") or call.node.attributes.get("brain")
    shared = "branches" if call.node.attributes.get("branches") else "broadcast"
    kind = shared if not rows else "summed" if summed else whole
    if call.node.attributes.get("embedded"):
        kind = "embedded"
    count = math.prod(x.shape[axis:])
    together = count * _rows_apart(count)
    return _lowered(call, together, axis=axis, centred=bool(call.attribute("centred")), kind=kind)


def reference_layer(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """All axes from the first one on are a row."""
    x, axis = inputs[0], step["axis"]
    count = math.prod(x.shape[axis:])
    few = (*x.shape[:axis], *(1,) * (x.ndim - axis))
    if not x.size:
        nothing = np.zeros(few, np.float32 if x.dtype == np.float64 else x.dtype)
        return [x.copy(), nothing, nothing.copy()][: len(step.outputs)]
    whole = x if axis else x[None]
    given = [None if i >= len(inputs) or inputs[i] is None else np.broadcast_to(inputs[i], whole.shape) for i in (1, 2)]

    def parts(own: slice) -> list[np.ndarray | None]:
        places = np.unravel_index(np.arange(own.start, own.stop), whole.shape[: max(1, axis)])
        return [None if part is None else part[places].reshape(-1, count) for part in given]

    result, mean, inverse = _by_rows(step, x.reshape(-1, count), parts, step["centred"])
    return [result.reshape(x.shape), mean.reshape(few), inverse.reshape(few)][: len(step.outputs)]


OPERATORS = (
    Operator(
        "batch_normalization",
        (*_SLOTS, "affine_scale", "affine_scale_tail", "lanes", "activation_range", "range_normalization"),
        infer_batch,
        lower_batch,
        reference_batch,
        "by given means and variances",
        layout="channels",
    ),
    Operator(
        "batch_training",
        _SLOTS,
        infer_training,
        lower_training,
        reference_training,
        "by the batch's own means and variances, which running ones take in",
    ),
    Operator(
        "group_normalization",
        _SLOTS,
        infer_group,
        lower_group,
        reference_group,
        "groups of channels, or every channel, by their own mean and variance",
    ),
    Operator(
        "layer_normalization", _SLOTS, infer_layer, lower_layer, reference_layer, "all axes from one on by their own"
    ),
)
