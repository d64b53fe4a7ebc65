"""Memory that runs out is a typed error, and what comes after it works."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import bittrue

# Loads, prepares and runs under limits of the address space that grow from what is in use, until all of it succeeds.
SWEEP = """
import resource, sys
import numpy as np
import bittrue
from bittrue.errors import ResourceError

def used():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()

def work():
    session = bittrue.load(content).prepare(
        numerics="litert", executor=sys.argv[1], shapes={port.name: shape}, outputs=[inner]
    )
    return session, session.run(values)

content = bittrue.demo_model()
whole = bittrue.load(content).prepare(numerics="litert")
# The reshape behind the convolutions fixes the batch.
port, inner = whole.inputs[0], whole.plan.tensors[whole.plan.steps[1].outputs[0]].name
shape = (1000, *port.shape[1:])
values = {port.name: np.ones(shape, port.dtype)}
kept, expected = work()
size, typed, done = used(), 0, 0
for step in range(300):
    resource.setrlimit(resource.RLIMIT_AS, (size + step * int(sys.argv[2]), resource.RLIM_INFINITY))
    try:
        _, found = work()
        done += 1
    except ResourceError as error:
        assert error.code == "BT-MEMORY", error
        typed += 1
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    # The session from before still works, and a new one does.
    if step % 20 == 0:
        for one in (kept.run(values), work()[1]):
            assert all(one[name].tobytes() == value.tobytes() for name, value in expected.items())
    if done > 5:
        break
print(typed, done)
"""


@pytest.mark.parametrize("executor", ["reference", "native"])
def test_memory_that_runs_out(
    executor: str, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SWEEP, executor, str(1 << (18 if request.config.getoption("--deep") else 20))],
        capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(bittrue.__file__).parents[1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    typed, succeeded = map(int, done.stdout.split())
    assert succeeded > 0
    assert typed > 0
    record_property("compared", f"{executor}: {typed} runs ended by limits of memory, all with BT-MEMORY")
