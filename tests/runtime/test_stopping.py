"""Runs that end early: timeouts, interrupts and Ctrl-C, and that the session is as it was before."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.errors import StoppedError
from support import long_models
from support.build import T, single
from support.native import needs_native, same
from support.runtimes import not_emulated

EXECUTORS = ["reference", *(["native"] if bittrue.isas() else [])]
LIMIT = 1_000_000_000  # iterations: the timeout comes first
# Where child processes find what is tested, and what tests share.
PATH = [str(Path(bittrue.__file__).parents[1]), str(Path(__file__).parents[1])]


def prepared(name: str, **options: Any) -> tuple[bittrue.Session, list[np.ndarray]]:
    content, feed = long_models.LONG[name]()
    return bittrue.load(content).prepare(iteration_limit=LIMIT, **options), feed


def seconds_too_late(session: bittrue.Session, feed: list[np.ndarray], timeout: float) -> tuple[float, StoppedError]:
    start = time.monotonic()
    with pytest.raises(StoppedError) as caught:
        session.run(*feed, timeout=timeout)
    return time.monotonic() - start - timeout, caught.value


@not_emulated
@pytest.mark.in_turns(2)
@needs_native
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", long_models.LONG)
def test_timeouts_of_native_code(name: str, threads: int) -> None:
    session, feed = prepared(name, executor="native", threads=threads)
    late = math.inf
    # Other processes may keep this one waiting: the best of several.
    for _ in range(5):
        seconds, error = seconds_too_late(session, feed, 0.1)
        late = min(late, seconds)
        assert error.code == "BT-TIMEOUT"
        assert error.place.startswith("node 0")
        assert " steps were done" in error.message
    assert late < 0.3


def test_timeouts_of_the_reference() -> None:
    session, feed = prepared("while", executor="reference")
    seconds, error = seconds_too_late(session, feed, 0.05)
    assert seconds < 2
    assert "WHILE" in error.place
    session, feed = prepared("lstm", executor="reference")
    seconds, error = seconds_too_late(session, feed, 0.05)
    assert seconds < 2


@pytest.mark.parametrize("executor", EXECUTORS)
def test_sessions_are_as_before(executor: str) -> None:
    """A variable is written before the step in which the run ends; neither timeouts nor other errors leave a trace."""
    content, feed = long_models.writes_then_works()
    small, few = long_models.writes_then_works(8)
    expected = bittrue.load(small).prepare(executor="reference")
    wanted = [expected.run(*few) for _ in range(3)]
    for calls in ("run", "trace"):
        session = bittrue.load(small).prepare(executor=executor)
        fast = session.run(*few)
        for name, value in fast.items():
            same(name, value, wanted[0][name])

        class Enough(Exception):
            pass

        def stop(position: int) -> None:
            if position == 1:
                raise Enough

        with pytest.raises(Enough):
            getattr(session, calls)(*few, progress=stop)
        again = session.run(*few)
        for name, value in again.items():
            same(name, value, wanted[1][name])
    if executor == "native":
        session = bittrue.load(content).prepare(executor="native")
        for _ in range(2):
            assert seconds_too_late(session, feed, 0.05)[1].code == "BT-TIMEOUT"
        first = next(iter(session.run(*feed).values()))
        assert first.tolist() == next(iter(wanted[0].values())).tolist()


@needs_native
def test_interrupts_from_another_thread() -> None:
    session, feed = prepared("convolution", executor="native", threads=2)
    timer = threading.Timer(0.15, session.interrupt)
    timer.start()
    start = time.monotonic()
    with pytest.raises(StoppedError) as caught:
        session.run(*feed)
    assert caught.value.code == "BT-INTERRUPTED"
    assert time.monotonic() - start < 2
    # Those that begin later are not touched.
    tiny = bittrue.load(long_models.convolution(8, 4)[0]).prepare(executor="native")
    tiny.interrupt()
    tiny.run(*long_models.convolution(8, 4)[1])


@needs_native
def test_waiting_for_another_run_ends() -> None:
    session, feed = prepared("convolution", executor="native")
    ends: list[str] = []

    def run() -> None:
        with pytest.raises(StoppedError) as caught:
            session.run(*feed)
        ends.append(caught.value.code)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.1)
    late = seconds_too_late(session, feed, 0.1)[0]
    assert late < 1
    session.interrupt()
    thread.join()
    assert ends == ["BT-INTERRUPTED"]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_timeouts_that_do_not_come(executor: str) -> None:
    content, feed = long_models.convolution(16, 4)
    session = bittrue.load(content).prepare(executor=executor)
    (expected,) = session.run(*feed).values()
    for timeout in (60, 1e300, math.inf, np.float32(30)):
        (value,) = session.run(*feed, timeout=timeout).values()
        same("result", value, expected)
    for wrong in (0, -1, math.nan, "1", True, 1j):
        with pytest.raises(bittrue.InputError) as caught:
            session.run(*feed, timeout=wrong)  # type: ignore[arg-type]
        assert caught.value.code == "BT-TIMEOUT-VALUE"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_timeouts_of_many_samples(executor: str) -> None:
    content, feed = long_models.convolution(16, 4)
    session = bittrue.load(content).prepare(executor=executor)
    (expected,) = session.run(*feed).values()
    (value,) = session.run_batch(np.concatenate([*feed] * 3), timeout=60).values()
    same("result", value, np.concatenate([expected] * 3))
    many = np.broadcast_to(feed[0], (20_000, *feed[0].shape[1:]))
    start = time.monotonic()
    with pytest.raises(
        StoppedError, match=r"the timeout of 0\.05 seconds has passed; .* of 20000 samples were"
    ) as caught:
        session.run_batch(many, timeout=0.05)
    assert caught.value.code == "BT-TIMEOUT"
    assert time.monotonic() - start < 5
    with pytest.raises(bittrue.InputError):
        session.run_batch(many, timeout=-1)


def test_inputs_of_that_name() -> None:
    content = single("NEG", None, [T("f32", (2,))], [T("f32", (2,))])
    model = bittrue.load(content)
    name = model.graph.tensors[model.graph.inputs[0]].name
    renamed = content.replace(name.encode(), b"timeout"[: len(name)].ljust(len(name), b"t"))
    session = bittrue.load(renamed).prepare()
    (value,) = session.run({session.inputs[0].name: np.float32([1, 2])}, timeout=10).values()
    assert value.tolist() == [-1, -2]


@needs_native
def test_sessions_used_inside_of_themselves() -> None:
    content, feed = long_models.writes_then_works(8)
    session = bittrue.load(content).prepare(executor="native")
    uses = (lambda: session.run(*feed), session.reset, lambda: session.trace(*feed), lambda: session.profile(*feed))
    for use in uses:
        with pytest.raises(bittrue.InputError) as caught:
            session.run(*feed, progress=lambda _, use=use: use())  # type: ignore[misc]
        assert caught.value.code == "BT-REENTERED"


@needs_native
@pytest.mark.parametrize("threads", [1, 3])
def test_random_timeouts(threads: int, request: pytest.FixtureRequest) -> None:
    """Each run gives the right bytes or ends, and the next one is right again."""
    content, feed = long_models.convolution(40, 16)
    session = bittrue.load(content).prepare(executor="native", threads=threads)
    (expected,) = session.run(*feed).values()
    start = time.perf_counter()
    session.run(*feed)
    whole = time.perf_counter() - start
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(1000 if request.config.getoption("--deep") else 150):
        try:
            (value,) = session.run(*feed, timeout=float(rng.random() * 1.5 * whole + 1e-6)).values()
            same("result", value, expected)
        except StoppedError:
            ended += 1
    assert ended > 0
    (value,) = session.run(*feed).values()
    same("result", value, expected)


CTRL_C = """
import os, signal, sys, threading, time
sys.path[:0] = {path!r}
import numpy as np
import bittrue
from support import long_models
content, feed = long_models.LONG[{name!r}]()
session = bittrue.load(content).prepare(iteration_limit=10**9, executor={executor!r}, threads={threads})
# Whoever runs the tests in the background has Ctrl-C ignored, and what is started from there inherits it.
signal.signal(signal.SIGINT, signal.default_int_handler)
began = []
def press():
    time.sleep(0.15)
    began.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
for again in range(2):
    threading.Thread(target=press).start()
    try:
        session.run(*feed)
    except KeyboardInterrupt:
        print("late", time.monotonic() - began[-1])
"""


@pytest.mark.parametrize(("name", "executor", "threads"), [("convolution", "native", 2), ("while", "native", 1)])
def test_ctrl_c(name: str, executor: str, threads: int) -> None:
    if executor not in EXECUTORS:
        pytest.skip("bittrue runs from its sources, without the C++ core")
    code = CTRL_C.format(path=PATH, name=name, executor=executor, threads=threads)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    late = [float(line.split()[1]) for line in run.stdout.splitlines()]
    assert len(late) == 2, run.stdout + run.stderr
    assert min(late) < 1, late
    assert max(late) < 2, late


def test_ctrl_c_leaves_with_keyboard_interrupt() -> None:
    """A program that does not catch it ends, by the signal."""
    code = CTRL_C.format(path=PATH, name="while", executor="auto", threads=1).replace("except Key", "except Name")
    code = code.replace("NameboardInterrupt", "NameError")
    start = time.monotonic()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == -signal.SIGINT, (run.returncode, run.stderr)
    assert "KeyboardInterrupt" in run.stderr
    assert time.monotonic() - start < 30


FORK = """
import os, sys, threading, time, signal
sys.path[:0] = {path!r}
import numpy as np
import bittrue
from support import long_models
content, feed = long_models.{model}
session = bittrue.load(content).prepare(executor={executor!r}, threads={threads}, iteration_limit=10**9)
feed = {feed}
fresh = bittrue.load(content).prepare(executor={executor!r}).run(*feed)
def same(values):
    return all(value.tobytes() == fresh[name].tobytes() for name, value in values.items())
done = False
def work():
    while not done:
        session.run(*feed)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
good = 0
def fork():
    global good
    for _ in range({forks}):
        time.sleep(0.003)
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            ok = same(session.run(*feed))
            answers = []
            more = [threading.Thread(target=lambda: answers.append(same(session.run(*feed)))) for _ in range(2)]
            for thread in more: thread.start()
            for thread in more: thread.join()
            os._exit(0 if ok and answers == [True, True] else 7)
        good += os.waitpid(child, 0)[1] == 0
if {in_thread}:
    forking = threading.Thread(target=fork); forking.start(); forking.join()
else:
    fork()
done = True
for thread in threads: thread.join()
assert same(session.run(*feed))
print(good)
"""


@not_emulated
@pytest.mark.in_turns(3)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("threads", "in_thread"), [(1, False), (4, True)])
def test_forks_while_threads_run(executor: str, threads: int, in_thread: bool) -> None:
    """All children give the right bytes, whatever the parent's threads were doing."""
    if executor == "reference" and threads > 1:
        pytest.skip("the reference has no threads")
    for model, feed in (("convolution(24, 8)", "feed"), ("counted(40)", "feed")):
        code = FORK.format(
            path=PATH, model=model, feed=feed, executor=executor, threads=threads, forks=20, in_thread=in_thread
        )
        run = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120, check=False
        )
        assert run.stdout.strip() == "20", (model, run.stdout, run.stderr)


PROCESSES = """
import sys
sys.path[:0] = {path!r}
import multiprocessing, threading
import numpy as np
import bittrue
from support import long_models
content, feed = long_models.convolution(24, 8)
session = bittrue.load(content).prepare(threads=3)
expected = [value.tobytes() for value in session.run(*feed).values()]
def answer(_):
    own = session if {start!r} == "fork" else bittrue.load(content).prepare(threads=3)
    return [value.tobytes() for value in own.run(*feed).values()]
if __name__ == "__main__":
    with multiprocessing.get_context({start!r}).Pool(2) as pool:
        assert all(found == expected for found in pool.map(answer, range(6)))
    print("right")
"""


@pytest.mark.parametrize("start", ["fork", "forkserver"])
def test_multiprocessing(start: str, tmp_path: Path) -> None:
    if start not in __import__("multiprocessing").get_all_start_methods():
        pytest.skip("the system has no such processes")
    script = tmp_path / "processes.py"
    script.write_text(PROCESSES.format(path=PATH, start=start))
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert run.stdout == "right\n", run.stderr
