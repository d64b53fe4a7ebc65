"""Rows of `snps_caffe`: layers that move numbers."""

from __future__ import annotations

from ..table import Row

_READ = "read; exercised in whole networks"

ROWS: tuple[Row, ...] = (Row("reshape", ("T s64 -> T", "T - * -> T"), {}, _READ, where=("f32", "u8", "s8")),)
