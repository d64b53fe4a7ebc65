"""The ONNX project's own test vectors under shared/golden/onnx_node: folders of a model, inputs and outputs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import bittrue

from .differential import assert_same
from .shared import SHARED

GROUPS = ("quant", "quant_onnx_1.12", "cast_lowprec")


def vectors(pattern: str) -> list[object]:
    """Parameters (folders) of the cases whose name matches `pattern`, for pytest.mark.parametrize."""
    folders = [path for group in GROUPS for path in sorted((SHARED / "golden" / "onnx_node" / group).glob("test_*"))]
    return [
        pytest.param(path, id=f"{path.parent.name}-{path.name[5:]}")
        for path in folders
        if re.fullmatch(pattern, path.name[5:])
    ]


def _arrays(folder: Path, kind: str, count: int) -> list[np.ndarray]:
    found = []
    for number in range(count):
        array = numpy_helper.to_array(onnx.load_tensor(folder / "test_data_set_0" / f"{kind}_{number}.pb"))
        if re.fullmatch("u?int[24]", array.dtype.name):
            array = array.astype(np.uint8 if array.dtype.name[0] == "u" else np.int8)
        found.append(array)
    return found


def check_vector(folder: Path, numerics: str = "onnx") -> None:
    """Outputs equal the recorded ones byte for byte."""
    graph = onnx.load(folder / "model.onnx").graph
    session = bittrue.load(folder / "model.onnx").prepare(numerics, executor="reference")
    results = session.run(*_arrays(folder, "input", len(graph.input)))
    for (name, ours), theirs in zip(results.items(), _arrays(folder, "output", len(graph.output)), strict=True):
        assert_same(name, ours, theirs)
