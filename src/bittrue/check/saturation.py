"""Where sums of two neighbouring products of u8 and s8 values can leave 16 bits, as processors without VNNI add them
up.

On such processors kernels clamp these sums (accumulate rule ``s16_pairs_s32_wrap``); on others they are exact. So a
model with such layers has other bits per processor unless no pair of its weights can do it: 255 * |w0 + w1| <= 32767
holds for all weights within [-64, 63].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..graph import data_type
from ..numerics.onnxruntime_avx2 import factors
from ..operators import Step, find
from ..plan import Plan

S16_MIN, S16_MAX = -(2**15), 2**15 - 1
# Quantized values looked at together, which bounds memory.
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Pair:
    """Two neighbouring constant quantized values of a channel.

    Attributes:
        channel: output channel, row or column (counted through a batch of matrices).
        places: positions in the channel's sum, in the order of the kernels; convolutions go tap by tap.
        quantized: the constant quantized values there; 0 behind an odd number of them.
        total: the sum of largest magnitude that quantized values of the other factor's whole type give.
        reachable: whether quantized values of the range that is known can leave 16 bits.
    """

    channel: int
    places: tuple[int, int]
    quantized: tuple[int, int]
    total: int
    reachable: bool


@dataclass(frozen=True)
class MixedLayer:
    """A layer of u8 by s8 values whose kernels add up pairs of products.

    Attributes:
        node: position in the graph.
        source: what the file calls the operator.
        output: name of the layer's output.
        known: whether one factor is constant; without that, nothing is known but that pairs can saturate.
        low, high: range of the other factor's quantized values.
        smallest, largest: of the constant quantized values.
        channels, saturable_channels: how many there are, and in how many some pair can leave 16 bits.
        pairs, saturable_pairs: the same for pairs.
        loss: the largest magnitude that a sum can lose to clamped pairs, in units of the accumulator.
        worst: the pair with the largest sum; None when nothing is constant or there are no pairs.
    """

    node: int
    source: str
    output: str
    known: bool
    low: int
    high: int
    smallest: int = 0
    largest: int = 0
    channels: int = 0
    saturable_channels: int = 0
    pairs: int = 0
    saturable_pairs: int = 0
    loss: int = 0
    worst: Pair | None = None

    @property
    def can_saturate(self) -> bool:
        return not self.known or self.saturable_pairs > 0


def find_saturation(plan: Plan) -> tuple[MixedLayer, ...]:
    """Every layer of u8 by s8 products of a plan and of the graphs that it calls, whether it can saturate or not.

    The plan must be one for operators whose scales are operands; other layers are exact on every processor. Depthwise
    convolutions are left out, too: their kernels add up no pairs.

    >>> import bittrue
    >>> find_saturation(bittrue.load(bittrue.demo_model()).prepare(executor="reference").plan)
    ()
    """
    found = [layer for step in plan.steps if (layer := _layer(plan, step)) is not None]
    for nested in plan.nested:
        found += find_saturation(nested.plan)
    return tuple(found)


def _has_windows(step: Step) -> bool:
    operator = find(step.operator)
    return operator is not None and "S" in operator.weights


def _tap_by_tap(step: Step) -> bool:
    """Whether the kernels multiply windows by weights, which go tap by tap then, and not weights by windows."""
    return _has_windows(step) and factors(step.operator, step.rules) == (0, 1)


def _layer(plan: Plan, step: Step) -> MixedLayer | None:
    positions = factors(step.operator, step.rules)
    if positions is None:
        return None
    indices = [step.inputs[position] for position in positions]
    if None in indices:
        return None
    left, right = (plan.tensors[index] for index in indices if index is not None)
    if (left.dtype, right.dtype) != ("u8", "s8"):
        return None
    if _tap_by_tap(step) and right.shape[1] == 1 and step["groups"] == right.shape[0]:
        return None
    output = plan.tensors[step.outputs[0]].name
    constant, moving = (right, indices[0]) if right.value is not None else (left, indices[1])
    assert moving is not None
    low, high = _range(plan, step, moving)
    if constant.value is None:
        return MixedLayer(step.index, step.source, output, False, low, high)
    limits = data_type(plan.tensors[moving].dtype)
    return _analysed(
        MixedLayer(step.index, step.source, output, True, low, high),
        _rows(step, constant.value, constant is left),
        (limits.minimum, limits.maximum),
    )


def _range(plan: Plan, step: Step, index: int) -> tuple[int, int]:
    """Quantized values that a tensor can hold: its own where it is known, what its producer clamps to, or all of its
    type.
    """
    tensor = plan.tensors[index]
    if tensor.value is not None and tensor.value.size:
        low, high = int(tensor.value.min()), int(tensor.value.max())
    else:
        low, high = tensor.type.minimum, tensor.type.maximum
        producer = next((s for s in plan.steps if index in s.outputs), None)
        stores = producer is not None and "store" in producer.rules
        least, most = (producer.parameters.get(name) if producer and stores else None for name in ("low", "high"))
        if isinstance(least, int) and isinstance(most, int):
            low, high = max(low, least), min(high, most)
    if "pad_left" in step.parameters:
        # Padded positions hold the zero point.
        if "input_zero_point" not in step.parameters:
            return tensor.type.minimum, tensor.type.maximum
        low, high = min(low, step["input_zero_point"]), max(high, step["input_zero_point"])
    return low, high


def _rows(step: Step, quantized: np.ndarray, is_left: bool) -> np.ndarray:
    """Constant quantized values [channels, K] in the order in which kernels add up their products."""
    if _tap_by_tap(step):
        return quantized.reshape(*quantized.shape[:2], -1).swapaxes(1, 2).reshape(quantized.shape[0], -1)
    if _has_windows(step):
        return quantized.reshape(quantized.shape[0], -1)
    if quantized.ndim == 1:
        return quantized[None]
    # [M, K] of the left factor, [N, K] of the right one.
    turned = step["transpose_a"] if is_left else not step["transpose_b"]
    quantized = quantized.swapaxes(-1, -2) if turned else quantized
    return quantized.reshape(-1, quantized.shape[-1])


def _blocks(rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Rows as s64 with an even number of quantized values, some at a time."""
    count = max(1, _BLOCK // max(1, rows.shape[1]))
    for first in range(0, rows.shape[0], count):
        block = rows[first : first + count].astype(np.int64)
        yield first, np.pad(block, ((0, 0), (0, rows.shape[1] % 2)))


def _ends(block: np.ndarray, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest sum of every pair [rows, pairs]."""
    ends = np.stack([low * block, high * block])
    least, most = ends.min(axis=0), ends.max(axis=0)
    return least[:, ::2] + least[:, 1::2], most[:, ::2] + most[:, 1::2]


def _analysed(layer: MixedLayer, rows: np.ndarray, limits: tuple[int, int]) -> MixedLayer:
    channels = pairs = loss = 0
    worst: Pair | None = None
    for first, block in _blocks(rows):
        if not block.size:
            continue
        least, most = _ends(block, layer.low, layer.high)
        above, below = np.maximum(most - S16_MAX, 0), np.maximum(S16_MIN - least, 0)
        beyond = (above > 0) | (below > 0)
        pairs += int(beyond.sum())
        channels += int(beyond.any(axis=1).sum())
        loss = max(loss, int(above.sum(axis=1).max()), int(below.sum(axis=1).max()))
        floor, ceiling = _ends(block, *limits)
        totals = np.where(-floor > ceiling, floor, ceiling)
        # What can be reached comes first.
        row, pair = np.unravel_index(np.argmax(np.abs(totals) + (beyond << 32)), totals.shape)
        found = Pair(
            first + int(row),
            (2 * int(pair), 2 * int(pair) + 1),
            (int(block[row, 2 * pair]), int(block[row, 2 * pair + 1])),
            int(totals[row, pair]),
            bool(beyond[row, pair]),
        )
        if worst is None or (found.reachable, abs(found.total)) > (worst.reachable, abs(worst.total)):
            worst = found
    return MixedLayer(
        layer.node,
        layer.source,
        layer.output,
        True,
        layer.low,
        layer.high,
        int(rows.min()) if rows.size else 0,
        int(rows.max()) if rows.size else 0,
        rows.shape[0],
        channels,
        rows.shape[0] * -(-rows.shape[1] // 2),
        pairs,
        loss,
        worst,
    )
