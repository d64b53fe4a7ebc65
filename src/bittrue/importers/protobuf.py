"""Messages of formats whose schema is written down here: decoded by the `protobuf` package (an extra)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from ..errors import ModelFormatError, UnsupportedError

_FIELD = (
    r"(?P<label>repeated |required |optional )?(?P<type>\w+) (?P<name>\w+) = (?P<number>\d+)"
    r"(?: packed)?(?: default (?P<default>\S+))?"
)
_BYTES = 2  # the wire type of texts, bytes and messages
_ENUM = r"(?P<name>\w+) = (?P<number>-?\d+)"


def message_classes(package: str, messages: Mapping[str, str], enums: Mapping[str, str] | None = None) -> Any:
    """Message classes by name, of proto2 messages.

    Args:
        package: what the messages are called together; one schema per name.
        messages: name to fields separated by commas or line breaks, each ``[repeated] type name = number [packed]
            [default value]``. Types are those of protobuf, or names of `messages` and `enums`.
        enums: name to ``VALUE = number`` separated by commas or line breaks. ``Message.Name`` belongs to a message, so
            that its values may have names that another one has.

    Raises:
        UnsupportedError: the package `protobuf` is not installed.
    """
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise UnsupportedError(
            "BT-PROTOBUF-PACKAGE",
            "reading this model needs the package 'protobuf', which is not installed",
            advice='pip install "bittrue[protobuf]"',
        ) from None
    file = descriptor_pb2.FileDescriptorProto(name=f"bittrue/{package}.proto", package=f"bittrue.{package}")
    file.syntax = "proto2"
    kinds = descriptor_pb2.FieldDescriptorProto
    known = set(enums or {})
    added = {name: file.message_type.add(name=name) for name in messages}
    for name, values in (enums or {}).items():
        owner, _, own = name.rpartition(".")
        enum = added[owner].enum_type.add(name=own) if owner else file.enum_type.add(name=name)
        for text in filter(None, map(str.strip, re.split(r"[,\n]", values))):
            value = re.fullmatch(_ENUM, text)
            if value is None:
                raise ValueError(f"no value of an enum: {text!r}")
            enum.value.add(name=value["name"], number=int(value["number"]))
        if len({value.number for value in enum.value}) < len(enum.value):
            enum.options.allow_alias = True
    for name, fields in messages.items():
        message = added[name]
        for text in filter(None, map(str.strip, re.split(r"[,\n]", fields))):
            found = re.fullmatch(_FIELD, text)
            if found is None:
                raise ValueError(f"no field of a message: {text!r}")
            field = message.field.add(name=found["name"], number=int(found["number"]))
            field.label = kinds.LABEL_REPEATED if found["label"] == "repeated " else kinds.LABEL_OPTIONAL
            field.options.packed = " packed" in text
            if not field.options.packed:
                field.ClearField("options")
            if found["default"] is not None:
                field.default_value = found["default"]
            kind = f"{name}.{found['type']}" if f"{name}.{found['type']}" in known else found["type"]
            if kind in messages or kind in known:
                field.type = kinds.TYPE_MESSAGE if kind in messages else kinds.TYPE_ENUM
                field.type_name = f".bittrue.{package}.{kind}"
            else:
                field.type = kinds.Type.Value(f"TYPE_{found['type'].upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"bittrue.{package}.{name}"))
        for name in messages
    }


def parse(message_class: Any, content: Any, what: str, place: str = "") -> Any:
    """A message from the binary or the text form, whichever `content` is.

    Raises:
        ModelFormatError: it is neither, or damaged; `what` names it, `place` the file where that is not the model.
    """
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    raw = bytes(content)
    message = message_class()
    try:
        if is_text(raw):
            with warnings.catch_warnings():
                # Python warns of escapes in texts that it does not know.
                warnings.simplefilter("ignore")
                text_format.Parse(raw.decode(), message)
        else:
            message.ParseFromString(raw)
    except (DecodeError, text_format.ParseError, UnicodeDecodeError, RuntimeError, RecursionError, ValueError) as error:
        raise ModelFormatError(
            "BT-PROTOBUF-FORMAT",
            f"no {what}: {error}",
            place=place,
            advice="the file is damaged or of another kind; fetch it again",
        ) from None
    check_texts(message, "BT-PROTOBUF-FORMAT", place)
    return message


def check_texts(message: Any, code: str, place: str = "") -> None:
    """Refuses texts that are not UTF-8, which the protobuf package hands out as bytes; comments may hold anything.

    Raises:
        ModelFormatError: there is one, in this message or in one of its parts.
    """
    waiting = [message]
    while waiting:
        one = waiting.pop()
        for name, is_text_field, is_repeated in _texts(one.__class__):
            if not is_repeated and not one.HasField(name):
                continue
            value = getattr(one, name)
            values = value if is_repeated else (value,)
            if not is_text_field:
                waiting.extend(values)
                continue
            for text in values:
                if not isinstance(text, str):
                    raise ModelFormatError(
                        code,
                        f"the text {text[:40]!r} in a field '{name}' is not UTF-8",
                        place=place,
                        advice="the file is damaged, or names must be written anew",
                    )


@cache
def _texts(kind: Any) -> list[tuple[str, bool, bool]]:
    """Fields of a message class that hold texts or messages: name, whether texts, whether several."""
    empty = kind()
    return [
        (field.name, field.type == field.TYPE_STRING, hasattr(getattr(empty, field.name), "extend"))
        for field in kind.DESCRIPTOR.fields
        if field.type in (field.TYPE_STRING, field.TYPE_MESSAGE, field.TYPE_GROUP) and field.name != "doc_string"
    ]


def is_text(content: bytes) -> bool:
    """Whether a message is in its text form: printable, as binary ones of any use are not.

    >>> is_text(b'name: "net"'), is_text(bytes([10, 3]) + b"net")
    (True, False)
    """
    head = content[:1024].removeprefix(b"\xef\xbb\xbf")
    printable = all(byte in b"\t\n\r\f" or byte >= 32 for byte in head)
    return printable and re.match(rb"\s*(#|\w+\s*[:{<])", head) is not None


def top_fields(content: Any, most: int = 10_000) -> list[tuple[int, int]]:
    """(field number, wire type) of the first fields of a binary message; empty when it is none.

    >>> top_fields(bytes([10, 3]) + b"net" + bytes([16, 5]))
    [(1, 2), (2, 0)]
    """
    view = memoryview(content).cast("B")
    try:
        return [field[:2] for field in islice(_fields(view, 0, len(view)), most)]
    except ValueError:
        return []


def _fields(view: memoryview, place: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Field number, wire type, where the field begins, where its value does, and where both end, in a binary message.

    Raises:
        ValueError: there is no message between the two places, or one with groups.
    """
    while place < end:
        start = place
        key, place = _varint(view, start, end)
        begin = place
        if key & 7 == _BYTES:
            length, begin = _varint(view, place, end)
            place = begin + length
        elif key & 7 == 0:
            _, place = _varint(view, place, end)
        elif key & 7 in (1, 5):
            place += 8 if key & 7 == 1 else 4
        else:
            raise ValueError("a group")
        if place > end or not key >> 3:
            raise ValueError("no field")
        yield key >> 3, key & 7, start, begin, place


def _varint(view: memoryview, place: int, end: int) -> tuple[int, int]:
    """A number in groups of seven bits, and where it ends."""
    value = 0
    for position, byte in enumerate(view[place : min(end, place + 10)]):
        value |= (byte & 127) << (7 * position)
        if byte < 128:
            return value, place + position + 1
    raise ValueError("no number")


def _field(number: int, content: bytes) -> bytes:
    """A field of bytes, as messages have it."""
    head, left = bytearray([number << 3 | _BYTES]), len(content)
    while left > 127:
        head.append(left & 127 | 128)
        left >>= 7
    return bytes(head) + bytes([left]) + content


def set_apart(content: np.ndarray, path: tuple[int, int, int], least: int) -> tuple[bytes, dict[int, np.ndarray]]:
    """A binary message without its large values, which are not copied then.

    Args:
        path: numbers below 16 of fields: of a message in `content`, of the messages in a list of that one, and of a
            value of bytes in these.
        least: bytes of a value that is large.

    Returns:
        The message without them, and each as a view of `content`, by its message's place in the list. What a parser may
        see otherwise, be it that a field stands there twice, is left as it is.

    >>> message = np.frombuffer(bytes([8, 1, 58, 7, 42, 5, 74, 3, 1, 2, 3]), np.uint8)
    >>> rest, values = set_apart(message, (7, 5, 9), 3)
    >>> list(rest), values[0].tolist()
    ([8, 1, 58, 2, 42, 0], [1, 2, 3])
    """
    view, (outer, inner, value) = content.data, path
    taken: dict[int, np.ndarray] = {}
    pieces: list[bytes | memoryview] = []
    try:
        owners = [field for field in _fields(view, 0, len(view)) if field[0] == outer]
        if [wire for _, wire, *_ in owners] != [_BYTES]:
            return bytes(view), {}
        ((_, _, start, done, end),) = owners
        entries = (field for field in _fields(view, done, end) if field[:2] == (inner, _BYTES))
        for position, (_, _, at, begin, behind) in enumerate(entries):
            values = [] if behind - begin < least else [f for f in _fields(view, begin, behind) if f[0] == value]
            if [wire for _, wire, *_ in values] != [_BYTES]:
                continue
            ((_, _, first, low, high),) = values
            if high - low < least:
                continue
            taken[position] = content[low:high]
            pieces += view[done:at], _field(inner, b"".join([view[begin:first], view[high:behind]]))
            done = behind
    except ValueError:
        return bytes(view), {}
    owner = _field(outer, b"".join([*pieces, view[done:end]]))
    return b"".join([view[:start], owner, view[end:]]), taken
