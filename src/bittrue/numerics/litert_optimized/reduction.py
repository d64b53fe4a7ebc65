"""Rows of `litert-optimized`: reductions, resizing, softmax and normalization."""

from __future__ import annotations

from ..table import Row

_AWAY = {"softmax": "binary32_table_away"}
_LOGARITHM = {"log_softmax": "binary32_table_even"}

ROWS: tuple[Row, ...] = (
    Row("softmax", ("s8 -> s8",), _AWAY, "run", requires=(("output_is", 1 / 256, -128, 0.001),)),
    Row("softmax", ("u8 -> u8",), {"softmax": "binary32_table_half_up"}, "run"),
    Row("softmax", ("s8|u8 -> s16",), _AWAY, "run"),
    Row("log_softmax", ("s8 -> s8",), _LOGARITHM, "run", requires=(("output_is", 1 / 16, 127),)),
    Row("log_softmax", ("u8 -> u8",), _LOGARITHM, "run", requires=(("output_is", 1 / 16, 255),)),
)
