"""Deterministic mutations of Caffe2 networks: fields changed through the schema, the text form, and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf import text_format
from google.protobuf.message import Message
from mutate_onnx import EXTREMES, INTEGERS, REALS, TEXTS, spoil

from bittrue.importers.caffe2_schema import messages

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
