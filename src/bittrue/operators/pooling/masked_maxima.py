"""masked_maxima: the largest element of every window up to the first one of each of its rows that a mask leaves out.

Operands: images [N, C, ...], a mask of the same sizes with any N and C of its own. A row of a window ends before the
first element whose mark is 0; the first element of an image of several axes always counts. The marks of channel number
c of all are the mask from element c * size modulo N * C of the mask on, where size counts the elements of a channel.
NaN is never taken; where nothing is, the result is the lowest binary32 number. Attributes are those of `pooling`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from ...records import replace
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.stopping import check_stop
from . import pooling


def infer(call: Call) -> list[Shape]:
    """As every pool."""
    call.expect(2)
    x, mask = call.input(0), call.input(1, "mask")
    fits = mask.shape[2:] == x.shape[2:] and mask.rank == x.rank
    if not fits or (0 not in x.shape[:2] and 0 in mask.shape[:2]):
        raise call.invalid("BT-POOL-MASK", f"a mask of shape {list(mask.shape)} for images {list(x.shape)}")
    return pooling.infer(replace(call, inputs=call.inputs[:1]))


def lower(call: Call) -> Lowered:
    """Where the taps of every output lie, axis by axis; -1 outside."""
    arrays, taps = {}, 1
    for number, one in enumerate(pooling.pool_windows(call)):
        places = np.arange(one.out)[:, None] * one.stride - one.before + np.arange(one.taps)
        arrays[f"axis{number}"] = np.where((places >= 0) & (places < one.size), places, -1)
        taps *= one.taps
    return Lowered({"axes": len(arrays)}, arrays, work=call.output.size * taps, scratch=32 * call.output.size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Tap by tap; the last axis is a row."""
    x, mask = inputs
    axes = [step.arrays[f"axis{number}"] for number in range(step["axes"])]
    sizes, channels = x.shape[2:], math.prod(x.shape[:2])
    shape = (*x.shape[:2], *(len(places) for places in axes))
    best = np.full((channels, *shape[2:]), np.finfo(np.float32).min, np.float32)
    if not best.size or not x.size:
        return [best.reshape(shape)]
    planes, marks, size = x.reshape(channels, -1), mask.reshape(-1), math.prod(sizes)
    begins = np.arange(channels) * size % math.prod(mask.shape[:2])
    along = len(axes)
    for outer in product(*(range(places.shape[1]) for places in axes[:-1])):
        ended = np.zeros(best.shape, np.bool_)
        for last in range(axes[-1].shape[1]):
            check_stop()
            place, inside = np.zeros(best.shape[1:], np.int64), np.ones(best.shape[1:], np.bool_)
            for number, tap in enumerate((*outer, last)):
                one = axes[number][:, tap].reshape(-1, *[1] * (along - number - 1))
                place, inside = place * sizes[number] + one, inside & (one >= 0)
            at = np.where(inside, place, 0)
            left_out = marks[begins.reshape(-1, *[1] * along) + at] == 0
            ended |= inside & left_out & ((at > 0) | (along == 1))
            value = planes[:, at.reshape(-1)].reshape(best.shape)
            best = np.where(inside & ~ended & (value > best), value, best)
    return [best.reshape(shape)]


OPERATOR = Operator("masked_maxima", (), infer, lower, reference, "largest elements of windows that a mask cuts short")
