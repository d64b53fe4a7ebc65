"""A comparison in the terminal: sides, first difference, table of tensors, verdict with its witness."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.padding import Padding
from rich.text import Text

from ..compare.optimizer_passes import passes_text
from ..compare.result import CompareResult, Downstream, Pair, Side, Statistics, Verdict
from .common import short_names, shortened
from .explain import worked_out
from .tables import Column, table
from .terminal import Terminal, one_line

_BARS = "▁▂▃▄▅▆▇█"
# Differences that the little histogram has room for, and rows of the tables without --tensors.
_REACH = 3
_ROWS = 40
# Longest name in running text.
_NAME = 60
_GUESSED = "order and shape"
_HOW = {"name": "by name", "values": "by values", _GUESSED: "by order and shape"}


def show(result: CompareResult, out: Terminal, every_tensor: bool) -> None:
    """Everything that a reader wants to know first, top down."""
    for side in (result.a, result.b):
        _side(side, out)
    shown = result.inputs if len(result.inputs) <= 4 else (*result.inputs[:3], f"... {len(result.inputs)} runs in all")
    for text in shown:
        out.print(f"input: {text}")
    _headline(result, out)
    other = [p for p in result.pairs if p.a != p.b or p.layout != "same"]
    if every_tensor or (other and not result.equal):
        _matches(result, out, every_tensor)
    differing = [p for p in result.pairs if not p.equal or (p.isolated and not p.isolated.equal)]
    rows = list(result.pairs) if every_tensor else differing
    if rows:
        _differences(rows if every_tensor else rows[:_ROWS], len(rows), result, out, every_tensor)
    _verdicts(result, out)
    for downstream in result.amplification:
        _amplified(downstream, out, every_tensor)
    if result.passes:
        out.print("optimiser", style="bold")
        for line in passes_text(result.passes):
            out.print(f"  {line}" if line else "")
    of_sides = [f"{side.label}: {note}" for side in (result.a, result.b) for note in side.notes]
    for note in (*of_sides, *result.notes):
        out.print(f"note: {short_names(note)}")
    _notes_of_pairs(result, out, every_tensor)
    _unexplained(result, out)


def _side(side: Side, out: Terminal) -> None:
    numerics = f" [numerics {side.numerics}]" if side.numerics and side.numerics not in side.title else ""
    out.print(one_line((f"{side.label}  ", "bold"), side.spec))
    out.print(Padding(Text(f"{side.title}{numerics}", style="dim"), (0, 0, 0, 3), expand=False))


def _headline(result: CompareResult, out: Terminal) -> None:
    pairs, first = result.pairs, result.first
    if not pairs:
        out.print("NOTHING COMPARED", style="bold yellow")
        return
    if result.equal:
        elements = sum(p.cumulative.elements for p in pairs)
        text = f"EQUAL: {_plural(len(pairs), 'tensor')}, {_plural(elements, 'element')}, byte for byte"
        out.print(text, style="bold green")
        return
    count = sum(not p.cumulative.equal for p in pairs)
    alone = sum(p.cumulative.equal and p.isolated is not None and not p.isolated.equal for p in pairs)
    more = f"; {_plural(alone, 'other')} only in isolation" if alone else ""
    out.print(f"DIFFERENT: {count} of {len(pairs)} tensors differ{more}", style="bold red")
    if first is not None:
        out.print(
            one_line(
                "first: ",
                (f"{_place(first)} '{shortened(first.a, _NAME)}'", "bold"),
                f", {_count(first.cumulative.differing)} of {_count(first.cumulative.elements)} elements",
            )
        )


def _matches(result: CompareResult, out: Terminal, every_tensor: bool) -> None:
    """Which tensor of B stands for which of A; in short unless every tensor is asked for."""
    how = Counter(_HOW.get(p.how, p.how) for p in result.pairs)
    layouts = Counter(p.layout for p in result.pairs if p.layout != "same")
    text = f"matched {_plural(len(result.pairs), 'tensor')}: {_listed(how)}"
    text += f"; layouts: {_listed(layouts)}" if layouts else ""
    left = [f"{len(n)} of {s}" for s, n in (("A", result.unmatched_a), ("B", result.unmatched_b)) if n]
    text += f"; without a partner: {', '.join(left)}" if left else ""
    out.print(f"{text} (--tensors lists them, --match A=B overrides)")
    rows = [p for p in result.pairs if every_tensor or p.how not in ("name", "given")]
    if rows:
        columns = [Column("A", "name"), Column("B", "name"), Column("types", least=2), Column("shape", least=1)]
        columns += [Column("layout", "text"), Column("by", "text")]
        listed = []
        for pair in rows if every_tensor else rows[:_ROWS]:
            types = pair.dtype_a if pair.dtype_a == pair.dtype_b else f"{pair.dtype_a} {pair.dtype_b}"
            shape = "x".join(map(str, pair.shape)) or "scalar"
            b = "same name" if pair.a == pair.b else pair.b
            listed.append((pair.a, b, types, shape, pair.layout, _HOW.get(pair.how, pair.how)))
        out.print(table(columns, listed, out.width, "matched tensors"))
    if every_tensor:
        for label, names in (("A", result.unmatched_a), ("B", result.unmatched_b)):
            for name in names:
                out.print(f"no partner: {label} '{name}'", style="dim")


def _differences(rows: Sequence[Pair], total: int, result: CompareResult, out: Terminal, every_tensor: bool) -> None:
    isolated = any(p.isolated is not None for p in rows)
    reasons = _reasons(result)
    columns = [
        Column("node", right=True),
        Column("operator", "name", least=1, room=14),
        Column("tensor", "name", room=14),
    ]
    columns += [Column("differ", right=True), Column("max", right=True), Column("bias", right=True, least=4)]
    columns += [Column("b - a", least=2), Column("worst: a, b", least=3)]
    columns += [Column("isolated", right=True), Column("max ", right=True), Column("why")] if isolated else []
    listed: list[list[str | Text]] = []
    for p in rows:
        cells: list[str | Text] = ["" if p.node is None else str(p.node), p.source, p.a]
        cells += [_share(p.cumulative), _largest(p.cumulative), _number(p.cumulative.bias)]
        cells += [_bars(p.cumulative.histogram), _worst(p.cumulative)]
        if isolated:
            alone = p.isolated
            cells += ["-", ""] if alone is None else [_share(alone), _largest(alone)]
            cells.append(Text(_short(p.verdict, alone, reasons), style=_style(p.verdict)))
        listed.append(cells)
    title = "tensors in execution order" if every_tensor else "differing tensors in execution order"
    out.print(table(columns, listed, out.width, title))
    if total > len(rows):
        out.print(f"... and {total - len(rows)} more (--tensors shows all)")
    if isolated:
        host, guest = _labels(result)
        text = f"isolated: {guest} against {host}'s arithmetic on {guest}'s inputs of that operator"
        out.print(text, style="dim")
    for text, number in reasons.items():
        found = [p.verdict for p in result.pairs if p.verdict and any(c.text == text for c in p.verdict.causes)]
        elements = sum(c.elements for v in found for c in v.causes if c.text == text)
        count = f"{_plural(elements, 'element')} of {_plural(len(found), 'operator')}"
        out.print(f"why {number}: {short_names(text)} ({count})")


def _reasons(result: CompareResult) -> dict[str, int]:
    """Causes, numbered in the order in which tensors need them."""
    causes = dict.fromkeys(c.text for p in result.pairs if p.verdict is not None for c in p.verdict.causes)
    return {text: number for number, text in enumerate(causes, 1)}


def _verdicts(result: CompareResult, out: Terminal) -> None:
    """The verdict on the first isolated difference, and on the first that is no other legal arithmetic."""
    found = [pair for pair in result.pairs if pair.verdict is not None]
    told = {cause.text for pair in found[:1] if pair.verdict is not None for cause in pair.verdict.causes}
    worse = [
        pair
        for pair in found[1:]
        if pair.verdict is not None
        and not pair.verdict.benign
        and (pair.verdict.unexplained or not {cause.text for cause in pair.verdict.causes} <= told)
    ]
    for pair in found[:1] + worse[:1]:
        if pair.verdict is not None:
            _verdict(pair, pair.verdict, result, out)


def _verdict(pair: Pair, verdict: Verdict, result: CompareResult, out: Terminal) -> None:
    host, guest = _labels(result)
    head = f"verdict on {_place(pair)} '{shortened(pair.a, _NAME)}': "
    style = "green" if verdict.benign else "yellow" if verdict.inexact else "red"
    out.print(one_line((head, "bold"), (short_names(verdict.text), style)))
    if verdict.unexplained and pair.how == _GUESSED:
        out.print(f"  is '{pair.b}' of B this tensor? only order and shape say so: --match A=B")
    for cause in verdict.causes:
        if cause.formula:
            where = f" (as {', '.join(cause.numerics)})" if cause.numerics else ""
            out.print(Padding(Text(f"{guest}: {cause.formula}{where}"), (0, 0, 0, 2), expand=False))
    if verdict.also:
        out.print(f"  fits as well: {'; '.join(verdict.also)}")
    if verdict.alike:
        out.print(f"  the same on further random inputs, too: {'; '.join(verdict.alike)}")
    _witness(verdict.witness, host, guest, out)
    if verdict.command:
        out.print(one_line(("replay: ", "bold"), verdict.command), soft_wrap=True)


def _labels(result: CompareResult) -> tuple[str, str]:
    """The side whose arithmetic is taken apart, and the one whose values are explained."""
    return ("B", "A") if result.host == "B" else ("A", "B")


def _witness(witness: Mapping[str, Any], host: str, guest: str, out: Terminal) -> None:
    if not witness:
        return
    element = ", ".join(map(str, witness.get("element", ())))
    stored, theirs = witness.get("stored"), witness.get("theirs")
    out.print(f"  witness [{element}]: {host} {stored}, {guest} {theirs}")
    if witness.get("lines"):
        lines = [(line["label"], str(line["value"] or ""), line["remark"] or "") for line in witness["lines"]]
        out.print(Padding(worked_out(lines, out.width - 4), (0, 0, 0, 4), expand=False))
    if not witness.get("lines"):
        for name, value in witness.get("numbers", {}).items():
            shown = f"{value:.9g}" if isinstance(value, float) else str(value)
            out.print(f"    {name.replace('_', ' '):<22} {shown}")


def _amplified(found: Downstream, out: Terminal, every_tensor: bool) -> None:
    text = f"the difference of '{shortened(found.tensor, _NAME)}' alone, all else A's arithmetic"
    out.print(one_line(("amplified: ", "bold"), text))
    rows = found.reached if every_tensor else [r for r in found.reached if r[1]][:_ROWS]
    if rows:
        columns = [Column("tensor", "name"), Column("differ", right=True)]
        out.print(table(columns, [(name, f"{100 * share:.3g}%") for name, share in rows], out.width))
    else:
        out.print("  nothing behind it changes")
    for name, statistics in found.outputs.items():
        text = "unchanged" if statistics.equal else f"{_share(statistics)} differ, by at most {_largest(statistics)}"
        out.print(f"  output '{name}': {text}")
    changed = sum(a != b for a, b in found.labels)
    if found.labels:
        moves = ", ".join(f"{a} to {b}" for a, b in found.labels if a != b)
        out.print(f"  top-1 label: changed in {changed} of {len(found.labels)} runs" + (f" ({moves})" if moves else ""))


def _notes_of_pairs(result: CompareResult, out: Terminal, every_tensor: bool) -> None:
    """Why tensors have no isolated difference; one line per reason unless every tensor is asked for."""
    reasons: dict[str, list[str]] = {}
    for pair in result.pairs:
        if pair.note and (every_tensor or not pair.equal):
            reasons.setdefault(pair.note, []).append(pair.a)
    for note, names in list(reasons.items())[: None if every_tensor else 8]:
        many = f" and {len(names) - 1} more" if len(names) > 1 else ""
        out.print(f"'{shortened(names[0], _NAME)}'{many}: {note}", style="dim")


def _unexplained(result: CompareResult, out: Terminal) -> None:
    verdicts = [p.verdict for p in result.pairs if p.verdict is not None]
    if not verdicts:
        return
    differing = sum(v.differing for v in verdicts)
    left = result.unexplained
    benign = sum(v.benign for v in verdicts)
    operators = _plural(len(verdicts), "operator")
    text = f"{_count(left)} unexplained of {_count(differing)} elements that differ in {operators}"
    text += f"; {benign} of them use{'s' if benign == 1 else ''} another legal arithmetic" if benign else ""
    inexact = sum(v.inexact for v in verdicts)
    text += f"; {inexact} of them {'is' if inexact == 1 else 'are'} inexact here" if inexact else ""
    out.print(text, style="bold red" if left else "bold")


def _short(verdict: Verdict | None, alone: Statistics | None, reasons: Mapping[str, int]) -> str:
    if verdict is None:
        return "" if alone is None or not alone.equal else "inherited"
    if verdict.inexact:
        return "inexact here"
    causes = [str(reasons[c.text]) for c in verdict.causes]
    numbers = "+".join(causes) if len(causes) < 3 else f"{causes[0]} and {len(causes) - 1} more"
    if verdict.unexplained or not verdict.causes:
        left = f"{_count(verdict.unexplained or verdict.differing)} unexplained"
        return f"{numbers}, {left}" if numbers else left
    return f"{numbers} {'benign' if verdict.benign else 'fault'}"


def _style(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    return "green" if verdict.benign else "yellow" if verdict.exact or verdict.inexact else "red"


def _bars(histogram: Mapping[str, int]) -> str:
    """Differences -3 to 3 as small bars on a logarithmic scale; arrows stand for larger ones."""
    counts: dict[int, int] = {}
    far = ["", ""]
    for key, count in histogram.items():
        try:
            value = int(key)
        except ValueError:
            far[1] = ">"
            continue
        if abs(value) > _REACH:
            far[value > 0] = "<>"[value > 0]
        else:
            counts[value] = count
    top = max(counts.values(), default=1)
    bars = "".join(_bar(counts.get(value, 0), top) if value else "|" for value in range(-_REACH, _REACH + 1))
    return f"{far[0] or ' '}{bars}{far[1] or ' '}"


def _bar(count: int, top: int) -> str:
    if not count:
        return " "
    height = math.log1p(count) / math.log1p(top)
    return _BARS[min(int(height * len(_BARS)), len(_BARS) - 1)]


def _share(statistics: Statistics) -> str:
    if statistics.equal:
        return "0"
    return f"{100 * statistics.share:.3g}%"


def _largest(statistics: Statistics) -> str:
    if statistics.equal:
        return ""
    return "not a number" if statistics.largest is None else f"{statistics.largest:.4g}"


def _worst(statistics: Statistics) -> str:
    worst = statistics.worst
    if worst is None:
        return ""
    return f"{','.join(map(str, worst.element))}: {_value(worst.a)}, {_value(worst.b)}"


def _value(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:.6g}"


def _number(value: float | None) -> str:
    return "" if value is None else "0" if value == 0 else f"{value:+.2g}"


def _place(pair: Pair) -> str:
    return f"node {pair.node} {pair.source}" if pair.node is not None else "tensor"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {key}" for key, count in counts.items())


def _plural(number: int, word: str) -> str:
    return f"{_count(number)} {word}{'' if number == 1 else 's'}"


def _count(number: int) -> str:
    return f"{number:,}"
