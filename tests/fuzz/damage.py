"""Deterministic damage to JSON, to text and to files of arrays."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

HUGE = 10**400
VALUES = (
    None, True, False, 0, 1, -1, 2, 7, 255, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), HUGE, 0.0, -0.0, 0.5, 1.5,
    1e308, -1e-320, float("nan"), float("inf"), float("-inf"), "", "x", "nan", "1e999", "\0", "\ud800", "</script>",
    "a\u2028b", "\u202e\x1b[31m", "../../etc/passwd", "/dev/zero", "0", [], {}, [[]], [{}], [None], {"": None},
    [0] * 40, [2**40, 2**40], [-1], "int8", "float32", "string", "x" * 5000, "[b]{}|`$(id)`{{7*7}}{% x %}%s",
)  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of everything within."""
    if isinstance(value, (dict, list)):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


def damaged(value: Any, numbers: random.Random, names: tuple[str, ...] = ()) -> Any:
    """The value with one to five entries replaced, removed, doubled or exchanged."""
    holder = [copy.deepcopy(value)]
    for _ in range(numbers.choice((1, 1, 1, 2, 5))):
        # As many changes of rare kinds of entries as of frequent ones.
        kinds: dict[str, list[tuple[Any, Any]]] = {}
        for container, key in places(holder):
            kinds.setdefault(key if isinstance(key, str) else "", []).append((container, key))
        container, key = numbers.choice(kinds[numbers.choice(sorted(kinds))])
        other = copy.deepcopy(numbers.choice(VALUES + names))
        kind = numbers.random()
        if container is holder or kind < 0.55:
            container[key] = other
        elif kind < 0.7:
            del container[key]
        elif isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]) if kind < 0.85 else other)
        elif kind < 0.85:
            container[numbers.choice([*names, "x", key + "x"])] = container.pop(key)
        else:
            one, two = numbers.choice(list(places(holder[0])) or [(holder, 0)])
            container[key] = copy.deepcopy(one[two])
    return holder[0]


def written(value: Any) -> bytes:
    """As JSON, with what JSON has no words for."""
    return json.dumps(value).encode()


def spoiled(content: bytes, numbers: random.Random) -> bytes:
    """One to eight bytes changed, removed or put in; or the end cut off."""
    data = bytearray(content)
    for _ in range(numbers.choice((1, 1, 2, 8))):
        place, kind = numbers.randrange(len(data) + 1), numbers.randrange(10)
        if kind < 4 and place < len(data):
            data[place] ^= 1 << numbers.randrange(8)
        elif kind < 7:
            data[place : place + 1] = bytes([numbers.choice(b'\0\x01\x22[]{},:0-9.e\\\xff\x80"')])
        elif kind == 7:
            del data[place : place + numbers.randrange(1, 30)]
        elif kind == 8:
            data[place:place] = data[place : place + 20] * numbers.choice((1, 1, 50))
        elif numbers.random() < 0.4:
            del data[place:]
    return bytes(data)
