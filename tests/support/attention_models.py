"""Random one-node models of attention and of what goes with it, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from .floating_models import F32, Generator, Model
from .onnx_models import MICROSOFT, single

_FLOAT = TensorProto.FLOAT


def size(rng: np.random.Generator, most: int = 20) -> int:
    """1 in one of six cases: single rows and columns have ways of their own."""
    return 1 if rng.random() < 1 / 6 else int(rng.integers(1, most))


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return np.asarray(rng.standard_normal(shape) * np.exp2(rng.uniform(-2, 2)), F32)


def _scale(rng: np.random.Generator) -> dict[str, Any]:
    return {} if rng.random() < 0.6 else {"scale": float(rng.choice([1.0, 0.5, 0.3, 2.0]))}


def _mask(rng: np.random.Generator, batch: int, queries: int, keys: int, forms: str) -> np.ndarray | None:
    """None, ends of sequences, ends and starts, marks of keys, or marks of keys for every query."""
    form = rng.choice(list("-" + forms))
    if form == "e":
        return rng.integers(0, keys + 1, batch).astype(np.int32)
    if form == "s":
        return rng.integers(0, keys + 1, 2 * batch).astype(np.int32)
    if form == "c":
        return rng.integers(0, keys + 1, 3 * batch + 2).astype(np.int32)
    if form == "k":
        return rng.integers(0, 2, (batch, keys)).astype(np.int32)
    if form == "q":
        return rng.integers(0, 2, (batch, queries, keys)).astype(np.int32)
    return None


def _added(rng: np.random.Generator, batch: int, heads: int, queries: int, keys: int) -> np.ndarray | None:
    if rng.random() < 0.6:
        return None
    return normal(rng, int(rng.choice([1, batch])), int(rng.choice([1, heads])), queries, keys)


def attention(rng: np.random.Generator, quantized: bool = False) -> Model:
    batch, queries, heads, head, columns = (int(rng.integers(1, 4)), size(rng), size(rng, 4), size(rng), size(rng, 70))
    value = head if quantized or rng.random() < 0.7 else size(rng)
    past = int(rng.integers(0, 9)) if rng.random() < 0.4 and value == head else None
    keys = queries + (past or 0)
    attributes: dict[str, Any] = {"num_heads": heads, **_scale(rng)}
    if value != head:
        attributes["qkv_hidden_sizes"] = [heads * head, heads * head, heads * value]
    if rng.random() < 0.3:
        attributes["unidirectional"] = 1
    if rng.random() < 0.3:
        attributes["mask_filter_value"] = float(rng.choice([-1.0, -3.4028234663852886e38]))
    width = heads * (2 * head + value)
    mask = _mask(rng, batch, queries, keys, "eskq")
    cache = None if past is None else normal(rng, 2, batch, heads, past, head)
    outputs = [_FLOAT] * (2 if past is not None or (value == head and rng.random() < 0.2) else 1)
    x, bias = normal(rng, batch, queries, columns), normal(rng, width)
    if not quantized:
        added = None if past is not None and rng.random() < 0.9 else _added(rng, batch, heads, queries, keys)
        inputs = {"x": x, "w": normal(rng, columns, width), "b": bias, "mask": mask, "past": cache, "added": added}
        return single("Attention", inputs, outputs, attributes, domain=MICROSOFT, constants=["w", "b"])
    kind = np.uint8 if rng.random() < 0.5 else np.int8
    info = np.iinfo(kind)
    per_column = rng.random() < 0.4
    scales = np.exp2(rng.uniform(-8, -4, width if per_column else ())).astype(F32)
    inputs = {
        "x": rng.integers(0, 256, (batch, queries, columns)).astype(np.uint8),
        "w": rng.integers(info.min, info.max + 1, (columns, width)).astype(kind),
        "b": bias,
        "x_scale": F32(rng.uniform(0.001, 0.1)),
        "w_scale": scales,
        "mask": mask,
        "x_point": np.uint8(rng.integers(0, 256)),
        "w_point": np.zeros(scales.shape, kind)
        if rng.random() < 0.5
        else rng.integers(info.min, info.max, scales.shape).astype(kind),
        "past": cache,
    }
    constants = ["w", "b", "w_scale", "w_point"]
    return single("QAttention", inputs, outputs, attributes, domain=MICROSOFT, constants=constants)


def multi_head_attention(rng: np.random.Generator) -> Model:
    batch, queries, heads, head = int(rng.integers(1, 4)), size(rng), size(rng, 4), size(rng)
    if rng.random() < 0.1:
        # More queries than a block has.
        head, queries = int(rng.integers(1, 5)), int(rng.integers(3, 30))
    past = int(rng.integers(0, 9)) if rng.random() < 0.3 else None
    by_heads = past is None and rng.random() < 0.2
    value = head if past is not None or by_heads or rng.random() < 0.6 else size(rng)
    keys = queries if rng.random() < 0.6 else size(rng)
    attributes: dict[str, Any] = {"num_heads": heads, **_scale(rng)}
    if rng.random() < 0.2:
        attributes["unidirectional"] = 1
    if rng.random() < 0.3:
        attributes["mask_filter_value"] = float(rng.choice([-1.0, -3.4028234663852886e38]))
    key, values = normal(rng, batch, keys, heads * head), normal(rng, batch, keys, heads * value)
    if by_heads:
        key, values = normal(rng, batch, heads, keys, head), normal(rng, batch, heads, keys, value)
    total = keys + (past or 0)
    simple = rng.random() < 0.4
    inputs = {
        "q": normal(rng, batch, queries, heads * head),
        "k": key,
        "v": values,
        "bias": None if by_heads or rng.random() < 0.5 else normal(rng, heads * (2 * head + value)),
        "mask": None if simple else _mask(rng, batch, queries, total, "eckq"),
        "added": None if simple else _added(rng, batch, heads, queries, total),
        "past_key": None if past is None else normal(rng, batch, heads, past, head),
        "past_value": None if past is None else normal(rng, batch, heads, past, value),
    }
    outputs = 3 if past is not None else int(rng.choice([1, 1, 1, 3, 4]))
    return single("MultiHeadAttention", inputs, [_FLOAT] * outputs, attributes, domain=MICROSOFT)


def q_attention(rng: np.random.Generator) -> Model:
    return attention(rng, True)


GENERATORS: dict[str, Generator] = {
    "Attention": attention,
    "MultiHeadAttention": multi_head_attention,
    "QAttention": q_attention,
}
