"""FlexBuffers: the self-describing maps that custom operators keep their options in.

Only what is asked for is read, and it must be a number, a truth value or null. Every offset, width and length is
checked before it is used. Source: FlatBuffers' ``flexbuffers.h``, read; files of converters, run.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from itertools import pairwise
from typing import NoReturn

from ..errors import ModelFormatError

Scalar = bool | int | float | None

# Types by number; a packed type is (type << 2) | log2(bytes of the value or of what it points to).
_NULL, _INTEGER, _UNSIGNED, _FLOAT, _MAP, _TRUTH = 0, 1, 2, 3, 9, 26
# Numbers behind an offset, and the number type found there.
_INDIRECT = {6: _INTEGER, 7: _UNSIGNED, 8: _FLOAT}
_MOST_KEYS = 1024
_LONGEST_KEY = 256


def read_map(content: bytes, names: Collection[str], place: str) -> dict[str, Scalar]:
    """The values of `names` in the root map, without those that it lacks; other keys are passed over.

    Raises:
        ModelFormatError: these bytes are no such map.
    """
    return _Reader(content, names, place).root()


class _Reader:
    def __init__(self, content: bytes, names: Collection[str], place: str) -> None:
        self._content = content
        self._names = {name.encode() for name in names}
        self._place = place

    def root(self) -> dict[str, Scalar]:
        content = self._content
        if len(content) < 3:
            self._fail(f"{len(content)} bytes hold no FlexBuffers value")
        width, packed = content[-1], content[-2]
        position = len(content) - 2 - width
        if width not in (1, 2, 4, 8) or position < 0:
            self._fail(f"a root of {width} bytes")
        if packed >> 2 != _MAP:
            self._fail(f"the root has type {packed >> 2}, expected a map ({_MAP})")
        return self._map(self._target(position, width), 1 << (packed & 3))

    def _map(self, start: int, width: int) -> dict[str, Scalar]:
        # Ahead of the values: offset of the keys, width of the keys' own offsets, number of values.
        if start < 3 * width:
            self._fail(f"a map at byte {start}")
        count = self._unsigned(start - width, width)
        keys = self._target(start - 3 * width, width)
        key_width = self._unsigned(start - 2 * width, width)
        if count > _MOST_KEYS or key_width not in (1, 2, 4, 8) or keys < key_width:
            self._fail(f"a map of {count} values with keys of {key_width} bytes at byte {keys}")
        if self._unsigned(keys - key_width, key_width) != count:
            self._fail("keys and values differ in number")
        found = [self._key(self._target(keys + i * key_width, key_width)) for i in range(count)]
        if any(first >= second for first, second in pairwise(found)):
            self._fail("the keys are not sorted")
        types = self._bytes(start + count * width, count)
        return {
            name.decode(): self._value(start + i * width, width, types[i], name)
            for i, name in enumerate(found)
            if name in self._names
        }

    def _value(self, position: int, width: int, packed: int, name: bytes) -> Scalar:
        kind = packed >> 2
        if kind in _INDIRECT:
            position, kind, width = self._target(position, width), _INDIRECT[kind], 1 << (packed & 3)
        if kind == _NULL:
            return None
        if kind == _TRUTH:
            return self._unsigned(position, width) != 0
        if kind == _UNSIGNED:
            return self._unsigned(position, width)
        if kind == _FLOAT and width >= 4:
            return float(struct.unpack("<f" if width == 4 else "<d", self._bytes(position, width))[0])
        if kind == _INTEGER:
            return int.from_bytes(self._bytes(position, width), "little", signed=True)
        return self._fail(f"the value of {name.decode()!r} has type {packed >> 2} in {width} bytes")

    def _key(self, start: int) -> bytes:
        end = self._content.find(b"\0", start, start + _LONGEST_KEY)
        if end < 0:
            self._fail(f"the key at byte {start} has no end")
        return self._content[start:end]

    def _target(self, position: int, width: int) -> int:
        """Where the offset at `position` points: offsets count backwards from themselves."""
        target = position - self._unsigned(position, width)
        if target < 0:
            self._fail(f"the offset at byte {position} points outside")
        return target

    def _unsigned(self, position: int, width: int) -> int:
        return int.from_bytes(self._bytes(position, width), "little")

    def _bytes(self, position: int, count: int) -> bytes:
        if position < 0 or position + count > len(self._content):
            self._fail(f"{count} bytes at {position} of {len(self._content)}")
        return self._content[position : position + count]

    def _fail(self, found: str) -> NoReturn:
        raise ModelFormatError(
            "BT-FLEXBUFFER",
            f"custom options must be a FlexBuffers map of numbers, found {found}",
            place=self._place,
            advice="the file is damaged, or its custom operator is not the one of this name; convert the model again",
        )
