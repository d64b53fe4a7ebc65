"""local_response_normalization: y[c] = x[c] * (bias + alpha * sum of squares of neighbouring channels) ^ -beta."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step

# Elements worked on at a time.
_BLOCK = 1 << 16


def infer(call: Call) -> list[Shape]:
    """[N, H, W, C] gives the same shape."""
    call.expect(1)
    call.rank(call.input(0), 4)
    return [call.input(0).shape]


def lower(call: Call) -> Lowered:
    """The radius, and the three numbers as binary32."""
    radius, depth = call.attribute("radius"), call.input(0).shape[3]
    if abs(radius) + depth >= 2**31:
        raise call.invalid("BT-LRN-RADIUS", f"radius {radius} leaves 32 bits beside {depth} channels")
    return Lowered(
        parameters={"radius": radius, **{name: float(call.attribute(name)) for name in ("bias", "alpha", "beta")}},
        work=call.output.size * max(1, min(2 * radius, depth)),
    )


def _power(base: float, exponent: float) -> float:
    """The C library's pow. NumPy has one of its own for arrays, which is less exact."""
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):
        with np.errstate(all="ignore"):
            return float(np.float64(base) ** exponent)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Squares of channels c - radius to c + radius - 1 are added in order in binary32; the power is binary64's."""
    x, radius = inputs[0], step["radius"]
    depth = x.shape[3]
    rows = x.reshape(-1, depth)
    bias, alpha, beta = step["bias"], step["alpha"], step["beta"]
    power = np.frompyfunc(lambda base: _power(base, -beta), 1, 1)
    out = np.empty_like(rows)
    count = max(1, _BLOCK // max(1, depth))
    with np.errstate(all="ignore"):
        for first in range(0, len(rows), count):
            block = rows[first : first + count]
            squares = block * block
            total = np.zeros_like(block)
            for d in range(max(-radius, 1 - depth), min(radius, depth)):
                low, high = max(0, -d), min(depth, depth - d)
                total[:, low:high] += squares[:, low + d : high + d]
            base = bias + alpha * total.astype(np.float64)
            out[first : first + count] = block * power(base).astype(np.float64).astype(np.float32)
    return [out.reshape(x.shape)]


OPERATOR = Operator(
    "local_response_normalization",
    (),
    infer,
    lower,
    reference,
    "division by a power of the neighbouring channels' squares",
)
