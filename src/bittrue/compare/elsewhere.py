"""What a side shows and what it computed with: recordings that hold something else than what the side worked on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from ..plan import Plan
from .hypotheses import Hypothesis
from .hypotheses.case import Values
from .result import Cause

Read = Callable[[int], np.ndarray | None]


def elsewhere(
    label: str,
    inputs: Mapping[str, Read],
    others: Mapping[str, Read],
    known: Sequence[Values],
    theirs: Sequence[np.ndarray],
) -> Iterator[Hypothesis]:
    """Hypotheses about one tensor that take other tensors than its operator's as they are shown.

    Args:
        label: of the side that is judged.
        inputs: of the operator's inputs, those that differ between the sides: the other side's value per input set.
        others: tensors of the judged side that may lie where this one should.
        known: the operator's inputs as they are shown, per input set.
        theirs: the judged tensor per input set.
    """
    for name, read in inputs.items():

        def given(values: Sequence[Values], position: int, key: str = name, read: Read = read) -> Values | None:
            found = read(position)
            return None if found is None else {**values[position], key: found}

        runs = range(len(known))
        shown = ((known[i][name], read(i)) for i in runs)
        pairs = [(its, mine) for its, mine in shown if its is not None and mine is not None]
        yield Hypothesis(shown_otherwise(label, name, pairs), "values", values=given)
    for name, read in others.items():
        found = [read(position) for position in range(len(theirs))]
        if any(f is None or f.tobytes() != t.tobytes() for f, t in zip(found, theirs, strict=True)):
            continue
        if all((t == t.reshape(-1)[:1]).all() for t in theirs):
            # Constant tensors are alike without being the same.
            continue

        def held(plan: Plan, values: Values, read: Read = read) -> np.ndarray | None:
            position = next(i for i, one in enumerate(known) if one is values)
            found = read(position)
            return None if found is None else found.reshape(theirs[position].shape)

        text = f"it holds what {label} shows as '{name}': its memory was used again: a fault"
        yield Hypothesis(Cause("another tensor's values", text, "data", False), "result", compute=held)


def shown_otherwise(label: str, name: str, pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Cause:
    """The cause of a tensor that a side computed with, and shows differently.

    Args:
        label: of the side.
        name: of the tensor.
        pairs: per input set what it shows, and what it computed with.
    """
    text = f"{label} computed with the right '{name}', and shows another{_one_element(pairs)}"
    return Cause("input is not what is shown", f"{text}: written over or dumped wrongly, a fault", "data", False)


def _one_element(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> str:
    """Which element it is that differs, and in which bits, where it is a single one."""
    places = [
        (run, index) for run, (one, two) in enumerate(pairs) if one.shape == two.shape for index in _differing(one, two)
    ]
    if len(places) != 1:
        return ""
    run, index = places[0]
    element = f"element [{', '.join(map(str, index))}]" + (f" of run {run}" if len(pairs) > 1 else "")
    one, two = (np.asarray(value[index]).tobytes() for value in pairs[run])
    bits = int.from_bytes(one, "little") ^ int.from_bytes(two, "little")
    if bits.bit_count() == 1:
        return f" (one bit flipped, 0x{bits:0{2 * len(one)}x}, at {element})"
    return f" ({element} alone)"


def _differing(one: np.ndarray, two: np.ndarray) -> list[tuple[int, ...]]:
    """Indices of the first elements that differ, two at most: more are not asked for."""
    size = one.dtype.itemsize
    bytes_one, bytes_two = (np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(-1, size) for x in (one, two))
    positions = np.flatnonzero((bytes_one != bytes_two).any(axis=1))[:2]
    return [tuple(int(i) for i in np.unravel_index(position, one.shape)) for position in positions]
