"""What a page shows of a folder of results: its summary, and what only rows and samples can tell."""

from __future__ import annotations

import heapq
import math
import os
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BittrueError, InputError
from ..ports import Port
from .digests import digest_of
from .overlays import draws, mistakes, overlays
from .recipes import find_recipe
from .results import SUMMARY, Folder, read_json, stored
from .rows import Row
from .sources import Sample, Source, open_source
from .subjects import all_names
from .tasks import Task
from .tasks.anomaly import Anomaly, curve
from .tasks.classification import Classification
from .thumbnails import SIDE, thumbnail

# Samples that have a thumbnail.
MOST_THUMBNAILS = 300
# Bars of a histogram.
_BARS = 40
# Answers furthest from their labels.
_WORST = 24
# Longest side of images on which something is drawn.
_DRAWN_SIDE = 320


def shown(path: str | os.PathLike[str], data: str = "") -> dict[str, Any]:
    """The summary in a folder, as plain data, with ``margins``, the ``worst`` answers of detection and segmentation,
    and ``thumbnails`` of these and of flips.

    Args:
        path: the folder of an evaluation that has ended.
        data: where the samples are; empty: where they were.

    Raises:
        InputError: the evaluation has not ended, or `data` are other samples.
        ModelFormatError: the folder holds no results, or damaged ones.
    """
    folder = stored(Path(path))
    if not (folder.path / SUMMARY).exists():
        raise InputError(
            "BT-EVALUATE-FOLDER",
            f"the evaluation has not ended: {folder.count():,} of {len(folder.positions()):,} samples are done",
            place=str(path),
            advice="the command that wrote it goes on with --resume",
        )
    found = read_json(folder.path / SUMMARY)
    wanted = {*_flipped(found)}
    rows: dict[int, Row] = {}
    names = all_names(folder.asked)
    worst = _Worst(folder.task, names[0])
    margins: dict[str, list[float]] = {name: [] for name in names}
    pairs = list(combinations(names, 2))
    flips: list[list[float]] = [[] for _ in pairs]
    scores: dict[str, list[tuple[float, int]]] = {name: [] for name in names}
    anomaly = isinstance(folder.task, Anomaly)
    for row in folder.rows():
        if row.position in wanted:
            rows[row.position] = row
        if row.code:
            continue
        worst.add(row)
        for name, answer in row.answers.items():
            if math.isfinite(answer.margin):
                margins[name].append(answer.margin)
            if anomaly and row.label is not None:
                scores[name].append((answer.prediction, int(row.label)))
        for some_margins, (one, two) in zip(flips, pairs, strict=True):
            margin = folder.task.difference(row.answers[one], row.answers[two])
            if margin is not None and math.isfinite(margin):
                some_margins.append(margin)
    found["margins"] = _margins(margins, flips) if isinstance(folder.task, Classification) else None
    found["scores"] = _scores(scores) if anomaly and found["metrics"] else None
    found["worst"] = worst.to_dict()
    rows |= {row.position: row for row in worst.rows()}
    found["thumbnails"], found["thumbnails_note"] = _thumbnails(folder, found, data, rows)
    return found


class _Worst:
    """The answers of an arithmetic that are furthest from their labels.

    Args:
        task: the question; of some nothing is said about single answers.
        name: the arithmetic.
    """

    def __init__(self, task: Task, name: str) -> None:
        self._task, self._name = task, name
        self._kept: list[tuple[float, int, Row]] = []

    def add(self, row: Row) -> None:
        """One more sample without an error."""
        wrong = mistakes(self._task, row, self._name)
        if wrong:
            heapq.heappush(self._kept, (wrong, -row.position, row))
            if len(self._kept) > _WORST:
                heapq.heappop(self._kept)

    def rows(self) -> list[Row]:
        """The worst first."""
        return [row for _, _, row in sorted(self._kept, key=lambda kept: kept[:2], reverse=True)]

    def to_dict(self) -> dict[str, Any] | None:
        """Plain data; None where there are none."""
        wrong = {row.position: value for value, _, row in self._kept}
        samples = [{"position": row.position, "id": row.id, "wrong": wrong[row.position]} for row in self.rows()]
        return {"numerics": self._name, "samples": samples} if samples else None


def _flipped(found: dict[str, Any]) -> list[int]:
    """Positions of the samples that have a thumbnail, those with the largest margins first."""
    lists = [pair["samples"] for pair in found["flips"]]
    lists += [change["answers"]["samples"] for change in (found.get("baseline") or {"changes": ()})["changes"]]
    each = MOST_THUMBNAILS // max(1, sum(map(bool, lists)))
    return list(dict.fromkeys(flip["position"] for flips in lists for flip in flips[:each]))


def _margins(margins: dict[str, list[float]], flips: Sequence[Sequence[float]]) -> dict[str, Any] | None:
    """How many samples have which margin: in all under each arithmetic, and of those that flip between each pair."""
    largest = max((max(values, default=0.0) for values in margins.values()), default=0.0)
    if not largest > 0:
        return None
    edges = np.linspace(0, largest, _BARS + 1)
    return {
        "edges": edges.tolist(),
        "samples": {name: np.histogram(values, edges)[0].tolist() for name, values in margins.items()},
        "flips": [np.histogram(values, edges)[0].tolist() for values in flips],
    }


def _scores(scores: dict[str, list[tuple[float, int]]]) -> dict[str, Any]:
    """Histograms of the scores of normal and unusual samples, and the ROC curve of each arithmetic."""
    values = [score for pairs in scores.values() for score, _ in pairs]
    low, high = min(values), max(values)
    edges = np.linspace(low, high if high > low else low + 1.0, _BARS + 1)
    counts = {
        name: [np.histogram([score for score, label in pairs if label == of], edges)[0].tolist() for of in (0, 1)]
        for name, pairs in scores.items()
    }
    return {"edges": edges.tolist(), "counts": counts, "roc": {name: curve(pairs) for name, pairs in scores.items()}}


def _thumbnails(
    folder: Folder, found: dict[str, Any], data: str, rows: Mapping[int, Row]
) -> tuple[dict[str, Any], str]:
    """Thumbnails by position, and why some or all are missing."""
    if not rows:
        return {}, ""
    try:
        source = _source(folder, data or found["given"]["data"])
    except (BittrueError, OSError) as error:
        if data:
            raise
        what = error.message if isinstance(error, BittrueError) else str(error)
        return {}, f"there are no thumbnails: {what}; `--data SOURCE` says where the samples are now"
    # Of several inputs the first image is shown, or else the first one.
    holds = {name: held.holds for name, held in source.inputs.items()} or {
        folder.asked["inputs"][0]["name"]: source.holds
    }
    name = next((name for name, what in holds.items() if what == "image"), next(iter(holds)))
    port = next(port for port in folder.asked["inputs"] if port["name"] == name)
    made: dict[str, Any] = {}
    changed = 0
    reason = ""
    drawing = _Drawing(folder, found) if draws(folder.task) else None
    side = SIDE if drawing is None else _DRAWN_SIDE
    for position in sorted(rows):
        try:
            sample = source[position]
            parts = sample.read()
            if digest_of(parts) != rows[position].source:
                changed += 1
                continue
            values = [part[name] if isinstance(part, Mapping) else part for part in parts]
            made[str(position)] = shown = thumbnail(values, holds[name], port["shape"], port["dtype"], side)
            if drawing is not None and "size" in shown:
                shown |= drawing.of(rows[position], sample, shown)
        except (BittrueError, OSError) as error:
            reason = reason or (error.message if isinstance(error, BittrueError) else str(error))
    notes = [f"not shown because of other bytes than before: {changed:,}"] if changed else []
    if reason:
        notes.append(f"not shown because of an error: {len(rows) - changed - len(made):,} ({reason})")
    if drawing is not None and drawing.reason:
        notes.append(f"nothing is drawn on images: {drawing.reason}")
    return made, "; ".join(notes)


class _Drawing:
    """What draws answers on thumbnails.

    Args:
        folder: the results.
        found: what the page is made of.

    Attributes:
        reason: why it draws nothing; empty where it does.
    """

    def __init__(self, folder: Folder, found: Mapping[str, Any]) -> None:
        self._task, self._classes, self.reason = folder.task, found["data"]["classes"], ""
        port = folder.asked["inputs"][0]
        self._port = Port(port["name"], np.dtype(port["dtype"]), tuple(port["shape"]), None)
        try:
            self._recipe = find_recipe(found["given"]["recipe"])
            if self._recipe.digest != found["recipe"]["digest"]:
                self.reason = "the recipe is another one by now"
        except (BittrueError, OSError) as error:
            self.reason = error.message if isinstance(error, BittrueError) else str(error)

    def of(self, row: Row, sample: Sample, thumbnail: Mapping[str, Any]) -> dict[str, Any]:
        """What lies on the thumbnail of a sample."""
        if self.reason or not row.answers:
            return {}
        (columns, rows), small = thumbnail["whole"], thumbnail["size"]
        placement = self._recipe.placement(rows, columns, self._port)
        return overlays(self._task, row, sample, placement, (small[1], small[0]), self._classes)


def _source(folder: Folder, data: str) -> Source:
    if not data:
        raise InputError("BT-DATA", "the samples came from no file that was named")
    names = [port["name"] for port in folder.asked["inputs"]]
    source = open_source(data, names if len(names) > 1 else ())
    asked = folder.asked["data"]
    if (source.kind, len(source)) != (asked["kind"], asked["samples"]):
        raise InputError(
            "BT-DATA",
            f"expected {asked['samples']:,} samples ({asked['kind']}), found {len(source):,} ({source.kind})",
            place=data,
        )
    return source
