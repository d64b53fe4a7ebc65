"""Run every model of a corpus in ONNX Runtime and in bittrue, and count: equal bytes, different, refused.

    python tools/onnx_corpus/measure.py FOLDER [--only PART] [--table FILE.md] [--times] [--defaults] [--threads N]

Each model runs in a process of its own, on two random samples and, where dimensions are free, on others of other sizes
(two more of each, one of each, nothing in a cache), with one thread unless `--threads` says more, under the numerics
of ONNX Runtime on the processor at hand, which the table names. Results
stand in FOLDER/measured.json; each model that is not equal is printed with its reason. With `--times`, equal ones are
timed against the runtime, run by run in turns, and the steps that the reference executor takes are counted.
"""

import argparse
import collections
import json
import math
import multiprocessing
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from samples import BRANCH, sample

import bittrue
from bittrue.runners.processor import onnxruntime_here

TIME_LIMIT = 120  # seconds for one model
SECONDS = 0.5  # of runs in turns, for the times of one model
KINDS = ("equal", "differs", "refused", "marked", "no answer")


def _bytes(values: Any) -> list[tuple[Any, ...]]:
    return [(np.asarray(v).dtype.str, np.asarray(v).shape, np.asarray(v).tobytes()) for v in values]


def _opened(path: Path, integers: bool, threads: int = 1) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    if integers:
        options.add_session_config_entry("session.qdqisint8allowed", "1")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _values(theirs: Any, described: dict[str, Any], rng: np.random.Generator, free: dict[str, int]) -> dict[str, Any]:
    types = {"tensor(float16)": np.float16, "tensor(int32)": np.int32}
    values = sample(described["inputs"], free, rng)
    values[BRANCH] = rng.integers(0, 2, 1) == 1
    return {i.name: values[i.name].astype(types.get(i.type, values[i.name].dtype)) for i in theirs.get_inputs()}


def _sizes(described: dict[str, Any]) -> list[dict[str, int]]:
    """What free dimensions are in each run: those of the export twice, then others."""
    free = described["free"]
    used = {
        name for i in described["inputs"].values() for d in i["shape"] if isinstance(d, str) for name in d.split(" + ")
    }
    if described["fixed"] or not used:
        return [free, free]
    sizes = [free, free, {name: size + 2 for name, size in free.items()}, dict.fromkeys(free, 1)]
    return sizes + [free | {"batch": 1, "sequence": 5, "past": 0}] * ("past" in used)


def measure(path: Path, described: dict[str, Any], integers: bool = True, threads: int = 1) -> tuple[str, str]:
    """A word of KINDS and the reason; "marked" is a difference that the plan announces (`plan.inexact`, or of threads).

    `integers`: pairs of s8 stay s8 in the runtime's session, which its default options do not do on x86-64.
    """
    numerics = onnxruntime_here().with_options(integers)
    try:
        theirs = _opened(path, integers, threads)
    except Exception as error:
        return "no answer", f"ONNX Runtime: {error}"
    rng, session, runs = np.random.default_rng(0), None, 0
    for free in _sizes(described):
        values = _values(theirs, described, rng, free)
        try:
            expected = theirs.run(None, values)
        except Exception as error:
            # Some exporters keep sizes of their samples.
            if runs < 2:
                return "no answer", f"ONNX Runtime: {error}"
            continue
        runs += 1
        try:
            session = session or bittrue.load(str(path)).prepare(numerics)
            found = list(session.run(values).values())
        except bittrue.BittrueError as error:
            return "refused", f"{error} ({free})" if free != described["free"] else str(error)
        if _bytes(expected) != _bytes(found):
            wrong = [i for i, (a, b) in enumerate(zip(_bytes(expected), _bytes(found), strict=True)) if a != b]
            marked = [
                *session.plan.inexact,
                *(note for note in session.plan.notes if threads > 1 and "threads" in note),
            ]
            place = f"outputs {wrong} of sizes {free}"
            return ("marked", f"{place}; inexact: {', '.join(marked)}") if marked else ("differs", place)
    return "equal", ""


def cost(path: Path, described: dict[str, Any], integers: bool = True) -> tuple[float, dict[str, int]]:
    """The runtime's least time for a run in parts of ours, and the operators of steps without a native kernel."""
    numerics = onnxruntime_here().with_options(integers)
    theirs, session = _opened(path, integers), bittrue.load(str(path)).prepare(numerics)
    values = _values(theirs, described, np.random.default_rng(0), described["free"])
    least = [math.inf, math.inf]
    calls = (lambda: theirs.run(None, values), lambda: session.run(values))
    for call in calls:
        call()
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            least[i] = min(least[i], time.perf_counter() - start)
    shapes = {name: value.shape for name, value in values.items()}
    planned = bittrue.load(str(path)).prepare(numerics, shapes=shapes)
    left = [line.split()[2] for line in planned.plan.execution if " runs on the reference: " in line]
    return round(least[0] / least[1], 3), dict(collections.Counter(left))


def _apart(path: Path, described: dict[str, Any], integers: bool, threads: int, times: bool, pipe: Any) -> None:
    warnings.simplefilter("ignore")
    found = measure(path, described, integers, threads)
    pipe.send((*found, *cost(path, described, integers)) if times and found[0] == "equal" else found)


def main() -> None:
    """Measure the models that are asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="models whose file name contains this")
    parser.add_argument("--table", type=Path, help="write the counts as a table here")
    parser.add_argument("--times", action="store_true", help="time the models that are equal, half a second each")
    parser.add_argument("--defaults", action="store_true", help="sessions with default options, in which s8 becomes u8")
    parser.add_argument("--threads", type=int, default=1, help="threads of the runtime's sessions")
    arguments = parser.parse_args()
    rows: dict[str, tuple[Any, ...]] = {}
    described: dict[str, Any] = {}
    for path in sorted(arguments.folder.glob("*.onnx")):
        if arguments.only not in path.name:
            continue
        described[path.name] = json.loads(path.with_name(".".join(path.name.split(".")[:2]) + ".json").read_text())
        ours, theirs = multiprocessing.Pipe(False)
        process = multiprocessing.get_context("fork").Process(
            target=_apart,
            args=(
                path,
                described[path.name],
                not arguments.defaults,
                arguments.threads,
                arguments.times,
                theirs,
            ),
        )
        process.start()
        theirs.close()
        found: tuple[Any, ...] = ("no answer", f"took more than {TIME_LIMIT} s")
        if ours.poll(TIME_LIMIT):
            try:
                found = ours.recv()
            except EOFError:
                found = ("no answer", "the process died")
        process.kill()
        process.join()
        rows[path.name] = found
        if found[0] != "equal":
            print(f"{path.name}: {found[0]}: {found[1][:300]}".replace("\n", " "), flush=True)
    (arguments.folder / "measured.json").write_text(json.dumps(rows, indent=1))
    here = onnxruntime_here().with_options(not arguments.defaults)
    table = _table(rows, {name: d["family"] for name, d in described.items()}, here)
    print(table)
    if arguments.table:
        arguments.table.write_text(table + "\n")


def _quantization(name: str) -> str:
    """The kind of quantization: "qdq" for all whose names begin so."""
    return name.split(".")[2].partition("_")[0]


def _table(rows: dict[str, tuple[Any, ...]], families: dict[str, str], here: str) -> str:
    count: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for name, found in rows.items():
        for row in (families[name], "all"):
            for column in (_quantization(name), "all"):
                count[row, column][found[0]] += 1
    columns = [*sorted({_quantization(name) for name in rows}), "all"]
    lines = [f"{len(rows)} models under {here}: {' / '.join(KINDS)} (a count of 0 at the end is left out)", ""]
    lines += ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for row in [*sorted(set(families.values())), "all"]:
        cells = ["/".join(str(count[row, c][k]) for k in KINDS) for c in columns]
        lines.append(
            f"| {row} | "
            + " | ".join(c.removesuffix("/0").removesuffix("/0") if c.strip("0/") else "–" for c in cells)
            + " |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
