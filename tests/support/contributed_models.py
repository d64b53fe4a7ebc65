"""Random one-node models of com.microsoft's operators that have a kernel of their own, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from .attention_models import normal
from .floating_models import F32, Generator, Model, reals, shape_of, wild
from .onnx_models import MICROSOFT, single

_FLOAT = TensorProto.FLOAT


def _some(rng: np.random.Generator, most: int = 9) -> int:
    return int(rng.integers(1, most))


def linear_attention(rng: np.random.Generator) -> Model:
    batch, length, heads, value_heads = _some(rng, 3), _some(rng, 7), _some(rng, 9), _some(rng, 4)
    if heads % value_heads and value_heads % heads:
        heads = value_heads
    size, columns = _some(rng, 20), _some(rng, 20)
    if rng.random() < 0.4:
        # Whole vectors, and large states that are none.
        size, columns = int(rng.choice([16, 64, 80, 256, 272])), int(rng.choice([32, 64, 80, 96, 160]))
    key_heads = value_heads
    if value_heads % heads == 0 and rng.random() < 0.3:
        key_heads = heads
    rule = str(rng.choice(["linear", "gated", "delta", "gated_delta"]))
    attributes: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": value_heads, "update_rule": rule}
    if rng.random() < 0.4:
        attributes["scale"] = float(rng.choice([1.0, 0.3]))
    if rng.random() < 0.02:
        attributes["state_window"] = 1
    state = (batch, value_heads, size, columns)
    per_number = rng.random() < 0.4
    inputs: dict[str, np.ndarray | None] = {
        "q": normal(rng, batch, length, heads * size),
        "k": normal(rng, batch, length, key_heads * size),
        "v": normal(rng, batch, length, value_heads * columns),
        "past": normal(rng, *state) if rng.random() < 0.5 else None,
        "decay": None,
        "rate": None,
    }
    if "gated" in rule or rng.random() < 0.1:
        inputs["decay"] = -np.abs(normal(rng, batch, length, value_heads * (size if per_number else 1)))
    if "delta" in rule:
        inputs["rate"] = rng.random((batch, length, value_heads if rng.random() < 0.7 else 1)).astype(F32)
    while list(inputs.values())[-1] is None:
        inputs.popitem()
    return single("LinearAttention", inputs, [_FLOAT] * 2, attributes, domain=MICROSOFT)


def linear_attention_gate(rng: np.random.Generator) -> Model:
    shape = (_some(rng, 4), _some(rng, 6), _some(rng, 20))
    rated = rng.random() < 0.6
    inputs = {"a": normal(rng, *shape), "bias": normal(rng, shape[2]), "scale": normal(rng, shape[2])}
    if rated:
        inputs["b"] = normal(rng, *shape)
    return single("LinearAttentionGate", inputs, [_FLOAT] * (1 + rated), domain=MICROSOFT)


def causal_conv(rng: np.random.Generator) -> Model:
    batch, channels, length, taps = _some(rng, 3), _some(rng, 12), _some(rng, 12), _some(rng, 7)
    attributes: dict[str, Any] = {}
    if rng.random() < 0.5:
        attributes["activation"] = str(rng.choice(["silu", "swish", "none"]))
    dilation = int(rng.integers(1, 4)) if rng.random() < 0.3 else 1
    window = int(rng.random() < 0.02)
    last = rng.random() < 0.4
    for name, value, usual in (("dilation", dilation, 1), ("state_window", window, 0), ("channels_last", int(last), 0)):
        if value != usual:
            attributes[name] = value
    places = (taps - 1) * dilation
    behind = (channels,) if rng.random() < 0.7 or channels % 2 else (2, channels // 2)
    shape = (batch, length, *behind) if last else (batch, channels, length)
    state = (batch, places, *behind) if last else (batch, channels, places)
    inputs = {
        "x": normal(rng, *shape),
        "w": normal(rng, channels, 1, taps),
        "bias": normal(rng, channels) if rng.random() < 0.6 else None,
        "past": normal(rng, *state) if rng.random() < 0.5 else None,
    }
    while list(inputs.values())[-1] is None:
        inputs.popitem()
    return single("CausalConvWithState", inputs, [_FLOAT] * 2, attributes, domain=MICROSOFT)


def gated_rms_norm(rng: np.random.Generator) -> Model:
    columns = _some(rng, 40)
    shape = (*shape_of(rng, 1, 2), columns * _some(rng, 4))
    attributes: dict[str, Any] = {"activation": str(rng.choice(["silu", "sigmoid", "swish"]))}
    if rng.random() < 0.5:
        attributes["epsilon"] = 1e-6
    inputs = {"x": normal(rng, *shape), "scale": normal(rng, columns), "gate": normal(rng, *shape)}
    return single("GatedRMSNorm", inputs, [_FLOAT], attributes, domain=MICROSOFT)


def rotary_embedding_of_images(rng: np.random.Generator) -> Model:
    batch, length, heads, half = _some(rng, 4), _some(rng), _some(rng, 4), int(rng.integers(3, 36))
    sections = np.diff([0, *sorted(rng.integers(0, half + 1, 2).tolist()), half]).tolist()
    head = 2 * half + (2 * _some(rng, 5) if rng.random() < 0.3 else 0)
    attributes: dict[str, Any] = {"mrope_section": sections, "mrope_layout": int(rng.integers(0, 2))}
    attributes["interleaved"] = int(rng.integers(0, 2))
    if rng.random() < 0.2:
        attributes["scale"] = float(rng.choice([0.3, 1.7, 0.0]))
    if head > 2 * half:
        attributes["rotary_embedding_dim"] = 2 * half
    by_heads = rng.random() < 0.5
    if not by_heads or head > 2 * half:
        attributes["num_heads"] = heads
    known = length + _some(rng, 6)
    inputs = {
        "x": normal(rng, batch, heads, length, head) if by_heads else normal(rng, batch, length, heads * head),
        "positions": rng.integers(0, known, (3, batch, length)),
        "cos": normal(rng, known, half),
        "sin": normal(rng, known, half),
    }
    return single("MRotaryEmbedding", inputs, [_FLOAT], attributes, domain=MICROSOFT)


def gated_add(rng: np.random.Generator) -> Model:
    shape = shape_of(rng)
    x, y, gate = (np.nan_to_num(wild(rng, one), nan=1.0) for one in (shape, shape, (*shape[:-1], 1)))
    return single("GatedAdd", {"x": x, "y": y, "gate": gate}, [_FLOAT], domain=MICROSOFT)


_KINDS = (np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8, np.int8, np.bool_)


def elements(rng: np.random.Generator, shape: tuple[int, ...], kind: Any) -> np.ndarray:
    kind = np.dtype(kind)
    if kind == np.bool_:
        return rng.random(shape) < 0.5
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            return wild(rng, shape).astype(kind)
    ends = np.iinfo(kind)
    return rng.integers(ends.min, ends.max, shape, dtype=kind, endpoint=True)


def _moved(operator: str, x: np.ndarray, constants: dict[str, np.ndarray], **attributes: Any) -> Model:
    """One result of the type of x."""
    kind, inputs = helper.np_dtype_to_tensor_dtype(x.dtype), {"x": x, **constants}
    return single(operator, inputs, [kind], attributes, domain=MICROSOFT, constants=list(constants))


def expand_dims(rng: np.random.Generator) -> Model:
    x = elements(rng, shape_of(rng), rng.choice(_KINDS))
    axis = rng.integers(-x.ndim - 2, x.ndim + 2, () if rng.random() < 0.7 else 1)
    return _moved("ExpandDims", x, {"axis": np.asarray(axis, np.int32)})


def gather_nd(rng: np.random.Generator) -> Model:
    shape = shape_of(rng, most=5)
    depth, lead = int(rng.integers(1, len(shape) + 1)), shape_of(rng, 1, 2, 4)
    places = np.stack([rng.integers(-size, size, lead) for size in shape[:depth]], axis=-1)
    x = elements(rng, shape, rng.choice(_KINDS))
    return _moved("GatherND", x, {"places": places.astype(rng.choice([np.int32, np.int64]))})


def range_of(rng: np.random.Generator) -> Model:
    kind = np.dtype(rng.choice([np.float32, np.float64, np.int16, np.int32, np.int64]))
    ends = [rng.integers(-5, 5), rng.integers(-5, 20), rng.choice([-2, 1, 3, 0.5 if kind.kind == "f" else 2])]
    given = {name: np.full(() if rng.random() < 0.7 else 1, end, kind) for name, end in zip("xyz", ends, strict=True)}
    if rng.random() < 0.4:
        given.pop("z")
    return _moved("Range", given.pop("x"), given)


def pad(rng: np.random.Generator) -> Model:
    x = wild(rng, shape_of(rng, most=5))
    widths = rng.integers(-1, 4, (2 * x.ndim,) if rng.random() < 0.7 else (1, 2 * x.ndim))
    value = {"value": np.full(() if rng.random() < 0.5 else 1, 2.5, F32)} if rng.random() < 0.5 else {}
    return _moved("Pad", x, {"widths": widths, **value}, mode=str(rng.choice(["constant", "reflect", "edge"])))


def unique(rng: np.random.Generator) -> Model:
    x = np.rint(rng.standard_normal(rng.integers(0, 20)) * 2).astype(F32) if rng.random() < 0.8 else wild(rng, (7,))
    return single("Unique", {"x": x}, [_FLOAT, TensorProto.INT64, TensorProto.INT64], domain=MICROSOFT)


def product_of_16_bits(rng: np.random.Generator) -> Model:
    rows, depth, columns = _some(rng), _some(rng), _some(rng)
    lead = shape_of(rng, 0, 2, 4)
    inputs = {
        "a": elements(rng, (*lead, rows, depth), np.int16),
        "b": elements(rng, (*(lead if rng.random() < 0.5 else ()), depth, columns), np.int16),
    }
    return single("MatMulInteger16", inputs, [TensorProto.INT32], domain=MICROSOFT)


def unfold(rng: np.random.Generator) -> Model:
    x = elements(rng, shape_of(rng, most=4), rng.choice([np.float32, np.float64, np.int32, np.int64]))
    axis = int(rng.integers(-x.ndim, x.ndim))
    size = int(rng.integers(1, x.shape[axis] + (2 if rng.random() < 0.05 else 1)))
    return _moved("UnfoldTensor", x, {}, dim=axis, size=size, step=int(rng.integers(1, 4)))


def ban_repeats(rng: np.random.Generator) -> Model:
    batch, length, words = _some(rng, 4), _some(rng, 14), _some(rng, 6)
    low = -1 if rng.random() < 0.03 else 0
    inputs = {"tokens": rng.integers(low, words, (batch, length)), "scores": normal(rng, batch, words)}
    return single("NGramRepeatBlock", inputs, [_FLOAT], {"ngram_size": _some(rng, 5)}, domain=MICROSOFT)


def crop_and_resize(rng: np.random.Generator) -> Model:
    images, channels, regions = _some(rng, 4), _some(rng, 4), _some(rng, 5)
    corners = rng.uniform(-0.1, 1.1, (regions, 4)) if rng.random() < 0.5 else rng.integers(0, 5, (regions, 4)) / 4
    inputs = {
        "x": normal(rng, images, channels, _some(rng), _some(rng)),
        "regions": corners.astype(F32),
        "images": rng.integers(0, images, regions).astype(np.int32),
        "size": rng.integers(1, 7, 2).astype(np.int32),
    }
    attributes: dict[str, Any] = {"mode": str(rng.choice(["bilinear", "nearest"]))}
    if rng.random() < 0.5:
        attributes["extrapolation_value"] = 2.5
    return single("CropAndResize", inputs, [_FLOAT], attributes, domain=MICROSOFT, constants=["size"])


def distances(rng: np.random.Generator) -> Model:
    """Between the rows of two matrices, some of which are rows of the other one."""
    dtype, number = ((np.float32, TensorProto.FLOAT), (np.float64, TensorProto.DOUBLE))[int(rng.random() < 0.3)]
    rows, others, size = _some(rng, 20), _some(rng, 20), _some(rng, 40)
    a, b = (rng.standard_normal((count, size)) * rng.choice([1, 30]) for count in (rows, others))
    same = min(rows, others) // 2
    b[:same] = a[:same]
    attributes = {"metric": str(rng.choice(["euclidean", "sqeuclidean"]))}
    inputs = {"a": a.astype(dtype), "b": b.astype(dtype)}
    return single(
        "CDist", inputs, [number], attributes, domain=MICROSOFT, constants=["b"] if rng.random() < 0.3 else []
    )


def inverse(rng: np.random.Generator) -> Model:
    """Matrices of small sizes, some of them triangles of integers; a few have no inverse."""
    dtype, number = ((np.float32, 1), (np.float64, 11), (np.float16, 10))[rng.integers(3)]
    size = int(rng.integers(1, 12))
    x = rng.standard_normal((*shape_of(rng, 0, 2, 4), size, size))
    if rng.random() < 0.1:
        x = np.triu(np.rint(x * 4)) + np.eye(size) * (64 if rng.random() < 0.9 else 0)
    return single("Inverse", {"x": x.astype(dtype)}, [number], domain=MICROSOFT)


def streams(rng: np.random.Generator) -> Model:
    lead, count, size = tuple(int(n) for n in rng.integers(1, 4, rng.integers(1, 3))), _some(rng, 6), _some(rng, 40)
    flat = rng.random() < 0.4
    gates = ((*lead, count), (*lead, count, 1), (*lead, count, size))[rng.integers(3)]
    inputs = {"x": normal(rng, *lead, count * size) if flat else normal(rng, *lead, count, size)}
    attributes: dict[str, Any] = {"num_branches": count} if flat else {}
    if rng.random() < 0.5:
        inputs["gates"] = normal(rng, *((*lead, count * size) if flat and rng.random() < 0.3 else gates))
        if rng.random() < 0.7:
            attributes["reduction_scale"] = float(rng.choice([0.3, 2.0, -1.0]))
        return single("HyperConnectionPreMix", inputs, [_FLOAT], attributes, domain=MICROSOFT)
    inputs |= {"block": normal(rng, *lead, size), "gates": normal(rng, *gates)}
    if rng.random() < 0.6:
        inputs["weights"] = normal(rng, *lead, count, count)
    return single("HyperConnectionPostMix", inputs, [_FLOAT], attributes, domain=MICROSOFT)


def attending_lstm(rng: np.random.Generator) -> Model:
    """Half of the optional operands are there."""
    steps, batch, size, hidden, wide, rows, depth = (_some(rng, 6) for _ in range(7))
    if rng.random() < 0.2:
        size, hidden, wide, rows, depth = (_some(rng, 40) for _ in range(5))
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    count, layer = 2 if direction == "bidirectional" else 1, rng.random() < 0.5
    attended = _some(rng) if layer else depth

    def some(*shape: int) -> np.ndarray | None:
        return normal(rng, *shape) if rng.random() < 0.5 else None

    def lengths(most: int) -> np.ndarray | None:
        return rng.integers(1, most + 1, batch).astype(np.int32) if rng.random() < 0.5 else None

    inputs: dict[str, np.ndarray | None] = {
        "x": normal(rng, steps, batch, size),
        "w": normal(rng, count, 4 * hidden, size + attended),
        "r": normal(rng, count, 4 * hidden, hidden),
        "b": some(count, 8 * hidden),
        "lengths": lengths(steps),
        "h": some(count, batch, hidden),
        "cell": some(count, batch, hidden),
        "p": some(count, 3 * hidden),
        "q": normal(rng, count, hidden, wide),
        "m": normal(rng, count, depth, wide),
        "v": normal(rng, count, wide),
        "memory": normal(rng, batch, rows, depth),
        "rows": lengths(rows),
        "layer": normal(rng, count, depth + hidden, attended) if layer else None,
    }
    while list(inputs.values())[-1] is None:
        inputs.popitem()
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    attributes["input_forget"] = int(rng.integers(2))
    if rng.random() < 0.3:
        attributes["clip"] = float(rng.uniform(0.1, 2))
    return single("AttnLSTM", inputs, [_FLOAT] * int(rng.integers(1, 4)), attributes, domain=MICROSOFT)


def words(rng: np.random.Generator) -> Model:
    """Words of at least one character."""
    count, most, size, filters, known = _some(rng), _some(rng), _some(rng), _some(rng), 1 + _some(rng)
    characters = rng.integers(0, known, (count, most)).astype(np.int32)
    characters[:, 0] = np.maximum(characters[:, 0], 1)
    width = int(rng.integers(1, most + 1))
    inputs = {
        "words": characters,
        "filters": normal(rng, filters, 1, width, size),
        "bias": normal(rng, filters),
        "table": normal(rng, known, size),
    }
    attributes = {"conv_window_size": width} if rng.random() < 0.5 else {}
    return single("WordConvEmbedding", inputs, [_FLOAT], attributes, domain=MICROSOFT)


def _kind(dtype: Any) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _other(rng: np.random.Generator, dtype: Any) -> Any:
    """A type beside another one: the same, or another one of real numbers."""
    return [dtype, np.float32, np.float16][rng.integers(3)]


def scaled_silu(rng: np.random.Generator, dtype: Any = np.float32) -> Model:
    with np.errstate(over="ignore"):
        inputs = {"x": (wild if rng.random() < 0.2 else reals)(rng, shape_of(rng)).astype(dtype)}
    if rng.random() < 0.4:
        inputs["scale"] = np.asarray(normal(rng, 1)[0]).astype(_other(rng, dtype))
    attributes = {"alpha": 1.3} if rng.random() < 0.6 else {}
    return single("ScaledSiLU", inputs, [_kind(dtype)], attributes, domain=MICROSOFT)


def branchwise_rms_norm(rng: np.random.Generator, dtype: Any = np.float32) -> Model:
    lead, count, size = shape_of(rng, 0, 2, 4), _some(rng, 6), _some(rng, 40)
    flat = rng.random() < 0.5 and len(lead) > 0
    inputs = {"x": normal(rng, *lead, *((count * size,) if flat else (count, size))).astype(dtype)}
    if rng.random() < 0.8:
        shape = ((count * size,), (count, size), (size,))[rng.integers(3)]
        inputs["scale"] = normal(rng, *shape).astype(_other(rng, dtype))
    attributes: dict[str, Any] = {"num_branches": count} if flat else {}
    if rng.random() < 0.5:
        attributes["epsilon"] = 1e-6
    return single("BranchwiseRMSNorm", inputs, [_kind(dtype)], attributes, domain=MICROSOFT)


def engram_gate(rng: np.random.Generator, dtype: Any = np.float32) -> Model:
    lead, count, size = (_some(rng, 4), _some(rng, 4)), _some(rng, 6), _some(rng, 40)
    normed = rng.random() < 0.5
    shapes = {"key": (*lead, count, size), "query": (*lead, count, size), "value": (*lead, size)}
    shapes |= dict.fromkeys(("key_scale", "query_scale"), (count, size))
    if normed or rng.random() < 0.2:
        shapes["conv_scale"] = (count, size)
    inputs = {name: normal(rng, *shape).astype(dtype) for name, shape in shapes.items()}
    if rng.random() < 0.1:
        inputs["key"][0] = 0
    attributes = {"epsilon": 1e-6} if rng.random() < 0.5 else {}
    return single("EngramGate", inputs, [_kind(dtype)] * (1 + normed), attributes, domain=MICROSOFT)


def hashed_groups(rng: np.random.Generator) -> Model:
    """Groups of tokens of several sequences, side by side in one row or in rows of their own."""
    dtype = (np.int32, np.int64)[rng.integers(2)]
    packed, size, heads, batch = rng.random() < 0.5, int(rng.integers(2, 6)), _some(rng, 4), _some(rng, 4)
    lengths = rng.integers(1, 9, batch) if packed else np.full(batch, rng.integers(0, 9))
    shape = (int(lengths.sum()),) if packed else (batch, int(lengths[0]))
    kept, wide, words = size - 1, np.iinfo(dtype), _some(rng, 9)

    def tokens(*sizes: int) -> np.ndarray:
        return rng.integers(0, words, sizes).astype(dtype)

    def maybe(array: np.ndarray, chance: float = 0.5) -> np.ndarray | None:
        return array if rng.random() < chance else None

    parts = maybe(np.sort(rng.integers(0, 3, shape)).astype(np.int32))
    inputs: dict[str, np.ndarray | None] = {
        "tokens": tokens(*shape),
        "factors": rng.integers(wide.min, wide.max, size, dtype=dtype),
        "tables": rng.integers(1, wide.max if rng.random() < 0.3 else 90, kept * heads, dtype=dtype),
    }
    if packed:
        inputs["bounds"] = np.cumsum([0, *lengths]).astype(np.int32)
    inputs |= {
        "past": maybe(tokens(batch, kept)),
        "offsets": maybe(rng.integers(0, wide.max, kept * heads, dtype=dtype)),
        "ending": maybe(np.asarray(rng.integers(0, words)).astype(dtype)),
        "parts": parts,
    }
    attributes: dict[str, Any] = {"max_ngram_size": size, "n_head_per_ngram": heads, "pad_id": int(rng.integers(-2, 9))}
    attributes |= {"reset_on_eos": 1} if rng.random() < 0.6 else {}
    kinds = [_kind(dtype)] * int(rng.integers(1, 3))
    if packed and parts is not None:
        inputs["past_parts"] = maybe(np.sort(rng.integers(0, 3, (batch, kept))).astype(np.int32))
        if rng.random() < 0.6:
            kinds = [_kind(dtype)] * 2 + [TensorProto.INT32]
    if packed and len(kinds) == 3 and rng.random() < 0.6:
        inputs.setdefault("past_parts", None)
        inputs["wanted"] = rng.integers(0, 5, batch).astype(np.int32)
        attributes["state_update_capacity"] = _some(rng, 8)
        kinds.append(_kind(dtype))
    while list(inputs.values())[-1] is None:
        inputs.popitem()
    operator = "VarlenNGramHashMapping" if packed else "NGramHashMapping"
    return single(operator, inputs, kinds, attributes, domain=MICROSOFT)


def append_verified(rng: np.random.Generator) -> Model:
    words, count, begin = _some(rng, 5), int(rng.integers(1, 12)), 0
    source = rng.integers(0, words, count)
    inputs: dict[str, np.ndarray] = {"source": source, "tokens": rng.integers(0, words, int(rng.integers(0, 8)))}
    predicted = rng.random() < 0.8
    if predicted:
        begin = int(rng.integers(-1 if rng.random() < 0.05 else 0, count + 1))
    inputs["place"] = np.array([begin])
    if predicted:
        left = np.append(source[max(begin, 0) :], rng.integers(0, words))
        inputs["predicted"] = np.where(rng.random(left.size) < 0.8, left, rng.integers(0, words, left.size))
    least = _some(rng, 4)
    attributes = {"min_ngram_size": least, "max_ngram_size": least + int(rng.integers(0, 4))}
    return single("BifurcationDetector", inputs, [TensorProto.INT64] * 2, attributes, domain=MICROSOFT)


def warped_path(rng: np.random.Generator) -> Model:
    rows, columns = _some(rng, 12), _some(rng, 12)
    costs = (wild if rng.random() < 0.3 else reals)(rng, (rows, columns))
    if rng.random() < 0.5:
        costs = np.rint(rng.random((rows, columns)) * 3).astype(F32)
    costs = costs.reshape(1, rows, columns) if rng.random() < 0.3 else costs
    return single("DynamicTimeWarping", {"costs": costs}, [TensorProto.INT32], domain=MICROSOFT)


def masked_maxima(rng: np.random.Generator) -> Model:
    axes = int(rng.integers(1, 4))
    sizes, lead = tuple(_some(rng, 9) for _ in range(axes)), (_some(rng, 3), _some(rng, 4))
    kernel = [int(rng.integers(1, size + 1)) for size in sizes]
    attributes: dict[str, Any] = {"kernel_shape": kernel}
    if rng.random() < 0.5:
        attributes["strides"] = [_some(rng, 4) for _ in sizes]
    if rng.random() < 0.4:
        attributes["pads"] = [int(rng.integers(0, taps)) for taps in kernel * 2]
    elif rng.random() < 0.4:
        attributes["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    others = lead if rng.random() < 0.6 else (_some(rng, 3), _some(rng, 4))
    inputs = {
        "x": (wild if rng.random() < 0.3 else reals)(rng, (*lead, *sizes)),
        "mask": (rng.random((*others, *sizes)) < rng.choice([0.5, 0.9])).astype(np.int32),
    }
    return single("MaxpoolWithMask", inputs, [_FLOAT], attributes, domain=MICROSOFT)


def conv_transpose(rng: np.random.Generator) -> Model:
    """Pads are an operand, constant or not."""
    axes, groups = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    depth, each = groups * _some(rng, 5), _some(rng, 5)
    sizes, taps = [_some(rng, 6) for _ in range(axes)], [_some(rng, 5) for _ in range(axes)]
    strides = [_some(rng, 4) for _ in range(axes)]
    attributes: dict[str, Any] = {"strides": strides, "group": groups}
    if rng.random() < 0.3:
        attributes["output_padding"] = [int(rng.integers(0, stride)) for stride in strides]
    inputs: dict[str, np.ndarray | None] = {
        "x": normal(rng, _some(rng, 3), depth, *sizes),
        "w": normal(rng, depth, each, *taps),
        "pads": rng.integers(0, 2, 2 * axes) if rng.random() < 0.9 else None,
        "b": normal(rng, each * groups) if rng.random() < 0.5 else None,
    }
    while list(inputs.values())[-1] is None:
        inputs.popitem()
    constants = [name for name in ("w", "pads") if inputs.get(name) is not None and rng.random() < 0.5]
    return single("ConvTransposeWithDynamicPads", inputs, [_FLOAT], attributes, domain=MICROSOFT, constants=constants)


# Operators with kernels for binary16 and bf16 that compute, by name.
NARROW: dict[str, tuple[Callable[[np.random.Generator, Any], Model], tuple[Any, ...]]] = {
    "BranchwiseRMSNorm": (branchwise_rms_norm, (np.float16, ml_dtypes.bfloat16)),
    "EngramGate": (engram_gate, (np.float16,)),
    "ScaledSiLU": (scaled_silu, (np.float16, ml_dtypes.bfloat16)),
}

GENERATORS: dict[str, Generator] = {
    "AttnLSTM": attending_lstm,
    "BifurcationDetector": append_verified,
    "BranchwiseRMSNorm": branchwise_rms_norm,
    "CDist": distances,
    "CausalConvWithState": causal_conv,
    "ConvTransposeWithDynamicPads": conv_transpose,
    "CropAndResize": crop_and_resize,
    "DynamicTimeWarping": warped_path,
    "EngramGate": engram_gate,
    "ExpandDims": expand_dims,
    "GatedAdd": gated_add,
    "GatedRMSNorm": gated_rms_norm,
    "GatherND": gather_nd,
    "Inverse": inverse,
    "HyperConnectionPostMix, HyperConnectionPreMix": streams,
    "LinearAttention": linear_attention,
    "LinearAttentionGate": linear_attention_gate,
    "MRotaryEmbedding": rotary_embedding_of_images,
    "NGramHashMapping, VarlenNGramHashMapping": hashed_groups,
    "MatMulInteger16": product_of_16_bits,
    "MaxpoolWithMask": masked_maxima,
    "NGramRepeatBlock": ban_repeats,
    "Pad": pad,
    "ScaledSiLU": scaled_silu,
    "Range": range_of,
    "UnfoldTensor": unfold,
    "Unique": unique,
    "WordConvEmbedding": words,
}
