"""The FlexBuffers reader against the builder of the flatbuffers package, and against damage."""

from __future__ import annotations

import struct

import pytest
from flatbuffers import flexbuffers
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from bittrue.importers.flexbuffer import read_map

NUMBERS = st.one_of(
    st.booleans(), st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-200, 200), st.floats(-1e30, 1e30)
)
KEYS = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=12)


def build(values: dict[str, object], indirect: bool = False) -> bytes:
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in values.items():
            builder.Key(name)
            if isinstance(value, bool):
                builder.Bool(value)
            elif value is None:
                builder.Null()
            elif isinstance(value, int):
                (builder.IndirectInt if indirect else builder.Int)(value)
            elif isinstance(value, float):
                (builder.IndirectFloat if indirect else builder.Float)(value)
            else:
                builder.Add(value)
    return bytes(builder.Finish())


@given(st.dictionaries(KEYS, NUMBERS, max_size=12), st.booleans())
def test_what_was_built_is_read(values: dict[str, object], indirect: bool) -> None:
    content = build(values, indirect)
    found = read_map(content, list(values), "here")
    assert found == values
    assert list(map(type, found.values())) == [type(values[name]) for name in found]


def test_unsigned_and_narrow_floats() -> None:
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key("a")
        builder.UInt(2**64 - 1)
    assert read_map(bytes(builder.Finish()), "a", "here") == {"a": 2**64 - 1}
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key("b")
        builder.Float(0.1, 4)
    assert read_map(bytes(builder.Finish()), "b", "here") == {"b": struct.unpack("f", struct.pack("f", 0.1))[0]}


def test_other_keys_may_hold_anything() -> None:
    content = build({"a": 3, "text": "abc", "list": [1, 2], "map": {"x": 1}})
    assert read_map(content, ["a", "b"], "here") == {"a": 3}
    with pytest.raises(bittrue.BittrueError, match="'text' has type"):
        read_map(content, ["text"], "here")


@given(st.binary(max_size=80))
def test_any_bytes(content: bytes) -> None:
    try:
        read_map(content, ["a", "num_classes"], "here")
    except bittrue.BittrueError as error:
        assert "BT-FLEXBUFFER" in str(error)  # noqa: PT017


@given(st.data())
def test_damaged_maps(data: st.DataObject) -> None:
    content = bytearray(build({"a": 1, "bc": 2.5, "d": True, "long": -70000}))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(content)))
    try:
        read_map(bytes(content[:end]), ["a", "bc", "d", "long"], "here")
    except bittrue.BittrueError as error:
        assert "BT-FLEXBUFFER" in str(error)  # noqa: PT017


def test_unsorted_keys_are_refused() -> None:
    content = build({"a": 1, "b": 2})
    with pytest.raises(bittrue.BittrueError, match="not sorted"):
        read_map(content.replace(b"a\0", b"c\0"), "ab", "here")
