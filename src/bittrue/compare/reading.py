"""Results read back from JSON, which may be damaged or made up: every value is checked before it is used."""

from __future__ import annotations

import math
import reprlib
import types
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ..errors import InputError

_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
T = TypeVar("T")


def read(kind: type[T], data: Any, place: str) -> T:
    """An object of the dataclass `kind` from plain data.

    Raises:
        InputError: a value is missing or has another type; `place` and the path to it are named.
    """
    found: T = _value(kind, data, place)
    return found


def _value(kind: Any, data: Any, place: str) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return data
    if origin in (Union, types.UnionType):
        choices = get_args(kind)
        if data is None and type(None) in choices:
            return None
        return _value(next(c for c in choices if c is not type(None)), data, place)
    if is_dataclass(kind):
        return _object(kind, data, place)
    if origin is tuple:
        return _tuple(get_args(kind), data, place)
    if origin is dict:
        if not isinstance(data, dict):
            raise _wrong("an object", data, place)
        return {str(key): _value(get_args(kind)[1], value, f"{place}.{key}") for key, value in data.items()}
    return _plain(kind, data, place)


def _object(kind: Any, data: Any, place: str) -> Any:
    if not isinstance(data, dict):
        raise _wrong("an object", data, place)
    hints = _hints(kind)
    values = {}
    for part in fields(kind):
        if part.name in data:
            values[part.name] = _value(hints[part.name], data[part.name], f"{place}.{part.name}")
        elif part.default is MISSING and part.default_factory is MISSING:
            raise InputError("BT-RESULT", f"'{part.name}' is missing", place=place, advice="compare again")
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _tuple(kinds: tuple[Any, ...], data: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise _wrong("a list", data, place)
    if kinds == (float, ...) and all(type(item) in (int, float) for item in data):
        return tuple(data)
    if len(kinds) == 2 and kinds[1] is ...:
        return tuple(_value(kinds[0], item, f"{place}[{i}]") for i, item in enumerate(data))
    if len(data) != len(kinds):
        raise _wrong(f"{len(kinds)} values", data, place)
    return tuple(_value(kind, item, f"{place}[{i}]") for i, (kind, item) in enumerate(zip(kinds, data, strict=True)))


def _plain(kind: Any, data: Any, place: str) -> Any:
    if kind is float:
        if isinstance(data, str) and data in _NUMBERS:
            return _NUMBERS[data]
        if isinstance(data, int | float) and not isinstance(data, bool):
            return data
        raise _wrong("a number", data, place)
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise _wrong({int: "an integer", str: "text", bool: "true or false"}.get(kind, kind.__name__), data, place)
    return data


def _wrong(expected: str, data: Any, place: str) -> InputError:
    text = reprlib.repr(data)
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return InputError("BT-RESULT", f"expected {expected}, found {shown}", place=place, advice="compare again")
