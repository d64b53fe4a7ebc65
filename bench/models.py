"""bittrue against other runtimes over a folder of models: `bittrue bench` on each, and one table.

    python bench/models.py [FOLDER or MODEL ...] [--against xnnpack,openvino,litert] [--threads 1,2]
    python bench/models.py FOLDER_OF_ONNX --against onnxruntime --size sequence=64 --output bench/results/onnx

Every model runs in a process of its own, in which all contenders take turns on the same input bytes, Python call to
Python call. Writes OUTPUT.md and OUTPUT.json (default bench/results/native). Models that lose to the fastest peer are
marked; models that do not run are listed with the reason. Peers that are missing here are rows, not errors.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import bittrue
from pages import RESULTS, SHARED, write

MODELS = SHARED / "models"
COMMAND = "from bittrue.cli import main; main()"


def measure(path: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """What `bittrue bench --json` says about one model, or {"file", "problem"}."""
    command = [sys.executable, "-c", COMMAND, "bench", str(path), "--json"]
    for option in ("against", "threads", "rounds", "seconds", "numerics", "executor", "isa", "memory_limit"):
        if getattr(arguments, option) is not None:
            command += [f"--{option.replace('_', '-')}", str(getattr(arguments, option))]
    for size in arguments.size:
        if size.partition("=")[0] in free_dimensions(path):
            command += ["--shape", size]
    onnx = arguments.onnx and arguments.onnx / f"{path.stem}.onnx"
    if onnx and onnx.is_file():
        command += ["--onnx", str(onnx)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"OPENBLAS_NUM_THREADS": "1", **os.environ}, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"file": path.name, "problem": lines[-1] if lines else f"exit status {done.returncode}"}
    described: dict[str, Any] = json.loads(done.stdout)
    return described


def free_dimensions(path: Path) -> set[str]:
    """Names that the file has for free dimensions of its inputs; none where it cannot be read."""
    try:
        graph = bittrue.load(path).graphs[0]
    except bittrue.BittrueError:
        return set()
    return {name for index in graph.inputs for name in graph.tensors[index].symbols or () if name}


def best(comparison: dict[str, Any]) -> dict[str, Any] | None:
    """The result of the fastest peer; None when no peer ran."""
    return next((r for r in comparison["results"] if r["name"] == comparison["best_peer"]), None)


def judgement(ratio: dict[str, float]) -> str:
    """Who is faster by the median of the rounds, and whether all rounds agree."""
    word = "faster" if ratio["median"] >= 1 else "**slower**"
    return word if ratio["low"] > 1 or ratio["high"] < 1 else f"{word}, not in every round"


def milliseconds(result: dict[str, Any]) -> str:
    """Median, and the fastest call in brackets."""
    if result["median"] is None:
        return "-"
    return f"{1e3 * result['median']:.4g} ({1e3 * result['minimum']:.4g})"


def verdict(result: dict[str, Any]) -> str:
    """Whether a peer's bytes equal ours, in a few words."""
    if result["equal"] is None:
        return "not run"
    if result["equal"]:
        return "equal"
    if any(d["incomparable"] for d in result["differences"]):
        return "no verdict"
    changed, total = (sum(d[key] for d in result["differences"]) for key in ("differing", "bytes"))
    return f"{changed:,} of {total:,} differ"


def table(runs: list[dict[str, Any]], position: int) -> list[str]:
    """Lines for one number of threads: a row per model, then the geometric mean."""
    comparisons = [run["comparisons"][position] for run in runs]
    peers = [(r["name"], r["title"]) for r in comparisons[0]["results"][1:]]
    threads = comparisons[0]["threads"]
    lines = [
        f"## {threads} thread{'' if threads == 1 else 's'}",
        "",
        "| model | bittrue | "
        + " | ".join(f"{title} | bytes" for _, title in peers)
        + " | fastest peer / bittrue (range) | bittrue is |",
        "|---|---:|" + "---:|---|" * len(peers) + "---:|---|",
    ]
    ratios, words = [], []
    for run, comparison in zip(runs, comparisons, strict=True):
        ours, *theirs = comparison["results"]
        cells = [Path(run["model"]["file"]).stem, milliseconds(ours)]
        for result in theirs:
            cells += [milliseconds(result), verdict(result)]
        fastest = best(comparison)
        if fastest is None:
            cells += ["-", "-"]
        else:
            ratio = fastest["ratio"]
            ratios.append(ratio["median"])
            words.append(judgement(ratio))
            cells += [
                f"{ratio['median']:.3g} ({ratio['low']:.3g}-{ratio['high']:.3g}), {fastest['name']}",
                words[-1],
            ]
        lines.append(f"| {' | '.join(cells)} |")
    if ratios:
        mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
        slower = sum(word.startswith("**slower**") for word in words)
        lines += [
            "",
            f"Geometric mean of fastest peer / bittrue over {len(ratios)} models: **{mean:.3f}** "
            f"({len(ratios) - slower} faster, {slower} slower). "
            "Above 1 means that bittrue is faster.",
        ]
    return [*lines, ""]


def page(runs: list[dict[str, Any]], sizes: list[str]) -> str:
    """The whole Markdown page."""
    good = [run for run in runs if "problem" not in run]
    lines = ["# bittrue against other runtimes", ""]
    if good:
        machine, first = good[0]["environment"], good[0]
        versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        executors = sorted({run["executor"] + (f" ({run['isa']})" if run["isa"] else "") for run in good})
        loads = [run["environment"]["load"] for run in good if run["environment"]["load"] is not None]
        peaks = [p for run in good if (p := run["environment"]["peak_multiply_adds_per_second"])]
        rounds = sorted({c["rounds"] for run in good for c in run["comparisons"]})
        lines += [
            f"{machine['date']}. {machine['cpu']}, {machine['architecture']}, {machine['usable_cores']} of "
            f"{machine['cores']} cores usable; {' '.join(machine['flags'])}. {machine['system']}. "
            + (f"Measured peak of one core {min(peaks) / 1e9:.1f} to {max(peaks) / 1e9:.1f} GMAC/s. " if peaks else "")
            + (f"Load {min(loads)} to {max(loads)}. " if loads else "")
            + f"{versions}.",
            "",
            f"bittrue with executor {', '.join(executors)}, numerics {first['numerics']}. Milliseconds per run, median "
            f"(fastest), {rounds[0]}{f' to {rounds[-1]}' if len(rounds) > 1 else ''} interleaved rounds in one "
            "process, the same random input bytes, Python call to Python call. The ratio is the median over the rounds "
            "with its range. The fastest peer is chosen for each model, by its median. *bytes*: the outputs against "
            "bittrue's, for this one input."
            + (f" Free dimensions have the sizes {', '.join(sizes)}, others 1." if sizes else ""),
            "",
        ]
        for position in range(len(first["comparisons"])):
            lines += table(good, position)
        reasons: dict[str, set[str]] = {}
        for run in good:
            for result in run["comparisons"][0]["results"]:
                if result["problem"]:
                    stem = Path(run["model"]["file"]).stem
                    reasons.setdefault(f"{result['title']}: {result['problem']}", set()).add(stem)
        if reasons:
            lines += ["Peers that did not run:", ""]
            for reason, models in reasons.items():
                where = "all models" if len(models) == len(good) else ", ".join(sorted(models))
                lines.append(f"- {reason} ({where})")
            lines.append("")
    bad = [run for run in runs if "problem" in run]
    if bad:
        lines += ["Models that bittrue did not run:", "", *(f"- {run['file']}: {run['problem']}" for run in bad), ""]
    return "\n".join(lines)


def main() -> None:
    """Measure all models, print the page and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, help=f"models or folders of them (default {MODELS})")
    parser.add_argument("--against", default="xnnpack,openvino,litert")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5.0, help="per model and number of threads")
    parser.add_argument("--numerics", help="whose arithmetic, by default that of each file's format")
    parser.add_argument("--executor", default="auto")
    parser.add_argument("--isa")
    parser.add_argument("--size", action="append", default=[], metavar="NAME=N", help="of free dimensions called so")
    parser.add_argument("--memory-limit", type=int, metavar="MIB")
    parser.add_argument("--onnx", type=Path, metavar="FOLDER", help="the same networks as ONNX, under the same stems")
    parser.add_argument("--output", type=Path, default=RESULTS / "native", help="without suffix")
    arguments = parser.parse_args()
    paths: list[Path] = []
    for path in arguments.models or [MODELS]:
        paths += sorted(p for p in path.iterdir() if p.suffix in (".tflite", ".onnx")) if path.is_dir() else [path]
    missing = [path for path in paths if not path.is_file()]
    if missing or not paths:
        parser.error(f"no models: {', '.join(map(str, missing)) or 'the folders hold none'}")
    runs = []
    for number, path in enumerate(paths, 1):
        print(f"[{number}/{len(paths)}] {path.name}", file=sys.stderr, flush=True)
        runs.append(measure(path, arguments))
        for comparison in runs[-1].get("comparisons", ()):
            print(f"    {comparison['threads']}: {comparison['conclusion']}", file=sys.stderr, flush=True)
        if "problem" in runs[-1]:
            print(f"    {runs[-1]['problem']}", file=sys.stderr, flush=True)
    text = page(runs, arguments.size)
    print(text)
    write(arguments.output, text, runs)


if __name__ == "__main__":
    main()
