"""Streams of hyper-connections: several branches of the same features, which gates add up or mix.

reduce_streams: streams x [..., C, H], or [..., C * H] with `branches` C, and gates g [..., C], [..., C, 1] or like x.
y[..., h] = scale * sum over c of x[..., c, h] * g[..., c, h]. With `in_fours`, products of whole fours of branches are
rounded in any case.

mix_streams: streams x, what a block gave b [..., H], gates p [..., C], [..., C, 1] or [..., C, H], and, where they are
mixed, weights m [..., C, C]. y[..., k, h] = (sum over c of m[..., c, k] * x[..., c, h]) + p[..., k, h] * b[..., h],
or x[..., k, h] + p[..., k, h] * b[..., h].

Sums begin with 0 and go in order, products enter them by the slot `multiply_add`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from ...rules import multiply_add
from ..core.base import Call, Lowered, Operand, Operator, Shape, Step


def _sizes(call: Call) -> tuple[Shape, int, int]:
    """The leading sizes, C and H."""
    x, branches = call.input(0), int(call.attribute("branches"))
    call.rank(x, 1 if branches else 2, 8)
    if not branches:
        return x.shape[:-2], x.shape[-2], x.shape[-1]
    if branches < 1 or x.shape[-1] % branches:
        raise call.invalid("BT-STREAMS", f"{branches} branches do not divide the last axis of {list(x.shape)}")
    return x.shape[:-1], branches, x.shape[-1] // branches


def _expect(call: Call, operand: Operand, *shapes: Shape) -> None:
    if operand.shape not in shapes:
        found = " or ".join(str(list(shape)) for shape in shapes)
        raise call.invalid("BT-STREAMS", f"'{operand.name}' has shape {list(operand.shape)}, expected {found}")


def infer_reduced(call: Call) -> list[Shape]:
    """[..., H]."""
    call.expect(2)
    lead, count, size = _sizes(call)
    shapes = [(*lead, count), (*lead, count, 1), (*lead, count, size)]
    _expect(call, call.input(1, "gates"), *shapes, *([(*lead, count * size)] if call.attribute("branches") else []))
    return [(*lead, size)]


def infer_mixed(call: Call) -> list[Shape]:
    """The streams' shape."""
    call.expect((3, 4))
    lead, count, size = _sizes(call)
    _expect(call, call.input(1, "block"), (*lead, size))
    _expect(call, call.input(2, "gates"), (*lead, count), (*lead, count, 1), (*lead, count, size))
    if call.has(3):
        _expect(call, call.input(3, "weights"), (*lead, count, count))
    return [call.input(0).shape]


def lower(call: Call) -> Lowered:
    """Sizes, and the factor of the sum as a binary32 number."""
    lead, count, size = _sizes(call)
    numbers: dict[str, Attribute] = {"count": count, "size": size, "rows": math.prod(lead)}
    scale = float(np.float32(str(call.node.attributes.get("scale", 1.0))))
    if call.node.attributes.get("in_fours"):
        numbers["apart"] = count // 4 * 4
    return Lowered(
        {**numbers, "shape": call.output.shape, "scale": scale},
        work=2 * count * call.input(0).size,
        scratch=16 * call.input(0).size,
    )


def _gates(step: Step, gates: np.ndarray) -> np.ndarray:
    """[rows, C, 1 or H]."""
    each = step["rows"] * step["count"]
    return gates.reshape(step["rows"], step["count"], gates.size // each if each else 1)


def _sum(step: Step, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Of products, over the second axis."""
    shape = np.broadcast_shapes(left.shape, right.shape)
    total, rule = np.zeros((shape[0], *shape[2:]), np.float32), multiply_add.RULES[step.rules["multiply_add"]]
    apart = int(step["apart"]) if "apart" in step.parameters else 0
    for place in range(shape[1]):
        one = multiply_add.RULES["rounded_twice"] if place < apart else rule
        total = one.apply(left[:, place], right[:, place], total)
    return total


def reference_reduced(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One branch after the other."""
    x = inputs[0].reshape(step["rows"], step["count"], step["size"])
    with np.errstate(all="ignore"):
        total = np.float32(step["scale"]) * _sum(step, x, _gates(step, inputs[1]))
    return [total.reshape(step["shape"])]


def reference_mixed(step: Step, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """Mixed streams, then what the block gives."""
    streams, block, gates, weights = (*inputs, None)[:4]
    assert streams is not None
    assert block is not None
    assert gates is not None
    count, size = step["count"], step["size"]
    x = streams.reshape(step["rows"], count, size)
    with np.errstate(all="ignore"):
        if weights is not None:
            x = _sum(step, weights.reshape(step["rows"], count, count)[..., None], x[:, :, None])
        rule = multiply_add.RULES[step.rules["multiply_add"]]
        result = rule.apply(_gates(step, gates), block.reshape(step["rows"], 1, size), x)
    return [result.reshape(step["shape"])]


OPERATORS = (
    Operator(
        "reduce_streams", ("multiply_add",), infer_reduced, lower, reference_reduced, "branches added up by gates"
    ),
    Operator(
        "mix_streams",
        ("multiply_add",),
        infer_mixed,
        lower,
        reference_mixed,
        "branches mixed, and what a block gives by gates",
    ),
)
