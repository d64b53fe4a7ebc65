"""What a case says of itself, and a device may look at before it chooses how to compute."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import BittrueError
from .suite import SuiteCase


def properties(case: SuiteCase) -> Mapping[str, str]:
    """Property to its value in words: ``"weights"`` to ``"weights per channel"``."""
    try:
        graph = case.model.graph
    except BittrueError:
        return {}
    found = {}
    constants = [tensor.quantization for tensor in graph.tensors if tensor.is_constant and tensor.quantization]
    if constants:
        several = any(quantization.scales.size > 1 for quantization in constants)
        found["weights"] = f"weights per {'channel' if several else 'tensor'}"
    for node in graph.nodes:
        for name, value in node.attributes.items():
            said = _word(value)
            if said:
                found.setdefault(f"{node.operator} {name}", f"{name} {said}")
        for position, index in enumerate(node.inputs):
            kind = "absent" if index is None else "constant" if graph.tensors[index].is_constant else "computed"
            found.setdefault(f"{node.operator} operand {position}", f"operand {position} {kind}")
    for kind, indices in (("input", graph.inputs), ("output", graph.outputs)):
        points = [
            tensor.quantization.zero_points
            for tensor in (graph.tensors[index] for index in indices)
            if tensor.quantization is not None
        ]
        if points:
            zero = all(not np.any(point) for point in points)
            found[f"{kind} zero point"] = f"{kind} zero point {'0' if zero else 'not 0'}"
    shape = graph.tensors[graph.outputs[0]].shape
    found["axes"] = f"{len(shape)} axes"
    if shape:
        found["batch"] = f"batch {'1' if shape[0] == 1 else 'above 1'}"
    return found


def _word(value: object) -> str:
    """Numbers are 0, 1, or more; what is no single number or word is left out."""
    if value is None or isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, int):
        return str(value) if value in (0, 1) else "below 0" if value < 0 else "above 1"
    return ""
