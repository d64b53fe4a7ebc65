"""Link 4 of the equality argument: every core of every instruction set of this machine against the scalar twins, by the
C++ program cores_main.cc.

It is linked with the library that `pip install .` or tools/build_native.sh left in build/; $BITTRUE_CORES_TEST names a
program that was built elsewhere (-DBITTRUE_TESTS=ON), for example with sanitizers.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import bittrue

native = pytest.importorskip("bittrue._native", reason="the package is imported from its sources, without the C++ core")

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# Builds for other processors or with sanitizers, which have scripts of their own.
STRANGERS = {"aarch64", "address", "thread"}


def build() -> Path:
    """The folder of the newest build."""
    libraries = [
        path for path in (ROOT / "build").glob("*/native/libbittrue_core.a") if path.parts[-3] not in STRANGERS
    ]
    if not libraries:
        pytest.skip("no build of the C++ core lies in build/: pip install . or tools/build_native.sh makes one")
    return max(libraries, key=lambda path: path.stat().st_mtime).parent


def compiler() -> str:
    found = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    return found or pytest.skip("no C++ compiler is installed any more")


def program() -> Path:
    named = os.environ.get("BITTRUE_CORES_TEST")
    if named:
        return Path(named)
    library = build() / "libbittrue_core.a"
    macro = {"x86_64": ["-DBITTRUE_X86"], "aarch64": ["-DBITTRUE_ARM64"]}.get(os.uname().machine, [])
    command = [compiler(), "-std=c++17", "-O1", "-ffp-contract=off", *macro, f"-I{ROOT / 'native'}"]
    command += [str(HERE / "cores_main.cc"), str(library), "-pthread", "-o"]
    # One build for all processes and environments of a commit: named by what it is made of, complete once named.
    made_of = hashlib.sha256(" ".join(command).encode() + library.read_bytes())
    for source in [*sorted(HERE.glob("cores_*")), *sorted((ROOT / "native").rglob("*.[hi]*"))]:
        made_of.update(source.read_bytes())
    target = library.parent / f"cores_test-{made_of.hexdigest()[:16]}"
    if not target.exists():
        unnamed = library.parent / f"{target.name}-{os.getpid()}"
        built = subprocess.run([*command, str(unnamed)], capture_output=True, text=True, timeout=300)
        assert built.returncode == 0, built.stderr
        unnamed.replace(target)
    return target


def test_cores_equal_their_scalar_twins(record_property: Callable[[str, object], None]) -> None:
    run = subprocess.run([str(program())], capture_output=True, text=True, timeout=300)
    print(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = [line for line in run.stdout.splitlines() if not line.startswith("compiled:")]
    assert all(line.startswith("ok") for line in lines), run.stdout
    tested = {tuple(line.split()[1:3]) for line in lines}
    for isa in bittrue.isas():
        # A core that is not in the table cannot be called; one in the table cannot be untested.
        assert {(owner, core) for owner, core in native.cores(isa) if owner == isa} <= tested
    for line in lines:
        record_property("native", f"cores: {' '.join(line.split()[1:])}")
