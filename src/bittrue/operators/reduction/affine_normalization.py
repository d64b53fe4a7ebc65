"""Batch normalization of quantized numbers normalized by what is known of each channel.

Inputs: x [..., C], scale, bias, mean and variance [C] in binary32, known at plan time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import affine_scale, lanes
from ..core.accumulator import fused_range
from ..core.base import Call, Lowered, Shape, Step
from ..elementwise.add import pair_of

_ROLES = ("scale", "bias", "mean", "variance")
# Elements at a time: the temporaries of one block stay inside a level-2 cache.
_BLOCK = 1 << 15


def infer(call: Call) -> list[Shape]:
    """The input's shape [..., C], of rank 3 or more; one number per channel in all other inputs."""
    call.expect(5)
    source = call.input(0)
    call.rank(source, 3, 8)
    for position, role in enumerate(_ROLES, 1):
        if call.input(position, role).size != source.shape[-1]:
            raise call.invalid(
                "BT-NORM-SHAPE",
                f"{role} has {call.input(position).size} values, expected {source.shape[-1]} (one per channel)",
            )
    return [source.shape]


def lower(call: Call) -> Lowered:
    """A factor and an addend per channel."""
    epsilon = float(call.attribute("epsilon"))
    if not 0 < epsilon < np.inf:
        raise call.invalid("BT-NORM-EPSILON", f"epsilon must be above 0, found {epsilon!r}")
    vectors = [call.constant(position, role).reshape(-1) for position, role in enumerate(_ROLES, 1)]
    rule = affine_scale.RULES[call.rules["affine_scale"]]
    return Lowered(
        parameters={**fused_range(call), "body": lanes.RULES[call.rules["lanes"]].body(call.output.shape[-1])},
        arrays=rule.prepare(pair_of(call.input(0)), pair_of(call.output), vectors, epsilon),
        inputs=(0,),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule on rows of channels, those that do not fill a block by the tail's."""
    x, body = inputs[0], step["body"]
    out = np.empty(x.shape, x.dtype)
    if not x.size:
        return [out]
    rows, stored = x.reshape(-1, x.shape[-1]), out.reshape(-1, x.shape[-1])
    count = max(1, _BLOCK // x.shape[-1])
    for slot, part in (("affine_scale", slice(0, body)), ("affine_scale_tail", slice(body, None))):
        apply = affine_scale.RULES[step.rules[slot]].apply
        arrays = {name: a if name == "zero_points" else a[part] for name, a in step.arrays.items()}
        for first in range(0, rows.shape[0], count):
            block = slice(first, first + count)
            stored[block, part] = apply(rows[block, part], arrays, step["low"], step["high"])
    return [out]
