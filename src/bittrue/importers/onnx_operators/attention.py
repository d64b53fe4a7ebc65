"""Mappings of attention and of what goes with it in transformers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from .base import MICROSOFT, PLAIN, Mappers, Parts, Source

_LOWEST = float(np.finfo(np.float32).min)
_SCORES = ("products", "capped", "masked", "softmax")
_PLAIN: dict[str, Attribute] = {
    "causal": False,
    "last_sees_all": True,
    "begins_with_mask": False,
    "wide_scale": False,
    "strided": False,
    "window": -1,
    "mask_value": _LOWEST,
    "cap": 0.0,
    "smooth": False,
    "key_columns": 0,
    "value_columns": 0,
    "cache": "pair",
    "cache_bits": 0,
    "cache_scales": False,
    "scores": "none",
    "blocks": "never",
}


def _pass_over(source: Source, *names: str) -> None:
    """Integer attributes that only other processors' kernels know."""
    for name in names:
        source.integer(name, 0)


def _finite(source: Source, name: str, default: float) -> float:
    """A real attribute. Others lead to NaN whose signs are open."""
    value = source.real(name, default)
    if not math.isfinite(value):
        raise source.unsupported("BT-ONNX-ATTRIBUTE", f"attribute '{name}' is {value}", "give a finite number")
    return value


def _short(source: Source, name: str, default: int) -> int:
    """An integer of 32 bits: of longer ones the runtime takes the low bits."""
    value = source.integer(name, default)
    if not -(1 << 31) <= value < 1 << 31:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"attribute '{name}' is {value}")
    return value


def _of_projection(source: Source, dtype: str, qkv: int, mask: int, past: int, added: int | None, heads: int) -> None:
    """Attention over one tensor of queries, keys and values side by side."""
    sizes = source.integers("qkv_hidden_sizes") if source.op_type == "Attention" else None
    if sizes is not None and (len(sizes) != 3 or min(sizes) < 1 or sizes[0] != sizes[1]):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'qkv_hidden_sizes' is {sizes}, expected a, a, b, all positive")
    if sizes is not None and sizes[0] != sizes[2] and (source.present(past) or any(source.outputs[1:])):
        raise source.invalid("BT-NODE-OUTPUT", "a cache holds keys and values of one size")
    attributes: dict[str, Attribute] = {
        **_PLAIN,
        "heads": heads,
        "key_heads": heads,
        "scale": _finite(source, "scale", 0.0),
        "causal": source.flag("unidirectional", False, False),
        "mask_value": source.real("mask_filter_value", -10000.0),
        "key_columns": sizes[1] if sizes else 0,
        "value_columns": sizes[2] if sizes else 0,
        "cache": "stacked",
    }
    operands = [source.inputs[p] if p is not None and source.present(p) else None for p in (mask, added, past)]
    source.emit("attention", dtype, attributes, inputs=[qkv, None, None, None, *operands])


def _attention(source: Source) -> None:
    """The projection, then attention."""
    _pass_over(source, "past_present_share_buffer")
    _short(source, "rotary_embedding_dim", 0)
    if source.integer("do_rotary", 0) == 1:
        raise source.unsupported("BT-ONNX-ATTRIBUTE", "turned queries and keys have no kernel", "turn them before")
    if source.present(4) and source.present(5):
        raise source.invalid("BT-NODE-INPUT", "past keys and additions to scores do not go together")
    heads, sizes = source.integer("num_heads", 0), source.integers("qkv_hidden_sizes")
    values = sizes[2] if sizes is not None and len(sizes) == 3 else 0
    dtype = source.type(0)
    projected = source.temporary(dtype, "projected")
    operands = source.ordered(0, 1, 2)
    (qkv,) = source.emit("matmul", dtype, {"heads_apart": (heads, values)}, inputs=operands, outputs=[projected])
    _of_projection(source, dtype, qkv, 3, 4, 5, heads)


def _q_attention(source: Source) -> None:
    """The projection by integers, then attention."""
    _pass_over(source, "do_rotary", "past_present_share_buffer")
    (qkv,) = source.emit(
        "matmul",
        "f32",
        inputs=source.ordered(0, 1, 2, 3, 6, 4, 7),
        outputs=[source.temporary("f32", "projected")],
    )
    _of_projection(source, "f32", qkv, 5, 8, None, source.integer("num_heads", 0))


def _multi_head_attention(source: Source) -> None:
    heads = source.integer("num_heads", 0)
    attributes: dict[str, Attribute] = {
        **_PLAIN,
        "heads": heads,
        "key_heads": heads,
        "scale": _finite(source, "scale", 0.0),
        "causal": source.flag("unidirectional", False, False),
        "mask_value": source.real("mask_filter_value", -10000.0),
        "scores": "masked",
        "blocks": "alone",
    }
    if source.present(2) and not source.present(1):
        raise source.invalid("BT-NODE-INPUT", "there are values, but no keys")
    if source.present(9):
        raise source.unsupported("BT-ONNX-ATTRIBUTE", "caches of beams are not read", "export without beam search")
    if any(source.present(p) for p in (6, 7)) and not all((source.outputs + [""] * 2)[1:3]):
        raise source.invalid("BT-NODE-OUTPUT", "past keys and values need the outputs with all of them")
    if source.present(8):
        _attend_to_cache(source, attributes)
    else:
        source.emit("attention", source.type(0), attributes, inputs=source.ordered(0, 1, 2, 3, 4, 5, 6, 7))


def _attend_to_cache(source: Source, attributes: dict[str, Attribute]) -> None:
    """Past keys and values have room for the new ones, which come behind as many as count, in the results, too."""
    dtype, names = source.type(0), (source.outputs + [""] * 4)[:4]
    if not all(source.present(i) for i in (1, 2, 6, 7)) or not all(names[1:3]):
        raise source.invalid("BT-NODE-INPUT", "a cache has keys and values, past ones and its outputs")
    if names[3]:
        raise source.unsupported("BT-NODE-OUTPUT", "scores over a cache are not read")

    def one(value: int, name: str) -> int:
        return source.constant(np.array([value], np.int64), name)

    def step(operator: str, kind: str, inputs: Sequence[int | None], name: str, **attributes: Attribute) -> int:
        return source.emit(operator, kind, attributes, inputs=inputs, outputs=[source.temporary(kind, name)])[0]

    query, along = source.inputs[:1], one(2, "along")
    wide = step("convert", "s64", source.ordered(8), "wide", saturate=True, round_mode="up")
    place = step("reshape", "s64", [wide, one(1, "single")], "place", zeros="copied")
    length = step("shape", "s64", query, "length", of="dimensions", start=1, end=2)
    end = step("add", "s64", [place, length], "end", activation="none")
    batch = step("shape", "s64", query, "batch", of="dimensions", start=0, end=1)
    places = step("fill", "s64", [batch, step("squeeze", "s64", [place], "position")], "places")
    past = source.ordered(6, 7)
    counted = [step("slice_axes", dtype, [x, one(0, "front"), place, along], "counted") for x in past]
    inputs = [*source.ordered(0, 1, 2, 3, 4, 5), *counted]
    present = [source.temporary(dtype, "keys"), source.temporary(dtype, "values")]
    source.emit("attention", dtype, attributes, inputs=inputs, outputs=[names[0], *present])
    put: dict[str, Attribute] = {"axis": 2, "circular": False}
    for whole, joined, name in zip(past, present, names[1:3], strict=True):
        rows = step("slice_axes", dtype, [source.index(joined), place, end, along], "rows")
        source.emit("tensor_scatter", dtype, put, inputs=[whole, rows, places], outputs=[name])


def _embedding(
    source: Source, dtype: str, parts: Sequence[int | None], positions: int | None, mask: int | None
) -> None:
    """The sum of rows of up to three tables of `dtype`, normalized: words, positions (given, or 0, 1, 2 ...), segments.

    Outputs: the result, how many marks of each sequence are 1, the sum.
    """
    ids, segments, words, places, kinds, scale, bias = parts
    epsilon = source.real("epsilon", 1e-12)
    if not epsilon >= 0:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"epsilon must not be negative, found {epsilon}")
    if (segments is None) != (kinds is None):
        raise source.invalid("BT-NODE-INPUT", "segments and the table of their embeddings come together")
    plain: dict[str, Attribute] = {"activation": "none"}
    rows: dict[str, Attribute] = {"axis": 0, "batch_dims": 0, "from_either_end": False}
    names = (source.outputs + [""] * 3)[:3]

    def emit(operator: str, kind: str, inputs: Sequence[int | None], name: str, **attributes: Attribute) -> int:
        outputs = [source.temporary(kind, name)]
        return source.emit(operator, kind, attributes, inputs=inputs, outputs=outputs)[0]

    def one(value: int, name: str) -> int:
        return source.constant(np.array([value], np.int64), name)

    word = emit("gather", dtype, [words, ids], "words", **rows)
    if positions is None:
        length = emit("shape", "s64", [ids], "length", of="dimensions", start=1, end=2)
        place = emit("slice_axes", dtype, [places, one(0, "first"), length, one(0, "axis")], "places")
    else:
        place = emit("gather", dtype, [places, positions], "places", **rows)
    total = names[2] or source.temporary(dtype, "sum")
    first = source.temporary(dtype, "placed") if segments is not None else total
    (sum_of,) = source.emit("add", dtype, plain, inputs=[word, place], outputs=[first])
    if segments is not None:
        segment = emit("gather", dtype, [kinds, segments], "segments", **rows)
        (sum_of,) = source.emit("add", dtype, plain, inputs=[sum_of, segment], outputs=[total])
    attributes: dict[str, Attribute] = {
        "axis": -1,
        "epsilon": epsilon,
        "centred": True,
        "summed": False,
        "embedded": True,
    }
    source.emit("layer_normalization", dtype, attributes, inputs=[sum_of, scale, bias], outputs=names[:1])
    if not names[1]:
        return
    if mask is None:
        batch = emit("shape", "s64", [ids], "batch", of="dimensions", start=0, end=1)
        source.emit("fill", "s32", inputs=[batch, source.constant(np.int32(0), "zero")], outputs=names[1:2])
        return
    marked = emit("equal", "bool", [mask, source.constant(np.int32(1), "one")], "marked")
    counted = emit("convert", "s32", [marked], "counted", saturate=True, round_mode="up")
    summed: dict[str, Attribute] = {"keep_dims": False, "keeps_without_axes": False}
    source.emit("sum", "s32", summed, inputs=[counted, one(1, "along")], outputs=names[1:2])


def _embed_layer_normalization(source: Source) -> None:
    source.integer("mask_index_type", 0)
    if len(source.outputs) < 2:
        raise source.invalid("BT-NODE-ARITY", "the second output, which may be without a name, is missing")
    parts = source.ordered(*range(9))
    _embedding(source, source.type(2), parts[:7], parts[8], parts[7])


def _q_embed_layer_normalization(source: Source) -> None:
    """Tables, scale and bias are made real first."""
    parts = source.ordered(*range(18))
    for position in range(2, 7):
        if parts[position] is None:
            continue
        operands = [parts[position], parts[position + 6], parts[position + 11]]
        name = source.temporary("f32", f"real{position}")
        attributes: dict[str, Attribute] = {"axis": 1, "block_size": 0, "domain": MICROSOFT}
        (parts[position],) = source.emit("dequantize", "f32", attributes, inputs=operands, outputs=[name])
    _embedding(source, "f32", parts[:7], None, parts[7])


def _decoder_masked_attention(source: Source) -> None:
    """One query per sequence: over a cache that the new key enters, or over keys that are all there (no past ones).

    The bias is that of queries alone in the latter case.
    """
    if source.present(9):
        raise source.unsupported("BT-ONNX-ATTRIBUTE", "caches of beams are not read", "export without beam search")
    heads, dtype = source.integer("num_heads", 0), source.type(0)
    shared, cached = source.integer("past_present_share_buffer", 0), source.present(5)
    names = (source.outputs + [""] * 4)[:4]
    if cached and not (shared and source.present(7) and all(names[1:3])):
        raise source.invalid("BT-NODE-INPUT", "a cache needs 'past_present_share_buffer', its length and its outputs")
    if not cached and (shared or any(names[1:3]) or source.present(4)):
        raise source.invalid("BT-NODE-INPUT", "keys without past ones have no cache and no additions to scores")
    if not source.integer("output_qk", 0) and names[3]:
        raise source.invalid("BT-NODE-OUTPUT", "the output with the scores needs 'output_qk'")

    def one(value: int, name: str) -> int:
        return source.constant(np.array([value], np.int64), name)

    def step(operator: str, kind: str, inputs: list[int | None], name: str, **attributes: Attribute) -> int:
        return source.emit(operator, kind, attributes, inputs=inputs, outputs=[source.temporary(kind, name)])[0]

    query, key, value = (None if source.tensor(i) is None else source.inputs[i] for i in range(3))
    if source.present(10):
        width = step("shape", "s64", [query], "width", of="dimensions", start=2, end=3)
        begin = one(0, "first")
        parts = [query, key, value] if cached else [query]
        for number, part in enumerate(parts):
            end = step("add", "s64", [begin, width], f"end{number}", activation="none")
            own = step("slice_axes", dtype, [source.inputs[10], begin, end, one(0, "axis")], f"bias{number}")
            parts[number], begin = step("add", dtype, [part, own], f"biased{number}", activation="none"), end
        query, key, value = parts if cached else (*parts, key, value)
    if cached:
        by_heads, after = source.constant(np.array([0, heads, 1, -1]), "by_heads"), one(1, "after")
        place = step("convert", "s64", source.ordered(7), "place", saturate=True, round_mode="up")
        end = step("add", "s64", [place, after], "end", activation="none")
        batch = step("shape", "s64", [query], "batch", of="dimensions", start=0, end=1)
        scalar = step("squeeze", "s64", [place], "position")
        places = step("fill", "s64", [batch, scalar], "places")
        held: list[int] = []
        for new, past, name in ((key, 5, names[1]), (value, 6, names[2])):
            row = step("reshape", dtype, [new, by_heads], f"row{past}", zeros="copied")
            put: dict[str, Attribute] = {"axis": 2, "circular": False}
            source.tensor(past)
            (whole,) = source.emit(
                "tensor_scatter", dtype, put, inputs=[source.inputs[past], row, places], outputs=[name]
            )
            held.append(step("slice_axes", dtype, [whole, one(0, "front"), end, one(2, "along")], f"seen{past}"))
        key, value = held
    mask = None
    if source.present(3):
        # Of two axes, and of no others.
        order = source.constant(np.arange(2), "order")
        mask = step("transpose", source.type(3), [source.inputs[3], order], "mask")
    attributes: dict[str, Attribute] = {
        **_PLAIN,
        "heads": heads,
        "key_heads": heads,
        "scale": _finite(source, "scale", 0.0),
        "mask_value": source.real("mask_filter_value", -10000.0),
        "scores": "masked",
    }
    inputs = [query, key, value, None, mask, source.inputs[4] if source.present(4) else None]
    source.emit("attention", dtype, attributes, inputs=inputs, outputs=[names[0], "", "", names[3]])


_QUANTIZED = ("NONE", "PER_TENSOR", "PER_CHANNEL")


def _cache_bits(source: Source) -> int:
    """Bits of the integers that the cache holds; 0: it holds real numbers."""
    kinds = [source.text(f"{which}_quant_type", "NONE") for which in "kv"]
    bits = source.integer("kv_cache_bit_width", 0)
    if kinds[0] not in _QUANTIZED or kinds[0] != kinds[1]:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"keys are quantized '{kinds[0]}', values '{kinds[1]}'")
    if bits not in ((0,) if kinds[0] == "NONE" else (4, 8)):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'kv_cache_bit_width' is {bits} for a cache '{kinds[0]}'")
    if not bits:
        return 0
    wanted = "s8" if bits == 8 else "u8"
    if source.type(3) != wanted or source.type(4) != wanted:
        raise source.invalid("BT-NODE-TYPE", f"a cache of {bits} bits is {source.type(3)}, expected {wanted}")
    source.tensor(12), source.tensor(13)
    return bits


def _check_cache(source: Source, sliding: bool, bits: int) -> None:
    """What the runtime refuses, and where it would read beyond the new keys."""
    given = len(source.outputs) > 2 and all(source.outputs[1:3])
    if not given and (source.present(3) or bits):
        raise source.invalid("BT-NODE-OUTPUT", "past keys and values need the outputs with all of them")
    if not sliding:
        return
    source.tensor(3), source.tensor(4)
    if source.integer("local_window_size", -1) < 1:
        raise source.invalid("BT-ONNX-ATTRIBUTE", "'sliding_window_cache' needs a 'local_window_size'")
    if any(source.outputs[3:]):
        raise source.invalid("BT-NODE-OUTPUT", "a cache of a window gives no scores")


def _group_query_attention(source: Source) -> None:
    """Queries and keys are turned first, where the node asks for it."""
    bits, sliding = _cache_bits(source), source.integer("sliding_window_cache", 0) == 1
    _check_cache(source, sliding, bits)
    undefined = [
        *["rows of its caches behind the last key"] * sliding,
        *["scores behind the last key"] * any(source.outputs[3:]),
    ]
    if undefined:
        said = f"{' and '.join(undefined)} are 0, where ONNX Runtime leaves memory as it is"
        source.builder.notes.append(f"{source.place}: {said}: other numbers in every run")
    source.real("qk_norm_epsilon", 1e-6)
    if source.present(14) or source.present(15):
        raise source.invalid("BT-NODE-INPUT", "weights of norms have no kernel", "normalize queries and keys before")
    source.tensor(5), source.tensor(6)
    heads, key_heads = source.integer("num_heads", 0), source.integer("kv_num_heads", 0)
    scores = {0: "none", 1: "masked", 2: "softmax"}
    form, causal = source.integer("qk_output", 0), source.flag("causal", True)
    window = max(-1, _short(source, "local_window_size", -1))
    if form not in scores:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'qk_output' is {form}, expected 0, 1 or 2")
    if not causal and source.integer("local_window_size", -1) != -1:
        raise source.invalid("BT-ONNX-ATTRIBUTE", "'local_window_size' asks for causal attention")
    if bool(form) != any(source.outputs[3:]):
        raise source.invalid("BT-NODE-OUTPUT", "'qk_output' and the output with the scores come together")
    query, key, value, past_key, past_value, lengths, total, added, sink = source.ordered(*range(7), 10, 11)
    if source.flag("do_rotary", False, False):
        query = _turned(source, query, heads, 0 if key is not None else key_heads, "turned_query")
        if key is not None:
            key = _turned(source, key, key_heads, 0, "turned_key")
    attributes: dict[str, Attribute] = {
        **_PLAIN,
        "heads": heads,
        "key_heads": key_heads,
        "scale": _finite(source, "scale", 0.0),
        "causal": causal,
        "window": window,
        "cap": _finite(source, "softcap", 0.0),
        "smooth": source.flag("smooth_softmax", False, False),
        "cache": "sliding" if sliding else "placed",
        "cache_bits": bits,
        "cache_scales": source.text("k_quant_type", "NONE") == "PER_CHANNEL",
        "scores": scores[form],
        "blocks": "placed",
    }
    source.flag("rotary_interleaved", False, False)
    inputs = [query, key, value, None, None, added, past_key, past_value, lengths, total, sink]
    if bits:
        inputs += source.ordered(12, 13)
    cache = source.type(3) if bits else source.type(0)
    source.emit("attention", [source.type(0), cache, cache, source.type(0)], attributes, inputs=inputs)


def _attention_of_onnx(source: Source) -> None:
    """Softmax of binary32 numbers is computed in binary32, whatever 'softmax_precision' says."""
    scale, cap = source.real("scale", 0.0), _finite(source, "softcap", 0.0)
    if source.has("scale") and not scale > 0:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'scale' must be positive, found {scale}")
    source.integer("softmax_precision", 1)
    form = source.integer("qk_matmul_output_mode", 0)
    if not 0 <= form < len(_SCORES):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'qk_matmul_output_mode' is {form}")
    if any(source.present(p) for p in (4, 5)) and not all(source.outputs[1:3]):
        raise source.invalid("BT-NODE-OUTPUT", "past keys and values need the outputs with all of them")
    attributes: dict[str, Attribute] = {
        **_PLAIN,
        "heads": max(0, source.integer("q_num_heads", 0)),
        "key_heads": max(0, source.integer("kv_num_heads", 0)),
        "scale": scale,
        "causal": _short(source, "is_causal", 0) == 1,
        "last_sees_all": False,
        "begins_with_mask": True,
        "wide_scale": True,
        "strided": True,
        "cap": cap if cap > 0 else 0.0,
        "scores": _SCORES[form],
    }
    query, key, value, mask, past_key, past_value, used = source.ordered(*range(7))
    inputs = [query, key, value, None, mask, None, past_key, past_value, used]
    source.emit("attention", source.type(0), attributes, inputs=inputs)


def _turned(source: Source, x: int | None, heads: int, packed: int, name: str) -> int:
    """`packed`: heads of keys, and as many of values, that lie behind those of queries; values are not turned."""
    cos, sin, positions, lengths, total = source.ordered(7, 8, 9, 5, 6)
    if cos is None or sin is None:
        raise source.invalid("BT-NODE-INPUT", "'do_rotary' needs cosines and sines")
    attributes: dict[str, Attribute] = {
        "heads": heads + 2 * packed,
        "turned": 0,
        "unit": 16,
        "turned_heads": heads + packed,
        "interleaved": source.flag("rotary_interleaved", False, False),
    }
    inputs, dtype = [x, cos, sin, positions, lengths, total], source.type(0)
    return source.emit("rotary_embedding", dtype, attributes, inputs=inputs, outputs=[source.temporary(dtype, name)])[0]


def _rotary_embedding(source: Source) -> None:
    """Positions come before the cosines in com.microsoft's operator."""
    if source.domain == MICROSOFT:
        source.real("scale", 1.0)
        _pass_over(source, "is_packed_batching")
        source.tensor(1)
        if source.integer("rotary_embedding_dim", 0) > 0 and not source.integer("num_heads", 0):
            raise source.invalid("BT-ONNX-ATTRIBUTE", "'rotary_embedding_dim' needs 'num_heads'")
    turned = source.integer("rotary_embedding_dim", 0)
    if turned < 0:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'rotary_embedding_dim' is {turned}")
    attributes: dict[str, Attribute] = {
        "heads": _short(source, "num_heads", 0),
        # ONNX's operator turns whole heads where nothing is said, the other one as much as there are cosines for.
        "turned": turned or (0 if source.domain else -1),
        "turned_heads": 0,
        "unit": 1,
        "interleaved": source.flag("interleaved", False, False),
    }
    order = (0, 2, 3, 1) if source.domain == MICROSOFT else (0, 1, 2, 3)
    source.emit("rotary_embedding", source.type(0), attributes, inputs=source.ordered(*order))


def _streams(source: Source) -> tuple[int, ...]:
    """Which of three kinds of positions every cosine belongs to."""
    sections = source.integers("mrope_section")
    if sections is None or len(sections) != 3 or min(sections) < 0 or sum(sections) > 1 << 16:
        raise source.invalid(
            "BT-ONNX-ATTRIBUTE", f"'mrope_section' is {sections}, expected three numbers, none negative"
        )
    layout = source.integer("mrope_layout", 0)
    if layout not in (0, 1):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'mrope_layout' is {layout}, expected 0 or 1")
    if not layout:
        return tuple(kind for kind in range(3) for _ in range(sections[kind]))
    in_turn = (i % 3 if i < 3 * sections[i % 3] else 0 for i in range(sum(sections)))
    return tuple(in_turn)


def _rotary_embedding_of_images(source: Source) -> None:
    """Positions in time, down and across: each cosine belongs to one of them."""
    heads, turned = _short(source, "num_heads", 0), source.integer("rotary_embedding_dim", 0)
    if heads < 0 or turned < 0 or (turned and not heads):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"{turned} numbers of {heads} heads are turned")
    scale, dtype = _finite(source, "scale", 1.0), source.type(0)
    _pass_over(source, "is_packed_batching")
    operands, parts = source.ordered(0, 2, 3, 1), Parts(source)
    for place in (1, 2) if scale != 1.0 else ():
        scaled = parts.step("mul", "f32", [parts.single(operands[place]), parts.number(scale, "scale")], **PLAIN)
        operands[place] = parts.narrow(scaled, dtype)
    attributes: dict[str, Attribute] = {
        "heads": heads,
        "turned": turned or -1,
        "turned_heads": 0,
        "unit": 1,
        "interleaved": source.flag("interleaved", False, False),
        "streams": _streams(source),
    }
    source.emit("rotary_embedding", dtype, attributes, inputs=operands)


_UPDATES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


def _linear_attention(source: Source) -> None:
    rule = source.text("update_rule", "gated_delta")
    if rule not in _UPDATES:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'update_rule' is '{rule}', expected one of {list(_UPDATES)}")
    if source.integer("state_window", 0):
        raise source.invalid("BT-ONNX-ATTRIBUTE", "'state_window' has no kernel", "export it with one state")
    source.integer("chunk_size", 64)
    decays, rated = _UPDATES[rule]
    attributes: dict[str, Attribute] = {
        "heads": source.integer("q_num_heads", 0),
        "value_heads": source.integer("kv_num_heads", 0),
        "scale": _finite(source, "scale", 0.0),
        "decays": decays,
        "rated": rated,
    }
    source.emit("linear_attention", source.type(0), attributes)


def _linear_attention_gate(source: Source) -> None:
    """Decays: scale * log(1 + e^(a + bias)); rates: a sigmoid."""
    dtype = source.type(0)
    plain: dict[str, Attribute] = {"activation": "none"}

    def step(operator: str, inputs: list[int | None], **attributes: Attribute) -> int:
        return source.emit(operator, dtype, attributes, inputs=inputs, outputs=[source.temporary(dtype, operator)])[0]

    biased = step("add", source.ordered(0, 1), **plain)
    soft = step("softplus", [biased], log_of_sum=True)
    source.emit("mul", dtype, plain, inputs=[source.inputs[2], soft], outputs=source.outputs[:1])
    if len(source.outputs) > 1 and source.outputs[1]:
        source.tensor(3)
        source.emit("logistic", dtype, inputs=source.ordered(3), outputs=source.outputs[1:2])


def _gated_rms_norm(source: Source) -> None:
    """A normalized row times sigmoid(z), or z sigmoid(z)."""
    activation = source.text("activation", "silu")
    if activation not in ("silu", "swish", "sigmoid"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"activation '{activation}' is none of silu, swish and sigmoid")
    dtype = source.type(0)
    plain: dict[str, Attribute] = {"activation": "none"}

    def step(operator: str, inputs: list[int | None], **attributes: Attribute) -> int:
        return source.emit(operator, dtype, attributes, inputs=inputs, outputs=[source.temporary(dtype, operator)])[0]

    normal = step("root_mean_square", source.ordered(0, 1), epsilon=_finite(source, "epsilon", 1e-5))
    gate = step("logistic", source.ordered(2))
    if activation != "sigmoid":
        gate = step("mul", [source.inputs[2], gate], **plain)
    source.emit("mul", dtype, plain, inputs=[normal, gate])


MAPPERS: Mappers = {
    ("", "Attention"): _attention_of_onnx,
    ("", "RotaryEmbedding"): _rotary_embedding,
    (MICROSOFT, "Attention"): _attention,
    (MICROSOFT, "DecoderMaskedMultiHeadAttention"): _decoder_masked_attention,
    (MICROSOFT, "EmbedLayerNormalization"): _embed_layer_normalization,
    (MICROSOFT, "GatedRMSNorm"): _gated_rms_norm,
    (MICROSOFT, "GroupQueryAttention"): _group_query_attention,
    (MICROSOFT, "LinearAttention"): _linear_attention,
    (MICROSOFT, "LinearAttentionGate"): _linear_attention_gate,
    (MICROSOFT, "MRotaryEmbedding"): _rotary_embedding_of_images,
    (MICROSOFT, "MultiHeadAttention"): _multi_head_attention,
    (MICROSOFT, "QAttention"): _q_attention,
    (MICROSOFT, "QEmbedLayerNormalization"): _q_embed_layer_normalization,
    (MICROSOFT, "RotaryEmbedding"): _rotary_embedding,
}
