"""Medians as horizontal bars, one group per number of threads. Needs matplotlib (the extra `plot`)."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from .comparison import OURS, Comparison
from .timing import ratio_text

FORMATS = (".svg", ".png")
_OURS, _EQUAL, _DIFFERENT = "#1b6ca8", "#8a8f98", "#d9a441"


def check_chart(path: Path) -> None:
    """Fail before anything is measured when the chart could not be written.

    Raises:
        InputError: another suffix than .svg or .png, or matplotlib is missing.
    """
    if path.suffix.lower() not in FORMATS:
        raise InputError("BT-CHART", f"a chart is one of {', '.join(FORMATS)}, found '{path.name}'", place="--chart")
    _matplotlib()


def write_chart(path: Path, title: str, caption: str, comparisons: Sequence[Comparison]) -> None:
    """Write the chart of what ran; the suffix decides the format."""
    figure_class, patch = _matplotlib()
    rows = [(c, r) for c in comparisons for r in c.results if r.timing]
    figure = figure_class(figsize=(9, 1.6 + 0.42 * len(rows) + 0.3 * len(comparisons)), layout="constrained")
    axes = figure.subplots()
    position, ticks, labels = 0.0, [], []
    longest = max((r.timing.median for _, r in rows if r.timing), default=0.0)
    previous = None
    for comparison, result in rows:
        if result.timing is None:
            continue
        if previous is not None and previous is not comparison:
            position += 0.6
        previous = comparison
        ours = result.name == OURS
        equal = ours or all(d.equal for d in result.differences)
        colour = _OURS if ours else _EQUAL if equal else _DIFFERENT
        median = result.timing.median
        axes.barh(position, 1e3 * median, color=colour, height=0.8)
        ratio = "" if result.ratio is None else f"  ({ratio_text(result.ratio.median)} x bittrue's)"
        axes.text(1e3 * (median + 0.01 * longest), position, f"{1e3 * median:.4g} ms{ratio}", va="center", fontsize=9)
        ticks.append(position)
        plural = "s" if comparison.threads > 1 else ""
        labels.append(f"{result.title} {result.version}, {comparison.threads} thread{plural}")
        position += 1
    axes.set_yticks(ticks, labels)
    axes.invert_yaxis()
    axes.set_xlim(0, 1e3 * longest * 1.45 or 1)
    axes.set_xlabel("median time of one run, ms (shorter is better)")
    figure.suptitle(title, fontsize=11, fontweight="bold", x=0.01, ha="left")
    axes.spines[["top", "right"]].set_visible(False)
    present = {
        _OURS: "bittrue",
        _EQUAL: "output bytes equal to bittrue's",
        _DIFFERENT: "output bytes differ, or no verdict",
    }
    used = {_OURS} | {_EQUAL if all(d.equal for d in r.differences) else _DIFFERENT for _, r in rows if r.name != OURS}
    axes.legend(
        handles=[patch(color=colour, label=text) for colour, text in present.items() if colour in used],
        fontsize=8,
        loc="lower right",
        frameon=False,
    )
    figure.supxlabel(caption, fontsize=7, color="#555555", x=0.01, ha="left")
    figure.savefig(path, dpi=150)


def _matplotlib() -> tuple[Any, Any]:
    try:
        # Without pyplot: nothing looks for a display, and no global state is left behind.
        return (
            importlib.import_module("matplotlib.figure").Figure,
            importlib.import_module("matplotlib.patches").Patch,
        )
    except ImportError:
        raise InputError(
            "BT-CHART", "charts need matplotlib", place="--chart", advice='pip install "bittrue[plot]"'
        ) from None
