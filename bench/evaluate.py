"""`bittrue.evaluate` against the loops that people write: one over LiteRT with XNNPACK, one over ONNX Runtime.

    python bench/evaluate.py [--rounds 7] [--threads 1,2] [--output bench/results/evaluate]

Keyword spotting of MLPerf Tiny, 1,000 real samples: the .tflite model, and for ONNX Runtime a network of the same
layers in int8 with random weights, which this script makes. A loop opens the model, reads every file, runs it, takes
the largest value and counts what is right, in one thread; `evaluate` does the same and besides keeps digests, margins
and the confusion matrix. All take turns in every round, in one process. Writes OUTPUT.md and OUTPUT.json:
medians of wall clock and processor time, and the loop's processor time over evaluate's, round by round, in brackets its
range.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bittrue
from bittrue.measure.machine import environment
from bittrue.runners.peers import PEERS
from pages import RESULTS, SHARED, made_on, write

MODEL, DATA = SHARED / "models" / "tiny_kws_int8.tflite", SHARED / "data" / "mlperf_tiny_kws01"
SHAPE = (1, 49, 10, 1)


def samples() -> Iterator[tuple[np.ndarray, int]]:
    """Every sample with its label."""
    with (DATA / "y_labels.csv").open() as file:
        for name, _, label in csv.reader(file):
            yield np.fromfile(DATA / name, np.int8).reshape(SHAPE), int(label)


def litert_loop(path: Path) -> int:
    """How many are right under LiteRT as it comes."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    given, wanted = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    right = 0
    for x, label in samples():
        interpreter.set_tensor(given, x)
        interpreter.invoke()
        right += int(interpreter.get_tensor(wanted).argmax() == label)
    return right


def onnxruntime_loop(path: Path) -> int:
    """How many are right under ONNX Runtime, set so that it computes with integers."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return sum(int(session.run(None, {"x": x})[0].argmax() == label) for x, label in samples())


def keyword_network(path: Path) -> None:
    """The layers of the .tflite model as QDQ, with random weights."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng, nodes, constants = np.random.default_rng(0), [], []

    def constant(name: str, value: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(value, name))
        return name

    # What is below zero becomes the least value, as ReLU has it.
    zero, least = constant("zero", np.int8(0)), constant("least", np.int8(-128))

    def quantized(x: str, name: str, scale: float, zero_point: str) -> str:
        step = constant(f"{name}_scale", np.float32(scale))
        nodes.append(helper.make_node("QuantizeLinear", [x, step, zero_point], [f"{name}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", step, zero_point], [name]))
        return name

    def convolution(x: str, name: str, shape: tuple[int, ...], **attributes: Any) -> str:
        weights = constant(f"{name}_w", rng.integers(-127, 128, shape).astype(np.int8))
        step = constant(f"{name}_w_scale", np.float32(1.4 / 127 / np.sqrt(np.prod(shape[1:]))))
        nodes.append(helper.make_node("DequantizeLinear", [weights, step, zero], [f"{name}_wr"]))
        nodes.append(helper.make_node("Conv", [x, f"{name}_wr"], [f"{name}_y"], **attributes))
        return f"{name}_y"

    nodes.append(helper.make_node("DequantizeLinear", ["x", constant("x_scale", np.float32(0.02)), zero], ["x_real"]))
    nodes.append(helper.make_node("Transpose", ["x_real"], ["x_t"], perm=[0, 3, 1, 2]))
    y = quantized("x_t", "image", 0.02, zero)
    y = quantized(convolution(y, "c0", (64, 1, 10, 4), strides=[2, 2], pads=[4, 1, 5, 1]), "first", 0.02, least)
    for i in range(4):
        y = quantized(convolution(y, f"d{i}", (64, 1, 3, 3), group=64, pads=[1, 1, 1, 1]), f"depthwise{i}", 0.02, least)
        y = quantized(convolution(y, f"p{i}", (64, 64, 1, 1)), f"pointwise{i}", 0.02, least)
    nodes.append(helper.make_node("GlobalAveragePool", [y], ["mean_y"]))
    y = convolution(quantized("mean_y", "mean", 0.02, least), "last", (12, 64, 1, 1))
    nodes.append(helper.make_node("QuantizeLinear", [y, constant("y_scale", np.float32(0.02)), zero], ["y"]))
    ports = [
        helper.make_tensor_value_info(name, TensorProto.INT8, shape)
        for name, shape in (("x", SHAPE), ("y", (1, 12, 1, 1)))
    ]
    graph = helper.make_graph(nodes, "keywords", ports[:1], ports[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def measured(loop: Callable[[Path], int], path: Path, numerics: str, threads: list[int], rounds: int) -> dict[str, Any]:
    """Seconds and processor seconds of the loop and of evaluate, in turns, and how many each finds right."""
    contenders: dict[str, Callable[[], int]] = {"loop": lambda: loop(path)}
    for count in threads:
        contenders[f"evaluate, {count} thread{'s' if count > 1 else ''}"] = lambda count=count: bittrue.evaluate(
            path, DATA, numerics=[numerics], threads=count
        )["metrics"][numerics]["right"]
    right = {name: run() for name, run in contenders.items()}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    processor: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start, begun = time.perf_counter(), time.process_time()
            run()
            seconds[name].append(time.perf_counter() - start)
            processor[name].append(time.process_time() - begun)
    return {"right": right, "seconds": seconds, "processor": processor}


def page(found: dict[str, dict[str, Any]], machine: dict[str, Any], rounds: int) -> str:
    """The page in Markdown."""
    lines = [
        "# `bittrue evaluate` against plain loops",
        "",
        f"{made_on(machine)} {rounds} interleaved rounds over 1,000 samples of keyword spotting. Made by "
        "`python bench/evaluate.py`.",
        "",
        "| network, numerics; runtime | what | right | s | CPU s | loop's CPU time / its own (range) |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for title, result in found.items():
        for name, times in result["processor"].items():
            ratios = [loop / own for loop, own in zip(result["processor"]["loop"], times, strict=True)]
            ratio = "1" if name == "loop" else f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
            wall, processor = statistics.median(result["seconds"][name]), statistics.median(times)
            lines.append(f"| {title} | {name} | {result['right'][name]} | {wall:.3f} | {processor:.3f} | {ratio} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", default="1,2", help="of evaluate; loops have one")
    parser.add_argument("--output", type=Path, default=RESULTS / "evaluate")
    arguments = parser.parse_args()
    threads = [int(part) for part in arguments.threads.split(",")]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        network = Path(folder) / "keywords.onnx"
        keyword_network(network)
        for title, loop, path, numerics in (
            ("tiny_kws_int8.tflite, xnnpack; LiteRT with XNNPACK", litert_loop, MODEL, "xnnpack"),
            ("keywords.onnx, onnxruntime; ONNX Runtime", onnxruntime_loop, network, "onnxruntime"),
        ):
            found[title] = measured(loop, path, numerics, threads, arguments.rounds)
    machine = environment(bittrue.__version__, PEERS.values())
    text = page(found, machine, arguments.rounds)
    print(text)
    write(arguments.output, text, {"machine": machine, "rounds": arguments.rounds, "results": found})


if __name__ == "__main__":
    main()
