"""Processes that die, hang or print nonsense are answers; files of recordings go when nobody needs them."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from bittrue.errors import ResourceError, RunError
from bittrue.runners.process import Worker
from bittrue.runners.spool import Spool

_MODULE = """
import os, signal
def answer(request):
    if request["do"] == "abort":
        os.write(2, b"INFO: a delegate\\nCheck failed: index < size (7 vs. 3)\\n\\x1b[31m")
        os.abort()
    if request["do"] == "exit":
        os._exit(3)
    if request["do"] == "wait":
        signal.pause()
    print("noise on standard output")
    return {"got": request["do"]}
"""


def test_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bittrue_fake_runtime.py").write_text(_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    worker = Worker("Fake", "bittrue_fake_runtime")
    assert worker.ask({"do": "\u00e9\n"}, 60, tmp_path / "a") == {"got": "\u00e9\n"}
    with pytest.raises(RunError, match=r"Fake died of SIGABRT: Check failed: index < size \(7 vs. 3\)") as caught:
        worker.ask({"do": "abort"}, 60, tmp_path / "b")
    assert caught.value.code == "BT-RUNNER-ABORT"
    assert "delegate" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    with pytest.raises(RunError, match="exit code 3"):
        worker.ask({"do": "exit"}, 60, tmp_path / "c")
    with pytest.raises(ResourceError, match=r"more than 0\.5 s") as late:
        worker.ask({"do": "wait"}, 0.5, tmp_path / "d")
    assert late.value.code == "BT-RUNNER-TIME"
    assert worker.ask({"do": 1}, 60, tmp_path / "e") == {"got": 1}
    worker.close()
    assert worker.ask({"do": 2}, 60, tmp_path / "f") == {"got": 2}
    worker.close()


def test_the_process_ends_with_its_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bittrue_fake_runtime.py").write_text(_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    worker = Worker("Fake", "bittrue_fake_runtime")
    worker.ask({"do": 1}, 60, tmp_path / "a")
    process = worker._process
    assert process is not None
    assert process.poll() is None
    del worker
    gc.collect()
    assert process.poll() is not None


def test_spool() -> None:
    spool = Spool(10)
    small, large = np.int8([1, 2, 3]), np.arange(100, dtype=np.float32)
    held = spool.keep("a", small)
    assert spool._folder is None
    filed = spool.keep("b", large)
    folder = spool.folder
    assert len(list(folder.iterdir())) == 1
    assert held() is small
    assert filed().tobytes() == large.tobytes()
    # Room that a replaced value leaves is used again.
    other = spool.keep("a", np.arange(9, dtype=np.int8))
    assert len(list(folder.iterdir())) == 1
    empty = spool.keep("c", np.empty((0, 3), np.int16))
    assert (empty().shape, empty().dtype) == ((0, 3), np.int16)
    scalar = spool.keep("d", np.float64(2.5).reshape(()))
    assert scalar() == 2.5
    assert scalar().shape == ()
    assert other().tolist() == list(range(9))
    del spool, held, other, empty, scalar
    gc.collect()
    assert folder.exists()
    del filed
    gc.collect()
    assert not folder.exists()
