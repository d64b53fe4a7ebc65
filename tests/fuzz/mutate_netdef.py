"""Deterministic mutations of Caffe2 networks: fields changed through the schema, the text form, and bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import text_format
from google.protobuf.message import Message
from mutate_onnx import EXTREMES, INTEGERS, REALS, TEXTS, spoil
from watch import report, summary, watch

import bittrue
from bittrue.importers.caffe2_schema import messages

# Work up to which a mutated net is also run, and what its tensors may take.
RUN_LIMIT = 50_000_000
MEMORY_LIMIT = 64 << 20
NUMERICS = ("caffe2", "caffe2-dnnlowp")

Pair = tuple[bytes, bytes]


def _pick(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def _fields(message: Message) -> list[tuple[Message, Any]]:
    """All set fields of a message and of those in it."""
    found = []
    for field, value in message.ListFields():
        found.append((message, field))
        if field.message_type is not None:
            for inner in value if field.is_repeated else [value]:
                found += _fields(inner)
    return found


def _other(value: Any, rng: np.random.Generator, names: Sequence[str]) -> Any:
    if isinstance(value, str):
        return _pick(rng, names) if rng.random() < 0.7 else _pick(rng, TEXTS).encode("utf-8", "replace").decode()
    if isinstance(value, bytes):
        changed = value[: int(rng.integers(len(value) + 1))]
        return changed if rng.random() < 0.5 else value + rng.bytes(int(rng.integers(1, 5)))
    if isinstance(value, float):
        return _pick(rng, REALS)
    if isinstance(value, bool):
        return not value
    if rng.random() < 0.4:
        return int(value) + int(rng.integers(-2, 3))
    return _pick(rng, INTEGERS if rng.random() < 0.85 else EXTREMES)


def _change(net: Message, rng: np.random.Generator) -> None:
    names = ["", *(name for operator in net.op for name in (*operator.input, *operator.output, operator.type))]
    names += [argument.name for operator in net.op for argument in operator.arg]
    fields = _fields(net)
    if not fields:
        return
    message, field = _pick(rng, fields)
    kind = rng.random()
    try:
        if not field.is_repeated:
            if kind < 0.15:
                message.ClearField(field.name)
            elif field.message_type is None:
                setattr(message, field.name, _other(getattr(message, field.name), rng, names))
            return
        values = getattr(message, field.name)
        place = int(rng.integers(len(values)))
        if kind < 0.35:
            del values[place]
        elif field.message_type is not None:
            values.add().CopyFrom(values[place])
        elif kind < 0.6:
            values.append(values[place])
        else:
            values[place] = _other(values[place], rng, names)
    except (ValueError, TypeError, UnicodeEncodeError):
        message.ClearField(field.name)


def change(pair: Pair, seed: int) -> Pair:
    """Both nets, one of them changed: mostly well-formed, now and then in the text form, damaged or not."""
    rng = np.random.default_rng(seed)
    which = int(rng.random() < 0.4)
    net = messages()["NetDef"]()
    net.ParseFromString(pair[which])
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        _change(net, rng)
    content = net.SerializeToString()
    if seed % 4 == 1:
        content = text_format.MessageToString(net).encode()
    if (seed % 4 == 3 and content) or (seed % 12 == 5 and content):
        content = spoil(content, seed)
    return (content, pair[1]) if which == 0 else (pair[0], content)


def attempt(pair: Pair, numerics: str, shapes: dict[str, tuple[int, ...]]) -> str:
    """``"result"``, ``"planned"`` (too large to run here) or the code of the typed error."""
    try:
        model = bittrue.load(*pair)
        graph = model.graphs[0]
        names = {graph.tensors[index].name for index in graph.inputs}
        known = {name: shape for name, shape in shapes.items() if name in names}
        session = model.prepare(numerics, memory_limit=MEMORY_LIMIT, shapes=known)
        assert str(session.plan)
        size = sum(math.prod(port.shape) for port in session.inputs)
        if session.plan.work > RUN_LIMIT or size > 1 << 20:
            return "planned"
        rng = np.random.default_rng(0)
        feeds = []
        for port in session.inputs:
            raw = rng.bytes(math.prod(port.shape) * port.dtype.itemsize)
            feeds.append(np.frombuffer(raw, np.uint8).view(port.dtype).reshape(port.shape))
        session.run(*feeds)
    except bittrue.BittrueError as error:
        if not str(error) or error.code == "BT-PLAN-STEP":
            return f"FAILED: {error}"
        return error.code
    return "result"


def work(
    pipe: Any, pairs: Sequence[Pair], seeds: Iterable[int], folder: str, shapes: dict[str, tuple[int, ...]]
) -> None:
    """Seed by seed: mutate one of the nets and try what comes out. The last pair is left in `folder`."""

    def one(seed: int) -> str:
        changed = change(pairs[seed % len(pairs)], seed // len(pairs))
        for name, content in zip(("predict_net.pb", "init_net.pb"), changed, strict=True):
            Path(folder, name).write_bytes(content)
        with np.errstate(all="ignore"):
            return attempt(changed, NUMERICS[seed % 2], shapes)

    report(pipe, seeds, one)


def campaign(pairs: Sequence[Pair], seeds: range, folder: Path, shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """Run `work` in a process of its own; see `mutate.campaign`."""
    return summary(f"{folder}", watch(work, pairs, seeds, str(folder), shapes))
