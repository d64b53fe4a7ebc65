"""Modules that are imported late."""

import ast
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest

import bittrue.arithmetic
import bittrue.operators.layers
import bittrue.rules
import bittrue.runtime
from bittrue.deferred import deferred


def test_a_deferred_module_is_the_module() -> None:
    code = (
        "import sys; from bittrue.operators.layers import real_layers as late;"
        "name = 'bittrue.operators.layers.real_layers';"
        "assert name not in sys.modules; late.reference; module = sys.modules[name];"
        "from bittrue.operators.layers import real_layers; assert real_layers is module;"
        "assert late.reference is module.reference; module.reference = 1; assert late.reference == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_threads_wait_for_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "late_package").mkdir()
    (tmp_path / "late_package" / "slow.py").write_text("import time; time.sleep(0.1); value = 7")
    monkeypatch.syspath_prepend(tmp_path)
    late = deferred("late_package", ["slow"])("slow")
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda _: late.value, range(3))) == [7] * 3


def test_names_that_are_not_deferred() -> None:
    for package in (bittrue.arithmetic, bittrue.rules, bittrue.operators.layers, bittrue.runtime):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            package.nothing  # noqa: B018


@pytest.mark.parametrize(
    "folder",
    [
        "arithmetic",
        *(f"operators.{theme}" for theme in "core elementwise layers pooling quantization reduction".split()),
    ],
)
def test_every_deferred_name_is_a_module(folder: str) -> None:
    package = import_module(f"bittrue.{folder}")
    tree = ast.parse(Path(package.__file__ or "").read_text())
    names = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    late = [name for name in names if " " not in name]
    assert late
    for name in late:
        import_module(f"{package.__name__}.{name}")
