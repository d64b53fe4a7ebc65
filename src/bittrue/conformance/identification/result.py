"""What identification finds: plain data, the only source of tables and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...report.result import Result, plain
from .parts import Part

FORMAT = "bittrue-identify-1"
# What can come of the questions about one operator.
VERDICTS = ("named", "other rules", "several numerics", "unknown", "unstable", "not run")


@dataclass(frozen=True)
class CounterExample:
    """One element that a numerics does not give.

    Attributes:
        case: its identity; that of the suite's case and a number where it was made for the question.
        output: name of the tensor.
        element: index; empty where shapes or types differ, or the output has no axes.
        expected: what the numerics gives, as text.
        got: what the device gave, as text.
        accumulator: before rescaling, under the numerics; None for operators without one.
        note: what the case is aimed at.
    """

    case: str
    output: str
    element: tuple[int, ...]
    expected: str
    got: str
    accumulator: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Nearest:
    """The numerics that comes nearest to answers that none gives.

    Attributes:
        name: of the numerics.
        differing, elements: of all asked answers: elements that differ, and all.
        cases, of: answers that it gives wholly, and all.
        first: the first counter-example.
        cause: name of what gives every byte of every answer, on top of the nearest numerics; empty without one.
        text: the same as a sentence.
        legal: the cause is another legal arithmetic, and no fault.
        also: names of other causes that fit as well.
        described: where there is no cause: what is true of all differing elements.
        cut: where there is none because the search ended early: that it did, and what was not tried.
    """

    name: str
    differing: int
    elements: int
    cases: int
    of: int
    first: CounterExample | None = None
    cause: str = ""
    text: str = ""
    legal: bool = False
    also: tuple[str, ...] = ()
    described: tuple[str, ...] = ()
    cut: str = ""


@dataclass(frozen=True)
class RuledOut:
    """Numerics that one question ruled out at once, by the same wrong outputs."""

    numerics: tuple[str, ...]
    example: CounterExample


@dataclass(frozen=True)
class Finding:
    """What one operator's answers say, for one label of types.

    Attributes:
        operator: as files call it.
        types: the label.
        verdict: one of `VERDICTS`.
        numerics: those that give every answer; for ``"other rules"`` those that do so with `changes`.
        alike: these numerics compute all cases by the same plan. Else they differ somewhere, and no question in the
            budget told them apart.
        rules: slot to rule in the slots where numerics differ here, as the named numerics has them.
        changes: ``"slot = rule"``, joined by ``"and"`` where they are several, and the rules that they stand in for;
            then the other ones that fit as well.
        changed_in: numerics that have the changed rules for such an operator.
        parts: for ``"several numerics"``: which models, and the numerics that give these answers.
        asked: runs of the device.
        answered: questions that it answered with outputs.
        made: questions that are no case of the suite, but were made to tell candidates apart, or to ask what nobody
            can have recorded.
        repeated: questions that were put once more.
        deciding: identities of the questions that ruled something out.
        ruled_out: by which element of which answer, in the order in which it happened.
        refusing: numerics that do not run all that the device ran, and were not ruled out by an answer.
        nearest: for ``"unknown"``.
        remark: for people.
    """

    operator: str
    types: str
    verdict: str
    numerics: tuple[str, ...] = ()
    alike: bool = True
    rules: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    changed_in: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    asked: int = 0
    answered: int = 0
    made: int = 0
    repeated: int = 0
    deciding: tuple[str, ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()
    refusing: tuple[str, ...] = ()
    nearest: Nearest | None = None
    remark: str = ""


@dataclass(frozen=True)
class Explained:
    """A numerics of the summary and the operators that it stands for."""

    numerics: str
    operators: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class IdentifyResult(Result):
    """Which numerics explain a device.

    Attributes:
        device: what the user called it.
        suite, suite_version: where the questions come from.
        seed: of the questions that were made.
        bittrue: version.
        findings: one per operator and types, in the suite's order.
        named: the fewest numerics that explain all that can be named, that of most operators first.
        consistent: numerics that nothing contradicts.
        summary: lines for people.
        questions: runs of the device.
    """

    device: str
    suite: str
    suite_version: str
    seed: str
    bittrue: str
    findings: tuple[Finding, ...]
    named: tuple[Explained, ...]
    consistent: tuple[str, ...]
    summary: tuple[str, ...]
    questions: int

    formats = (".json",)

    @property
    def headline(self) -> str:
        return f"{self.device}: {'; '.join(self.summary)}"

    def to_markdown(self) -> str:
        return "\n".join(self.summary)

    @property
    def explained(self) -> bool:
        """Whether numerics were named for everything that the device ran, and it ran something."""
        ran = [finding for finding in self.findings if finding.verdict != "not run"]
        return bool(ran) and all(finding.verdict == "named" for finding in ran)

    def to_dict(self) -> dict[str, Any]:
        """JSON of the form ``bittrue-identify-1``."""
        return {"format": FORMAT, "explained": self.explained, **plain(self)}
