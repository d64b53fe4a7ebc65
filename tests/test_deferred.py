"""Modules that are imported late."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import bittrue.operators.layers
import bittrue.rules


def test_a_deferred_module_is_the_module() -> None:
    code = (
        "import sys; from bittrue.operators.layers import real_layers as late;"
        "name = 'bittrue.operators.layers.real_layers';"
        "assert name not in sys.modules; late.reference; module = sys.modules[name];"
        "from bittrue.operators.layers import real_layers; assert real_layers is module;"
        "assert late.reference is module.reference; module.reference = 1; assert late.reference == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_that_are_not_deferred() -> None:
    for package in (bittrue.rules, bittrue.operators.layers):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            package.nothing  # noqa: B018


@pytest.mark.parametrize("theme", ["core", "elementwise", "layers", "pooling", "quantization", "reduction"])
def test_every_deferred_name_is_a_module(theme: str) -> None:
    package = import_module(f"bittrue.operators.{theme}")
    tree = ast.parse(Path(package.__file__ or "").read_text())
    names = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    deferred = [name for name in names if " " not in name]
    assert deferred
    for name in deferred:
        import_module(f"{package.__name__}.{name}")
