"""bittrue against MXNet and Caffe2, each in a Python process of its own, on whole networks.

    python bench/systems.py --mxnet PYTHON_WITH_MXNET --caffe2 PYTHON_WITH_CAFFE2
        [--networks mxnet:resnet18_v1,caffe2:resnet18-dnnlowp] [--size 224] [--seconds 10] [--output FILE]

The other system builds a network with random weights, quantizes it as it does itself, saves it in its own format and
runs it; bittrue reads those files. Both take turns on the same input, one thread each, Python call to Python call.
Writes OUTPUT.md and OUTPUT.json. Peers: systems_peers/.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from pages import RESULTS, write

HERE = Path(__file__).resolve().parent
NETWORKS = (
    *("mxnet:resnet18_v1", "mxnet:resnet50_v1", "mxnet:mobilenet1.0", "mxnet:mobilenetv2_1.0", "mxnet:squeezenet1.1"),
    *("mxnet:densenet121", "caffe2:resnet18", "caffe2:resnet18-dnnlowp", "caffe2:mobilenet_v1"),
    *("caffe2:mobilenet_v1-dnnlowp", "caffe2:mobilenet_v2", "caffe2:mobilenet_v2-dnnlowp"),
)


class Other:
    """The other system's process.

    Attributes:
        described: title, model file and numerics, as it says itself; {"problem"} when it did not start.
    """

    def __init__(self, python: str, peer: Path, folder: Path, name: str, size: int) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
        self._process = subprocess.Popen(
            [python, str(peer), str(folder), name, str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self.described: dict[str, Any] = self._answer() or {"problem": "the other system did not build or run it"}

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None

    def times(self, runs: int) -> list[float]:
        """Seconds of each of so many runs."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{runs}\n")
        self._process.stdin.flush()
        found: list[float] = self._answer()
        return found

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def ours(session: Any, x: np.ndarray, runs: int) -> list[float]:
    """Seconds of each of so many runs of bittrue."""
    found = []
    for _ in range(runs):
        begin = time.perf_counter()
        session.run(x)
        found.append(time.perf_counter() - begin)
    return found


def difference(found: np.ndarray, expected: np.ndarray) -> str:
    """Whether the bytes of both results are equal, in a few words."""
    if found.tobytes() == expected.tobytes() and found.dtype == expected.dtype:
        return "equal"
    if found.shape != expected.shape:
        return f"shapes {list(found.shape)} and {list(expected.shape)}"
    differing = int((found != expected).sum())
    worst = float(np.abs(found.astype(np.float64) - expected).max() / max(float(np.abs(expected).max()), 1e-30))
    return f"{differing:,} of {found.size:,} numbers differ, by {worst:.1e} of the largest at most"


def measure(network: str, pythons: dict[str, str], size: int, seconds: float) -> dict[str, Any]:
    """One network; with "problem" where it did not run."""
    import bittrue
    from bittrue.errors import BittrueError

    system, _, name = network.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        other = Other(pythons[system], HERE / "systems_peers" / f"{system}_peer.py", Path(folder), name, size)
        try:
            described = {"network": network, "size": size, **other.described}
            if "problem" in described:
                return described
            x, expected = (np.load(Path(folder) / f"{what}.npy") for what in ("input", "output"))
            try:
                model = bittrue.load(described["model"])
                session = model.prepare(described["numerics"], shapes={"data": x.shape})
            except BittrueError as error:
                return {**described, "problem": str(error)}
            (found,) = session.run(x).values()
            profile = session.profile(x, rounds=3).to_dict()
            first = other.times(3)
            runs = max(1, round(seconds / 20 / (min(first) + min(ours(session, x, 3)))))
            rounds = [(ours(session, x, runs), other.times(runs)) for _ in range(10)]
        finally:
            other.close()
    # The fastest call of a round: what else runs on the machine only ever adds.
    fastest = [(min(mine), min(theirs)) for mine, theirs in rounds]
    ratios = [theirs / mine for mine, theirs in fastest]
    peak = profile["peak_multiply_adds_per_second"]
    return {
        **described,
        "executor": f"{session.executor} ({session.isa})",
        "bytes": difference(found, expected),
        "bittrue": statistics.median(mine for mine, _ in fastest),
        "other": statistics.median(theirs for _, theirs in fastest),
        "ratio": statistics.median(ratios),
        "low": min(ratios),
        "high": max(ratios),
        "multiply_adds": profile["multiply_adds"],
        "ceiling": profile["multiply_adds"] / peak if peak else None,
        "reference_steps": sorted({s["operator"] for s in profile["steps"] if "reference" in (s["note"] or "")}),
    }


def page(results: list[dict[str, Any]], machine: dict[str, Any]) -> str:
    """The whole Markdown page."""
    lines = [
        "# bittrue against MXNet and Caffe2",
        "",
        f"{machine['date']}. {machine['cpu']}, {machine['architecture']}, {machine['usable_cores']} of "
        f"{machine['cores']} cores usable; {' '.join(machine['flags'])}. {machine['system']}. Load {machine['load']}. "
        f"bittrue {machine['versions']['bittrue']}, NumPy {machine['versions']['numpy']}.",
        "",
        "Whole networks with random weights at batch 1, quantized and saved by the other system, one thread each. "
        "Milliseconds per run, Python call to Python call, real numbers in and out: the fastest call of each of ten "
        "interleaved rounds, and the median of those. The ratio is the median over the rounds with its range; above 1 "
        "bittrue is faster. *At least*: the network's "
        "multiply-adds at the peak that the same core just showed in registers; nothing that computes them with these "
        "instructions is faster. *Bytes*: the network's result, for this input.",
        "",
        "| network | input | other system | its ms | bittrue ms | other / bittrue (range) | at least ms | bytes |",
        "|---|---|---|---:|---:|---:|---:|---|",
    ]
    good = [result for result in results if "problem" not in result]
    for r in good:
        ceiling = "-" if r["ceiling"] is None else f"{1e3 * r['ceiling']:.3g}"
        lines.append(
            f"| {r['network'].partition(':')[2]} | {r['size']} | {r['title']} | {1e3 * r['other']:.4g} | "
            f"{1e3 * r['bittrue']:.4g} | {r['ratio']:.3g} ({r['low']:.3g}-{r['high']:.3g}) | {ceiling} | {r['bytes']} |"
        )
    if good:
        mean = math.exp(math.fsum(math.log(r["ratio"]) for r in good) / len(good))
        lines += ["", f"Geometric mean of other / bittrue over {len(good)} networks: **{mean:.3g}**."]
    lines += [
        f"\n{r['network']}: on the reference executor run {', '.join(r['reference_steps'])}."
        for r in good
        if r["reference_steps"]
    ]
    lines += [f"\n{r['network']} did not run: {r['problem']}" for r in results if "problem" in r]
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure all networks, print the page and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mxnet", metavar="PYTHON", help="an interpreter that has MXNet 1.9.1")
    parser.add_argument("--caffe2", metavar="PYTHON", help="an interpreter that has PyTorch with Caffe2")
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--seconds", type=float, default=10.0, help="per network")
    parser.add_argument("--output", type=Path, default=RESULTS / "systems", help="without suffix")
    arguments = parser.parse_args()
    pythons = {name: python for name in ("mxnet", "caffe2") if (python := getattr(arguments, name))}
    networks = [name for name in arguments.networks.split(",") if name.partition(":")[0] in pythons]
    if not networks:
        parser.error("no interpreter for any of the networks was given")

    import bittrue
    from bittrue.measure.machine import environment

    results = []
    for network in networks:
        results.append(measure(network, pythons, arguments.size, arguments.seconds))
        print({key: value for key, value in results[-1].items() if key != "model"}, file=sys.stderr, flush=True)
    machine = environment(bittrue.__version__)
    text = page(results, machine)
    print(text)
    described = {"machine": machine, "networks": [{k: v for k, v in r.items() if k != "model"} for r in results]}
    write(arguments.output, text, described)


if __name__ == "__main__":
    main()
