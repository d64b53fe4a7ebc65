"""Samples in tar files as WebDataset writes them: members with one key are one sample."""

from __future__ import annotations

import itertools
import re
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import InputError
from ...runners.arrays import npy_in
from ...visible import visible
from .base import Held, Part, Sample, Source, Value, no_samples
from .folders import IMAGES, numbered
from .places import read_file, size_of

# A member of more bytes is no image or array of one sample, and a label is a short text.
_MOST_BYTES, _MOST_LABEL = 1 << 30, 1 << 12
_MOST_SHARDS = 1 << 20
# What Python's tarfile raises of damaged headers.
_BROKEN = (tarfile.TarError, ArithmeticError, LookupError, OSError, RecursionError, ValueError, EOFError, MemoryError)
_RANGE = re.compile(r"\{([0-9]{1,9})\.\.([0-9]{1,9})\}|\{([^{}]*,[^{}]*)\}")


@dataclass(slots=True)
class _Member:
    """Where the value of an input lies, and what it is."""

    suffix: str
    start: int
    size: int


@dataclass(slots=True)
class _Entry:
    """One sample: its members by the names of inputs, "" where there is one; and its label as it is written."""

    shard: int
    key: str
    members: dict[str, _Member] = field(default_factory=dict)
    label: str | None = None


class Shards(Source):
    """A .tar file, those of a folder, or those that a pattern names: ``train-{000..031}.tar``.

    The key of a member is its path up to the first dot of its name. Each key has one image or one ``.npy``, and a
    label in ``.cls``, if there is one: numbers are classes, other texts names, numbered in their order. Members of
    other kinds are passed over. Nothing is extracted: headers are read once, contents each when it is wanted.

    With several `inputs`, each key has a member for each of them: ``KEY.INPUT.npy``, ``KEY.INPUT.jpg``.
    """

    kind = "webdataset"

    def __init__(self, path: Path, inputs: Sequence[str] = ()) -> None:
        super().__init__(visible(str(path)))
        self._shards = _expanded(path)
        if not self._shards:
            raise no_samples(self.place, "tar files")
        self._entries: list[_Entry] = []
        for number, (_, shard) in enumerate(self._shards):
            self._entries += _index(number, shard, inputs)
        self._names = tuple(inputs) or ("",)
        if not any(entry.members for entry in self._entries):
            raise no_samples(self.place, f"an image or an .npy for every key{' and input' if inputs else ''}")
        holds = {name: self._kind(name) for name in self._names}
        self.holds = next(iter(holds.values()))
        if inputs:
            self.inputs = {name: Held(kind) for name, kind in holds.items()}
        texts = sorted({entry.label for entry in self._entries if entry.label is not None})
        labels, classes = numbered(texts)
        self.classes = tuple(classes)
        self._numbers = dict(zip(texts, labels, strict=True))

    def _kind(self, name: str) -> str:
        suffixes = {entry.members[name].suffix for entry in self._entries if name in entry.members}
        if ".npy" in suffixes and len(suffixes) > 1:
            raise InputError("BT-DATA-MIXED", f"images and arrays: {', '.join(sorted(suffixes))}", place=self.place)
        return "array" if ".npy" in suffixes else "image"

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, position: int) -> Sample:
        entry = self._entries[position]
        name, shard = self._shards[entry.shard]

        def value(name: str) -> Value:
            found = entry.members.get(name)
            stem = f"{entry.key}.{name}" if name else entry.key
            member = f"member '{visible(stem + (found.suffix if found else ''))}'"
            if found is None:
                raise InputError(
                    "BT-DATA-MEMBER",
                    "the key has neither an image nor an .npy",
                    place=f"{visible(str(shard))}, {member}",
                )
            content = read_file(shard, found.start, found.size)
            return npy_in(content, shard, member) if found.suffix == ".npy" else content

        def read() -> Sequence[Part]:
            return [{name: value(name) for name in self._names} if self.inputs else value("")]

        label = None if entry.label is None else self._numbers[entry.label]
        return Sample(f"{name}:{entry.key}", label, read)


def _expanded(path: Path) -> list[tuple[str, Path]]:
    """Name and path of every shard, in order."""
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.suffix.lower() == ".tar" and file.is_file())
        return [(file.relative_to(path).as_posix(), file) for file in found]
    if path.exists():
        return [(path.name, path)]
    choices, fixed, at = [], [], 0
    for match in _RANGE.finditer(str(path)):
        fixed.append(str(path)[at : match.start()])
        at = match.end()
        first, last, words = match.groups()
        choices.append(words.split(",") if first is None else _numbers(first, last, path))
    if not choices:
        raise InputError("BT-DATA", f"there is no '{visible(str(path))}'", place="--data")
    count = 1
    for choice in choices:
        count *= len(choice)
    _check_count(count, path)
    parent = type(path)(fixed[0] + "x").parent
    names = [
        "".join(map("".join, zip(fixed, words, strict=True))) + str(path)[at:] for words in itertools.product(*choices)
    ]
    return [(type(path)(name).relative_to(parent).as_posix(), type(path)(name)) for name in names]


def _numbers(first: str, last: str, path: Path) -> list[str]:
    _check_count(int(last) - int(first) + 1, path)
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]


def _check_count(count: int, path: Path) -> None:
    if not 1 <= count <= _MOST_SHARDS:
        raise InputError("BT-DATA-PATTERN", f"the pattern stands for {count:,} files", place=visible(str(path)))


def _index(number: int, shard: Path, inputs: Sequence[str]) -> list[_Entry]:
    """The samples of one tar file, in the order in which their first members lie."""
    place = visible(str(shard))
    length = size_of(shard)
    found: dict[str, _Entry] = {}
    end = 0
    with shard.open("rb") as file:
        try:
            with tarfile.open(fileobj=file, mode="r:") as archive:
                # Not a loop over the archive, which keeps every member in memory.
                while (member := archive.next()) is not None:
                    archive.members = []  # type: ignore[attr-defined]
                    if member.size < 0 or member.offset_data < end or member.issparse():
                        raise tarfile.ReadError(f"member '{member.name}' lies where none can")
                    end = member.offset_data
                    if member.isreg():
                        if end + member.size > length:
                            raise tarfile.ReadError(f"member '{member.name}' is cut off")
                        _add(found, number, member, shard, inputs)
                # tarfile takes a damaged header for the end; what follows would be lost without a word.
                file.seek(archive.offset)
                if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                    raise tarfile.ReadError(f"neither a member nor the end of the archive at byte {archive.offset:,}")
        except _BROKEN as error:
            text = visible(str(error))[:300]
            raise InputError("BT-DATA-TAR", f"no readable tar file: {text}", place=place) from None
    return list(found.values())


def _add(found: dict[str, _Entry], number: int, member: tarfile.TarInfo, shard: Path, inputs: Sequence[str]) -> None:
    """One more member of a sample."""
    place = f"{visible(str(shard))}, member '{visible(member.name)}'"
    folder, slash, name = member.name.rpartition("/")
    stem, _, extension = name.partition(".")
    of = ""
    if inputs and extension.lower() != "cls":
        of, _, extension = extension.rpartition(".")
        if of not in inputs:
            return
    suffix = extension.lower()
    if not stem or not (suffix == "cls" or f".{suffix}" in IMAGES or suffix == "npy"):
        return
    limit = _MOST_LABEL if suffix == "cls" else _MOST_BYTES
    if member.size > limit:
        raise InputError("BT-DATA-SIZE", f"{member.size:,} bytes, the limit is {limit:,}", place=place)
    key = folder + slash + stem
    entry = found.setdefault(key, _Entry(number, key))
    if suffix == "cls":
        if entry.label is not None:
            raise InputError("BT-DATA-MEMBER", "the key has two labels", place=place)
        content = read_file(shard, member.offset_data, member.size)
        try:
            entry.label = content.decode().strip()
        except UnicodeDecodeError:
            raise InputError("BT-DATA-LABELS", "the label is no text in UTF-8", place=place) from None
    elif of in entry.members:
        raise InputError("BT-DATA-MEMBER", f"the key has a '{entry.members[of].suffix}' already", place=place)
    else:
        entry.members[of] = _Member(f".{suffix}", member.offset_data, member.size)
