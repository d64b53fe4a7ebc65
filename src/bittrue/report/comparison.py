"""What a comparison says, in the words and the order of a report: the verdict on the whole, causes, tensors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from . import words

# How the reader should take the whole: in the page it chooses colour and sign.
EQUAL, BENIGN, FAULT, UNEXPLAINED, OPEN, NOTHING = "equal", "benign", "fault", "unexplained", "open", "nothing"


@dataclass(frozen=True)
class Cause:
    """One rule or fault of the other side, over all tensors that it explains.

    Attributes:
        anchor: of its page in the report.
        data: as in the result, of the first tensor.
        elements: that it accounts for, in all tensors.
        tensors: positions of these tensors in `Report.pairs`.
        number: how many tensors these are in the whole comparison.
    """

    anchor: str
    data: dict[str, Any]
    elements: int
    tensors: tuple[int, ...]
    number: int

    @property
    def name(self) -> str:
        return str(self.data["name"])

    @property
    def verdict(self) -> str:
        """For people: what to make of it."""
        return f"{self.data['kind']}, {'benign' if self.data['benign'] else 'a fault'}"


@dataclass(frozen=True)
class Report:
    """One comparison, ready to be written down.

    Attributes:
        result: as `reading.checked` gives it.
        kind: one of the names above.
        headline: the verdict in a few words.
        sentence: what stands behind it, with counts.
        first: position of the first differing tensor in execution order; None when there is none.
        differing: positions of the tensors that differ along B's own chain or in isolation, in execution order.
        incomparable: positions of the tensors that could not be compared.
        causes: in the order in which they first occur.
    """

    result: dict[str, Any]
    kind: str
    headline: str
    sentence: str
    first: int | None
    differing: tuple[int, ...]
    incomparable: tuple[int, ...]
    causes: tuple[Cause, ...] = field(default_factory=tuple)

    @property
    def pairs(self) -> list[dict[str, Any]]:
        pairs: list[dict[str, Any]] = self.result["pairs"]
        return pairs

    @property
    def host(self) -> str:
        """The side whose arithmetic isolated differences are taken against."""
        return self.result["host"] or "A"

    @property
    def other(self) -> str:
        """The side that verdicts are about."""
        return "A" if self.host == "B" else "B"

    def causes_of(self, position: int) -> list[Cause]:
        """The causes of one tensor."""
        verdict = self.pairs[position]["verdict"]
        names = {cause["name"] for cause in verdict["causes"]} if verdict else ()
        return [cause for cause in self.causes if cause.name in names] if names else []


def report(result: dict[str, Any]) -> Report:
    """The verdict on a whole comparison (checked by `reading.checked`)."""
    pairs = result["pairs"]
    differing = tuple(i for i, pair in enumerate(pairs) if differs(pair))
    incomparable = tuple(i for i, pair in enumerate(pairs) if cannot(pair))
    first = next((i for i in differing if pairs[i]["cumulative"]["differing"]), differing[0] if differing else None)
    causes = _causes(pairs)
    kind, headline, sentence = _verdict(result, differing, incomparable, causes)
    return Report(result, kind, headline, sentence, first, differing, incomparable, causes)


def thinned(whole: Report, most: int) -> Report:
    """The report with at most so many tensors: the first difference, then others that differ or could not be compared,
    then equal ones. Verdict, counts and causes stay those of the whole, and the sentence says what is left out.
    """
    if len(whole.pairs) <= most:
        return whole
    first = [] if whole.first is None else [whole.first]
    order = dict.fromkeys([*first, *whole.differing, *whole.incomparable, *range(len(whole.pairs))])
    kept = sorted(islice(order, most))
    place = {old: new for new, old in enumerate(kept)}

    def moved(positions: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(place[i] for i in positions if i in place)

    text = f"{whole.sentence} This report shows {words.count(most)} of {words.count(len(whole.pairs))} tensors"
    left = sum(i not in place for i in whole.differing)
    text += f"; {words.count(left)} of those left out differ." if left else "; those left out are equal."
    return replace(
        whole,
        result={**whole.result, "pairs": [whole.pairs[i] for i in kept]},
        sentence=text,
        first=None if whole.first is None else place[whole.first],
        differing=moved(whole.differing),
        incomparable=moved(whole.incomparable),
        causes=tuple(replace(cause, tensors=moved(cause.tensors)) for cause in whole.causes),
    )


def differs(pair: dict[str, Any]) -> bool:
    """Whether B's tensor is another one than A's, along its own chain or fed with B's inputs."""
    return bool(pair["cumulative"]["differing"] or (pair["isolated"] and pair["isolated"]["differing"]))


def cannot(pair: dict[str, Any]) -> bool:
    """Whether the two tensors could not be compared at all."""
    return bool(pair["note"].startswith("cannot") and not pair["cumulative"]["differing"])


def explained(pair: dict[str, Any]) -> bool | None:
    """Whether rules or faults give every bit of the isolated difference; None where it was not judged, or a numerics
    records that its bits are not the runtime's.
    """
    if pair["isolated"] is not None and not pair["isolated"]["differing"]:
        return True
    verdict = pair["verdict"]
    return None if verdict is None or inexact(pair) else bool(verdict["exact"] and not verdict["unexplained"])


def inexact(pair: dict[str, Any]) -> bool:
    """Whether a numerics records that its bits are not the runtime's where this difference arises."""
    verdict = pair["verdict"]
    return verdict is not None and bool(
        verdict["differing"] and not verdict["exact"] and not verdict["unexplained"] and not verdict["causes"]
    )


def _causes(pairs: list[dict[str, Any]]) -> tuple[Cause, ...]:
    found: dict[str, tuple[dict[str, Any], int, dict[int, None]]] = {}
    for position, pair in enumerate(pairs):
        for cause in pair["verdict"]["causes"] if pair["verdict"] else ():
            data, elements, where = found.get(cause["name"], (cause, 0, {}))
            where[position] = None
            found[cause["name"]] = data, elements + cause["elements"], where
    return tuple(
        Cause(f"cause-{i}", data, elements, tuple(where), len(where))
        for i, (data, elements, where) in enumerate(found.values(), 1)
    )


def _verdict(
    result: dict[str, Any],
    differing: tuple[int, ...],
    incomparable: tuple[int, ...],
    causes: tuple[Cause, ...],
) -> tuple[str, str, str]:
    pairs = result["pairs"]
    other = "A" if result["host"] == "B" else "B"
    compared = len(pairs) - len(incomparable)
    apart = f" {words.plural(len(incomparable), 'tensor')} could not be compared." if incomparable else ""
    if not compared:
        what = apart.strip() or "No tensor of A has a partner in B."
        return NOTHING, "Nothing was compared", f"{what} This is no verdict on the two."
    if not differing:
        elements = sum(pair["cumulative"]["elements"] for pair in pairs)
        tensors = words.plural(compared, "tensor")
        text = f"{tensors} compared, {words.count(elements)} elements: every byte is the same.{apart}"
        return (OPEN, "Equal as far as compared", text) if incomparable else (EQUAL, "Equal, bit for bit", text)
    own = sum(bool(pairs[i]["cumulative"]["differing"]) for i in differing)
    verb = "differs" if own == 1 else "differ"
    count = f"{words.count(own)} of {words.plural(compared, 'compared tensor')} {verb}"
    if own < len(differing):
        count += f", {words.plural(len(differing) - own, 'other')} only in isolation"
    judged = [explained(pairs[i]) for i in differing]
    elements = sum(pairs[i]["verdict"]["unexplained"] for i in differing if pairs[i]["verdict"])
    faults = [cause for cause in causes if not cause.data["benign"]]
    if False in judged:
        unsolved = sum(answer is False for answer in judged)
        what = f"{words.plural(elements, 'element')} in {words.plural(unsolved, 'tensor')}"
        reason = f"no known rule or fault gives {other}'s bits in {what}."
        also = f" {_named(faults, 'fault')}." if faults else ""
        return UNEXPLAINED, "Different, and unexplained", f"{count}; {reason}{also}{apart}"
    missing = sum(answer is None for answer in judged)
    limits = sum(inexact(pairs[i]) for i in differing)
    alone = missing - limits
    open_text = f" {words.plural(alone, 'differing tensor')} could not be run alone, so the cause there is open." * (
        alone > 0
    )
    open_text += f" Of {words.plural(limits, 'tensor')} the numerics records that bits differ." * (limits > 0)
    if faults:
        proof = f"{_named(faults, 'fault')} in {other}, proven by recomputation."
        text = f"{count}; {proof}{open_text if missing else ''}{apart}"
        return FAULT, f"Different: a fault in {other}", text
    if missing == len(differing) or not causes:
        return OPEN, "Different; the cause is open", f"{count}.{open_text if missing else ''}{apart}"
    rules = words.plural(len(causes), "named rule")
    give = "gives" if len(causes) == 1 else "give"
    if missing:
        text = f"{count}; where tensors could be run alone, {rules} {give} every bit of {other}.{open_text}{apart}"
        return OPEN, "Different, explained where it could be judged", text
    text = f"{count}; {rules} {give} every bit of {other}, proven by recomputation. No fault was found.{apart}"
    kinds = {cause.data["kind"] for cause in causes}
    what = "rounding" if kinds == {"rounding"} else "arithmetic"
    return BENIGN, f"Different, explained: another legal {what}", text


def _named(causes: list[Cause], noun: str) -> str:
    names = ", ".join(cause.name for cause in causes[:2])
    more = f" and {len(causes) - 2} more" if len(causes) > 2 else ""
    return f"{words.plural(len(causes), noun)} ({names}{more})"


def facts(pair: dict[str, Any]) -> list[tuple[str, str]]:
    """What one tensor is and how B's differs, as label and value."""
    own, alone = pair["cumulative"], pair["isolated"]
    operator = pair["operator"] or ("input" if pair["node"] is None else "")
    if pair["source"] and pair["source"].lower() != operator.lower():
        operator = f"{pair['source']} ({operator})" if operator else pair["source"]
    types = pair["dtype_a"] if pair["dtype_a"] == pair["dtype_b"] else f"{pair['dtype_a']} against {pair['dtype_b']}"
    found = [
        ("operator", operator),
        ("node", "" if pair["node"] is None else str(pair["node"])),
        ("tensor", f"{types} {words.shape(pair['shape'])}"),
        ("differing", differing_text(own)),
        ("largest |b − a|", words.number(own["largest"])),
    ]
    if alone is not None and alone != own:
        found.insert(4, ("in isolation", differing_text(alone)))
    return [(label, value) for label, value in found if value]


def differing_text(statistics: dict[str, Any]) -> str:
    """How many elements differ, of how many."""
    differing, elements = statistics["differing"], statistics["elements"]
    return f"{words.count(differing)} of {words.count(elements)} ({words.percent(differing, elements)})"


def labels_text(labels: list[list[int]]) -> str:
    """What happens to the top-1 label.

    >>> labels_text([[281, 281], [7, 8]]), labels_text([])
    ('for 1 of 2 inputs (7 → 8)', '')
    """
    if not labels:
        return ""
    changed = [f"{before} → {after}" for before, after in labels if before != after]
    if not changed:
        return f"for none of {words.plural(len(labels), 'input')}"
    more = ", ..." if len(changed) > 3 else ""
    return f"for {len(changed)} of {words.plural(len(labels), 'input')} ({', '.join(changed[:3])}{more})"


def state(pair: dict[str, Any]) -> tuple[str, str]:
    """Kind and words of what is known about one tensor's difference."""
    if cannot(pair):
        return OPEN, "not compared"
    if not differs(pair):
        return EQUAL, "equal"
    if pair["isolated"] is not None and not pair["isolated"]["differing"]:
        return OPEN, "inherited"
    verdict = pair["verdict"]
    if verdict is None:
        return OPEN, "not judged"
    if inexact(pair):
        return OPEN, "inexact here"
    if not explained(pair):
        return UNEXPLAINED, f"unexplained: {words.plural(verdict['unexplained'] or verdict['differing'], 'element')}"
    return (BENIGN, "benign") if all(cause["benign"] for cause in verdict["causes"]) else (FAULT, "fault")


def witness_rows(witness: dict[str, Any]) -> list[dict[str, Any]]:
    """Both calculations side by side: the same step of both in one row; ``changed`` where they part."""
    ours = witness["lines"]
    theirs = (witness["other"] or {"lines": []})["lines"]
    rows = []
    matcher = SequenceMatcher(None, [x["label"] for x in ours], [x["label"] for x in theirs], autojunk=False)
    for what, i1, i2, j1, j2 in matcher.get_opcodes():
        left, right = ours[i1:i2], theirs[j1:j2]
        if what == "equal":
            rows += [_row(a, b) for a, b in zip(left, right, strict=True)]
        else:
            rows += [_row(a, None) for a in left] + [_row(None, b) for b in right]
    return rows


def _row(a: dict[str, Any] | None, b: dict[str, Any] | None) -> dict[str, Any]:
    some = a or b or {}
    changed = a is not None and b is not None and (a["value"], a["remark"]) != (b["value"], b["remark"])
    return {"label": some["label"], "a": a, "b": b, "changed": changed or a is None or b is None}
