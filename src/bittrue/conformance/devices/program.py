"""Devices that are programs: anything that the system can start.

``PROGRAM CASE_DIR OUTPUT_DIR`` reads the folder of a case (see `folders`), writes its outputs into the empty folder
OUTPUT_DIR and ends with 0. Exit code 77, or a file ``refused`` there, says that the device does not run such a model:
its text, or else what the program printed last, is the reason. Every other exit code is a failure, a signal a crash.

With ``?batch=N``, ``PROGRAM CASES_DIR OUTPUTS_DIR`` gets up to N cases at once: folders below CASES_DIR that
``cases.txt`` there lists one a line, each with a folder of the same name below OUTPUTS_DIR for its outputs. Cases that
are left without a result are run again one at a time, in a folder of one.
"""

from __future__ import annotations

import errno
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np

from ...errors import InputError
from ...files import scratch_bytes
from ...runners.guard import end_group, guard_group, temporary_folder
from ...visible import visible
from ..suite import SuiteCase
from .answers import answered
from .base import Answer, Device
from .folders import is_empty, read_outputs, read_refusal, write_case
from .model import output_ports
from .refused import Refused
from .values import Crashed, Failed, TimedOut, clean

# As in automake: the test was skipped.
REFUSED_CODE = 77
# Of what a program prints, the end is kept.
_END_BYTES = 4096
# How often to look whether a program has ended though somebody keeps its standard output open.
_LOOK_SECONDS = 0.1
_LIST = "cases.txt"


class ProgramDevice(Device):
    """A program, started anew for each case or batch of cases.

    Args:
        spec: what the user typed.
        command: the program's path, or a command with arguments.
        timeout: seconds for one case.
        batch: cases at once; 0: the program takes one case and no folder of cases.

    Raises:
        InputError: there is no such program.
    """

    def __init__(self, spec: str, command: str, timeout: float, batch: int = 0) -> None:
        self.spec = spec
        self._command = _command(command)
        self.title = clean(visible(Path(self._command[0]).name if len(self._command) == 1 else command))
        self._timeout = timeout
        self._batch = batch

    def answer(self, case: SuiteCase) -> Answer:
        if self._batch:
            return next(self._answers([case]))
        start = time.monotonic()
        with temporary_folder("bittrue-device-") as root:
            write_case(root / "case", case)
            (root / "outputs").mkdir()
            status, text, outputs = answered(lambda: self._run_one(root, case))
        return Answer(status, outputs, text, time.monotonic() - start)

    def answers(self, cases: Iterable[SuiteCase]) -> Iterator[Answer]:
        """The answers, a batch at a time."""
        left = iter(cases)
        while group := list(islice(left, max(self._batch, 1))):
            yield from self._answers(group) if self._batch else map(self.answer, group)

    def _run_one(self, root: Path, case: SuiteCase) -> Mapping[str, np.ndarray]:
        said = self._run(root / "case", root / "outputs", self._timeout)
        return _outputs(root / "outputs", case, said)

    def _answers(self, cases: Sequence[SuiteCase]) -> Iterator[Answer]:
        start = time.monotonic()
        found: dict[int, Answer] = {}
        with temporary_folder("bittrue-device-") as root:
            names = [f"{number:04d}" for number in range(len(cases))]
            for folder, case in zip(names, cases, strict=True):
                write_case(root / "cases" / folder, case)
                (root / "outputs" / folder).mkdir(parents=True)
            scratch_bytes(root / "cases" / _LIST, "".join(f"{folder}\n" for folder in names).encode())
            whole = answered(lambda: self._run_all(root, len(cases)))
            seconds = (time.monotonic() - start) / len(cases)
            for number, (folder, case) in enumerate(zip(names, cases, strict=True)):
                place = root / "outputs" / folder
                if is_empty(place) and len(cases) > 1:
                    continue
                # What was left behind by a program that failed later on is a result like any other.
                if is_empty(place) and whole[0] != "outputs":
                    status, text, outputs = whole
                else:
                    status, text, outputs = answered(lambda p=place, c=case: _outputs(p, c, whole[1]))  # type: ignore[misc]
                found[number] = Answer(status, outputs, text, seconds)
        for number, case in enumerate(cases):
            yield found[number] if number in found else next(self._answers([case]))

    def _run_all(self, root: Path, count: int) -> Mapping[str, np.ndarray]:
        self._run(root / "cases", root / "outputs", self._timeout * count)
        return {}

    def _run(self, source: Path, target: Path, timeout: float) -> str:
        """What it printed last; raises what became of it."""
        code, said = run_program([*self._command, str(source), str(target)], timeout)
        behind = f": {said}" if said else ""
        if code == REFUSED_CODE:
            raise Refused(read_refusal(target) or said)
        if code < 0 or (code > 128 and _signal(code - 128)):
            # Shells tell of a signal that ended their last command by a code above 128.
            raise Crashed(f"it died of {_signal(abs(code) if code < 0 else code - 128)}{behind}")
        if code:
            raise Failed(f"exit code {code}{behind}")
        return said


def _outputs(folder: Path, case: SuiteCase, said: str) -> Mapping[str, np.ndarray]:
    return read_outputs(folder, output_ports(case))


def _command(text: str) -> list[str]:
    if os.path.isfile(text):
        if not os.access(text, os.X_OK):
            advice = f"chmod +x {shlex.quote(text)}"
            raise InputError("BT-DEVICE", f"'{clean(text)}' is not executable", advice=advice)
        return [os.path.abspath(text)]
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError("BT-DEVICE", f"the command '{clean(text)}' cannot be read: {error}") from None
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise InputError("BT-DEVICE", f"there is no program '{clean(words[0] if words else text)}'")
    return [os.path.abspath(program), *words[1:]]


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


def run_program(command: Sequence[str], timeout: float) -> tuple[int, str]:
    """Exit code (minus the signal's number where one ended it) and the end of what it printed.

    Everything that it started and that stayed in its session is ended, too.

    Raises:
        Crashed: it cannot be started.
        TimedOut: it was ended after `timeout` seconds.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        hint = "; does its first line say #!/bin/sh?" if error.errno == errno.ENOEXEC else ""
        raise Crashed(f"it cannot be started: {error.strerror}{hint}") from None
    assert process.stdout is not None
    guard_group(process)
    try:
        said = _listen(process, process.stdout.fileno(), time.monotonic() + timeout)
    except TimeoutError:
        raise TimedOut(f"it took more than {timeout:g} s") from None
    finally:
        end_group(process)
        process.stdout.close()
    return process.returncode, clean(said.decode(errors="replace"))


def _listen(process: subprocess.Popen[bytes], descriptor: int, deadline: float) -> bytes:
    """The end of what it prints, until it has ended; TimeoutError after `deadline`."""
    said, is_open = b"", True
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if not is_open:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(left)
                    return said
            elif selector.select(min(left, _LOOK_SECONDS)):
                part = os.read(descriptor, 1 << 16)
                said = (said + part)[-_END_BYTES:]
                is_open = bool(part)
            elif process.poll() is not None:
                # Something that it started still has its standard output.
                return said
