"""A result checked: the suite is made again, the device's outputs are unpacked, and everything is worked out anew.

What a device did cannot be worked out: that it crashed, refused, or gave these bytes is its owner's word, which the
digest keeps together. Everything that is *said about* these answers can, and is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import __version__
from ..errors import BittrueError, InputError
from ..names import parse_shard
from ..report.result import plain
from .claims import with_claim
from .conform import ask, group_cases, group_names
from .devices import Device
from .expected import Expected, Outputs
from .failing import reduced_inputs
from .judging import judge
from .models import ModelFile, reproduces
from .result import (
    ACCEPTS,
    ADVISED,
    NO_ADVICE,
    NO_REFUSAL,
    PERMITS,
    REFUSED,
    CaseResult,
    ConformResult,
    Failing,
    ModelResult,
    OperatorResult,
    digest_of,
)
from .suite import SUITE_VERSION, Suite, SuiteCase, find_suite
from .verdicts import Record, misfit, output_array

_ADVICE = "run `bittrue conform` again"
# Outcomes of cases whose outputs are recorded as differences from the reference.
_UNPACKED = ("exact", "differs")


def verify(
    data: Any,
    models: Sequence[ModelFile] = (),
    device: Device | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[str]:
    """What does not hold of a result; an empty list when everything does.

    Args:
        data: the JSON of a result.
        models: those of level 4 again, with the inputs that they got.
        device: asked again, too.
        progress: called with how many operators are done, and of how many.

    Raises:
        InputError: it is no result, or damaged so that it cannot be read.
    """
    result = ConformResult.from_dict(data)
    problems = []
    if digest_of(data) != result.digest:
        problems.append("digest: the file was changed after it was written")
    if plain(result.to_dict()) != data:
        strange = sorted(key for key in {*data, *result.to_dict()} if data.get(key) != result.to_dict().get(key))
        problems.append(f"fields that do not fit the rest: {', '.join(strange)}")
    if result.suite_version != SUITE_VERSION:
        problems.append(f"suite version {result.suite_version}: this is version {SUITE_VERSION}, which has other cases")
        return problems
    if result.version != __version__:
        problems.append(f"made by bittrue {result.version!r}: this is {__version__}")
    suite = find_suite(result.suite)
    if result.suite_title != suite.title:
        problems.append(f"suite_title: the suite is called '{suite.title}'")
    groups = [g for g in group_names(suite, result.selection) if group_cases(suite, result.selection, g)]
    recorded = {(o.operator, o.types): o for o in result.operators}
    if list(recorded) != groups or len(result.operators) != len(groups):
        odd = sorted({*recorded} ^ {*groups})
        problems.append(f"operators: not those that were selected ({', '.join(' '.join(g) for g in odd) or 'order'})")
    again = []
    for done, group in enumerate(groups):
        if progress is not None:
            progress(done, len(groups))
        if group in recorded:
            found, new = _operator(result, suite, recorded[group], group_cases(suite, result.selection, group), device)
            problems += found
            again.append(new)
    problems += _models(result, models)
    settled = with_claim(replace(result, operators=tuple(again)))
    for name in ("level", "refuses", "claimed", "claim", "notes"):
        if getattr(settled, name) != getattr(result, name):
            problems.append(f"{name}: recorded {getattr(result, name)!r}, worked out {getattr(settled, name)!r}")
    return problems


def _operator(
    result: ConformResult, suite: Suite, recorded: OperatorResult, cases: Sequence[SuiteCase], device: Device | None
) -> tuple[list[str], OperatorResult]:
    """What does not hold of one operator, and the verdict worked out anew."""
    title = f"{recorded.operator} {recorded.types}"
    if [(c.identity, c.sha256, c.aim, c.note) for c in recorded.cases] != [
        (c.identity, c.sha256, c.aim, c.note) for c in cases
    ]:
        return [f"{title}: its cases are not those of the suite"], recorded
    problems, records = [], []
    for case, one in zip(cases, recorded.cases, strict=True):
        try:
            records.append(_record(recorded, case, one))
        except InputError as error:
            problems.append(f"{case.identity}: {error.message}")
    if device is not None:
        problems += _asked_again(device, result, cases, records)
    if len(records) < len(cases):
        return problems, recorded
    new = judge(suite, recorded.operator, recorded.types, records, result.numerics, result.device)
    new = replace(
        new,
        failing=_with_reduced(new.failing, recorded.failing),
        cases=tuple(
            replace(n, seconds=o.seconds, outputs=n.outputs if o.outcome in _UNPACKED else o.outputs)
            for n, o in zip(new.cases, recorded.cases, strict=True)
        ),
    )
    one, two = plain(recorded), plain(new)
    for name in one:
        if name != "cases" and one[name] != two[name]:
            problems.append(f"{title}: {name}: recorded {_short(one[name])}, worked out {_short(two[name])}")
    for a, b in zip(recorded.cases, new.cases, strict=True):
        if a != b:
            problems.append(
                f"{a.identity}: recorded '{a.outcome}' {a.text}, worked out '{b.outcome}' {b.text}".rstrip()
            )
    problems += _reduced(recorded.failing, cases)
    return problems, new


def _record(recorded: OperatorResult, case: SuiteCase, one: CaseResult) -> Record:
    """What the device answered, from the difference to the reference.

    Raises:
        InputError: the recorded outputs are damaged, or are not what they are said to be.
    """
    if one.outcome in _UNPACKED:
        try:
            wanted = Expected(case, (recorded.reference,)).outputs(recorded.reference)
        except (BittrueError, KeyError):
            message = f"the reference {recorded.reference!r} cannot run the case"
            raise InputError("BT-CERTIFICATE", message, advice=_ADVICE) from None
        return Record(case, "outputs", _unpacked(one, wanted), seconds=one.seconds)
    if one.outcome == "wrong outputs":
        return Record(case, "wrong outputs", {}, _misfit(recorded, case, one), one.seconds)
    if one.outcome in (ACCEPTS, PERMITS):
        return Record(case, "wrong outputs", {}, one.text, one.seconds)
    if one.outcome in (NO_REFUSAL, NO_ADVICE):
        status, _, text = one.text.partition(": ")
        return Record(case, status, {}, text.removesuffix(f"; {case.rejects}"), one.seconds)
    if one.outcome == "skipped":
        # A model that must be refused is skipped only where nobody asked.
        return Record(case, "skipped" if case.rejects else "refused", {}, one.text, one.seconds)
    status = "refused" if one.outcome in (REFUSED, ADVISED) else one.outcome
    return Record(case, status, {}, one.text, one.seconds)


def _unpacked(one: CaseResult, wanted: Outputs) -> Outputs:
    if [o.name for o in one.outputs] != list(wanted) and {o.name for o in one.outputs} != set(wanted):
        raise InputError("BT-CERTIFICATE", "the outputs have other names", advice=_ADVICE)
    for o in one.outputs:
        if (o.dtype, o.shape) != (str(wanted[o.name].dtype), wanted[o.name].shape):
            raise InputError("BT-CERTIFICATE", f"output '{o.name}' has another type or shape", advice=_ADVICE)
    return {o.name: output_array(o, wanted[o.name], one.identity) for o in one.outputs}


def _misfit(recorded: OperatorResult, case: SuiteCase, one: CaseResult) -> str:
    """The form of the recorded outputs against every numerics: the text that the run gave is one of these."""
    given = {}
    for o in one.outputs:
        try:
            given[o.name] = np.broadcast_to(np.zeros((), np.dtype(o.dtype)), o.shape)
        except (TypeError, ValueError):
            return one.text
    expected = Expected(case)
    texts = [misfit(given, expected.outputs(a)) for a in expected.arithmetics]
    if one.text not in texts:
        raise InputError("BT-CERTIFICATE", "the recorded outputs are not wrong in this way", advice=_ADVICE)
    return one.text


def _with_reduced(new: Failing | None, recorded: Failing | None) -> Failing | None:
    """What only the device can tell is taken over; it is checked on its own."""
    if new is None or recorded is None:
        return new
    if (new.identity, new.output, new.element) != (recorded.identity, recorded.output, recorded.element):
        return new
    return replace(
        new,
        reduced=recorded.reduced,
        reduced_expected=recorded.reduced_expected,
        reduced_got=recorded.reduced_got,
    )


def _reduced(failing: Failing | None, cases: Sequence[SuiteCase]) -> list[str]:
    """What does not hold of the reduced case: its expected value can be worked out."""
    if failing is None or failing.reduced is None:
        return []
    case = next((c for c in cases if c.identity == failing.identity), None)
    if case is None:
        return [f"{failing.identity}: there is no such case"]
    try:
        changed = case.fed(reduced_inputs(failing, case))
        output = Expected(changed, (failing.numerics,)).outputs(failing.numerics)[failing.output]
        # Too few indices are a part of the tensor and no number: `item` says so.
        wanted = output[failing.element].item()
    except (BittrueError, LookupError, OverflowError, ValueError):
        return [f"{failing.identity}: the reduced case does not fit the case"]
    if wanted != failing.reduced_expected or failing.reduced_got == failing.reduced_expected:
        return [f"{failing.identity}: the reduced case expects {wanted}, recorded {failing.reduced_expected}"]
    return []


def _asked_again(
    device: Device, result: ConformResult, cases: Sequence[SuiteCase], records: Sequence[Record]
) -> list[str]:
    """Cases to which the device answers differently now."""
    problems = []
    known = {record.case.identity: record for record in records}
    for case in cases:
        before = known.get(case.identity)
        if before is None:
            continue
        now = ask(device, case, result.repeat)
        if before.status == "outputs":
            same = now.status == "outputs" and {n: v.tobytes() for n, v in now.outputs.items()} == {
                n: v.tobytes() for n, v in before.outputs.items()
            }
            if not same:
                problems.append(f"{case.identity}: the device gives other outputs now ({now.status})")
        elif before.status in ("refused", "crashed", "timed out", "unreadable") and now.status != before.status:
            problems.append(f"{case.identity}: the device was recorded as '{before.status}', now '{now.status}'")
    return problems


def _models(result: ConformResult, models: Sequence[ModelFile]) -> list[str]:
    problems = []
    given = {m.name: m for m in (ModelFile.demo(), *models)}
    for one in result.models:
        model = given.get(one.name)
        if model is None:
            problems.append(f"model {one.name}: not verified, name the file with --model")
            continue
        wrong = reproduces(model, one) or _counted(one)
        if wrong:
            problems.append(f"model {one.name}: {wrong}")
    return problems


def _counted(one: ModelResult) -> str:
    whole = one.counts == {"exact": len(one.inputs)}
    if sum(one.counts.values()) != len(one.inputs) or bool(one.matches) != whole:
        return "the counts do not fit the verdict"
    return ""


def merge(results: Sequence[ConformResult]) -> ConformResult:
    """The parts of one run put together; every verdict is worked out anew from all cases.

    Raises:
        InputError: parts of different runs, overlapping or missing ones, or damaged outputs.
    """
    if not results:
        raise InputError("BT-USAGE", "nothing to merge")
    first = results[0]
    for other in results[1:]:
        for name in ("suite", "suite_version", "numerics", "device", "device_title", "repeat", "version"):
            if getattr(other, name) != getattr(first, name):
                message = f"parts of different runs: {name} {getattr(first, name)!r} and {getattr(other, name)!r}"
                raise InputError("BT-MERGE", message, advice=_ADVICE)
        if replace(other.selection, shard="") != replace(first.selection, shard=""):
            raise InputError("BT-MERGE", "parts of different selections of operators, types or cases", advice=_ADVICE)
    if first.suite_version != SUITE_VERSION:
        message = f"suite version {first.suite_version}, this is version {SUITE_VERSION}"
        raise InputError("BT-MERGE", message, advice=_ADVICE)
    _check_shards([r.selection.shard for r in results])
    suite = find_suite(first.suite)
    selection = replace(first.selection, shard="")
    found = []
    for group in group_names(suite, selection):
        parts = [o for r in results for o in r.operators if (o.operator, o.types) == group]
        found.append(_merged(first, suite, group_cases(suite, selection, group), parts))
    models = tuple(m for r in results for m in r.models)
    return with_claim(
        replace(
            first,
            selection=selection,
            operators=tuple(o for o in found if o.cases),
            models=models,
            seconds=round(sum(r.seconds for r in results), 3),
            date=max(r.date for r in results),
        )
    )


def _check_shards(shards: Sequence[str]) -> None:
    numbers = [parse_shard(shard) for shard in shards]
    count = numbers[0][1]
    if any(n != count for _, n in numbers):
        raise InputError("BT-MERGE", f"parts of different divisions: {', '.join(shards)}", advice=_ADVICE)
    twice = sorted({i for i, _ in numbers if [k for k, _ in numbers].count(i) > 1})
    if twice:
        raise InputError("BT-MERGE", f"part {twice[0]}/{count} is given twice")
    missing = sorted(set(range(1, count + 1)) - {i for i, _ in numbers})
    if missing:
        raise InputError("BT-MERGE", f"part {missing[0]}/{count} is missing")


def _merged(
    first: ConformResult, suite: Suite, cases: Sequence[SuiteCase], parts: Sequence[OperatorResult]
) -> OperatorResult:
    known: Mapping[str, tuple[OperatorResult, CaseResult]] = {c.identity: (o, c) for o in parts for c in o.cases}
    records = []
    for case in cases:
        if case.identity not in known or known[case.identity][1].sha256 != case.sha256:
            raise InputError("BT-MERGE", f"no part has the case {case.identity}", advice=_ADVICE)
        records.append(_record(known[case.identity][0], case, known[case.identity][1]))
    operator, types = (cases[0].operator, cases[0].types) if cases else ("", "")
    new = judge(suite, operator, types, records, first.numerics, first.device)
    for part in parts:
        new = replace(new, failing=_with_reduced(new.failing, part.failing) if part.failing else new.failing)
    old = {identity: one for identity, (_, one) in known.items()}
    kept = tuple(c if c.outcome in _UNPACKED else replace(c, outputs=old[c.identity].outputs) for c in new.cases)
    return replace(new, cases=kept)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
