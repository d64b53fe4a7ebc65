"""A result as one HTML file that needs nothing else: no network, no server, no framework.

Needs the extra `report`: Jinja2, and Plotly for its JavaScript, embedded once where there is something to draw.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from ..errors import InputError
from ..names import distinct, short
from . import checking, comparison, conformance, evaluation, words
from .charts import chart_data
from .reading import COMPARE, CONFORM, EVALUATE, checked

# Tensors whose images and witness are in the page; the table has them all.
MOST_DETAILS = 300
# Tensors that are in the page at all.
MOST_TENSORS = 5_000
# Findings of one rule that a page of a check shows.
MOST_FINDINGS = 500
# Longest name in a table.
_NAME = 56


def render(result: Mapping[str, Any]) -> str:
    """The page of a result.

    Args:
        result: what `to_dict` of a comparison, check or conformance result gives, what `bittrue.evaluate` returns or
            `bittrue.evaluation.showing.shown` makes of its folder, or the same read from JSON.

    Returns:
        HTML that can be written to a file as UTF-8. Everything that comes from the result is escaped; a content
        security policy forbids the page every request.

    Raises:
        InputError: BT-REPORT: Jinja2 or Plotly is not installed; BT-RESULT: the result is damaged.
    """
    data = checked(result)
    pages = {COMPARE: _compare_page, CONFORM: _conform_page, EVALUATE: _evaluate_page}
    return pages.get(data["format"], _check_page)(data)


def _compare_page(data: dict[str, Any]) -> str:
    report = comparison.thinned(comparison.report(data), MOST_TENSORS)
    detailed = _detailed(report)
    charts = chart_data(report, detailed)
    names = [pair["a"] for pair in report.pairs]
    return _fill(
        "compare.html.j2",
        report=report,
        first=None if report.first is None else report.pairs[report.first],
        detailed=detailed,
        shown=dict(zip(names, distinct(names, _NAME), strict=True)),
        charts=charts,
        plotly=_plotly() if charts["any"] else "",
        view=comparison,
    )


def _check_page(data: dict[str, Any]) -> str:
    report = checking.report(data)
    return _fill(
        "check.html.j2",
        result=data,
        kind=report.kind,
        headline=report.headline,
        sentence=report.sentence,
        groups=report.groups,
        quiet=report.quiet,
        most=MOST_FINDINGS,
    )


def _conform_page(data: dict[str, Any]) -> str:
    return _fill(
        "conform.html.j2",
        result=data,
        report=conformance.report(data),
        view=conformance,
        levels=conformance.LEVELS,
        most=MOST_FINDINGS,
    )


def _evaluate_page(data: dict[str, Any]) -> str:
    report = evaluation.report(data)
    charts = evaluation.chart_data(report)
    first = data["metrics"].get(data["numerics"][0], {}) if data["numerics"] else {}
    return _fill(
        "evaluate.html.j2",
        report=report,
        asked=evaluation.asked(data),
        charts=charts,
        confused=evaluation.confused(first),
        classes=evaluation.per_class(data),
        plotly=_plotly() if charts["any"] else "",
        view=evaluation,
        most=evaluation.MOST_FLIPS,
    )


def _detailed(report: comparison.Report) -> list[int]:
    """Positions of the tensors that are shown in detail, in execution order: first those with a verdict."""
    judged = [i for i in report.differing if report.pairs[i]["verdict"] or i == report.first]
    others = [i for i in report.differing if i not in set(judged)]
    return sorted((judged + others)[:MOST_DETAILS])


def _fill(template: str, **values: Any) -> str:
    text: str = _environment().get_template(template).render(**values)
    return text


@cache
def _environment() -> Any:
    """Jinja2 with our templates; nothing is undefined, and everything is escaped that does not say otherwise."""
    jinja = _needed("jinja2")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("bittrue.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja.StrictUndefined,
    )
    environment.filters["short"] = short
    for name in ("count", "percent", "number", "shape", "index"):
        environment.filters[name] = getattr(words, name)
    environment.filters["prose"] = _prose
    environment.globals.update(plural=words.plural, embed=_embed, file=_file)
    return environment


def _embed(value: Any) -> Any:
    """JSON for a script element: nothing in it can end the element or start another."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return _markup(text)


def _prose(text: str) -> Any:
    """A sentence: what stands between backticks is code."""
    parts = [_needed("markupsafe").escape(part) for part in text.split("`")]
    if len(parts) % 2 == 0:
        parts[-2:] = [parts[-2] + "`" + parts[-1]]
    return _markup("").join(_markup(f"<code>{part}</code>") if i % 2 else part for i, part in enumerate(parts))


def _file(name: str) -> Any:
    """A style sheet or script of ours, as it is."""
    return _markup(resources.files(__package__).joinpath("templates", name).read_text("utf-8"))


def _markup(text: str) -> Any:
    """Text that is HTML already; Jinja2 brings markupsafe along."""
    return _needed("markupsafe").Markup(text)


def _plotly() -> Any:
    """plotly.js for a script element."""
    script: str = _needed("plotly.offline").get_plotlyjs()
    # What could end the element early: a string constant stays the same string with the slash escaped.
    return _markup(script.replace("</script", "<\\/script"))


def check_packages() -> None:
    """InputError when what draws pages is not installed."""
    _needed("jinja2")


def _needed(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(
            "BT-REPORT", f"HTML reports need {package}, which is not installed", advice="pip install 'bittrue[report]'"
        ) from None
