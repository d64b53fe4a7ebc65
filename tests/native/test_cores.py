"""Every core of every instruction set of this machine against the scalar twins: the C++ program bittrue_cores_test.

It needs a build with -DBITTRUE_TESTS=ON (tools/build_native.sh FOLDER -DBITTRUE_TESTS=ON). The program is looked for at
$BITTRUE_CORES_TEST, then in build/*/.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import bittrue

native = pytest.importorskip("bittrue._native", reason="the package is imported from its sources, without the C++ core")

ROOT = Path(__file__).parents[2]


def program() -> Path:
    named = os.environ.get("BITTRUE_CORES_TEST")
    if named:
        return Path(named)
    found = sorted((ROOT / "build").glob("*/bittrue_cores_test"), key=lambda path: path.stat().st_mtime)
    # Others are for other processors or for sanitizers, which have scripts of their own.
    found = [path for path in found if path.parent.name not in ("aarch64", "address", "thread")]
    if not found:
        pytest.skip("bittrue_cores_test is not built: tools/build_native.sh build/native -DBITTRUE_TESTS=ON")
    return found[-1]


@pytest.mark.parametrize("isa", bittrue.isas())
def test_cores_equal_their_scalar_twins(isa: str) -> None:
    run = subprocess.run([str(program()), "--isa", isa], capture_output=True, text=True, timeout=300)
    print(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    assert all(line.startswith(("ok", "compiled:")) for line in lines), run.stdout
    tested = {tuple(line.split()[1:3]) for line in lines if line.startswith("ok")}
    assert {(owner, core) for owner, core in native.cores(isa) if owner == isa} <= tested
