"""local_response_normalization: x[c] * (bias + alpha / divisor * sum of squares of channels near c) ^ -beta.

Neighbours are `before` channels ahead of c, and `after` behind it. Rules of the slot `real_normalization` take channels
first, and as many on one side as on the other, or one more behind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...rules import real_normalization, sum_of_products
from ..core.base import Call, Lowered, Operator, Shape, Step

# Elements worked on at a time.
_BLOCK = 1 << 16


_NUMBERS = ("bias", "alpha", "beta")


def infer(call: Call) -> list[Shape]:
    """The input's shape: [N, H, W, C] with `channels_last`, or [N, C, ...]."""
    call.expect(1)
    low, high = (4, 4) if call.attribute("channels_last") else (3, 8)
    call.rank(call.input(0), low, high)
    return [call.input(0).shape]


def _lower_first(call: Call, before: int, after: int) -> Lowered:
    x, size = call.input(0), before + after + 1
    if size < 1 or before != (size - 1) // 2 or call.attribute("divisor") != size or call.attribute("channels_last"):
        raise call.invalid(
            "BT-NORM-SIZE", f"{before} channels before and {after} behind have no rule here, or it wants channels first"
        )
    return Lowered(
        parameters={"size": size, **{name: float(np.float32(call.attribute(name))) for name in _NUMBERS}},
        work=x.size * min(size, x.shape[1] + 1),
        scratch=64 * x.size,
    )


def lower(call: Call) -> Lowered:
    """The neighbours, and the three numbers as binary32."""
    before, after = int(call.attribute("before")), int(call.attribute("after"))
    if "real_normalization" in call.rules:
        return _lower_first(call, before, after)
    if after != before - 1 or call.attribute("divisor") != 1 or not call.attribute("channels_last"):
        raise call.invalid(
            "BT-NORM-SIZE", f"{before} channels before and {after} behind have no rule here, or it wants channels last"
        )
    depth = call.input(0).shape[3]
    if abs(before) + depth >= 2**31:
        raise call.invalid("BT-LRN-RADIUS", f"radius {before} leaves 32 bits beside {depth} channels")
    return Lowered(
        parameters={"radius": before, **{name: float(call.attribute(name)) for name in _NUMBERS}},
        work=call.output.size * max(1, min(2 * before, depth)),
    )


def _power(base: float, exponent: float) -> float:
    """The C library's pow. NumPy has one of its own for arrays, which is less exact."""
    if math.isnan(base) and exponent % 2 == 1:
        # Odd powers of a negative number are negative: it negates what it takes for one, NaN included.
        return math.copysign(base, 1)
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):
        with np.errstate(all="ignore"):
            return float(np.float64(base) ** exponent)


def _across(step: Step, x: np.ndarray) -> np.ndarray:
    if not x.size:
        return x.copy()
    rule = real_normalization.RULES[step.rules["real_normalization"]]
    view = x.reshape(*x.shape[:2], -1)
    return rule.across(view, step["size"], step["alpha"], step["beta"], step["bias"]).reshape(x.shape)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Squares of channels c - radius to c + radius - 1 are added in binary32 by the rule; the power is binary64's."""
    if "real_normalization" in step.rules:
        return [_across(step, inputs[0])]
    x, radius = inputs[0], step["radius"]
    rule = sum_of_products.RULES[step.rules["sum_of_products"]]
    depth = x.shape[3]
    rows = x.reshape(-1, depth)
    bias, alpha, beta = step["bias"], step["alpha"], step["beta"]
    power = np.frompyfunc(lambda base: _power(base, -beta), 1, 1)
    out = np.empty_like(rows)
    count = max(1, _BLOCK // max(1, depth))
    with np.errstate(all="ignore"):
        for first in range(0, len(rows), count):
            block = rows[first : first + count]
            total = np.zeros_like(block)
            for c in range(depth):
                near = block[:, max(0, c - radius) : max(0, c + radius)]
                total[:, c] = sum_of_products.add_up(rule, near, near)
            base = bias + alpha * total.astype(np.float64)
            out[first : first + count] = block * power(base).astype(np.float64).astype(np.float32)
    return [out.reshape(x.shape)]


OPERATOR = Operator(
    "local_response_normalization",
    ("real_normalization", "sum_of_products"),
    infer,
    lower,
    reference,
    "division by a power of the neighbouring channels' squares",
)
