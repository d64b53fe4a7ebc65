"""A process of its own for runtimes that may abort: its end is an answer, and bittrue lives on."""

from __future__ import annotations

import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
import warnings
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ResourceError, RunError
from ..visible import visible
from .guard import end_group, guard_group

# What the runtime prints when it gives up is at the end.
_LINES = 12
_END_BYTES = 1 << 16


class Worker:
    """Answers requests, one JSON object a line, with the function `answer` of a module. Started when first asked.

    Args:
        title: of the runtime, for messages.
        module: where `answer` is.
    """

    def __init__(self, title: str, module: str) -> None:
        self._title = title
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None
        self._finalizer: Any = None

    def ask(self, request: Mapping[str, Any], timeout: float, messages: Path) -> Any:
        """What `answer` gives.

        Args:
            request: anything that JSON can say.
            timeout: seconds.
            messages: file that takes what the runtime prints, for a process that has to be started.

        Raises:
            RunError: the process ended.
            ResourceError: it took longer than `timeout`.
        """
        process = self.start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({**request, "messages": str(messages)}).encode() + b"\n")
            process.stdin.flush()
            line = _line(process.stdout.fileno(), timeout)
        except (BrokenPipeError, TimeoutError) as error:
            self.close()
            if isinstance(error, TimeoutError):
                raise ResourceError(
                    "BT-RUNNER-TIME",
                    f"{self._title} took more than {timeout:g} s",
                    advice="give it more with ?timeout=SECONDS",
                ) from None
            line = b""
        except BaseException:
            # Whoever asks next must not get this answer.
            self.close()
            raise
        if line:
            return json.loads(line)
        code = process.wait()
        self.close()
        raise RunError("BT-RUNNER-ABORT", f"{self._title} {_ended(code)}{_said(messages)}")

    def close(self) -> None:
        """End the process; the next request starts another one."""
        if self._finalizer is not None:
            self._finalizer()
        self._process = self._finalizer = None

    def interrupt(self) -> None:
        """End the process while another thread waits for its answer."""
        process = self._process
        if process is not None:
            process.kill()

    def start(self) -> subprocess.Popen[bytes]:
        """The process, started unless it runs; it takes its first request when it is ready."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            paths = os.pathsep.join(os.path.abspath(path) for path in sys.path)
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import serve; serve({self._module!r})"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths},
                # What it starts itself ends with it.
                start_new_session=True,
            )
            guard_group(self._process)
            self._finalizer = weakref.finalize(self, _end, self._process)
        return self._process


def _line(descriptor: int, timeout: float) -> bytes:
    """The next line; empty when the pipe was closed before its end."""
    found, deadline = b"", time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while not found.endswith(b"\n"):
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            part = os.read(descriptor, 1 << 20)
            if not part:
                return b""
            found += part
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    end_group(process)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue


def _ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"died of {signal.Signals(-code).name}"
    except ValueError:
        return f"died of signal {-code}"


def end_of(messages: Path) -> str:
    """The end of what a process printed; empty when it has printed nothing."""
    try:
        with messages.open("rb") as file:
            file.seek(max(0, messages.stat().st_size - _END_BYTES))
            return file.read(_END_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _said(messages: Path) -> str:
    """The last lines that the runtime printed, as one."""
    lines = end_of(messages).splitlines()
    text = " | ".join(line.strip() for line in lines[-_LINES:] if line.strip() and not line.startswith("INFO:"))
    return f": {visible(text[-2000:])}" if text else ""


def serve(name: str) -> None:
    """Answer on standard output until standard input ends; whatever the runtime prints goes to a file, and it reads
    nothing.
    """
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    import ml_dtypes  # noqa: F401  runtimes give bfloat16 arrays only once this has registered the type

    warnings.simplefilter("ignore")
    module = importlib.import_module(name)
    for line in requests:
        request = json.loads(line)
        said = os.open(request["messages"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.close(said)
        answers.write(json.dumps(module.answer(request)).encode() + b"\n")
        answers.flush()
