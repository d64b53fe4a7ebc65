"""Fuzz targets for a processor time each, in processes that are watched; a table of what came of it. `tools/fuzz.sh`
starts it.

A finding is a crash (the process died), a hang (one input took too long), an untyped exception, a visible warning, an
internal error, or a difference between the executors. Findings of one cause count once; the shortest input is kept.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from targets import NAMES
from watch import processor_seconds
from worker import name_of

_HERE = Path(__file__).resolve().parent
CORPUS = _HERE / "corpus"
# Seconds for imports, instrumented.
_START = 300
_MOST_STARTS = 30
# Findings up to this size are printed, so that they outlive the machine that found them.
_PRINTED = 6000
_COLUMNS = (
    "target",
    "executions",
    "exec/s",
    "slowest s",
    "crashes",
    "hangs",
    "untyped",
    "warnings",
    "native != reference",
    "new files",
)


@dataclass
class Tally:
    """What came of one target."""

    target: str
    executions: int = 0
    slowest: float = 0.0
    seconds: float = 0.0
    new: int = 0
    findings: dict[str, Path] = field(default_factory=dict)

    def count(self, *kinds: str) -> int:
        return sum(name.split("-")[0] in kinds for name in self.findings)

    def row(self) -> tuple[str, ...]:
        numbers = (self.count("crash"), self.count("hang"), self.count("untyped", "internal"), self.count("warning"))
        rate = f"{self.executions / max(self.seconds, 1e-9):,.0f}"
        return (
            self.target,
            f"{self.executions:,}",
            rate,
            f"{self.slowest:.1f}",
            *map(str, numbers),
            str(self.count("different")),
            f"{self.new}",
        )


class Watched:
    """One target's workers, one after the other, until the time is up."""

    def __init__(self, target: str, given: argparse.Namespace) -> None:
        self.tally = Tally(target)
        self.given = given
        self.state = given.work / "state" / target
        self.corpus = given.work / "corpus" / target
        shutil.rmtree(self.state, ignore_errors=True)
        (self.state / "findings").mkdir(parents=True)
        self.corpus.mkdir(parents=True, exist_ok=True)

    def run(self, seconds: float) -> Tally:
        before = len(list(self.corpus.iterdir()))
        starts = 0
        while self.tally.seconds < seconds and starts < _MOST_STARTS:
            ended = self._once(seconds - self.tally.seconds, starts)
            starts += 1
            if ended:
                break
        self.tally.new = len(list(self.corpus.iterdir())) - before
        for path in sorted((self.state / "findings").glob("*.bin")):
            self.tally.findings[path.stem] = path
        return self.tally

    def _once(self, seconds: float, start: int) -> bool:
        """One worker. False when it crashed or hung and another one may go on."""
        for name in ("current", "stats.json"):
            (self.state / name).unlink(missing_ok=True)
        log = self.state / f"log{start}"
        command = [
            *shlex.split(os.environ.get("BITTRUE_FUZZ_UNDER", "")),
            *(sys.executable, str(_HERE / "worker.py"), self.tally.target, "--engine", self.given.engine),
            *("--seconds", str(seconds), "--seed", str(self.given.seed + start), "--state", str(self.state)),
            *("--corpus", str(self.corpus), *map(str, self._folders())),
        ]
        # What malloc returns and what free leaves is no zero: bytes that nobody wrote show.
        environment = {"MALLOC_PERTURB_": str(self.given.seed % 255 + 1), **os.environ}
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
            hung = self._watch(process)
        self._count()
        if process.returncode == 0 and not hung:
            return True
        self._keep("hang" if hung else "crash", f"exit code {process.returncode}\n", log)
        # A worker that does not get as far as its first input will not the next time.
        return not self._begun()

    def _begun(self) -> bool:
        current = self.state / "current"
        return current.exists() and current.stat().st_size > 0

    def _folders(self) -> list[Path]:
        found = (CORPUS / self.tally.target, self.given.work / "seeds" / self.tally.target)
        return [path for path in found if path.is_dir()]

    def _watch(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for the end. True when an input took too much processor time, or ten times that by the clock."""
        current = self.state / "current"
        seen, cpu, clock = -1, 0.0, time.monotonic()
        while True:
            try:
                process.wait(0.5)
                return False
            except subprocess.TimeoutExpired:
                pass
            try:
                now = current.stat().st_mtime_ns if self._begun() else -1
                used = processor_seconds(process.pid)
            except OSError:
                continue
            if now != seen:
                seen, cpu, clock = now, used, time.monotonic()
            limit = _START if seen < 0 else self.given.limit
            if used - cpu > limit or time.monotonic() - clock > 10 * limit:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return True

    def _count(self) -> None:
        try:
            found = json.loads((self.state / "stats.json").read_bytes())
        except (OSError, ValueError):
            return
        self.tally.executions += found["executions"]
        self.tally.seconds += found["seconds"]
        self.tally.slowest = max(self.tally.slowest, found["slowest"])

    def _keep(self, kind: str, text: str, log: Path) -> None:
        content = (self.state / "current").read_bytes() if self._begun() else b""
        stem = self.state / "findings" / f"{kind}-{name_of(content)}"
        stem.with_suffix(".bin").write_bytes(content)
        stem.with_suffix(".txt").write_bytes(text.encode() + log.read_bytes()[-20_000:])
        with (self.state / "skip").open("a") as file:
            file.write(f"{name_of(content)}\n")


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in (_COLUMNS, *rows)) for i in range(len(_COLUMNS))]
    lines = [
        "  ".join(
            text.ljust(w) if i == 0 else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in (_COLUMNS, *rows)
    ]
    return "\n".join(lines)


def _tell(tally: Tally, given: argparse.Namespace) -> None:
    sanitize = f" --sanitize {given.sanitize}" if given.sanitize else ""
    for stem, path in tally.findings.items():
        text = path.with_suffix(".txt").read_text(errors="replace")
        first = next((line for line in text.splitlines() if line.strip()), "")
        print(f"\n{tally.target}: {stem.split('-')[0]}: {first[:200]}\n  {path}  ({path.stat().st_size} bytes)")
        print(f"  tools/fuzz.sh{sanitize} --replay {tally.target} {path}")
        if given.print_inputs and path.stat().st_size <= _PRINTED:
            print(text[-3000:], f"base64: {base64.b64encode(path.read_bytes()).decode()}", sep="\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/fuzz.sh", description=__doc__)
    parser.add_argument("minutes", type=float, help="of processor time, for each target")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"one of {', '.join(NAMES)}; all without one")
    parser.add_argument("--total", action="store_true", help="MINUTES are for all targets together")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--engine", choices=("auto", "atheris", "plain", "corpus"), default="auto")
    parser.add_argument("--seed", type=int, default=None, help="else a new one, which is printed")
    parser.add_argument("--limit", type=float, default=20, help="seconds of processor time that one input may take")
    parser.add_argument("--work", type=Path, default=Path("build/fuzz"), help="corpora, findings and logs")
    parser.add_argument("--sanitize", default="", help="set by tools/fuzz.sh, which builds what it needs")
    parser.add_argument("--print-inputs", action="store_true", help="print small inputs of findings")
    given = parser.parse_intermixed_args()
    given.work = given.work.resolve()
    unknown = [name for name in given.targets if name not in NAMES]
    if unknown:
        parser.error(f"no target {', '.join(unknown)}; targets: {', '.join(NAMES)}")
    if given.engine == "auto":
        given.engine = "atheris" if importlib.util.find_spec("atheris") else "plain"
    if given.seed is None:
        given.seed = time.time_ns() % 1_000_000_007
    targets = given.targets or list(NAMES)
    seconds = given.minutes * 60
    if given.total:
        seconds *= given.jobs / len(targets)
    print(
        f"engine {given.engine}, seed {given.seed}, {seconds:g} s of processor time for each of {len(targets)} targets",
        flush=True,
    )
    with ThreadPoolExecutor(given.jobs) as pool:
        tallies = list(pool.map(lambda name: Watched(name, given).run(seconds), targets))
    print(_table([tally.row() for tally in tallies]))
    for tally in tallies:
        _tell(tally, given)
    print(f"\nworking corpora: {given.work / 'corpus'}; the same again: --engine {given.engine} --seed {given.seed}")
    return 1 if any(tally.findings or not tally.executions for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
