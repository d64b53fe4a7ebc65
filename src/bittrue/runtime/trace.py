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


def traced_tensors(plan: Plan) -> dict[str, PlanTensor | Tensor]:
    """What the names of a trace stand for, tensors of called graphs included."""
    by_name: dict[str, PlanTensor | Tensor] = {tensor.name: tensor for tensor in plan.tensors}
    if plan.source is not None:
        for number, graph in enumerate(plan.source.graphs):
            by_name.update({f"{plan.source.label(number)}::{tensor.name}": tensor for tensor in graph.tensors})
    return by_name


def write_trace(directory: object, plan: Plan, values: Mapping[str, np.ndarray]) -> Path:
    """One .npy per tensor and an index `trace.json`: names of inputs and outputs, and of each tensor name, file,
    dtype, shape, scales, zero points and their axis, in execution order.
    """
    import json
    import re
    from pathlib import Path

    folder = Path(os.fspath(directory))  # type: ignore[call-overload]
    folder.mkdir(parents=True, exist_ok=True)
    by_name = traced_tensors(plan)
    index = []
    for position, (name, value) in enumerate(values.items()):
        file = f"{position:04d}_{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)[-80:]}.npy"
        np.save(folder / file, value, allow_pickle=False)
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
    (folder / "trace.json").write_text(json.dumps(description, indent=1))
    return folder
