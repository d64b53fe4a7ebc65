"""The same element under another numerics, or with one rule replaced: where two calculations part."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from .. import numerics as tables
from ..errors import MISFITS, BittrueError, InputError, UnsupportedError
from ..names import did_you_mean
from ..numerics import Numerics
from ..operators import Step
from ..plan import Plan
from ..rules import rules
from .element import explain_element
from .explanation import Explanation, Line


@dataclass(frozen=True)
class Pair:
    """One line of both calculations, or of one of them.

    Attributes:
        label: what it is.
        first, second: the line on either side; None where that side has none.
        differs: both sides have it, with different values.
    """

    label: str
    first: Line | None
    second: Line | None
    differs: bool


# The last rounding goes by several names.
_SAME = {"second rounding": "rounding", "one rounding": "rounding"}


def paired(first: Explanation, second: Explanation) -> list[Pair]:
    """Both calculations line by line, in order."""
    keys = [[_SAME.get(line.label, line.label) for line in side.lines] for side in (first, second)]
    pairs: list[Pair] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes():
        if kind == "equal":
            for one, other in zip(first.lines[a:b], second.lines[c:d], strict=True):
                label = one.label if one.label == other.label else _SAME.get(one.label, one.label)
                pairs.append(Pair(label, one, other, one.value != other.value))
            continue
        pairs += [Pair(line.label, line, None, False) for line in first.lines[a:b]]
        pairs += [Pair(line.label, None, line, False) for line in second.lines[c:d]]
    return pairs


def first_difference(pairs: list[Pair]) -> int | None:
    """Position of the first line whose values differ; None where all agree."""
    return next((position for position, pair in enumerate(pairs) if pair.differs), None)


def numerics_against(plan: Plan, step: Step, text: str) -> Numerics:
    """The numerics that `text` names, or the plan's own with one rule replaced.

    Args:
        plan, step: whose calculation is to be compared.
        text: name of a numerics, of a rule that fits a slot of the step, or ``slot=rule``.

    Raises:
        InputError: it names neither.
    """
    if text in tables.names():
        return tables.find(text)
    slot, separator, rule = text.rpartition("=")
    fitting = [name for name in step.rules if rule in rules(name) and (not separator or name == slot)]
    slots = fitting if separator else [name for name in fitting if step.rules[name] != rule]
    if len(slots) != 1:
        known = rules(slot) if slot in step.rules else {name: 0 for own in step.rules for name in rules(own)}
        message = f"is neither a numerics nor another rule of a slot of {step.operator}"
        slots_text = ", ".join(step.rules)
        advice = f"write a numerics (`bittrue numerics` lists them), a rule, or slot=rule; slots: {slots_text}"
        raise InputError(
            "BT-EXPLAIN-AGAINST",
            f"'{text}' fits several slots: {', '.join(slots)}" if slots else f"'{text}' {message}",
            place="--against",
            advice=f"write SLOT={rule}" if slots else did_you_mean(rule, [*known, *tables.names()], advice),
        )
    own = tables.find(plan.numerics)
    same = [row for row in own.rows if row.rules == step.rules]
    # A step may be carried out by another operator than its node's: then all rows with these rules are meant.
    meant = [row for row in same if row.operator == step.operator] or same
    rows = tuple(
        replace(row, rules={**row.rules, slots[0]: rule}) if any(row is one for one in meant) else row
        for row in own.rows
    )
    return replace(own, name=f"{own.name} with {slots[0]}={rule}", rows=rows)


@contextmanager
def sensible(text: str) -> Iterator[None]:
    """Typed errors for rules that cannot fill their slot in this operator, which shows while planning or running."""
    try:
        yield
    except MISFITS as error:
        raise InputError(
            "BT-EXPLAIN-AGAINST",
            f"'{text}' cannot be used here ({type(error).__name__}: {error})",
            place="--against",
            advice="choose a rule that some numerics uses for this operator",
        ) from None


def explain_under(
    other: Plan, values: Mapping[str, np.ndarray], explained: Explanation, result: np.ndarray | None = None
) -> Explanation:
    """The element of an explanation under another plan of the same model, from the same inputs of its step.

    `result`: what that plan makes of them, where it is known.

    Raises:
        UnsupportedError: the other plan has no such tensor, or computes it from tensors that `values` lacks.
    """
    with comparable(other, explained.tensor):
        return explain_element(other, values, explained.tensor, explained.element, result)


@contextmanager
def comparable(other: Plan, tensor: str) -> Iterator[None]:
    """Says of errors that they are about the other plan, and that it may compute a tensor from other tensors."""
    try:
        yield
    except InputError as error:
        raise UnsupportedError(
            "BT-EXPLAIN-AGAINST",
            f"under {other.numerics} '{tensor}' does not come from the same tensors: {error.message}",
            place="--against",
            advice="the two numerics rewrite the model differently here; `bittrue compare` compares such models",
        ) from None
    except BittrueError as error:
        place = f"--against {other.numerics}: {error.place}"
        raise type(error)(error.code, error.message, place=place, advice=error.advice) from None
