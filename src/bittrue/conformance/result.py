"""What a conformance run found, as plain data: the only source of every report, and the certificate itself.

`ConformResult.to_dict` is the JSON of format ``bittrue-conform-1``; `from_dict` reads it back. It holds the device's
outputs in full: each one as the bytes in which it differs from a named numerics. So everything that it says can be
worked out again, which is what `bittrue conform verify` does.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Any

from ..compare.reading import read
from ..errors import InputError
from ..report.result import Result, plain

FORMAT = "bittrue-conform-1"

REFUSED = "refused as it must"
# How a device can fail a model that it must refuse: by running it, or by ending or hanging over it.
ACCEPTS, NO_REFUSAL = "accepts what it must refuse", "no answer where it must refuse"
# The same of models that only the words of the specification forbid, while the suite's own runtime runs them.
ADVISED, PERMITS = "refuses what the specification forbids", "runs what the specification forbids"
NO_ADVICE = "no answer to what the specification forbids"
# What a case can come to: the first two are fine, three cost nothing, two cost level 0; `FAULTS` are of conduct.
_ANSWERED = ("exact", REFUSED, ADVISED, PERMITS, NO_ADVICE, "differs", "skipped", "no reference", ACCEPTS, NO_REFUSAL)
# Outcomes that are the device's own fault whatever the arithmetic.
FAULTS = (
    "wrong outputs",
    "changes its answers",
    "raised",
    "unreadable",
    "timed out",
    "crashed",
)
OUTCOMES = (*_ANSWERED, *FAULTS)
# Outcomes of models that must be refused, and of those that only the specification forbids.
MUST, SHOULD = (REFUSED, ACCEPTS, NO_REFUSAL), (ADVISED, PERMITS, NO_ADVICE)
# What an operator can come to, best first; `FAULTS` stand between the last two.
EXACT, COMBINED, TOLERATED, WRONG, SKIPPED = "exact", "exact to a combination", "within tolerance", "wrong", "skipped"
VERDICTS = (EXACT, COMBINED, TOLERATED, SKIPPED, WRONG, ACCEPTS, NO_REFUSAL, *FAULTS)
# Level 0 stands beside the others: a device may be exact and yet run models that it must refuse; then both is said.
LEVELS = (
    "refuses what it must",
    "within the derived tolerance of the operator",
    "within one unit of the last place, unbiased",
    "bit-exact to a named numerics",
    "bit-exact end to end on models and data",
)


@dataclass(frozen=True)
class Deviation:
    """How the device's integers stand to those of the reference, over all elements that were compared.

    Attributes:
        elements, differing: how many were compared, and have other bytes.
        above: how many of them are too large.
        largest: largest |device - reference|; None when values differ that are no integers.
        total, squares: sums of device - reference and of its square, exact; None as above.
    """

    elements: int = 0
    differing: int = 0
    above: int = 0
    largest: int | None = 0
    total: int | None = 0
    squares: int | None = 0

    @property
    def bias(self) -> float | None:
        """Mean of device - reference."""
        return None if self.total is None else self.total / max(self.elements, 1)

    @property
    def mean_square(self) -> float | None:
        """Mean of (device - reference)^2."""
        return None if self.squares is None else self.squares / max(self.elements, 1)

    def __add__(self, other: Deviation) -> Deviation:
        def both(one: int | None, two: int | None) -> int | None:
            return None if one is None or two is None else one + two

        open_end = self.largest is None or other.largest is None
        return Deviation(
            self.elements + other.elements,
            self.differing + other.differing,
            self.above + other.above,
            None if open_end else max(self.largest or 0, other.largest or 0),
            both(self.total, other.total),
            both(self.squares, other.squares),
        )


@dataclass(frozen=True)
class OutputTensor:
    """One output of the device.

    Attributes:
        name, dtype, shape: as the device gave it.
        sha256: of its bytes in C order.
        changed: base64 of zlib of (its bytes XOR those of the reference); empty when they are equal, or when there is
            nothing to compare them with.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    sha256: str
    changed: str = ""


@dataclass(frozen=True)
class CaseResult:
    """What one case came to.

    Attributes:
        identity, sha256, aim, note: of the suite's case; the digest is of its model and inputs.
        outcome: one of `OUTCOMES`.
        text: why: what the device said, or what is wrong with its outputs.
        outputs: what the device gave.
        seconds: the device took.
    """

    identity: str
    sha256: str
    aim: str
    note: str
    outcome: str
    text: str = ""
    outputs: tuple[OutputTensor, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Match:
    """Numerics that give every byte of every case of an operator, and by the same rules.

    Attributes:
        names: the numerics.
        deciding: slots and rules that tell them from numerics that do not match, as ``"rescale = q31_one_step_up"``;
            of several the heaviest first.
    """

    names: tuple[str, ...]
    deciding: tuple[str, ...] = ()


@dataclass(frozen=True)
class Class:
    """What the device does differently: with it the reference gives every byte of every case.

    Attributes:
        name: stable, ``"input zero point ignored"`` or ``"rescale=q31_one_step_up"``; two are joined by ``"and"``.
        text: for people.
        kind: as `bittrue.compare.result.Cause.kind`.
        legal: whether it only fills slots with rules that some numerics has for such an operator.
        also: other causes that all cases fit as well.
    """

    name: str
    text: str
    kind: str
    legal: bool = False
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """One input value of a reduced case: every value that is not listed is the zero point."""

    input: str
    position: int
    value: float


@dataclass(frozen=True)
class Failing:
    """The smallest failing case, and one element of it.

    Attributes:
        identity, note: of the case.
        output, element: which number.
        expected, got: what the reference stores there, and what the device gave.
        numbers: accumulator, multiplier, exponent, zero point ... as far as the operator has them.
        lines: the calculation: label, value, remark.
        numerics: the reference.
        reduced: the inputs that are left when everything is set to the zero point without which the device still
            fails at this element; None when nobody reduced it.
        reduced_expected, reduced_got: the element in the reduced case.
        replay: a command that runs the case on the device again.
    """

    identity: str
    note: str
    output: str
    element: tuple[int, ...]
    expected: float
    got: float
    numerics: str
    numbers: dict[str, float] = field(default_factory=dict)
    lines: tuple[tuple[str, str, str], ...] = ()
    reduced: tuple[Change, ...] | None = None
    reduced_expected: float | None = None
    reduced_got: float | None = None
    replay: str = ""


@dataclass(frozen=True)
class Limit:
    """How far two admitted numerics lie apart at most.

    Attributes:
        largest: of |a - b|.
        bias: largest |mean of a - b|.
        mean_square: largest mean of (a - b)^2.
    """

    largest: int
    bias: float
    mean_square: float


@dataclass(frozen=True)
class Bound:
    """The derived tolerance of an operator: see `bittrue.conformance.tolerance`.

    Attributes:
        largest, bias, mean_square: as in `Limit`, over all cases of the operator together but the wide ones.
        wide: cases in which admitted numerics part by more than one unit, each with the limit for it alone.
    """

    largest: int
    bias: float
    mean_square: float
    wide: dict[str, Limit] = field(default_factory=dict)


@dataclass(frozen=True)
class OperatorResult:
    """The verdict on one operator with one combination of types.

    Attributes:
        operator, types: as in the suite.
        verdict: one of `VERDICTS`.
        level: 1 to 3; 0 where the arithmetic is wrong; None where a case came to no proper answer, or nothing ran.
        refuses: whether every model that must be refused was refused (level 0).
        text: the verdict in one sentence.
        matches: the numerics that are exact on every case.
        every: all numerics that run these cases are exact.
        reference: the numerics that cases were compared with.
        cause: what the device does differently, where one thing explains every byte; None when it is exact or
            unexplained.
        described: where the device is not exact and nothing explains it: what is true of all differing elements.
        known: what the reference records of the runtime's difference from it in these cases; empty where the device
            is exact, or nothing is recorded.
        counts: outcome to number of cases.
        skipped: reason to number of cases that the device refused.
        deviation: from the reference.
        bound: the derived tolerance; None where it was not needed.
        failing: where the device is not exact.
        cases: all of them, in the suite's order.
    """

    operator: str
    types: str
    verdict: str
    level: int | None
    text: str
    matches: tuple[Match, ...] = ()
    refuses: bool = True
    every: bool = False
    reference: str = ""
    cause: Class | None = None
    described: tuple[str, ...] = ()
    known: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    deviation: Deviation = Deviation()
    bound: Bound | None = None
    failing: Failing | None = None
    cases: tuple[CaseResult, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All numerics that are exact on every case."""
        return tuple(name for match in self.matches for name in match.names)


@dataclass(frozen=True)
class ModelResult:
    """A whole model on data.

    Attributes:
        name: file name.
        sha256: of the file.
        inputs: what was fed, in words; one entry per run.
        inputs_sha256, outputs_sha256: of all inputs, of all of the device's outputs.
        matches: numerics that give every byte of every output.
        counts: outcome to number of runs.
        text: what went wrong, or how many elements differ from the nearest numerics.
    """

    name: str
    sha256: str
    inputs: tuple[str, ...]
    inputs_sha256: str
    outputs_sha256: str
    matches: tuple[str, ...]
    counts: dict[str, int]
    text: str = ""


@dataclass(frozen=True)
class Selection:
    """Which part of the suite was run.

    Attributes:
        operators, types, aims, cases: what was asked for; empty for all.
        shard: ``"2/5"``; empty for everything.
    """

    operators: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    aims: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    shard: str = ""


@dataclass(frozen=True, repr=False)
class ConformResult(Result):
    """Everything about one run: `passed` for tests, `claim` for people.

    Attributes:
        suite, suite_title, suite_version: which cases.
        selection: which of them.
        numerics: the only numerics that a claim may name; empty for any.
        device, device_title: what the user typed, and what it says it is.
        repeat: how often each case was asked.
        operators: verdicts, in the suite's order.
        models: with level 4.
        level: of the device: the least of all operators that ran; None where one has none.
        refuses: whether level 0 holds: every model that must be refused was refused.
        claimed: numerics that are exact for every operator that ran.
        claim: one sentence, ready to be quoted.
        seconds, version, date: of the run; the version is bittrue's.
        notes: what else the reader must know.
        digest: SHA-256 of all of the above.
    """

    suite: str
    suite_title: str
    suite_version: str
    selection: Selection
    numerics: str
    device: str
    device_title: str
    repeat: int
    operators: tuple[OperatorResult, ...]
    models: tuple[ModelResult, ...] = ()
    level: int | None = None
    refuses: bool = True
    claimed: tuple[str, ...] = ()
    claim: str = ""
    seconds: float = 0.0
    version: str = ""
    date: str = ""
    notes: tuple[str, ...] = ()
    digest: str = ""

    formats = (".json", ".html", ".md", ".xml")

    @property
    def headline(self) -> str:
        return self.claim or f"{self.device}: nothing is claimed"

    @property
    def passed(self) -> bool:
        """Whether something ran, every operator that ran is bit-exact to a named numerics, and nothing ran that must be
        refused.
        """
        return self.reaches(3)

    def reaches(self, level: int) -> bool:
        """Whether a level holds.

        Level 0 holds where every model that must be refused was refused. The others are about the arithmetic, and
        none holds where such a model ran; a device that ends without an answer over one loses level 0 alone.
        """
        if level == 0:
            return self.level is not None and self.refuses
        return self.level is not None and self.level >= level and not self.count(ACCEPTS)

    def count(self, *outcomes: str) -> int:
        """Cases with one of these outcomes; all without."""
        return sum(n for o in self.operators for k, n in o.counts.items() if not outcomes or k in outcomes)

    def operator(self, operator: str, types: str = "s8") -> OperatorResult:
        """The verdict on one operator.

        Raises:
            KeyError: it is not among those that were run.
        """
        for found in self.operators:
            if (found.operator, found.types) == (operator, types):
                return found
        raise KeyError(f"{operator} {types}")

    def sealed(self) -> ConformResult:
        """The result with its digest."""
        return replace(self, digest=digest_of(self.to_dict()))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        found: dict[str, Any] = {"format": FORMAT, "passed": self.passed, **plain(self)}
        return found

    @classmethod
    def from_dict(cls, data: Any, place: str = "result") -> ConformResult:
        """The result that `to_dict` made plain data of.

        Raises:
            InputError: it is none, or a damaged one; the place in it is named.
        """
        advice = "write one with `bittrue conform DEVICE --output RESULT.json`"
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise InputError("BT-RESULT", f"no conformance result of format {FORMAT}", place=place, advice=advice)
        try:
            return read(cls, data, place)
        except RecursionError:
            raise InputError("BT-RESULT", "nested too deeply", place=place) from None
        except InputError as error:
            raise InputError(error.code, error.message, place=error.place, advice=advice) from None


def digest_of(data: dict[str, Any]) -> str:
    """SHA-256 of a result's JSON without its digest: keys sorted, no spaces.

    Raises:
        InputError: it holds NaN or an infinity, which JSON does not know, or is nested too deeply.
    """
    rest = {key: value for key, value in data.items() if key != "digest"}
    try:
        text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise InputError("BT-RESULT", f"no JSON: {error}", place="result") from None
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
