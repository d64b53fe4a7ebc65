"""Models that are well-formed and wrong: fields changed through the schema, so that most of them can be read."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

INTEGERS = (0, 1, -1, 2, 3, 4, 5, 7, 8, 16, 31, 63, 100, 127, 255, 1000, 65536, 2**31 - 1, -(2**31), -(2**31) + 1)
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e-45, 1e30, 3e38, float("inf"), float("-inf"), float("nan"), 1e-3, 255.0)
# Changing these makes a file of another kind and nothing deeper is tried.
_LEFT = frozenset(
    "version metadata metadataBuffer signatureDefs description name hasRank offset size externalBuffer".split()
)


def change(content: bytes, seed: int) -> bytes:
    """One to four changed fields: shapes, types, options, indices, quantization and constants."""
    rng = np.random.default_rng(seed)
    model, before = _read(content), []
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        places = list(_places(model))
        # As many changes of options as of tensors, though there are fewer.
        kinds: dict[str, list[tuple[Any, Any]]] = {}
        for kind, holder, key in places:
            kinds.setdefault(kind, []).append((holder, key))
        chosen = kinds[str(rng.choice(sorted(kinds)))]
        holder, key = chosen[int(rng.integers(len(chosen)))]
        before.append((holder, key, getattr(holder, key)))
        _change(holder, key, rng)
    try:
        builder = flatbuffers.Builder(len(content) + 1024)
        builder.Finish(model.Pack(builder), b"TFL3")
    finally:
        for holder, key, value in reversed(before):
            setattr(holder, key, value)
    return bytes(builder.Output())


@lru_cache(1)
def _read(content: bytes) -> Any:
    """Most inputs are changes of the one before; who changes the model changes it back."""
    return schema.ModelT.InitFromPackedBuf(content)


def _places(value: Any, kind: str = "model") -> Any:
    """(kind, object, field) of everything that holds numbers."""
    for key, inner in vars(value).items():
        if key in _LEFT or inner is None:
            continue
        if isinstance(inner, list):
            for item in inner:
                if hasattr(item, "Pack"):
                    yield from _places(item, type(item).__name__)
            if not inner or not hasattr(inner[0], "Pack"):
                yield kind, value, key
        elif hasattr(inner, "Pack"):
            yield from _places(inner, type(inner).__name__)
        elif isinstance(inner, (int, float, bool, np.ndarray)) and not key.endswith(("Type", "OpsType")):
            yield kind, value, key


def _change(holder: Any, key: str, rng: np.random.Generator) -> None:
    value = getattr(holder, key)
    if isinstance(value, bool):
        setattr(holder, key, not value)
    elif isinstance(value, int):
        low, high = (0, 255) if key in ("type", "deprecatedBuiltinCode") else (-(2**31), 2**31 - 1)
        other = value + int(rng.integers(-2, 3)) if rng.random() < 0.4 else int(INTEGERS[rng.integers(len(INTEGERS))])
        if key == "type":
            other = int(rng.integers(0, 20))
        if key in ("opcodeIndex", "buffer", "builtinCode"):
            other = abs(other)
        try:
            setattr(holder, key, min(max(other, low), high))
        except TypeError:
            return
    elif isinstance(value, float):
        setattr(holder, key, float(REALS[rng.integers(len(REALS))]))
    else:
        setattr(holder, key, _other_array(np.array(value), rng))


def _other_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    kind = rng.integers(8)
    if not array.size or kind == 0:
        return np.append(array, array[:1]) if array.size else np.ones(1, np.int32)
    if kind == 1:
        return np.delete(array, rng.integers(array.size))
    changed = array.copy()
    place = int(rng.integers(array.size))
    if array.dtype.kind == "f":
        changed[place] = REALS[rng.integers(len(REALS))]
    elif array.dtype == np.uint8 and array.size >= 4 and kind < 6:
        # Buffers: constants of all types.
        word = place & ~3
        some = (
            np.float32(REALS[rng.integers(len(REALS))]) if kind < 3 else np.int32(INTEGERS[rng.integers(len(INTEGERS))])
        )
        changed[word : word + 4] = np.frombuffer(some.tobytes(), np.uint8)[: len(changed[word : word + 4])]
    else:
        info = np.iinfo(array.dtype)
        other = (
            int(INTEGERS[rng.integers(len(INTEGERS))]) if kind < 5 else int(changed[place]) + int(rng.integers(-2, 3))
        )
        changed[place] = min(max(other, info.min), info.max)
    return changed
