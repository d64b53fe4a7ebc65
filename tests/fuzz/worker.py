"""One fuzz target in one process: `campaign` starts it, watches it and starts it again after a crash.

python tests/fuzz/worker.py TARGET FILE runs one file and says what came of it: the command that replays a finding.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from watch import changed

# Builders of the tests.
sys.path.append(str(Path(__file__).resolve().parents[1]))

# Bytes of address space, and of one input.
ADDRESSES = 6 << 30
LONGEST = 256 << 10
# Inputs that a run without coverage keeps to go on from.
_MOST_KEPT = 2000


def name_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


class Attempts:
    """Runs inputs, counts, and writes down what must not be.

    `state` holds ``current`` (the input that runs now, for crashes and hangs), ``slowest``, ``stats.json`` and
    ``findings``.
    """

    def __init__(self, target: Any, state: Path) -> None:
        self.target, self.state = target, state
        self.executions = 0
        self.slowest = 0.0
        self.outcomes: set[str] = set()
        self._work = tempfile.TemporaryDirectory()
        self._current = os.open(state / "current", os.O_RDWR | os.O_CREAT)
        self._skipped = set((state / "skip").read_text().split()) if (state / "skip").exists() else set()
        self._told = 0.0
        self._began = time.process_time()

    def __call__(self, content: bytes) -> bool:
        """Run one input. True when nothing had this outcome before."""
        if self._skipped and name_of(content) in self._skipped:
            return False
        os.ftruncate(self._current, 0)
        os.pwrite(self._current, content, 0)
        self.executions += 1
        started = time.process_time()
        try:
            outcome = self.target.attempt(content, Path(self._work.name))
        except Exception as error:
            outcome = self._found(content, error)
        elapsed = time.process_time() - started
        if elapsed > self.slowest:
            self.slowest = elapsed
            (self.state / "slowest").write_bytes(content)
        if time.monotonic() - self._told > 0.5:
            self.tell()
        new = outcome not in self.outcomes
        self.outcomes.add(outcome)
        return new

    def tell(self) -> None:
        """Write the counts for whoever watches."""
        self._told = time.monotonic()
        seconds = time.process_time() - self._began
        text = json.dumps({"executions": self.executions, "slowest": self.slowest, "seconds": seconds})
        (self.state / "stats.new").write_text(text)
        os.replace(self.state / "stats.new", self.state / "stats.json")

    def _found(self, content: bytes, error: Exception) -> str:
        """Keep the shortest input of every cause."""
        kind, cause = describe(error)
        stem = self.state / "findings" / f"{kind}-{name_of(cause.encode())}"
        path = stem.with_suffix(".bin")
        if not path.exists() or path.stat().st_size > len(content):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            stem.with_suffix(".txt").write_text(f"{cause}\n{''.join(traceback.format_exception(error))}")
        return f"{kind} {cause}"


def describe(error: Exception) -> tuple[str, str]:
    """(kind, cause) of a finding: other exceptions are untyped; their cause is their type and where in bittrue."""
    from oracle import Finding

    if isinstance(error, Finding):
        return error.kind, error.cause
    place = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if "bittrue/" in file and "/tests/" not in file:
            place = f"{file.rpartition('bittrue/')[2]} {frame.f_code.co_name}"
    return "untyped", f"{type(error).__name__} {place}"


def files_of(folders: list[str]) -> Iterator[bytes]:
    for folder in folders:
        for path in sorted(Path(folder).glob("*")):
            if path.is_file():
                yield path.read_bytes()


def replay_all(attempts: Attempts, folders: list[str], seed: int, end: float) -> None:
    """Every file once, in an order that depends on the seed."""
    contents = list(files_of(folders))
    random.Random(seed).shuffle(contents)
    for content in contents:
        if time.process_time() > end:
            break
        attempts(content)


def plain(attempts: Attempts, corpus: Path, folders: list[str], seed: int, end: float) -> None:
    """Changed inputs without coverage; those with a new outcome are kept and changed again."""
    numbers = random.Random(seed)
    pool = [*files_of([str(corpus), *folders])] or [b""]
    while time.process_time() < end:
        content = changed(attempts.target.change, numbers.choice(pool), numbers.getrandbits(31))
        if len(content) <= LONGEST and attempts(content) and len(pool) < _MOST_KEPT:
            pool.append(content)
            (corpus / name_of(content)).write_bytes(content)


def covered(attempts: Attempts, corpus: Path, folders: list[str], seed: int, end: float) -> None:
    """Inputs chosen by coverage of bittrue's Python code. Does not return."""
    import atheris

    def mutate(content: bytes, longest: int, seed: int) -> bytes:
        if seed % 8:
            other = changed(attempts.target.change, content, seed)
            if len(other) <= longest:
                return other
        return bytes(atheris.Mutate(content, longest))

    def one(content: bytes) -> None:
        attempts(content)
        if time.process_time() > end:
            attempts.tell()
            os._exit(0)

    options = (
        f"-seed={seed % (1 << 31) or 1}",
        f"-max_len={LONGEST}",
        f"-artifact_prefix={attempts.state}/",
        *("-timeout=1000000", "-rss_limit_mb=0", "-detect_leaks=0", "-verbosity=0", "-print_final_stats=0"),
    )
    atheris.Setup([sys.argv[0], *options, str(corpus), *folders], one, custom_mutator=mutate)
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("file", nargs="?", type=Path, help="run this one and say what came of it")
    parser.add_argument("--engine", choices=("atheris", "plain", "corpus"), default="plain")
    parser.add_argument("--seconds", type=float, default=60, help="of processor time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path)
    parser.add_argument("--corpus", type=Path, help="new inputs are kept here")
    parser.add_argument("folders", nargs="*", help="of inputs to begin with")
    given = parser.parse_intermixed_args()
    if not any(os.environ.get("LD_PRELOAD", "").count(name) for name in ("libasan", "vgpreload")):
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    if given.engine == "atheris":
        import atheris

        # Modules that are imported while fuzzing are instrumented, too.
        atheris.instrument_imports(include=["bittrue"]).__enter__()
    from targets import find

    target = find(given.target)
    if given.state is None:
        with tempfile.TemporaryDirectory() as folder:
            print(target.attempt(given.file.read_bytes(), Path(folder)))
        return
    folders = [str(given.file), *given.folders] if given.file else given.folders
    attempts = Attempts(target, given.state)
    end = time.process_time() + given.seconds
    if given.engine == "corpus":
        replay_all(attempts, [str(given.corpus), *folders], given.seed, end)
    else:
        (plain if given.engine == "plain" else covered)(attempts, given.corpus, folders, given.seed, end)
    attempts.tell()


if __name__ == "__main__":
    main()
