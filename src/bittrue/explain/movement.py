"""Operators that only move numbers: which input element a result comes from, found by running them on numbered inputs.

Every element of an input is replaced by digits of its own number, in as many runs as the type needs, and once more by
the digits' complements: an element of the result that answers both is that input element, moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..errors import BittrueError
from ..rules import formula
from ..runtime.graphs import carry_out
from .decimals import place
from .site import Number, Site, Work, shown_name

# Values that a type holds without loss, so that they serve as digits.
_BASES = {"b": 2, "i": 2**7, "u": 2**7}
# Runs of the operator at most.
_RUNS = 16


def _base(dtype: np.dtype) -> int:
    if dtype.kind == "f":
        return 2 ** min(15, np.finfo(dtype).nmant)
    if dtype.kind in "iu" and dtype.itemsize > 1:
        return 2**15
    return _BASES.get(dtype.kind, 0)


def _digits(count: int, base: int) -> int:
    digits = 1
    while base**digits < count:
        digits += 1
    return digits


def _answers(site: Site, position: int, array: np.ndarray) -> Iterator[tuple[int, int]]:
    """The result's element for every digit of the numbers of one input, and for the digit's complement."""
    base = _base(array.dtype)
    numbers = np.arange(array.size).reshape(array.shape)
    for digit in range(_digits(array.size, base)):
        quantized = numbers // base**digit % base
        pair = []
        for marked in (quantized, base - 1 - quantized):
            inputs = list(site.inputs)
            inputs[position] = marked.astype(array.dtype)
            result = carry_out(site.plan, site.step, inputs)[site.output][site.element]
            pair.append(int(result))
        yield pair[0], pair[1]


def origin(site: Site, position: int) -> tuple[int, ...] | None:
    """The index of the element of input `position` that the site's element is; None when it is none of them."""
    array = site.inputs[position]
    base = 0 if array is None else _base(array.dtype)
    if array is None or not array.size or base < 2 or 2 * _digits(array.size, base) > _RUNS:
        return None
    if array.dtype != site.results[site.output].dtype:
        return None
    number = 0
    try:
        for digit, (one, other) in enumerate(_answers(site, position, array)):
            if one + other != base - 1 or not 0 <= one < base:
                return None
            number += one * base**digit
    except BittrueError:
        # An input that says where to move, not what.
        return None
    if number >= array.size:
        return None
    index = tuple(int(i) for i in np.unravel_index(number, array.shape))
    return index if array[index].tobytes() == site.stored.tobytes() else None


def moved(site: Site, work: Work) -> Number | None:
    """Where the element comes from."""
    if site.stored.dtype.kind not in "biuf":
        return None
    for position, array in enumerate(site.inputs):
        found = origin(site, position)
        if found is not None and array is not None:
            tensor = site.source(position)
            where = f"'{shown_name(tensor.name)}' {tensor.dtype}{list(array.shape)} {place(found)}"
            work.add("moved from", str(array[found]), where)
            return array[found].item()
    return None


def joined(site: Site, work: Work) -> Number | None:
    """An element of a concatenation whose input has other parameters than the result: a table of all quantized
    values.
    """
    step = site.step
    if "tables" not in step.arrays or step.parameters.get("late") or site.stored.dtype.kind not in "iu":
        return None
    parts = [array for array in site.inputs if array is not None and array.ndim]
    axis, before, position = int(step["axis"]), 0, 0
    while site.element[axis] >= before + parts[position].shape[axis]:
        before += parts[position].shape[axis]
        position += 1
    array, number = parts[position], int(step["tables"][position])
    if len(parts) != len(site.inputs) or number < 0:
        return None
    index = (*site.element[:axis], site.element[axis] - before, *site.element[axis + 1 :])
    entries, q = step.arrays["tables"][number], int(array[index])
    low = int(step["low"]) if array.dtype == entries.dtype else int(np.iinfo(array.dtype).min)
    work.add("input", str(q), f"'{site.name(position)}' {place(index)}")
    for slot, rule in step.rules.items():
        work.add(slot, rule, formula(slot, rule))
    work.add("in the output's scale", str(entries[q - low]), "from a table of all quantized values")
    return int(entries[q - low])


def filled(site: Site, work: Work) -> Number | None:
    """An element that no input reaches: what fills it is the same whatever the inputs hold."""
    stored = site.stored
    if site.step.rules or _base(stored.dtype) < 2:
        return None
    for value in (0, 1):
        inputs = tuple(
            np.full_like(array, value) if array is not None and array.dtype == stored.dtype else array
            for array in site.inputs
        )
        again = replace(site, results=tuple(carry_out(site.plan, site.step, inputs)), inputs=inputs)
        if again.stored.tobytes() != stored.tobytes():
            return None
    work.add("filled with", str(stored), "no input element lies here: padding")
    return stored.item()
