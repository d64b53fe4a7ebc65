"""The pytest plug-in, as pip would install it: found by its entry point."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bittrue
from support.build import T, single

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a test file with the plug-in, in a folder with `digits.tflite`; a made-up distribution declares it."""
    site = tmp_path / "site"
    (site / "declared-1.dist-info").mkdir(parents=True)
    (site / "declared-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: declared\nVersion: 1\n")
    (site / "declared-1.dist-info" / "entry_points.txt").write_text("[pytest11]\nbittrue = bittrue.pytest_plugin\n")
    (tmp_path / "digits.tflite").write_bytes(bittrue.demo_model())

    def start(text: str, *options: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_it.py").write_text("import numpy as np\n" + text)
        source = Path(bittrue.__file__).parents[1]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(source)])}
        command = [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider", *options]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return start


def test_run(run: Run) -> None:
    done = run(
        "def test_it(bittrue):\n"
        "    y = bittrue.run('digits.tflite', seed=3)\n"
        "    x = bittrue.inputs('digits.tflite', seed=3)\n"
        "    bittrue.assert_bit_equal(y, bittrue.run('digits.tflite', x))\n"
        "    session = bittrue.session('digits.tflite')\n"
        "    assert session.plan.numerics == 'litert'\n"
        "    bittrue.assert_bit_equal(bittrue.run(session, x), y)\n"
        "    for name in y: y[name] = y[name] + np.int8(1)\n"
        "    bittrue.assert_bit_equal(bittrue.run(session, x), y)\n"
    )
    assert done.returncode == 1, done.stdout
    assert "10 of 10 elements differ (100 %), int8 [1, 10]" in done.stdout
    assert "testing.py:" not in done.stdout, "the traceback ends in the test"


def test_check(run: Run, tmp_path: Path) -> None:
    # The specification wants weights without a zero point.
    x, w = T("s8", [1, 4], 0.5, 3), T("s8", [2, 4], 0.1, 5, data=np.ones((2, 4), np.int8))
    bad = single("FULLY_CONNECTED", ("FullyConnectedOptions", {}), [x, w], [T("s8", [1, 2], 0.5, 0)], version=4)
    (tmp_path / "bad.tflite").write_bytes(bad)
    done = run(
        "def test_good(bittrue):\n"
        "    assert bittrue.check('digits.tflite').errors == 0\n"
        "def test_bad(bittrue):\n"
        "    bittrue.check('bad.tflite')\n"
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "bittrue check: 1 error" in done.stdout, done.stdout
    assert "FULLY_CONNECTED, 't1'" in done.stdout


def test_compare(run: Run) -> None:
    done = run(
        "def test_equal(bittrue):\n"
        "    bittrue.assert_equal_runs('digits.tflite', 'digits.tflite@litert', seeds=range(2))\n"
        "def test_result(bittrue):\n"
        "    assert not bittrue.compare('digits.tflite', 'digits.tflite@xnnpack', seeds=range(5)).equal\n"
        "def test_different(bittrue):\n"
        "    bittrue.assert_equal_runs('digits.tflite', 'digits.tflite@xnnpack', seeds=range(5))\n"
    )
    assert "1 failed, 2 passed" in done.stdout, done.stdout
    for part in ("tensors differ", "first:", "worst:", "verdict:"):
        assert part in done.stdout


def test_option(run: Run) -> None:
    done = run(
        "def test_it(bittrue):\n"
        "    assert bittrue.session('digits.tflite').plan.numerics == 'xnnpack'\n"
        "    assert bittrue.session('digits.tflite', 'litert').plan.numerics == 'litert'\n",
        "--bittrue-numerics=xnnpack",
    )
    assert done.returncode == 0, done.stdout


def test_start_up_imports_nothing_of_ours(run: Run) -> None:
    done = run(
        "import sys\n"
        "def test_it():\n"
        "    assert sorted(m for m in sys.modules if m.startswith('bittrue')) == ['bittrue', 'bittrue.pytest_plugin']\n"
    )
    assert done.returncode == 0, done.stdout


def test_the_fixture_has_what_the_package_has(run: Run) -> None:
    done = run(
        "def test_it(bittrue):\n"
        "    assert bittrue.load('digits.tflite').prepare().plan.numerics == 'litert'\n"
        "    assert not hasattr(bittrue, 'no_such_name')\n"
    )
    assert done.returncode == 0, done.stdout
