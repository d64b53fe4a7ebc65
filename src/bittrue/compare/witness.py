"""One differing element worked out, the accumulators of a tensor, and how far its values are from ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..api import Session
from ..errors import BittrueError
from ..explain import Explanation, accumulators, explain_element, explain_under, tie_distances
from .hypotheses import Case, Hypothesis

_MOST_TIES = 512


class Witness:
    """What a report shows of one tensor's difference.

    Attributes:
        position: the input set of the witness.
        element: of the largest difference, of equal ones the first.
    """

    def __init__(self, case: Case, causes: Sequence[Hypothesis]) -> None:
        self.case, self.causes = case, causes
        self.position, self.element = _element_of(case)

    def work_out(self) -> dict[str, Any]:
        """A's arithmetic of the element, B's value, and B's arithmetic where a plan has it."""
        case, values = self.case, self._known(self.case.values[self.position])
        found: dict[str, Any] = {}
        explained: Explanation | None = None
        try:
            result = case.ours[self.position]
            explained = explain_element(case.plan, values, case.segment.name, self.element, result)
            found = explained.to_dict()
        except BittrueError:
            # Operators that run other graphs: the values alone are shown.
            found = {"tensor": case.segment.name, "element": self.element}
            found["stored"] = case.ours[self.position][self.element].item()
        found["theirs"] = case.theirs[self.position][self.element].item()
        found["input_set"] = self.position
        other = None if explained is None else self._other(values, explained)
        if other is not None:
            found["other"] = other.to_dict()
        return found

    def _known(self, given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """The segment's inputs, and what its steps make of them."""
        plan = self.case.plan
        if len(plan.steps) <= 1:
            return given
        return {
            **given,
            **Session(plan).trace({plan.tensors[i].name: given[plan.tensors[i].name] for i in plan.inputs}),
        }

    def _other(self, values: Mapping[str, np.ndarray], explained: Explanation) -> Explanation | None:
        """The element under B's rules or parameters, where these are a plan of the same tensors."""
        if not self.causes or any(h.layer or h.compute or h.result or h.values for h in self.causes):
            return None
        try:
            plan = self.case.planned(self.causes, self.case.segment.shapes)
            # Causes are given where they give all of B's bits.
            other = explain_under(plan, values, explained, self.case.theirs[self.position])
        except (BittrueError, ValueError):
            return None
        return other

    @cached_property
    def _accumulators(self) -> list[np.ndarray] | None:
        found = []
        plan, step = self.case.plan, self.case.step
        for given in self.case.values:
            known = self._known(given)
            tensors = [None if i is None else plan.tensors[i] for i in step.inputs]
            inputs = [None if t is None else t.value if t.value is not None else known[t.name] for t in tensors]
            acc = accumulators(plan, step, inputs)
            if acc is None:
                return None
            found.append(acc)
        return found

    def accumulator_range(self) -> tuple[int, int, int] | None:
        """Smallest and largest accumulator, and the proven bound."""
        found, bound = self._accumulators, self.case.step.accumulator
        if not found or bound is None or not all(acc.size for acc in found):
            return None
        return min(int(a.min()) for a in found), max(int(a.max()) for a in found), bound.magnitude

    def ties(self) -> tuple[tuple[float, float], ...]:
        """[distance of the unrounded value to the nearest tie, b - a] of up to 512 elements, differing ones first."""
        if self._accumulators is None or self.case.theirs[0].dtype.kind not in "iu":
            return ()
        distances = [tie_distances(self.case.step, acc) for acc in self._accumulators]
        rows: list[tuple[float, float]] = []
        for wanted in (True, False):
            for position, mask in enumerate(self.case.differs):
                distance = distances[position]
                if distance is None:
                    return ()
                chosen = np.flatnonzero((mask == wanted).reshape(-1))[: _MOST_TIES - len(rows)]
                a, b = (x[position].reshape(-1)[chosen].astype(np.int64) for x in (self.case.ours, self.case.theirs))
                apart = (b - a).tolist()
                rows += [(float(d), float(v)) for d, v in zip(distance.reshape(-1)[chosen], apart, strict=True)]
        return tuple(rows)


def _element_of(case: Case) -> tuple[int, tuple[int, ...]]:
    best: tuple[float, int, tuple[int, ...]] | None = None
    for position, (a, b, mask) in enumerate(zip(case.ours, case.theirs, case.differs, strict=True)):
        if not mask.any():
            continue
        with np.errstate(all="ignore"):
            apart = np.where(mask, np.abs(b.astype(np.float64) - a.astype(np.float64)), -1.0)
        apart = np.where(np.isnan(apart), np.inf, apart)
        where = tuple(int(i) for i in np.unravel_index(int(np.argmax(apart)), apart.shape)) if apart.ndim else ()
        if best is None or apart[where] > best[0]:
            best = float(apart[where]), position, where
    assert best is not None, "a case differs somewhere"
    return best[1], best[2]
