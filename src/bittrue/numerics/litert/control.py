"""Rows of `litert`: other graphs, resource variables, and results whose shape is in the values."""

from __future__ import annotations

from ..table import Row

# Whatever may be passed from graph to graph.
_ANY = "bool|s4|s8|u8|s16|s32|u32|s64|f16|f32|f64|resource"
_RUN = "run"
_STATE = "variable tensors inside of called graphs are refused: when they are reset depends on how memory is kept"
_TWICE = "a graph that returns one tensor twice is refused: the kernel leaves one of the results unwritten"
_MOVED = "a result that is an earlier input of the body is refused when that input changes shape: its memory moves then"

ROWS: tuple[Row, ...] = (
    Row(
        "if",
        (f"bool {_ANY}... -> {_ANY}...", f"bool -> {_ANY}...", f"bool {_ANY}... -> ", "bool -> "),
        {},
        _RUN,
        limit=f"{_STATE}; {_TWICE}",
        requires=(("results_differ",),),
    ),
    Row("loop", (f"{_ANY}... -> {_ANY}...",), {}, _RUN, limit=f"{_STATE}; {_MOVED}"),
    Row(
        "stablehlo_composite",
        (f"{_ANY}... -> {_ANY}...", f"{_ANY}... -> "),
        {},
        _RUN,
        limit=f"{_STATE}; {_TWICE}; the runtime's reader also demands attributes, which nothing reads",
        requires=(("results_differ",),),
    ),
    Row("call_once", (" -> ",), {}, _RUN, limit=_STATE),
    Row("var_handle", (" -> resource",), {}, _RUN),
    Row(
        "read_variable",
        ("resource -> *",),
        {},
        _RUN,
        limit="a value of fewer elements than the declared shape is refused: the kernel reads past it",
    ),
    Row("assign_variable", ("resource * -> ",), {}, _RUN),
    Row("where", ("T -> s64",), {}, _RUN, where=("bool", "f32", "s64", "s32", "s8", "u8", "u32")),
    Row("unique", ("T -> T s32|s64",), {}, _RUN, where=("s8", "u8", "s16", "s32", "s64", "f32")),
)
