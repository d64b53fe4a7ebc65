"""Deterministic mutations of ONNX models: fields changed through the schema, and bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import Message

INTEGERS = (0, 1, -1, 2, 3, 4, 5, 7, 8, 16, 17, 21, 22, 23, 28, 31, 63, 64, 100, 127, 255, 256, 1000, 65536)
EXTREMES = (2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e-45, 1e30, 3e38, float("inf"), float("-inf"), float("nan"), 1e-3, 255.0)
TEXTS = ("", "x", "y", "a\0b", "\udc80", "../../etc/passwd", "/etc/passwd", "ü" * 300, "SAME_UPPER", "NOTSET", "VALID")
DOMAINS = ("", "ai.onnx", "com.microsoft", "ai.onnx.ml", "nowhere")
# Everything below is a file's own business and goes nowhere.
_LEFT = frozenset("doc_string metadata_props producer_name producer_version".split())


def change(content: bytes, seed: int) -> bytes:
    """One to four changed, removed, doubled or exchanged fields."""
    rng = np.random.default_rng(seed)
    model = onnx.ModelProto()
    model.ParseFromString(content)
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        # As many changes of small kinds of messages as of frequent ones.
        kinds: dict[tuple[str, str], list[tuple[Message, Any]]] = {}
        for message, field in _fields(model):
            kinds.setdefault((message.DESCRIPTOR.name, field.name), []).append((message, field))
        names = sorted(kinds)
        message, field = _pick(rng, kinds[names[int(rng.integers(len(names)))]])
        _change(message, field, rng, model)
    return model.SerializeToString()


def _fields(message: Message) -> Iterator[tuple[Message, Any]]:
    """All set fields of a message and of those in it, and now and then one that is not set."""
    for field, value in message.ListFields():
        if field.name in _LEFT:
            continue
        yield message, field
        if field.message_type is not None:
            for inner in value if _repeated(field) else [value]:
                yield from _fields(inner)
    for field in message.DESCRIPTOR.fields:
        if field.name not in _LEFT and field.name in (
            "dims",
            "data_type",
            "raw_data",
            "domain",
            "axis",
            "external_data",
        ):
            yield message, field


def _repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _pick(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def _change(message: Message, field: Any, rng: np.random.Generator, model: Message) -> None:
    kind = rng.random()
    if kind < 0.1:
        message.ClearField(field.name)
        return
    if not _repeated(field):
        if field.message_type is not None:
            message.ClearField(field.name) if kind < 0.5 else getattr(message, field.name).Clear()
            return
        _set(message, field, _other(field, getattr(message, field.name), rng, model))
        return
    values = getattr(message, field.name)
    place = int(rng.integers(len(values) + 1))
    if field.message_type is not None:
        if not len(values):
            values.add()
        elif kind < 0.5:
            del values[min(place, len(values) - 1)]
        elif kind < 0.75:
            values.add().CopyFrom(values[min(place, len(values) - 1)])
        else:
            other = min(place, len(values) - 1)
            first = type(values[0])()
            first.CopyFrom(values[0])
            values[0].CopyFrom(values[other])
            values[other].CopyFrom(first)
        return
    entries = list(values)
    if entries and kind < 0.3:
        del entries[min(place, len(entries) - 1)]
    elif not entries or kind < 0.55:
        entries.insert(place, _other(field, entries[0] if entries else _default(field), rng, model))
    else:
        at = min(place, len(entries) - 1)
        entries[at] = _other(field, entries[at], rng, model)
    try:
        del values[:]
        values.extend(entries)
    except (ValueError, TypeError, UnicodeEncodeError):
        del values[:]


def _default(field: Any) -> Any:
    return {"STRING": "", "BYTES": b""}.get(_type(field), 0)


def _type(field: Any) -> str:
    return {v: k[5:] for k, v in vars(type(field)).items() if k.startswith("TYPE_")}.get(field.type, "")


def _set(message: Message, field: Any, value: Any) -> None:
    try:
        setattr(message, field.name, value)
    except (ValueError, TypeError, UnicodeEncodeError):
        message.ClearField(field.name)


def _other(field: Any, value: Any, rng: np.random.Generator, model: Any) -> Any:
    kind = rng.random()
    if isinstance(value, str):
        if field.name == "domain":
            return _pick(rng, DOMAINS)
        if field.name == "op_type":
            return _pick(rng, [node.op_type for node in model.graph.node] + ["Reshape", "Constant", "Identity", "If"])
        names = [name for node in model.graph.node for name in (*node.input, *node.output)]
        names += [entry.name for entry in (*model.graph.initializer, *model.graph.input)]
        names += [attribute.name for node in model.graph.node for attribute in node.attribute]
        return _pick(rng, names) if names and kind < 0.7 else _pick(rng, TEXTS)
    if isinstance(value, bytes):
        changed = bytearray(value)
        if kind < 0.25:
            return bytes(changed[: int(rng.integers(len(changed) + 1))])
        if kind < 0.5:
            return bytes(changed) + rng.bytes(int(rng.integers(1, 9)))
        if kind < 0.7 and len(changed) >= 4:
            word = int(rng.integers(len(changed) // 4)) * 4
            some = np.float32(_pick(rng, REALS)) if kind < 0.6 else np.int32(_pick(rng, INTEGERS))
            changed[word : word + 4] = some.tobytes()
            return bytes(changed)
        for _ in range(int(rng.integers(1, 4)) if changed else 0):
            changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
        return bytes(changed)
    if isinstance(value, float):
        return _pick(rng, REALS)
    if kind < 0.35:
        return int(value) + int(rng.integers(-2, 3))
    return _pick(rng, INTEGERS if kind < 0.85 else EXTREMES)


def spoil(content: bytes, seed: int) -> bytes:
    """One to eight changed bytes, removed or inserted spans, or a truncation."""
    rng = np.random.default_rng(seed)
    data = bytearray(content)
    for _ in range(int(rng.choice([1, 1, 2, 3, 8]))):
        place, kind = int(rng.integers(len(data))), rng.integers(10)
        if kind < 4:
            data[place] ^= 1 << int(rng.integers(8))
        elif kind < 7:
            data[place] = int(rng.choice([0, 1, 8, 10, 16, 18, 0x7F, 0x80, 0xFF, rng.integers(256)]))
        elif kind == 7:
            del data[place : place + int(rng.integers(1, 9))]
        elif kind == 8:
            data[place:place] = rng.bytes(int(rng.integers(1, 9)))
        elif rng.random() < 0.3:
            del data[place:]
        if len(data) < 8:
            break
    return bytes(data)
