"""Caffe networks and weights: prototxt or binary, changed through their schema, as text and as bytes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mutate_caffe import NUMERICS, mutate
from mutate_onnx import spoil
from oracle import tried_model
from packed import join, pair


def seeds(folder: Path) -> Iterable[bytes]:
    """A network with every kind of layer, and one per recorded kind of case."""
    from test_mutated_caffe import every_layer

    from support.caffe_models import Files

    files = every_layer()
    yield join({"network": files.network, "weights": files.learned})
    small = Files({"x": (1, 1, 2, 2)})
    small.add("Power", "q", ["x"], ["q"], scale=0.5, shift=3.0, saturate="Unsigned_8bit")
    yield join({"network": small.network, "weights": small.learned})


def change(content: bytes, seed: int) -> bytes:
    """Through the schema or as text; one time in eight bytes of either file."""
    network, weights = pair(content)
    if seed % 8 == 0:
        parts = [network, weights]
        which = seed // 8 % 2
        parts[which] = spoil(parts[which], seed)
        return join(dict(zip(("network", "weights"), parts, strict=True)))
    network, learned = mutate(network, weights, seed)
    return join({"network": network, "weights": learned or b""})


def attempt(content: bytes, folder: Path) -> str:
    first, second = pair(content)
    return tried_model(content, first, second or None, numerics=NUMERICS)
