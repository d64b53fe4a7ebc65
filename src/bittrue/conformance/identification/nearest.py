"""What to say where no numerics gives a device's answers: the nearest one, a counter-example, and a cause of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...errors import BittrueError
from ...explain import accumulators
from ..causes import SINGLE, Differences, Evidence, Search
from ..result import Class
from ..suite import SuiteCase
from .candidates import Answers, Candidate
from .questions import Asked, difference, unequal
from .result import CounterExample, Nearest


def nearest_of(names: Sequence[str], known: Answers, ran: Sequence[Asked]) -> Nearest:
    """How the answers differ from those of one numerics: of the first with which a cause explains them, else of the
    first.

    Args:
        names: numerics, the nearest first.
        known: what numerics give.
        ran: questions that were answered with outputs.
    """
    search = Search()
    beside = {}
    for name in names:
        evidence = _evidence(name, known, ran)
        beside[name] = Differences(evidence, name, search)
        if len(evidence) < len(ran):
            # What the numerics does not run, or other types and shapes, no cause explains.
            continue
        cause = beside[name].find(SINGLE[0])
        if cause is not None:
            return _counted(name, known, ran, cause)
    # What is rare is looked for beside the nearest alone.
    nearest = names[0]
    whole = len(_evidence(nearest, known, ran)) == len(ran)
    cause = beside[nearest].find(SINGLE[1]) if whole else None
    found = _counted(nearest, known, ran, cause)
    return found if cause is not None else replace(found, described=beside[nearest].describe(), cut=search.text)


def _evidence(name: str, known: Answers, ran: Sequence[Asked]) -> list[Evidence]:
    """The answers to questions that the numerics runs, of the same types and shapes."""
    evidence = []
    for one in ran:
        wanted = known.outputs(Candidate(name), one.case)
        got = {output: np.asarray(value) for output, value in one.answer.outputs.items()}
        if wanted is not None and difference(wanted, got) is not None:
            evidence.append(Evidence(one.case, got, wanted))
    return evidence


def _counted(name: str, known: Answers, ran: Sequence[Asked], cause: Class | None) -> Nearest:
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
    first = counter_example(name, known, wrong[0]) if wrong else None
    if cause is None:
        return Nearest(name, differing, elements, right, len(ran), first)
    return Nearest(name, differing, elements, right, len(ran), first, cause.name, cause.text, cause.legal, cause.also)


def counter_example(name: str, known: Answers, one: Asked) -> CounterExample:
    """The first element of an answer that a numerics does not give."""
    case, got = one.case, one.answer.outputs
    expected = known.outputs(Candidate(name), case)
    if expected is None:
        return CounterExample(case.identity, "", (), f"{name} does not run it", "outputs", note=case.note)
    for output, value in expected.items():
        if output not in got:
            return CounterExample(case.identity, output, (), "a tensor", "nothing", note=case.note)
        theirs = np.asarray(got[output])
        if theirs.dtype != value.dtype or theirs.shape != value.shape:
            one_kind, other_kind = (f"{x.dtype} {list(x.shape)}" for x in (value, theirs))
            return CounterExample(case.identity, output, (), one_kind, other_kind, note=case.note)
        wrong = unequal(value, theirs)
        if wrong.any():
            place = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape)) if wrong.ndim else ()
            accumulator = _accumulator(name, case, output, place)
            return CounterExample(
                case.identity, output, place, str(value[place]), str(theirs[place]), accumulator, case.note
            )
    strangers = [output for output in got if output not in expected]
    return CounterExample(case.identity, strangers[0], (), "no such tensor", "a tensor", note=case.note)


def _accumulator(name: str, case: SuiteCase, output: str, place: tuple[int, ...]) -> int | None:
    """Of one element; None for operators without one, and where several steps compute the output."""
    try:
        plan = case.model.prepare(name).plan
        (step,) = plan.steps
        tensors = [None if i is None else plan.tensors[i] for i in step.inputs]
        inputs = [None if t is None else case.inputs[t.name] if t.value is None else t.value for t in tensors]
        found = accumulators(plan, step, inputs)
    except (BittrueError, LookupError, ValueError):
        return None
    if found is None or found.ndim != len(place) or plan.tensors[step.outputs[0]].name != output:
        return None
    return int(found[place])
