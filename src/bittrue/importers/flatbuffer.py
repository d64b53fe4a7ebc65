"""Bounds-checked reading of FlatBuffers by a schema given as data.

Every offset, vtable, field and vector is checked against the file before it is read, and the total work is bounded by
the size of the file, because many offsets may point at one vector and a small file could otherwise ask for endless
decoding.

Layout facts (FlatBuffers internals page and `flatbuffers.table`, read): little endian; a table starts with a signed
offset *back* to its vtable; a vtable is u16 size, u16 table size, then one u16 per field (0: absent); strings, vectors
and tables are reached by an unsigned offset counted from where it is stored; vectors start with a u32 length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from struct import Struct, unpack_from
from typing import Any

import numpy as np

from ..errors import BittrueError, ModelFormatError, ResourceError
from ..records import dataclass

# Schema name of a number type -> (decoder, bytes, numpy type of a vector). Bools are bytes; non-zero is true.
NUMBERS: dict[str, tuple[Callable[..., Any], int, np.dtype]] = {
    name: (Struct(number).unpack_from, Struct(number).size, np.dtype(numpy))
    for name, number, numpy in (
        ("bool", "<B", "u1"),
        ("byte", "<b", "i1"),
        ("ubyte", "<B", "u1"),
        ("short", "<h", "<i2"),
        ("ushort", "<H", "<u2"),
        ("int", "<i", "<i4"),
        ("uint", "<I", "<u4"),
        ("long", "<q", "<i8"),
        ("ulong", "<Q", "<u8"),
        ("float", "<f", "<f4"),
        ("double", "<d", "<f8"),
    )
}
_U8, _U16, _U32, _I32 = (NUMBERS[name][0] for name in ("ubyte", "ushort", "uint", "int"))

ADVICE = "the file is truncated or corrupt: fetch or convert it again"


@dataclass(frozen=True)
class Field:
    """One field of a table.

    Attributes:
        name: as in the schema.
        slot: its position in the vtable (a union takes this one and the next).
        kind: ``number``, ``text``, ``table``, ``union``, ``numbers`` or ``tables``.
        type: number type for numbers, table name for tables, union name for unions.
        default: value of an absent number.
        enum: name of the enumeration that the number belongs to, empty for plain numbers.
        deprecated: occupies its slot but is not read.
        refused: nobody here knows what it means; a file that sets it must not be taken for one that does not.
    """

    name: str
    slot: int
    kind: str
    type: str
    default: bool | int | float = 0
    enum: str = ""
    deprecated: bool = False
    refused: bool = False


def parse_fields(text: str, enum_bases: Mapping[str, str], unions: Mapping[str, object]) -> dict[str, Field]:
    """Fields from ``name:type=default`` words.

    ``[type]`` is a vector, a leading ``-`` marks a deprecated and ``!`` a refused field.

    >>> [(f.slot, f.kind) for f in parse_fields("a:int=1 u:Choice b:[long]", {}, {"Choice": ()}).values()]
    [(0, 'number'), (1, 'union'), (3, 'numbers')]
    """
    fields: dict[str, Field] = {}
    slot = 0
    for word in text.split():
        name, _, rest = word.partition(":")
        kind_text, _, default_text = rest.partition("=")
        vector = kind_text.startswith("[")
        kind_text = kind_text.strip("[]")
        enum = kind_text if kind_text in enum_bases else ""
        base = enum_bases.get(kind_text, kind_text)
        default: bool | int | float = 0
        if base in NUMBERS:
            kind = "number"
            if base == "bool":
                default = default_text == "true"
            elif base in ("float", "double"):
                default = float(default_text or 0)
            else:
                default = int(default_text or 0)
        elif kind_text == "string":
            kind = "text"
        else:
            kind = "union" if kind_text in unions else "table"
        clean = name.lstrip("-!")
        fields[clean] = Field(clean, slot, kind + "s" * vector, base, default, enum, name[0] == "-", name[0] == "!")
        slot += 2 if kind == "union" else 1
    return fields


# What was being read: a text, or a table and its field, which become one when there is an error.
Where = str | tuple[str, str]


def _text(where: Where) -> str:
    return where if isinstance(where, str) else ".".join(where)


def _slots(fields: Mapping[str, Field]) -> int:
    """How many slots a table's fields take."""
    return sum(2 if field.kind == "union" else 1 for field in fields.values())


class FlatBuffer:
    """The bytes of one file, its schema, and what is left of the work budget.

    Args:
        data: one-dimensional uint8 array; views of it are handed out, nothing is copied.
        tables: table name to its fields by name.
    """

    def __init__(self, data: np.ndarray, tables: Callable[[str], Mapping[str, Field]]) -> None:
        self.data = data
        self.view = data.data
        self.size = data.size
        self.tables = tables
        # An honest table takes 8 bytes and an honest decoded element at least 1, so one object per byte leaves room for
        # shared strings and vectors. 8 million objects decode in about a second.
        self._objects_left = min(self.size, 8_000_000) + 1000
        # Bytes looked at by vector operations (names, scales, bool constants, metadata), sharing included.
        self._bytes_left = 4 * self.size + 65_536
        self._vtables: dict[tuple[int, str], tuple[int, tuple[int, ...]]] = {}

    def root(self, table: str) -> Table:
        """The table that the file's first offset points at."""
        if self.size < 8:
            raise self.out_of_bounds(f"root {table}", 0, 8)
        return Table(self, table, self.follow(0, f"root {table}"))

    def out_of_bounds(self, where: Where, position: int, length: int) -> ModelFormatError:
        """The error for `length` bytes at `position` that are not (all) inside the file."""
        found = f"{length} byte{'s' * (length != 1)} at byte {position} are outside the file of {self.size} bytes"
        return ModelFormatError("BT-FILE-BOUNDS", found, place=f"{_text(where)}, byte {position}", advice=ADVICE)

    def malformed(self, where: Where, position: int, message: str) -> ModelFormatError:
        """The error for bytes inside the file that cannot be what they should be."""
        return ModelFormatError("BT-FILE-BOUNDS", message, place=f"{_text(where)}, byte {position}", advice=ADVICE)

    def follow(self, position: int, where: Where) -> int:
        """Target of the offset stored at `position`, which must be inside the file; so are 4 bytes at the target."""
        offset: int = _U32(self.view, position)[0]
        target = position + offset
        if offset == 0:
            raise self.malformed(where, position, "the offset is 0, expected a distance to the object")
        if target + 4 > self.size:
            raise self.out_of_bounds(where, target, 4)
        return target

    def vtable(self, position: int, table: str) -> tuple[int, tuple[int, ...]]:
        """Bytes of a table, and the offsets in it of fields that the schema has, by slot: 0 for absent ones."""
        known = self._vtables.get((position, table))
        if known is not None:
            return known
        if position < 0 or position + 4 > self.size:
            raise self.out_of_bounds(f"vtable of {table}", position, 4)
        size, table_size = _U16(self.view, position)[0], _U16(self.view, position + 2)[0]
        if size < 4 or size % 2 or table_size < 4:
            found = f"vtable of {size} bytes and table of {table_size} bytes, expected even and at least 4"
            raise self.malformed(f"vtable of {table}", position, found)
        if position + size > self.size:
            raise self.out_of_bounds(f"vtable of {table}", position, size)
        wanted = _slots(self.tables(table))
        slots = min(size // 2 - 2, wanted)
        offsets = unpack_from(f"<{slots}H", self.view, position + 4) + (0,) * (wanted - slots)
        known = self._vtables[position, table] = table_size, offsets
        return known

    def spend_objects(self, count: int, where: Where) -> None:
        """Takes `count` decoded objects or elements from the budget."""
        self._objects_left -= count
        if self._objects_left < 0:
            raise _over_budget(where, self.size)

    def spend_bytes(self, count: int, where: Where) -> None:
        """Takes `count` examined or copied bytes from the budget."""
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise _over_budget(where, self.size)

    def span(self, position: int, length: int, where: str) -> np.ndarray:
        """`length` bytes at an absolute position as a view."""
        if position + length > self.size:
            raise self.out_of_bounds(where, position, length)
        return self.data[position : position + length]

    def vector(self, position: int, width: int, where: Where) -> tuple[int, int]:
        """(first byte, length) of the vector at `position`, whose 4 length bytes are known to be inside the file."""
        length: int = _U32(self.view, position)[0]
        start = position + 4
        if start + length * width > self.size:
            raise self.out_of_bounds(where, start, length * width)
        return start, length


def _over_budget(where: Where, size: int) -> BittrueError:
    return ResourceError(
        "BT-FILE-WORK",
        f"decoding takes more work than a file of {size} bytes can honestly ask for",
        place=_text(where),
        advice="many offsets point at the same data, which converters do not produce: treat the file as hostile",
    )


class Table:
    """One table of the file. Values are read on request; absent fields give their default or None."""

    __slots__ = ("_fields", "_offsets", "_size", "_vtable", "file", "name", "position")

    def __init__(self, file: FlatBuffer, name: str, position: int) -> None:
        file.spend_objects(1, name)
        self._vtable = position - _I32(file.view, position)[0]
        self._size, self._offsets = file.vtable(self._vtable, name)
        if position + self._size > file.size:
            raise file.out_of_bounds(name, position, self._size)
        self.file = file
        self.name = name
        self.position = position
        self._fields = file.tables(name)

    def _locate(self, field: Field, width: int, slot: int) -> int:
        """Absolute position of a field's `width` bytes, 0 when it is absent."""
        offset = self._offsets[slot]
        if offset == 0:
            return 0
        if offset < 4 or offset + width > self._size:
            found = f"field at {offset}..{offset + width} of a table of {self._size} bytes"
            raise self.file.malformed(f"{self.name}.{field.name}", self.position, found)
        return self.position + offset

    def _target(self, name: str) -> tuple[Field, int]:
        """The field and where its offset leads, 0 when it is absent."""
        field = self._fields[name]
        if not self._offsets[field.slot]:
            return field, 0
        return field, self.file.follow(self._locate(field, 4, field.slot), (self.name, name))

    def place(self, name: str) -> str:
        """Table, field and byte offset, for messages."""
        return f"{self.name}.{name}, byte {self.position}"

    def has(self, name: str) -> bool:
        """Whether the file stores this field."""
        return self._locate(self._fields[name], 0, self._fields[name].slot) != 0

    def has_unknown_fields(self) -> bool:
        """Whether the file stores fields beyond those of the schema, that is, newer ones."""
        known, size = _slots(self._fields), _U16(self.file.view, self._vtable)[0]
        newer = bytes(self.file.view[self._vtable + 4 + 2 * known : self._vtable + size])
        self.file.spend_bytes(len(newer), self.name)
        return newer.count(0) != len(newer)

    def number(self, name: str) -> Any:
        """A number field (bool for bools, int, or float)."""
        field = self._fields[name]
        if not self._offsets[field.slot]:
            return field.default
        unpack, width, _ = NUMBERS[field.type]
        value = unpack(self.file.view, self._locate(field, width, field.slot))[0]
        return value != 0 if field.type == "bool" else value

    def numbers(self, name: str) -> np.ndarray | None:
        """A vector of numbers as a read-only view of the file."""
        field, target = self._target(name)
        if not target:
            return None
        _, width, dtype = NUMBERS[field.type]
        start, length = self.file.vector(target, width, (self.name, name))
        found = self.file.data[start : start + length * width]
        return found if width == 1 and dtype.kind == "u" else found.view(dtype)

    def integers(self, name: str) -> tuple[int, ...] | None:
        """A vector of numbers as a tuple, each counted as one decoded object."""
        values = self.numbers(name)
        if values is None:
            return None
        self.file.spend_objects(values.size, (self.name, name))
        return tuple(values.tolist())

    def text(self, name: str) -> bytes | None:
        """The bytes of a string, not yet decoded."""
        _, target = self._target(name)
        if not target:
            return None
        where = self.name, name
        start, length = self.file.vector(target, 1, where)
        self.file.spend_bytes(length, where)
        return bytes(self.file.view[start : start + length])

    def table(self, name: str) -> Table | None:
        """A nested table."""
        field, target = self._target(name)
        return Table(self.file, field.type, target) if target else None

    def tables(self, name: str) -> TableVector | None:
        """A vector of tables."""
        field, target = self._target(name)
        if not target:
            return None
        start, length = self.file.vector(target, 4, f"{self.name}.{name}")
        return TableVector(self.file, field.type, f"{self.name}.{name}", start, length)

    def union(self, name: str) -> tuple[int, int]:
        """(number of the member table, position of the table); (0, 0) when there is none."""
        field = self._fields[name]
        position = self._locate(field, 1, field.slot)
        member: int = _U8(self.file.view, position)[0] if position else 0
        position = self._locate(field, 4, field.slot + 1)
        target = self.file.follow(position, (self.name, name)) if position and member else 0
        return member, target


class TableVector:
    """A vector of tables, each opened on request."""

    __slots__ = ("_length", "_start", "file", "name", "where")

    def __init__(self, file: FlatBuffer, name: str, where: str, start: int, length: int) -> None:
        self.file = file
        self.name = name
        self.where = where
        self._start = start
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Table:
        if not 0 <= index < self._length:
            raise IndexError(index)
        where = f"{self.where}[{index}]"
        return Table(self.file, self.name, self.file.follow(self._start + 4 * index, where))

    def __iter__(self) -> Iterator[Table]:
        return (self[index] for index in range(self._length))
