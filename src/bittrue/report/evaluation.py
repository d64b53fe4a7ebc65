"""What an evaluation of a data set says, in the words and the order of a report."""

from __future__ import annotations

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

# What figures count, where it is not samples.
_COUNTED = {"detection": "objects", "segmentation": "pixels"}


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
    """

    result: dict[str, Any]
    kind: str
    headline: str
    sentence: str
    names: list[str]
    figures: list[str]
    classes: list[int]

    def named(self, value: Any) -> str:
        """A label or a prediction: the name of its class, where it has one."""
        names = self.result["data"]["classes"]
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
            return str(names[value])
        if isinstance(value, list):
            return ", ".join(map(self.named, value))
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
    return Report(result, *_verdict(result), [*result["numerics"], *result["against"]], figures, sorted(classes))


def _verdict(result: dict[str, Any]) -> tuple[str, str, str]:
    head, samples = result["headline"], result["samples"]
    figures = [
        f"{head} {number(found.get(head))} under {name}" for name, found in result["metrics"].items() if head in found
    ]
    sentence = f"{words.plural(samples, 'sample')}"
    sentence += f": {', '.join(figures)}." if figures else ", without labels: there is no accuracy."
    broken = sum(result["errors"].values())
    if broken:
        sentence += f" {words.plural(broken, 'sample')} with an error {'is' if broken == 1 else 'are'} in no figure."
    flips = [pair for pair in result["flips"] if pair["count"]]
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


def confused(found: dict[str, Any]) -> list[list[int]]:
    """Label, answer and count of what is confused most often."""
    wrong = [pair for pair in found.get("confusion", ()) if pair[0] != pair[1]]
    return sorted(wrong, key=lambda pair: (-pair[2], pair[0], pair[1]))[:MOST_PAIRS]


def by_class(result: dict[str, Any]) -> list[tuple[str, int | None, list[float | None]]]:
    """Name of every class, how much of it the labels have, and its figure under each arithmetic.

    Of tasks that have one beside right answers: the pixels' overlap, or the average precision of objects.
    """
    found: dict[int, tuple[str, int | None, dict[str, float | None]]] = {}
    for name, figures in result["metrics"].items():
        for row in figures.get("by_class", ()):
            known = found.setdefault(row["class"], (row["name"], row[_COUNTED.get(result["task"], "objects")], {}))
            known[2][name] = row["iou" if result["task"] == "segmentation" else "map"]
    return [
        (name, count, [own.get(numerics) for numerics in result["metrics"]])
        for _, (name, count, own) in sorted(found.items())
    ]


def counted(result: dict[str, Any]) -> str:
    """What confusion and figures of classes count."""
    return _COUNTED.get(result["task"], "samples")


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


def chart_data(report: Report) -> dict[str, Any]:
    """Everything the script draws; ``any`` says whether there is something at all."""
    result = report.result
    per_class = {name: found["per_class"] for name, found in result["metrics"].items() if found.get("per_class")}
    few = 0 < len(report.classes) <= MOST_CLASSES
    data: dict[str, Any] = {
        "numerics": report.names,
        "pairs": [pair["pair"] for pair in result["flips"]],
        "margins": result["margins"],
        "scores": result["scores"],
        "classes": _labels([report.named(number) for number in report.classes] if few else []),
        "confusion": _matrices(report) if few else None,
        "perClass": _bars(per_class),
        "thumbnails": result["thumbnails"],
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


def _bars(per_class: dict[str, list[dict[str, Any]]]) -> dict[str, Any] | None:
    """Shares of right answers per class; of more classes than a chart has room for those with the lowest."""
    if not per_class:
        return None
    first, *_ = per_class.values()
    order = range(len(first))
    worst = sorted(order, key=lambda i: (first[i]["right"] / (first[i]["samples"] or 1), i))[:MOST_CLASSES]
    kept = sorted(worst) if len(first) <= MOST_CLASSES else worst
    return {
        "names": _labels([first[i]["name"] for i in kept]),
        "samples": [first[i]["samples"] for i in kept],
        "right": {name: [found[i]["right"] for i in kept] for name, found in per_class.items()},
        "all": len(first),
    }
