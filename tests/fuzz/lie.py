"""Plan files that lie: numbers, lists, names and arrays of saved plans changed at will, then loaded and run.

A lie in the plan itself contradicts the graph beside it. Lies in the graph are mostly told in the whole file, so that
it is accepted when the graph can be planned at all.
"""

from __future__ import annotations

import copy
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import bittrue
from bittrue.errors import MISFITS
from bittrue.plan.loading import read_source
from bittrue.plan.planner import plan_source
from bittrue.plan.saving import described

# Of activations; runs of larger plans would only take time.
MEMORY_LIMIT = 16 << 20
INTEGERS = (0, 1, -1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 63, 64, 100, 127, 255, 1000, 65536)
EXTREMES = (2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63), 2**64, 10**30)
OTHERS = (None, True, False, "x", "", "int8", [], {}, [1], [[1]], 1.5, -0.0, 1e30, float("nan"), float("inf"))

Members = tuple[dict[str, Any], dict[str, np.ndarray]]


def members_of(content: bytes, folder: Path) -> Members:
    """The description and the arrays of a plan file, given itself or as its model."""
    path = folder / "true.plan"
    if content[:4] == b"PK\x03\x04":
        path.write_bytes(content)
    else:
        bittrue.load(content).prepare(executor="reference").plan.save(path)
    with zipfile.ZipFile(path) as archive:
        arrays = {name: np.load(io.BytesIO(archive.read(name))) for name in archive.namelist() if name.endswith("npy")}
        return json.loads(archive.read("plan.json")), arrays


def write(members: Members, path: Path) -> None:
    """A plan file of a description and arrays."""
    contents = {"plan.json": json.dumps(members[0], indent=1).encode()}
    for name, array in members[1].items():
        buffer = io.BytesIO()
        np.save(buffer, array)
        contents[name] = buffer.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)


def lie(members: Members, seed: int) -> Members:
    """One to four changes: mostly in steps and shapes, where numbers decide what memory is touched."""
    rng = np.random.default_rng(seed)
    description, arrays = copy.deepcopy(members[0]), dict(members[1])
    whole = rng.random() < 0.7
    if whole:
        # Arrays that only the plan has are derived anew.
        used = set(_texts(description["source"]))
        arrays = {name: array for name, array in arrays.items() if name.removesuffix(".npy") in used}
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        if arrays and rng.random() < 0.25:
            name = str(rng.choice(list(arrays)))
            arrays[name] = _other_array(arrays[name], rng)
            continue
        places = [path for path in _places(description) if not whole or path[:2] == ("source", "graphs")]
        weights = np.array([_weight(path) for path in places])
        path = places[int(rng.choice(len(places), p=weights / weights.sum()))]
        holder = description
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = _other(holder[path[-1]], description, path, rng)
    return _consistent(description, arrays) if whole else (description, arrays)


def _consistent(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> Members:
    """The file of a plan of the graphs in `description`; what cannot be planned stays as it is."""
    try:
        source, notes = read_source(description, {name.removesuffix(".npy"): a for name, a in arrays.items()})
        plan = plan_source(replace(source, memory_limit=MEMORY_LIMIT), notes)
        derived, kept = described(plan)
    except (bittrue.BittrueError, MemoryError, *MISFITS):
        return description, arrays
    return json.loads(json.dumps(derived)), {f"{name}.npy": array for name, array in kept.items()}


def _texts(value: Any) -> Any:
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from (inner,) if isinstance(inner, str) else _texts(inner)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from _places(inner, (*path, key))


def _weight(path: tuple[Any, ...]) -> float:
    """Names and what is for people only matter less."""
    if path[-1] in ("name", "source", "index", "notes", "work", "signature", "version", "first", "offset"):
        return 0.1
    if "parameters" in path or "attributes" in path or "shape" in path:
        return 4
    return 1 if "steps" in path or "nodes" in path else 0.5


def _other(value: Any, description: dict[str, Any], path: tuple[Any, ...], rng: np.random.Generator) -> Any:
    kind = rng.random()
    another = copy.deepcopy(OTHERS[rng.integers(len(OTHERS))])
    if isinstance(value, bool):
        return not value if kind < 0.7 else another
    if isinstance(value, int):
        if kind < 0.3:
            return value + int(rng.choice([-2, -1, 1, 2]))
        if kind < 0.4:
            return -value
        if kind < 0.7:
            return INTEGERS[rng.integers(len(INTEGERS))]
        if kind < 0.92:
            return EXTREMES[rng.integers(len(EXTREMES))]
    if isinstance(value, list) and kind < 0.8:
        changed = copy.deepcopy(value)
        if changed and kind < 0.3:
            changed.pop(int(rng.integers(len(changed))))
        elif kind < 0.6:
            changed.insert(int(rng.integers(len(changed) + 1)), copy.deepcopy(changed[0]) if changed else 1)
        else:
            changed.reverse()
        return changed
    if isinstance(value, str) and kind < 0.8:
        # What stands elsewhere under the same key: another rule, operator, type or array.
        same = [_at(description, p) for p in _places(description) if p[-1] == path[-1] or p[-2:-1] == path[-2:-1]]
        names = [other for other in same if isinstance(other, str)]
        return names[rng.integers(len(names))]
    return another


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _other_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    kind = rng.integers(8)
    if kind < 4 and array.size and array.dtype.kind in "iuf":
        changed = array.copy()
        if array.dtype.kind == "f":
            some = rng.choice([0.0, -1.0, 1e-30, 1e30, np.inf, np.nan, 0.5, 1e9])
        else:
            info = np.iinfo(array.dtype)
            some = min(max(int(rng.choice([0, 1, -1, 3, 100, -(2**31), 2**62])), int(info.min)), int(info.max))
        changed.reshape(-1)[rng.integers(array.size, size=1 if kind < 3 else array.size)] = some
        return changed
    if kind == 4:
        return array.reshape(-1)[: array.size // 2]
    if kind == 5:
        return np.concatenate([array.reshape(-1), array.reshape(-1)[:1]])
    if kind == 6:
        return np.zeros(array.shape, rng.choice(["int8", "uint8", "int16", "int32", "int64", "float32", "bool"]))
    return array.reshape(*array.shape[::-1]).copy() if array.ndim > 1 else array.reshape(1, -1)
