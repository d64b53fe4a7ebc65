"""The oracle and its subjects share no code; the folder knows nothing of the rest and names no framework."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path

import pytest

from bittrue.arithmetic import exact, fixed_point, floats, matmul, multiplier, tables, transcendental

FOLDER = Path(exact.__file__).parent
FILES = sorted(FOLDER.glob("*.py"))
SUBJECTS = (fixed_point, floats, matmul, multiplier, tables, transcendental)


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    return names


def test_oracle_imports_the_standard_library_only():
    assert {name.split(".")[0] for name in imported(FOLDER / "exact.py")} <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_outside_is_imported_and_no_subject_uses_the_oracle(path):
    for name in imported(path):
        # Which submodules are imported late is no arithmetic.
        assert not name.startswith(".") or (path.name, name) == ("__init__.py", "..deferred"), name
        assert not name.startswith("bittrue") or name.startswith("bittrue.arithmetic."), name
        assert "exact" not in name.split("."), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_frameworks_are_named_in_sources_only(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        if "Source:" not in line:
            assert not re.search(r"litert|tflite|tensorflow|onnx|caffe|mxnet|xnnpack|gemmlowp|\btvm\b", line, re.I), (
                line
            )


@pytest.mark.parametrize("module", SUBJECTS, ids=lambda module: module.__name__.split(".")[-1])
def test_every_primitive_has_an_oracle_a_source_and_an_example(module):
    for name, function in vars(module).items():
        public = inspect.isfunction(function) and not name.startswith("_") and function.__module__ == module.__name__
        # Neither computes anything: they choose a type.
        if public and name not in ("as_s64", "product_type"):
            assert hasattr(exact, name), name
            assert "Source:" in function.__doc__, name
            assert ">>>" in function.__doc__, name
