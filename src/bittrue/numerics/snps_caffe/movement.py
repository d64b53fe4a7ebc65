"""Rows of `snps_caffe`: layers that move numbers."""

from __future__ import annotations

from ..table import Row

_READ = "read; exercised in whole networks"

ROWS: tuple[Row, ...] = (Row("reshape", ("f32|u8|s8 s64 -> f32|u8|s8",), {}, _READ),)
