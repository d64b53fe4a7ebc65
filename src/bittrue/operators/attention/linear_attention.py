"""linear_attention: queries read a state that keys and values are written to, place by place of a sequence.

Operands: queries [B, T, Nq * K], keys [B, T, Nk * K], values [B, T, N * V], the state so far [B, N, K, V] (0 where it
is missing), decays [B, T, N * K] or [B, T, N], rates [B, T, N] or [B, T, 1]. Results: [B, T, max(Nq, N) * V] and the
state behind the last place.

At every place, for each head of values: S = S * e^decay, r = k S, d = rate * (v - r) (without rates d = v), S = S + k^T
d, y = scale * (q S), in the order of the rule.

Attributes: `heads` (of queries), `value_heads`, `scale` (0: 1 / sqrt K), `decays`, `rated` (what the formula has).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arithmetic import elementary
from ...graph import Attribute
from ...rules import real_product, state_step
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.stopping import check_stop

QUERY, KEY, VALUE, STATE, DECAY, RATE = range(6)


def sizes_of(call: Call) -> tuple[int, int, int, int, int, int, int]:
    """B, T, Nq, Nk, N, K, V."""
    query, key, value = (call.input(position) for position in (QUERY, KEY, VALUE))
    for operand in (query, key, value):
        call.rank(operand, 3)
    heads, value_heads = int(call.attribute("heads")), int(call.attribute("value_heads"))
    batch, length, columns = query.shape
    if heads < 1 or value_heads < 1 or columns < heads or columns % heads:
        raise call.invalid("BT-ATTENTION-HEADS", f"{columns} columns of queries do not belong to {heads} heads")
    size = columns // heads
    if any(o.shape[:2] != (batch, length) for o in (key, value)) or key.shape[2] % size or value.shape[2] % value_heads:
        raise call.invalid(
            "BT-ATTENTION-SHAPE",
            f"queries {list(query.shape)}, keys {list(key.shape)} and values {list(value.shape)} do not fit together",
        )
    key_heads, value_size = key.shape[2] // size, value.shape[2] // value_heads
    shared = max(heads, value_heads) % min(heads, value_heads) == 0
    if not key_heads or not value_size or not shared or (value_heads % key_heads and key_heads != value_heads):
        raise call.invalid(
            "BT-ATTENTION-HEADS", f"{heads} heads of queries, {key_heads} of keys and {value_heads} do not fit together"
        )
    return batch, length, heads, key_heads, value_heads, size, value_size


def infer(call: Call) -> list[Shape]:
    """What queries read, and the state."""
    call.expect((3, 6), 2)
    batch, length, heads, _, value_heads, size, value_size = sizes_of(call)
    state: Shape = (batch, value_heads, size, value_size)
    wanted: dict[int, tuple[Shape, ...]] = {STATE: (state,)}
    wanted[DECAY] = ((batch, length, value_heads * size), (batch, length, value_heads))
    wanted[RATE] = ((batch, length, value_heads), (batch, length, 1))
    for position, shapes in wanted.items():
        if call.has(position) and call.input(position).shape not in shapes:
            found = list(call.input(position).shape)
            raise call.invalid("BT-ATTENTION-STATE", f"input {position} has shape {found}, expected {list(shapes[0])}")
    for position, name in ((DECAY, "decays"), (RATE, "rated")):
        if call.attribute(name) and not call.has(position):
            raise call.invalid("BT-NODE-INPUT", f"input {position} is missing")
    return [(batch, length, max(heads, value_heads) * value_size), state]


def lower(call: Call) -> Lowered:
    """Sizes, and the scale as a binary32 number."""
    names = ("batch", "length", "heads", "key_heads", "value_heads", "size", "value_size")
    sizes = sizes_of(call)
    parameters: dict[str, Attribute] = dict(zip(names, sizes, strict=True))
    scale = np.float32(call.attribute("scale")) or np.float32(1) / np.sqrt(np.float32(sizes[5]))
    parameters |= {"scale": float(scale), **{name: bool(call.attribute(name)) for name in ("decays", "rated")}}
    work = call.output.size * sizes[5] * 3
    return Lowered(parameters, work=work, scratch=16 * (call.outputs[1].size + call.output.size))


def _head(
    step: Step, inputs: Sequence[np.ndarray | None], b: int, n: int, state: np.ndarray, out: np.ndarray
) -> np.ndarray:
    """One head of values: what its readers read goes to `out`; the state behind the last place."""
    query, key, value, _, decay, rate = inputs
    assert query is not None
    assert key is not None
    assert value is not None
    rule, scale = state_step.RULES[step.rules["state_step"]], np.float32(step["scale"])
    product = real_product.RULES[step.rules["real_product"]] if "real_product" in step.rules else None
    size, value_size, heads = step["size"], step["value_size"], step["value_heads"]
    keys, queries = n * step["key_heads"] // heads, step["heads"] // heads
    readers = slice(n * queries, (n + 1) * queries) if queries else slice(n, n + 1)
    asked = readers if queries else slice(n * step["heads"] // heads, n * step["heads"] // heads + 1)
    for t in range(step["length"]):
        check_stop()
        factors, share = None, None
        if step["decays"]:
            assert decay is not None
            given = decay[b, t].reshape(heads, -1)[n]
            power = rule.power if given.size > 1 else elementary.exp
            factors = np.broadcast_to(power(given)[:, None], (size, 1))
        if step["rated"]:
            assert rate is not None
            share = rate[b, t][n if rate.shape[2] > 1 else 0]
        k, v = key[b, t].reshape(-1, size)[keys], value[b, t].reshape(heads, value_size)[n]
        asking = query[b, t].reshape(-1, size)[asked]
        place = state_step.Place(factors, k, v, share, asking, scale)
        state, read = rule.apply(state, place, product)
        out[b, t].reshape(-1, value_size)[readers] = read
    return state


def reference(step: Step, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """Head by head."""
    inputs = [*inputs, *[None] * (6 - len(inputs))]
    batch, heads, sizes = step["batch"], step["value_heads"], (step["size"], step["value_size"])
    out = np.zeros((batch, step["length"], max(step["heads"], heads) * sizes[1]), np.float32)
    past = inputs[STATE]
    states = np.zeros((batch, heads, *sizes), np.float32) if past is None else past.copy()
    with np.errstate(all="ignore"):
        for b in range(batch):
            for n in range(heads):
                states[b, n] = _head(step, inputs, b, n, states[b, n], out)
    return [out, states]


OPERATOR = Operator(
    "linear_attention",
    ("state_step", "real_product"),
    infer,
    lower,
    reference,
    "queries read a state that keys and values are written to, place by place",
    multiplies=True,
)
