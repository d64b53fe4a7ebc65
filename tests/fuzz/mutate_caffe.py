"""Deterministic mutations of Caffe networks and weights: fields changed through the schema, text, and bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from google.protobuf import text_format
from mutate_onnx import EXTREMES, INTEGERS, REALS, spoil

from bittrue.importers.caffe_schema import messages

NUMERICS = ("snps_caffe", "snps_caffe-ev", "snps_caffe-sr", "snps_caffe-document")
TEXTS = (
    "",
    "x",
    "a\0b",
    "../../etc/passwd",
    "ü" * 300,
    "NCHW",
    "NHWC",
    "Convolution",
    "InnerProduct",
    "Input",
    "Split",
)
WORDS = ("{", "}", ":", '"', "-1", "0", "1e39", "nan", "inf", "99999999999", "layer", "true", "TFLITE", "#", "\xff")


def _fields(message: Any) -> Iterator[tuple[Any, Any]]:
    """All set fields of a message and of those in it, and now and then one that is not set."""
    for field, value in message.ListFields():
        yield message, field
        if field.message_type is not None:
            for inner in [value] if hasattr(value, "ListFields") else value:
                yield from _fields(inner)
    for field in message.DESCRIPTOR.fields:
        if field.message_type is None and not message.DESCRIPTOR.name.startswith(("Net", "Blob", "Filler", "V1")):
            yield message, field


def _other(field: Any, value: Any, rng: np.random.Generator, names: Sequence[str]) -> Any:
    if isinstance(value, str):
        texts = names if rng.random() < 0.7 else TEXTS
        return texts[rng.integers(len(texts))]
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return float(REALS[rng.integers(len(REALS))])
    if field.enum_type is not None:
        return int(rng.integers(6))
    kind = rng.random()
    if kind < 0.4:
        return int(value) + int(rng.integers(-2, 3))
    some = INTEGERS if kind < 0.85 else EXTREMES
    return int(some[rng.integers(len(some))])


def _change(message: Any, field: Any, rng: np.random.Generator, names: Sequence[str]) -> None:
    value, kind = getattr(message, field.name), rng.random()
    try:
        if kind < 0.1:
            message.ClearField(field.name)
        elif hasattr(value, "ListFields"):
            value.Clear()
        elif not hasattr(value, "extend"):
            setattr(message, field.name, _other(field, value, rng, names))
        elif field.message_type is not None and len(value):
            if kind < 0.5:
                del value[int(rng.integers(len(value)))]
            else:
                value.add().CopyFrom(value[int(rng.integers(len(value)))])
        elif field.message_type is None:
            entries = list(value)
            place = int(rng.integers(len(entries) + 1))
            if entries and kind < 0.4:
                del entries[min(place, len(entries) - 1)]
            elif entries and kind < 0.7:
                entries[min(place, len(entries) - 1)] = _other(field, entries[0], rng, names)
            else:
                entries.insert(place, _other(field, entries[0] if entries else 0, rng, names))
            del value[:]
            value.extend(entries)
    except (TypeError, ValueError, UnicodeEncodeError):
        message.ClearField(field.name)


def mutate(network: bytes, weights: bytes, seed: int) -> tuple[bytes, bytes | None]:
    """One to four changes of the network or of the weights; texts stay texts, or become binary messages."""
    rng = np.random.default_rng(seed)
    kind = rng.random()
    if kind < 0.15:
        words = network.decode().split(" ")
        for _ in range(int(rng.integers(1, 4))):
            words[int(rng.integers(len(words)))] = WORDS[rng.integers(len(WORDS))]
        return " ".join(words).encode(errors="replace"), weights
    if kind < 0.25:
        return network, spoil(weights, seed)
    classes = messages()
    net = text_format.Parse(network.decode(), classes["NetParameter"]())
    learned = classes["NetParameter"].FromString(weights)
    names = [*{name for layer in net.layer for name in (layer.name, layer.type, *layer.bottom, *layer.top)}]
    names.sort()
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        kinds: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
        for message, field in _fields(learned if rng.random() < 0.2 else net):
            kinds.setdefault((message.DESCRIPTOR.name, field.name), []).append((message, field))
        keys = sorted(kinds)
        group = kinds[keys[int(rng.integers(len(keys)))]]
        _change(*group[int(rng.integers(len(group)))], rng, names)
    if kind < 0.65:
        return net.SerializeToString(), learned.SerializeToString()
    if kind < 0.72:
        return spoil(net.SerializeToString() or b"12345678", seed), learned.SerializeToString()
    return text_format.MessageToString(net).encode(), None if kind > 0.98 else learned.SerializeToString()
