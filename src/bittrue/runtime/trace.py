"""Traces: every value of a run by tensor name, in execution order, in memory or as a directory of .npy files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..plan import Plan

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = "bittrue-trace-1"


def collect(plan: Plan, inputs: Mapping[int, np.ndarray], results: Mapping[int, np.ndarray]) -> dict[str, np.ndarray]:
    """Inputs, tensors folded at plan time, then results in the order in which steps gave them."""
    folded = {i: plan.tensors[i].value for i in plan.folded}
    ordered = {**{i: inputs[i] for i in plan.inputs}, **folded, **results}
    return {plan.tensors[i].name: value for i, value in ordered.items() if value is not None}


def write_trace(directory: object, plan: Plan, values: Mapping[str, np.ndarray]) -> Path:
    """One .npy per tensor and an index `trace.json`: name, file, dtype, shape, scale and zero point, in order."""
    import json
    import re
    from pathlib import Path

    folder = Path(os.fspath(directory))  # type: ignore[call-overload]
    folder.mkdir(parents=True, exist_ok=True)
    by_name = {tensor.name: tensor for tensor in plan.tensors}
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
            }
        )
    description = {"format": FORMAT, "graph": plan.name, "numerics": plan.numerics, "tensors": index}
    (folder / "trace.json").write_text(json.dumps(description, indent=1))
    return folder
