"""Where two numerics differ: operator by operator and type by type, with a number that tells two rules apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from .. import numerics as numerics_tables
from ..numerics import Numerics, Row
from ..rules.examples import Example, example

# Patterns with many optional inputs would expand to millions of signatures; these show two of them.
_MANY = 600

Signature = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class TableDifference:
    """One way in which two tables differ, for one operator.

    Attributes:
        operator: stem.
        signatures: the types for which it is so, as ``"s8 s8 s32 -> s8"``.
        condition: the conditions of the first numerics' row, of the second's; empty where there are none.
        slot: the slot whose rules differ; ``""`` when one of the numerics has no row (or refuses).
        rules: rule of the first and of the second; ``"-"`` where a numerics leaves the slot empty, ``"no row"``,
            ``"refused"`` or ``"runs"`` when `slot` is empty.
    """

    operator: str
    signatures: tuple[str, ...]
    condition: tuple[str, str]
    slot: str
    rules: tuple[str, str]


@dataclass(frozen=True)
class NumericsComparison:
    """What `compare_numerics` found.

    Attributes:
        first, second: names.
        same: number of signatures that both run by the same rules.
        differences: every difference, by operator.
        examples: per slot and pair of rules that differ, numbers for which they do (None where none was found).
    """

    first: str
    second: str
    same: int
    differences: tuple[TableDifference, ...]
    examples: dict[tuple[str, str, str], Example | None]


def compare_numerics(first: str, second: str, operator: str | None = None) -> NumericsComparison:
    """Compare two tables over every operator and type that either of them names.

    Args:
        first, second: names, as `bittrue.numerics_names()` lists them.
        operator: only this one.

    Raises:
        InputError: an unknown name.
    """
    tables = numerics_tables.find(first), numerics_tables.find(second)
    stems = sorted({*tables[0].operators(), *tables[1].operators()})
    same = 0
    found: dict[tuple[str, tuple[str, str], str, tuple[str, str]], list[str]] = {}
    for stem in stems:
        if operator is not None and stem != operator:
            continue
        for signature in _signatures(stem, tables):
            parts = list(_parts(stem, signature, tables))
            same += not parts
            for condition, slot, rules in parts:
                found.setdefault((stem, condition, slot, rules), []).append(_text(signature))
    differences = tuple(
        TableDifference(stem, tuple(texts), condition, slot, rules)
        for (stem, condition, slot, rules), texts in found.items()
    )
    pairs = sorted({(d.slot, *d.rules) for d in differences if d.slot and "-" not in d.rules})
    return NumericsComparison(first, second, same, differences, {pair: example(*pair) for pair in pairs})


def _signatures(stem: str, tables: tuple[Numerics, Numerics]) -> list[Signature]:
    """Every combination of types that a row of either table names, in the order of the tables."""
    found: dict[Signature, None] = {}
    for table in tables:
        for row in table.rows_of(stem):
            found.update(dict.fromkeys(row.signatures(_MANY)))
    return list(found)


def _parts(
    stem: str, signature: Signature, tables: tuple[Numerics, Numerics]
) -> Iterator[tuple[tuple[str, str], str, tuple[str, str]]]:
    ours, theirs = (tuple(row for row in table.candidates(stem, *signature) if not row.on_request) for table in tables)
    if [_decision(row) for row in ours] == [_decision(row) for row in theirs]:
        return
    if not ours or not theirs:
        yield ("", ""), "", (_outcome(ours), _outcome(theirs))
        return
    # Of rows with equal conditions only the first one is ever taken.
    ours, theirs = (tuple({row.when: row for row in reversed(rows)}.values())[::-1] for rows in (ours, theirs))
    shared = {row.when for row in ours} & {row.when for row in theirs}
    for one, other in product(ours, theirs):
        # Rows with equal conditions meet each other alone, and none meets one that its own conditions exclude.
        if _exclude(one, other) or (one.when != other.when and one.when in shared and other.when in shared):
            continue
        # Nor does a row meet one whose conditions, with its own, already ask for an earlier row.
        if _taken_before(one, other, ours) or _taken_before(other, one, theirs):
            continue
        condition = (_condition(one), _condition(other))
        if one.refuses or other.refuses:
            if bool(one.refuses) != bool(other.refuses):
                yield condition, "", (_outcome((one,)), _outcome((other,)))
            continue
        for slot in sorted({*one.rules, *other.rules}):
            rules = one.rules.get(slot, "-"), other.rules.get(slot, "-")
            if rules[0] != rules[1]:
                yield condition, slot, rules


def _exclude(one: Row, other: Row) -> bool:
    """Whether the rows ask for different values of one attribute."""
    asked = [
        {arguments[0]: set(arguments[1:]) for name, *arguments in row.when if name == "attribute_is"}
        for row in (one, other)
    ]
    return any(asked[0][name].isdisjoint(asked[1][name]) for name in asked[0].keys() & asked[1].keys())


def _taken_before(row: Row, other: Row, rows: tuple[Row, ...]) -> bool:
    """Whether a row of `rows` ahead of `row` is taken wherever the conditions of both `row` and `other` hold."""
    both = {*row.when, *other.when}
    return any(both.issuperset(earlier.when) for earlier in rows[: rows.index(row)])


def _decision(row: Row) -> tuple[object, ...]:
    return row.when, tuple(sorted(row.rules.items())), bool(row.refuses)


def _outcome(rows: tuple[Row, ...]) -> str:
    return "no row" if not rows else "refused" if all(row.refuses for row in rows) else "runs"


def _condition(row: Row) -> str:
    return ", ".join(" ".join(map(str, condition)) for condition in row.when)


def _text(signature: Signature) -> str:
    return " -> ".join(" ".join(side) for side in signature)
