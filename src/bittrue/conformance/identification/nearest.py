"""What to say where no numerics gives a device's answers: the nearest one, a counter-example, and a fault that gives all.

A fault counts when it gives every byte of every answer, of those that the nearest numerics gives as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from ... import numerics as numerics_tables
from ...compare.hypotheses import Case, Hypothesis, rows
from ...compare.search import faults
from ...compare.segments import Segment
from ...compare.verdict import Explainer
from ...errors import BittrueError
from ..expected import segment_of
from .candidates import Answers
from .questions import Asked, difference, unequal
from .result import CounterExample, Nearest

# Counter-examples that are explained one by one before one cause is tried on all answers.
_EXPLAINED = 3


def nearest_of(name: str, known: Answers, ran: Sequence[Asked]) -> Nearest:
    """How the answers differ from those of one numerics.

    Args:
        name: the numerics.
        known: what numerics give.
        ran: questions that were answered with outputs.
    """
    from .candidates import Candidate

    own = Candidate(name)
    differing, elements, right = 0, 0, 0
    wrong: list[Asked] = []
    for one in ran:
        expected = known.outputs(own, one.case)
        count = None if expected is None else difference(expected, one.answer.outputs)
        size = sum(np.asarray(value).size for value in one.answer.outputs.values())
        elements += size
        differing += size if count is None else count[0]
        right += count is not None and count[0] == 0
        if count is None or count[0]:
            wrong.append(one)
    cause, causes, unexplained = _causes(name, wrong, ran)
    first = _counter_example(name, known, wrong[0]) if wrong else None
    return Nearest(name, differing, elements, right, len(ran), first, cause, causes, unexplained)


def _counter_example(name: str, known: Answers, one: Asked) -> CounterExample:
    from .candidates import Candidate

    expected = known.outputs(Candidate(name), one.case)
    case, got = one.case, one.answer.outputs
    if expected is None:
        return CounterExample(case.identity, "", (), f"{name} does not run it", "outputs", note=case.note)
    for output, value in expected.items():
        if output not in got:
            return CounterExample(case.identity, output, (), "a tensor", "nothing", note=case.note)
        theirs = np.asarray(got[output])
        if theirs.dtype != value.dtype or theirs.shape != value.shape:
            kinds = tuple(f"{x.dtype} {list(x.shape)}" for x in (value, theirs))
            return CounterExample(case.identity, output, (), *kinds, note=case.note)
        wrong = unequal(value, theirs)
        if wrong.any():
            place = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape)) if wrong.ndim else ()
            accumulator = _accumulator(name, one, output, place)
            texts = (_text(value[place]), _text(theirs[place]))
            return CounterExample(case.identity, output, place, *texts, accumulator, case.note)
    strangers = [output for output in got if output not in expected]
    return CounterExample(case.identity, strangers[0], (), "no such tensor", "a tensor", note=case.note)


def _text(value: np.ndarray) -> str:
    return str(value.item()) if value.dtype.kind in "iufb" else str(value)


def _accumulator(name: str, one: Asked, output: str, place: tuple[int, ...]) -> int | None:
    from ...explain import accumulators

    try:
        session = one.case.model.prepare(name)
        plan = session.plan
        (step,) = plan.steps
        known = dict(one.case.inputs)
        inputs = [
            None if i is None else plan.tensors[i].value if plan.tensors[i].value is not None else known[plan.tensors[i].name]
            for i in step.inputs
        ]
        found = accumulators(plan, step, inputs)
    except (BittrueError, LookupError, ValueError):
        return None
    if found is None or len(found.shape) != len(place) or plan.tensors[step.outputs[0]].name != output:
        return None
    return int(found[place])


def _causes(name: str, wrong: Sequence[Asked], ran: Sequence[Asked]) -> tuple[str, tuple[str, ...], int]:
    """The text of one cause of all counter-examples; names of causes of single ones; how many have none."""
    own = numerics_tables.find(name)
    explainer = Explainer(own, None)
    names: dict[str, None] = {}
    unexplained = 0
    cases = _cases(name, ran)
    # Those that differ most tell most.
    ranked = sorted((case for case in cases if case.differing), key=lambda case: -case.differing)
    if len(ranked) < len(wrong):
        # Another type or shape, or a case that the nearest numerics refuses.
        return "", (), len(wrong)
    for case in ranked[:_EXPLAINED]:
        verdict = explainer.explain(case.segment, case.values, case.theirs, "")
        if not verdict.exact:
            unexplained += 1
            continue
        names[" and ".join(cause.name for cause in verdict.causes)] = None
        names.update(dict.fromkeys((*verdict.also, *verdict.alike)))
        for name_of_one in list(names):
            text = _gives_all(name_of_one, cases)
            if text:
                return text, (name_of_one,), 0
    return "", tuple(names)[:6], unexplained


def _cases(name: str, ran: Sequence[Asked]) -> list[Case]:
    own = numerics_tables.find(name)
    found = []
    for one in ran:
        try:
            segment = segment_of(one.case, own)
            value = np.asarray(one.answer.outputs[segment.name])
            case = Case(segment, [_inputs(segment, one)], [value])
        except (BittrueError, LookupError, ValueError):
            continue
        if case.ours[0].shape == value.shape and case.ours[0].dtype == value.dtype:
            found.append(case)
    return found


def _inputs(segment: Segment, one: Asked) -> dict[str, np.ndarray]:
    return {name: np.asarray(one.case.inputs[name]) for name in segment.shapes}


def _gives_all(name: str, cases: Sequence[Case]) -> str:
    """The text of a cause of this name that gives every byte of every case; empty where none does.

    Where a case offers no such cause, because it has nothing that this could act on, the nearest numerics must be right.
    """
    text = ""
    with np.errstate(all="ignore"):
        for case in sorted(cases, key=lambda one: -one.differing):
            offered = [h for h in _hypotheses(case) if h.cause.name == name]
            if not offered:
                if case.differing:
                    return ""
                continue
            # What a plan cannot be made with changes nothing.
            if not any(case.holds(h) for h in offered) and (case.differing or any(_changes(case, h) for h in offered)):
                return ""
            text = text or offered[0].cause.text
    return text


def _changes(case: Case, hypothesis: Hypothesis) -> bool:
    """Whether the hypothesis predicts other bytes than the right ones."""
    found = case.predict([hypothesis], 0)
    return found is not None and bool(unequal(found, case.ours[0]).any())


def _hypotheses(case: Case) -> Iterator[Hypothesis]:
    return chain(rows.used_slots(case), rows.used_pairs(case), faults(case), rows.unused_slots(case))
