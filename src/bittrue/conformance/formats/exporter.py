"""What every format is to the writer of vector folders: it is handed entries, and leaves files."""

from __future__ import annotations

import io
import json
import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...files import scratch_bytes
from .entry import Entry

MANIFEST = "manifest.json"
_STRANGE = re.compile(r"[^A-Za-z0-9_.-]+")
# The oldest date that archives can hold: the time of writing must not be in the bytes.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass
class Folder:
    """Where files are written, in a folder that becomes whole later, and how many.

    Attributes:
        root: made when it is not there.
        files, size: files and bytes written so far.
    """

    root: Path
    files: int = 0
    size: int = 0
    _made: set[Path] = field(default_factory=set)

    def begin(self, operator: str) -> None:
        """What is written from here on belongs to this operator; empty: to none."""

    @property
    def archive(self) -> str:
        """The file that holds what is written; empty where it is written as it is."""
        return ""

    def write(self, name: str, content: bytes) -> None:
        """One file; `name` is relative, with slashes."""
        path = self.root / name
        if path.parent not in self._made:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._made.add(path.parent)
        scratch_bytes(path, content)
        self.files += 1
        self.size += len(content)


@dataclass
class Packed(Folder):
    """Like `Folder`, but the files of each operator go into one .zip; those at the end stand beside them."""

    _archive: str = ""
    _members: list[tuple[str, bytes]] = field(default_factory=list)

    def begin(self, operator: str) -> None:
        """What is written from here on belongs to this operator; empty: to none."""
        archive = f"{path_of(operator)}.zip" if operator else ""
        if archive == self._archive:
            return
        if self._archive and self._members:
            super().write(self._archive, zipped(self._members))
        self._archive, self._members = archive, []

    def write(self, name: str, content: bytes) -> None:
        if self._archive:
            self._members.append((name, content))
        else:
            super().write(name, content)

    @property
    def archive(self) -> str:
        return self._archive


class Exporter(ABC):
    """One format.

    Args:
        folder: for this format alone.
        options: of `options.Options`; each format looks at its own.

    Attributes:
        name: what users type.
        title: one line for people.
        suites: whose cases it can hold.
        per_case: it has folders per case; `all` packs them into one .zip per operator.
    """

    name: str
    title: str
    suites: Sequence[str] = ("litert", "onnx")
    per_case: bool = False

    def __init__(self, folder: Folder, options: Any) -> None:
        self.folder = folder
        self.options = options

    @abstractmethod
    def add(self, entry: Entry) -> None:
        """Write one case. Cases of one operator come together."""

    @abstractmethod
    def finish(self) -> None:
        """Write what stands at the end: manifests, tables of cases."""


def path_of(identity: str) -> str:
    """The folder of a case: its identity, as far as file systems take it.

    >>> path_of("CONV_2D/s8/near-ties/003"), path_of("../a b/./c")
    ('CONV_2D/s8/near-ties/003', '_/a_b/_/c')
    """
    parts = [_STRANGE.sub("_", part) for part in identity.split("/")]
    return "/".join(part if part.strip(".") else "_" for part in parts)


def word_of(identity: str) -> str:
    """An identifier for a case.

    >>> word_of("CONV_2D/s8/near-ties/003"), word_of("2x")
    ('CONV_2D_s8_near_ties_003', 'x2x')
    """
    word = re.sub(r"\W+", "_", identity, flags=re.ASCII)
    return word if word[:1].isalpha() else f"x{word}"


def npy(array: np.ndarray) -> bytes:
    """The bytes of an .npy file."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
    return stream.getvalue()


def npz(arrays: Sequence[tuple[str, np.ndarray]]) -> bytes:
    """The bytes of an .npz file that are the same everywhere."""
    return zipped([(f"{key}.npy", npy(array)) for key, array in arrays])


def zipped(files: Sequence[tuple[str, bytes]]) -> bytes:
    """The bytes of a .zip file that are the same everywhere: no times, no compression, in the given order."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files:
            entry = zipfile.ZipInfo(name, _NO_TIME)
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return stream.getvalue()


def json_bytes(content: Any) -> bytes:
    """JSON with one entry per line, so that two manifests can be compared by eye."""
    return (json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode()
