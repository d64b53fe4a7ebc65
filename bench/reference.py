"""How fast the NumPy reference executor is, next to the runtime's own reference kernels.

Both run interleaved in one process on one core, the same input bytes, Python call to Python call; outputs must be equal
before anything is timed. Prints a Markdown table: medians, fastest run, ratio of the medians per round.

    python bench/reference.py [MODEL ...] [--rounds 7] [--output bench/results/reference.md]

Without models it takes the interesting ones of ../shared/models. Needs ai-edge-litert (the `test` extra).
"""

from __future__ import annotations

import os

# Before NumPy is imported: one BLAS thread.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import statistics
import time
from pathlib import Path

import numpy as np

import bittrue
from bittrue.measure.machine import environment
from bittrue.runners.peers import PEERS
from pages import SHARED, made_on

MODELS = SHARED / "models"
DEFAULT = (
    "coral_tf2_mobilenet_v2_1.0_224_ptq",
    "coral_mobilenet_v1_0.25_128_quant",
    "inception_v3_299_int8",
    "tiny_kws_int8",
    "tiny_vww_int8",
    "tiny_resnet8_int8",
    "tiny_ad_int8",
)
# What issue 2 asks for, in seconds per image on one core.
BUDGET = {"coral_tf2_mobilenet_v2_1.0_224_ptq": 1.0, "inception_v3_299_int8": 6.0}


def measure(path: Path, rounds: int) -> str:
    """One table row for one model."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    started = time.perf_counter()
    session = bittrue.load(path).prepare("litert", executor="reference")
    prepared = time.perf_counter() - started
    interpreter = Interpreter(
        model_path=str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1
    )
    interpreter.allocate_tensors()
    rng = np.random.default_rng(0)
    feed = [
        rng.integers(np.iinfo(p.dtype).min, np.iinfo(p.dtype).max, p.shape, dtype=p.dtype, endpoint=True)
        for p in session.inputs
    ]

    def theirs() -> list[np.ndarray]:
        for detail, value in zip(interpreter.get_input_details(), feed, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]

    def ours() -> list[np.ndarray]:
        return list(session.run(*feed).values())

    equal = all(a.tobytes() == b.tobytes() for a, b in zip(ours(), theirs(), strict=True))
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(rounds):
        for name, call in (("ours", ours), ("theirs", theirs)):
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
    ratio = statistics.median(a / b for a, b in zip(times["ours"], times["theirs"], strict=True))
    mine, other = (statistics.median(times[name]) for name in ("ours", "theirs"))
    budget = BUDGET.get(path.stem)
    verdict = "" if budget is None else f"{budget:g} s: {'met' if mine < budget else 'MISSED'}"
    return (
        f"| {path.stem} | {1e3 * prepared:.0f} | {1e3 * mine:.3g} ({1e3 * min(times['ours']):.3g}) "
        f"| {1e3 * other:.3g} ({1e3 * min(times['theirs']):.3g}) | {ratio:.2f} "
        f"| {session.plan.work / mine / 1e9:.1f} | {'yes' if equal else 'NO'} | {verdict} |"
    )


def main() -> None:
    """Measure, print, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    lines = [
        "# NumPy reference executor against the runtime's own reference kernels",
        "",
        f"{made_on(environment(bittrue.__version__, [PEERS['litert']]))} With BUILTIN_REF. "
        f"One thread each, {arguments.rounds} interleaved rounds; median (fastest).",
        "",
        "| model | prepare ms | bittrue ms | BUILTIN_REF ms | ratio | G work/s | equal | budget |",
        "|---|---:|---:|---:|---:|---:|---|---|",
    ]
    print("\n".join(lines))
    for path in arguments.models or [MODELS / f"{name}.tflite" for name in DEFAULT]:
        lines.append(measure(path, arguments.rounds))
        print(lines[-1], flush=True)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
