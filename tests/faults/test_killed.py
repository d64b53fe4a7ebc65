"""A process that is killed while it writes leaves the old output or the new one, and at most a temporary file."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import bittrue
from bittrue.conformance.journal import Journal
from bittrue.errors import InputError
from bittrue.files import check_finished
from faults.outputs import Output, content, outputs, temporary


def write_for_ever(write: Callable[[Path, int], None], path: Path) -> None:
    while True:
        for form in (1, 0):
            write(path, form)


def killed(write: Callable[[Path, int], None], path: Path, seconds: float) -> None:
    """Kill a child that writes both forms in turns, after some time."""
    process = multiprocessing.get_context("fork").Process(target=write_for_ever, args=(write, path))
    process.start()
    time.sleep(seconds)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()


def test_kills_at_random_moments(
    request: pytest.FixtureRequest, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    kinds = outputs()
    count = 200 if request.config.getoption("--deep") else 2 * len(kinds)
    forms = {name: two_forms(output, tmp_path / "forms" / name) for name, output in kinds.items()}
    moments, leftovers, unfinished = random.Random(17), 0, 0
    for number in range(count):
        name = [*kinds][number % len(kinds)]
        output, (one, two, seconds) = kinds[name], forms[name]
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "x"
        output.write(path, 0)
        killed(output.write, path, moments.uniform(0.002, 0.01 + 4 * seconds))
        found = content(path)
        assert output.is_whole(found, (one, two)), (number, name)
        leftovers += bool(temporary(folder))
        if found not in (one, two) and output.index:
            unfinished += 1
            with pytest.raises(InputError, match="BT-FILE-UNFINISHED"):
                check_finished(path, output.index)
            continue
        # The next write removes what was left.
        output.write(path, 1)
        assert content(path) == two
        assert not temporary(folder), (number, name)
    text = f"{count} kills: 0 outputs damaged, {unfinished} folders told to be unfinished, "
    record_property("compared", f"{text}{leftovers} temporary files, all removed by the next write")


def two_forms(output: Output, folder: Path) -> tuple[dict[str, bytes], dict[str, bytes], float]:
    """What the forms leave, and how many seconds a write takes."""
    found = []
    start = time.monotonic()
    for form in (0, 1):
        path = folder / str(form)
        folder.mkdir(parents=True, exist_ok=True)
        output.write(path, form)
        found.append(content(path))
    return found[0], found[1], (time.monotonic() - start) / 2


JOURNAL = """
import sys
from pathlib import Path
from bittrue.conformance.journal import Journal
from bittrue.conformance.suite import find_suite
from bittrue.conformance.verdicts import Record
case = next(iter(find_suite("litert").cases(("RESHAPE",), ("s8",))))
journal = Journal(Path(sys.argv[1]), {"device": "d"})
print("begun", flush=True)
while True:
    journal.add(Record(case, "outputs", dict(case.inputs), "x" * 100_000))
"""


def test_journals_that_were_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    env = {**os.environ, "PYTHONPATH": str(Path(bittrue.__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", JOURNAL, str(path)], stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while path.stat().st_size < 60_000:
            time.sleep(0.002)
        process.kill()
    whole = path.read_bytes()
    assert whole.count(b"\n") > 1
    ends = [i + 1 for i, byte in enumerate(whole) if byte == 10]
    for cut in (len(whole), ends[-1] - 1, ends[-1] - 50_000, ends[0] + 1, ends[0]):
        path.write_bytes(whole[:cut])
        Journal(path, {"device": "d"})
        assert path.read_bytes() == whole[: max(end for end in ends if end <= cut)]
    with pytest.raises(InputError, match="begun with device"):
        Journal(path, {"device": "e"})
