"""Rows of the engine DNNLOWP."""

from __future__ import annotations

from ..table import Row

ROWS: tuple[Row, ...] = ()
