"""How commands end: one exit code per reason, one readable message, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest

from bittrue import samples
from bittrue.cli import endings
from bittrue.cli.plain import say_json
from bittrue.errors import InputError, InternalError, ModelFormatError, ResourceError

# Leaves a file when it is asked.
DEVICE = """
import pathlib, time

def run(model, inputs):
    pathlib.Path({asked!r}).touch()
    time.sleep(0.3)
    return {{}}
"""
SOURCE = str(Path(endings.__file__).parents[2])


def command_that(raises: BaseException) -> click.Command:
    @click.command()
    def command() -> None:
        raise raises

    return command


@pytest.mark.parametrize(
    ("raises", "code", "says"),
    [
        (SystemExit(1), 1, ""),
        (click.exceptions.Exit(1), 1, ""),
        (InputError("BT-X", "no\x1b[31m\ngood", place="a\u202eb"), 2, "[BT-X] a\\u202eb: no\\x1b[31m\\ngood"),
        (click.UsageError("no \x9b word"), 2, "no \\x9b word"),
        (ModelFormatError("BT-X", "m" * 100_000), 3, "mmm ..."),
        (ResourceError("BT-X", "much"), 3, "much"),
        (FileNotFoundError(2, "No such file", "a\x1b"), 3, "a\\x1b: No such file"),
        (OSError("of a library's own"), 3, "of a library's own"),
        (MemoryError(), 3, "BT-MEMORY"),
        (RecursionError(), 3, "BT-NESTING"),
        (InternalError("BT-X", "two numbers"), 70, "bug in bittrue"),
        (TypeError("none of\x1bours"), 70, "TypeError: none of\\x1bours"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (endings.Terminated(signal.SIGTERM), 143, "SIGTERM"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
    ],
)
def test_code_and_message(
    raises: BaseException,
    code: int,
    says: str,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv(endings.TRACEBACK, raising=False)
    assert endings.run(command_that(raises), []) == code
    out, err = capfd.readouterr()
    assert says in err
    assert not out
    assert "Traceback" not in err
    assert len(err) < 4000
    assert err.replace("\n", "").isprintable()
    kept = [path.read_text() for path in tmp_path.iterdir()]
    assert len(kept) == (code == 70)
    assert all("Traceback" in text and type(raises).__name__ in text for text in kept)


def test_traceback_is_shown_when_asked_for(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv(endings.TRACEBACK, "1")
    assert endings.run(command_that(TypeError("x")), []) == endings.INTERNAL
    assert "Traceback" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert endings.run(command_that(SystemExit(0)), []) == 0
    assert signal.getsignal(signal.SIGTERM) is before


def bittrue(*words: object, **more: Any) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "PYTHONPATH": SOURCE, **more.pop("env", {})}
    command = [sys.executable, "-m", "bittrue", *map(os.fsencode, map(str, words))]
    return subprocess.run(command, capture_output=True, timeout=60, env=env, check=False, **more)


def test_nobody_reads_on(tmp_path: Path) -> None:
    model = tmp_path / "m.tflite"
    model.write_bytes(samples.demo_model())
    line = f"'{sys.executable}' -m bittrue inspect '{model}' --json; echo $? >&2"
    env = {**os.environ, "PYTHONPATH": SOURCE}
    # The pipe is closed before anything is written.
    done = subprocess.run(f"{{ {line}; }} | true", shell=True, capture_output=True, timeout=60, env=env, check=False)
    assert done.stderr.strip() == b"141"


def test_a_terminal_that_knows_ascii_alone(tmp_path: Path) -> None:
    model = tmp_path / "Größe\udcff.tflite"
    model.write_bytes(samples.demo_model())
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    for words in (("run", model), ("check", model), ("inspect", model)):
        done = bittrue(*words, env=env)
        assert done.returncode == 0, done.stderr
        assert (done.stdout + done.stderr).isascii()
    done = bittrue("run", tmp_path / "Größe\udcfe\x1b", env=env)
    assert done.returncode == 2
    assert done.stderr.isascii()
    assert b"\x1b" not in done.stderr


def test_a_stream_that_is_full_or_closed() -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "bittrue", "numerics"]
        env = {**os.environ, "PYTHONPATH": SOURCE}
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60, env=env, check=False)
    assert done.returncode == 3
    assert done.stderr.decode().count("\n") == 1
    closed = subprocess.run(
        f"'{sys.executable}' -m bittrue numerics >&-", shell=True, capture_output=True, timeout=60, env=env, check=False
    )
    assert closed.returncode == 0
    assert not closed.stderr


def left(folder: Path) -> list[str]:
    """What is left of a run whose temporary files lie in `folder`: files, and processes with its environment."""
    mark = f"TMPDIR={folder}".encode()
    found = [path.name for path in folder.iterdir()]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found += [entry.name] if mark in (entry / "environ").read_bytes() else []
            except OSError:
                continue
    return found


@pytest.mark.in_turns(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("kind", ["python", "program"])
def test_signals_leave_nothing(number: signal.Signals, kind: str, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    (tmp_path / "device.py").write_text(DEVICE.format(asked=str(asked)))
    program = tmp_path / "device.sh"
    program.write_text("#!/bin/sh\nsleep 600\n")
    program.chmod(0o755)
    device = f"{tmp_path}/device.py:run" if kind == "python" else f"program:{program}"
    kept = tmp_path / "journal"
    folder = tmp_path / "temporary"
    folder.mkdir()
    asks = ["conform", device, "-j2", "--operator", "LOGISTIC,TANH", "--resume", str(kept)]
    process = subprocess.Popen(
        [sys.executable, "-m", "bittrue", *asks],
        env={**os.environ, "PYTHONPATH": SOURCE, "TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # Whoever runs the tests in the background has Ctrl-C ignored, and what is started from there inherits it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 60
    # Programs are interrupted while the processes of the run are being started, functions while they are asked.
    while not kept.exists() or not list(folder.iterdir()) or (kind == "python" and not asked.exists()):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.5)
    began = time.monotonic()
    # Ctrl-C reaches the whole group, as from a terminal.
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    said = process.communicate(timeout=30)[1].decode() if number != signal.SIGKILL else ""
    process.wait()
    took = time.monotonic() - began
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert took < 2
    assert "Traceback" not in said
    assert number == signal.SIGKILL or f"kept in {kept}" in said
    deadline = time.monotonic() + 10
    while left(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left(folder) == []


def test_json_is_json(capfd: pytest.CaptureFixture[str]) -> None:
    say_json({"a": [float("nan"), 1.5, (float("-inf"),)], "b": "\x7f\ud800\x1b"})
    found = json.loads(capfd.readouterr().out, parse_constant=pytest.fail)
    assert found == {"a": ["nan", 1.5, ["-inf"]], "b": "\x7f\ud800\x1b"}
