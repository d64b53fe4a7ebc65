"""Rows of the default engine."""

from __future__ import annotations

from ..table import Row

_MOVED = tuple(
    Row(stem, (f"u8{rest} -> u8",), {}, "run: recorded vectors", requires=(("same_parameters", 0),))
    for stem, rest in (("flatten", ""), ("reshape_to", " s64"), ("transpose", " s64|-"))
)

ROWS: tuple[Row, ...] = _MOVED
