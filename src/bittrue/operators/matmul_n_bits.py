"""matmul_n_bits: a[..., K] times weights of 2, 4 or 8 bits in blocks along K, with a scale and a zero point each.

Operands: a, codes u8[N, blocks, block_size * bits / 8] (the first of a byte in its lowest bits), scales[N, blocks],
zero points (u8, packed like codes in every row, or f32[N, blocks]; absent: the middle code), nothing, bias[N].
w[n, k] = f32((code - zero point) * scale), with real zero points f32(f32(code * scale) - f32(scale * zero point)); the
result is a w^T + bias. Attributes: `n`, `k`, `bits`, `block_size`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..rules import real_product
from ..rules.real_product import Layout
from .base import Call, Lowered, Operator, Shape, Step

_BLOCKS = (16, 32, 64, 128, 256)


def infer(call: Call) -> list[Shape]:
    """a's shape with N in place of K."""
    call.expect((3, 6))
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
    real = call.has(3) and call.input(3).dtype == "f32"
    in_row = blocks if real else -(-blocks * bits // 8)
    for position, role, wanted in (
        (1, "the codes", (n, blocks, block * bits // 8)),
        (2, "the scales", (n, blocks)),
        (3, "the zero points", (n, in_row)),
        (5, "the bias", (n,)),
    ):
        if call.has(position):
            shape = call.input(position).shape
            if shape not in (wanted, (math.prod(wanted),)):
                raise call.invalid(
                    "BT-BLOCK-SHAPE", f"{role} have shape {list(shape)}, expected {list(wanted)}", "or the same flat"
                )
    return [(*a.shape[:-1], n)]


def lower(call: Call) -> Lowered:
    """Extents, and whether kernels for constant weights carry the product out."""
    n, k = int(call.attribute("n")), int(call.attribute("k"))
    known = {name: int(call.attribute(name)) for name in ("n", "k", "bits", "block_size")}
    packed = call.input(1).value is not None and known["bits"] == 4
    packed = packed and not (call.has(3) and call.input(3).dtype == "f32")
    return Lowered({**known, "packed": packed}, work=call.output.size * k, scratch=16 * n * k + 8 * call.output.size)


def _codes(packed: np.ndarray, bits: int) -> np.ndarray:
    """u8[..., n] to [..., n * 8 / bits] numbers."""
    parts = [(packed >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], -1)


def weights(step: Step, inputs: Sequence[Any]) -> np.ndarray:
    """w[N, K], binary32."""
    n, k, bits, block = (step[name] for name in ("n", "k", "bits", "block_size"))
    blocks = -(-k // block)
    codes = _codes(inputs[1].reshape(n, blocks, -1), bits).astype(np.float32)
    scales = inputs[2].reshape(n, blocks, 1)
    given = inputs[3].reshape(n, -1) if len(inputs) > 3 and inputs[3] is not None else None
    with np.errstate(all="ignore"):
        if given is not None and given.dtype == np.float32:
            real = codes * scales - scales * given[..., None]
        elif given is not None:
            real = (codes - _codes(given, bits)[:, :blocks, None].astype(np.float32)) * scales
        else:
            real = (codes - np.float32(1 << (bits - 1))) * scales
    return np.asarray(real.reshape(n, -1)[:, :k])


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """All rows make one product with the weights as real numbers."""
    a, bias = inputs[0], inputs[5] if len(inputs) > 5 else None
    rows = a.reshape(-1, step["k"])
    layout = Layout(turned_b=True)
    if step["packed"]:
        layout = Layout(split=step["k"], added_last=True, fused_lanes=len(rows) == 1)
    product = real_product.RULES[step.rules["real_product"]]
    result = np.zeros((0, step["n"]), np.float32)
    if len(rows):
        result = product.apply(rows, weights(step, inputs).T, bias, 1.0, 1.0, layout)
    return [result.reshape(*a.shape[:-1], step["n"])]


OPERATOR = Operator(
    "matmul_n_bits",
    ("real_product",),
    infer,
    lower,
    reference,
    "matrix product with weights of 2, 4 or 8 bits that have a scale and a zero point per block",
)
