"""Plan files: a zip of NumPy arrays with one JSON description. No pickles, so reading one never runs code.

A file holds what was planned (graphs, numerics, shapes) and, for whoever reads it, the plan itself. Only the first is
believed: `load_plan` plans again and accepts the file only if it says what `save_plan` would write.
"""

from __future__ import annotations

import functools
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MISFITS, BittrueError, InputError, ModelFormatError, ResourceError
from ..files import written
from ..numerics import find as find_numerics
from .calls import needed_graphs
from .description import NamedArrays, as_bytes, plan_entry, source_entry
from .graph_file import read_graph
from .plan import Plan, Source
from .planner import DEFAULT_MEMORY_LIMIT, plan_source

FORMAT = "bittrue-plan-3"
_DESCRIPTION = "plan.json"
# Of all members: the same plan gives the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)
# Characters of one number: bounds of accumulators are the longest.
_DIGITS = 100
_AGAIN = "plan the model again with this version of bittrue: bittrue plan MODEL -o FILE"


def save_plan(plan: Plan, path: object) -> None:
    """Write `plan` to `path` (str or PathLike), whole or not at all. The same plan gives the same bytes.

    Raises:
        InputError: the plan does not follow from a numerics that has a name, so that nobody could check the file.
        OutputError: the file could not be written.
    """
    description, arrays = described(plan)
    if plan.source is None:
        raise InputError("BT-PLAN-SAVE", "a plan made by hand, without what it was planned from, cannot be saved")
    try:
        source = replace(plan.source, numerics=find_numerics(plan.source.numerics.name))
        derived, others = described(plan_source(source, plan.notes))
        difference = _first_difference(description, derived) or _first_array(description, arrays, others)
    except BittrueError as error:
        difference = str(error)
    if difference:
        raise InputError(
            "BT-PLAN-SAVE",
            f"the plan was changed after planning, or is no whole plan of the table '{plan.numerics}' ({difference})",
            place="plan",
            advice="save the plan of a session that was prepared with a named numerics",
        )
    with written(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, _DESCRIPTION, _as_text(description))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            _add(archive, f"{name}.npy", buffer.getvalue())


def described(plan: Plan) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the file of a plan holds: its description, and the arrays that this names."""
    from .. import __version__

    kept = NamedArrays()
    head = {"format": FORMAT, "version": __version__}
    body = {**plan_entry(plan, kept), "source": source_entry(plan.source, kept) if plan.source else None}
    return {**head, **body}, kept.arrays


def _as_text(description: dict[str, Any]) -> bytes:
    return json.dumps(description, indent=1, allow_nan=False).encode()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _DATE), data)


def load_plan(path: object, *, memory_limit: int = DEFAULT_MEMORY_LIMIT) -> Plan:
    """Read a plan written by `save_plan`.

    Args:
        path: str or PathLike.
        memory_limit: bytes of live activations that a run may need, for every stage.

    Raises:
        InputError: the file does not exist.
        ModelFormatError: it is no plan file, or it says anything else than what follows from what was planned.
        ResourceError: a run would exceed `memory_limit`.
    """
    source = Path(os.fspath(path))  # type: ignore[call-overload]
    try:
        there = source.is_file()
    except OSError:
        # A name too long for the system, or a folder that may not be entered.
        there = False
    if not there:
        raise InputError("BT-FILE-MISSING", f"no file '{source}'", place="plan")
    try:
        return _load(source, memory_limit)
    except (ModelFormatError, ResourceError):
        raise
    except MemoryError:
        raise ResourceError("BT-MEMORY", "out of memory", place=str(source)) from None
    except (*MISFITS, BittrueError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise ModelFormatError(
            "BT-PLAN-FILE", f"not a readable plan file ({type(error).__name__}: {error})", place=str(source)
        ) from None


def _load(path: Path, memory_limit: int) -> Plan:
    from .. import __version__

    members = _members(path)
    text = members.pop(_DESCRIPTION)
    description = json.loads(text, object_pairs_hook=_object, parse_int=_integer)
    if b"\\ud" in text:
        json.dumps(description, ensure_ascii=False).encode()  # an error where a surrogate stands alone
    if description["format"] != FORMAT:
        raise ModelFormatError(
            "BT-PLAN-FILE",
            f"expected format '{FORMAT}', found {description['format']!r}",
            place=str(path),
            advice=_AGAIN,
        )
    arrays = {name.removesuffix(".npy"): _read_array(content) for name, content in members.items()}
    source, notes = read_source(description, arrays)
    plan = plan_source(replace(source, memory_limit=min(memory_limit, source.memory_limit)), notes)
    derived, others = described(replace(plan, source=source))
    written_by = str(description["version"])
    derived["version"] = written_by
    difference = _first_difference(description, derived) or _first_array(derived, arrays, others)
    if not difference and (text != _as_text(derived) or list(arrays) != list(others)):
        difference = "it says the same in other words than this version of bittrue (spaces, order, numbers, escapes)"
    if difference and written_by != __version__:
        raise ModelFormatError(
            "BT-PLAN-VERSION",
            f"bittrue {written_by} wrote this plan, and version {__version__} plans differently: {difference}",
            place=str(path),
            advice=_AGAIN,
        )
    if difference:
        raise ModelFormatError("BT-PLAN-FILE", difference, place=str(path), advice=_AGAIN)
    return plan


def read_source(description: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> tuple[Source, tuple[str, ...]]:
    """What a file says was planned, and the notes that the plan shall carry.

    Raises:
        BittrueError, or one of `MISFITS`: it could not have been planned.
    """
    entry = description["source"]
    source = Source(
        find_numerics(str(entry["numerics"])),
        tuple(read_graph(graph, arrays) for graph in entry["graphs"]),
        entry["memory_limit"],
        entry["main"],
        {one["input"]: tuple(one["shape"]) for one in entry["shapes"]},
    )
    numbers = [
        source.memory_limit,
        source.main,
        *source.shapes,
        *(e for shape in source.shapes.values() for e in shape),
    ]
    if any(type(number) is not int or not 0 <= number < 1 << 63 for number in numbers):
        raise ValueError("a limit, index or size is no such number")
    if not set(source.shapes) <= set(source.graphs[source.main].inputs):
        raise ValueError("a shape is asked for what is no input")
    if len(needed_graphs(source.graphs[source.main], source.graphs)) != len(source.graphs):
        raise ValueError("a graph that the plan does not need")
    return source, tuple(str(note) for note in description["notes"])


def _members(path: Path) -> dict[str, bytes]:
    """Contents by name. Every byte of the archive belongs to a member or to the headers that it needs."""
    limit, size = zipfile.ZIP64_LIMIT, path.stat().st_size
    found: dict[str, bytes] = {}
    with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        position = directory = 0
        for info in archive.infolist():
            name = info.filename
            if name in found or (name != _DESCRIPTION and not name.endswith(".npy")):
                raise ValueError(f"an unexpected member {name!r}")
            # Sizes beyond 32 bits stand in fields of their own.
            large = info.file_size > limit
            further = 4 * (info.header_offset > limit) * 2 + 16 * large
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits or info.comment or not name.isascii():
                raise ValueError(f"member {name!r} is not stored plainly")
            if info.header_offset != position or len(info.extra) != further + 4 * bool(further):
                raise ValueError(f"bytes that belong to no member before {name!r}")
            plain = zipfile.ZipInfo(name, _DATE)
            plain.CRC, plain.file_size, plain.compress_size = info.CRC, info.file_size, info.compress_size
            header = plain.FileHeader(large)
            stream.seek(position)
            if stream.read(len(header)) != header or info.date_time != _DATE:
                raise ValueError(f"bytes that belong to no member in {name!r}")
            position += 30 + len(name) + 20 * large + info.file_size
            directory += 46 + len(name) + len(info.extra)
            if position > size:
                raise ValueError("the archive unpacks to more than its size")
            found[name] = archive.read(info)
        many = len(found) >= zipfile.ZIP_FILECOUNT_LIMIT or position > limit or directory > limit
        if position + directory + 76 * many + 22 != size or archive.start_dir != position:
            raise ValueError("bytes that belong to no member")
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a member is given twice: {sorted(name for name, _ in pairs)[:20]}")
    return found


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _read_array(content: bytes) -> np.ndarray:
    begin = 10 + int.from_bytes(content[8:10], "little")
    shape, dtype = _read_header(content[:begin])
    # Nothing is allocated for what is not there.
    if math.prod(shape) * dtype.itemsize != len(content) - begin:
        raise ValueError("an array that does not fill its file")
    return np.frombuffer(content, dtype, offset=begin).reshape(shape)


@functools.lru_cache(maxsize=1024)
def _read_header(header: bytes) -> tuple[tuple[int, ...], np.dtype]:
    stream = io.BytesIO(header)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ValueError(f"arrays of version {version}")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if fortran or min(shape, default=0) < 0 or dtype.kind not in "biufc" or not dtype.isnative:
        raise ValueError(f"an array of type {dtype} and shape {shape}")
    return shape, dtype


def _first_difference(found: Any, derived: Any, place: str = "") -> str:
    """Where two descriptions differ first, for people; empty when nowhere."""
    if not place and json.dumps(found) == json.dumps(derived):
        return ""
    if isinstance(found, dict) and isinstance(derived, dict):
        for key in (*derived, *found):
            inner = f"{place}.{key}".removeprefix(".")
            if key not in found:
                return f"{inner} is missing"
            if key not in derived:
                return f"{inner} is unknown to this version of bittrue"
            difference = _first_difference(found[key], derived[key], inner)
            if difference:
                return difference
        return ""
    if isinstance(found, list) and isinstance(derived, list):
        pairs = enumerate(zip(found, derived, strict=False))
        differences = (_first_difference(one, other, f"{place}[{i}]") for i, (one, other) in pairs)
        lengths = f"{place}: the file has {len(found)} entries, this version of bittrue derives {len(derived)}"
        return next(filter(None, differences), "") or lengths * (len(found) != len(derived))
    if type(found) is type(derived) and repr(found) == repr(derived):
        return ""
    return f"{place}: the file says {_shown(found)}, this version of bittrue derives {_shown(derived)}"


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _first_array(description: dict[str, Any], found: dict[str, np.ndarray], derived: dict[str, np.ndarray]) -> str:
    """The first array that differs, likewise; both descriptions are equal."""
    for name, one in derived.items():
        if name not in found:
            return f"array '{name}' ({_user(description, name)}) is missing"
        other = found[name]
        if (one.dtype, one.shape) != (other.dtype, other.shape) or not np.array_equal(as_bytes(one), as_bytes(other)):
            return f"array '{name}' ({_user(description, name)}) is not the one that this version of bittrue derives"
    unused = [name for name in found if name not in derived]
    return f"array '{unused[0]}' is used by nothing" if unused else ""


def _user(value: Any, name: str, place: str = "") -> str:
    """The first place that names an array."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        where = f"{place}.{key}" if isinstance(key, str) else f"{place}[{key}]"
        if inner == name and key != "name":
            return where.removeprefix(".")
        deeper = _user(inner, name, where)
        if deeper:
            return deeper
    return ""
