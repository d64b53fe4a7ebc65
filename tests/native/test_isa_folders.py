"""What is compiled with the flags of an instruction set runs nowhere else.

The linker keeps one copy of an inline function that several object files have. A copy with instructions of another
processor must not be it: whatever weak function comes out of a set's folder has the set's own namespace in its name.
Nor may anything there run when the library is loaded, on any processor.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_cores import ROOT, build, compiler, native

PLANTED = """
namespace bittrue {
inline __attribute__((noinline)) int leaves(int x) { return 3 * x; }
struct Counted { Counted(); };
namespace avx2 {
inline __attribute__((noinline)) int stays(int x) { return 5 * x; }
int entry(int x) { return leaves(x) + stays(x); }
Counted counted;
}
}
"""


def escapes(file: Path, namespace: str) -> list[str]:
    """The functions of an object file that other files' copies may be taken for, and those that run on loading."""
    if shutil.which("nm") is None:
        pytest.skip("nm (binutils) is not installed")
    command = ["nm", "--defined-only", "--format=posix", str(file)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    symbols = [line.split()[:2] for line in lines]
    own = f"{len(namespace)}{namespace}"
    return [
        name
        for name, kind in symbols
        if (kind == "W" and own not in name) or name.startswith(("_GLOBAL__sub_I", "__cxx_global_var_init"))
    ]


def test_planted_functions_are_found(tmp_path: Path) -> None:
    source, target = tmp_path / "planted.cc", tmp_path / "planted.o"
    source.write_text(PLANTED)
    subprocess.run([compiler(), "-O2", "-c", str(source), "-o", str(target)], check=True, timeout=60)
    weak, initializer = sorted(escapes(target, "avx2"), key=lambda name: "sub_I" in name)
    assert "leaves" in weak
    assert initializer.startswith("_GLOBAL__sub_I")


def test_no_weak_function_leaves_a_folder() -> None:
    sets = {isa.replace("-", "_") for isa in native.compiled_isas()} - {"portable"}
    if not sets:
        pytest.skip("this build has the portable set only")
    files = {name: list(build().glob(f"CMakeFiles/bittrue_{name}.dir/**/*.o")) for name in sets}
    if not any(files.values()):
        pytest.skip("the object files of the build have been removed")
    assert all(files.values()), files
    found = {f"{name}/{file.stem}": escapes(file, name) for name in sets for file in files[name]}
    assert not {file: names for file, names in found.items() if names}


def test_every_core_has_its_contract() -> None:
    """docs/cores.md has a row for each, in the order of the list."""
    listed = re.findall(r"^BITTRUE_[A-Z]+\((\w+),", (ROOT / "native" / "isa" / "core_list.inc").read_text(), re.M)
    assert listed == re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "cores.md").read_text(), re.M)
