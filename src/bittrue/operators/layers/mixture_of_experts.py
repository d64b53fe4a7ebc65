"""mixture_of_experts: two layers for every row, of the experts that it asks, added up by how much each one counts.

Operands: x [..., H], scores [rows, E], weights of the first and second layers [E, J, H] and [E, H, I], their biases
[E, J] and [E, H], scales of quantized weights [E, J] or [E, J, blocks] and alike for the second layer, zero points, and
what the chosen experts count, where that does not follow from the scores [rows, E]. Blocks lie along the depth of a
product; zero points, and weights of 2 and 4 bits, are packed, the first of a byte in its lowest bits.

Attributes: `k` (experts that a row asks), `normalized`, `activation` (of the first layer: ``"relu"``, ``"gelu"``,
``"silu"``, ``"identity"``; ``"swiglu"``: J is 2 I, even columns g and odd ones l become min(g, limit) *
sigmoid(alpha * g) * (clamp(l, limit) + beta)), `alpha`, `beta`, `limit`, `bits` (of weights; 0: real numbers),
`block_size` (0: none), `accuracy_level` (4: rows become integers where a rule says how).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...arithmetic import elementary, introsort
from ...graph import Attribute
from ...rules import block_product, expert_choice, multiply_add, real_function, real_product, row_blocks, table_product
from ...rules.block_product import Blocks, Points
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.packed import unpacked
from ..core.stopping import check_stop

X, SCORES, FIRST, SECOND, FIRST_BIAS, SECOND_BIAS, FIRST_SCALE, SECOND_SCALE, FIRST_POINT, SECOND_POINT, COUNTS = range(
    11
)
_F32 = np.float32
_ONE = _F32(1)
_ACTIVATIONS = ("relu", "gelu", "silu", "identity", "swiglu")


def _sizes(call: Call) -> tuple[int, int, int, int, int]:
    """Rows, E, H, J, I."""
    x, scores = call.input(X), call.input(SCORES, "scores")
    call.rank(x, 2, 3)
    call.rank(scores, 2)
    for position in (FIRST, SECOND):
        call.rank(call.input(position, "weights"), 3)
    hidden, experts = x.shape[-1], scores.shape[1]
    second = call.input(SECOND).shape
    each = 8 // int(call.attribute("bits") or 8)
    if not hidden or not experts:
        raise call.invalid("BT-EXPERTS-SHAPE", f"rows of shape {list(x.shape)} ask {experts} experts")
    inner = second[1] * second[2] * each // hidden
    outer = 2 * inner if call.attribute("activation") == "swiglu" else inner
    return math.prod(x.shape[:-1]), experts, hidden, outer, inner


def infer(call: Call) -> list[Shape]:
    """The rows' shape."""
    call.expect((4, 11))
    rows, experts, hidden, outer, inner = _sizes(call)
    bits, block = int(call.attribute("bits")), int(call.attribute("block_size"))
    each = 8 // (bits or 8)
    if call.attribute("activation") not in _ACTIVATIONS:
        raise call.unsupported("BT-EXPERTS-ACTIVATION", f"'{call.attribute('activation')}' is no known activation")
    if not 0 < int(call.attribute("k")) <= experts:
        raise call.invalid("BT-EXPERTS-COUNT", f"every row asks {call.attribute('k')} of {experts} experts")
    wanted: list[tuple[int, str, tuple[Shape, ...]]] = [
        (SCORES, "scores", ((rows, experts),)),
        (COUNTS, "what experts count", ((rows, experts),)),
    ]
    for first, columns, depth in ((FIRST, outer, hidden), (SECOND, hidden, inner)):
        blocks = -(-depth // block) if block else 1
        if depth % each:
            raise call.invalid("BT-EXPERTS-SHAPE", f"{depth} weights of {bits} bits do not fill bytes")
        scales: Shape = (experts, columns, blocks) if block else (experts, columns)
        points: Shape = (experts, columns, -(-blocks // each)) if block else (experts, -(-columns // each))
        wanted += [
            (first, "weights", ((experts, columns, depth // each),)),
            (first + 2, "biases", ((experts, columns),)),
            (first + 4, "scales", (scales,)),
            (first + 6, "zero points", (points,)),
        ]
    for position, role, shapes in wanted:
        if call.has(position) and call.input(position).shape not in shapes:
            found = list(call.input(position).shape)
            raise call.invalid("BT-EXPERTS-SHAPE", f"{role} have shape {found}, expected {list(shapes[0])}")
    return [call.input(X).shape]


def _by_blocks(call: Call, first: int, depth: int) -> bool:
    """Whether a layer of more than 2 bits meets kernels that know of blocks: its scales and zero points are known, its
    blocks whole.
    """
    bits, block = int(call.attribute("bits")), int(call.attribute("block_size"))
    known = all(not call.has(p) or call.input(p).value is not None for p in (first, first + 4, first + 6))
    return known and bits > 2 and block > 0 and depth % block == 0


def both_by_blocks(call: Call) -> bool:
    """Whether both layers meet kernels that know of blocks."""
    _, _, hidden, _, inner = _sizes(call)
    return _by_blocks(call, FIRST, hidden) and _by_blocks(call, SECOND, inner)


def _way(call: Call, first: int, depth: int) -> str:
    """How a layer's products are made: ``"rows"`` of weights, ``"columns"``, ``"fused"`` ones, ``"integers"``, or by
    ``"tables"``: for large layers of 2 bits, known or not.
    """
    bits, block = int(call.attribute("bits")), int(call.attribute("block_size"))
    if bits == 2:
        count = call.input(first).shape[1]
        tables = block >= 32 and depth % block == count % 128 == 0 and "table_product" in call.rules
        if tables and block > 512:
            raise call.unsupported("BT-EXPERTS-BLOCK", f"blocks of {block} have no tables", "the largest ones are 512")
        return "tables" if tables else "rows"
    if _by_blocks(call, first, depth):
        return "integers" if "block_product" in call.rules else "fused"
    return "columns" if bits == 4 and call.input(first).value is not None else "rows"


def lower(call: Call) -> Lowered:
    """Sizes, and how both layers' products are made."""
    rows, experts, hidden, outer, inner = _sizes(call)
    names = ("k", "normalized", "activation", "bits", "block_size")
    parameters: dict[str, Attribute] = {name: call.attribute(name) for name in names}
    parameters |= {name: float(_F32(call.attribute(name))) for name in ("alpha", "beta", "limit")}
    parameters |= {"rows": rows, "experts": experts, "hidden": hidden, "outer": outer, "inner": inner}
    parameters |= {"first_way": _way(call, FIRST, hidden), "second_way": _way(call, SECOND, inner)}
    asked = rows * int(call.attribute("k"))
    return Lowered(
        parameters,
        work=asked * hidden * (outer + inner),
        scratch=16 * hidden * (outer + inner) + 64 * asked * (hidden + outer) + 32 * rows * (experts + hidden),
    )


def _activated(step: Step, x: np.ndarray) -> np.ndarray:
    kind = step["activation"]
    if kind == "relu":
        return np.where(x > 0, x, _F32(0))
    if kind == "gelu":
        # The C library's products are joined to sums where the runtime's are.
        rule = step.rules["multiply_add"]
        inner = _F32(0.7978845608) * multiply_add.RULES[rule].apply(_F32(0.044715) * x * x, x, x)
        return np.asarray(_F32(0.5) * x * (_ONE + elementary.tanh(inner, joined=rule == "rounded_once")))
    if kind == "silu":
        return np.asarray(x * (_ONE / (_ONE + elementary.exp(-x))))
    if kind == "identity":
        return x
    alpha, beta, limit = (_F32(step[name]) for name in ("alpha", "beta", "limit"))
    gate, linear = np.minimum(x[:, 0::2], limit), np.clip(x[:, 1::2], -limit, limit)
    return np.asarray(gate * real_function.logistic_by_library(alpha * gate) * (linear + beta))


def _layer(step: Step, inputs: Sequence[np.ndarray | None], first: int, expert: int, rows: np.ndarray) -> np.ndarray:
    """One expert's rows [M, N]."""
    way = step["first_way" if first == FIRST else "second_way"]
    product = real_product.RULES[step.rules["real_product"]].apply
    given, bias, scales, points = (inputs[first + 2 * i] for i in range(4))
    assert given is not None
    weights, depth, bits = given[expert], rows.shape[1], step["bits"]
    added = None if bias is None else bias[expert]
    if not bits:
        result = product(rows, weights.T, None, 1.0, 1.0, real_product.Layout(turned_b=True))
        return result if added is None else result + added
    assert scales is not None
    quantized = unpacked(weights, bits)[:, :depth]
    scale = scales[expert].reshape(len(quantized), -1)
    blocks = scale.shape[1]
    point = np.full_like(scale, 1 << (bits - 1))
    if points is not None:
        point = unpacked(points[expert], bits)
        point = (point[:, :blocks] if step["block_size"] else point[: len(scale), None]).astype(_F32)
    if way == "integers":
        # Of two layers one may have no zero points.
        own = "_without_points" if points is None and "row_blocks_without_points" in step.rules else ""
        left = row_blocks.RULES[step.rules[f"row_blocks{own}"]](rows, step["block_size"])
        right = Blocks(quantized.reshape(len(quantized), blocks, -1), scale)
        blockwise = block_product.RULES[step.rules[f"block_product{own}"]]
        return blockwise.apply(left, right, bits, Points(point, points is not None), added)
    if way == "tables":
        rule = table_product.RULES[step.rules["table_product"]]
        result = rule(rows, quantized, scale, None if points is None else point)
        return result if added is None else result + added
    size = step["block_size"] or depth
    real = (quantized.astype(_F32) - np.repeat(point, size, 1)[:, :depth]) * np.repeat(scale, size, 1)[:, :depth]
    if way == "fused":
        layout = real_product.Layout(split=depth, added_last=True, fused_lanes=len(rows) == 1)
        return product(rows, real.T, added, 1.0, 1.0, layout)
    result = product(rows, real.T, None, 1.0, 1.0, real_product.Layout(turned_b=way == "rows"))
    return result if added is None else result + added


def reference(step: Step, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """Expert by expert, all of its rows at once."""
    inputs = [*inputs, *[None] * (11 - len(inputs))]
    x, scores = inputs[X], inputs[SCORES]
    assert x is not None
    assert scores is not None
    rows, rule = x.reshape(step["rows"], step["hidden"]), expert_choice.RULES[step.rules["expert_choice"]]
    add = multiply_add.RULES[step.rules["multiply_add"]].apply
    result = np.zeros_like(rows)
    with np.errstate(all="ignore"):
        choice = rule.apply(scores, inputs[COUNTS], step["k"], step["normalized"])
        found = [np.nonzero((choice.experts == expert) & choice.asked) for expert in range(step["experts"])]
        order = [expert for expert in range(step["experts"]) if len(found[expert][0])]
        before = rule.before
        if before is not None:
            order = introsort.sort(order, lambda a, b: before(len(found[a][0]), len(found[b][0])))
        for expert in order:
            check_stop()
            own, place = found[expert]
            inner = _activated(step, _layer(step, inputs, FIRST, expert, rows[own]))
            outer = _layer(step, inputs, SECOND, expert, np.ascontiguousarray(inner))
            result[own] = add(choice.factors[own, place][:, None], outer, result[own])
    return [result.reshape(x.shape)]


OPERATOR = Operator(
    "mixture_of_experts",
    (
        *("expert_choice", "real_product", "row_blocks", "block_product", "table_product", "multiply_add"),
        *("row_blocks_without_points", "block_product_without_points"),
    ),
    infer,
    lower,
    reference,
    "two layers of the experts that a row asks, added up by how much each counts",
    multiplies=True,
)
