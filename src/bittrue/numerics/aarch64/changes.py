"""Rows of a table as another processor has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...records import dataclass, field, replace
from ..processors import identity, on_aarch64
from ..table import Numerics, Row

RUN = "run on aarch64 under qemu; docs/aarch64.md"
_AS_OTHERS = "the rule of other rows that were run on aarch64 under qemu; docs/aarch64.md"


@dataclass(frozen=True)
class Change:
    """What becomes of the rows of one operator.

    Attributes:
        operator: stem.
        rules: for each slot the rule that a row has on x86-64 and the one that it has here (None: none); rows without
            all of the former are left as they are.
        inputs, outputs: types of a row's first operand and result; all when empty.
        when: conditions that a row must have.
        keeps: conditions under which a row stays what it is on x86-64.
        ways: conditions under which other rules than these take some of their slots, and which.
        limit: how often the results are other ones all the same, beside the row's own limit; None: that one is not
            true here, and there is no other.
        odd: whether the limit is about operands that no quantizer writes, and all else is exact.
        exact: whether results are the runtime's here although they may not be on x86-64.
    """

    operator: str
    rules: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    when: tuple[tuple[object, ...], ...] = ()
    keeps: tuple[tuple[object, ...], ...] = ()
    ways: tuple[tuple[tuple[tuple[object, ...], ...], Mapping[str, str]], ...] = ()
    limit: str | None = ""
    odd: bool = False
    exact: bool = False

    def fits(self, row: Row) -> bool:
        """Whether the row is one of those that change."""
        if row.operator != self.operator or row.refuses or not set(self.when) <= set(row.when):
            return False
        inputs, outputs = next(row.signatures(1))
        if (self.inputs and inputs[0] not in self.inputs) or (self.outputs and outputs[0] not in self.outputs):
            return False
        return all(row.rules.get(slot) == before for slot, (before, _) in self.rules.items())

    def apply(self, row: Row) -> Iterator[Row]:
        """What stands in place of the row."""
        if self.keeps:
            yield replace(row, when=(*row.when, *self.keeps), evidence=RUN)
        after = {slot: rule for slot, (_, rule) in self.rules.items()}
        rules = {slot: rule for slot, rule in {**row.rules, **after}.items() if rule is not None}
        limit = "" if self.limit is None else ". ".join(filter(None, (self.limit, "" if self.exact else row.limit)))
        inexact = not self.exact and (row.inexact or bool(self.limit and not self.odd))
        for conditions, others in (*self.ways, ((), {})):
            yield replace(
                row,
                rules={**rules, **others},
                when=(*row.when, *conditions),
                evidence=RUN,
                limit=limit,
                inexact=inexact,
            )


def changed(
    table: Numerics, changes: Iterable[Change], unseen_is_inexact: bool = False, counted: str = ""
) -> tuple[Row, ...]:
    """The rows of a table for x86-64, each as the first change that fits it makes it.

    Where none does, a row that was seen to differ is inexact, with how often it did; with `unseen_is_inexact` so is
    one that follows rules and was in no model that ran there. Rows are looked up under the name `counted`, if there is
    one; those that are as on x86-64 and were in no model judged by it, under the table's own.
    """
    changes = tuple(changes)
    found: list[Row] = []
    for row in table.rows:
        change = next((change for change in changes if change.fits(row)), None)
        if change is None:
            own = identity(row) in on_aarch64().get(counted, {})
            found.append(_counted(counted if own else table.name, row, unseen_is_inexact))
        elif counted and not change.limit:
            found += (_counted(counted, one, unseen_is_inexact) for one in change.apply(row))
        else:
            seen = on_aarch64().get(counted, {})
            unseen = unseen_is_inexact and bool(counted)
            rows = change.apply(row)
            found += (_counted(counted, one, True) if unseen and identity(one) not in seen else one for one in rows)
    return tuple(found)


def as_run(name: str, rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows of a table, of which those that no model took there do not say that they were run."""
    seen = on_aarch64().get(name, {})
    return tuple(
        replace(row, evidence=_AS_OTHERS) if row.evidence == RUN and identity(row) not in seen else row for row in rows
    )


def _counted(name: str, row: Row, unseen_is_inexact: bool) -> Row:
    counts = on_aarch64().get(name, {}).get(identity(row), {})
    differ = counts.get("differ", 0)
    if not row.refuses and not counts and row.rules and unseen_is_inexact:
        limit = "no model with such a node was run on aarch64"
    elif row.refuses or not differ:
        return row
    else:
        limit = f"on aarch64 {differ} of {sum(counts.values())} models with such a node gave other bits"
    return replace(row, limit=". ".join(filter(None, (limit, row.limit))), inexact=True)
