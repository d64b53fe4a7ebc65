"""Deterministic damage to symbols and parameters of MXNet."""

from __future__ import annotations

import json
import random

Model = tuple[bytes, bytes]
_PIECES = (
    b"0",
    b"-1",
    b"99999999999",
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b"null",
    b"True",
    b"(1, 1)",
    b"1e308",
    b"nan",
    b"[]",
)


def _text(content: bytes, rng: random.Random) -> bytes:
    """Tokens dropped, doubled, replaced and swapped."""
    found = bytearray(content)
    for _ in range(rng.randrange(1, 4)):
        at, length = rng.randrange(len(found)), rng.choice((1, 1, 2, 5, 20))
        piece = rng.choice((b"", found[at : at + length] * 2, rng.choice(_PIECES), bytes([rng.randrange(256)])))
        found[at : at + length] = piece
    return bytes(found[: rng.randrange(len(found))] if rng.random() < 0.05 else found)


_VALUES = (
    None,
    -1,
    0,
    1,
    2,
    7,
    1 << 40,
    "",
    "0",
    "-1",
    "True",
    "False",
    "(1, 1)",
    "(2, 2)",
    "99999",
    "1e-30",
    "nan",
    [],
    {},
    [0, 0, 0],
)


def _tree(content: bytes, rng: random.Random) -> bytes:
    """Values replaced, dropped and copied over others, in the object that the text stands for."""
    root = json.loads(content)
    for _ in range(rng.randrange(1, 3)):
        place, key = root, rng.choice(("nodes", "heads"))
        while isinstance(place[key], (dict, list)) and place[key] and rng.random() < 0.9:
            place = place[key]
            key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
        if rng.random() < 0.15:
            del place[key]
            break
        place[key] = rng.choice(_VALUES)
        if not isinstance(root.get("nodes"), list) or not isinstance(root.get("heads"), list):
            break
    return json.dumps(root).encode()


def _binary(content: bytes, rng: random.Random) -> bytes:
    """Bytes of headers and names changed, or the end cut off."""
    found = bytearray(content)
    for _ in range(rng.randrange(1, 4)):
        found[rng.randrange(len(found))] = rng.choice((0, 1, 2, 127, 128, 255, rng.randrange(256)))
    if rng.random() < 0.3:
        at = rng.randrange(len(found))
        found[at : at + rng.choice((1, 4, 8))] = b"" if rng.random() < 0.5 else bytes(rng.choice((1, 4, 8)))
    return bytes(found[: rng.randrange(len(found))] if rng.random() < 0.1 else found)


def mutate(model: Model, seed: int) -> Model:
    """The model with one or both of its files damaged."""
    rng = random.Random(seed)
    symbol, parameters = model
    which = rng.randrange(8)
    if which != 0:
        symbol = _tree(symbol, rng) if which > 2 else _text(symbol, rng)
    if which < 2 and parameters:
        parameters = _binary(parameters, rng)
    return symbol, parameters
