"""BT505: nodes that the runtime's kinds of kernels compute by different rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...operators import Step
from ..families import others, title
from ..finding import Finding
from ..rule import Rule, Subject
from ..surveys import survey

# From what rounds to what only prepares.
_ORDER = ("rescale", "align", "mean", "average", "softmax", "interpolate", "scale_form")


def _differing(one: Step, other: Step) -> list[str]:
    """Slots with different rules, without those that came to the same numbers."""
    slots = [slot for slot in dict.fromkeys((*one.rules, *other.rules)) if one.rules.get(slot) != other.rules.get(slot)]
    ends = [(step.parameters.get("low"), step.parameters.get("high")) for step in (one, other)]
    return [slot for slot in slots if slot != "activation_range" or ends[0] != ends[1]]


def _difference(one: Step, other: Step) -> str:
    """The slot that matters most, and both rules; empty where all rules agree."""
    if one.operator != other.operator:
        return f"{one.operator} against {other.operator}"
    slots = _differing(one, other)
    if not slots:
        return ""

    def rank(slot: str) -> tuple[bool, int]:
        both = slot in one.rules and slot in other.rules
        return not both, _ORDER.index(slot) if slot in _ORDER else len(_ORDER)

    best = min(slots, key=rank)
    return f"{best} {one.rules.get(best, 'none')} against {other.rules.get(best, 'none')}"


def find(subject: Subject) -> Iterator[Finding]:
    """One note per other numerics, with a count per operator."""
    made = survey(subject)
    for numerics, name in others(subject):
        theirs = {step.index: step for step in survey(subject, numerics).steps}
        counts: Counter[tuple[str, str]] = Counter()
        for step in made.steps:
            if step.index in theirs and (difference := _difference(step, theirs[step.index])):
                counts[step.source, difference] += 1
        if not counts:
            continue
        kinds: dict[str, list[str]] = {}
        for (source, difference), count in counts.most_common():
            kinds.setdefault(difference, []).append(f"{count} {source}")
        shown = "; ".join(f"{', '.join(sources)} ({difference})" for difference, sources in list(kinds.items())[:6])
        more = f"; and {len(kinds) - 6} more kinds" if len(kinds) > 6 else ""
        total = sum(counts.values())
        yield RULE.finding(
            f"{total} of {len(made.steps)} operators follow other rules in {name} than in {title(subject)}, so results"
            f" can differ: {shown}{more}",
            graph=subject.graphs[0],
            found=numerics.name,
            advice=f"`bittrue compare MODEL MODEL@{numerics.name}` counts how often they do on real inputs",
            numbers={"operators": total, "of": len(made.steps), "kinds": len(counts), "numerics": numerics.name},
        )


RULE = Rule(
    code="BT505",
    name="differs-between-kernels",
    severity="note",
    what="Which operators of the model are computed by different rules (another tie, another order of roundings,"
    " binary32 instead of integers) depending on how the same runtime is opened: with reference kernels, optimised"
    " kernels, or the default delegate. One note per other way, from the numerics' tables.",
    why="Nothing is wrong with the model, but golden outputs made one way do not match the other: mostly by one in a"
    " few elements of a thousand, at ties. Deep in a network, or through a function with a steep slope, more comes of"
    " it.",
    enforced="Nobody; it is how LiteRT is built. `Interpreter(model)` takes XNNPACK, OpResolverType.BUILTIN_REF the"
    " reference kernels, BUILTIN_WITHOUT_DEFAULT_DELEGATES the optimised ones; TensorFlow Lite Micro follows the"
    " reference.",
    fix="Record golden outputs with the kernels that ship. Compare bit for bit only against the same numerics.",
    source="LiteRT fact sheet 1.3 and 2, docs/facts/xnnpack.md (run, every rule)",
    find=find,
    formats=("tflite",),
)
