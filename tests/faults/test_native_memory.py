"""Memory that the C++ core does not get: each allocation of preparing and running fails once. The outcome is a typed
error or the right bytes, nothing leaks, and sessions work afterwards.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import bittrue
from support.compilers import compiler
from support.native import needs_native

HERE = Path(__file__).parent

SWEEP = """
import ctypes, gc, sys
sys.path[:0] = sys.argv[3:]
import numpy as np
import bittrue
from bittrue import _native
from bittrue.errors import ResourceError
from support import graphs, long_models

def joined():
    from support.build import T, chain
    x, y, z = T("f32", (1, 3, 2)), T("f32", (1, 3, 2)), T("f32", (1, 3, 4))
    joins = ("CONCATENATION", ("ConcatenationOptions", {"axis": 2}), [y, x], [z])
    return chain([("LOGISTIC", None, [x], [y]), joins]), [np.ones((1, 3, 2), np.float32)]

def staged():
    return graphs.staged(), [np.ones((2, 6), np.float32), np.int32([3, 4])]

models = {
    "convolution": lambda: long_models.convolution(8, 4),
    "lstm": lambda: long_models.lstm(5, 4),
    "variables": lambda: long_models.writes_then_works(8),
    "while": lambda: long_models.counted(3),
    "joined": joined,
    "staged": staged,
}
content, feed = models[sys.argv[1]]()
threads = int(sys.argv[2])
hook = ctypes.CDLL(None)
hook.failing_new_begin.argtypes = [ctypes.c_long]
hook.failing_new_end.restype = hook.failing_new_alive.restype = ctypes.c_long
# nanobind ends the process when its list of objects cannot grow: it is made large before.
number = np.zeros(1, np.int64)
many = [_native.Turn() for _ in range(2000)]
several = [turn.turn(1.0, number, -1) for turn in many]
del many, several

model = bittrue.load(content)
reference = model.prepare(executor="reference")

def results(session):
    return [value.tobytes() for value in session.run(*feed).values()]

expected = [results(reference) for _ in range(3)]

def prepared():
    return model.prepare(executor="native", threads=threads)

def allocations(which, work):
    hook.failing_new_begin(which)
    try:
        return work(), hook.failing_new_end()
    finally:
        hook.failing_new_end()

def fails(which, work):
    try:
        return allocations(which, work)[0]
    except ResourceError as error:
        assert error.code == "BT-MEMORY", error
        return None

typed = 0
def whole():
    session = prepared()
    return session, results(session)

def alive():
    gc.collect()
    return hook.failing_new_alive()

whole()
before = alive()
total = allocations(0, whole)[1]
for which in range(1, total + 3):
    found = fails(which, whole)
    typed += found is None
    if found is not None:
        session, value = found
        assert value == expected[0]
        assert results(session) == expected[1]
        del session
    del found
assert alive() == before, (alive(), before)

# Of a run alone; the variables are as before when it fails.
session = prepared()
assert results(session) == expected[0]
session.reset()
total = allocations(0, lambda: results(session))[1]
for which in range(1, total + 3):
    session.reset()
    assert results(session) == expected[0]
    value = fails(which, lambda: results(session))
    typed += value is None
    assert value in (None, expected[1])
    assert results(session) == (expected[1] if value is None else expected[2])
print(typed)
"""


@pytest.fixture(scope="module")
def hook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = os.environ.get("CXX") or compiler("g++")
    if program is None or not sys.platform.startswith("linux"):
        pytest.skip("no C++ compiler")
    library = tmp_path_factory.mktemp("hook") / "failing_new.so"
    source = str(HERE / "failing_new.cc")
    command = [program, "-std=c++17", "-O1", "-shared", "-fPIC", source, "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    return library


@pytest.mark.in_turns(2)
@needs_native
@pytest.mark.parametrize(
    ("model", "threads"),
    [("convolution", 1), ("convolution", 3), ("lstm", 1), ("variables", 1), ("while", 1), ("joined", 2), ("staged", 1)],
)
def test_each_allocation_fails_once(
    hook: Path, model: str, threads: int, record_property: Callable[[str, object], None]
) -> None:
    paths = [str(Path(bittrue.__file__).parents[1]), str(HERE.parent)]
    done = subprocess.run(
        [sys.executable, "-c", SWEEP, model, str(threads), *paths],
        capture_output=True, text=True, check=False, timeout=120, env={**os.environ, "LD_PRELOAD": str(hook)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 0
    record_property("compared", f"{model}, {threads} threads: {int(done.stdout)} failures, all with BT-MEMORY")
