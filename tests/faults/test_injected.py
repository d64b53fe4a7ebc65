"""Each call to the system fails once, in every writer: old bytes or new ones, nothing beside them, a typed error."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bittrue
from bittrue import files
from bittrue.cli import main
from bittrue.errors import OutputError
from faults.outputs import KINDS, content, outputs, temporary
from support.shared import REPOSITORY

CALLS = ("open", "mkdir", "write", "fsync", "fchmod", "replace", "rename")
FAULTS: dict[str, Callable[[], BaseException] | None] = {
    "ENOSPC": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "EIO": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    "EINTR": lambda: InterruptedError(errno.EINTR, os.strerror(errno.EINTR)),
    # Half of what was to be written is.
    "short": None,
}
DEMO = REPOSITORY / "src/bittrue/data/demo/digits_int8.tflite"


class System:
    """The module `os`, as `bittrue.files` sees it, in which one call fails.

    Args:
        call: its name.
        number: which of them, from 0.
        fault: a name of `FAULTS`.
    """

    def __init__(self, call: str, number: int, fault: str) -> None:
        self.count = 0
        self._number = number
        self._fault = FAULTS[fault]
        self._real = getattr(os, call)
        setattr(self, call, self._call)

    def _call(self, *arguments: Any, **named: Any) -> Any:
        self.count += 1
        if self.count - 1 != self._number:
            return self._real(*arguments, **named)
        if self._fault is not None:
            raise self._fault()
        descriptor, data = arguments
        return self._real(descriptor, memoryview(data)[: max(1, len(data) // 2)])

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def pairs() -> list[tuple[str, str]]:
    return [(call, fault) for call in CALLS for fault in FAULTS if (fault == "short") <= (call == "write")]


@pytest.mark.in_turns(3)
@pytest.mark.parametrize("kind", KINDS)
def test_every_call_fails_once(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    """The first call of each sort with every fault, each other one with one of them in turn; with `--deep` all with
    every fault.
    """
    deep = request.config.getoption("--deep")
    output = outputs()[kind]
    forms = []
    for form in (0, 1):
        output.write(tmp_path / f"form{form}", form)
        forms.append(content(tmp_path / f"form{form}"))
    folder = tmp_path / "there"
    path, injected = folder / "x", 0
    for call, fault in pairs():
        faults = [other for one, other in pairs() if one == call]
        turns = {0, *range(faults.index(fault), 1000, 1 if deep else len(faults))}
        for number in sorted(turns):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            output.write(path, 0)
            system = System(call, number, fault)
            with monkeypatch.context() as patched:
                patched.setattr(files, "os", system)
                try:
                    output.write(path, 1)
                    raised = None
                except OutputError as error:
                    raised = error
            found = content(path)
            assert not temporary(folder), (call, number, fault)
            if system.count <= number:
                break
            injected += 1
            if raised is None:
                assert found == forms[1] or output.index is None, (call, number, fault)
            else:
                assert raised.code == "BT-FILE-WRITE"
                assert raised.place.startswith(str(path))
                assert ".bittrue-" not in str(raised)
            assert output.is_whole(found, (forms[0], forms[1])), (call, number, fault)
            # Only when the folder itself cannot be flushed, at the very end, is the new one there with an error.
            assert raised is None or found == forms[0] or call in ("open", "fsync") or output.index is None
    assert injected >= 8
    record_property("compared", f"{kind}: {injected} injected faults, 0 outputs damaged, 0 temporary files left")


def command_line(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return int(caught.value.code or 0)


COMMANDS = {
    "plan": ["plan", str(DEMO), "-o"],
    "run": ["run", str(DEMO), "-o"],
    "trace": ["run", str(DEMO), "--trace"],
    "sarif": ["check", str(DEMO), "--sarif"],
    "junit": ["check", str(DEMO), "--junit"],
    "markdown": ["check", str(DEMO), "--markdown"],
    "html": ["check", str(DEMO), "--html"],
    "compare": ["compare", str(DEMO), f"{DEMO}@xnnpack", "--no-explain", "-o"],
    "vectors": ["vectors", "RESHAPE", "--types", "s8", "--aim", "codes", "-o"],
}


@pytest.mark.parametrize("name", [*COMMANDS])
def test_commands_end_with_3_and_the_path(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "html":
        pytest.importorskip("jinja2")
        pytest.importorskip("plotly")
    path = tmp_path / "typed"
    for call in ("write", "replace" if name not in ("trace", "vectors") else "rename"):
        monkeypatch.setattr(files, "os", System(call, 0, "ENOSPC"))
        assert command_line([*COMMANDS[name], str(path)]) == 3
        said = capsys.readouterr().err
        assert f"[BT-FILE-WRITE] {path}: cannot be written: no space left on device (make room" in said.replace(
            "\n", " "
        )
        assert list(tmp_path.iterdir()) == []


def test_a_full_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (COMMANDS["plan"], COMMANDS["run"]):
        assert command_line([*arguments, "/dev/full"]) == 3
        assert "[BT-FILE-WRITE] /dev/full: cannot be written: no space left" in capsys.readouterr().err


def test_a_limit_of_file_sizes(tmp_path: Path) -> None:
    """The system itself refuses, and no patch of ours: files end at 8 KiB."""
    path = tmp_path / "a.plan"
    path.write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-m", "bittrue", *COMMANDS["plan"], str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(bittrue.__file__).parents[1])},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)),
        check=False,
    )
    assert done.returncode == 3
    assert f"[BT-FILE-WRITE] {path}: cannot be written: file too large" in done.stderr
    assert content(tmp_path) == {"a.plan": b"old"}
    assert not temporary(tmp_path)


def test_interrupts_leave_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAULTS, "Ctrl-C", KeyboardInterrupt)
    for kind, output in outputs().items():
        path = tmp_path / kind / "x"
        path.parent.mkdir()
        output.write(path, 0)
        before = content(path)
        for call in ("open", "write", "fsync", "replace", "rename"):
            system = System(call, 0, "Ctrl-C")
            with monkeypatch.context() as patched:
                patched.setattr(files, "os", system)
                try:
                    output.write(path, 1)
                except KeyboardInterrupt:
                    assert content(path) == before, (kind, call)
                else:
                    assert system.count == 0
                    output.write(path, 0)
            assert not temporary(tmp_path), (kind, call)
