"""The bounds-checked reader on hand-made bytes."""

import struct

import numpy as np
import pytest

from bittrue.errors import ModelFormatError, ResourceError
from bittrue.importers.flatbuffer import Field, FlatBuffer, parse_fields

FIELDS = {
    "T": parse_fields("flag:bool n:short=-7 text:string list:[int] sub:T subs:[T] u:U wide:double=0.5", {}, {"U": ()}),
}


def read(content: bytes):
    return FlatBuffer(np.frombuffer(content, np.uint8), FIELDS.__getitem__).root("T")


def table(fields: dict[int, bytes], tail: bytes = b"", slots: int = 9) -> bytes:
    """Root offset, vtable, table with its fields aligned to 4 bytes, then `tail`."""
    body, entries = b"", []
    for slot in range(slots):
        entries.append(4 + len(body) if slot in fields else 0)
        body += fields.get(slot, b"").ljust(-(-len(fields.get(slot, b"")) // 4) * 4, b"\0")
    vtable = struct.pack(f"<HH{slots}H", 4 + 2 * slots, 4 + len(body), *entries)
    start = 4 + len(vtable)
    return struct.pack("<I", start) + vtable + struct.pack("<i", len(vtable)) + body + tail


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def test_defaults_and_values() -> None:
    empty = read(table({}))
    assert (empty.number("flag"), empty.number("n"), empty.number("wide")) == (False, -7, 0.5)
    assert empty.text("text") is None
    assert empty.numbers("list") is None
    assert empty.table("sub") is None
    assert empty.tables("subs") is None
    assert empty.union("u") == (0, 0)
    full = read(table({0: b"\2", 1: struct.pack("<h", 99), 2: u32(4)}, u32(3) + b"abc\0"))
    assert (full.number("flag"), full.number("n"), full.text("text")) == (True, 99, b"abc")
    listed = read(table({3: u32(4)}, u32(2) + struct.pack("<ii", 5, -6)))
    assert listed.integers("list") == (5, -6)


def test_old_short_vtable_means_defaults() -> None:
    assert read(table({0: b"\1"}, slots=1)).number("wide") == 0.5


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\1\0\0", "outside the file"),
        (u32(0) * 2, "offset is 0"),
        (u32(0xFFFFFFFF) * 2, "outside the file"),
        (u32(4) + struct.pack("<i", 100), "vtable of T"),
        (u32(4) + struct.pack("<i", -100), "vtable of T"),
        (u32(8) + struct.pack("<HHi", 3, 4, 4), "expected even"),
        (u32(8) + struct.pack("<HHi", 2, 4, 4), "at least 4"),
        (u32(8) + struct.pack("<HHi", 4, 2, 4), "at least 4"),
        (u32(8) + struct.pack("<HHi", 400, 4, 4), "outside the file"),
        (u32(8) + struct.pack("<HHi", 4, 400, 4), "outside the file"),
    ],
)
def test_bad_roots(content: bytes, words: str) -> None:
    with pytest.raises(ModelFormatError, match=words) as caught:
        read(content)
    assert caught.value.code == "BT-FILE-BOUNDS"
    assert "byte" in caught.value.place


def test_field_outside_its_table() -> None:
    content = bytearray(table({1: b"\1\0"}, bytes(100)))
    content[4 + 4 + 2 : 4 + 4 + 4] = struct.pack("<H", 7)
    with pytest.raises(ModelFormatError, match=r"T\.n") as caught:
        read(bytes(content)).number("n")
    assert "field at 7..9 of a table of 8 bytes" in str(caught.value)


@pytest.mark.parametrize(
    ("slot", "call"),
    [(2, lambda t: t.text("text")), (3, lambda t: t.numbers("list")), (5, lambda t: t.tables("subs"))],
)
@pytest.mark.parametrize("length", [3, 0x7FFFFFFF, 0xFFFFFFFF])
def test_vector_longer_than_the_file(slot: int, call, length: int) -> None:
    with pytest.raises(ModelFormatError, match="outside the file"):
        call(read(table({slot: u32(4)}, u32(length) + b"ab")))


def test_union_without_value_is_absent() -> None:
    assert read(table({6: b"\3"})).union("u") == (3, 0)
    assert read(table({7: u32(4)}, bytes(8))).union("u") == (0, 0)


def test_offsets_lead_forward_only() -> None:
    # So tables cannot form cycles. An offset that would wrap around at 2^32 to the table itself is outside the file.
    with pytest.raises(ModelFormatError, match="outside the file"):
        read(table({4: u32(2**32 - 4)})).table("sub")


def test_budget() -> None:
    content = table({5: u32(4)}, u32(1) + u32(4) + struct.pack("<i", 8) + bytes(32))
    vector = read(content).tables("subs")
    assert len(vector) == 1
    with pytest.raises(IndexError):
        vector[1]
    with pytest.raises(ResourceError, match="BT-FILE-WORK"):
        vector.file.spend_objects(10_000, "here")
    with pytest.raises(ResourceError, match="BT-FILE-WORK"):
        vector.file.spend_bytes(100_000, "here")


def test_field_rows() -> None:
    row = parse_fields("-old:int a:E=2 !no:[ubyte] u:U v:[T] last:bool=true", {"E": "byte"}, {"U": ()})
    assert row["old"].deprecated
    assert row["a"] == Field("a", 1, "number", "byte", 2, "E")
    assert row["no"].refused
    assert (row["u"].slot, row["v"].slot, row["last"].slot) == (3, 5, 6)
    assert (row["v"].kind, row["last"].default) == ("tables", True)
