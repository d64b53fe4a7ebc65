"""`bittrue replay`: recorded vectors of the shared form, and ONNX backend test data."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue.cli import main
from bittrue.cli.replay import command
from bittrue.conformance.recorded import replay
from bittrue.conformance.recorded.onnx_case import raw_bytes
from bittrue.conformance.recorded.vectors import read_vectors
from bittrue.graph import DATA_TYPES, data_type
from support.shared import SHARED

GOLDEN = SHARED / "golden"
needs_golden = pytest.mark.skipif(
    not (GOLDEN / "onnxruntime").is_dir(), reason=f"the recorded vectors are not at {GOLDEN} (not in this repository)"
)

MATMUL = {
    "a": np.uint8([[200, 3], [7, 90]]),
    "a_scale": np.float32(0.5),
    "a_zero_point": np.uint8(3),
    "b": np.uint8([[1, 2, 200], [4, 5, 250]]),
    "b_scale": np.float32([0.25, 0.5, 1.0]),
    "b_zero_point": np.uint8([0, 1, 2]),
    "y_scale": np.float32(40),
    "y_zero_point": np.uint8(7),
}
CONSTANT = [name for name in MATMUL if name != "a"]


def product() -> np.ndarray:
    """QLinearMatMul of MATMUL, by its formula."""
    sums = (MATMUL["a"].astype(np.int64) - 3) @ (MATMUL["b"].astype(np.int64) - np.int64([0, 1, 2]))
    factor = np.float32(MATMUL["a_scale"] * MATMUL["b_scale"]) / MATMUL["y_scale"]
    return np.clip(np.rint(sums.astype(np.float32) * factor) + 7, 0, 255).astype(np.uint8)


def write(folder: Path, changes: Callable[[dict[str, Any]], None] = lambda manifest: None, **arrays: Any) -> Path:
    """A folder with one case of QLinearMatMul; `arrays` replace some of its arrays, by operand."""
    folder.mkdir(exist_ok=True)
    given = {**MATMUL, **arrays}
    y = arrays.get("y", product())
    stored = {f"c0/input/{name}": np.asarray(given[name]) for name in MATMUL}
    case = {
        "id": "QLinearMatMul/00",
        "file": "QLinearMatMul.npz",
        "operator": "QLinearMatMul",
        "domain": "",
        "opset": 21,
        "attributes": {},
        "inputs": [
            {
                "name": name,
                "key": f"c0/input/{name}",
                "dtype": np.asarray(array).dtype.name,
                "shape": list(np.shape(array)),
                "initializer": name in CONSTANT,
            }
            for name, array in MATMUL.items()
        ],
        "outputs": [{"name": "y", "key": "c0/output/y", "dtype": "uint8", "shape": list(y.shape)}],
    }
    manifest = {"format": "bittrue-vectors-1", "framework": "onnxruntime", "version": "test", "cases": [case]}
    changes(manifest)
    np.savez(folder / "QLinearMatMul.npz", **stored, **{"c0/output/y": y})
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def call(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments])


def test_equal(tmp_path: Path) -> None:
    done = call(write(tmp_path / "v"))
    assert done.exit_code == 0, done.output
    assert "1 of 1 cases equal, 6 values compared" in done.output
    plain = json.loads(call(tmp_path / "v", "--json").output)
    assert (plain["cases"], plain["equal"], plain["unequal"], plain["numerics"]) == (1, 1, [], ["onnxruntime"])
    assert json.loads(call(tmp_path / "v", "--json", "--numerics", "onnx").output)["numerics"] == ["onnx"]


@pytest.mark.parametrize("notes", [{"sums": "depends on the CPU"}, "this depends on the CPU; see there"])
def test_what_depends_on_something_else_is_listed_apart(tmp_path: Path, notes: Any) -> None:
    folder = write(tmp_path / "v", lambda manifest: manifest["cases"][0].update(notes=notes))
    assert "1 of 1 equal where the result depends on the CPU" in call(folder).output
    plain = json.loads(call(folder, "--json").output)
    assert plain["depends_on"] == {"the CPU": {"cases": 1, "equal": 1}}


@pytest.mark.parametrize("executor", ["reference", "native"])
def test_a_changed_byte_is_found(tmp_path: Path, executor: str) -> None:
    y = product()
    y[1, 2] ^= 1
    write(tmp_path / "v", y=y)
    done = call(tmp_path / "v", "--executor", executor)
    assert done.exit_code == 1
    assert "0 of 1 cases equal" in done.output
    plain = json.loads(call(tmp_path / "v", "--json").output)
    first = plain["unequal"][0]["first"]
    assert first == {"output": "y", "index": [1, 2], "expected": str(y[1, 2]), "found": str(product()[1, 2])}
    assert plain["operators"][0]["differing"] == 1


def test_a_byte_changed_in_the_file_is_found(tmp_path: Path) -> None:
    write(tmp_path / "v")
    path = tmp_path / "v" / "QLinearMatMul.npz"
    content = path.read_bytes()
    (place,) = (i for i in range(len(content)) if content.startswith(product().tobytes(), i))
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    # The archive's own checksum sees it.
    done = call(tmp_path / "v")
    assert done.exit_code == 1
    assert json.loads(call(tmp_path / "v", "--json").output)["operators"][0]["refused"] == 1


def test_another_type_or_shape_is_a_difference(tmp_path: Path) -> None:
    def other_shape(manifest: dict[str, Any]) -> None:
        manifest["cases"][0]["outputs"][0]["shape"] = [1, 6]

    write(tmp_path / "v", other_shape, y=product().reshape(1, 6))
    first = replay(tmp_path / "v").outcomes[0].first
    assert first is not None
    assert (first.index, first.expected, first.found) == (None, "uint8[1, 6]", "uint8[2, 3]")


def test_nothing_but_bytes_counts() -> None:
    from bittrue.conformance.recorded.replay import compare
    from bittrue.conformance.recorded.vectors import Recorded

    zeros = Recorded("y", data_type("f32"), np.float32([0.0, np.nan]))
    count, first = compare(zeros, np.float32([-0.0, np.nan]))
    assert count == 1
    assert first is not None
    assert first.index == (0,)
    assert first.found == "-0.0 (0x80000000)"
    assert compare(zeros, np.float32([0.0, np.nan])) == (0, None)


def test_codes_of_nan() -> None:
    """Narrow floats have several codes for it; recorders convert. Wider ones are compared by their bytes."""
    from bittrue.conformance.recorded.replay import compare
    from bittrue.conformance.recorded.vectors import Recorded

    kind = data_type("f8e5m2")
    recorded = Recorded("y", kind, np.uint8([0x7E, 0x7E, 0x3C]).view(kind.numpy))
    assert compare(recorded, np.uint8([0x7F, 0xFD, 0x3C]).view(kind.numpy)) == (0, None)
    assert compare(recorded, np.uint8([0x7C, 0x7E, 0x3C]).view(kind.numpy))[0] == 1
    wide = Recorded("y", data_type("f32"), np.uint32([0x7FC00000]).view(np.float32))
    assert compare(wide, np.uint32([0xFFC00000]).view(np.float32))[0] == 1


def test_operators_are_chosen(tmp_path: Path) -> None:
    def two(manifest: dict[str, Any]) -> None:
        other = {**manifest["cases"][0], "id": "Other/00", "operator": "NoSuchOperator"}
        manifest["cases"].append(other)

    write(tmp_path / "v", two)
    done = call(tmp_path / "v")
    assert done.exit_code == 1
    assert "BT-OPERATOR" in done.output.replace("\n", "")
    plain = json.loads(call(tmp_path / "v", "--json").output)
    assert [o["refused"] for o in plain["operators"]] == [0, 1]
    assert call(tmp_path / "v", "--operator", "QLinearMatMul").exit_code == 0
    assert call(tmp_path / "v", "--operator", "NoSuchOperator").exit_code == 1
    with pytest.raises(bittrue.InputError, match="BT-VECTORS-OPERATOR"):
        replay(tmp_path / "v", operators=["Conv"])


def _drop(*path: Any) -> Callable[[dict[str, Any]], None]:
    def change(manifest: Any) -> None:
        for key in path[:-1]:
            manifest = manifest[key]
        del manifest[path[-1]]

    return change


def _put(value: Any, *path: Any) -> Callable[[dict[str, Any]], None]:
    def change(manifest: Any) -> None:
        for key in path[:-1]:
            manifest = manifest[key]
        manifest[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _put("bittrue-vectors-9", "format"),
        _drop("format"),
        _put({}, "cases"),
        _put(["x"], "cases"),
        _drop("cases", 0, "operator"),
    ],
)
def test_damaged_manifests(tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    write(tmp_path / "v", change)
    with pytest.raises(bittrue.ModelFormatError, match="BT-VECTORS-FORMAT"):
        replay(tmp_path / "v")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_put("../secret.npz", "cases", 0, "file"), "no file of the folder"),
        (_put("/etc/passwd", "cases", 0, "file"), "no file of the folder"),
        (_put(7, "cases", 0, "file"), "must be texts"),
        (_put("absent.npz", "cases", 0, "file"), "is no file"),
        (_put("c0/none", "cases", 0, "inputs", 0, "key"), "has no array"),
        (_put("int3", "cases", 0, "inputs", 0, "dtype"), "not known"),
        (_put(["x"], "cases", 0, "inputs", 0, "dtype"), "not known"),
        (_put([4, 1], "cases", 0, "inputs", 0, "shape"), "the manifest says"),
        (_put([-4], "cases", 0, "inputs", 0, "shape"), "no shape"),
        (_put("int4", "cases", 0, "inputs", 0, "dtype"), "are no int4"),
        (_put("float16", "cases", 0, "inputs", 0, "dtype"), "does not hold float16"),
        (_put("float32", "cases", 0, "inputs", 0, "dtype"), "does not hold float32"),
        (_put(None, "cases", 0, "inputs"), "no list"),
        (_put([3], "cases", 0, "outputs"), "no object"),
        (_put([], "cases", 0, "attributes"), ""),
        (_put(5, "cases", 0, "domain"), "domain"),
        (_put("13", "cases", 0, "opset"), "opset"),
        (_put(99, "cases", 0, "opset"), "BT-ONNX-OPSET"),
        (_put({"x": {"y": 1}}, "cases", 0, "attributes"), "BT-VECTORS-ATTRIBUTE"),
        (_put({"axis": 1}, "cases", 0, "attributes"), "BT-ONNX-ATTRIBUTE"),
        (_put([None], "cases", 0, "inputs"), ""),
        (_put("uint16", "cases", 0, "outputs", 0, "dtype"), "BT-ONNX-TYPE"),
    ],
)
def test_damaged_cases_are_refused(tmp_path: Path, change: Callable[[dict[str, Any]], None], words: str) -> None:
    write(tmp_path / "v", change)
    (outcome,) = replay(tmp_path / "v").outcomes
    if not words and outcome.equal:
        return
    assert outcome.refusal.startswith("[BT-"), outcome
    assert words in outcome.refusal, outcome.refusal
    assert call(tmp_path / "v").exit_code == 1


def test_fields_may_be_absent(tmp_path: Path) -> None:
    def sparse(manifest: dict[str, Any]) -> None:
        case = manifest["cases"][0]
        for key in ("id", "domain", "opset", "attributes"):
            del case[key]
        for entry in case["inputs"]:
            del entry["shape"], entry["dtype"], entry["initializer"]
        del manifest["version"]

    assert replay(write(tmp_path / "v", sparse)).passed


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "opened"),)

    write(tmp_path / "v", y=np.array([[Trap()] * 3] * 2, object))
    (outcome,) = replay(tmp_path / "v").outcomes
    assert "cannot read array" in outcome.refusal
    assert not (tmp_path / "opened").exists()


def test_broken_archives(tmp_path: Path) -> None:
    write(tmp_path / "v")
    path = tmp_path / "v" / "QLinearMatMul.npz"
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for turn in range(300):
        damaged = bytearray(content)
        for _ in range(int(rng.integers(1, 4))):
            damaged[rng.integers(len(damaged))] = rng.integers(256)
        path.write_bytes(bytes(damaged[: rng.integers(len(damaged))] if turn % 5 == 0 else damaged))
        os.utime(path, ns=(turn, turn))
        (outcome,) = replay(tmp_path / "v", executor="reference").outcomes
        assert outcome.equal or outcome.refusal.startswith("[BT-"), (turn, outcome)
        refused += not outcome.equal
    assert refused > 100
    # A header that promises more than there is.
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(huge, {"descr": "|u1", "fortran_order": False, "shape": (1 << 50,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("c0/input/a.npy", huge.getvalue())
    assert replay(tmp_path / "v").outcomes[0].refusal.startswith("[BT-VECTORS-FORMAT]")


def test_folders_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(bittrue.InputError, match="BT-VECTORS-PATH"):
            replay(folder)
    write(tmp_path / "v", _put("fortran", "framework"))
    with pytest.raises(bittrue.InputError, match="BT-VECTORS-FRAMEWORK"):
        replay(tmp_path / "v")
    with pytest.raises(SystemExit) as caught:
        main(["replay", str(tmp_path / "v")])
    assert caught.value.code == 2
    assert "BT-VECTORS-FRAMEWORK" in capsys.readouterr().err
    (tmp_path / "v" / "manifest.json").write_text("{")
    with pytest.raises(SystemExit) as caught:
        main(["replay", str(tmp_path / "v")])
    assert caught.value.code == 3


@pytest.mark.parametrize("name", [name for name, kind in DATA_TYPES.items() if kind.bits and name != "resource"])
def test_every_type_keeps_its_codes(name: str) -> None:
    """Through an initializer: what `raw_bytes` writes is what the importer reads."""
    from bittrue.importers.onnx_tensors import TYPES, constant

    kind = data_type(name)
    rng = np.random.default_rng(0)
    if kind.is_packed:
        array = rng.integers(kind.minimum, kind.maximum, (3, 5), endpoint=True).astype(kind.numpy)
    else:
        codes = {"f4e2m1": 16, "f6e2m3": 64, "f6e3m2": 64, "bool": 2}.get(name, 256)
        array = rng.integers(0, codes, (3, 5 * kind.numpy.itemsize)).astype(np.uint8).view(kind.numpy)
    number = {short: number for number, short in TYPES.items()}[name]
    proto = TensorProto(name="t", data_type=number, dims=array.shape, raw_data=raw_bytes(array, kind))
    assert constant(proto, "t", None).values().tobytes() == array.tobytes()
    if kind.bits != 8 or kind.numpy.kind != "V":
        theirs = numpy_helper.to_array(proto)
        assert theirs.astype(kind.numpy).tobytes() == array.tobytes()


def node_test(folder: Path, y: np.ndarray, sets: int = 1) -> Path:
    """An ONNX backend test of Transpose."""
    x = np.arange(6, dtype=np.uint8).reshape(2, 3)
    graph = helper.make_graph(
        [helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
    )
    folder.mkdir(parents=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), folder / "model.onnx")
    for number in range(sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir()
        (data / "input_0.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
        (data / "output_0.pb").write_bytes(numpy_helper.from_array(y).SerializeToString())
    return folder


def test_node_tests(tmp_path: Path) -> None:
    y = np.arange(6, dtype=np.uint8).reshape(2, 3).T.copy()
    node_test(tmp_path / "node" / "test_transpose", y, sets=2)
    found = replay(tmp_path / "node")
    assert found.passed
    assert (found.framework, found.numerics, found.outcomes[0].values) == ("onnx", ("onnx",), 12)
    assert found.outcomes[0].operator == "Transpose"
    assert replay(tmp_path / "node" / "test_transpose").passed
    y[2, 1] = 0
    node_test(tmp_path / "node" / "test_wrong", y)
    assert call(tmp_path / "node").exit_code == 1
    assert [o.case for o in replay(tmp_path / "node").outcomes if not o.equal] == ["test_wrong"]


@pytest.mark.parametrize("content", [None, b"", b"\xff\xff\xff", b"\x08\x05\x10\x02", b"\x10\x63"])
def test_damaged_node_tests(tmp_path: Path, content: bytes | None) -> None:
    folder = node_test(tmp_path / "t", np.zeros((3, 2), np.uint8))
    for name in ("test_data_set_0/output_0.pb", "test_data_set_0/input_0.pb", "model.onnx"):
        path = folder / name
        if content is None:
            if name == "model.onnx":
                return
            path.unlink()
        else:
            path.write_bytes(content)
        (outcome,) = replay(folder).outcomes
        assert outcome.refusal.startswith("[BT-"), (name, outcome)


@needs_golden
def test_recorded_by_onnxruntime() -> None:
    found = replay(GOLDEN / "onnxruntime")
    assert found.equal == 399, [o for o in found.outcomes if not o.equal][:5]


@needs_golden
def test_recorded_node_tests() -> None:
    found = replay(GOLDEN / "onnx_node")
    assert len(found.outcomes) == 162
    unequal = [outcome for outcome in found.outcomes if not outcome.equal]
    assert not unequal, unequal[:5]


@needs_golden
def test_every_shared_manifest_is_read() -> None:
    """Those of frameworks without an adapter, too."""
    for folder in sorted(GOLDEN.iterdir()):
        if folder.name == "onnx_node":
            continue
        for case in read_vectors(folder).cases[::20]:
            assert case.inputs()
            assert case.outputs()
