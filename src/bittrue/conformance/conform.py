"""The conformance run: a device runs every case of a suite, and its answers are judged."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from .. import __version__
from .. import numerics as numerics_tables
from ..errors import BittrueError, InputError
from ..names import parse_shard
from ..runners.guard import process_pool, without_interrupts
from .claims import with_claim
from .devices import Device
from .devices.opening import open_device
from .failing import reduce_failing, save_failing
from .journal import Journal
from .judging import judge
from .models import ModelFile, model_results
from .result import ConformResult, ModelResult, OperatorResult, Selection
from .suite import SUITE_VERSION, SUITES, Suite, SuiteCase, find_suite
from .verdicts import ORDERLY, Record, record_of

# Called with how many parts are done and how many there are; 0 as long as nobody knows.
Progress = Callable[[int, int], None]
# Called with the identity of a case and what the device printed.
Prints = Callable[[str, str], None]
REPEAT, TIMEOUT = 2, 30.0


def conform(
    device: object,
    suite: str = "",
    *,
    operators: Sequence[str] = (),
    types: Sequence[str] | None = None,
    aims: Sequence[str] = (),
    cases: Sequence[str] = (),
    shard: str = "",
    numerics: str = "",
    repeat: int = REPEAT,
    resume: str | Path | None = None,
    models: Sequence[ModelFile] = (),
    demo: bool = True,
    jobs: int = 1,
    timeout: float = TIMEOUT,
    save: str | Path | None = None,
    progress: Progress | None = None,
    prints: Prints | None = None,
) -> ConformResult:
    """Run a suite on a device and judge its answers.

    Args:
        device: a spec (``"litert:xnnpack"``, ``"program:./device.sh"``), a `Device`, or what `open_device` takes.
        suite: ``"litert"`` or ``"onnx"``; empty: by the format that the device prefers.
        operators, types, aims, cases: only these; all operators, and the suite's default types, without.
        shard: ``"2/5"``: the second of five parts that `merge` puts together.
        numerics: the only numerics that verdicts may name; empty for any.
        repeat: how often each case is asked; another answer is a fault.
        resume: a file that keeps the answers; what it has already is not asked again.
        models: whole models for level 4.
        demo: whether the embedded model is among them, where the device reads its format.
        jobs: processes, each with a device of its own; only for devices given by a spec.
        timeout: seconds for one case, for adapters that can end what they started.
        save: a folder that gets the smallest failing case of every operator.
        progress: called now and then.
        prints: called with the identity of a case and what the device wrote on standard output and standard error
            while it ran it, where that is a process of its own; only with one job.

    Raises:
        InputError: arguments that make no sense, an unknown device.
    """
    started = time.perf_counter()
    if jobs > 1 and not isinstance(device, str):
        raise InputError("BT-USAGE", "several processes need a device that is given by a spec", place="jobs")
    if jobs > 1 and prints is not None:
        raise InputError("BT-USAGE", "what devices print is shown with one job only", place="prints")
    if repeat < 1:
        raise InputError("BT-USAGE", "every case is asked at least once", place="repeat")
    if numerics:
        # Raises for an unknown one.
        numerics_tables.find(numerics)
    parse_shard(shard)
    opened = device if isinstance(device, Device) else open_device(device, timeout=timeout)
    try:
        chosen = find_suite(suite or suite_of(opened))
        if chosen.format not in opened.reads:
            message = f"the device reads {', '.join(opened.reads)}, the suite '{chosen.name}' is {chosen.format}"
            raise InputError("BT-SUITE-FORMAT", message, place=opened.spec)
        named = chosen.named(operators)
        selection = Selection(named, default_types(chosen, types, cases), tuple(aims), tuple(cases), shard)
        task = Task(chosen.name, selection, numerics, repeat, None if resume is None else str(resume))
        journal = None if resume is None else Journal(Path(resume), task.header(opened.title))
        groups = group_names(chosen, selection)
        if jobs > 1:
            parts = _side_by_side(str(device), timeout, task, opened.title, groups, jobs, journal, progress)
        else:
            parts = _one_by_one(opened, task, groups, journal, progress, prints)
        found = [part for part in parts if part.cases]
        if save is not None:
            save_all(chosen, found, Path(save))
        # Of several parts the first one runs the models.
        wanted = [*([ModelFile.demo()] if demo and not _partial(selection) else []), *models]
        wanted = wanted if parse_shard(shard)[0] == 1 else []
        ends = _models(opened, wanted, repeat, numerics)
        return with_claim(
            ConformResult(
                chosen.name,
                chosen.title,
                SUITE_VERSION,
                selection,
                numerics,
                opened.spec,
                opened.title,
                repeat,
                tuple(found),
                tuple(ends),
                seconds=round(time.perf_counter() - started, 3),
                version=__version__,
                date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            )
        )
    finally:
        if opened is not device:
            opened.close()


@dataclass(frozen=True)
class Task:
    """What is asked, apart from the device."""

    suite: str
    selection: Selection
    numerics: str
    repeat: int
    resume: str | None

    def header(self, title: str) -> dict[str, Any]:
        """What answers in a journal depend on."""
        return {"suite": self.suite, "suite_version": SUITE_VERSION, "device": title, "repeat": self.repeat}


def suite_of(device: Device) -> str:
    """The suite of the first format that the device reads."""
    for form in device.reads:
        for suite in SUITES.values():
            if suite.format == form:
                return suite.name
    raise InputError("BT-SUITE", f"no suite for a device that reads {', '.join(device.reads)}", place=device.spec)


def default_types(suite: Suite, types: Sequence[str] | None, cases: Sequence[str] = ()) -> tuple[str, ...]:
    """The types that are run: the suite's own by default, everything for chosen cases."""
    if types is not None:
        return tuple(types)
    return () if cases else suite.types


def in_shard(identity: str, shard: str) -> bool:
    """Whether a case belongs to a shard; every case belongs to one, whatever else is run."""
    which, count = parse_shard(shard)
    return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], "big") % count == which - 1


def group_names(suite: Suite, selection: Selection) -> list[tuple[str, str]]:
    """Operators and types that a selection reaches, in the suite's order."""
    # Names are checked, nothing is generated.
    next(suite.cases(selection.operators, selection.types, selection.aims), None)
    found = []
    for operator, made in suite.generators().items():
        if selection.operators and operator not in selection.operators:
            continue
        found += [(operator, label) for label in made.types if not selection.types or label in selection.types]
    if selection.cases:
        wanted = {tuple(identity.split("/")[:2]) for identity in selection.cases}
        found = [group for group in found if group in wanted]
        known = {case.identity for group in found for case in suite.cases(group[:1], group[1:])}
        for identity in selection.cases:
            if identity not in known:
                advice = "identities look like CONV_2D/s8/ties/003"
                raise InputError("BT-SUITE-CASE", f"the suite has no case '{identity}'", place="--case", advice=advice)
    return found


def group_cases(suite: Suite, selection: Selection, group: tuple[str, str]) -> list[SuiteCase]:
    """The cases of one operator and types that a selection reaches."""
    return [
        case
        for case in suite.cases(group[:1], group[1:], selection.aims)
        if in_shard(case.identity, selection.shard) and (not selection.cases or case.identity in selection.cases)
    ]


def ask(device: Device, case: SuiteCase, repeat: int, prints: Prints | None = None) -> Record:
    """The device's answers to one case. After a fault it is not asked again."""
    answers = [device.answer(case)]
    if prints is not None and answers[0].printed:
        prints(case.identity, answers[0].printed)
    while len(answers) < repeat and answers[-1].status in ORDERLY:
        answers.append(device.answer(case))
    return record_of(case, answers)


def ask_all(device: Device, cases: Sequence[SuiteCase], repeat: int, prints: Prints | None = None) -> Iterator[Record]:
    """The answers to several cases; devices that are expensive to start are handed all of them at once."""
    if type(device).answers is Device.answers:
        yield from (ask(device, case, repeat, prints) for case in cases)
        return
    answers = [[answer] for answer in device.answers(cases)]
    for _ in range(repeat - 1):
        again = [i for i, given in enumerate(answers) if given[-1].status in ORDERLY]
        for i, answer in zip(again, device.answers([cases[i] for i in again]), strict=True):
            answers[i].append(answer)
    yield from (record_of(case, given) for case, given in zip(cases, answers, strict=True))


def _records(
    device: Device,
    cases: Sequence[SuiteCase],
    repeat: int,
    journal: Journal | None,
    keep: Callable[[Record], None],
    prints: Prints | None = None,
) -> list[Record]:
    """One record per case: the journal's, or the device's, which `keep` gets."""
    known = {case.identity: None if journal is None else journal.find(case) for case in cases}
    fresh = ask_all(device, [case for case in cases if known[case.identity] is None], repeat, prints)
    found = []
    for case in cases:
        record = known[case.identity]
        if record is None:
            record = next(fresh)
            keep(record)
        found.append(record)
    return found


def _one_by_one(
    device: Device,
    task: Task,
    groups: list[tuple[str, str]],
    journal: Journal | None,
    progress: Progress | None,
    prints: Prints | None,
) -> Iterator[OperatorResult]:
    suite = find_suite(task.suite)
    cases = []
    for group in groups:
        if progress is not None:
            progress(0, 0)
        cases.append(group_cases(suite, task.selection, group))
    count, done = sum(map(len, cases)), 0

    def keep(record: Record) -> None:
        nonlocal done
        done += 1
        if journal is not None:
            journal.add(record)
        if progress is not None:
            progress(done, count)

    for group, mine in zip(groups, cases, strict=True):
        first = done
        records = _records(device, mine, task.repeat, journal, keep, prints)
        done = first + len(mine)
        yield _judged(device, suite, task, group, records)


def _judged(device: Device, suite: Suite, task: Task, group: tuple[str, str], records: list[Record]) -> OperatorResult:
    found = judge(suite, *group, records, task.numerics, device.spec)
    if found.failing is None:
        return found
    case = next(r.case for r in records if r.case.identity == found.failing.identity)
    try:
        return replace(found, failing=reduce_failing(found.failing, case, device))
    except BittrueError:
        return found


def _side_by_side(
    spec: str,
    timeout: float,
    task: Task,
    title: str,
    groups: list[tuple[str, str]],
    jobs: int,
    journal: Journal | None,
    progress: Progress | None,
) -> Iterator[OperatorResult]:
    """Operators are shared out among processes; results come in the suite's order."""
    with process_pool(jobs) as pool:
        with without_interrupts():
            waiting = [pool.submit(_one_group, spec, timeout, task, title, group) for group in groups]
        for done, one in enumerate(waiting):
            if progress is not None:
                progress(done, len(groups))
            records, found = one.result()
            if journal is not None:
                for record in records:
                    journal.add(record)
            yield found


def _one_group(
    spec: str, timeout: float, task: Task, title: str, group: tuple[str, str]
) -> tuple[list[Record], OperatorResult]:
    """What one process does: new records without their prepared models, and the verdict."""
    suite = find_suite(task.suite)
    known = None if task.resume is None else Journal(Path(task.resume), task.header(title))
    device = open_device(spec, timeout=timeout)
    fresh: list[Record] = []
    try:
        cases = group_cases(suite, task.selection, group)
        records = _records(
            device, cases, task.repeat, known, lambda record: fresh.append(replace(record, case=replace(record.case)))
        )
        return fresh, _judged(device, suite, task, group, records)
    finally:
        device.close()


def save_all(suite: Suite, found: Sequence[OperatorResult], folder: Path) -> None:
    """Write the smallest failing cases, one folder each."""
    for one in found:
        if one.failing is None:
            continue
        for case in suite.cases((one.operator,), (one.types,)):
            if case.identity == one.failing.identity:
                save_failing(one.failing, case, folder)


def _partial(selection: Selection) -> bool:
    return bool(selection.operators or selection.aims or selection.cases)


def _models(device: Device, models: Sequence[ModelFile], repeat: int, numerics: str) -> list[ModelResult]:
    return model_results(partial(ask, device, repeat=repeat), device.reads, models, numerics)
