"""From nothing to the first result: fresh processes of bittrue and of the runtime that reads the same file.

    python bench/cold.py [MODEL ...] [--rounds 7] [--output bench/results/cold]

Without models: MobileNetV2 against LiteRT, and an ONNX model of 100 MB of 8-bit weights, which the script makes,
against ONNX Runtime. One thread each; processes take turns, and medians count. Bytecode is cached, as after an
installation. Linux only. Writes OUTPUT.md and OUTPUT.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import bittrue
from bittrue.measure.machine import environment
from pages import RESULTS, SHARED, made_on, write

MODEL = SHARED / "models" / "coral_tf2_mobilenet_v2_1.0_224_ptq.tflite"
COLUMNS = ("imported", "opened", "first result", "processor time", "peak MiB")
# What each does up to its first result; `x` gives an input of zeros.
WAYS = {
    "bittrue": """import bittrue; mark(); session = bittrue.load(path).prepare(); mark()
session.run({p.name: x(p.shape, p.dtype) for p in session.inputs})""",
    "litert": """from ai_edge_litert.interpreter import Interpreter; mark()
i = Interpreter(path, num_threads=1); i.allocate_tensors(); mark()
[i.set_tensor(d["index"], x(d["shape"], d["dtype"])) for d in i.get_input_details()]; i.invoke()""",
    "onnxruntime": """import onnxruntime as ort; mark()
options = ort.SessionOptions(); options.intra_op_num_threads = 1
session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]); mark()
session.run(None, {i.name: x(i.shape, "float32") for i in session.get_inputs()})""",
}
FRAME = """import time; begin = time.perf_counter(); times = []
def mark(): times.append(time.perf_counter() - begin)
def x(shape, dtype):
    import numpy
    return numpy.zeros([int(s) for s in shape], dtype)
import sys; path = sys.argv[1]
{body}
mark()
import json
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([1e3 * t for t in times] + [1e3 * time.process_time(), int(peak) / 1024]))
"""


def large(path: Path) -> None:
    """Four products of 5120 x 5120 8-bit weights, with QuantizeLinear and DequantizeLinear around them."""
    import onnx
    from onnx import helper, numpy_helper

    rng, size = np.random.default_rng(0), 5120
    constants = [numpy_helper.from_array(np.float32(s), n) for n, s in (("a", 0.05), ("b", 0.0005))]
    constants += [numpy_helper.from_array(np.uint8(128), "z"), numpy_helper.from_array(np.int8(0), "w")]
    nodes, last = [helper.make_node("QuantizeLinear", ["x", "a", "z"], ["q"])], "q"
    for i in range(4):
        weights = rng.integers(-127, 128, (size, size), np.int8)
        constants.append(numpy_helper.from_array(weights, f"w{i}"))
        nodes += [
            helper.make_node("DequantizeLinear", [last, "a", "z"], [f"d{i}"]),
            helper.make_node("DequantizeLinear", [f"w{i}", "b", "w"], [f"v{i}"]),
            helper.make_node("MatMul", [f"d{i}", f"v{i}"], [f"m{i}"]),
            helper.make_node("QuantizeLinear", [f"m{i}", "a", "z"], [f"q{i}"]),
        ]
        last = f"q{i}"
    nodes.append(helper.make_node("DequantizeLinear", [last, "a", "z"], ["y"]))
    ends = [[helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, size])] for name in ("x", "y")]
    graph = helper.make_graph(nodes, "large", ends[0], ends[1], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def once(way: str, path: Path, cache: str) -> list[float]:
    """The columns of one fresh process."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", FRAME.format(body=WAYS[way]), str(path)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**kept, "PYTHONPYCACHEPREFIX": cache}
    )
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure, print the page and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path, default=RESULTS / "cold", help="without suffix")
    arguments = parser.parse_args()
    figures: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        models = arguments.models or [MODEL, Path(folder) / "large.onnx"]
        if not arguments.models:
            large(models[1])
        for path in models:
            ways = ("bittrue", "onnxruntime" if path.suffix == ".onnx" else "litert")
            for way in ways:
                once(way, path, folder)
            runs = [[once(way, path, folder) for way in ways] for _ in range(arguments.rounds)]
            for position, way in enumerate(ways):
                columns = zip(*(run[position] for run in runs), strict=True)
                figures.setdefault(path.name, {})[way] = [statistics.median(column) for column in columns]
    machine = environment(bittrue.__version__)
    lines = ["# From nothing to the first result", "", made_on(machine), ""]
    lines += [f"Milliseconds since the interpreter began, medians of {arguments.rounds} fresh processes in turn.", ""]
    lines += [f"| model | | {' | '.join(COLUMNS)} |", "|---|---|" + "---:|" * len(COLUMNS)]
    for name, ways_of in figures.items():
        lines += [f"| {name} | {way} | {' | '.join(f'{v:,.0f}' for v in values)} |" for way, values in ways_of.items()]
    page = "\n".join([*lines, ""])
    print(page)
    write(arguments.output, page, {"machine": machine, "figures": figures})


if __name__ == "__main__":
    main()
