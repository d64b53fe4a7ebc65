"""ONNX Runtime in a process of its own: odd models end it (division by zero, memory, endless loops)."""

from __future__ import annotations

import os
import pickle
import select
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from .onnx_models import Refused, run_runtime

_SECONDS = 30
_MEMORY = 8 << 30


class Ended(Refused):
    """The runtime's process died, or took too long: no defined result."""


class IsolatedRuntime:
    """Runs one model after the other; a process that dies is replaced."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> IsolatedRuntime:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def run(self, content: bytes, feeds: Sequence[np.ndarray], level: str = "ALL") -> dict[str, np.ndarray] | Refused:
        """What `run_runtime` gives, or `Ended`."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _write(process.stdin, (content, list(feeds), level))
            if not select.select([process.stdout], [], [], _SECONDS)[0]:
                raise EOFError
            found: dict[str, np.ndarray] | Refused = _read(process.stdout)
        except (EOFError, BrokenPipeError):
            self._end()
            return Ended("ended")
        return found

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            paths = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.isolated_runtime"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths},
            )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _write(stream: BinaryIO | Any, value: object) -> None:
    content = pickle.dumps(value)
    stream.write(struct.pack("<Q", len(content)) + content)
    stream.flush()


def _read(stream: BinaryIO | Any) -> Any:
    (size,) = struct.unpack("<Q", _exactly(stream, 8))
    return pickle.loads(_exactly(stream, size))


def _exactly(stream: BinaryIO | Any, size: int) -> bytes:
    content: bytes = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content


def _serve() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The runtime prints to standard output at times.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            content, feeds, level = _read(sys.stdin.buffer)
        except EOFError:
            return
        found = run_runtime(content, feeds, level)
        _write(out, Refused(found.message) if isinstance(found, Refused) else found)


if __name__ == "__main__":
    _serve()
