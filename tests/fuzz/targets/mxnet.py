"""MXNet symbols and their parameters: JSON changed as a tree and as text, and binary parameters."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mutate_mxnet import mutate
from oracle import tried_model
from packed import join, pair


def seeds(folder: Path) -> Iterable[bytes]:
    """One node per operator that was recorded, and a network."""
    from test_mutated_mxnet import network, single_nodes

    for symbol, parameters in (network(), *single_nodes()):
        yield join({"symbol": symbol, "parameters": parameters})


def change(content: bytes, seed: int) -> bytes:
    """One or both files."""
    symbol, parameters = mutate(pair(content), seed)
    return join({"symbol": symbol, "parameters": parameters})


def attempt(content: bytes, folder: Path) -> str:
    first, second = pair(content)
    return tried_model(content, first, second or None, numerics=(None, "mxnet"))
