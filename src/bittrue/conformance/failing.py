"""The smallest failing case, one element of it worked out, and the inputs that it takes to see it fail."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..compare.hypotheses import unequal
from ..compare.minimal import smallest
from ..errors import BittrueError
from ..explain import explain_element
from ..files import scratch_bytes, written_folder
from ..report.result import plain
from .devices.base import Device
from .expected import Expected, Outputs, Prepared
from .formats.exporter import npy
from .result import Change, Failing
from .suite import SuiteCase
from .verdicts import Record, misfit

# Of a saved case; the folder is whole when it is there.
_FACTS = "case.json"
# Questions that reducing one case may put to the device, and seconds that it may take.
_QUESTIONS, _SECONDS = 60, 10.0
# Inputs with more values than this are reduced in blocks.
_BLOCKS = 32


def find_failing(
    records: Sequence[Record], wanted: Mapping[int, Outputs], numerics: str, device: str
) -> Failing | None:
    """The failing case with the fewest elements, and of it the element that is furthest off.

    Args:
        records: cases that ran.
        wanted: the reference's outputs by `id` of the record.
        numerics: the reference.
        device: what the user typed.
    """
    best: tuple[tuple[int, int], Record] | None = None
    for position, record in enumerate(records):
        if any(unequal(wanted[id(record)][n], v).any() for n, v in record.outputs.items()):
            size = sum(v.size for v in (*record.outputs.values(), *record.case.inputs.values()))
            if best is None or (size, position) < best[0]:
                best = (size, position), record
    if best is None:
        return None
    record = best[1]
    name, element = _element(record.outputs, wanted[id(record)])
    case = record.case
    command = f"bittrue conform {shlex.quote(device)} --suite {case.suite} --case {shlex.quote(case.identity)}"
    failing = Failing(
        case.identity,
        case.note,
        name,
        element,
        _plain(wanted[id(record)][name][element]),
        _plain(record.outputs[name][element]),
        numerics,
        replay=command if device else "",
    )
    return _worked_out(failing, case, wanted[id(record)])


def _element(outputs: Outputs, wanted: Outputs) -> tuple[str, tuple[int, ...]]:
    best: tuple[float, str, tuple[int, ...]] | None = None
    for name, value in outputs.items():
        mask = unequal(wanted[name], value)
        if not mask.any():
            continue
        with np.errstate(all="ignore"):
            apart = np.abs(value.astype(np.float64) - wanted[name].astype(np.float64))
        apart = np.where(mask, np.where(np.isnan(apart), np.inf, apart), -1.0)
        where = tuple(int(i) for i in np.unravel_index(int(np.argmax(apart)), apart.shape)) if apart.ndim else ()
        if best is None or apart[where] > best[0]:
            best = float(apart[where]), name, where
    assert best is not None, "the case fails somewhere"
    return best[1], best[2]


def _worked_out(failing: Failing, case: SuiteCase, wanted: Outputs) -> Failing:
    """With accumulator, multiplier and what else the operator has."""
    try:
        plan = case.model.prepare(failing.numerics).plan
        known = {**case.inputs, **wanted}
        found = explain_element(plan, known, failing.output, failing.element, wanted[failing.output])
    except (BittrueError, LookupError):
        return failing
    lines = tuple((line.label, line.value, line.remark) for line in found.lines)
    return replace(failing, numbers=dict(found.numbers), lines=lines)


class _Enough(Exception):
    """The budget is spent."""


def reduce_failing(failing: Failing, case: SuiteCase, device: Device) -> Failing:
    """The same with inputs that do not matter set to their zero points, as far as the device still fails.

    Asks the device some dozens of times.
    """
    session = case.model.prepare(failing.numerics)
    ports = {port.name: port for port in session.inputs}
    neutral = {}
    for name, value in case.inputs.items():
        point = ports[name].zero_point if name in ports else None
        neutral[name] = np.full_like(value, 0 if point is None else point)
    spent, prepared = [0, 0.0], Prepared()

    def fails(kept: list[tuple[str, int, int]]) -> tuple[float, float] | None:
        """Expected and got at the element, where these blocks of inputs alone keep their values."""
        if spent[0] >= _QUESTIONS or spent[1] > _SECONDS:
            raise _Enough
        inputs = {name: value.copy() for name, value in neutral.items()}
        for name, start, stop in kept:
            inputs[name].reshape(-1)[start:stop] = case.inputs[name].reshape(-1)[start:stop]
        # Devices that hold recorded answers have none to this.
        changed = case.fed(inputs, f"{case.identity}/reduced")
        answer = device.answer(changed)
        spent[0] += 1
        spent[1] += answer.seconds
        if answer.status != "outputs":
            return None
        try:
            wanted = Expected(changed, (failing.numerics,), prepared).outputs(failing.numerics)
        except BittrueError:
            return None
        if misfit(answer.outputs, wanted):
            return None
        one, two = wanted[failing.output][failing.element], answer.outputs[failing.output][failing.element]
        return None if one.tobytes() == two.tobytes() else (_plain(one), _plain(two))

    best: list[tuple[str, int, int]] | None = None
    values: tuple[float, float] | None = None

    def holds(kept: list[tuple[str, int, int]]) -> bool:
        nonlocal best, values
        found = fails(kept)
        if found is not None and (best is None or _count(kept) <= _count(best)):
            best, values = list(kept), found
        return found is not None

    blocks = [b for name, value in case.inputs.items() for b in _split(name, 0, value.size, value.size)]
    try:
        while True:
            found = smallest(blocks, holds)
            if not found or all(stop - start == 1 for _, start, stop in found):
                break
            blocks = [b for name, start, stop in found for b in _split(name, start, stop, stop - start)]
    except _Enough:
        pass
    if best is None or values is None:
        return failing
    changes = tuple(
        Change(name, i, _plain(case.inputs[name].reshape(-1)[i]))
        for name, start, stop in best
        for i in range(start, stop)
        if case.inputs[name].reshape(-1)[i] != neutral[name].reshape(-1)[i]
    )
    return replace(failing, reduced=changes, reduced_expected=values[0], reduced_got=values[1])


def _count(blocks: Sequence[tuple[str, int, int]]) -> int:
    return sum(stop - start for _, start, stop in blocks)


def _split(name: str, start: int, stop: int, size: int) -> list[tuple[str, int, int]]:
    step = max(1, -(-size // _BLOCKS))
    return [(name, at, min(at + step, stop)) for at in range(start, stop, step)]


def save_failing(failing: Failing, case: SuiteCase, folder: Path) -> Path:
    """Writes the model, its inputs (the reduced ones where there are any), what is expected, and the facts as JSON.

    Returns:
        the folder of this case, inside `folder`; it is whole when it holds ``case.json``.

    Raises:
        OutputError: it could not be written; an older one is still there.
    """
    target = folder / case.identity.replace("/", "_")
    with written_folder(target, _FACTS) as made:
        _fill(made, target, failing, case)
    return target


def _fill(folder: Path, target: Path, failing: Failing, case: SuiteCase) -> None:
    """The files of a case; `target` is where they will be."""
    inputs = reduced_inputs(failing, case)
    scratch_bytes(folder / f"model.{case.format}", case.content)
    for position, value in enumerate(inputs.values()):
        scratch_bytes(folder / f"input{position}.npy", npy(value))
    wanted = Expected(case.fed(inputs), (failing.numerics,)).outputs(failing.numerics)
    for position, value in enumerate(wanted.values()):
        scratch_bytes(folder / f"expected{position}.npy", npy(value))
    facts = {
        "inputs": {name: f"input{i}.npy" for i, name in enumerate(inputs)},
        "expected": {name: f"expected{i}.npy" for i, name in enumerate(wanted)},
        **plain(failing),
    }
    words = ["bittrue", "explain", str(target / f"model.{case.format}"), "--numerics", failing.numerics]
    for position, name in enumerate(inputs):
        words += ["-i", f"{name}={target / f'input{position}.npy'}"]
    words += ["--tensor", failing.output, "--element", ",".join(map(str, failing.element))]
    facts["explain"] = shlex.join(words)
    scratch_bytes(folder / _FACTS, (json.dumps(facts, indent=1) + "\n").encode())


def reduced_inputs(failing: Failing, case: SuiteCase) -> dict[str, np.ndarray]:
    """The inputs of the reduced case; those of the case itself where it was not reduced."""
    if failing.reduced is None:
        return dict(case.inputs)
    ports = {port.name: port for port in case.model.prepare(failing.numerics).inputs}
    found = {}
    for name, value in case.inputs.items():
        point = ports[name].zero_point if name in ports else None
        found[name] = np.full_like(value, 0 if point is None else point)
    for change in failing.reduced:
        found[change.input].reshape(-1)[change.position] = change.value
    return found


def _plain(value: np.generic) -> float:
    return value.item() if value.dtype.kind in "iu" else float(value)
