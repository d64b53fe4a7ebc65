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

        text = (
            f"{label} computed with the right '{name}', and shows another: what it shows of '{name}' was written over"
        )
        cause = Cause("input is not what is shown", f"{text} or dumped wrongly: a fault", "data", False)
        yield Hypothesis(cause, "values", values=given)
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
