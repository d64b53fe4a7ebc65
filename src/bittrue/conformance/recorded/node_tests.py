"""ONNX backend test data: folders with a model.onnx and test_data_set_*/input_*.pb, output_*.pb."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError
from ...files import read_file as whole_file
from ...importers import read_model
from ...importers.onnx import onnx_package
from .adapters import Trial
from .stored import from_pb, read_file
from .vectors import Recorded

_MODEL = "model.onnx"
_DEEPEST = 4
_MOST_TESTS = 100_000


@dataclass(frozen=True, eq=False)
class NodeTest:
    """One test: a model, and data sets of inputs and outputs.

    Attributes:
        identity: the folder, relative to the one that was searched.
        operator: what its only node is; the test's name where there are several kinds of nodes.
    """

    identity: str
    operator: str
    folder: Path

    def trials(self) -> Iterator[Trial]:
        """One per data set."""
        model = read_model(self.folder / _MODEL)
        graph = model.graphs[0]
        sets = sorted(path for path in self.folder.glob("test_data_set_*") if path.is_dir())
        if not sets:
            raise InputError("BT-VECTORS-PATH", "the test has no test_data_set_*", place=self.identity)
        for folder in sets:
            feeds = _arrays(folder, "input", [graph.tensors[i].name for i in graph.inputs])
            expected = _arrays(folder, "output", [graph.tensors[i].name for i in graph.outputs])
            yield Trial(model, [given.value for given in feeds], expected)


def find_node_tests(folder: Path) -> list[NodeTest]:
    """All tests in a folder and the folders in it, in name order; empty when there are none."""
    found = []
    for here, folders, files in os.walk(folder):
        folders.sort()
        path = Path(here)
        if _MODEL in files and any(name.startswith("test_data_set_") for name in folders):
            identity = path.relative_to(folder).as_posix()
            identity = path.name if identity == "." else identity
            found.append(NodeTest(identity, _operator(path), path))
            folders.clear()
        if len(path.relative_to(folder).parts) >= _DEEPEST or len(found) >= _MOST_TESTS:
            folders.clear()
    return found


def _operator(folder: Path) -> str:
    """The kind of the nodes; the folder's name where it has several or cannot be read."""
    from google.protobuf.message import DecodeError

    model = onnx_package().ModelProto()
    try:
        model.ParseFromString(whole_file(folder / _MODEL))
    except (OSError, InputError, DecodeError, RuntimeError):
        return folder.name
    kinds = {node.op_type for node in model.graph.node} - {"Constant"}
    return kinds.pop() if len(kinds) == 1 else folder.name


def _arrays(folder: Path, role: str, names: list[str]) -> list[Recorded]:
    """The tensors of one role, under the names that the model gives them."""
    count = len(list(folder.glob(f"{role}_*.pb")))
    if count != len(names):
        raise InputError(
            "BT-VECTORS-COUNT", f"{count} files {role}_*.pb, the model has {len(names)}", place=folder.as_posix()
        )
    return [read_tensor(folder / f"{role}_{i}.pb", name) for i, name in enumerate(names)]


def read_tensor(path: Path, name: str) -> Recorded:
    """The tensor of a .pb file, called `name`."""
    dtype, value = from_pb(read_file(path.parent, path.name, str(path)), name, str(path))
    return Recorded(name, dtype, value)
