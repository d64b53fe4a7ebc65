"""Traces: what `bittrue run --trace` or a device left behind in a folder.

The folder may hold an index, `trace.json`: a JSON object with the list ``tensors`` in execution order. Of each tensor::

    {"name": "conv1/Relu", "file": "conv1.bin", "dtype": "int8", "shape": [1, 112, 112, 32],
     "scale": 0.0235, "zero_point": -128}

``name``
    as the model has it, if possible.
``file``
    in the folder or below it: an .npy file; an .npz file, with ``member`` if that is not called like the tensor; or any
    other name for raw values, little-endian, in C order, one byte per element for types under 8 bits. Several
    tensors may share a raw file, each with its ``start`` in bytes.
``dtype``, ``shape``
    needed for raw files; others know them.
``transpose``
    optional: the file's axes in the order in which they are meant, as `numpy.transpose` takes them: [0, 2, 3, 1] for
    values stored with channels first and meant to have them last.
``scale`` or ``scales``, ``zero_point`` or ``zero_points``, ``axis``
    optional: the quantization, per tensor or per slice of an axis.

Beside ``tensors`` there may be ``inputs`` and ``outputs`` (lists of names), ``title`` (of the device) and ``numerics``
(the one that stands for it). Without an index, every .npy file of the folder is a tensor that is called like the file,
and so is every member of its .npz files; their order is that of their names, numbers in them compared as numbers.

Several runs lie in folders ``0``, ``1``, ... of their own, or in those that the list ``runs`` of `trace.json` names.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .. import numerics as numerics_tables
from ..errors import InputError
from ..files import check_finished
from ..graph import Quantization, data_type
from ..visible import visible
from . import arrays
from .base import Progress, Runner
from .recording import Recorded, Recording

INDEX = "trace.json"
_LARGEST_INDEX = 64 << 20
_MOST_RUNS = 10_000


class Trace(Runner):
    """A folder with one or several recorded runs."""

    def __init__(self, spec: str, path: Path) -> None:
        self.spec = spec
        self.path = path
        self.format = "trace"
        self.model = None
        self.inputs = []
        index = _read_index(path) if os.path.isdir(path) else {}
        self._runs = [_run(folder) for folder in _folders(path, index)]
        first = self._runs[0][1]
        name = str(index.get("numerics") or first.get("numerics") or "")
        self.arithmetic = numerics_tables.find(name) if name in numerics_tables.names() else None
        made = index.get("title") or first.get("title")
        if not isinstance(made, str):
            made = f"recorded by bittrue, numerics {name}" if first.get("format") else "recorded elsewhere"
        self.title = f"{_clean(made)} ({path.name})"

    def recorded(self) -> list[Recording]:
        return [recording for recording, _ in self._runs]

    def record(self, inputs: Mapping[str, np.ndarray], progress: Progress | None = None) -> Recording:
        """The run that had these inputs; a single run that does not show its inputs is taken to have had them.

        Raises:
            InputError: no run had them.
        """
        for recording in self.recorded():
            if recording.inputs and all(
                name in inputs and _same(recording[name].load(), inputs[name]) for name in recording.inputs
            ):
                return recording
        single = self._runs[0][0]
        if len(self._runs) == 1 and not single.inputs:
            return single
        raise InputError(
            "BT-TRACE-INPUT",
            "no run of this trace had these inputs",
            place=str(self.path),
            advice="compare with the inputs that the trace holds: leave --input out",
        )


def _same(one: np.ndarray, two: np.ndarray) -> bool:
    return one.dtype == two.dtype and one.size == two.size and one.tobytes() == np.asarray(two).tobytes()


def _folders(path: Path, index: Mapping[str, Any]) -> list[Path]:
    """Where the runs are."""
    if not os.path.exists(path):
        raise InputError("BT-TRACE", "no such folder", place=_clean(str(path)))
    if "runs" in index:
        names = _names(index["runs"], "runs", path / INDEX)
        if not names:
            raise InputError("BT-TRACE", "'runs' is empty", place=str(path / INDEX))
        return [_inside(path, name, path / INDEX) for name in names]
    if path.is_file() or (path / INDEX).exists() or _stored_files(path):
        return [path]
    numbered: list[Path] = []
    while len(numbered) < _MOST_RUNS and (path / str(len(numbered))).is_dir():
        numbered.append(path / str(len(numbered)))
    if not numbered:
        raise InputError(
            "BT-TRACE",
            f"neither {INDEX}, nor .npy or .npz files, nor folders 0, 1, ... in it",
            place=str(path),
            advice=f"raw files need an index beside them: {INDEX} with "
            '{"tensors": [{"name": ..., "file": ..., "dtype": "int8", "shape": [...]}, ...]}; '
            "`bittrue run MODEL --trace DIR` writes one to start from",
        )
    return numbered


def _run(folder: Path) -> tuple[Recording, Mapping[str, Any]]:
    """One run, and its index; empty without one."""
    if folder.is_file():
        return _listed([folder]), {}
    if not folder.is_dir():
        raise InputError("BT-TRACE", "no such folder", place=str(folder))
    index = _read_index(folder)
    if not index:
        return _listed(_stored_files(folder)), index
    place = folder / INDEX
    entries = index.get("tensors")
    if not isinstance(entries, list):
        raise InputError("BT-TRACE-INDEX", "'tensors' is no list", place=str(place))
    tensors: dict[str, Recorded] = {}
    archives: dict[Path, dict[str, arrays.Stored]] = {}
    for position, entry in enumerate(entries):
        tensor = _tensor(folder, entry, f"{place}, tensors[{position}]", archives)
        if tensor.name in tensors:
            raise InputError("BT-TRACE-INDEX", f"'{_clean(tensor.name)}' occurs twice", place=str(place))
        tensors[tensor.name] = tensor
    inputs, outputs = (_names(index.get(key, []), key, place) for key in ("inputs", "outputs"))
    for name in (*inputs, *outputs):
        if name not in tensors:
            raise InputError("BT-TRACE-INDEX", f"no tensor '{_clean(name)}'", place=str(place))
    if not tensors:
        raise InputError("BT-TRACE-INDEX", "it lists no tensors", place=str(place))
    missing = [key for key, names in (("inputs", inputs), ("outputs", outputs)) if not names]
    notes = [f"the index does not say which tensors are {' and '.join(missing)}"] if missing else []
    return Recording(tuple(tensors.values()), inputs, outputs, tuple(notes)), index


def _listed(files: list[Path]) -> Recording:
    """A run without an index."""
    tensors: dict[str, Recorded] = {}
    for path in files:
        found = arrays.members(path) if path.suffix == ".npz" else {path.stem: arrays.npy(path)}
        for name, stored in found.items():
            if name in tensors:
                raise InputError("BT-TRACE", f"two tensors are called '{_clean(name)}'", place=str(path))
            tensors[name] = _recorded(name, stored, None, str(path))
    if not tensors:
        raise InputError("BT-TRACE", "there are no tensors in it", place=str(files[0] if files else ""))
    ordered = sorted(tensors.values(), key=lambda tensor: _natural(tensor.name))
    note = f"no {INDEX}: tensors in the order of their names; which are inputs and outputs is not known"
    return Recording(tuple(ordered), (), (), (note,))


def _stored_files(folder: Path) -> list[Path]:
    found = [path for path in folder.iterdir() if path.suffix in (".npy", ".npz") and not path.is_dir()]
    return [_inside(folder, path.name, folder) for path in sorted(found, key=lambda path: _natural(path.name))]


def _natural(text: str) -> list[tuple[bool, int, str]]:
    """Sorts numbers within names by size."""
    parts = re.split(r"([0-9]+)", text)
    digits = [(part[:1].isdigit() and part.isascii(), part.lstrip("0")) for part in parts]
    return [
        (number, len(short) if number else 0, short if number else part)
        for part, (number, short) in zip(parts, digits, strict=True)
    ]


def _read_index(folder: Path) -> dict[str, Any]:
    """`trace.json` of a folder; empty when there is none."""
    path = folder / INDEX
    check_finished(folder, INDEX)
    if not path.exists():
        return {}
    path = _inside(folder, INDEX, folder)
    if arrays.regular_file(path).st_size > _LARGEST_INDEX:
        raise InputError("BT-TRACE-INDEX", f"longer than {_LARGEST_INDEX:,} bytes", place=str(path))
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise InputError("BT-TRACE-INDEX", f"no readable JSON: {error}"[:300], place=str(path)) from None
    if not isinstance(index, dict) or not index:
        raise InputError("BT-TRACE-INDEX", "no JSON object with the list 'tensors'", place=str(path))
    return index


def _names(value: Any, key: str, place: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise InputError("BT-TRACE-INDEX", f"'{key}' is no list of names", place=str(place))
    return tuple(dict.fromkeys(value))


def _inside(folder: Path, name: str, place: object) -> Path:
    """The file or folder of this name; InputError for one that is not below `folder`, links followed."""
    try:
        root, path = folder.resolve(), (folder / name).resolve()
        inside = path.is_relative_to(root) and path != root and "\0" not in name
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside or Path(name).is_absolute():
        raise InputError(
            "BT-TRACE-PATH", f"'{_clean(name)}' is outside of the folder", place=str(place), advice="copy it there"
        )
    return folder / name


def _tensor(folder: Path, entry: Any, place: str, archives: dict[Path, dict[str, arrays.Stored]]) -> Recorded:
    if not isinstance(entry, dict):
        raise InputError("BT-TRACE-INDEX", "no JSON object", place=place)
    name, file = entry.get("name"), entry.get("file")
    if not isinstance(name, str) or not name or not isinstance(file, str) or not file:
        raise InputError("BT-TRACE-INDEX", "'name' or 'file' is missing or no text", place=place)
    place = f"{place} '{_clean(name)}'"
    path = _inside(folder, file, place)
    shape = _shape(entry, place)
    dtype = _dtype(entry, place)
    if path.suffix == ".npz":
        if path not in archives:
            archives[path] = arrays.members(path)
        member = entry.get("member", name)
        if not isinstance(member, str) or member not in archives[path]:
            known = ", ".join(_clean(n) for n in list(archives[path])[:10])
            raise InputError("BT-TRACE-INDEX", f"no such member in {file}", place=place, advice=f"members: {known}")
        stored = archives[path][member]
    elif path.suffix == ".npy":
        stored = arrays.npy(path)
    else:
        if dtype is None or shape is None:
            raise InputError("BT-TRACE-INDEX", "raw values need 'dtype' and 'shape'", place=place)
        start = entry.get("start")
        if start is not None and (not _is_count(start)):
            raise InputError("BT-TRACE-INDEX", f"'start' is {start!r:.40}, no number of bytes", place=place)
        stored = arrays.raw(path, data_type(dtype).numpy, shape, start)
    if shape is not None and stored.shape != shape:
        text = f"the index says shape {list(shape)}, {file} has {list(stored.shape)}"
        raise InputError("BT-TRACE-SHAPE", text, place=place)
    return _recorded(name, _transposed(stored, entry.get("transpose"), place), dtype, place, entry)


def _recorded(
    name: str, stored: arrays.Stored, dtype: str | None, place: str, entry: Mapping[str, Any] | None = None
) -> Recorded:
    load = stored.load
    if dtype is None:
        try:
            dtype = data_type(stored.dtype.name).name
        except KeyError:
            text = f"has type {stored.dtype}, which no tensor has"
            raise InputError("BT-TRACE-TYPE", text, place=place, advice="name its dtype in trace.json") from None
    wanted = data_type(dtype).numpy
    if stored.dtype != wanted:
        # NumPy's files have no names for types that it does not know itself.
        if stored.dtype.kind != "V" or stored.dtype.itemsize != wanted.itemsize:
            raise InputError("BT-TRACE-TYPE", f"the index says {wanted}, the file has {stored.dtype}", place=place)
        load = _viewed(stored.load, wanted)
    return Recorded(name, dtype, stored.shape, _quantization(entry or {}, stored.shape, place), load)


def _viewed(load: Callable[[], np.ndarray], dtype: np.dtype) -> Callable[[], np.ndarray]:
    return lambda: load().view(dtype)


def _transposed(stored: arrays.Stored, axes: Any, place: str) -> arrays.Stored:
    if axes is None:
        return stored
    if not isinstance(axes, list) or not all(map(_is_count, axes)) or sorted(axes) != [*range(len(stored.shape))]:
        raise InputError("BT-TRACE-INDEX", f"'transpose' is no order of {len(stored.shape)} axes", place=place)
    return arrays.Stored(stored.dtype, tuple(stored.shape[a] for a in axes), lambda: stored.load().transpose(axes))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48


def _shape(entry: Mapping[str, Any], place: str) -> tuple[int, ...] | None:
    shape = entry.get("shape")
    if shape is None:
        return None
    if not isinstance(shape, list) or len(shape) > 32 or not all(_is_count(size) for size in shape):
        raise InputError("BT-TRACE-INDEX", f"'shape' is {shape!r:.80}, no list of dimensions", place=place)
    return tuple(shape)


def _dtype(entry: Mapping[str, Any], place: str) -> str | None:
    name = entry.get("dtype")
    if name is None:
        return None
    try:
        found = data_type(name)
        if found.bits:
            return found.name
    except (KeyError, TypeError):
        pass
    text = f"'dtype' is {name!r:.40}, which is no type of numbers"
    raise InputError("BT-TRACE-INDEX", text, place=place, advice="for example int8, uint8, int32 or float32")


def _quantization(entry: Mapping[str, Any], shape: tuple[int, ...], place: str) -> Quantization | None:
    scales, zero_points = (_list(entry, key) for key in ("scale", "zero_point"))
    if not scales:
        return None
    zero_points = zero_points or [0] * len(scales)
    if not all(isinstance(s, (int, float)) and 1.4e-45 < s <= 3.4e38 for s in scales):
        raise InputError("BT-TRACE-INDEX", "'scale' is no positive number", place=place)
    if len(zero_points) != len(scales) or not all(isinstance(z, int) and abs(z) < 1 << 32 for z in zero_points):
        raise InputError("BT-TRACE-INDEX", f"'zero_point' does not fit {len(scales)} scales", place=place)
    axis = entry.get("axis")
    if len(scales) > 1 and axis is None:
        # Traces of bittrue's first version do not name it: there is one where a single axis fits.
        fitting = [i for i, size in enumerate(shape) if size == len(scales)]
        axis = fitting[0] if len(fitting) == 1 else None
        if axis is None:
            return None
    if axis is not None and not (_is_count(axis) and axis < len(shape) and shape[axis] == len(scales)):
        raise InputError("BT-TRACE-INDEX", f"'axis' does not fit {len(scales)} scales", place=place)
    return Quantization(np.array(scales, np.float32), np.array(zero_points, np.int64), axis)


def _list(entry: Mapping[str, Any], key: str) -> list[Any]:
    value = entry.get(f"{key}s", entry.get(key))
    return value if isinstance(value, list) else [] if value is None else [value]


def _clean(text: str) -> str:
    """Text of a file, fit for a message."""
    shown = visible(text[:120])
    return shown if len(text) <= 120 else f"{shown}..."
