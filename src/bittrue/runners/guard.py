"""What must not outlive this process, however it ends: programs that it started, temporary folders, helper processes.

Ctrl-C and SIGTERM are exceptions, and blocks are left in order. SIGKILL leaves nothing in order: so a small process of
its own, the guard, is told of every process group and every temporary folder. When the pipe to it closes, for whatever
reason, it kills the groups that are left and removes the folders.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ResourceError
from ..files import writing

if TYPE_CHECKING:
    import subprocess
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.connection import Connection

# Python without packages: it starts in a few milliseconds.
_GUARD = """
import json, os, shutil, signal, sys
kept = {}
for line in sys.stdin:
    kind, what, there = json.loads(line)
    kept[kind, what] = there
for kind, what in [key for key, there in kept.items() if there]:
    if kind == "group":
        try:
            os.killpg(what, signal.SIGKILL)
        except OSError:
            pass
for kind, what in [key for key, there in kept.items() if there]:
    if kind == "folder":
        shutil.rmtree(what, ignore_errors=True)
"""


class _Guard:
    """The guard of this process, started when there is something to guard."""

    def __init__(self) -> None:
        # A folder may be given up while another is being told of.
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def tell(self, kind: str, what: int | str, there: bool) -> None:
        """That a group or a folder is there, or is gone."""
        import subprocess

        line = json.dumps([kind, what, there]).encode() + b"\n"
        # A fork has its parent's pipe, and guards nothing before it starts something itself.
        if not there and self._owner != os.getpid():
            return
        with self._lock, suppress(OSError):
            if self._process is None or self._owner != os.getpid():
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _GUARD],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    # Signals for the group of this process do not reach it.
                    start_new_session=True,
                )
                self._owner = os.getpid()
            assert self._process.stdin is not None
            os.write(self._process.stdin.fileno(), line)


_guard = _Guard()
os.register_at_fork(after_in_child=lambda: setattr(_guard, "_lock", threading.RLock()))


def guard_group(process: subprocess.Popen[bytes]) -> None:
    """A process that leads a group of its own is killed with its group when this one is gone."""
    _guard.tell("group", process.pid, True)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a guarded process and whatever is left of its group, and wait for it."""
    # Before the wait: later the number may be another's.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
    _guard.tell("group", process.pid, False)


def _new_folder(prefix: str) -> str:
    with writing("the folder for temporary files (TMPDIR)"):
        return tempfile.mkdtemp(prefix=prefix)


def folder_of(owner: object, prefix: str = "bittrue-") -> Path:
    """A temporary folder that goes when nothing refers to `owner` any more, or when this process is gone."""
    path = _new_folder(prefix)
    _guard.tell("folder", path, True)
    weakref.finalize(owner, _remove, path)
    return Path(path)


@contextmanager
def temporary_folder(prefix: str = "bittrue-") -> Iterator[Path]:
    """A temporary folder for a block, which goes with this process at the latest."""
    path = _new_folder(prefix)
    try:
        _guard.tell("folder", path, True)
        yield Path(path)
    finally:
        _remove(path)


def _remove(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)
    _guard.tell("folder", path, False)


@contextmanager
def process_pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Fresh processes that end at once when the block is left by an exception, and when this process is gone.

    Raises:
        ResourceError: one of them was killed.
    """
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import Pipe, get_context

    watched, held = Pipe(duplex=False)
    # Fresh ones: threads of this process do not survive a fork.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_obey, initargs=(watched,))
    try:
        yield pool
    except BaseException as error:
        # They may be in the middle of something long. Python 3.14 has kill_workers for this.
        for process in list((pool._processes or {}).values()):
            process.kill()
        if isinstance(error, BrokenProcessPool):
            message = "one of the processes of this run was killed, perhaps because memory ran out"
            raise ResourceError("BT-PROCESS-KILLED", message, advice="take fewer with --jobs") from None
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        held.close()
        watched.close()


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Ctrl-C waits until the block is left; processes that start in it do not see it before they say so."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _obey(watched: Connection) -> None:
    """In a process of a pool: Ctrl-C is the parent's business, and its end is the end."""
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def watch() -> None:
        with suppress(EOFError, OSError):
            watched.recv()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
