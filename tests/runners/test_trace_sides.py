"""Traces: bittrue's own, those that people write, large ones, and hostile ones."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import bittrue
from bittrue.errors import BittrueError, InputError, ResourceError
from bittrue.runners import arrays
from bittrue.runners.sides import open_side
from bittrue.runtime.trace import write_trace


def index(folder: Path, tensors: Any, **more: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trace.json").write_text(json.dumps({"tensors": tensors, **more}))
    return folder


def only(folder: Path) -> Any:
    (recording,) = open_side(f"trace:{folder}").recorded()
    return recording


def test_own_traces_come_back(tmp_path: Path) -> None:
    path = tmp_path / "digits.tflite"
    path.write_bytes(bittrue.demo_model())
    side = open_side(str(path))
    x = np.random.default_rng(0).integers(-128, 128, side.inputs[0].shape).astype(np.int8)
    session = bittrue.load(path).prepare()
    write_trace(tmp_path / "t", session.plan, session.trace(x))
    trace = open_side(f"trace:{tmp_path / 't'}")
    live, recording = side.record({side.inputs[0].name: x}), only(tmp_path / "t")
    assert trace.numerics == "litert"
    assert "numerics litert" in trace.title
    assert (recording.inputs, recording.outputs, recording.notes) == (live.inputs, live.outputs, ())
    for a, b in zip(live, recording, strict=True):
        assert (a.name, a.dtype, a.shape, str(a.quantization)) == (b.name, b.dtype, b.shape, str(b.quantization))
        assert a.load().tobytes() == b.load().tobytes()
    assert trace.record({side.inputs[0].name: x}).outputs == live.outputs
    with pytest.raises(InputError, match="no run of this trace had these inputs"):
        trace.record({side.inputs[0].name: x ^ 1})


def test_an_index_by_hand(tmp_path: Path) -> None:
    values = np.arange(24, dtype=np.int16).reshape(1, 2, 3, 4)
    blob = b"head" + values.tobytes() + np.float32([1.5]).tobytes()
    (tmp_path / "all.bin").write_bytes(blob)
    np.save(tmp_path / "plain.npy", np.asfortranarray(values))
    np.savez(tmp_path / "some.npz", a=values, b=values.astype(">i4"))
    np.savez_compressed(tmp_path / "packed.npz", c=values[0])
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "half.raw").write_bytes(np.array([1, 2], ml_dtypes.bfloat16).tobytes())
    np.save(tmp_path / "half.npy", np.array([1, 2], ml_dtypes.bfloat16))
    scales = {"scales": [0.5, 0.25], "zero_points": [0, -3], "axis": 1}
    folder = index(
        tmp_path,
        [
            {"name": "x", "file": "all.bin", "start": 4, "dtype": "int16", "shape": [1, 2, 3, 4], **scales},
            {"name": "last", "file": "all.bin", "start": 4, "dtype": "s16", "shape": [1, 2, 3, 4],
             "transpose": [0, 2, 3, 1], "scale": 0.5, "zero_point": 7},
            {"name": "y", "file": "all.bin", "start": 52, "dtype": "float32", "shape": []},
            {"name": "fortran", "file": "plain.npy"},
            {"name": "a", "file": "some.npz"},
            {"name": "big", "file": "some.npz", "member": "b", "dtype": "int32"},
            {"name": "c", "file": "packed.npz", "shape": [2, 3, 4]},
            {"name": "half", "file": "sub/half.raw", "dtype": "bfloat16", "shape": [2]},
            {"name": "half too", "file": "half.npy", "dtype": "bf16"},
        ],
        inputs=["x"], outputs=["y"], title="Chip 7", numerics="single-rounding",
    )  # fmt: skip
    side = open_side(f"trace:{folder}")
    (recording,) = side.recorded()
    assert side.title.startswith("Chip 7")
    assert side.numerics == "single-rounding"
    assert (recording.inputs, recording.outputs, recording.notes) == (("x",), ("y",), ())
    for name in ("x", "fortran", "a"):
        assert np.array_equal(recording[name].load(), values)
        assert (recording[name].dtype, recording[name].shape) == ("s16", values.shape)
    assert np.array_equal(recording["last"].load(), values.transpose(0, 2, 3, 1))
    assert recording["last"].shape == (1, 3, 4, 2)
    assert str(recording["last"].quantization) == "scale 0.5 zero point 7"
    assert recording["x"].quantization.axis == 1
    assert recording["x"].quantization.zero_points.tolist() == [0, -3]
    assert recording["y"].load().shape == ()
    assert recording["y"].load() == 1.5
    assert np.array_equal(recording["big"].load(), values.astype(np.int32))
    assert recording["big"].load().dtype.isnative
    assert np.array_equal(recording["c"].load(), values[0])
    for name in ("half", "half too"):
        assert recording[name].load().astype(np.float32).tolist() == [1, 2]


def test_no_index(tmp_path: Path) -> None:
    for name in ("layer10", "layer2", "layer1"):
        np.save(tmp_path / f"{name}.npy", np.int8([len(name)]))
    np.savez(tmp_path / "rest.npz", **{"layer3/out": np.float32([3])})
    (tmp_path / "notes.txt").write_text("no array")
    recording = only(tmp_path)
    assert [tensor.name for tensor in recording] == ["layer1", "layer2", "layer3/out", "layer10"]
    assert (recording.inputs, recording.outputs) == ((), ())
    assert any("order of their names" in note for note in recording.notes)
    assert [tensor.name for tensor in only(tmp_path / "rest.npz")] == ["layer3/out"]
    # Nobody knows what the inputs were, so they are taken to have been right.
    assert open_side(f"trace:{tmp_path}").record({"x": np.int8([1])}).notes == recording.notes


def test_several_runs(tmp_path: Path) -> None:
    entry = {"file": "v.raw", "dtype": "int8", "shape": [1]}
    for number in range(12):
        folder = index(tmp_path / str(number), [{"name": "x", **entry}], inputs=["x"])
        (folder / "v.raw").write_bytes(bytes([number]))
    side = open_side(f"trace:{tmp_path}")
    assert [int(run["x"].load()[0]) for run in side.recorded()] == list(range(12))
    assert side.record({"x": np.int8([5])})["x"].load().tolist() == [5]
    (tmp_path / "trace.json").write_text(json.dumps({"runs": ["3", "1"], "title": "two of them"}))
    side = open_side(f"trace:{tmp_path}")
    assert [int(run["x"].load()[0]) for run in side.recorded()] == [3, 1]
    assert side.title.startswith("two of them")


GOOD = {"name": "x", "file": "v.raw", "dtype": "int8", "shape": [2, 2]}


@pytest.mark.parametrize(
    ("tensors", "code"),
    [
        ([{**GOOD, "shape": [2, 3]}], "BT-FILE-SIZE"),
        ([{**GOOD, "shape": [1, 3]}], "BT-FILE-SIZE"),
        ([{**GOOD, "shape": [1, 3], "start": 2}], "BT-FILE-SIZE"),
        ([{**GOOD, "dtype": "float32"}], "BT-FILE-SIZE"),
        ([{**GOOD, "shape": [1 << 40, 1 << 40]}], "BT-FILE-SIZE"),
        ([{**GOOD, "shape": [-2, -2]}], "BT-TRACE-INDEX"),
        ([{**GOOD, "shape": [1 << 60]}], "BT-TRACE-INDEX"),
        ([{**GOOD, "shape": "4"}], "BT-TRACE-INDEX"),
        ([{**GOOD, "shape": [2.0, 2]}], "BT-TRACE-INDEX"),
        ([{**GOOD, "shape": [1] * 40}], "BT-TRACE-INDEX"),
        ([{**GOOD, "start": -1}], "BT-TRACE-INDEX"),
        ([{**GOOD, "start": True}], "BT-TRACE-INDEX"),
        ([{**GOOD, "dtype": "string"}], "BT-TRACE-INDEX"),
        ([{**GOOD, "dtype": "object"}], "BT-TRACE-INDEX"),
        ([{**GOOD, "dtype": ["int8"]}], "BT-TRACE-INDEX"),
        ([{"name": "x", "file": "v.raw"}], "BT-TRACE-INDEX"),
        ([{"file": "v.raw"}], "BT-TRACE-INDEX"),
        ([{**GOOD, "name": 7}], "BT-TRACE-INDEX"),
        ([GOOD, GOOD], "BT-TRACE-INDEX"),
        ([[GOOD]], "BT-TRACE-INDEX"),
        ({"x": GOOD}, "BT-TRACE-INDEX"),
        ([], "BT-TRACE-INDEX"),
        (None, "BT-TRACE-INDEX"),
        ([{**GOOD, "transpose": [0, 0]}], "BT-TRACE-INDEX"),
        ([{**GOOD, "transpose": [1, 0.0]}], "BT-TRACE-INDEX"),
        ([{**GOOD, "scale": 0}], "BT-TRACE-INDEX"),
        ([{**GOOD, "scale": float("nan")}], "BT-TRACE-INDEX"),
        ([{**GOOD, "scale": 1e300}], "BT-TRACE-INDEX"),
        ([{**GOOD, "scale": "1"}], "BT-TRACE-INDEX"),
        ([{**GOOD, "scale": 1, "zero_point": 0.5}], "BT-TRACE-INDEX"),
        ([{**GOOD, "scale": 1, "zero_point": 1 << 70}], "BT-TRACE-INDEX"),
        ([{**GOOD, "scales": [1, 2, 3], "axis": 0}], "BT-TRACE-INDEX"),
        ([{**GOOD, "scales": [1, 2], "axis": 5}], "BT-TRACE-INDEX"),
        ([{**GOOD, "file": "../v.raw"}], "BT-TRACE-PATH"),
        ([{**GOOD, "file": "/etc/hostname"}], "BT-TRACE-PATH"),
        ([{**GOOD, "file": "sub/../../v.raw"}], "BT-TRACE-PATH"),
        ([{**GOOD, "file": "."}], "BT-TRACE-PATH"),
        ([{**GOOD, "file": "link.raw"}], "BT-TRACE-PATH"),
        ([{**GOOD, "file": "links/v.raw"}], "BT-TRACE-PATH"),
        ([{**GOOD, "file": "v\0.raw"}], "BT-TRACE-PATH"),
        ([{**GOOD, "file": "nothing.raw"}], "BT-FILE-MISSING"),
        ([{**GOOD, "file": "x" * 5000}], "BT-FILE-MISSING"),
        ([{**GOOD, "file": "sub"}], "BT-FILE-MISSING"),
        ([{**GOOD, "file": "pipe"}], "BT-FILE-MISSING"),
        ([{**GOOD, "file": "pipe.npy"}], "BT-FILE-MISSING"),
        ([{**GOOD, "file": "text.npy"}], "BT-FILE-ARRAY"),
        ([{**GOOD, "file": "pickle.npy"}], "BT-FILE-ARRAY"),
        ([{**GOOD, "file": "record.npy"}], "BT-FILE-ARRAY"),
        ([{**GOOD, "file": "short.npy"}], "BT-FILE-SIZE"),
        ([{**GOOD, "file": "huge.npy"}], "BT-FILE-SIZE"),
        ([{**GOOD, "file": "code.npy"}], "BT-FILE-ARRAY"),
        ([{**GOOD, "file": "good.npy", "dtype": "uint8"}], "BT-TRACE-TYPE"),
        ([{**GOOD, "file": "good.npy", "shape": [4]}], "BT-TRACE-SHAPE"),
        ([{"name": "x", "file": "text.txt.npy"}], "BT-TRACE-TYPE"),
        ([{**GOOD, "file": "text.npz"}], "BT-FILE-ARRAY"),
        ([{**GOOD, "file": "good.npz", "member": "z"}], "BT-TRACE-INDEX"),
        ([{**GOOD, "file": "good.npz", "member": ["x"]}], "BT-TRACE-INDEX"),
        ([{**GOOD, "file": "pickle.npz"}], "BT-FILE-ARRAY"),
        ([{**GOOD, "file": "claims.npz"}], "BT-FILE-SIZE"),
    ],
)
def test_hostile_indices_are_typed_errors(tensors: Any, code: str, tmp_path: Path) -> None:
    folder = index(tmp_path / "t", tensors)
    for place in (tmp_path, folder):
        (place / "v.raw").write_bytes(bytes(4))
    (folder / "sub").mkdir()
    (folder / "link.raw").symlink_to(tmp_path / "v.raw")
    (folder / "links").symlink_to(tmp_path)
    for name in ("pipe", "pipe.npy"):
        os.mkfifo(folder / name)
    for name in ("text.npy", "text.npz"):
        (folder / name).write_text("no array")
    np.save(folder / "good.npy", np.zeros((2, 2), np.int8))
    np.savez(folder / "good.npz", x=np.zeros((2, 2), np.int8))
    np.save(folder / "pickle.npy", np.array([{}], object), allow_pickle=True)
    np.savez(folder / "pickle.npz", x=np.array([{}], object))
    np.save(folder / "record.npy", np.zeros(2, "i1,i2"))
    np.save(folder / "text.txt.npy", np.array(["text"]))
    (folder / "short.npy").write_bytes((folder / "good.npy").read_bytes()[:-1])
    npy_file(folder / "huge.npy", "{'descr': '|i1', 'fortran_order': False, 'shape': (1099511627776, 2), }")
    npy_file(folder / "code.npy", "__import__('os').abort()")
    with zipfile.ZipFile(folder / "claims.npz", "w") as archive:
        npy_file(tmp_path / "x.npy", "{'descr': '|i1', 'fortran_order': False, 'shape': (1000000000000,), }")
        archive.write(tmp_path / "x.npy", "x.npy")
    with pytest.raises(InputError) as caught:
        open_side(f"trace:{folder}")
    assert caught.value.code == code
    assert caught.value.place
    assert str(caught.value).isprintable()


def npy_file(path: Path, header: str) -> None:
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", "null", "7", '"tensors"', "[" * 100_000, '{"tensors": 1e999999}', '{"runs": []}', "\0",
     '{"runs": ["../.."]}', '{"runs": ["missing"]}', '{"runs": 3}', '{"tensors": [], "inputs": [3]}',
     '{"tensors": [{"name": "x", "file": "v.raw", "dtype": "int8", "shape": [4]}], "inputs": ["y"]}'],
)  # fmt: skip
def test_indices_that_are_none(content: str, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "v.raw").write_bytes(bytes(4))
    (tmp_path / "t" / "trace.json").write_text(content)
    with pytest.raises(BittrueError) as caught:
        open_side(f"trace:{tmp_path / 't'}")
    assert str(caught.value).isprintable()


def test_folders_with_nothing_in_them(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    with pytest.raises(InputError, match="bittrue run MODEL --trace DIR"):
        open_side(f"trace:{tmp_path}")
    (tmp_path / "0").mkdir()
    with pytest.raises(BittrueError):
        open_side(f"trace:{tmp_path}")
    with pytest.raises(InputError, match="no such folder"):
        open_side("trace:" + "x" * 5000)


def test_a_file_that_shrinks_is_a_typed_error(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(5000, np.int8))
    np.savez(tmp_path / "b.npz", b=np.zeros(5000, np.int8))
    recording = only(tmp_path)
    for name in ("a.npy", "b.npz"):
        os.truncate(tmp_path / name, 1000)
    for name in "ab":
        with pytest.raises(InputError):
            recording[name].load()


def test_archives_that_become_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "b.npz", b=np.zeros(5000, np.int8))
    monkeypatch.setattr(arrays, "MEMBER_LIMIT", 4999)
    with pytest.raises(ResourceError, match="4,999"):
        only(tmp_path)


_READ = """
import re, sys, tracemalloc
from pathlib import Path
import numpy as np
from bittrue.runners.sides import open_side
status = lambda key: int(re.search(key + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
warm = [np.count_nonzero(np.ones(10 << 20, np.int8)), open_side(sys.argv[1])]
try:
    Path("/proc/self/clear_refs").write_text("5")
except OSError:
    pass
before = status("VmRSS")
tracemalloc.start()
total = sum(int(np.count_nonzero(tensor.load())) for tensor in open_side(sys.argv[1]).recorded()[0])
print(total, status("VmHWM") - before, tracemalloc.get_traced_memory()[1] >> 10)
"""


@pytest.mark.parametrize("form", ["npy", "raw", "npz"])
def test_large_traces_are_never_loaded_whole(
    form: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    count, size = 30, 10 << 20
    values = np.ones(size, np.int8)
    entries = []
    if form == "npz":
        np.savez(tmp_path / "all.npz", **{f"t{i}": values for i in range(count)})
    for i in range(count) if form != "npz" else ():
        if form == "npy":
            np.save(tmp_path / f"t{i}.npy", values)
        else:
            values.tofile(tmp_path / f"t{i}.raw")
            entries.append({"name": f"t{i}", "file": f"t{i}.raw", "dtype": "int8", "shape": [size]})
    if entries:
        index(tmp_path, entries)
    result = subprocess.run(
        [sys.executable, "-c", _READ, f"trace:{tmp_path}"],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    total, resident, traced = map(int, result.stdout.split())
    assert total == count * size
    # In KiB; a tensor takes 10 MiB, all of them 300.
    assert resident < 40 << 10
    assert traced < 25 << 10
    record_property("compared", f"300 MiB of {form}: {resident >> 10} MiB resident, {traced} KiB allocated")
    for path in tmp_path.iterdir():
        path.unlink()


def test_raw_files_without_an_index(tmp_path: Path) -> None:
    (tmp_path / "layer0.bin").write_bytes(bytes(4))
    with pytest.raises(InputError, match=r'raw files need an index beside them: trace\.json with \{"tensors"'):
        open_side(f"trace:{tmp_path}")
