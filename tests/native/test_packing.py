"""Many weights are packed by two threads into large pages, where there are any."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bittrue
from support.build import T, single
from support.native import needs_native
from support.runtimes import not_emulated

pytestmark = [
    needs_native,
    pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not show what memory it has"),
]


def large(depth: int, columns: int, seed: int) -> bittrue.Model:
    """A layer of 8-bit weights."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-127, 128, (columns, depth)).astype(np.int8)
    types = [T("s8", (1, depth), 0.05, 3), T("s8", (columns, depth), 0.002, 0, data=weights), None]
    return bittrue.load(
        single("FULLY_CONNECTED", ("FullyConnectedOptions", {}), types, [T("s8", (1, columns), 0.5, -2)])
    )


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


# In a process of its own: in another one, memory that is used again has large pages already.
_SESSIONS = """
from pathlib import Path

import bittrue
from native.test_packing import large


def advised():
    found, size = 0, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if line.startswith("Size:"):
            size = int(line.split()[1])
        elif line.startswith("VmFlags:") and "hg" in line.split():
            found += size
    return found


model, known = large(3000, 3000, 0), advised()
# The portable cores read the file's weights.
sessions = [model.prepare(isa=isa) for isa in bittrue.isas() if isa != "portable" for _ in range(4)]
assert all("1 steps native" in str(session.plan.execution) for session in sessions)
# One may lie where a large page was already. In KiB, as the system counts.
assert advised() - known >= (len(sessions) - 1) * (3000 * 3000 // (2 << 20) * 2048)
"""


@not_emulated
@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="there are no large pages")
def test_packed_weights_lie_in_large_pages() -> None:
    path = os.pathsep.join((str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")))
    subprocess.run([sys.executable, "-c", _SESSIONS], check=True, env={**os.environ, "PYTHONPATH": path})


def test_processors_change_nothing() -> None:
    model = large(1200, 1000, 1)
    x = np.random.default_rng(2).integers(-128, 128, (1, 1200)).astype(np.int8)
    allowed, before = os.sched_getaffinity(0), threads()
    several = model.prepare()
    try:
        os.sched_setaffinity(0, {min(allowed)})
        alone = model.prepare()
    finally:
        os.sched_setaffinity(0, allowed)
    assert threads() == before  # those that packed are gone
    sessions = several, alone, model.prepare(executor="reference")
    results = [next(iter(session.run(x).values())).tobytes() for session in sessions]
    assert results[0] == results[1] == results[2]
