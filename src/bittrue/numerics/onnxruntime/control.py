"""Rows of `onnxruntime`: control flow."""

from __future__ import annotations

from ..table import Row

ROWS: tuple[Row, ...] = (
    Row("if", ("bool -> *...", "bool *... -> *..."), {}, "run"),
    Row(
        "loop",
        ("s64 bool *... -> *...",),
        {},
        "run",
        limit="slices of a loop without rounds have the rank of the body's slices; the runtime goes by declared shapes",
    ),
)
