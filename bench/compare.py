"""`bittrue compare` over the shared models and a folder of .onnx files: one page of tables.

    python bench/compare.py [--models FOLDER] [--onnx FOLDER] [--output bench/results/compare] [--only TEXT]

Runs LiteRT's reference kernels against XNNPACK and against its optimised kernels, on random values and, where the model
takes one, on an image; bittrue's numerics against each other; every ``tf2onnx_NAME.onnx`` of the folder against
``NAME.tflite``, both ways round; ONNX Runtime without optimisation against its levels. Each comparison is a process of
its own: seconds are wall clock from start to end, MiB the largest process of it. Writes OUTPUT.md and OUTPUT.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bittrue
from bittrue.measure.machine import environment
from bittrue.runners.peers import PEERS
from pages import RESULTS, SHARED, made_on, write

COMMAND = "from bittrue.cli import main; main()"
MENDED = ("tflm_person_detect",)
NUMERICS = ("xnnpack", "litert@1.2", "litert-optimized", "single-rounding", "tvm-qnn")
LEVELS = ("all", "layout", "extended", "basic")
LITERT, OURS = "LiteRT against itself", "bittrue's numerics against each other"
ACROSS, ORT = "One network in two formats", "ONNX Runtime against itself"


@dataclass(frozen=True)
class Job:
    """One comparison: its table, what the row calls it, the sides, and an image."""

    table: str
    model: str
    against: str
    a: str
    b: str
    image: Path | None = None


def image_of(path: Path) -> Path | None:
    """An image for models whose only input is one; speech spectrograms are not square."""
    graph = bittrue.load(path).graph
    shape = [size for size in graph.tensors[graph.inputs[0]].shape if size != 1] if len(graph.inputs) == 1 else []
    if len(shape) == 3 and shape[2] == 3 and shape[0] == shape[1]:
        return SHARED / "images" / "grace_hopper.bmp"
    if len(shape) == 2 and shape[0] == shape[1] and shape[0] >= 28:
        return SHARED / "images" / ("mnist_nine.bmp" if shape[0] == 28 else "grace_hopper.bmp")
    return None


def litert_jobs(models: list[Path]) -> Iterator[Job]:
    """LiteRT's reference kernels against its others."""
    for path in models:
        query = "?mend=1" if path.stem in MENDED else ""
        for kind in ("xnnpack", "optimized"):
            for image in dict.fromkeys((None, image_of(path))):
                a, b = f"litert:builtin_ref {path}{query}", f"litert:{kind} {path}{query}"
                yield Job(LITERT, path.stem, f"builtin_ref, {kind}", a, b, image)


def numerics_jobs(models: list[Path]) -> Iterator[Job]:
    """bittrue's numerics against each other."""
    for path in models:
        for name in NUMERICS:
            yield Job(OURS, path.stem, f"litert, {name}", f"{path}@litert", f"{path}@{name}")


def onnx_jobs(models: list[Path], folder: Path) -> Iterator[Job]:
    """The folder's files: against their .tflite, and ONNX Runtime's levels."""
    tflite = {path.stem: path for path in models}
    for path in sorted(folder.glob("*.onnx")):
        other = tflite.get(path.stem.removeprefix("tf2onnx_"))
        if path.stem.startswith("tf2onnx_") and other is not None:
            yield Job(ACROSS, other.stem, ".tflite, ort:.onnx", str(other), f"ort:{path}")
            yield Job(ACROSS, other.stem, "ort:.onnx, .tflite", f"ort:{path}", str(other))
    for path in sorted(folder.glob("*.onnx")):
        plain = f"ort:{path}?level=disable"
        for level in LEVELS:
            yield Job(ORT, path.stem, f"disable, {level}", plain, f"ort:{path}?level={level}")
        yield Job(ORT, path.stem, "all, disable", f"ort:{path}", plain)


def measure(job: Job, limit: float) -> dict[str, Any]:
    """What one comparison says, as a row."""
    row: dict[str, Any] = {"table": job.table, "model": job.model, "against": job.against}
    row["input"] = job.image.name if job.image else "random"
    with tempfile.TemporaryDirectory() as folder:
        result, words = Path(folder) / "result.json", Path(folder) / "stderr"
        command = [sys.executable, "-c", COMMAND, "compare", job.a, job.b, "--json"]
        command += ["-i", str(job.image)] if job.image else []
        started = time.perf_counter()
        with result.open("wb") as out, words.open("wb") as err:
            pid = os.posix_spawn(
                command[0],
                command,
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, err.fileno(), 2)],
            )
            _, status, usage = wait(pid, limit)
        row["seconds"] = round(time.perf_counter() - started, 2)
        row["cpu"] = round(usage.ru_utime + usage.ru_stime, 2)
        row["mib"] = usage.ru_maxrss // 1024
        if os.waitstatus_to_exitcode(status) not in (0, 1):
            lines = [line for line in words.read_text(errors="replace").splitlines() if line.strip()]
            row["problem"] = lines[0] if lines else "killed: over the time limit"
            return row
        row.update(summary(json.loads(result.read_text())))
    return row


def wait(pid: int, limit: float) -> tuple[int, int, Any]:
    """The end of a process, which is killed after `limit` seconds."""
    end = time.monotonic() + limit
    while True:
        found = os.wait4(pid, os.WNOHANG)
        if found[0]:
            return found
        if time.monotonic() > end:
            os.kill(pid, 9)
            return os.wait4(pid, 0)
        time.sleep(0.01)


def summary(result: dict[str, Any]) -> dict[str, Any]:
    """The figures of a row from a result."""
    pairs = result["pairs"]
    differing = [p for p in pairs if p["cumulative"]["differing"]]
    judged = [p for p in pairs if p["verdict"]]
    causes: Counter[str] = Counter()
    unexplained: Counter[str] = Counter()
    isolated: Counter[str] = Counter()
    for pair in judged:
        operator = pair["operator"]
        isolated[operator] += pair["verdict"]["differing"]
        unexplained[operator] += pair["verdict"]["unexplained"]
        for cause in pair["verdict"]["causes"]:
            causes[f"{operator}: {cause['name']}"] += cause["elements"]
    layouts = Counter(p["layout"] for p in pairs)
    return {
        "equal": result["equal"],
        "tensors": len(pairs),
        "unmatched": [len(result["unmatched_a"]), len(result["unmatched_b"])],
        "layouts": dict(layouts),
        "differing": len(differing),
        "first": f"{differing[0]['node']} {differing[0]['source']}" if differing else "",
        "isolated": dict(isolated),
        "unexplained": dict(unexplained),
        "causes": dict(causes),
        "not_isolated": sum(p["isolated"] is None for p in differing if p["node"] is not None),
        "text": next((p["verdict"]["text"] for p in judged), ""),
    }


def count(number: int) -> str:
    """A number with its thousands apart."""
    return f"{number:,}".replace(",", " ")


def row_text(row: dict[str, Any]) -> str:
    """One line of a table."""
    start = f"| {row['model']} | {row['against']} | {row['input']} |"
    end = f" {row['seconds']:.1f} | {row['cpu']:.1f} | {row['mib']} |"
    if "problem" in row:
        return f"{start} refused: {row['problem'].replace('|', '/')} | | | | |{end}"
    if row["equal"]:
        return f"{start} equal, {row['tensors']} tensors | | 0 | 0 | |{end}"
    rules = dict.fromkeys(name.split(": ", 1)[1] for name in row["causes"])
    named = ", ".join(f"`{rule}`" for rule in rules)
    alone = f" ({row['not_isolated']} not isolated)" if row["not_isolated"] else ""
    return (
        f"{start} {row['differing']} of {row['tensors']} tensors{alone} | {row['first']} "
        f"| {count(sum(row['isolated'].values()))} | {count(sum(row['unexplained'].values()))} | {named} |{end}"
    )


def page(rows: list[dict[str, Any]]) -> str:
    """The page in Markdown."""
    lines = [
        "# What `bittrue compare` says of the shared models",
        "",
        f"{made_on(environment(bittrue.__version__, PEERS.values()))} Made by `python bench/compare.py`; one seed or "
        "one image per row.",
        "",
        "*isolated*: elements that differ when A's arithmetic gets B's inputs of the same operator, of all operators. "
        "*unexplained*: those of them that no recomputation under a named rule gives. *s*: wall clock of the whole "
        "command, imports and runtimes included. *CPU s*: its processor time. *MiB*: the largest process.",
        "",
    ]
    for table in dict.fromkeys(row["table"] for row in rows):
        chosen = [row for row in rows if row["table"] == table]
        lines += [f"## {table}", ""]
        lines += ["| model | A, B | input | differ | first | isolated | unexplained | why | s | CPU s | MiB |"]
        lines += ["|---|---|---|---|---|---:|---:|---|---:|---:|---:|"]
        lines += [*map(row_text, chosen), ""]
        lines += [*by_operator(chosen), ""]
    return "\n".join(lines)


def by_operator(rows: list[dict[str, Any]]) -> list[str]:
    """Isolated and unexplained elements by operator type, and what explains them."""
    isolated: Counter[str] = Counter()
    unexplained: Counter[str] = Counter()
    causes: dict[str, Counter[str]] = {}
    for row in rows:
        isolated.update(row.get("isolated", {}))
        unexplained.update(row.get("unexplained", {}))
        for name, number in row.get("causes", {}).items():
            operator, rule = name.split(": ", 1)
            causes.setdefault(operator, Counter())[rule] += number
    lines = ["| operator | isolated | unexplained | explained by |", "|---|---:|---:|---|"]
    for operator, number in isolated.most_common():
        rules = ", ".join(f"`{rule}` ({count(n)})" for rule, n in causes.get(operator, Counter()).most_common(6))
        lines.append(f"| {operator} | {count(number)} | {count(unexplained[operator])} | {rules} |")
    return lines if isolated else []


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, default=SHARED / "models")
    parser.add_argument("--onnx", type=Path, help="folder of .onnx files")
    parser.add_argument("--only", default="", help="rows whose table, model or sides contain this")
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a comparison is killed")
    parser.add_argument("--output", type=Path, default=RESULTS / "compare")
    arguments = parser.parse_args()
    models = sorted(arguments.models.glob("*.tflite"))
    jobs = [*litert_jobs(models), *numerics_jobs(models)]
    jobs += onnx_jobs(models, arguments.onnx) if arguments.onnx else []
    rows = []
    for job in jobs:
        if arguments.only in f"{job.table} {job.model} {job.against}":
            rows.append(measure(job, arguments.limit))
            print(row_text(rows[-1]), flush=True)
            write(arguments.output, page(rows), rows)


if __name__ == "__main__":
    main()
