"""Samples in tables: Parquet and Arrow files as the `datasets` library stores them, or a list of paths in Parquet."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, ResourceError
from ...runners.arrays import MEMBER_LIMIT
from ...visible import visible
from ..arrow import parquet
from .base import Held, Part, Sample, Source, Value, no_samples
from .folders import Files, inside, numbered
from .places import Remote, size_of

TABLES = frozenset({".arrow", ".feather", ".parquet"})
_LABELS = ("label", "class", "labels", "target", "y")
# Where several columns could hold the samples, the first of these that is there does.
_SAMPLES = ("image", "img", "input", "x")
_PATH = "path"
# Of one group; more is nothing that a file could hold.
_MOST_ROWS = 1 << 32


class _Table:
    """One file, read group by group: row groups of Parquet, record batches of Arrow.

    Attributes:
        schema: its columns.
        sizes: rows of every group.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._arrow, module = parquet()
        size_of(path)
        # Opened, never mapped: a file that is cut off meanwhile is an error and no signal.
        if path.suffix.lower() == ".parquet":
            opened = path.open() if isinstance(path, Remote) else path
            self._file = self.guarded(lambda: module.ParquetFile(opened, memory_map=False))
            self.schema = self.guarded(lambda: self._file.schema_arrow)
            groups = self._file.metadata
            self.sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
            self._read = self._row_group
        else:
            self._reader, self._next = self.guarded(self._opened), 0
            self.schema = self._reader.schema
            self.sizes = self.guarded(lambda: [batch.num_rows for batch in self._batches()])
            self._read = self._batch
        if any(not 0 <= size <= _MOST_ROWS for size in self.sizes):
            raise InputError(
                "BT-DATA-TABLE", f"a group has {max(self.sizes, key=abs):,} rows", place=visible(str(path))
            )

    def guarded(self, function: Callable[[], Any]) -> Any:
        """What the function gives; what pyarrow raises of damaged files is an InputError."""
        try:
            return function()
        except MemoryError as error:  # Arrow's own is one
            raise ResourceError("BT-MEMORY", f"out of memory: {error}", place=visible(str(self.path))) from None
        except (self._arrow.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError) as error:
            text = visible(str(error))[:300]
            raise InputError("BT-DATA-TABLE", f"no readable table: {text}", place=visible(str(self.path))) from None

    def group(self, number: int, columns: Sequence[str]) -> Any:
        """These columns of one group."""
        return self.guarded(lambda: self._read(number, list(columns)))

    def _row_group(self, number: int, columns: list[str]) -> Any:
        size = self._file.metadata.row_group(number).total_byte_size
        if size > MEMBER_LIMIT:
            raise ResourceError(
                "BT-MEMORY",
                f"row group {number} takes {size:,} bytes, the limit is {MEMBER_LIMIT:,}",
                place=visible(str(self.path)),
                advice="write smaller row groups",
            )
        found = self._file.read_row_group(number, columns=columns).combine_chunks()
        if found.num_rows != self.sizes[number]:
            raise ValueError(f"row group {number} has {found.num_rows} rows and should have {self.sizes[number]}")
        return found

    def _opened(self) -> Any:
        path = self.path
        file = path.open() if isinstance(path, Remote) else self._arrow.OSFile(str(path), "rb")
        if file.read(6) == b"ARROW1":
            return self._arrow.ipc.open_file(file)
        file.seek(0)
        return self._arrow.ipc.open_stream(file)

    def _batches(self) -> Iterator[Any]:
        while True:
            try:
                yield self._advance(self._next)
            except (StopIteration, IndexError):
                return

    def _advance(self, number: int) -> Any:
        """The batch of this number. A stream is read forwards, and from its beginning when it has to go back."""
        if hasattr(self._reader, "get_batch"):
            if number >= self._reader.num_record_batches:
                raise IndexError(number)
            self._next = number + 1
            return self._reader.get_batch(number)
        if number < self._next:
            self._reader, self._next = self._opened(), 0
        while True:
            batch = self._reader.read_next_batch()
            self._next += 1
            if self._next > number:
                return batch

    def _batch(self, number: int, columns: list[str]) -> Any:
        try:
            batch = self._advance(number)
        except StopIteration:
            raise ValueError(f"record batch {number} is missing") from None
        found = self._arrow.Table.from_batches([batch]).select(columns)
        # Offsets in the file are not to be trusted.
        found.validate(full=True)
        if found.num_rows != self.sizes[number]:
            raise ValueError(f"record batch {number} has {found.num_rows} rows and should have {self.sizes[number]}")
        return found


class Tables(Source):
    """A column of images or arrays, and mostly one of labels; one group of rows is in memory at a time.

    Images are encoded: bytes, or a struct with a field ``bytes`` as the `datasets` library has them; arrays are lists,
    nested as the array's axes. The column is the only one of such a type, or the one called ``image``, ``img``,
    ``input`` or ``x``. Labels are called ``label``, ``class``, ``labels``, ``target`` or ``y``; integers are classes
    whose names the `datasets` library's features may give, texts are names that are numbered in their order.

    With several `inputs`, each of them is the column of its name.
    """

    kind = "parquet"

    def __init__(self, place: str, names: Sequence[str], tables: Sequence[_Table], inputs: Sequence[str] = ()) -> None:
        super().__init__(place)
        self._arrow, _ = parquet()
        schema = tables[0].schema
        samples = _input_columns(self._arrow, schema, place, inputs) or [_sample_column(self._arrow, schema, place)]
        self._label = next((name for name in _LABELS if schema.names.count(name) == 1 and name not in inputs), None)
        self._holds = {name: "array" if _is_list(self._arrow, schema.field(name).type) else "image" for name in samples}
        self.holds = self._holds[samples[0]]
        if inputs:
            self.inputs = {name: Held(kind) for name, kind in self._holds.items()}
        self._columns = [*samples, *(() if self._label is None else (self._label,))]
        for table in tables:
            for name in self._columns:
                found = table.schema.field(name).type if table.schema.names.count(name) == 1 else None
                if found != schema.field(name).type:
                    raise InputError(
                        "BT-DATA-TABLE",
                        f"column '{visible(name)}' is {found or 'missing'}, in '{visible(names[0])}' it is "
                        f"{schema.field(name).type}",
                        place=visible(str(table.path)),
                    )
        self._groups = [
            (name, table, number, sum(table.sizes[:number]))
            for name, table in zip(names, tables, strict=True)
            for number in range(len(table.sizes))
        ]
        self._ends = list(accumulate(table.sizes[number] for _, table, number, _ in self._groups))
        self._held: tuple[int, Any] = (-1, None)
        if not len(self):
            raise no_samples(place, "a row for every sample")
        self._numbers: dict[str, float] = {}
        if self._label is not None:
            self.classes = _class_names(schema, self._label)
            text = schema.field(self._label).type
            if self._arrow.types.is_string(text) or self._arrow.types.is_large_string(text):
                texts = sorted(self._texts(self._label))
                labels, classes = numbered(texts)
                self.classes = tuple(classes)
                self._numbers = dict(zip(texts, labels, strict=True))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, position: int) -> Sample:
        group = bisect_right(self._ends, position)
        name, table, number, before = self._groups[group]
        row = position - (self._ends[group] - table.sizes[number])
        identity = f"{name}:{before + row}"
        if self._held[0] != group:
            try:
                self._held = group, table.group(number, self._columns)
            except (InputError, ResourceError) as error:
                self._held = group, error
        values = self._held[1]
        if isinstance(values, Exception):
            return Sample(identity, None, lambda: _raise(values))
        label = None if self._label is None else values.column(self._label)[row].as_py()
        if isinstance(label, str):
            label = self._numbers[label]

        def value(column: str) -> Value:
            found = values.column(column)[row]
            return self._array(found) if self._holds[column] == "array" else _content(found)

        def read() -> list[Part]:
            try:
                parts: dict[str, Value] = table.guarded(lambda: {column: value(column) for column in self._holds})
                return [parts] if self.inputs else [*parts.values()]
            except InputError as error:
                raise InputError(error.code, error.message, place=f"{table.path}, row {before + row}") from None

        return Sample(identity, label, read)

    def _texts(self, column: str) -> set[str]:
        found = set()
        for _, table, number, _ in self._groups:
            found.update(table.group(number, [column]).column(column).unique().to_pylist())
        return found - {None}

    def _array(self, value: Any) -> np.ndarray:
        values, lists = value.values, value.type
        if values is None:
            raise InputError("BT-DATA-VALUE", "the row holds nothing")
        shape = [len(values)]
        while _is_list(self._arrow, lists := lists.value_type):
            sizes = {len(item) if item.is_valid else -1 for item in values}
            if len(sizes) != 1 or -1 in sizes:
                raise InputError("BT-DATA-VALUE", f"lists of one length make an array, found lengths {sorted(sizes)}")
            shape += sizes
            values = values.flatten()
        if values.null_count:
            raise InputError("BT-DATA-VALUE", f"{values.null_count} values of the array are missing")
        return values.to_numpy(zero_copy_only=False).reshape(shape)


class ListInTable(Files):
    """A Parquet or Arrow file with the columns ``path`` and ``label``; paths are relative to it."""

    kind = "parquet"
    holds = "image"

    def __init__(self, path: Path, table: _Table) -> None:
        names: list[Any] = []
        given: list[Any] = []
        label = next((name for name in _LABELS if table.schema.names.count(name) == 1), None)
        for number in range(len(table.sizes)):
            columns = table.group(number, [_PATH, *(() if label is None else (label,))])
            names += columns.column(_PATH).to_pylist()
            given += [None] * columns.num_rows if label is None else columns.column(label).to_pylist()
        if not names:
            raise no_samples(visible(str(path)), "a row for every sample")
        for row, name in enumerate(names):
            if name is None:
                raise InputError("BT-DATA-LIST", "the path is missing", place=f"{visible(str(path))}, row {row}")
        texts = sorted({text for text in given if isinstance(text, str)})
        labels, classes = numbered(texts)
        number_of = dict(zip(texts, labels, strict=True))
        if not texts and label is not None:
            classes = list(_class_names(table.schema, label))
        files = [
            (inside(name, path, row), number_of[found] if isinstance(found, str) else found)
            for row, (name, found) in enumerate(zip(names, given, strict=True))
        ]
        super().__init__(str(path), path.parent, files, classes)


def open_tables(path: Path, inputs: Sequence[str] = ()) -> Source:
    """Samples in a Parquet or Arrow file, or in all that are in a folder and below, in the order of their names.

    `inputs`: names of a model's inputs, where it has several.
    """
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in TABLES and file.is_file())
        if not files:
            raise no_samples(visible(str(path)), "Parquet or Arrow files")
        return Tables(
            visible(str(path)), [file.relative_to(path).as_posix() for file in files], list(map(_Table, files)), inputs
        )
    table = _Table(path)
    arrow, _ = parquet()
    names = table.schema.names
    if not inputs and not _candidates(arrow, table.schema) and names.count(_PATH) == 1:
        kind = table.schema.field(_PATH).type
        if arrow.types.is_string(kind) or arrow.types.is_large_string(kind):
            return ListInTable(path, table)
    return Tables(visible(str(path)), [path.name], [table], inputs)


def _raise(error: Exception) -> Any:
    raise error


def _content(value: Any) -> bytes:
    """The bytes of an encoded image."""
    found = value.as_py()
    if isinstance(found, dict):
        found = found["bytes"]
        if found is None:
            raise InputError("BT-DATA-VALUE", "the row names an image and does not hold it: its bytes are missing")
    if found is None:
        raise InputError("BT-DATA-VALUE", "the row holds nothing")
    return bytes(found)


def _is_list(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _candidates(arrow: Any, schema: Any, inputs: Sequence[str] = ()) -> list[str]:
    """Columns that could hold samples; those with a label's name only where an input has it."""
    found = []
    for field in schema:
        kind = field.type
        if arrow.types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
            kind = kind.field("bytes").type
        leaf = kind
        while _is_list(arrow, leaf):
            leaf = leaf.value_type
        numbers = leaf is not kind and (arrow.types.is_integer(leaf) or arrow.types.is_floating(leaf))
        label = field.name in _LABELS and field.name not in inputs
        if not label and (numbers or arrow.types.is_binary(kind) or arrow.types.is_large_binary(kind)):
            found.append(field.name)
    return found


def _input_columns(arrow: Any, schema: Any, place: str, inputs: Sequence[str]) -> list[str]:
    found = _candidates(arrow, schema, inputs)
    missing = [name for name in inputs if found.count(name) != 1]
    if missing:
        raise InputError(
            "BT-DATA-COLUMN",
            f"no column of images (bytes) or lists of numbers is called like input {', '.join(map(visible, missing))}",
            place=place,
            advice=f"there are: {', '.join(map(visible, schema.names))}",
        )
    return list(inputs)


def _sample_column(arrow: Any, schema: Any, place: str) -> str:
    found = _candidates(arrow, schema)
    named = [name for name in _SAMPLES if name in found]
    if len(found) > 1 and named:
        found = named[:1]
    if len(found) != 1 or schema.names.count(found[0]) != 1:
        there = ", ".join(map(visible, found or schema.names)) or "there is none"
        raise InputError(
            "BT-DATA-COLUMN",
            f"which column holds the samples is not clear: {there}",
            place=place,
            advice="keep one column of images (bytes) or lists of numbers, or call it 'image'",
        )
    return str(found[0])


def _class_names(schema: Any, label: str) -> tuple[str, ...]:
    """Names of classes from the features that the `datasets` library keeps in the schema; none where they say none."""
    try:
        feature = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"][label]
        names = feature["names"] if feature["_type"] == "ClassLabel" else []
    except (LookupError, TypeError, ValueError):
        return ()
    return tuple(names) if isinstance(names, list) and all(isinstance(name, str) for name in names) else ()
