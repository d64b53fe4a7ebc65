"""A result as a short summary for CI pages and pull requests, in GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..names import distinct, short
from . import checking, comparison, conformance, evaluation, words
from .reading import COMPARE, CONFORM, EVALUATE, checked

# Rows of a table: a summary is read at a glance, and CI systems cut long ones.
MOST_ROWS = 20
# Those of a conformance run, and failing cases of it.
MOST_OPERATORS = 100
_MOST_FAILING = 10
_MOST_NAME = 80
_SIGNS = {
    comparison.EQUAL: "✅",
    comparison.BENIGN: "🟡",
    comparison.FAULT: "❌",
    comparison.UNEXPLAINED: "❌",
    comparison.OPEN: "❔",
    comparison.NOTHING: "❔",
    "error": "❌",
    "warning": "🟡",
    "note": "🔵",
}


def render(result: Mapping[str, Any]) -> str:
    """The summary of a result.

    Args:
        result: what `to_dict` of a comparison, check or conformance result gives or `bittrue.evaluate` returns, or the
            same read from JSON.

    Raises:
        InputError: BT-RESULT: the result is damaged.
    """
    data = checked(result)
    lines = {COMPARE: _compare, CONFORM: _conform, EVALUATE: _evaluate}.get(data["format"], _check)(data)
    return "\n".join(lines) + "\n"


def _compare(data: dict[str, Any]) -> list[str]:
    report = comparison.report(data)
    lines = [f"## {_SIGNS[report.kind]} {_text(report.headline)}", "", _text(report.sentence), ""]
    sides = [(side["label"], _text(side["title"]), _code(side["spec"])) for side in (data["a"], data["b"])]
    lines += _table(("", "runtime", "given as"), sides)
    if data["inputs"]:
        lines += [f"{words.plural(len(data['inputs']), 'input')}: {_text(_few(data['inputs'], '; '))}", ""]
    if report.first is not None:
        lines += _first(report, report.first)
        lines += _differing(report)
    if report.causes:
        lines += ["### Rules and causes", ""]
        lines += [_cause(cause) for cause in report.causes[:MOST_ROWS]]
        lines += [*_more(len(report.causes), "cause"), ""]
    lines += [f"- {_text(note)}" for note in data["notes"][:MOST_ROWS]]
    return lines


def _first(report: comparison.Report, position: int) -> list[str]:
    pair = report.pairs[position]
    facts = "; ".join(f"{label} {_text(value)}" for label, value in comparison.facts(pair))
    lines = ["### First divergence", "", f"{_code(pair['a'])}: {facts}.", ""]
    verdict = pair["verdict"]
    text = verdict["text"] if verdict else pair["note"]
    if text:
        lines += [_text(text), ""]
    if verdict and verdict["command"]:
        lines += ["Replay one element:", "", *_block(verdict["command"])]
    return lines


def _differing(report: comparison.Report) -> list[str]:
    rows = []
    pairs = [report.pairs[position] for position in report.differing[:MOST_ROWS]]
    names = distinct([pair["a"] for pair in pairs], _MOST_NAME)
    for position, pair, name in zip(report.differing, pairs, names, strict=False):
        own, alone = pair["cumulative"], pair["isolated"]
        causes = ", ".join(_code(cause.name) for cause in report.causes_of(position)[:3])
        rows.append(
            (
                _code(name),
                _text(pair["source"] or pair["operator"] or "input"),
                words.percent(own["differing"], own["elements"]),
                words.number(own["largest"]),
                "" if alone is None else words.percent(alone["differing"], alone["elements"]),
                _text(comparison.state(pair)[1]),
                causes or _text(pair["note"]),
            )
        )
    head = ("tensor", "operator", "differing", "largest", "in isolation", "verdict", "cause")
    return [
        f"### Differing tensors ({words.count(len(report.differing))})",
        "",
        *_table(head, rows),
        *_more(len(report.differing), "tensor"),
        "",
    ]


def _cause(cause: comparison.Cause) -> str:
    amount = f"{words.plural(cause.elements, 'element')} in {words.plural(len(cause.tensors), 'tensor')}"
    return f"- {_code(cause.name)} ({_text(cause.verdict)}): {_text(cause.data['text'])}; {amount}"


def _check(data: dict[str, Any]) -> list[str]:
    report = checking.report(data)
    lines = [f"## {_SIGNS[report.kind]} {_text(report.headline)}", "", _text(report.sentence), ""]
    if data["model"]:
        lines += [f"Model {_code(data['model'])}", ""]
    for group in report.groups:
        title = f"{group.code} {group.name}".strip()
        lines += [f"### {_SIGNS[group.severity]} {_text(title)} ({words.count(len(group.findings))})", ""]
        rows = [
            (finding["severity"], _text(checking.place(finding)), _text(finding["message"]), _text(finding["advice"]))
            for finding in group.findings[:MOST_ROWS]
        ]
        lines += _table(("severity", "where", "what was found", "what to do"), rows)
        lines += [*_more(len(group.findings), "finding"), f"`bittrue rule {_text(group.code)}` explains this rule.", ""]
    if data["failures"]:
        lines += ["### Rules that came to no end", ""]
        lines += [f"- {_text(failure['code'])}: {_text(failure['message'])}" for failure in data["failures"]]
        lines += [""]
    return lines + [f"- {_text(note)}" for note in data["notes"][:MOST_ROWS]]


def _conform(data: dict[str, Any]) -> list[str]:
    report = conformance.report(data)
    lines = [f"## {_SIGNS[report.kind]} {_text(report.headline)}", "", _text(report.sentence), ""]
    lines += _table(("", ""), [(label, _text(value)) for label, value in conformance.facts(data)])
    order = sorted(data["operators"], key=lambda found: found["verdict"] == "exact")
    rows = []
    for found in order[:MOST_OPERATORS]:
        exact, ran, skipped = conformance.counted(found)
        said = [conformance.who(found), conformance.recorded(found)]
        sign = _SIGNS[conformance.kind(found)]
        rows.append(
            (
                _text(found["operator"]),
                _text(found["types"]),
                conformance.level(found),
                f"{sign} {_text(found['verdict'])}",
                _text("; ".join(filter(None, said))),
                f"{exact}/{ran}",
                str(skipped),
                _refuses(found),
            )
        )
    head = ("operator", "types", "level", "verdict", "arithmetic, or what is wrong", "exact", "skipped", "refuses")
    lines += _table(head, rows)
    rest = len(order) - MOST_OPERATORS
    lines += [f"and {words.count(rest)} more operators", ""] if rest > 0 else []
    for found in [found for found in order if found["failing"] is not None][:_MOST_FAILING]:
        failing = found["failing"]
        place = ", ".join(map(str, failing["element"]))
        lines += [
            f"- {_code(failing['identity'])}: {_code(failing['output'])} \\[{place}\\] is "
            f"{words.number(failing['got'])}, {_text(failing['numerics'])} gives {words.number(failing['expected'])}; "
            f"{_text(found['text'])}"
        ]
    lines += [""]
    for model in data["models"]:
        matches = ", ".join(model["matches"]) or model["text"] or "no numerics"
        lines += [f"- model {_code(model['name'])}, {words.plural(len(model['inputs']), 'input')}: {_text(matches)}"]
    return lines + [f"- {_text(note)}" for note in data["notes"][:MOST_ROWS]]


def _evaluate(data: dict[str, Any]) -> list[str]:
    report = evaluation.report(data)
    lines = [f"## {_SIGNS[report.kind]} {_text(report.headline)}", "", _text(report.sentence), ""]
    rows = [
        (_text(name), *(evaluation.number(found.get(figure)) for figure in report.figures), data["digests"][name][:16])
        for name, found in data["metrics"].items()
    ]
    lines += _table(("numerics", *map(_text, report.figures), "digest"), rows)
    lines += [*(f"- {_text(note)}" for note in data["notes"][:MOST_ROWS]), ""] if data["notes"] else []
    for pair in data["flips"]:
        if not pair["count"]:
            continue
        flips = [
            (
                _code(flip["id"]),
                _text(report.named(flip["label"])),
                *(_text(report.named(answer)) for answer in flip["predictions"]),
                "" if flip["margin"] is None else f"{flip['margin']:.4g}",
            )
            for flip in pair["samples"][:MOST_ROWS]
        ]
        lines += [f"### {_text(evaluation.effect(pair))}", ""]
        lines += _table(("sample", "label", *map(_text, pair["pair"]), "margin"), flips)
        lines += _more(pair["count"], "flip")
        if pair["samples"] and pair["samples"][0]["command"]:
            lines += ["What is behind the first one:", "", *_block(pair["samples"][0]["command"])]
    return lines + [f"- {_text(label)}: {_text(value)}" for label, value in evaluation.asked(data)]


def _refuses(found: dict[str, Any]) -> str:
    refused, accepted = conformance.must_refuse(found)
    return f"{refused}/{refused + accepted}" if refused + accepted else ""


def _table(head: tuple[str, ...], rows: list[Any]) -> list[str]:
    if not rows:
        return []
    lines = [head, tuple("---" for _ in head), *rows]
    # A bar ends a cell even within code.
    cells = ([re.sub(r"(?<!\\)\|", r"\|", cell) for cell in line] for line in lines)
    return [*(f"| {' | '.join(line)} |" for line in cells), ""]


def _more(number: int, noun: str) -> list[str]:
    rest = number - MOST_ROWS
    return [f"and {words.count(rest)} more {noun}{'' if rest == 1 else 's'}", ""] if rest > 0 else []


def _few(texts: list[str], between: str) -> str:
    more = f"{between}and {len(texts) - 4} more" if len(texts) > 4 else ""
    return between.join(texts[:4]) + more


def _text(text: str) -> str:
    r"""Plain words that stay plain words: no markup, links, mentions or HTML. What stands between backticks is code.

    >>> _text("</td><b> a|b [x](y) *z* @me #1")
    '&lt;/td&gt;&lt;b&gt; a\\|b \\[x\\](y) \\*z\\* &#64;me &#35;1'
    >>> _text("`a_b` and c_d`")
    '`a_b` and c\\_d\\`'
    """
    parts = " ".join(text.split("\n")).split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = ["`".join(parts[-2:])]
    return "".join(_code(part) if i % 2 else _words(part) for i, part in enumerate(parts))


def _words(text: str) -> str:
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    escaped = re.sub(r"([\\`*_\[\]|~])", r"\\\1", plain)
    return escaped.replace("#", "&#35;").replace("@", "&#64;")


def _code(text: str) -> str:
    """A name as code.

    >>> print(_code("a`c"))
    `` a`c ``
    """
    one_line = short(" ".join(text.split()), _MOST_NAME) or " "
    fence = "`" * (_longest_run(one_line) + 1)
    room = " " if len(fence) > 1 else ""
    return f"{fence}{room}{one_line}{room}{fence}"


def _block(command: str) -> list[str]:
    """A command, to be copied."""
    fence = "`" * max(3, 1 + _longest_run(command))
    return [f"{fence}sh", command, fence, ""]


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
