"""hashed_groups: places in tables for every token and the tokens before it, one for each size of groups and each head.

Operands: tokens [T], factors of at least `size` numbers, sizes of tables [(size - 1) * heads], where sequences begin
and, last, end [B + 1] (without these, tokens [B, T]); perhaps tokens before them [B, size - 1], what is added to
places [(size - 1) * heads], the token that ends a sequence, numbers of parts [T], those before [B, size - 1], and how
many first states are wanted [B]. Results: places [T, (size - 1) * heads], the last tokens of every sequence
[B, size - 1], their parts, and the states behind the first tokens [B, `states`, size - 1].

A group of n tokens, the newest first, is factor_0 token_0 xor factor_1 token_1 xor ...; its place is the remainder by
the table's size, never negative. What lies before a sequence is `missing`, or the ending token where that is given.
With `ends`, a token behind an ending one sees that one in the place of what lies before; so does the first token of
another part. Integers wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...graph import Attribute
from ..core.base import Call, Lowered, Operator, Shape, Step

TOKENS, FACTORS, TABLES, BOUNDS, PAST, OFFSETS, ENDING, PARTS, PAST_PARTS, WANTED = range(10)
_MOST_STATES = 8


def _batch(call: Call) -> int:
    """How many sequences there are."""
    if call.has(BOUNDS):
        call.rank(call.input(TOKENS), 1)
        call.rank(call.input(BOUNDS), 1)
        return call.input(BOUNDS).size - 1
    call.rank(call.input(TOKENS), 2)
    return call.input(TOKENS).shape[0]


def infer(call: Call) -> list[Shape]:
    """Sequences are counted by their ends."""
    call.expect((3, 10), None)
    size, heads = int(call.attribute("size")), int(call.attribute("heads"))
    tokens, batch = call.input(TOKENS), _batch(call)
    call.rank(call.input(FACTORS), 1)
    kept, states = size - 1, int(call.attribute("states"))
    wanted: dict[int, Shape] = {
        TABLES: (kept * heads,),
        PAST: (batch, kept),
        OFFSETS: (kept * heads,),
        ENDING: (),
        PARTS: tokens.shape,
        PAST_PARTS: (batch, kept),
        WANTED: (batch,),
    }
    fits = size >= 2 and heads >= 1 and batch >= 0 and call.input(FACTORS).size >= size and 0 <= states <= _MOST_STATES
    for position, shape in wanted.items():
        fits = fits and (not call.has(position) or call.input(position).shape == shape)
    if not fits or call.has(WANTED) != (states > 0) or (call.has(PAST_PARTS) and not call.has(PARTS)):
        raise call.invalid("BT-HASHED-GROUPS", f"operands do not fit groups of up to {size} tokens for {heads} heads")
    if len(call.outputs) > 2 and not call.has(PARTS):
        raise call.invalid("BT-NODE-INPUT", "parts before the next tokens need parts")
    shapes: list[Shape] = [(*tokens.shape, kept * heads), (batch, kept), (batch, kept), (batch, states, kept)]
    return shapes[: len(call.outputs)]


def lower(call: Call) -> Lowered:
    """The sizes, and what stands for missing tokens."""
    names = ("size", "heads", "missing", "states")
    parameters: dict[str, Attribute] = {name: int(call.attribute(name)) for name in names}
    parameters["ends"] = bool(call.attribute("ends"))
    ends = np.iinfo(call.input(TOKENS).type.numpy)
    if not ends.min <= int(call.attribute("missing")) <= ends.max:
        raise call.invalid("BT-HASHED-GROUPS", f"{call.attribute('missing')} is no {call.input(TOKENS).dtype}")
    work = call.input(TOKENS).size * int(call.attribute("size")) * int(call.attribute("heads"))
    return Lowered(parameters, work=work, scratch=64 * (work + call.input(TOKENS).size * int(call.attribute("size"))))


def _before(row: np.ndarray, breaks: np.ndarray, kept: int, missing: Any) -> np.ndarray:
    """[tokens, kept + 1]: every token of a row behind the first `kept` ones and those before it, the newest first.

    Where `breaks` holds, a token sees nothing of what lies before it.
    """
    places = np.arange(kept, row.size)
    last = np.maximum.accumulate(np.where(breaks, np.arange(row.size), 0))[kept:]
    seen = places[:, None] - np.arange(kept + 1)
    return np.where(seen >= last[:, None], row[np.maximum(seen, 0)], missing)


def reference(step: Step, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """Sequence by sequence; what breaks a row is known of every place from its second one on."""
    tokens, factors, tables, bounds, past, offsets, ending, parts, past_parts, wanted = (*inputs, *[None] * 10)[:10]
    assert tokens is not None
    assert factors is not None
    assert tables is not None
    kind, kept, heads, shape = tokens.dtype, step["size"] - 1, step["heads"], tokens.shape
    ends = np.arange(shape[0] + 1) * shape[-1] if bounds is None else bounds.astype(np.int64)
    tokens = tokens.reshape(-1)
    parts = None if parts is None else parts.reshape(-1)
    if ends[0] or ends[-1] != tokens.size or (bounds is not None and (np.diff(ends) < 1).any()):
        raise RunError("BT-HASHED-GROUPS", f"sequences end at {ends.tolist()} of {tokens.size}", place=step.place)
    if (tables < 1).any():
        raise RunError("BT-HASHED-GROUPS", f"a table has {int(tables.min())} places", place=step.place)
    if bounds is None and offsets is not None and (offsets > np.iinfo(kind).max - tables).any():
        raise RunError("BT-HASHED-GROUPS", f"places of a table do not fit {kind} with what is added", place=step.place)
    missing = kind.type(step["missing"]) if ending is None else ending.reshape(())[()]
    batch = ends.size - 1
    groups, rows, row_parts = [], [], []
    for b in range(batch):
        new = slice(ends[b], ends[b + 1])
        row = np.concatenate([np.full(kept, missing) if past is None else past[b], tokens[new]])
        breaks = np.zeros(row.size, np.bool_)
        if step["ends"] and ending is not None:
            breaks[1:] = row[:-1] == missing
        if parts is not None:
            before = np.full(kept, parts[new][:1].sum(), np.int32) if past_parts is None else past_parts[b]
            part = np.concatenate([before, parts[new]])
            breaks[1:] |= part[1:] != part[:-1]
            row_parts.append(part)
        groups.append(_before(row, breaks, kept, missing))
        rows.append(row)
    with np.errstate(over="ignore"):
        products = np.concatenate(groups) * factors[: kept + 1]
        mixed = np.bitwise_xor.accumulate(products, axis=1)[:, 1:]
        places = np.repeat(mixed, heads, axis=1) % tables
        if offsets is not None:
            places = places + offsets
    results = [places.reshape(*shape, kept * heads), np.stack([row[row.size - kept :] for row in rows])]
    if len(step.outputs) > 2:
        results.append(np.stack([part[part.size - kept :] for part in row_parts]))
    if len(step.outputs) > 3:
        states = np.full((batch, step["states"], kept), step["missing"], kind)
        for b, row in enumerate(rows):
            count = min(max(int(wanted[b]), 0), step["states"], row.size - kept) if wanted is not None else 0
            for i in range(count):
                states[b, i] = row[i + 1 : i + 1 + kept]
        results.append(states)
    return results[: len(step.outputs)]


OPERATOR = Operator("hashed_groups", (), infer, lower, reference, "places in tables for groups of tokens")
