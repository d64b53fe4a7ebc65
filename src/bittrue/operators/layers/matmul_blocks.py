"""What `matmul` does with weights of 2, 4 or 8 bits in blocks along K, with a scale and a zero point each.

Operands: a[..., K], quantized values q u8[N, blocks, block_size * bits / 8] (the first of a byte in its lowest bits),
bias[N], and as scale and zero point of b: scales[N, blocks], zero points (u8, packed like q in every row, or f32[N,
blocks]; absent: the middle of the type). w[n, k] = f32((q - zero point) * scale), with real zero points f32(q * scale)
- scale * zero point by slot `multiply_add`; the result is a w^T + bias. Attributes: `n`, `k`, `bits`, `block_size`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...rules import block_product, multiply_add, real_product, row_blocks
from ...rules.block_product import Blocks, Points
from ..core.base import Call, Lowered, Shape, Step
from ..core.packed import unpacked
from ..core.role_quantization import at

_BLOCKS = (16, 32, 64, 128, 256)
BIAS, SCALE, POINT = 2, 5, 6


def infer(call: Call) -> list[Shape]:
    """a's shape with N in place of K."""
    call.expect((6, 7))
    n, k, bits, block = (int(call.attribute(name)) for name in ("n", "k", "bits", "block_size"))
    if bits not in (2, 4, 8):
        raise call.unsupported("BT-BLOCK-BITS", f"weights of {bits} bits, expected 2, 4 or 8")
    if block not in _BLOCKS:
        raise call.unsupported("BT-BLOCK-SIZE", f"block_size {block} is none of {', '.join(map(str, _BLOCKS))}")
    if n < 1 or k < 1:
        raise call.invalid("BT-MATMUL-DEPTH", f"weights of {n} by {k} elements")
    a = call.input(0)
    if not a.rank or a.shape[-1] != k:
        raise call.invalid("BT-MATMUL-DEPTH", f"rows of shape {list(a.shape)} meet weights of {k} elements")
    blocks = -(-k // block)
    real = _real_points(call)
    in_row = blocks if real else -(-blocks * bits // 8)
    for position, role, wanted in (
        (1, "the quantized values", (n, blocks, block * bits // 8)),
        (SCALE, "the scales", (n, blocks)),
        (POINT, "the zero points", (n, in_row)),
        (BIAS, "the bias", (n,)),
    ):
        if call.has(position):
            shape = call.input(position).shape
            if shape not in (wanted, (math.prod(wanted),)):
                raise call.invalid(
                    "BT-BLOCK-SHAPE", f"{role} have shape {list(shape)}, expected {list(wanted)}", "or the same flat"
                )
    return [(*a.shape[:-1], n)]


def _real_points(call: Call) -> bool:
    return call.has(POINT) and call.input(POINT).dtype == "f32"


def lower(call: Call) -> Lowered:
    """Dimensions, and whether kernels for constant weights carry the product out."""
    n, k = int(call.attribute("n")), int(call.attribute("k"))
    known = {name: int(call.attribute(name)) for name in ("n", "k", "bits", "block_size")}
    packed = call.is_stored(1) and known["bits"] == 4
    packed = packed and not _real_points(call)
    # Kernels that quantize rows look at zero points when they arrange the weights, before they can be computed; but not
    # those that subtract them.
    ignored = "block_product" in call.rules and call.has(POINT) and not call.is_stored(POINT)
    if ignored:
        rule, rows = block_product.RULES[call.rules["block_product"]], math.prod(call.input(0).shape[:-1])
        ignored = not rule.looks(rows, known["bits"], known["block_size"])
    return Lowered(
        {**known, "packed": packed, "points_ignored": ignored},
        work=call.output.size * k,
        scratch=(0 if call.input(1).value is not None else 16 * n * k) + 8 * call.output.size,
    )


def _points(step: Step, inputs: Sequence[Any]) -> np.ndarray:
    """Zero points of integers, one per block [N, blocks, 1]."""
    n, k, bits, block = (step[name] for name in ("n", "k", "bits", "block_size"))
    blocks = -(-k // block)
    points = at(inputs, POINT)
    if points is None:
        return np.full((n, blocks, 1), 1 << (bits - 1), np.uint8)
    return unpacked(points.reshape(n, -1), bits)[:, :blocks, None]


def _unpacked(step: Step, inputs: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Quantized values u8[N, blocks, block_size] and scales [N, blocks, 1]."""
    n, blocks = step["n"], -(-step["k"] // step["block_size"])
    return unpacked(inputs[1].reshape(n, blocks, -1), step["bits"]), inputs[SCALE].reshape(n, blocks, 1)


def _weights(step: Step, inputs: Sequence[Any]) -> np.ndarray:
    """w[N, K], binary32."""
    quantized, scales = _unpacked(step, inputs)
    points = at(inputs, POINT)
    with np.errstate(all="ignore"):
        if points is not None and points.dtype == np.float32:
            add = multiply_add.RULES[step.rules["multiply_add"]].apply
            real = add(-scales, points.reshape(scales.shape), quantized.astype(np.float32) * scales)
        else:
            real = (quantized.astype(np.float32) - _points(step, inputs).astype(np.float32)) * scales
    return np.asarray(real.reshape(step["n"], -1)[:, : step["k"]])


def _by_integers(step: Step, rows: np.ndarray, inputs: Sequence[Any]) -> np.ndarray:
    """Rows as integers by blocks."""
    quantized, scales = _unpacked(step, inputs)
    left = row_blocks.RULES[step.rules["row_blocks"]](rows, step["block_size"])
    right = Blocks(quantized, scales[..., 0])
    known = [] if step["points_ignored"] else inputs
    points = Points(_points(step, known)[..., 0], at(known, POINT) is not None)
    return block_product.RULES[step.rules["block_product"]].apply(left, right, step["bits"], points, inputs[BIAS])


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """All rows make one product with the weights."""
    a, bias = inputs[0], inputs[BIAS]
    rows = a.reshape(-1, step["k"])
    if "row_blocks" in step.rules:
        return [_by_integers(step, rows, inputs).reshape(*a.shape[:-1], step["n"])]
    layout = real_product.Layout(turned_b=True)
    if step["packed"]:
        layout = real_product.Layout(split=step["k"], added_last=True, fused_lanes=len(rows) == 1)
    product = real_product.RULES[step.rules["real_product"]]
    result = np.zeros((0, step["n"]), np.float32)
    if len(rows):
        result = product.apply(rows, _weights(step, inputs).T, bias, 1.0, 1.0, layout)
    return [result.reshape(*a.shape[:-1], step["n"])]
