"""The same evaluation on a Ray cluster: bits, rows and figures of one machine, whatever happens to its nodes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.evaluation import cluster as ours
from bittrue.evaluation.sources import located
from support.shared import REPOSITORY

TILES = 20


def plain(found: dict[str, Any]) -> Any:
    """What must not depend on the engine."""
    return {name: value for name, value in found.items() if name != "seconds"}


def test_local_needs_no_ray(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    arguments = digits / "model.tflite", digits / "samples.npz"
    assert bittrue.evaluate(*arguments)["samples"] == 100
    with pytest.raises(bittrue.UnsupportedError, match=r'Ray is not installed \(pip install "bittrue\[ray\]"\)'):
        bittrue.evaluate(*arguments, engine="ray")


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"engine": "rey"}, "BT-ENGINE"),
        ({"address": "auto"}, "BT-RAY-ADDRESS"),
        ({"engine": "ray", "reset": False}, "BT-EVALUATE-STATE"),
    ],
)
def test_arguments_that_do_not_fit(digits: Path, more: dict[str, Any], code: str) -> None:
    with pytest.raises(bittrue.InputError) as caught:
        bittrue.evaluate(digits / "model.tflite", digits / "samples.npz", **more)
    assert caught.value.code == code


def test_located(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a:b").touch()
    for text, expected in [
        ("x.npz", f"{tmp_path}/x.npz"),
        ("csv:x/y.csv", f"csv:{tmp_path}/x/y.csv"),
        ("a:b", f"{tmp_path}/a:b"),
        ("/x", "/x"),
        ("s3://bucket/x.npz", "s3://bucket/x.npz"),
        ("parquet:s3://bucket/x", "parquet:s3://bucket/x"),
    ]:
        assert located(text) == expected


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two nodes of one processor each; what begins with a folder called `hidden` is not there on the second one."""
    folder = tmp_path_factory.mktemp("second")
    (folder / "sitecustomize.py").write_text(
        textwrap.dedent("""
            import sys
            def hook(event, arguments):
                if event == "open" and "/hidden" in str(arguments[0]):
                    raise FileNotFoundError(2, "No such file or directory", str(arguments[0]))
            sys.addaudithook(hook)
        """)
    )
    source = str(REPOSITORY / "src")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", source)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Whether or not this user has a token.
        patch.setenv("RAY_AUTH_MODE", "disabled")
        pytest.importorskip("ray.data")
        from ray.cluster_utils import Cluster

        found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80 << 20})

        def add(**variables: str) -> Any:
            variables = {"PYTHONPATH": f"{folder}:{source}", **variables}
            return found.add_node(num_cpus=1, object_store_memory=80 << 20, env_vars=variables)

        found.add = add
        found.second = add()
        try:
            yield found
        finally:
            sys.modules["ray"].shutdown()
            found.shutdown()


@pytest.fixture(scope="module")
def many(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits again and again."""
    path = tmp_path_factory.mktemp("many") / "samples.npz"
    stored = np.load(digits / "samples.npz")
    np.savez(path, images=np.tile(stored["images"], (TILES, 1, 1, 1)), labels=np.tile(stored["labels"], TILES))
    return path


@pytest.fixture
def run(digits: Path, many: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    # Chunks of few samples, and an executor that takes its time: nodes die in the middle of them.
    monkeypatch.setattr(ours, "_CHUNK_SAMPLES", 16)

    def run(**more: Any) -> dict[str, Any]:
        more = {"numerics": ["litert", "xnnpack"], **more}
        return bittrue.evaluate(digits / "model.tflite", more.pop("data", many), executor="reference", **more)

    return run


@pytest.mark.deep
def test_everything_is_that_of_one_machine(nodes: Any, run: Any, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    whole = run(output=tmp_path / "local", limit=900, shard=(2, 3))
    more = {"engine": "ray", "address": nodes.address, "limit": 900, "shard": (2, 3)}
    found = run(output=tmp_path / "ray", **more)
    assert plain(found) == plain(whole)
    tables = [parquet.read_table(tmp_path / name / "rows").to_pylist() for name in ("local", "ray")]
    assert tables[0] == tables[1]
    # Ended in the middle by either engine, it goes on with the other one.
    for name, first, second in (
        ("one", more, {"limit": 900, "shard": (2, 3)}),
        ("two", {"limit": 900, "shard": (2, 3)}, more),
    ):
        with pytest.raises(KeyboardInterrupt):
            run(output=tmp_path / name, progress=interrupting(150), **first)
        assert not (tmp_path / name / "summary.json").exists()
        assert plain(run(output=tmp_path / name, resume=True, **second)) == plain(whole)
    found = run(baseline=tmp_path / "local", threads=1, **more)
    assert [change["outputs"] for change in found["baseline"]["changes"]] == [0, 0]


def interrupting(at: int) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        if done == at:
            raise KeyboardInterrupt

    return progress


def at_half(act: Callable[[], Any]) -> Callable[[int, int], None]:
    """Progress that does something at 50 %."""
    done_before: list[int] = []

    def progress(done: int, total: int) -> None:
        if done == total // 2 and not done_before:
            done_before.append(done)
            act()

    return progress


def actors(node: Any) -> list[int]:
    """Numbers of the processes that a node's actors are."""
    (raylet,) = node.all_processes["raylet"]
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == raylet.process.pid and (entry / "cmdline").read_bytes().startswith(b"ray::MapWorker"):
                found.append(int(entry.name))
    return found


@pytest.mark.deep
def test_killed_worker(nodes: Any, run: Any, tmp_path: Path) -> None:
    def kill() -> None:
        (victim,) = actors(nodes.second)
        os.kill(victim, signal.SIGKILL)

    found = run(engine="ray", address=nodes.address, output=tmp_path / "out", progress=at_half(kill))
    assert plain(found) == plain(run())
    assert len(list((tmp_path / "out" / "rows").iterdir())) > 1


@pytest.mark.deep
def test_removed_node(nodes: Any, run: Any, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    found = run(
        engine="ray",
        address=nodes.address,
        output=tmp_path / "out",
        progress=at_half(lambda: nodes.remove_node(nodes.second, allow_graceful=False)),
    )
    nodes.second = nodes.add()
    assert plain(found) == plain(run())
    rows = parquet.read_table(tmp_path / "out" / "rows", columns=["position"]).to_pydict()["position"]
    assert rows == list(range(found["samples"]))


@pytest.mark.deep
def test_nodes_that_differ(nodes: Any, run: Any, many: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "samples.npz").write_bytes(many.read_bytes())
    with pytest.raises(bittrue.InputError, match=rf"node [0-9.]+: {hidden}/samples.npz: ") as caught:
        run(engine="ray", address=nodes.address, data=hidden / "samples.npz")
    assert caught.value.code == "BT-FILE-ARRAY"
    nodes.remove_node(nodes.second)
    nodes.second = nodes.add(PYTHONPATH="")
    with pytest.raises(bittrue.InputError, match=r"node [0-9.]+: ModuleNotFoundError") as caught:
        run(engine="ray", address=nodes.address)
    assert caught.value.code == "BT-RAY-NODE"
    nodes.remove_node(nodes.second)
    nodes.second = nodes.add()


@pytest.mark.deep
def test_a_sample_that_one_node_lacks(nodes: Any, digits: Path, tmp_path: Path, run: Any) -> None:
    (tmp_path / "hidden").mkdir()
    x = np.load(digits / "samples.npz")["images"][0].tobytes()
    for name in ("a", "hidden/b"):
        (tmp_path / name).write_bytes(x)
    (tmp_path / "y_labels.csv").write_text("a,10,3\n" * 400 + "hidden/b,10,3\n" + "gone,10,3\n" + "a,10,3\n" * 400)
    local = run(data=tmp_path)
    assert local["errors"] == {"BT-FILE-READ": 1}

    def until_that_node_gets_it() -> None:
        for _ in range(9):
            assert plain(run(data=tmp_path, engine="ray", address=nodes.address)) == plain(local)

    with pytest.raises(bittrue.InputError, match=r"node [0-9.]+: a sample that is here .*hidden/b") as caught:
        until_that_node_gets_it()
    assert caught.value.code == "BT-RAY-FILES"


@pytest.mark.deep
def test_no_room(nodes: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    with pytest.raises(
        bittrue.ResourceError, match=r"each asks for 2 CPU, the cluster has nodes with 1, 1 CPU"
    ) as caught:
        run(engine="ray", address=nodes.address, threads=2)
    assert caught.value.code == "BT-RAY-RESOURCES"
    monkeypatch.setattr(ours, "PATIENCE", 5.0)
    ray.init(nodes.address)
    try:

        @ray.remote(num_cpus=1)
        class Other:
            def here(self) -> None:
                pass

        others = [Other.remote() for _ in range(2)]
        ray.get([other.here.remote() for other in others])
        with pytest.raises(bittrue.ResourceError, match=r"no actor has been running .* of which 0 are free") as caught:
            run(engine="ray")
        assert caught.value.code == "BT-RAY-RESOURCES"
        assert ray.is_initialized()
        ray.kill(others[0])
        assert plain(run(engine="ray", limit=100)) == plain(run(limit=100))
        with pytest.raises(bittrue.InputError, match="is connected to"):
            run(engine="ray", address="127.0.0.1:1")
    finally:
        ray.shutdown()


@pytest.mark.deep
@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:10001", "nowhere"])
def test_no_cluster(run: Any, address: str) -> None:
    pytest.importorskip("ray.data")
    with pytest.raises(bittrue.InputError) as caught:
        run(engine="ray", address=address)
    assert caught.value.code == "BT-RAY-ADDRESS"


# Parts of a few samples, so that the first is there long before the last.
SMALL_PARTS = """
import sys
from bittrue.cli import main
from bittrue.evaluation import evaluate
evaluate.PART_ROWS = 8
main(sys.argv[1:])
"""


@pytest.mark.deep
@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize("which", ["gcs_server", "raylet"])
def test_head_that_dies(which: str, digits: Path, many: Path, tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    other = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80 << 20})
    words = ["evaluate", str(digits / "model.tflite"), "--data", str(many), "--executor", "reference"]
    words = [sys.executable, "-c", SMALL_PARTS, *words, "-o", str(tmp_path / "out"), "--engine", "ray"]
    words += ["--address", other.address]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not list(tmp_path.glob("out/rows/part-*")):
            time.sleep(0.05)
        (head,) = other.head_node.all_processes[which]
        head.process.kill()
        out, err = process.communicate(timeout=60)
    other.shutdown()
    assert (process.returncode, out) == (3, "")
    assert err.startswith("bittrue: error: [BT-RAY-LOST]")
    assert err.endswith("(finished parts are kept: the same command with --resume goes on from there)\n")


@pytest.mark.deep
def test_command(nodes: Any, digits: Path, many: Path, tmp_path: Path) -> None:
    words = ["evaluate", str(digits / "model.tflite"), "--data", str(many), "--executor", "reference", "--json"]
    words = [sys.executable, "-m", "bittrue", *words, "-o", str(tmp_path / "out"), "--engine", "ray"]
    environment = {**os.environ, "RAY_ADDRESS": nodes.address}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        while process.poll() is None and not list(tmp_path.glob("out/rows/part-*")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err == (
        f"bittrue: interrupted; finished parts are kept in {tmp_path}/out: "
        "the same command with --resume goes on from there\n"
    )
    told = subprocess.run([*words, "--resume"], capture_output=True, text=True, check=True, env=environment)
    assert told.stderr == ""
    assert json.loads(told.stdout)["digest"] == bittrue.evaluate(digits / "model.tflite", many)["digest"]
