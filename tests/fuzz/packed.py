"""Several files as one input of a fuzz target: name, length and content, one after the other."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_HEADER = struct.Struct("<BI")


def join(files: Mapping[str, bytes]) -> bytes:
    """The files in one piece.

    >>> split(join({"a": b"xy", "b": b""}))
    {'a': b'xy', 'b': b''}
    """
    parts = []
    for name, content in files.items():
        parts += [_HEADER.pack(len(name.encode()), len(content)), name.encode(), content]
    return b"".join(parts)


def split(content: bytes) -> dict[str, bytes]:
    """The files of any bytes at all: lengths that are too large end where the bytes end."""
    files, at = {}, 0
    while at + _HEADER.size <= len(content):
        name_length, length = _HEADER.unpack_from(content, at)
        at += _HEADER.size
        name = content[at : at + name_length].decode("ascii", "ignore").replace("\0", "")
        at += name_length
        files["/".join(part for part in name.split("/") if part.strip(".")) or "unnamed"] = content[at : at + length]
        at += length
    return files


def pair(content: bytes) -> tuple[bytes, bytes]:
    """The first two files."""
    found = [*split(content).values(), b"", b""]
    return found[0], found[1]


def lay_out(files: Mapping[str, bytes], folder: Path) -> Path:
    """The files in a folder that holds nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        # One name may be both a file and a folder.
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return folder


def pack(folder: Path) -> bytes:
    """A folder in one piece."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return join({path.relative_to(folder).as_posix(): path.read_bytes() for path in files})
