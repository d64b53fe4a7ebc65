"""Other rules: whole rows of other numerics, single slots, pairs of slots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

from ... import numerics as numerics_tables
from ...graph import Graph, Node
from ...numerics import Numerics, Row
from ...plan import Plan
from ...plan.support import node_types
from ...rules import formula, rescale, rules
from ..result import Cause
from .case import Case, Hypothesis

ABSENT = "-"
# Slots whose rules may lose what the operator is about; other rules are other legal arithmetic.
_LOSSY = frozenset(("accumulate", "byte_products", "read_as", "shift_count"))
_KINDS = {
    "accumulate": "range",
    "byte_products": "range",
    "activation_range": "range",
    "input_range": "range",
    "plain_range": "range",
    "read_as": "range",
    "shift_count": "parameters",
    "scale_form": "parameters",
    "scale_form_per_axis": "parameters",
    "store": "order",
    "store_tail": "order",
    "order": "order",
    "real_sum": "order",
    "sum_of_products": "order",
    "lanes": "order",
    "row_sums": "order",
    "table": "table",
    "sigmoid": "table",
    "softmax": "table",
    "log_softmax": "table",
    "hard_swish": "table",
    "real_function": "table",
}
_WORDS = {
    "rounding": "another rounding scheme",
    "order": "another order of operations",
    "table": "another formula or table",
    "range": "another range of values",
    "parameters": "another form of the multiplier",
}


@dataclass(frozen=True)
class Place:
    """Nodes of a segment that one row serves: operator and types."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Slot:
    """One slot in which B may differ: its rule, A's rule; ``"-"`` where a side has no such slot."""

    place: Place
    slot: str
    rule: str
    instead: str


def places(case: Case) -> dict[Place, dict[str, str]]:
    """The rows that A's plan of the segment uses, by operator and types: slot to rule."""
    graph = case.segment.graph
    used = {step.index: dict(step.rules) for step in case.plan.steps}
    return {place_of(graph, node): used[node.index] for node in graph.nodes if node.index in used}


def place_of(graph: Graph, node: Node) -> Place:
    """Operator and types of a node."""
    inputs, outputs = node_types(graph, node)
    return Place(node.operator, tuple(inputs), tuple(outputs))


def with_rules(numerics: Numerics, place: Place, changes: Mapping[str, str]) -> Numerics:
    """The table with other rules at one place; a slot with the rule ``"-"`` is taken out. Checks are left out, too."""

    def changed(row: Row) -> Row:
        if row.refuses or not row.matches(place.inputs, place.outputs):
            return row
        filled = {slot: rule for slot, rule in {**row.rules, **changes}.items() if rule != ABSENT}
        return replace(row, rules=filled, requires=())

    return numerics.changed(place.operator, changed)


def rule_hypothesis(case: Case, slots: tuple[Slot, ...], users: tuple[str, ...] = ()) -> Hypothesis:
    """All of `slots` (of one place) filled with B's rules."""
    place = slots[0].place
    changes = {s.slot: s.rule for s in slots}
    return Hypothesis(
        rule_cause(case, slots, users),
        " ".join(sorted(changes)),
        numerics=lambda numerics: with_rules(numerics, place, changes),
        slots=slots,
    )


def refilled(case: Case, slots: tuple[Slot, ...]) -> Iterator[Hypothesis]:
    """Slots that were filled differently in another part, filled so wherever this part has such an operator."""
    for place, own in places(case).items():
        here = tuple(Slot(place, s.slot, s.rule, own.get(s.slot, ABSENT)) for s in slots)
        if place.operator == slots[0].place.operator and all(s.rule != s.instead for s in here):
            yield rule_hypothesis(case, here)


def of_step(case: Case, theirs: Mapping[str, str], users: tuple[str, ...]) -> Iterator[Hypothesis]:
    """The rules of B's own step, in the slots that A's step has as well; the smallest sets that may suffice first."""
    own = case.step.rules
    node = next((node for node in case.segment.graph.nodes if node.index == case.step.index), None)
    if node is None:
        return
    place = place_of(case.segment.graph, node)
    slots = [Slot(place, s, theirs[s], own[s]) for s in sorted(own) if theirs.get(s, own[s]) != own[s]]
    for chosen in sufficient(slots) if slots else ():
        yield rule_hypothesis(case, chosen, users)


def rule_cause(case: Case, slots: tuple[Slot, ...], users: tuple[str, ...] = ()) -> Cause:
    """What to say of one or several slots that only together give B's bits."""
    named = [s for s in slots if s.rule != ABSENT] or list(slots)
    gone = [s for s in slots if s.rule == ABSENT]
    main = min(named, key=lambda s: _WEIGHT.get(s.slot, 1))
    users = users or users_of(named)
    kind = _KINDS.get(main.slot, "rounding")
    instead = main.instead
    if instead == ABSENT:
        instead = ", ".join(f"{s.slot} = {s.instead}" for s in gone) or "none"
    benign = not any(s.slot in _LOSSY for s in named) and (bool(users) or case.largest in (0, 1))
    what = " with ".join(f"`{s.slot} = {s.rule}`" for s in sorted(named, key=lambda s: _WEIGHT.get(s.slot, 1)))
    judged = _WORDS[kind] + (", benign" if benign else "")
    return Cause(
        name=" + ".join(f"{s.slot}={s.rule}" for s in sorted(named, key=lambda s: _WEIGHT.get(s.slot, 1))),
        text=f"{what} instead of `{instead}`: {judged}",
        kind=kind,
        benign=benign,
        slot=main.slot,
        rule=main.rule,
        instead=instead,
        numerics=users,
        formula=_formulas(named),
    )


# Of several slots the heaviest decision names the cause.
_WEIGHT = {"accumulate": -3, "rescale": -2, "requantize": -2, "store": 2, "activation_range": 3, "scale_form": 2}


def _formulas(named: Sequence[Slot]) -> str:
    """What the rules compute; several are told apart by their slots."""
    found = {slot.slot: text for slot in named if (text := _formula(slot))}
    if len(found) == 1:
        return next(iter(found.values()))
    return "; ".join(f"{name}: {text.rstrip('.')}" for name, text in found.items())


def _formula(slot: Slot) -> str:
    return formula(slot.slot, slot.rule) if slot.rule != ABSENT else ""


@cache
def _tables() -> tuple[Numerics, ...]:
    return tuple(numerics_tables.find(name) for name in numerics_tables.distinct())


@cache
def rows_for(place: Place) -> tuple[tuple[tuple[tuple[str, str], ...], tuple[str, ...]], ...]:
    """Every row that any numerics has for a place: its rules, and the numerics that have it."""
    found: dict[tuple[tuple[str, str], ...], dict[str, None]] = {}
    for table in _tables():
        for row in table.candidates(place.operator, place.inputs, place.outputs):
            if not row.refuses and not row.on_request:
                found.setdefault(tuple(sorted(row.rules.items())), {})[table.name] = None
    return tuple((row, tuple(names)) for row, names in found.items())


def users_of(slots: list[Slot]) -> tuple[str, ...]:
    """Numerics with a row that has all these rules."""
    wanted = {(s.slot, s.rule) for s in slots if s.rule != ABSENT}
    found: dict[str, None] = {}
    for rules_of_row, names in rows_for(slots[0].place):
        if wanted <= set(rules_of_row):
            found.update(dict.fromkeys(names))
    return tuple(found)


def differences(case: Case, plan: Plan) -> list[Slot] | None:
    """Slots in which another plan of the segment has other rules; None where it has other steps."""
    mine = {step.index: step for step in case.plan.steps}
    theirs = {step.index: step for step in plan.steps}
    if mine.keys() != theirs.keys():
        return None
    found: dict[Slot, None] = {}
    for node in case.segment.graph.nodes:
        if node.index not in mine:
            continue
        one, two = mine[node.index], theirs[node.index]
        if one.operator != two.operator and not two.rules:
            return None
        place = place_of(case.segment.graph, node)
        for slot in sorted({*one.rules, *two.rules}):
            rule, instead = two.rules.get(slot, ABSENT), one.rules.get(slot, ABSENT)
            if rule != instead:
                found[Slot(place, slot, rule, instead)] = None
    return list(found)


def sufficient(slots: list[Slot]) -> Iterator[tuple[Slot, ...]]:
    """Sets of slots that may alone give B's bits, the smallest ones first; sets stay within one place."""
    by_place: dict[Place, list[Slot]] = {}
    for slot in slots:
        by_place.setdefault(slot.place, []).append(slot)
    for count in range(1, 4):
        for group in by_place.values():
            ordered = sorted(group, key=lambda s: _WEIGHT.get(s.slot, 1))
            if count < len(ordered):
                yield from combinations(ordered, count)
            elif count == len(ordered):
                yield tuple(ordered)
    yield from (tuple(group) for group in by_place.values() if len(group) > 3)


def whole_row(case: Case, numerics: Numerics) -> Hypothesis:
    """The segment planned as another numerics has it, rewrites and conditions included."""
    name, own = numerics.name, case.segment.numerics.name
    what = f"the whole arithmetic of `{name}` instead of `{own}`"
    return Hypothesis(
        Cause(
            f"arithmetic of {name}",
            f"{what if name != own else f'the graph that `{name}` has at another level'}: another legal one, benign",
            "rounding",
            True,
            numerics=(name,),
        ),
        "numerics",
        numerics=lambda _: numerics,
    )


def fused_otherwise(case: Case, plan: Plan, numerics: Numerics) -> Cause | None:
    """What to say where another numerics' rewrites make other steps of the segment; None where they do not."""
    mine, theirs = ([step.operator for step in p.steps] for p in (case.plan, plan))
    if mine == theirs:
        # What is fused with a sum of rows stays the same operator of ours; the runtime has a name for it.
        mine, theirs = ([step.source for step in p.steps] for p in (case.plan, plan))
    if mine == theirs:
        return None
    one, two = (f"`{', '.join(operators)}`" for operators in (theirs, mine))
    what = f"fused into {', '.join(theirs)}" if len(theirs) < len(mine) else f"computed as {', '.join(theirs)}"
    text = f"being computed as {one} instead of {two}: another order of operations, benign"
    return Cause(what, text, "order", True, numerics=(numerics.name,))


def _that_keep_activations(
    case: Case, place: Place, own: Mapping[str, str]
) -> Iterator[tuple[tuple[tuple[str, str], ...], tuple[str, ...]]]:
    """`rows_for` a place; rows without an activation are none for nodes that have one: ignoring it is a fault."""
    fused = any(
        node.attributes.get("activation", "none") != "none" and place_of(case.segment.graph, node) == place
        for node in case.segment.graph.nodes
    )
    for row, names in rows_for(place):
        if not (
            fused and "activation_range" in own and dict(row).get("activation_range", "type_alone") == "type_alone"
        ):
            yield row, names


def _complete(slots: Sequence[Slot]) -> bool:
    """Whether what rescales and what stores fit: real numbers need a rule that rounds them."""
    integral = [{rescale.RULES[r].integral for r in (s.rule, s.instead) if r in rescale.RULES} for s in slots]
    return all(len(found) < 2 for found in integral) or any(s.slot.startswith("store") for s in slots)


def used_slots(case: Case) -> Iterator[Hypothesis]:
    """One slot at a time: every other rule that a numerics uses for the operator and these types."""
    for place, own in places(case).items():
        found: dict[Slot, None] = {}
        for row, _ in _that_keep_activations(case, place, own):
            for slot, rule in row:
                if own.get(slot, rule) != rule:
                    found[Slot(place, slot, rule, own[slot])] = None
        for one in sorted(filter(lambda s: _complete([s]), found), key=lambda s: _WEIGHT.get(s.slot, 1)):
            yield rule_hypothesis(case, (one,))


def used_pairs(case: Case) -> Iterator[Hypothesis]:
    """Two or three slots of one row that a numerics has for the operator and these types; then the whole row."""
    for place, own in places(case).items():
        seen = set()
        for row, names in _that_keep_activations(case, place, own):
            theirs = dict(row)
            different = [
                Slot(place, slot, theirs.get(slot, ABSENT), own.get(slot, ABSENT))
                for slot in sorted({*theirs, *own})
                if theirs.get(slot, ABSENT) != own.get(slot, ABSENT)
            ]
            for chosen in sufficient(different):
                if (len(chosen) > 1 or chosen[0].instead == ABSENT) and chosen not in seen and _complete(chosen):
                    seen.add(chosen)
                    yield rule_hypothesis(case, chosen, names if len(chosen) == len(different) else ())


def unused_slots(case: Case) -> Iterator[Hypothesis]:
    """One slot at a time: rules of its table that no numerics uses for the operator and these types."""
    for place, own in places(case).items():
        used = {(slot, rule) for row, _ in rows_for(place) for slot, rule in row}
        for slot, instead in own.items():
            for rule in rules(slot):
                one = Slot(place, slot, rule, instead)
                if rule != instead and (slot, rule) not in used and _complete([one]):
                    yield rule_hypothesis(case, (one,))
