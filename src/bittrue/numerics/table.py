"""A numerics: the named arithmetic of one runtime, as data. No loops over values and no arithmetic live here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import product
from math import prod

from ..records import dataclass, field, replace

ABSENT = "-"
# The condition that a node alone decides, without shapes and values.
OF_ATTRIBUTES = "attribute_is"


@dataclass(frozen=True)
class Row:
    """One line of the table: for this operator and these types, which rule fills which slot, and who says so.

    Attributes:
        operator: stem.
        types: patterns ``"inputs -> outputs"``, alternatives allowed. A pattern is words separated by spaces; a word is
            a type, several types joined by ``|``, ``-`` for an absent input, ``*`` for any type with a fixed size, or
            ``T`` for one of the types in `where` (the same one everywhere in the pattern). ``...`` after the last word
            of a side repeats it any number of times.
        rules: slot to rule name.
        evidence: what was run or read, and how often it agreed.
        where: the types that ``T`` stands for.
        when: conditions by name and arguments (see `bittrue.operators.conditions`) under which the runtime takes this
            way; a node for which one of them does not hold belongs to a later row.
        requires: checks by name and arguments (see `bittrue.operators.requirements`) that refuse a node.
        limit: a recorded known difference from the runtime, with its reason; empty when there is none.
        inexact: the limit is that results differ from the runtime's in bits, as `limit` says how and how often. Plans
            say so at every such step, and differential tests compare nothing that follows from it.
        refuses: when set, the row's meaning is that this runtime has no defined result, and why.
        advice: for rows that refuse, what to do instead.
        on_request: only a node that asks for it by an attribute takes this row, whatever the numerics' own choice is;
            comparisons of tables leave it out.
    """

    operator: str
    types: tuple[str, ...]
    rules: Mapping[str, str] = field(default_factory=dict)
    evidence: str = ""
    where: tuple[str, ...] = ()
    when: tuple[tuple[object, ...], ...] = ()
    requires: tuple[tuple[object, ...], ...] = ()
    limit: str = ""
    inexact: bool = False
    refuses: str = ""
    advice: str = "use types that the runtime's kernel checks and supports, or another numerics"
    on_request: bool = False

    def matches(self, inputs: Iterable[str], outputs: Iterable[str]) -> bool:
        """Whether input and output types (``-`` for absent inputs) fit one of the patterns."""
        inputs, outputs = tuple(inputs), tuple(outputs)
        fit = _fit if len(inputs) + len(outputs) <= _REMEMBERED else _fit.__wrapped__
        return fit(self.types, self.where, inputs, outputs)

    def fits(self, attributes: Mapping[str, object]) -> bool:
        """Whether no condition about an attribute speaks against the row."""
        told = (condition[1:] for condition in self.when if condition[0] == OF_ATTRIBUTES)
        return all(attributes.get(str(name)) in values for name, *values in told)

    def signatures(self, limit: int) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Every combination of types that the row stands for; ``...`` becomes two of its kind.

        A pattern with more than `limit` of them gives the one of all first and the one of all last alternatives.
        """
        for pattern, generic in product(self.types, self.where or ("",)):
            sides = [side.split() for side in pattern.split("->")]
            words = [
                [*side[:-1], *[side[-1][:-3]] * 2] if side and side[-1].endswith("...") else side for side in sides
            ]
            choices = [
                sorted(_ANY) if word == "*" else [generic if part == "T" else part for part in word.split("|")]
                for side in words
                for word in side
            ]
            split = len(words[0])
            if prod(map(len, choices)) > limit:
                yield from {
                    (tuple(chosen[:split]), tuple(chosen[split:]))
                    for chosen in ([c[0] for c in choices], [c[-1] for c in choices])
                }
            else:
                for combination in product(*choices):
                    yield combination[:split], combination[split:]

    def patterns(self) -> frozenset[str]:
        """The row's patterns with each of the types that ``T`` stands for."""
        return frozenset(
            re.sub(r"\bT\b", generic, pattern) for pattern, generic in product(self.types, self.where or ("T",))
        )


def reached(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows that a node can take: without those all of whose patterns earlier rows have, under conditions that are
    among theirs.

    >>> first, second = Row("add", ("T -> T",), where=("s8", "u8")), Row("add", ("s8 -> s8",), when=(("any",),))
    >>> reached((first, second)) == (first,), reached((second, first)) == (second, first)
    (True, True)
    """
    found: list[Row] = []
    before: dict[str, list[tuple[frozenset[str], frozenset[tuple[object, ...]]]]] = {}
    for row in rows:
        own, patterns, when = before.setdefault(row.operator, []), row.patterns(), frozenset(row.when)
        if patterns <= frozenset().union(*(others for others, conditions in own if conditions <= when)):
            continue
        found.append(row)
        if not row.on_request:
            own.append((patterns, when))
    return tuple(found)


# Types without a fixed element size never match `*`: no operator here moves strings or handles.
_ANY = frozenset(
    (
        "s2 s4 s8 s16 s32 s64 u2 u4 u8 u16 u32 u64 f16 bf16 f32 f64 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0 f6e2m3"
        " f6e3m2 f4e2m1 c64 c128 bool"
    ).split()
)


# Planning asks the same of the same rows for every model; of nodes with more types than this nothing is kept.
_REMEMBERED = 32


@lru_cache(1 << 14)
def _fit(patterns: tuple[str, ...], where: tuple[str, ...], inputs: tuple[str, ...], outputs: tuple[str, ...]) -> bool:
    return any(_match(pattern, (inputs, outputs), where) for pattern in patterns)


def _match(pattern: str, wanted: tuple[tuple[str, ...], tuple[str, ...]], where: tuple[str, ...]) -> bool:
    sides = [side.split() for side in pattern.split("->")]
    for generic in where or ("",):
        if all(_match_side(words, types, generic) for words, types in zip(sides, wanted, strict=True)):
            return True
    return False


def _match_side(words: list[str], types: tuple[str, ...], generic: str) -> bool:
    repeated = bool(words) and words[-1].endswith("...")
    if repeated:
        words = [*words[:-1], words[-1][:-3]]
        words += words[-1:] * (len(types) - len(words))
    # Trailing inputs that are absent need not be written in the file.
    types = types + (ABSENT,) * (len(words) - len(types))
    return len(words) == len(types) and all(
        _match_word(word, found, generic) for word, found in zip(words, types, strict=True)
    )


def _match_word(word: str, found: str, generic: str) -> bool:
    if word == "*":
        return found in _ANY
    return found in (generic if part == "T" else part for part in word.split("|"))


@dataclass(frozen=True)
class Numerics:
    """A table of rows under the name of the runtime that it reproduces.

    Attributes:
        name: what users type, for example ``"litert"``.
        reproduces: the runtime, version and mode.
        verified: how the table was verified, in one sentence.
        rows: the first row whose types and conditions match a node is taken.
        versions: oldest and newest version that the runtime knows of an operator as files call it; (1, 1) for those not
            named.
        rewrites: what the runtime does to a graph before it runs it, in order (see `bittrue.rewrites`).
        prepares_constants: kernels prepare operands that are constants of the graph after the rewrites, and no others
            whose values follow from the file.
        unpacks: operators with the types that they read, whose results of constants such kernels take for constants.
        completes: the numerics whose results this one has for every node, too; it goes on where that one has none, or
            rewrites graphs otherwise. What asks which arithmetic explains some bits need not ask both (see
            `bittrue.numerics.distinct`).
        limit: a recorded known difference from the runtime that any row on real numbers may have; empty when there is
            none. Plans say it in a note.
        goes_on: the numerics that has bits for shifts which this one refuses, as errors about them say.
    """

    name: str
    reproduces: str
    verified: str
    rows: tuple[Row, ...]
    versions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    rewrites: tuple[str, ...] = ()
    prepares_constants: bool = False
    unpacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    completes: str = ""
    limit: str = ""
    goes_on: str = ""

    def __repr__(self) -> str:
        return f"Numerics('{self.name}', {len(self.operators())} operators, {len(self.rows)} rows: {self.reproduces})"

    @cached_property
    def _candidates(self) -> dict[tuple[str, tuple[str, ...], tuple[str, ...]], tuple[Row, ...]]:
        """What `candidates` has found: several nodes of a model, which are looked at more than once, ask the same."""
        return {}

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        grouped: dict[str, list[int]] = {}
        for place, row in enumerate(self.rows):
            grouped.setdefault(row.operator, []).append(place)
        return grouped

    def changed(self, operator: str, change: Callable[[Row], Row]) -> Numerics:
        """The table with other rows of one operator. Searches make thousands of them."""
        rows = list(self.rows)
        for place in self._places.get(operator, ()):
            rows[place] = change(rows[place])
        found = replace(self, rows=tuple(rows))
        # The operators are where they were.
        found.__dict__["_places"] = self._places
        return found

    def operators(self) -> tuple[str, ...]:
        """Stems that have at least one row."""
        return tuple(self._places)

    def rows_of(self, operator: str) -> Iterator[Row]:
        """The rows of an operator, in order."""
        return map(self.rows.__getitem__, self._places.get(operator, ()))

    def candidates(self, operator: str, inputs: Iterable[str], outputs: Iterable[str]) -> tuple[Row, ...]:
        """The rows with these types, in order, up to the first one without conditions; which of them holds is for
        the planner to find out, who knows shapes, values and parameters.
        """
        inputs, outputs = tuple(inputs), tuple(outputs)
        known = self._candidates.get((operator, inputs, outputs))
        if known is not None:
            return known
        found = []
        for row in self.rows_of(operator):
            if row.matches(inputs, outputs):
                found.append(row)
                if not row.when:
                    break
        known = tuple(found)
        if found and len(inputs) + len(outputs) <= _REMEMBERED:
            self._candidates[operator, inputs, outputs] = known
        return known

    def find(self, operator: str, inputs: Iterable[str], outputs: Iterable[str]) -> Row | None:
        """The row for an operator with these types that asks for no conditions, or None."""
        found = self.candidates(operator, inputs, outputs)
        return found[-1] if found and not found[-1].when else None

    def knows(self, source: str, version: int) -> bool:
        """Whether the runtime has this version of an operator, by the file's name for it; without any `versions`, it
        has all of them.
        """
        if not self.versions:
            return True
        oldest, newest = self.versions.get(source, (1, 1))
        return oldest <= version <= newest

    def runs(
        self,
        operator: str,
        source: str,
        version: int,
        inputs: Iterable[str],
        outputs: Iterable[str],
        attributes: Mapping[str, object],
    ) -> bool:
        """Whether a row gives this operator, version and types a defined result: under its conditions, of which those
        about attributes are looked at.
        """
        rows = self.candidates(operator, inputs, outputs)
        return any(not row.refuses and row.fits(attributes) for row in rows) and self.knows(source, version)

    def alternatives(self, operator: str) -> tuple[str, ...]:
        """All type patterns that the table has for an operator, for error messages."""
        found = (
            pattern.replace("T", "|".join(row.where)) if row.where else pattern
            for row in map(self.rows.__getitem__, self._places.get(operator, ()))
            if not row.refuses
            for pattern in row.types
        )
        return tuple(dict.fromkeys(found))
