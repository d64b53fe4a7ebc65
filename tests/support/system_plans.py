"""Small plan files of the systems that are gone: one per operator and choice of rules of their recorded cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bittrue import qnn
from bittrue.conformance.recorded.adapters import find_adapter
from bittrue.conformance.recorded.vectors import Case, read_vectors
from bittrue.errors import BittrueError
from bittrue.numerics import find
from bittrue.plan import Plan, make_plan

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded"
FOLDERS = (
    "caffe2",
    "caffe2-dnnlowp",
    "caffe2-avx2",
    "mxnet",
    "mxnet-avx2",
    "mxnet_pointwise",
    "snps_caffe_convolutions",
    "snps_caffe_layers",
)
QNN = ("tvm-qnn", "tvm-qnn-tonearest", "tvm-qnn-float32", "tvm-qnn-float64-tonearest")


def plan_files(folder: Path) -> list[bytes]:
    """Contents of plan files; each has a step that no plan before it has, by its operator and rules."""
    seen: set[object] = set()
    found = []
    for plan in made_plans():
        kinds = {(step.operator, *sorted(step.rules.items())) for step in plan.steps}
        if kinds <= seen:
            continue
        seen |= kinds
        path = folder / "system.plan"
        plan.save(path)
        found.append(path.read_bytes())
    return found


def operators_of_plans() -> set[str]:
    """Stems of all steps."""
    return {step.operator for plan in made_plans() for step in plan.steps}


@cache
def made_plans() -> tuple[Plan, ...]:
    """The plans of all recorded cases and expressions that differ in more than numbers."""
    return (*_recorded(), *_expressions())


def _recorded() -> Iterator[Plan]:
    for folder in FOLDERS:
        recorded = read_vectors(RECORDED / folder)
        adapter = find_adapter(recorded.framework)
        alike: set[object] = set()
        for case in recorded.cases:
            kind = _kind(case)
            if kind in alike:
                continue
            alike.add(kind)
            try:
                trial = adapter.trial(case)
                graph = trial.model.graphs[0]
                table = find(trial.numerics or adapter.numerics)
                shapes = {graph.tensors[i].name: x.shape for i, x in zip(graph.inputs, trial.feeds, strict=True)}
                yield make_plan(graph, table, shapes=shapes, graphs=trial.model.graphs)
            except BittrueError:
                continue


def _kind(case: Case) -> object:
    """Cases that differ in numbers only are alike."""
    attributes = tuple((key, str(value)) for key, value in sorted(case.attributes.items()) if isinstance(value, str))
    inputs = [None if given is None else (given.value.dtype, given.value.ndim) for given in case.inputs()]
    return case.operator, tuple(sorted(case.attributes)), attributes, str(inputs), case.identity[:9]


def _expressions() -> Iterator[Plan]:
    rng = np.random.default_rng(0)

    def var(dtype: str, *shape: int) -> Any:
        return qnn.var("x", shape, dtype)

    def bytes_of(*shape: int) -> np.ndarray:
        return rng.integers(-128, 128, shape).astype(np.int8)

    calls: list[Callable[[], Any]] = [
        lambda: qnn.quantize(var("float32", 2, 3), 0.5, 3, out_dtype="int8"),
        lambda: qnn.dequantize(var("int8", 2, 3), 0.5, 3),
        lambda: qnn.requantize(var("int32", 2, 3), 0.25, 3, 0.75, 1, out_dtype="int8"),
        lambda: qnn.requantize(var("uint8", 2, 3), 0.25, 3, 0.5, 1, out_dtype="uint8"),
        lambda: qnn.requantize(var("int32", 2, 3), np.float32([0.25, 1.5, 3]), 0, 0.75, 1, axis=1, out_dtype="int8"),
        lambda: qnn.conv2d(var("int8", 1, 2, 5, 4), bytes_of(3, 2, 2, 2), 1, 0, 0.5, 0.25, (2, 2), 3),
        lambda: qnn.dense(var("int8", 2, 3), bytes_of(4, 3), 1, 0, 0.5, 0.25, 4),
        lambda: qnn.add(var("int8", 2, 3), bytes_of(2, 3), 1.0, 0, 0.3, 1, 2.0, 0),
        lambda: qnn.mul(var("int8", 2, 3), bytes_of(2, 3), 1.0, 0, 0.3, 1, 2.0, 0),
        lambda: qnn.concatenate([var("int8", 2, 3), bytes_of(2, 3)], [1.0, 0.5], [0, 1], 2.0, 0, 1),
        lambda: qnn.tanh(var("int8", 2, 3), 1.0, 0, 2.0, 0),
        lambda: qnn.leaky_relu(var("int8", 2, 3), 0.5, 1.0, 0, 2.0, 0),
        lambda: qnn.softmax(var("int8", 2, 3), 0.5, 0, 2.0, 0),
        lambda: qnn.avg_pool2d(var("int8", 1, 4, 4, 2), 1.0, 0, 0.75, 1, (2, 2), (1, 1), (0, 0), (1, 1)),
        lambda: qnn.max_pool2d(var("int8", 1, 2, 4, 4), (2, 2)),
        lambda: qnn.quantized_conv2d(var("int8", 1, 2, 4, 4), bytes_of(1, 2, 1, 1), 1.0, 0, 0.3, 0, 2.0, 0, "int8"),
        lambda: qnn.quantized_fully_connected(var("int8", 2, 3), bytes_of(4, 3), 1.0, 0, 0.5, 0, 2.0, 0, "int8"),
        lambda: qnn.quantized_pool2d(var("uint8", 1, 2, 4, 4), 1.0, 0, 0.75, 0, "uint8", "avg", (2, 2)),
        lambda: qnn.quantized_relu(var("int8", 2, 3), 1.0, 0, 0.75, 0, "int8"),
        lambda: qnn.quantized_add(var("int8", 2, 3), bytes_of(2, 3), 1.0, 0, 0.3, 0, 2.0, 0, "int8"),
    ]  # fmt: skip
    for call in calls:
        for numerics in QNN:
            yield qnn.model(call()).prepare(numerics=numerics, executor="reference").plan
