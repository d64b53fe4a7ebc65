"""attention: softmax(scale * q k^T + what hides keys) v for every head of queries, and the cache of keys and values.

Operands: query, key, value, bias of these, mask, what is added to scores, past keys, past values, lengths, the length
of the cache, sinks, scales of keys and of values in a cache of integers: one number, or one per column of every head.
Queries [B, S, N * H] or [B, N, S, H]; where there are no keys, all three lie side by side in one
tensor. What comes by heads has its bias already. Results: [B, S, N * V] (or [B, N, S, V] where queries have four axes),
keys and values with the past ones, and the scores.

Attributes:
`heads`, `key_heads`: 0: as many as the operand of four axes has, which has no others.
`scale`: of scores; 0: 1 / sqrt H, where sqrt H is rounded to binary32 unless `wide_scale` says otherwise.
`causal`: a query sees no later keys; the last one does with `last_sees_all`.
`begins_with_mask`: sums of scores begin with what hides keys, and with the lowest number for later ones; queries
that see no key have weights of 0. With `half`, which stands at widened operands, all of these are binary16 numbers.
`strided`: the runtime writes results where they belong in rows of several heads, instead of moving them there.
`window`: nor those so many places before it; -1: all of them.
`mask_value`: what is added to the scores of masked keys.
`cap`: scores x become cap * tanh(x / cap), unless it is 0.
`smooth`: a score of 0 without value takes part.
`key_columns`, `value_columns`: of three in one tensor; 0: heads of values are like those of keys.
`cache`: ``"stacked"``: keys and values in one tensor, ``"pair"``, or ``"placed"``: sequences begin at the front of the
cache, and lengths say where their last key is; ``"sliding"``: so, but it holds no more than the last keys.
`cache_bits`: of the integers in a placed cache, 8, or 4 in pairs (8 more than they count); 0: it is real.
`cache_scales`: every column of every head has its own.
`scores`: which ones are the fourth result, as `rules.attention.Attended` names them.
`blocks`: when the runtime may go by blocks of keys, for conditions of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...errors import RunError
from ...graph import Attribute
from ...records import dataclass, replace
from ...rules import attention, cached_product, real_product, real_softmax
from ...rules.attention import Attended, Head
from ..core.base import Call, Lowered, Operand, Operator, Shape, Step
from ..core.stopping import check_stop
from . import cache, masks

(
    QUERY,
    KEY,
    VALUE,
    BIAS,
    MASK,
    ADDED,
    PAST_KEY,
    PAST_VALUE,
    LENGTHS,
    TOTAL,
    SINK,
    KEY_SCALES,
    VALUE_SCALES,
) = range(13)
_CACHES = ("stacked", "pair", "placed", "sliding")
# Sequences of their own lengths.
_PLACED = ("placed", "sliding")
_MASKS, _INTEGERS = ("s32", "bool", "f32"), ("s32", "s64")
_TYPES = {MASK: _MASKS, LENGTHS: _INTEGERS, TOTAL: _INTEGERS}
_OF_CACHE = {0: "f32", 4: "u8", 8: "s8"}


@dataclass(frozen=True)
class Sizes:
    """B, S, L (new keys), P (past keys that count), T (keys in all), N, Nk, H, V."""

    batch: int
    queries: int
    new: int
    past: int
    keys: int
    heads: int
    key_heads: int
    size: int
    value_size: int


def _columns(call: Call, operand: Operand, heads: int) -> int:
    if operand.shape[2] % heads:
        raise call.invalid("BT-ATTENTION-HEADS", f"'{operand.name}' has {operand.shape[2]} columns for {heads} heads")
    return operand.shape[2] // heads


def sizes_of(call: Call) -> Sizes:
    """What operands and attributes say; a typed error where they do not fit together."""
    query = call.input(QUERY, "query")
    call.rank(query, 3, 4)
    heads, key_heads = int(call.attribute("heads")), int(call.attribute("key_heads"))
    if query.rank == 4:
        if heads not in (0, query.shape[1]):
            raise call.invalid("BT-ATTENTION-HEADS", f"'{query.name}' has {query.shape[1]} heads, expected {heads}")
        heads, size = query.shape[1], query.shape[3]
    if heads < 1 or (query.rank == 3 and key_heads < 1):
        raise call.invalid("BT-ATTENTION-HEADS", f"there are {heads} heads of queries and {key_heads} of keys")
    queries = query.shape[-2]
    if not call.has(KEY):
        call.rank(query, 3)
        values = int(call.attribute("value_columns"))
        both = heads + key_heads + (0 if values else key_heads)
        columns = int(call.attribute("key_columns"))
        if (
            (query.shape[2] - values) % both
            or values % key_heads
            or (values and query.shape[2] - values != columns * both // key_heads)
        ):
            raise call.invalid("BT-ATTENTION-HEADS", f"'{query.name}' has {query.shape[2]} columns for {heads} heads")
        size = (query.shape[2] - values) // both
        new, value_size = queries, values // key_heads if values else size
    else:
        key, value = call.input(KEY, "key"), call.input(VALUE, "value")
        if query.rank == 3:
            size = _columns(call, query, heads)
        for operand in (key, value):
            call.rank(operand, 3, 4)
            if operand.rank == 4:
                if key_heads not in (0, operand.shape[1]):
                    said = f"'{operand.name}' has {operand.shape[1]} heads, expected {key_heads}"
                    raise call.invalid("BT-ATTENTION-HEADS", said)
                key_heads = operand.shape[1]
        new = key.shape[-2]
        wanted = [(query.shape[0], key_heads, new)] * 2
        found = [(o.shape[0], o.shape[1] if o.rank == 4 else key_heads, o.shape[-2]) for o in (key, value)]
        key_size, value_size = (o.shape[3] if o.rank == 4 else _columns(call, o, key_heads) for o in (key, value))
        if found != wanted or key_size != size:
            raise call.invalid(
                "BT-ATTENTION-SHAPE",
                f"query {list(query.shape)}, key {list(key.shape)} and value {list(value.shape)} do not fit together",
            )
    if heads % key_heads:
        raise call.invalid("BT-ATTENTION-HEADS", f"{heads} heads of queries do not share {key_heads} heads of keys")
    past, keys = _cache_sizes(call, query.shape[0], key_heads, size, value_size, new)
    return Sizes(query.shape[0], queries, new, past, keys, heads, key_heads, size, value_size)


def _cache_sizes(call: Call, batch: int, heads: int, size: int, value_size: int, new: int) -> tuple[int, int]:
    kind, bits = call.attribute("cache"), int(call.attribute("cache_bits"))
    if kind not in _CACHES or bits not in _OF_CACHE or (bits and kind not in _PLACED):
        raise call.invalid("BT-NODE-ATTRIBUTE", f"attribute 'cache' is '{kind}' of {bits} bits")
    past = 0
    if call.has(PAST_KEY):
        operand = call.input(PAST_KEY)
        past = operand.shape[-2] if operand.rank > 1 else -1
        each = 2 if bits == 4 else 1
        wanted = {
            PAST_KEY: (2, batch, heads, past, size) if kind == "stacked" else (batch, heads, past, size // each),
            PAST_VALUE: (batch, heads, past, value_size // each),
        }
        for position in (PAST_KEY,) if kind == "stacked" else (PAST_KEY, PAST_VALUE):
            if call.input(position, "past").shape != wanted[position]:
                found = list(call.input(position).shape)
                raise call.invalid(
                    "BT-ATTENTION-CACHE", f"past keys or values of shape {found}, expected {list(wanted[position])}"
                )
    elif call.has(PAST_VALUE):
        raise call.invalid("BT-ATTENTION-CACHE", "past values come without past keys")
    if kind not in _PLACED:
        return past, past + new
    if size % 8 or value_size != size:
        raise call.invalid("BT-ATTENTION-HEADS", f"heads of {size} numbers, expected multiples of 8")
    queries = call.input(QUERY).shape[-2]
    total = call.integers(TOTAL, "length")
    if len(total) != 1 or total[0] < 1:
        raise call.invalid("BT-ATTENTION-CACHE", f"the length of the cache is {total}")
    if new != queries and (new or kind == "sliding" or not call.has(PAST_KEY) or total[0] > past):
        raise call.invalid("BT-ATTENTION-CACHE", f"{new} keys and {queries} queries do not enter a cache together")
    if kind == "sliding" and past < int(call.attribute("window")):
        raise call.invalid("BT-ATTENTION-CACHE", f"{past} places do not hold a window of {call.attribute('window')}")
    if kind == "sliding" and bits and size * bits % 128:
        raise call.invalid(
            "BT-ATTENTION-HEADS", f"rows of {size} numbers of {bits} bits, expected multiples of 16 bytes"
        )
    if bits:
        for position in (KEY_SCALES, VALUE_SCALES):
            if call.input(position, "scales").size != (heads * size if call.attribute("cache_scales") else 1):
                raise call.invalid("BT-ATTENTION-CACHE", f"there are {call.input(position).size} scales of the cache")
    return past, past if kind == "sliding" else max(past, total[0])


def _broadcasts(call: Call, position: int, shape: Shape) -> None:
    operand = call.input(position)
    if operand.rank > len(shape) or any(
        a not in (1, b) for a, b in zip(operand.shape[::-1], shape[::-1], strict=False)
    ):
        raise call.invalid(
            "BT-SHAPE-BROADCAST", f"'{operand.name}' of shape {list(operand.shape)} does not broadcast to {list(shape)}"
        )


def _check_mask(call: Call, s: Sizes) -> None:
    mask = call.input(MASK)
    if mask.dtype in ("s32", "s64"):
        forms = ((s.batch,), (2 * s.batch,), (3 * s.batch + 2,), (s.batch, s.keys), (s.batch, s.queries, s.keys))
        if mask.shape not in forms:
            raise call.invalid("BT-ATTENTION-MASK", f"mask '{mask.name}' has shape {list(mask.shape)}")
        return
    _broadcasts(call, MASK, (s.batch, s.heads, s.queries, s.keys))


def infer(call: Call) -> list[Shape]:
    """The result, keys and values for the next call, and scores."""
    call.expect((1, 13), None)
    bits = _OF_CACHE.get(int(call.attribute("cache_bits")), "f32")
    types = {**_TYPES, PAST_KEY: (bits,), PAST_VALUE: (bits,)}
    for position, operand in enumerate(call.inputs):
        if operand is not None and operand.dtype not in types.get(position, ("f32",)):
            raise call.invalid("BT-NODE-TYPE", f"input {position} ('{operand.name}') is {operand.dtype}")
    s = sizes_of(call)
    columns = s.heads * s.size + s.key_heads * (s.size + s.value_size)
    if call.has(BIAS) and call.input(BIAS).shape != (columns,):
        raise call.invalid("BT-BIAS-LENGTH", f"bias has shape {list(call.input(BIAS).shape)}, expected [{columns}]")
    if call.has(MASK):
        _check_mask(call, s)
    if call.has(ADDED):
        keys = call.integers(TOTAL, "length")[0] if call.attribute("cache") in _PLACED else s.keys
        _broadcasts(call, ADDED, (s.batch, s.heads, s.queries, keys))
    if call.has(LENGTHS) and call.input(LENGTHS).size != s.batch:
        raise call.invalid("BT-ATTENTION-LENGTHS", f"there are {call.input(LENGTHS).size} lengths for {s.batch} rows")
    if call.has(SINK) and call.input(SINK).shape != (s.heads,):
        raise call.invalid("BT-ATTENTION-SINK", f"there are {call.input(SINK).size} sinks for {s.heads} heads")
    result = (
        (s.batch, s.heads, s.queries, s.value_size)
        if call.input(QUERY).rank == 4
        else (s.batch, s.queries, s.heads * s.value_size)
    )
    if call.attribute("cache") == "stacked":
        shapes: list[Shape] = [result, (2, s.batch, s.key_heads, s.keys, s.size)]
    else:
        each = 2 if call.attribute("cache_bits") == 4 else 1
        shapes = [
            result,
            (s.batch, s.key_heads, s.keys, s.size // each),
            (s.batch, s.key_heads, s.keys, s.value_size // each),
            (s.batch, s.heads, s.queries, s.keys),
        ]
    return shapes[: len(call.outputs)]


def lower(call: Call) -> Lowered:
    """Sizes, and the scale as a binary32 number."""
    s = sizes_of(call)
    scale = np.float32(call.attribute("scale"))
    if scale == 0:
        size = np.float64(s.size) if call.attribute("wide_scale") else np.float32(s.size)
        scale = np.float32(1 / np.sqrt(size))
    names = ("last_sees_all", "begins_with_mask", "smooth", "cache", "cache_bits", "scores")
    parameters: dict[str, Attribute] = {name: call.attribute(name) for name in names}
    halves = bool(call.attribute("begins_with_mask") and call.node.attributes.get("half"))
    real = np.float16 if halves else np.float32
    # A single query behind past keys sees all the new ones.
    parameters["causal"] = bool(call.attribute("causal")) and not (s.queries == 1 and s.past > 0)
    parameters |= {"window": int(call.attribute("window")), "scale": float(scale)}
    parameters["cap"] = float(real(call.attribute("cap")))
    parameters["lowest"] = float(np.finfo(real).min)
    parameters["mask_value"] = parameters["lowest"] if halves else float(np.float32(call.attribute("mask_value")))
    strided = call.attribute("strided") and s.heads > 1 and call.input(QUERY).rank == 3
    parameters |= {
        "strided": bool(strided),
        "batch": s.batch,
        "queries": s.queries,
        "new": s.new,
        "past": s.past,
        "keys": s.keys,
        "heads": s.heads,
        "key_heads": s.key_heads,
        "size": s.size,
        "value_size": s.value_size,
        "by_heads": call.input(QUERY).rank == 4,
        "first": call.attribute("cache") in _PLACED and call.integers(TOTAL, "length")[0] == s.queries,
    }
    scores = s.batch * s.heads * s.queries * s.keys
    cached = s.batch * s.key_heads * s.keys * (s.size + s.value_size)
    return Lowered(
        parameters=parameters,
        work=scores * (s.size + s.value_size),
        # Of one head at a time; masks of all of them, and the scores that are asked for.
        scratch=(64 + 8 * s.batch) * s.queries * s.keys + (10 if len(call.outputs) > 3 else 2) * scores + 16 * cached,
    )


def _of_heads(array: np.ndarray, heads: int) -> np.ndarray:
    """[B, N, S, H]."""
    if array.ndim == 4:
        return array
    return array.reshape(*array.shape[:2], heads, array.shape[2] // heads).transpose(0, 2, 1, 3)


def _projections(step: Step, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """Queries, keys and values by heads, biases added to those that did not come so."""
    s = step
    widths = [s["heads"] * s["size"], s["key_heads"] * s["size"], s["key_heads"] * s["value_size"]]
    ends = np.cumsum(widths)[:2]
    query = inputs[QUERY]
    assert query is not None
    own = np.split(query, ends, axis=2) if inputs[KEY] is None else inputs[QUERY : VALUE + 1]
    given = [np.asarray(part) for part in own]
    heads = (s["heads"], s["key_heads"], s["key_heads"])
    bias = inputs[BIAS]
    if bias is not None:
        pieces = np.split(bias, ends)
        given = [part if part.ndim == 4 else part + piece for part, piece in zip(given, pieces, strict=True)]
    return [_of_heads(part, n) for part, n in zip(given, heads, strict=True)]


def _joined(past: np.ndarray | None, new: np.ndarray) -> np.ndarray:
    return new if past is None else np.concatenate([past, new], axis=2)


def _additions(step: Step, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """What is added to scores [B, N, S, T]: additions, then what hides masked and later keys."""
    shape = (step["batch"], step["heads"], step["queries"], step["keys"])
    added, mask, later = inputs[ADDED], inputs[MASK], _later(step, inputs[LENGTHS])
    found = [] if added is None else [np.broadcast_to(added, shape)]
    hiding: np.ndarray | None = None
    if mask is not None:
        value, sizes = np.float32(step["mask_value"]), (step["batch"], step["queries"], step["keys"])
        integers = mask.dtype.kind == "i"
        if integers and mask.ndim == 1 and (mask[: step["batch"]] < 0).any():
            raise RunError("BT-ATTENTION-MASK", f"sequences end at {mask.tolist()}", place=step.place)
        hiding = masks.of_integers(mask, *sizes, value)[:, None] if integers else masks.of_numbers(mask, value)
    if later is not None:
        hiding = np.where(later[:, None], np.float32(step["lowest"]), np.float32(0) if hiding is None else hiding)
    return found if hiding is None else [*found, np.broadcast_to(hiding, shape)]


def _later(step: Step, lengths: np.ndarray | None) -> np.ndarray | None:
    """Keys that come after a query [B, S, T], where these are not seen; queries end with the last key that is used."""
    if not step["causal"]:
        return None
    queries, keys, batch = step["queries"], step["keys"], step["batch"]
    past = [step["past"]] * batch if lengths is None else [int(length) - queries for length in lengths]
    found = np.stack([masks.after(queries, keys, one) for one in past]) if batch else np.zeros((0, queries, keys), bool)
    found[:, queries - 1 :] &= not step["last_sees_all"]
    return found


def reference(step: Step, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """Head by head."""
    inputs = [*inputs, *[None] * (13 - len(inputs))]
    if step["cache"] in _PLACED:
        return _of_placed(step, inputs)
    q, k, v = _projections(step, inputs)
    past_key, past_value = inputs[PAST_KEY], inputs[PAST_VALUE]
    if step["cache"] == "stacked" and past_key is not None:
        past_key, past_value = past_key
    k, v = _joined(past_key, k), _joined(past_value, v)
    added, hidden, start = _additions(step, inputs), None, None
    shape = (step["batch"], step["heads"], step["queries"], step["keys"])
    unseen = np.zeros(shape, bool)
    if step["begins_with_mask"]:
        # Sums begin with the mask, unless scores without it are asked for.
        apart = step["cap"] > 0 or (len(step.outputs) > 3 and step["scores"] in ("products", "capped"))
        for one in added:
            unseen |= one <= np.float32(step["lowest"])
        if added and not apart:
            start, added = added[0], []
    lengths = inputs[LENGTHS]
    if lengths is not None:
        hidden = np.broadcast_to(np.arange(step["keys"]) >= lengths[:, None, None], shape[:1] + shape[2:])
        unseen |= hidden[:, None]

    def head(b: int, n: int, key_head: int) -> Head:
        return Head(
            q[b, n],
            k[b, key_head],
            v[b, key_head],
            step["scale"],
            start=None if start is None else start[b, n],
            added=tuple(one[b, n] for one in added),
            hidden=None if hidden is None else hidden[b],
            blind=unseen[b, n].all(axis=1),
            strided=step["strided"],
            cap=step["cap"],
        )

    results = _attend(step, head)
    if len(step.outputs) == 1:
        return [_result(step, results)]
    held = [np.stack([k, v])] if step["cache"] == "stacked" else [k, v]
    return [_result(step, results), *held, _scores(step, results)][: len(step.outputs)]


def _places(step: Step, inputs: Sequence[np.ndarray | None]) -> cache.Places:
    """Rows of every sequence; a typed error where lengths do not fit them."""
    lengths, added = inputs[LENGTHS], inputs[ADDED]
    assert lengths is not None
    counts, queries = lengths.reshape(-1).astype(np.int64) + 1, step["queries"]
    sliding = step["cache"] == "sliding"
    begins = inputs[PAST_KEY] is None or step["first"]
    most = counts.max(initial=1) if sliding else step["keys"]
    if added is not None and added.shape[-1] != 1:
        most = min(most, added.shape[-1])
    found = cache.full(counts, queries, step["new"], begins)
    past = np.zeros_like(counts) if sliding else found.taken
    early = counts - queries if sliding else found.before
    if (early < 0).any() or (counts > most).any() or (counts < 1).any() or (past > step["past"]).any():
        raise RunError(
            "BT-ATTENTION-LENGTHS",
            f"lengths {lengths.reshape(-1).tolist()} do not fit {queries} queries and a cache of {step['keys']}",
            place=step.place,
        )
    return cache.of_window(counts, queries, step["past"], step["window"]) if sliding else found


def _of_placed(step: Step, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """Every sequence has its own number of keys; those of a cache that is not used yet are 0."""
    q, *new = _projections(step, inputs)
    added, sinks, bits, queries = inputs[ADDED], inputs[SINK], step["cache_bits"], step["queries"]
    places = _places(step, inputs)
    past, scales = list(inputs[PAST_KEY : PAST_VALUE + 1]), []
    if bits:
        scales = [cache.scales_of(step, np.asarray(inputs[position])) for position in (KEY_SCALES, VALUE_SCALES)]
        new = [cache.quantized(x, scale, bits) for x, scale in zip(new, scales, strict=True)]
        past = [None if x is None else cache.numbers(x, bits) for x in past]
    rows = int((places.taken + step["new"]).max(initial=0)) if step["cache"] == "sliding" else step["keys"]
    # Bytes that hold nothing are 0.
    k, v = (cache.joined(one, x, places, rows, -8 if bits == 4 else 0) for one, x in zip(past, new, strict=True))
    if added is not None:
        added = np.broadcast_to(added, (step["batch"], step["heads"], queries, added.shape[-1]))
    whole = step.rules["attention"] == "whole_rows"

    def head(b: int, n: int, key_head: int) -> Head:
        count, hidden = places.counts[b], places.hidden[b]
        end = places.before[b] + 1 + np.arange(queries)
        if not step["causal"]:
            end = np.full_like(end, count)
        if whole:
            end = np.minimum(end, count)
        first = np.maximum(end - step["window"], 0) if step["window"] >= 0 else np.zeros_like(end)
        sink = 0.0 if step["smooth"] else None
        return Head(
            q[b, n],
            k[b, key_head, :count].astype(np.float32, copy=False),
            v[b, key_head, :count].astype(np.float32, copy=False),
            step["scale"],
            added=() if added is None else (added[b, n, :, hidden : hidden + count],),
            first=first,
            end=end,
            cap=step["cap"],
            sink=sink if sinks is None else float(sinks[n]),
        )

    results = _attend(step, head, scales)
    held = [cache.packed(cache.for_next_call(x, places, step["keys"]), bits or 8) for x in (k, v)]
    return [_result(step, results), *held, _scores(step, results)][: len(step.outputs)]


def _attend(step: Step, head: Callable[[int, int, int], Head], scales: Sequence[np.ndarray] = ()) -> list[Attended]:
    """`scales`: of the keys and values of a cache of integers."""
    rule = attention.RULES[step.rules["attention"]]
    product = real_product.RULES[step.rules["real_product"]] if not scales else None
    softmax = real_softmax.RULES[step.rules["real_softmax"]]
    shared, kept = step["heads"] // step["key_heads"], step["scores"] if len(step.outputs) > 3 else ""
    found = []
    for b in range(step["batch"]):
        for n in range(step["heads"]):
            check_stop()
            own = product or _cached_product(step, scales, n // shared)
            one = rule.apply(head(b, n, n // shared), own, softmax)
            found.append(replace(one, scores={name: s for name, s in one.scores.items() if name == kept}))
    return found


def _cached_product(step: Step, scales: Sequence[np.ndarray], key_head: int) -> real_product.RealProductRule:
    keys, values = (one if one.ndim == 1 else one[key_head, 0] for one in scales)
    return cached_product.RULES[step.rules["cached_product"]].of(keys, values, keys.size > 1 or step["cache_bits"] == 4)


def _result(step: Step, found: list[Attended]) -> np.ndarray:
    of_heads = np.array([one.result for one in found], np.float32).reshape(
        step["batch"], step["heads"], step["queries"], step["value_size"]
    )
    batch, heads, length, size = of_heads.shape
    return of_heads if step["by_heads"] else of_heads.transpose(0, 2, 1, 3).reshape(batch, length, heads * size)


def _scores(step: Step, found: list[Attended]) -> np.ndarray:
    """Behind the keys of a sequence they are 0."""
    result = np.zeros((step["batch"] * step["heads"], step["queries"], step["keys"]), np.float32)
    if len(step.outputs) > 3:
        for one, into in zip(found, result, strict=True):
            scores = one.scores[step["scores"]]
            into[:, : scores.shape[1]] = scores
    return result.reshape(step["batch"], step["heads"], step["queries"], step["keys"])


OPERATOR = Operator(
    "attention",
    ("attention", "cached_product", "real_product", "real_softmax"),
    infer,
    lower,
    reference,
    "weighted sums of values, weights by how queries and keys agree",
    multiplies=True,
)
