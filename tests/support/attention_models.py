"""Random one-node models of attention and of what goes with it, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .floating_models import F32, Generator, Model
from .onnx_models import MICROSOFT, build, single

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
        constants = ["w", "b"] if rng.random() < 0.8 else []
        return single("Attention", inputs, outputs, attributes, domain=MICROSOFT, constants=constants)
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
        "bias": None if rng.random() < 0.5 else normal(rng, heads * (2 * head + value)),
        "mask": None if simple else _mask(rng, batch, queries, total, "eckq"),
        "added": None if simple else _added(rng, batch, heads, queries, total),
        "past_key": None if past is None else normal(rng, batch, heads, past, head),
        "past_value": None if past is None else normal(rng, batch, heads, past, value),
    }
    outputs = 3 if past is not None else int(rng.choice([1, 1, 1, 3, 4]))
    return single("MultiHeadAttention", inputs, [_FLOAT] * outputs, attributes, domain=MICROSOFT)


def q_attention(rng: np.random.Generator) -> Model:
    return attention(rng, True)


def embedding(rng: np.random.Generator, quantized: bool = False) -> Model:
    batch, length, columns, words, places = (
        int(rng.integers(1, 4)),
        size(rng),
        size(rng, 50),
        7,
        int(rng.integers(4, 30)),
    )
    segments = rng.random() < 0.6
    low = -1 if rng.random() < 0.05 else 0
    inputs: dict[str, np.ndarray | None] = {
        "ids": rng.integers(low, words, (batch, length)).astype(np.int32),
        "segment": rng.integers(0, 2, (batch, length)).astype(np.int32) if segments else None,
        "words": normal(rng, words, columns),
        "places": normal(rng, places, columns),
        "segments": normal(rng, 2, columns) if segments else None,
        "scale": normal(rng, columns),
        "bias": normal(rng, columns),
        "mask": rng.integers(0, 3, (batch, length)).astype(np.int32) if rng.random() < 0.5 else None,
    }
    tables = [name for name in ("words", "places", "segments", "scale", "bias") if inputs[name] is not None]
    attributes = {"epsilon": float(rng.choice([1e-5, 1e-12]))}
    constants = list(tables)
    if quantized:
        for name in ("words", "places", "segments", "scale", "bias"):
            table = inputs[name]
            inputs[f"{name}_scale"] = None if table is None else F32(rng.uniform(0.001, 0.2))
            if table is not None:
                inputs[name] = rng.integers(0, 256, table.shape).astype(np.uint8)
        for name in ("words", "places", "segments", "scale", "bias"):
            inputs[f"{name}_point"] = None if inputs[name] is None else np.uint8(rng.integers(0, 256))
        constants += [f"{name}_{what}" for name in tables for what in ("scale", "point")]
        outputs = [_FLOAT, TensorProto.INT32]
        return single("QEmbedLayerNormalization", inputs, outputs, attributes, domain=MICROSOFT, constants=constants)
    if rng.random() < 0.3:
        inputs["positions"] = rng.integers(0, places, (int(rng.choice([1, batch])), length)).astype(np.int32)
    outputs = [_FLOAT, TensorProto.INT32, _FLOAT][: int(rng.integers(2, 4))]
    return single("EmbedLayerNormalization", inputs, outputs, attributes, domain=MICROSOFT, constants=constants)


def q_embedding(rng: np.random.Generator) -> Model:
    return embedding(rng, True)


def rotary_embedding(rng: np.random.Generator, domain: str = MICROSOFT) -> Model:
    batch, length, heads, head = int(rng.integers(1, 4)), size(rng, 9), size(rng, 4), 2 * int(rng.integers(1, 36))
    attributes: dict[str, Any] = {"interleaved": int(rng.integers(0, 2))}
    turned = head
    if rng.random() < 0.3:
        turned = 2 * int(rng.integers(1, head // 2 + 1))
        attributes["rotary_embedding_dim"] = turned
        attributes["num_heads"] = heads
    by_heads = rng.random() < 0.5
    if not by_heads and (not domain or turned != head or rng.random() < 0.5):
        attributes["num_heads"] = heads
    x = normal(rng, batch, heads, length, head) if by_heads else normal(rng, batch, length, heads * head)
    known = length + int(rng.integers(0, 5))
    form = rng.integers(0, 3)
    positions: np.ndarray | None = rng.integers(0, known, (batch, length))
    rows: tuple[int, ...] = (known,)
    if domain and form == 0:
        positions = np.int64([rng.integers(0, known - length + 1)])
    if not domain and form == 0:
        positions, rows = None, (batch, length)
    cos, sin = normal(rng, *rows, turned // 2), normal(rng, *rows, turned // 2)
    if domain:
        inputs = {"x": x, "positions": positions, "cos": cos, "sin": sin}
    else:
        inputs = {"x": x, "cos": cos, "sin": sin, "positions": positions}
    return single("RotaryEmbedding", inputs, [_FLOAT], attributes, domain=domain, opset=23)


def rotary_embedding_of_onnx(rng: np.random.Generator) -> Model:
    return rotary_embedding(rng, "")


def group_query_attention(rng: np.random.Generator) -> Model:
    batch, key_heads, head = int(rng.integers(1, 4)), int(rng.integers(1, 3)), 8 * int(rng.integers(1, 6))
    heads = key_heads * int(rng.integers(1, 4))
    prompt = rng.random() < 0.4
    length = size(rng) if prompt or rng.random() < 0.3 else 1
    before = np.zeros(batch, int) if prompt else rng.integers(1, 12, batch)
    if length > 1 and not prompt:
        batch, before = 1, before[:1]
    total = int(before.max()) + length
    lengths = before + length - 1
    if prompt and rng.random() < 0.3:
        lengths = rng.integers(0, length, batch)
        lengths[0] = length - 1
    room = int(before.max()) if rng.random() < 0.6 else total + int(rng.integers(0, 5))
    has_past = not prompt or rng.random() < 0.5
    packed = rng.random() < 0.4
    turned = rng.random() < 0.5
    if turned:
        head = 16 * ((head + 15) // 16)
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": key_heads, **_scale(rng)}
    if turned:
        attributes |= {"do_rotary": 1, "rotary_interleaved": int(rng.integers(0, 2))}
    if rng.random() < 0.3:
        attributes["local_window_size"] = int(rng.integers(1, 10))
    if rng.random() < 0.15:
        attributes["softcap"] = 5.0
    if rng.random() < 0.15:
        attributes["smooth_softmax"] = 1
    width = (heads + 2 * key_heads if packed else heads) * head
    inputs: dict[str, np.ndarray | None] = {
        "q": normal(rng, batch, length, width),
        "k": None if packed else normal(rng, batch, length, key_heads * head),
        "v": None if packed else normal(rng, batch, length, key_heads * head),
        "past_key": normal(rng, batch, key_heads, room, head) if has_past else None,
        "past_value": normal(rng, batch, key_heads, room, head) if has_past else None,
        "lengths": lengths.astype(np.int32).reshape((batch, 1) if rng.random() < 0.3 else batch),
        "total": np.asarray(total, np.int32),
        "cos": normal(rng, 40, head // 2) if turned else None,
        "sin": normal(rng, 40, head // 2) if turned else None,
    }
    if rng.random() < 0.3:
        sizes = (int(rng.choice([1, batch])), int(rng.choice([1, heads])), length, total)
        inputs |= {"positions": None, "added": normal(rng, *sizes)}
        if rng.random() < 0.3:
            inputs["sink"] = normal(rng, heads)
    return single(
        "GroupQueryAttention", inputs, [_FLOAT] * 3, attributes, domain=MICROSOFT, constants=["total", "cos", "sin"]
    )


def group_query_attention_with_caches(rng: np.random.Generator) -> Model:
    """Caches of a window, caches of integers, keys of another layer, and queries that see all keys.

    What a cache of a window gives behind its last key is not defined: it is cut off.
    """
    batch, key_heads, head = int(rng.integers(1, 4)), int(rng.integers(1, 3)), 8 * int(rng.integers(1, 9))
    heads = key_heads * int(rng.integers(1, 4))
    bits = int(rng.choice([0, 4, 8]))
    form = str(rng.choice(["sliding", "full", "shared"], p=[0.5, 0.4, 0.1]))
    if bits and rng.random() < (0.95 if form == "sliding" else 0.3):
        # Rows of a cache of a window have a multiple of 16 bytes.
        head = 128 // bits * int(rng.integers(1, 3))
    before = rng.integers(0, 12, batch)
    length = 1
    if rng.random() < 0.5:
        batch, length, before = 1, int(rng.integers(2, 9)), before[:1]
    counts = before + length
    total = int(counts.max())
    window = int(rng.integers(1, 8)) if form == "sliding" or rng.random() < 0.2 else -1
    room = total if form != "sliding" else window + int(rng.integers(0, 5))
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": key_heads, **_scale(rng)}
    if window > 0:
        attributes["local_window_size"] = window
    elif rng.random() < 0.3:
        attributes["causal"] = 0
    if form == "sliding":
        attributes["sliding_window_cache"] = 1
    if rng.random() < 0.15:
        attributes["softcap"] = float(rng.choice([5.0, -1.0]))
    if rng.random() < 0.15:
        attributes["smooth_softmax"] = 1
    packed, turned = form != "shared" and rng.random() < 0.4, rng.random() < 0.3
    if turned:
        head = 16 * ((head + 15) // 16)
        attributes |= {"do_rotary": 1, "rotary_interleaved": int(rng.integers(0, 2))}
    new = 0 if form == "shared" else length

    def past() -> np.ndarray:
        sizes = (batch, key_heads, room)
        if bits == 0:
            return normal(rng, *sizes, head)
        if bits == 8:
            return rng.integers(-128, 128, (*sizes, head)).astype(np.int8)
        return rng.integers(0, 256, (*sizes, head // 2)).astype(np.uint8)

    width = (heads + 2 * key_heads if packed else heads) * head
    inputs: dict[str, np.ndarray | None] = {
        "q": normal(rng, batch, length, width),
        "k": None if packed else normal(rng, batch, new, key_heads * head),
        "v": None if packed else normal(rng, batch, new, key_heads * head),
        "past_key": past(),
        "past_value": past(),
        "lengths": (counts - 1).astype(np.int32),
        "total": np.asarray(total, np.int32),
        "cos": normal(rng, 40, head // 2) if turned else None,
        "sin": normal(rng, 40, head // 2) if turned else None,
        "positions": None,
        "added": None,
        "sink": None,
    }
    if rng.random() < 0.3:
        inputs["added"] = normal(rng, int(rng.choice([1, batch])), int(rng.choice([1, heads])), length, total)
    if rng.random() < 0.1:
        inputs["sink"] = normal(rng, heads)
    kind = {0: _FLOAT, 4: TensorProto.UINT8, 8: TensorProto.INT8}[bits]
    if bits:
        per_column = rng.random() < 0.5
        how = "PER_CHANNEL" if per_column else "PER_TENSOR"
        attributes |= {"k_quant_type": how, "v_quant_type": how, "kv_cache_bit_width": bits}
        for name in ("k_scale", "v_scale"):
            scales = np.exp2(rng.uniform(-6, 0, (1, key_heads, 1, head) if per_column else 1)).astype(F32)
            inputs[name] = np.where(rng.random(scales.shape) < 0.03, F32(0), scales)
    if form != "sliding":
        outputs = [_FLOAT, kind, kind]
        # Behind shorter sequences, scores are not defined.
        if rng.random() < 0.2 and len(set(counts.tolist())) == 1:
            outputs.append(_FLOAT)
            attributes["qk_output"] = int(rng.integers(1, 3))
        constants = ["total", "cos", "sin"]
        return single("GroupQueryAttention", inputs, outputs, attributes, domain=MICROSOFT, constants=constants)
    return _of_window(inputs, attributes, counts, room, window, kind)


def _of_window(
    inputs: dict[str, np.ndarray | None],
    attributes: dict[str, Any],
    counts: np.ndarray,
    room: int,
    window: int,
    kind: int,
) -> Model:
    step = room - window + 1
    kept = min(int(one) if one <= room else int(one) - step * -(-(int(one) - room) // step) for one in counts)
    names = [name if array is not None else "" for name, array in inputs.items()]
    nodes = [helper.make_node("GroupQueryAttention", names, ["y", "k_all", "v_all"], domain=MICROSOFT, **attributes)]
    nodes += [helper.make_node("Slice", [f"{one}_all", "zero", "kept", "axis"], [f"{one}_kept"]) for one in "kv"]
    given = {name: array for name, array in inputs.items() if array is not None}
    constants: dict[str, np.ndarray] = {name: given.pop(name) for name in ("total", "cos", "sin") if name in given}
    constants |= {"zero": np.int64([0]), "kept": np.int64([kept]), "axis": np.int64([2])}
    return build(nodes, given, {"y": _FLOAT, "k_kept": kind, "v_kept": kind}, constants)


def decoder_masked_attention(rng: np.random.Generator) -> Model:
    batch, heads, head = int(rng.integers(1, 4)), int(rng.integers(1, 4)), size(rng)
    room = int(rng.integers(1, 12))
    past, cached = int(rng.integers(0, room)), rng.random() < 0.6
    keys = past + 1 if cached else room
    attributes: dict[str, Any] = {"num_heads": heads, **_scale(rng)}
    if rng.random() < 0.3:
        attributes["mask_filter_value"] = float(rng.choice([-1.0, -3.4028234663852886e38]))
    width = heads * head
    of_keys = (batch, 1, width) if cached else (batch, heads, keys, head)
    inputs: dict[str, np.ndarray | None] = {
        "q": normal(rng, batch, 1, width),
        "k": normal(rng, *of_keys),
        "v": normal(rng, *of_keys),
        "mask": _mask(rng, batch, 1, keys, "k") if rng.random() < 0.95 else np.ones(batch, np.int32),
        "added": _added(rng, batch, heads, 1, keys) if cached or rng.random() < 0.03 else None,
        "past_key": normal(rng, batch, heads, room, head) if cached else None,
        "past_value": normal(rng, batch, heads, room, head) if cached else None,
        "past": np.int32([past]) if cached else None,
        "beams": np.array([1], np.int32) if rng.random() < 0.2 else None,
        "places": None,
        "bias": normal(rng, 3 * width) if rng.random() < 0.4 else None,
    }
    if cached:
        attributes["past_present_share_buffer"] = 1
    outputs = [_FLOAT] * (3 if cached else 1)
    if cached and rng.random() < 0.2:
        attributes["output_qk"] = 1
        outputs.append(_FLOAT)
    constants = ["past"] if rng.random() < 0.8 else []
    return single("DecoderMaskedMultiHeadAttention", inputs, outputs, attributes, domain=MICROSOFT, constants=constants)


def attention_of_onnx(rng: np.random.Generator) -> Model:
    batch, queries, key_heads, head = int(rng.integers(1, 4)), size(rng), int(rng.integers(1, 4)), size(rng)
    heads = key_heads * int(rng.integers(1, 3))
    value = head if rng.random() < 0.6 else size(rng)
    keys = queries if rng.random() < 0.5 else size(rng)
    past = int(rng.integers(1, 9)) if rng.random() < 0.3 else None
    opset = int(rng.choice([23, 24]))
    total = keys + (past or 0)
    by_heads = rng.random() < 0.5
    attributes: dict[str, Any] = _scale(rng)
    if not by_heads:
        attributes |= {"q_num_heads": heads, "kv_num_heads": key_heads}
    if rng.random() < 0.3:
        attributes["is_causal"] = 1
    if rng.random() < 0.2:
        attributes["softcap"] = float(rng.choice([3.0, 20.0]))
    outputs = 3 if past is not None else int(rng.choice([1, 1, 3]))
    if rng.random() < 0.2:
        outputs = 4
        attributes["qk_matmul_output_mode"] = int(rng.integers(0, 4))

    def rows(count: int, length: int, columns: int) -> np.ndarray:
        return normal(rng, batch, count, length, columns) if by_heads else normal(rng, batch, length, count * columns)

    mask: np.ndarray | None = None
    if rng.random() < 0.5:
        leading = [(), (int(rng.choice([1, heads])),), (int(rng.choice([1, batch])), int(rng.choice([1, heads])))]
        sizes = (*leading[int(rng.integers(0, 3))], queries, total)
        mask = rng.random(sizes) < 0.7 if rng.random() < 0.5 else normal(rng, *sizes)
    inputs: dict[str, np.ndarray | None] = {
        "q": rows(heads, queries, head),
        "k": rows(key_heads, keys, head),
        "v": rows(key_heads, keys, value),
        "mask": mask,
        "past_key": None if past is None else normal(rng, batch, key_heads, past, head),
        "past_value": None if past is None else normal(rng, batch, key_heads, past, value),
    }
    if opset == 24 and past is None and rng.random() < 0.3:
        inputs["used"] = rng.integers(0, keys + 1, batch).astype(np.int64)
    return single("Attention", inputs, [_FLOAT] * outputs, attributes, opset=opset)


def halves(generate: Generator) -> Generator:
    """The same models with binary16 numbers in place of binary32."""

    def generate_halves(rng: np.random.Generator) -> Model:
        content, feeds = generate(rng)
        model = onnx.load_from_string(content)
        # Scales of a cache of integers stay.
        whole = [value.name.endswith("_scale") for value in model.graph.input]
        for value in (*model.graph.input, *model.graph.output):
            if value.type.tensor_type.elem_type == _FLOAT and not value.name.endswith("_scale"):
                value.type.tensor_type.elem_type = TensorProto.FLOAT16
        for constant in model.graph.initializer:
            if constant.data_type == _FLOAT:
                half = numpy_helper.to_array(constant).astype(np.float16)
                constant.CopyFrom(numpy_helper.from_array(half, constant.name))
        halved = [x if kept or x.dtype != F32 else x.astype(np.float16) for x, kept in zip(feeds, whole, strict=True)]
        return model.SerializeToString(), halved

    return generate_halves


def attention_over_a_cache(rng: np.random.Generator) -> Model:
    """MultiHeadAttention whose past keys and values have room for the new ones."""
    batch, heads, queries, columns = int(rng.integers(1, 4)), int(rng.integers(1, 4)), size(rng, 4), size(rng)
    past = int(rng.integers(0, 6))
    keys, room = past + queries, past + queries + int(rng.integers(0, 3))
    inputs: dict[str, np.ndarray | None] = {name: normal(rng, batch, queries, heads * columns) for name in "qkv"}
    inputs["bias"] = normal(rng, 3 * heads * columns) if rng.random() < 0.3 else None
    inputs["mask"] = rng.integers(0, 2, (batch, keys)).astype(np.int32) if rng.random() < 0.3 else None
    inputs["added"] = normal(rng, 1, heads, queries, keys) if rng.random() < 0.3 else None
    inputs |= {name: normal(rng, batch, heads, room, columns) for name in ("past_key", "past_value")}
    inputs["past_sequence_length"] = np.array([past] if rng.random() < 0.5 else past, np.int32)
    attributes = {"num_heads": heads, "unidirectional": int(rng.integers(2)), **_scale(rng)}
    constants = ["past_sequence_length"] if rng.random() < 0.3 else []
    return single("MultiHeadAttention", inputs, [_FLOAT] * 3, attributes, domain=MICROSOFT, constants=constants)


GENERATORS: dict[str, Generator] = {
    "Attention": attention,
    "Attention of ONNX": attention_of_onnx,
    "DecoderMaskedMultiHeadAttention": decoder_masked_attention,
    "EmbedLayerNormalization": embedding,
    "GroupQueryAttention": group_query_attention,
    "MultiHeadAttention": multi_head_attention,
    "MultiHeadAttention over a cache": attention_over_a_cache,
    "QAttention": q_attention,
    "QEmbedLayerNormalization": q_embedding,
    "RotaryEmbedding": rotary_embedding,
    "RotaryEmbedding of ONNX": rotary_embedding_of_onnx,
}
HALVES: dict[str, Generator] = {
    name: halves(GENERATORS[name])
    for name in (
        "Attention",
        "Attention of ONNX",
        "EmbedLayerNormalization",
        "GroupQueryAttention",
        "MultiHeadAttention",
        "MultiHeadAttention over a cache",
        "RotaryEmbedding",
        "RotaryEmbedding of ONNX",
    )
}
CACHES: dict[str, Generator] = {
    "f32": group_query_attention_with_caches,
    "f16": halves(group_query_attention_with_caches),
}
