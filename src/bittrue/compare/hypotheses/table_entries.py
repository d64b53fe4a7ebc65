"""Faults of lookup tables: single entries, moved tables, tables of fewer entries or bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ...operators import Step, find
from .case import Case, Hypothesis
from .common import Array, of_computation, of_step

Change = Callable[[Array], Array]


def table_entries(case: Case) -> Iterator[Hypothesis]:
    """Every table of 256 numbers that the step has; steps of one 8-bit operand are tables as well."""
    step = case.step
    for name, array in step.arrays.items():
        if array.size == 256 and array.dtype.kind in "iu":
            for title, text, change in _whole(name):
                yield of_step(title, text, _with(name, change))
            for bits in (7, 8, 10, 12, 15, 16) if np.abs(array).max() > 1 << 16 else ():
                title = f"entries of {name} cut to {bits} bits"
                yield of_step(title, f"the {title}", _with(name, _cut(bits)))
    yield from _entries(case)


def _whole(name: str) -> Iterator[tuple[str, str, Change]]:
    yield (
        f"{name} moved up by one",
        f"quantized value k uses the entry of k - 1 in {name}",
        lambda t: np.append(t[:1], t[:-1]),
    )
    yield (
        f"{name} moved down by one",
        f"quantized value k uses the entry of k + 1 in {name}",
        lambda t: np.append(t[1:], t[-1:]),
    )
    yield (
        f"{name} of 128 entries",
        f"{name} has an entry for every other quantized value",
        lambda t: np.repeat(t[::2], 2),
    )
    yield (
        f"{name} of 64 entries",
        f"{name} has an entry for every fourth quantized value",
        lambda t: np.repeat(t[::4], 4),
    )
    text = f"{name} has an entry for every other quantized value, means between them"
    yield f"{name} of 128 entries, interpolated", text, _interpolated
    yield f"{name} rotated by 128", f"{name} is indexed by the quantized value plus 128", lambda t: np.roll(t, 128)
    yield f"{name} reversed", f"{name} lies backwards", lambda t: t[::-1].copy()
    yield (
        f"{name} without its last entry",
        f"the last entry of {name} is the one before",
        lambda t: np.append(t[:-1], t[-2]),
    )
    yield f"{name} without its first entry", f"the first entry of {name} is the next", lambda t: np.append(t[1], t[1:])
    yield f"{name} with a zero last", f"the last entry of {name} is 0", lambda t: np.append(t[:-1], 0)
    yield f"{name} with a zero first", f"the first entry of {name} is 0", lambda t: np.append(0, t[1:])


def _interpolated(table: Array) -> Array:
    found = table.copy()
    found[1:-1:2] = (table[0:-2:2] + table[2::2]) >> 1
    return found


def _cut(bits: int) -> Change:
    def change(table: Array) -> Array:
        lost = int(np.abs(table).max()).bit_length() - bits
        return (table >> lost) << lost

    return change


def _with(name: str, change: Change) -> Callable[[Step], Step]:
    def changed(step: Step) -> Step:
        table = step.arrays[name]
        entries = change(table.reshape(-1).astype(np.int64)).reshape(table.shape)
        return replace(step, arrays={**step.arrays, name: entries})

    return changed


def _entries(case: Case) -> Iterator[Hypothesis]:
    """A device that has a table with one wrong entry; its user may never meet it, a suite has to."""
    operator = find(case.step.operator)
    if (
        operator is None
        or operator.elementwise != 1
        or len(case.plan.steps) != 1
        or case.ours[0].dtype.kind not in "iu"
    ):
        return
    graph = case.segment.graph
    (index,) = graph.inputs[:1]
    source = graph.tensors[index]
    if source.type.bits != 8:
        return
    name = source.name
    for code in range(source.type.minimum, source.type.maximum + 1):

        def compute(plan: object, values: object, code: int = code) -> Array:
            given, right = case.values[0][name], case.ours[0]
            middle = right.dtype.type((np.iinfo(right.dtype).min + np.iinfo(right.dtype).max) // 2)
            # Toward the middle, so that it is another code.
            wrong = np.where(right > middle, right - 1, right + 1).astype(right.dtype)
            return np.where(given == code, wrong, right)

        yield of_computation(
            f"table entry of quantized value {code} wrong",
            f"the entry of quantized value {code} is one too near to the middle",
            compute,
            "data",
        )
