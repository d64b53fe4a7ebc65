"""A command that is killed again and again, and goes on each time."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import bittrue

parquet = pytest.importorskip("pyarrow.parquet")
PART = 8
# Parts of a few samples, and samples that take a while, so that a kill comes before, in and between parts.
SLOW = f"""
import sys, time
from bittrue.cli import main
from bittrue.evaluation import evaluate
from bittrue.evaluation.sources.arrays import Arrays
evaluate.PART_ROWS = {PART}
plain = Arrays.__getitem__
def slow(self, position):
    time.sleep(0.004)
    return plain(self, position)
Arrays.__getitem__ = slow
main(sys.argv[1:])
"""


@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.deep)])
def test_killed_and_resumed_is_one_run(digits: Path, tmp_path: Path, kills: int) -> None:
    stored = np.load(digits / "samples.npz")
    data = tmp_path / "many.npz"
    np.savez(data, images=np.tile(stored["images"], (kills, 1, 1, 1)), labels=np.tile(stored["labels"], kills))
    whole = bittrue.evaluate(digits / "model.tflite", data)
    output = tmp_path / "out"
    words = ["evaluate", str(digits / "model.tflite"), "--data", str(data), "-o", str(output), "--resume", "--json"]
    command = [sys.executable, "-c", SLOW, *words]
    chance = random.Random(0)
    rows = output / "rows"
    killed = 0

    def parts() -> int:
        return len(list(rows.glob("part-*.parquet")))

    for kill in range(kills):
        before = parts()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            # The first one dies as soon as it has its folder, the others some time after their first part.
            while process.poll() is None and (parts() == before if kill else not rows.exists()):
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.1 if kill else 0.005))
            process.kill()
        killed += process.returncode == -signal.SIGKILL
    assert killed
    ended = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=100)
    assert json.loads(ended.stdout)["digest"] == whole["digest"]
    table = parquet.read_table(rows).to_pylist()
    assert [row["position"] for row in table] == list(range(whole["samples"]))
    assert json.loads((output / "summary.json").read_text())["metrics"] == json.loads(json.dumps(whole["metrics"]))
