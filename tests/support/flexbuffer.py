"""Options of custom operators as bytes."""

from __future__ import annotations

from collections.abc import Mapping

from flatbuffers import flexbuffers


def packed(options: Mapping[str, bool | int | float | str | None]) -> bytes:
    """A flexbuffer map; the type of each value decides how it is kept."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in options.items():
            builder.Key(name)
            if isinstance(value, bool):
                builder.Bool(value)
            elif isinstance(value, int):
                builder.Int(value)
            elif isinstance(value, float):
                builder.Float(value)
            elif value is None:
                builder.Null()
            else:
                builder.String(value)
    return bytes(builder.Finish())
