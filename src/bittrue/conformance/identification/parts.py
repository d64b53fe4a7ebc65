"""Devices that compute one operator in several ways: which of them depends on something that the model says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..properties import properties
from ..suite import SuiteCase
from .candidates import Answers, Candidate, key_of

# Fewer answers say nothing about a part.
_LEAST_ANSWERS = 3
# More parts than so many explain anything.
_MOST_PARTS = 3


@dataclass(frozen=True)
class Answered:
    """A question that was answered with outputs, which have this key."""

    case: SuiteCase
    key: object


@dataclass(frozen=True)
class Part:
    """Questions alike in something, and the numerics that give all their answers.

    Attributes:
        where: what they have in common: ``"weights per channel"``.
        numerics: names.
        answers: how many there were.
    """

    where: str
    numerics: tuple[str, ...]
    answers: int


def parts_of(answered: Sequence[Answered], candidates: Sequence[Candidate], known: Answers) -> tuple[Part, ...]:
    """The split into the fewest parts of which each has a numerics; empty where no single property gives one.

    Args:
        answered: all questions with outputs.
        candidates: numerics.
        known: what they give.
    """
    giving = [frozenset(c.name for c in candidates if _gives(c, one, known)) for one in answered]
    if not all(giving):
        return ()
    found: list[tuple[Part, ...]] = []
    described = [properties(one.case) for one in answered]
    for name in dict.fromkeys(name for words in described for name in words):
        groups: dict[str, list[frozenset[str]]] = {}
        for words, names in zip(described, giving, strict=True):
            groups.setdefault(words.get(name, f"no {name}"), []).append(names)
        common = {where: frozenset.intersection(*names) for where, names in groups.items()}
        if (
            1 < len(groups) <= _MOST_PARTS
            and all(common.values())
            and all(len(names) >= _LEAST_ANSWERS for names in groups.values())
        ):
            order = [candidate.name for candidate in candidates]
            found.append(
                tuple(
                    Part(where, tuple(sorted(names, key=order.index)), len(groups[where]))
                    for where, names in common.items()
                )
            )
    return min(found, key=len, default=())


def _gives(candidate: Candidate, one: Answered, known: Answers) -> bool:
    outputs = known.outputs(candidate, one.case)
    return outputs is not None and key_of(outputs) == one.key
