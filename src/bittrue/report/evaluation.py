"""What an evaluation of a data set says, in the words and the order of a report."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ..names import distinct
from . import words

# Classes that a confusion matrix or a chart has room for.
MOST_CLASSES = 40
# Pairs of classes that are listed.
MOST_PAIRS = 50
# Flips of one list that a page shows: at once, and in all.
MOST_FLIPS = (24, 150)

# What stands for the label among the sides of a thumbnail.
_LABEL = ""

# What there are how many of a class -> its figure, and what that is called.
_OF_CLASSES = {"samples": ("right", "right"), "pixels": ("iou", "IoU"), "objects": ("map", "mAP")}


@dataclass(frozen=True)
class Report:
    """One evaluation, ready to be written down.

    Attributes:
        result: as `reading.checked` gives it.
        kind: how the verdict is marked.
        headline, sentence: what came out, and what stands behind it.
        names: of all arithmetics and runtimes.
        figures: names of figures that are single numbers, the one that matters most first.
        classes: numbers of all classes that occur, as labels or answers, in order.
        alike: positions of pairs whose outputs are those of an earlier pair, and that pair.
    """

    result: dict[str, Any]
    kind: str
    headline: str
    sentence: str
    names: list[str]
    figures: list[str]
    classes: list[int]
    alike: dict[int, list[str]]

    def same(self, pair: list[str]) -> str:
        """What is said of two that answer alike."""
        digests = [self.result["digests"].get(name, name) for name in pair]
        what = "output is the same, byte for byte" if digests[0] == digests[1] else "answer is the same"
        return f"{' and '.join(pair)}: every {what}."

    def named(self, value: Any) -> str:
        """A label or a prediction: the name of its class, where it has one."""
        return named(value, self.result["data"]["classes"])


def named(value: Any, classes: Sequence[str]) -> str:
    """A label or a prediction: the name of its class, where it has one.

    >>> named(1, ["cat", "owl"]), named(True, ["cat", "owl"]), named([0, 2], ["cat", "owl"]), named(0.25, [])
    ('owl', 'True', 'cat, 2', '0.25')
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(classes):
        return str(classes[value])
    if isinstance(value, list):
        return ", ".join(named(one, classes) for one in value)
    return f"{value:.9g}" if isinstance(value, float) else "" if value is None else str(value)


def report(result: dict[str, Any]) -> Report:
    """The verdict of an evaluation (checked by `reading.checked`)."""
    metrics = result["metrics"]
    first: dict[str, Any] = next(iter(metrics.values()), {})
    figures = [name for name, value in first.items() if value is None or isinstance(value, int | float)]
    figures.sort(key=lambda name: name != result["headline"])
    classes = {
        number for found in metrics.values() for pair in found.get("confusion", ()) for number in (pair[0], pair[1])
    }
    alike = _alike(result)
    names = [*result["numerics"], *result["against"]]
    return Report(result, *_verdict(result, alike), names, figures, sorted(classes), alike)


def _alike(result: dict[str, Any]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    first: dict[frozenset[str], list[str]] = {}
    for position, pair in enumerate(result["flips"]):
        earlier = first.setdefault(frozenset(result["digests"].get(name, name) for name in pair["pair"]), pair["pair"])
        if earlier is not pair["pair"]:
            found[position] = earlier
    return found


def _verdict(result: dict[str, Any], alike: Collection[int]) -> tuple[str, str, str]:
    head, samples = result["headline"], result["samples"]
    figures = [
        f"{head} {number(found.get(head))} under {name}" for name, found in result["metrics"].items() if head in found
    ]
    sentence = f"{words.plural(samples, 'sample')}"
    sentence += f": {', '.join(figures)}." if figures else ", without labels: there is no accuracy."
    broken = sum(result["errors"].values())
    if broken:
        sentence += f" {words.plural(broken, 'sample')} with an error {'is' if broken == 1 else 'are'} in no figure."
    flips = [pair for position, pair in enumerate(result["flips"]) if pair["count"] and position not in alike]
    sentence += "".join(f" {effect(pair)}" for pair in flips[:3])
    if result["unmet"]:
        return "error", "Not what was required", f"{'; '.join(result['unmet'])}. {sentence}"
    if flips:
        most = max(flips, key=lambda pair: pair["count"])
        share = f"{words.count(most['count'])} of {words.plural(samples - broken, 'answer')} flip"
        return "warning", f"{share}{'s' if most['count'] == 1 else ''}", sentence
    if broken:
        return "open", "Some samples could not be evaluated", sentence
    if not result["flips"]:
        return "note", figures[0] if figures else "Every sample was run", sentence
    return "equal", "Every answer is the same", sentence


def effect(pair: dict[str, Any]) -> str:
    """What the flips of a pair do, in one sentence."""
    text = f"{words.plural(pair['count'], 'answer')} flip{'s' if pair['count'] == 1 else ''} "
    text += f"from {pair['pair'][0]} to {pair['pair'][1]}"
    if pair["gained"] is None or pair["lost"] is None:
        return f"{text}."
    net = pair["gained"] - pair["lost"]
    signed = f"{net:+,}".replace("-", "−") if net else "0"
    return f"{text}: {pair['gained']:,} become right, {pair['lost']:,} wrong, net {signed}."


def outcome(flip: dict[str, Any], judged: bool) -> tuple[str, str]:
    """How a flip is marked, and in words: whether the second answer is right and the first one was not, or so."""
    if not judged or flip["label"] is None:
        return "note", "flips"
    was, now = (answer == flip["label"] for answer in flip["predictions"])
    return ("equal", "becomes right") if now else ("error", "becomes wrong") if was else ("open", "wrong in both")


@dataclass(frozen=True)
class Panel:
    """A sample's image with what one side says about it.

    Attributes:
        title: the side.
        boxes: kind (``"true"``: of the label; ``"seen"``; ``"only"``: what the other side does not have), left, top,
            width and height on the thumbnail, and what it is.
        mask: an image that lies on it; empty where none does.
        words: the same for those who do not see it, and kinds of boxes with what they are.
    """

    title: str
    boxes: list[tuple[str, list[float], str]]
    mask: str
    words: list[tuple[str, str]]

    @property
    def said(self) -> str:
        """All that it shows, as text."""
        return f"{self.title}: {', '.join(text for _, text in self.words) or 'nothing'}"


def panels(seen: dict[str, Any], sides: dict[str, str]) -> list[Panel]:
    """What is drawn on a thumbnail.

    Args:
        seen: the thumbnail.
        sides: arithmetics, with what they are called; the label is a side of its own where there is one.
    """
    names = list(sides)
    if seen["boxes"]:
        return [_boxed(seen, name, sides) for name in names if name in seen["boxes"]]
    shown = {_LABEL: "label", **sides}
    found = [Panel(title, [], seen["masks"][name], []) for name, title in shown.items() if name in seen["masks"]]
    compared = sorted(names if len(names) > 1 else [_LABEL, *names])
    for one in seen["differ"]:
        if one["pair"] == compared:
            found.append(Panel("where they differ" if len(names) > 1 else "what is wrong", [], one["mask"], []))
    return found


def _boxed(seen: dict[str, Any], name: str, sides: dict[str, str]) -> Panel:
    true = seen["boxes"].get(_LABEL)
    others = [other for other in sides if other != name] or ([] if true is None else [_LABEL])
    found, said = [], []
    for one in true or []:
        found.append(("true", _on(seen, one), f"label: {one['class']}"))
    for one in seen["boxes"][name]:
        only = any(other in one["missing"] for other in others)
        text = one["class"] if one["score"] is None else f"{one['class']} {one['score']:.2f}"
        found.append(("only" if only else "seen", _on(seen, one), text))
        said.append(("only" if only else "seen", text))
    said += [("true", f"{one['class']} missed") for one in true or [] if name in one["missing"]]
    return Panel(sides[name], found, "", said)


def _on(seen: dict[str, Any], box: dict[str, Any]) -> list[float]:
    """Left, top, width and height in pixels of the thumbnail."""
    return [round(share * side, 1) for share, side in zip(box["place"], seen["size"] * 2, strict=True)]


def furthest(result: dict[str, Any], wrong: float) -> str:
    """How far an answer is from its label."""
    if result["task"] == "segmentation":
        return f"{words.percent(wrong)} of the pixels are wrong"
    return f"{words.plural(round(wrong), 'object')} missed, or seen where there is none"


def confused(found: dict[str, Any]) -> list[list[int]]:
    """Label, answer and count of what is confused most often."""
    wrong = [pair for pair in found.get("confusion", ()) if pair[0] != pair[1]]
    return sorted(wrong, key=lambda pair: (-pair[2], pair[0], pair[1]))[:MOST_PAIRS]


def number(value: Any) -> str:
    """A figure; nothing where there is none.

    >>> number(901), number(0.901), number(0.0), number(None)
    ('901', '0.9010', '0.0000', '–')
    """
    if not isinstance(value, int | float):
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e6 else f"{value:.4g}"


def asked(result: dict[str, Any]) -> list[tuple[str, str]]:
    """What was asked for, as label and value."""
    given, data, recipe = result["given"], result["data"], result["recipe"]
    libraries = ", ".join(f"{name} {version}" for name, version in recipe["libraries"].items())
    index, count = result["shard"]
    found = [
        ("model", given.get("model", "")),
        ("data", f"{given.get('data', '')} ({data['kind']}, {words.plural(data['samples'], 'sample')})".strip()),
        ("recipe", f"{recipe['name']}{f' ({libraries})' if libraries else ''}"),
        ("numerics", ", ".join(result["numerics"])),
        ("against", ", ".join(f"{name} ({version})" for name, version in result["against"].items())),
        ("task", result["task"]),
        ("limit", "" if result["limit"] is None else f"the first {result['limit']:,} samples"),
        ("shard", "" if count == 1 else f"{index}/{count}"),
        ("variables", "" if result["reset"] else "go on from sample to sample"),
        ("recipe's digest", recipe["digest"]),
        ("model's SHA-256", ", ".join(result["model"])),
        ("digest of all bits", result["digest"]),
    ]
    found += [(f"digest under {name}", digest) for name, digest in result["digests"].items()]
    return [(label, value) for label, value in found if value]


# What of it stands at the top of a page.
BRIEF = ("model", "data", "recipe", "numerics", "against")


def chart_data(report: Report) -> dict[str, Any]:
    """Everything the script draws; ``any`` says whether there is something at all."""
    result = report.result
    few = 0 < len(report.classes) <= MOST_CLASSES
    data: dict[str, Any] = {
        "numerics": report.names,
        "pairs": [pair["pair"] for pair in result["flips"]],
        "alike": [*report.alike],
        "margins": result["margins"],
        "scores": result["scores"],
        "counted": "pixels" if result["task"] == "segmentation" else "samples",
        "classes": _labels([report.named(number) for number in report.classes] if few else []),
        "confusion": _matrices(report) if few else None,
        "perClass": _bars(per_class(result), result["metrics"]),
    }
    data["any"] = bool(data["margins"] or data["scores"] or data["confusion"] or data["perClass"])
    return data


def _matrices(report: Report) -> dict[str, list[list[int]]] | None:
    if not all("confusion" in found for found in report.result["metrics"].values()):
        return None
    place = {number: i for i, number in enumerate(report.classes)}
    found = {}
    for name, figures in report.result["metrics"].items():
        matrix = [[0] * len(place) for _ in place]
        for label, answer, count in figures["confusion"]:
            matrix[place[label]][place[answer]] = count
        found[name] = matrix
    return found


def _labels(names: list[str]) -> dict[str, list[str]]:
    """Names of classes, whole and as axes of a wide and of a narrow page have room for them."""
    return {"whole": names, "wide": distinct(names, 30), "narrow": distinct(names, 14)}


def per_class(result: dict[str, Any]) -> dict[str, Any] | None:
    """Every class with how often it occurs and its figure under each arithmetic, where there are such figures.

    Returns:
        ``counted``: of what there are how many; ``figure``, ``title``: its name, in results and for people; ``rows``:
        name, count and figures by arithmetic of each class, in the order of their numbers.
    """
    found: dict[int, dict[str, Any]] = {}
    counted = "samples"
    for name, figures in result["metrics"].items():
        for row in figures.get("per_class", ()):
            counted = next((word for word in _OF_CLASSES if row[word] is not None), counted)
            figure = _OF_CLASSES[counted][0]
            count, value = row[counted] or 0, row[figure]
            if figure == "right" and value is not None:
                value = min(value / count, 1.0) if count else None
            entry = found.setdefault(row["class"], {"name": row["name"], "count": count, "figures": {}})
            entry["figures"][name] = value
    if not found:
        return None
    figure, title = _OF_CLASSES[counted]
    rows = [found[number] for number in sorted(found)]
    return {"counted": counted, "figure": figure, "title": title, "rows": rows}


def _bars(classes: dict[str, Any] | None, names: Collection[str]) -> dict[str, Any] | None:
    """Figures of classes; of more classes than a chart has room for those with the lowest."""
    if classes is None:
        return None
    first, *_ = names
    rows = classes["rows"]
    kept = rows
    if len(rows) > MOST_CLASSES:
        kept = sorted(rows, key=lambda row: row["figures"].get(first) or 0.0)[:MOST_CLASSES]
    return {
        "names": _labels([row["name"] for row in kept]),
        "counted": classes["counted"],
        "figure": classes["title"],
        "counts": [row["count"] for row in kept],
        "shares": {name: [row["figures"].get(name) for row in kept] for name in names},
        "all": len(rows),
    }
