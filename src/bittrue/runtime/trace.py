"""Traces: every value of a run by tensor name, in execution order, in memory or as a directory of .npy files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..graph import Tensor
from ..plan import Plan, PlanTensor

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = "bittrue-trace-1"
INDEX = "trace.json"


def traced_tensors(plan: Plan) -> dict[str, PlanTensor | Tensor]:
    """What the names of a trace stand for, tensors of called graphs included."""
    by_name: dict[str, PlanTensor | Tensor] = {tensor.name: tensor for tensor in plan.tensors}
    if plan.source is not None and len(plan.source.graphs) > 1:
        for number, graph in enumerate(plan.source.graphs):
            by_name.update({f"{plan.source.label(number)}::{tensor.name}": tensor for tensor in graph.tensors})
    return by_name


def write_trace(directory: object, plan: Plan, values: Mapping[str, np.ndarray]) -> Path:
    """One .npy per tensor and an index `trace.json`: names of inputs and outputs, and of each tensor name, file,
    dtype, shape, scales, zero points and their axis, in execution order. The index comes last: a folder without it is
    no trace.

    Raises:
        OutputError: the folder could not be written; an older trace in it is still there.
    """
    from pathlib import Path

    from ..files import written_folder

    with written_folder(directory, INDEX) as folder:
        _fill(folder, plan, values)
    return Path(os.fspath(directory))  # type: ignore[call-overload]


def _fill(folder: Path, plan: Plan, values: Mapping[str, np.ndarray]) -> None:
    import json
    import re

    from ..files import scratch, scratch_bytes

    by_name = traced_tensors(plan)
    index = []
    for position, (name, value) in enumerate(values.items()):
        file = f"{position:04d}_{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)[-80:]}.npy"
        with scratch(folder / file) as stream:
            np.save(stream, value, allow_pickle=False)
        quantization = by_name[name].quantization
        index.append(
            {
                "name": name,
                "file": file,
                "dtype": by_name[name].type.title,
                "shape": list(value.shape),
                "scales": [] if quantization is None else [float(s) for s in quantization.scales],
                "zero_points": [] if quantization is None else [int(z) for z in quantization.zero_points],
                "axis": None if quantization is None else quantization.axis,
            }
        )
    ends = {
        "inputs": [plan.tensors[i].name for i in plan.inputs],
        "outputs": [plan.tensors[i].name for i in plan.results if plan.tensors[i].name in values],
    }
    description = {"format": FORMAT, "graph": plan.name, "numerics": plan.numerics, **ends, "tensors": index}
    scratch_bytes(folder / INDEX, json.dumps(description, indent=1).encode())
