"""Faults of operators that look every quantized value up in a table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...api import Session
from ...graph import data_type
from ...plan import Plan
from ..result import Cause
from .case import Case, Hypothesis, Values

# Name, text, and by how many entries the table is moved.
_MOVED = (
    ("table shifted by one entry", "the table's entries are one too late", 1),
    ("table shifted by one entry", "the table's entries are one too early", -1),
    (
        "table read with the wrong signedness",
        "quantized values are signed where the table counts from 0, or the reverse",
        128,
    ),
)


def lookups(case: Case) -> Iterator[Hypothesis]:
    """Other entries of the table of the segment's only operator."""
    plan = case.plan
    if len(plan.steps) != 1 or "table" not in plan.steps[0].rules or len(case.segment.shapes) != 1:
        return
    kind = data_type(plan.tensors[plan.inputs[0]].dtype)
    if kind.bits != 8:
        return
    for name, text, by in _MOVED:
        for wraps in (True, False):
            yield Hypothesis(
                Cause(name, f"{text}: a fault", "table", False),
                "lookup",
                compute=lambda plan, values, by=by, wraps=wraps: _moved(case, plan, values, by, wraps),  # type: ignore[misc]
            )


def _moved(case: Case, plan: Plan, values: Values, by: int, wraps: bool) -> np.ndarray | None:
    (name,) = case.segment.shapes
    quantized = values[name]
    low = int(np.iinfo(quantized.dtype).min)
    every = np.arange(low, low + 256).astype(quantized.dtype)
    whole = case.planned([], {name: (256,)})
    table = next(iter(Session(whole).run({name: every}).values()))
    index = quantized.astype(np.int64) - low - by
    return np.asarray(table[index % 256 if wraps else np.clip(index, 0, 255)])
