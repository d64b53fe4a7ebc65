"""The mutation score: which mutants of an operator the suite kills, and which ones random cases alone would kill."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass, field
from itertools import count
from typing import Any

import numpy as np

from ...errors import BittrueError
from ...numerics import Numerics
from ...numerics import find as find_numerics
from ...runners.guard import process_pool, without_interrupts
from ..expected import same_bytes
from ..suite import SuiteCase
from ..suite.draft import generator
from ..suite.suites import Suite
from .indistinguishable import claim_of
from .mutants import Subject

FORMAT = "bittrue-mutation-1"
# Random inputs are drawn until they give as many elements as the whole suite, but no more often than so.
_MOST_DRAWS = 64


@dataclass(frozen=True)
class MutantScore:
    """What became of one mutant.

    Attributes:
        name, family, text: as in `Mutant`.
        killed_by: identity of the first case that tells it from the right arithmetic; empty for survivors.
        random: whether the suite's random cases alone kill it.
        inflated: whether they do with so many more random inputs that they give as many elements as the whole suite.
        indistinguishable: for survivors: why no input can tell it apart; empty where that is not known.
    """

    name: str
    family: str
    text: str
    killed_by: str = ""
    random: bool = False
    inflated: bool = False
    indistinguishable: str = ""


@dataclass(frozen=True)
class OperatorScore:
    """The score of one operator.

    Attributes:
        operator, types: as in the suite.
        numerics: the arithmetic that is right.
        cases, elements: of the suite: cases that must run, and elements of their outputs.
        random_cases, random_elements: the random ones among them.
        inflated_elements: elements of the inflated random part.
        digest: of the cases: of their names, models and inputs.
        mutants: all that ran on at least one case.
    """

    operator: str
    types: str
    numerics: str
    cases: int
    elements: int
    random_cases: int
    random_elements: int
    inflated_elements: int
    digest: str = ""
    mutants: tuple[MutantScore, ...] = field(default=())

    @property
    def distinguishable(self) -> tuple[MutantScore, ...]:
        """All but those of which it is known that no input tells them apart."""
        return tuple(m for m in self.mutants if not m.indistinguishable)

    @property
    def killed(self) -> tuple[MutantScore, ...]:
        return tuple(m for m in self.mutants if m.killed_by)

    @property
    def survivors(self) -> tuple[MutantScore, ...]:
        """Gaps of the suite."""
        return tuple(m for m in self.mutants if not m.killed_by and not m.indistinguishable)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **asdict(self),
            "distinguishable": len(self.distinguishable),
            "killed": len(self.killed),
            "killed_by_random": sum(m.random for m in self.mutants),
            "killed_by_inflated_random": sum(m.inflated for m in self.mutants),
        }


def score(
    suite: Suite,
    operators: Collection[str] = (),
    types: Collection[str] | None = None,
    numerics: str = "",
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[OperatorScore]:
    """Score operators of a suite.

    Args:
        suite: whose cases are scored.
        operators: as files call them; all when empty.
        types: labels; the suite's own by default, all when empty.
        numerics: the arithmetic that is right; the suite's own when empty.
        jobs: processes to use.
        progress: called with operators done and operators in all.

    Raises:
        InputError: an operator, type or numerics that is not known.
    """
    own = find_numerics(numerics or suite.numerics)
    types = suite.types if types is None else types
    # Asking for cases checks the words.
    operators = suite.named(operators)
    next(suite.cases(operators, types), None)
    wanted = [
        (operator, label)
        for operator, found in suite.generators().items()
        if not operators or operator in operators
        for label in found.types
        if not types or label in types
    ]
    if progress is not None:
        progress(0, len(wanted))
    scores: dict[tuple[str, str], OperatorScore | None] = {}
    if jobs == 1 or len(wanted) == 1:
        for done, (operator, label) in enumerate(wanted, 1):
            scores[operator, label] = score_operator(suite, operator, label, own)
            if progress is not None:
                progress(done, len(wanted))
    else:
        with process_pool(jobs) as pool:
            with without_interrupts():
                tasks = {pool.submit(_task, suite.name, *pair, own.name): pair for pair in wanted}
            for done, task in enumerate(as_completed(tasks), 1):
                scores[tasks[task]] = task.result()
                if progress is not None:
                    progress(done, len(wanted))
    return [found for pair in wanted if (found := scores[pair]) is not None]


def _task(suite: str, operator: str, types: str, numerics: str) -> OperatorScore | None:
    from ..suite.suites import find_suite

    return score_operator(find_suite(suite), operator, types, find_numerics(numerics))


def score_operator(suite: Suite, operator: str, types: str, numerics: Numerics) -> OperatorScore | None:
    """The score of one operator and type; None where the numerics runs none of its cases."""
    return score_cases([case for case in suite.cases([operator], [types]) if not case.rejects], numerics)


def score_cases(cases: Sequence[SuiteCase], numerics: Numerics) -> OperatorScore | None:
    """The score of the cases of one operator and type; None where the numerics runs none of them."""
    subjects = []
    for case in cases:
        try:
            subjects.append(Subject(case, numerics))
        except BittrueError:
            continue
    if not subjects:
        return None
    # Small cases first: most mutants are killed by any case.
    subjects.sort(key=_size)
    random = [s for s in subjects if s.case.aim == "random"]
    board = _Board()
    for subject in random:
        board.judge(subject)
    by_random = board.killed()
    for subject in subjects:
        if subject.case.aim != "random":
            board.judge(subject)
    by_suite = board.killed()
    elements = sum(map(_size, subjects))
    drawn, by_inflated = sum(map(_size, random)), set(by_random)
    for subject in _inflated(random, elements, numerics):
        drawn += _size(subject)
        by_inflated |= board.killers_among(subject, by_inflated)
    first = subjects[0].case
    return OperatorScore(
        first.operator,
        first.types,
        numerics.name,
        len(subjects),
        elements,
        len(random),
        sum(map(_size, random)),
        drawn,
        digest_of(cases),
        tuple(
            MutantScore(
                name,
                family,
                text,
                by_suite.get(name, ""),
                name in by_random,
                name in by_inflated,
                "" if name in by_suite else _reason(first, name, numerics.name),
            )
            for name, (family, text) in board.ran.items()
        ),
    )


def digest_of(cases: Iterable[SuiteCase]) -> str:
    """16 hexadecimal digits that change when the name, the model or an input of a case does."""
    found = hashlib.sha256()
    for case in cases:
        found.update(f"{case.identity} {case.sha256}\n".encode())
    return found.hexdigest()[:16]


def _reason(case: SuiteCase, name: str, numerics: str) -> str:
    """Why no input tells the mutant apart; empty where that is not known."""
    claim = claim_of(case.operator, name, case.types, numerics)
    return "" if claim is None else claim.reason


def _size(subject: Subject) -> int:
    return sum(value.size for value in subject.expected.values())


class _Board:
    """Mutants that ran, and what killed them."""

    def __init__(self) -> None:
        self.ran: dict[str, tuple[str, str]] = {}
        self._killers: dict[str, str] = {}

    def judge(self, subject: Subject) -> None:
        """Run all mutants on a case that are alive."""
        for mutant in subject.mutants():
            if mutant.name in self._killers:
                continue
            found = mutant.outputs()
            if found is None:
                continue
            self.ran.setdefault(mutant.name, (mutant.family, mutant.text))
            if not same_bytes(found, subject.expected):
                self._killers[mutant.name] = subject.case.identity

    def killed(self) -> dict[str, str]:
        """Names of mutants to identities of cases."""
        return dict(self._killers)

    def killers_among(self, subject: Subject, known: Collection[str]) -> set[str]:
        """Names of mutants that the case kills, but for `known` ones and those that ran nowhere before."""
        return {
            mutant.name
            for mutant in subject.mutants()
            if mutant.name in self.ran
            and mutant.name not in known
            and (found := mutant.outputs()) is not None
            and not same_bytes(found, subject.expected)
        }


def _inflated(random: Sequence[Subject], elements: int, numerics: Numerics) -> Iterator[Subject]:
    """The random cases with further random inputs, until they give as many elements as asked for."""
    left = elements - sum(map(_size, random))
    if not random:
        return
    for draw in count():
        for subject in random:
            if left <= 0 or draw == _MOST_DRAWS:
                return
            left -= _size(subject)
            inputs = drawn_inputs(subject.case, draw)
            try:
                yield Subject(subject.case, numerics, inputs)
            except BittrueError:
                continue


def drawn_inputs(case: SuiteCase, *words: object) -> Mapping[str, np.ndarray]:
    """Other random inputs of a case, of the same types, shapes and ranges."""
    numbers = generator("inflated", case.identity, *words)
    found = {}
    for name, value in case.inputs.items():
        if value.dtype.kind in "iu" and value.size:
            found[name] = numbers.integers(value.min(), value.max(), value.shape, value.dtype, endpoint=True)
        elif value.dtype.kind == "f":
            drawn = numbers.standard_normal(value.shape) * (float(value.std()) or 1.0)
            found[name] = np.asarray(drawn, value.dtype)
        else:
            found[name] = numbers.permutation(value.reshape(-1)).reshape(value.shape)
    return found
