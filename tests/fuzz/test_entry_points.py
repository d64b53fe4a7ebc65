"""Damaged models, traces and results at every entry point: typed errors or results; no warning, hang, huge memory.

`check_model` on mutated models has its tests beside those of the rules.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.compare.matching import read_pairs
from bittrue.runners.inputs import input_sets
from support import results as made_up

sys.path.insert(0, str(Path(__file__).parent))  # spawned workers import it by name, too
import random

import entries
from damage import spoiled, written
from entries import campaign
from oracle import tried
from targets import result
from test_mutated_onnx import several_nodes
from watch import changes

Record = Callable[[str, object], None]


def count(request: pytest.FixtureRequest, usual: int) -> int:
    """--deep: twenty times as many."""
    return usual * (20 if request.config.getoption("--deep") else 1)


def told(name: str, found: dict[str, object], record_property: Record) -> dict[str, int]:
    """What came of it, written down."""
    counts = found["counts"]
    assert isinstance(counts, dict)
    record_property("mutated", f"{name}: {sum(counts.values())} files, {counts}, slowest {found['slowest']:.2f} s")
    return counts


def test_results(tmp_path: Path, request: pytest.FixtureRequest, record_property: Record) -> None:
    compared = [made_up.plain(make()) for make in (made_up.benign, made_up.hostile, made_up.real, made_up.fault)]
    originals = [*map(written, [*compared, made_up.checked(made_up.findings()), made_up.checked([])])]
    found = changes(result.change, result.attempt, originals, range(count(request, 150)), tmp_path)
    counts = told("results", found, record_property)
    assert {"result", "BT-RESULT"} == set(counts)


def test_traces(tmp_path: Path, request: pytest.FixtureRequest, record_property: Record) -> None:
    model, dump = tmp_path / "model.tflite", tmp_path / "dump"
    model.write_bytes(bittrue.demo_model())
    main_quietly("run", str(model), "--trace", str(dump))
    index = json.loads((dump / "trace.json").read_text())
    files = {path.name: path.read_bytes() for path in dump.iterdir() if path.suffix == ".npy"}
    # Raw files and archives as well.
    for i, entry in enumerate(index["tensors"]):
        if i % 3:
            array = np.load(io.BytesIO(files.pop(entry["file"])))
            entry["file"] = f"{i}{('.npy', '.bin', '.npz')[i % 3]}"
            archive = io.BytesIO()
            np.savez_compressed(archive, m=array)
            files[entry["file"]] = array.tobytes() if i % 3 == 1 else archive.getvalue()
            entry |= {"shape": list(array.shape), "member": "m"}
    work = tmp_path / "work"
    work.mkdir()
    found = campaign(entries.traces, files, index, str(model), seeds=range(count(request, 300)), folder=work)
    counts = told("traces", found, record_property)
    assert {"equal", "BT-TRACE-INDEX", "BT-FILE-ARRAY", "BT-FILE-SIZE", "BT-TRACE-PATH"} <= set(counts)


@pytest.mark.in_turns(2)
@pytest.mark.parametrize(
    ("entry", "usual"), [("check", 40), ("compare", 40), ("explain", 80), ("reduce", 24), ("command", 24)]
)
def test_models(
    entry: str, usual: int, tmp_path: Path, request: pytest.FixtureRequest, record_property: Record
) -> None:
    contents = [bittrue.demo_model(), several_nodes()]
    found = campaign(entries.models, contents, entry, seeds=range(count(request, usual)), folder=tmp_path, seconds=60)
    counts = told(entry, found, record_property)
    good = {"result", "equal", "different", "reduced", "exit code 0", "exit code 1"}
    assert sum(n for outcome, n in counts.items() if outcome in good) > usual // 10
    assert len(set(counts) - good) > (0 if entry == "command" else 3)


def test_input_files(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    ports = bittrue.load(bittrue.demo_model()).prepare().inputs
    value = np.zeros(ports[0].shape, np.int8)
    plain, packed = io.BytesIO(), io.BytesIO()
    np.save(plain, value)
    np.savez_compressed(packed, image=value)
    outcomes = set()
    for seed in range(count(request, 800)):
        suffix, content = ((".npy", plain), (".npz", packed))[seed % 2]
        path = tmp_path / f"input{suffix}"
        # The first bytes describe the rest.
        data = content.getvalue()
        path.write_bytes(spoiled(data[:128], random.Random(seed)) + data[128:])

        def call(path: Path = path) -> str:
            return str(len(input_sets(ports, [str(path)])))

        outcomes.add(tried(call).split(" ")[0])
    assert {"1", "BT-FILE-ARRAY"} <= outcomes


def test_archives_that_become_huge(tmp_path: Path) -> None:
    ports = bittrue.load(bittrue.demo_model()).prepare().inputs
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, **{ports[0].name: np.zeros((1 << 28,), np.int8)})
    assert path.stat().st_size < 1 << 20
    with pytest.raises(bittrue.InputError, match="the file has"):
        input_sets(ports, [str(path)])


def test_match_files() -> None:
    text = b"a b\n'one name' other\n# a comment\nx\ty\nlong/name;with:0 z\n"
    for seed in range(500):
        content = spoiled(text, random.Random(seed)).decode("utf-8", "replace")

        def call(content: str = content) -> str:
            return str(len(list(read_pairs(content, "match.txt"))))

        assert tried(call)


def main_quietly(*arguments: str) -> None:
    """A command that must work."""
    assert entries.typed(*arguments) == "exit code 0", arguments
