"""All mutants of one case: what a wrong device would answer, computed by bittrue's own arithmetic with one change."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ... import numerics as numerics_tables
from ...api import Session
from ...compare.hypotheses import FAMILIES, RARE, Case, Hypothesis, rows
from ...compare.segments import segments
from ...numerics import Numerics
from ...plan import Plan
from ...plan.declared import rewritten_graph
from ..suite import SuiteCase
from .known import known_results

Outputs = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Mutant:
    """One wrong device, as far as one case can see it.

    Attributes:
        name: the same in all cases of an operator: ``"rescale=q31_one_step_up"``, ``"input zero point ignored"``.
        family: ``"rules"``, ``"numerics"``, or the name of a family of faults.
        text: what it does, for people.
    """

    name: str
    family: str
    text: str
    _compute: Callable[[], Outputs | None]

    def outputs(self) -> Outputs | None:
        """What the device answers. None where its change touches nothing in this case, or makes no sense in it, or
        gives tensors of another type or shape: such a device is known without looking at values.
        """
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._compute()
        except Exception:
            # Rules and parameters are put into places that they were not made for.
            return None


class Subject:
    """One case as mutants see it.

    Args:
        case: one whose model the numerics runs.
        numerics: the arithmetic that is right.
        inputs: other inputs than the case's.

    Attributes:
        expected: right outputs, by name.
        parts: per output that is computed when running: its name, and what computes it.

    Raises:
        BittrueError: the numerics cannot run the case.
    """

    def __init__(self, case: SuiteCase, numerics: Numerics, inputs: Mapping[str, np.ndarray] | None = None) -> None:
        self.case, self.numerics = case, numerics
        session = case.model.prepare(numerics.name)
        self.inputs = dict(case.inputs if inputs is None else inputs)
        self.expected = session.run(self.inputs)
        graph, _ = rewritten_graph(case.model.graph, numerics)
        plan = session.plan
        names = dict(zip((plan.tensors[i].name for i in plan.results), self.expected, strict=True))
        # Inputs may be called by their signature's names.
        values = {
            plan.tensors[i].name: self.inputs[port.name if port.name in self.inputs else plan.tensors[i].name]
            for i, port in zip(plan.inputs, session.inputs, strict=True)
        }
        self.parts = [
            (names[part.name], Case(part, [values], [self.expected[names[part.name]]]))
            for part in segments(graph, plan, numerics, list(names))
        ]

    def mutants(self) -> Iterator[Mutant]:
        """Every mutant once, in an order that depends on the case alone."""
        seen: set[str] = set()
        for output, case in self.parts:
            for family, hypothesis in _hypotheses(case):
                mutant = self._mutant(family, hypothesis, output, case)
                if mutant.name not in seen:
                    seen.add(mutant.name)
                    yield mutant
        if not self.parts:
            for name, text, outputs in known_results(self.expected):
                yield Mutant(name, "results", text, lambda outputs=outputs: outputs)  # type: ignore[misc]

    def _mutant(self, family: str, hypothesis: Hypothesis, output: str, case: Case) -> Mutant:
        def compute() -> Outputs | None:
            found = _computed(case, hypothesis)
            return None if found is None else {**self.expected, output: found}

        return Mutant(_name(hypothesis), family, hypothesis.cause.text.removesuffix(": a fault"), compute)


def mutants(case: SuiteCase, numerics: Numerics) -> list[Mutant]:
    """Every mutant that can be thought of for one case.

    Args:
        case: one whose model the numerics runs.
        numerics: the arithmetic that is right.

    Raises:
        BittrueError: the numerics cannot run the case.
    """
    return list(Subject(case, numerics).mutants())


def _hypotheses(case: Case) -> Iterator[tuple[str, Hypothesis]]:
    for name in numerics_tables.distinct():
        if name != case.segment.numerics.name:
            yield "numerics", rows.whole_row(case, numerics_tables.find(name))
    for hypothesis in (*rows.used_slots(case), *rows.unused_slots(case)):
        yield "rules", hypothesis
    for family in (*FAMILIES, *RARE):
        for hypothesis in family(case):
            yield family.__name__.replace("_", " "), hypothesis


def _computed(case: Case, hypothesis: Hypothesis) -> np.ndarray | None:
    if hypothesis.layer or hypothesis.compute or hypothesis.result or hypothesis.values:
        return case.predict([hypothesis], 0)
    plan = case.planned([hypothesis], dict(case.segment.shapes))
    if _key(plan) == _key(case.plan):
        return None
    session = Session(plan, executor="reference" if hypothesis.reference else "auto")
    (found,) = session.run({port.name: case.values[0][port.name] for port in session.inputs}).values()
    wanted = case.theirs[0]
    # Devices know the shapes of buffers from the model: what is laid out differently fills the same buffer.
    return found.reshape(wanted.shape) if found.size == wanted.size and found.dtype == wanted.dtype else None


def _key(plan: Plan) -> object:
    """Plans with the same key compute the same."""
    used = {i for step in plan.steps for i in step.inputs if i is not None}
    return (
        tuple(
            (
                step.operator,
                step.inputs,
                step.outputs,
                tuple(sorted(step.rules.items())),
                tuple(sorted((k, _plain(v)) for k, v in step.parameters.items())),
                tuple(sorted((k, _plain(v)) for k, v in step.arrays.items())),
            )
            for step in plan.steps
        ),
        tuple((i, _plain(plan.tensors[i].value), plan.tensors[i].shape) for i in sorted(used)),
    )


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return repr(value)


# What faults of one name differ in.
_TAILS = (", while padding still holds it", " where it is added, though not in the clamp", ", toward zero")
# Names that several faults share, which their texts tell apart.
_SHARED = frozenset(
    (
        "average counts padding",
        "bias shifted by one channel",
        "clamp before the zero point",
        "clamp one too high",
        "dilation ignored",
        "input flattened in another layout",
        "input passed through",
        "multipliers shifted by one channel",
        "operands in another order",
        "pairs of products saturate at 16 bits",
        "result shifted by one channel",
        "result shifted by one element",
        "weights shifted by one output channel",
    )
)


def _name(hypothesis: Hypothesis) -> str:
    """The cause's name, and how it comes about where several faults share that name."""
    name, text = hypothesis.cause.name, hypothesis.cause.text.removesuffix(": a fault")
    tail = next((tail for tail in _TAILS if tail in text and tail not in name), "")
    return f"{name}: {text}" if name in _SHARED else name + tail
