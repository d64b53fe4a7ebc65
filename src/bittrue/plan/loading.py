"""Plan files, which are untrusted, are read. Reading one never runs code: there are no pickles in it.

Only what a file says was planned is believed: `load_plan` plans that again and accepts the file only if it says what
`save_plan` would write.
"""

from __future__ import annotations

import functools
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MISFITS, BittrueError, InputError, ModelFormatError, ResourceError
from ..numerics import find as find_numerics
from ..records import replace
from .calls import needed_graphs
from .folding import with_constants
from .graph_file import read_graph
from .plan import Plan, Source
from .planner import DEFAULT_MEMORY_LIMIT, plan_source
from .saving import DATE, DESCRIPTION, FORMAT, as_text, described, first_array, first_difference

# Characters of one number: bounds of accumulators are the longest.
_DIGITS = 100
_AGAIN = "plan the model again with this version of bittrue: bittrue plan MODEL -o FILE"


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
    text = members.pop(DESCRIPTION)
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
    limit = min(with_constants(memory_limit, *source.graphs), source.memory_limit)
    plan = plan_source(replace(source, memory_limit=limit), notes)
    derived, others = described(replace(plan, source=source))
    written_by = str(description["version"])
    derived["version"] = written_by
    difference = first_difference(description, derived) or first_array(derived, arrays, others)
    if not difference and (text != as_text(derived) or list(arrays) != list(others)):
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
        plan_source,
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
            if name in found or (name != DESCRIPTION and not name.endswith(".npy")):
                raise ValueError(f"an unexpected member {name!r}")
            # Sizes beyond 32 bits stand in fields of their own.
            large = info.file_size > limit
            further = 4 * (info.header_offset > limit) * 2 + 16 * large
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits or info.comment or not name.isascii():
                raise ValueError(f"member {name!r} is not stored plainly")
            if info.header_offset != position or len(info.extra) != further + 4 * bool(further):
                raise ValueError(f"bytes that belong to no member before {name!r}")
            plain = zipfile.ZipInfo(name, DATE)
            plain.CRC, plain.file_size, plain.compress_size = info.CRC, info.file_size, info.compress_size
            header = plain.FileHeader(large)
            stream.seek(position)
            if stream.read(len(header)) != header or info.date_time != DATE:
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
