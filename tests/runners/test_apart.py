"""A runtime in a process of its own: many inputs, states, ends of the process, names."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.errors import StoppedError
from bittrue.runners.apart import Apart
from bittrue.runners.named import full_name, read_name
from support.build import G, T, several
from support.graphs import ADD, assign, handle, once, read, resource, starting

pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")


def opened(path: Path, text: str) -> Apart:
    session = bittrue.load(path).prepare()
    return Apart(*read_name(text), {"tflite": path}, session.inputs, [port.name for port in session.outputs])


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """A resource variable that begins with 1, 2 and takes up every input."""
    of, x = resource(), T("f32", (2,))
    before, after = T("f32", (2,)), T("f32", (2,))
    nodes = [once(1), handle("sum", of), read(of, before), (*ADD, [before, x], [after]), assign(of, after)]
    path = tmp_path / "sums.tflite"
    path.write_bytes(
        several(G(nodes, [x], [after, before]), starting(("sum", T("f32", (2,), data=np.float32([1, 2])))))
    )
    return path


def test_variables_begin_anew_or_go_on(sums: Path) -> None:
    apart, one = opened(sums, "litert:xnnpack"), np.ones(2, np.float32)
    for reset, expected in ((True, [2, 2, 2]), (False, [3, 4, 5])):
        runs = apart.run([[one]] * 3, reset)
        assert [values[0][0] for values in runs] == expected  # type: ignore[index]
        assert [values[1][0] for values in runs] == [value - 1 for value in expected]  # type: ignore[index]
    # What is in a process that has gone is not made up.
    process = apart._worker.start()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (lost,) = apart.run([[one]], False)
    assert isinstance(lost, bittrue.RunError)
    assert "went with its process" in lost.message
    assert apart.run([[one]], True)[0][0][0] == 2  # type: ignore[index]


def test_an_interrupted_run_ends(sums: Path) -> None:
    apart = opened(sums, "litert")
    apart.open()
    process = apart._worker.start()
    process.send_signal(signal.SIGSTOP)
    timer = threading.Timer(0.1, apart.interrupt)
    timer.start()
    with pytest.raises(StoppedError):
        apart.run([[np.ones(2, np.float32)]] * 2, True)
    with pytest.raises(StoppedError):
        apart.run([[np.ones(2, np.float32)]], True)
    assert process.poll() is not None


def test_what_ends_the_process_is_one_run(sums: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apart, ask = opened(sums, "litert"), Apart._ask
    values = [np.full(2, n, np.float32) for n in range(5)]

    def dies(self: Apart, request: dict) -> dict:
        if request["ask"] == "run" and np.fromfile(request["feeds"], np.float32).__contains__(3):
            process = self._worker.start()
            os.killpg(process.pid, signal.SIGSTOP)
            threading.Timer(0.05, process.kill).start()
        return ask(self, request)

    monkeypatch.setattr(Apart, "_ask", dies)
    found = apart.run([[value] for value in values], True)
    assert [isinstance(one, bittrue.BittrueError) for one in found] == [n == 3 for n in range(5)]
    assert found[3].code == "BT-RUNNER-ABORT"  # type: ignore[union-attr]
    assert "SIGKILL" in found[3].message  # type: ignore[union-attr]
    assert [one[0][0] for i, one in enumerate(found) if i != 3] == [1, 2, 3, 5]  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("litert:xnpack", "BT-SIDE", "litert:xnnpack"),
        ("litert:", "BT-SIDE", "litert:builtin_ref"),
        ("xnnpack", "BT-SIDE", "litert:xnnpack"),
        ("ort:x", "BT-SIDE", "ort"),
        ("ort?levle=all", "BT-SIDE-OPTION", "level"),
        ("ort?level=most", "BT-SIDE-OPTION", "basic"),
        ("litert:xnnpack?resolver=optimized", "BT-SIDE-OPTION", "twice"),
        ("litert?timeout=0", "BT-SIDE-OPTION", "timeout"),
    ],
)
def test_names_that_are_none(sums: Path, text: str, code: str, words: str) -> None:
    with pytest.raises(bittrue.InputError, match=words) as caught:
        opened(sums, text)
    assert caught.value.code == code


def test_one_name_for_one_runtime() -> None:
    for texts, name in (
        (("litert", "litert:builtin_ref", "litert?resolver=builtin_ref"), "litert:builtin_ref"),
        (("ort?threads=2&level=basic", "ort?level=basic&threads=2"), "ort?level=basic&threads=2"),
        (("openvino",), "openvino"),
    ):
        assert {full_name(*read_name(text)) for text in texts} == {name}
