"""`bittrue vectors`, and `bittrue replay` of what it writes: also of folders that were damaged on purpose."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from bittrue.cli import cli, main
from bittrue.conformance.formats.writing import write_vectors
from bittrue.conformance.recorded import replay
from bittrue.conformance.recorded.replay import WRITTEN
from bittrue.conformance.suite import SuiteCase, find_suite
from bittrue.errors import BittrueError
from support import suite_cases
from support.shared import REPOSITORY


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["vectors", *map(str, arguments)])


# -- the command -------------------------------------------------------------------------------------------------------


def test_written_folders_are_replayed(tmp_path: Path) -> None:
    out = tmp_path / "v"
    done = run("RESHAPE", "--aim", "codes,shapes", "--format", "all", "-o", out)
    assert done.exit_code == 0, done.output
    assert f"next: bittrue replay {out}" in done.output
    again = CliRunner().invoke(cli, ["replay", str(out), "--json"])
    assert again.exit_code == 0, again.output
    found = json.loads(again.stdout)
    # Every format that can be replayed holds every case that it can say.
    left_out = json.loads((out / "onnx" / "manifest.json").read_text()).get("left_out", [])
    cases = json.loads((out / "suite.json").read_text())["cases"]
    assert found["equal"] == found["cases"] == 5 * cases - len(left_out)
    assert done.output.startswith("suite litert, expected outputs of litert")


def test_json_of_what_was_written(tmp_path: Path) -> None:
    done = run("SQUEEZE", "--types", "u8", "--numerics", "xnnpack", "--format", "c,bin", "-o", tmp_path / "v", "--json")
    found = json.loads(done.stdout)
    assert (found["numerics"], list(found["formats"])) == ("xnnpack", ["c", "bin"])
    assert found["cases"] == len(list(find_suite("litert").cases(["SQUEEZE"], ["u8"])))
    sizes = [path.stat().st_size for path in (tmp_path / "v").glob("*/*")]
    assert sum(f["bytes"] for f in found["formats"].values()) == sum(sizes)


def test_the_list_counts_what_is_written() -> None:
    found = json.loads(run("list", "RESHAPE", "SQUEEZE", "--types", "all", "--json").stdout)
    rows = {(row["operator"], row["types"]): row for row in found["operators"]}
    assert set(rows) == {(operator, types) for operator in ("RESHAPE", "SQUEEZE") for types in ("s8", "u8", "s16")}
    cases = [case for case in find_suite("litert").cases(["RESHAPE"], ["s8"]) if not case.rejects]
    assert rows["RESHAPE", "s8"]["elements"] == sum(case.inputs["input0"].size for case in cases)
    assert sum(rows["RESHAPE", "s8"]["aims"].values()) == rows["RESHAPE", "s8"]["cases"]
    text = run("list", "RESHAPE").output
    assert "RESHAPE" in text
    assert "next: bittrue vectors" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["NO_SUCH"], "has no operator 'NO_SUCH'"),
        (["conv"], "did you mean 'CONV_2D' or "),
        (["SOFMAX"], "did you mean 'SOFTMAX'"),
        (["--types", "s9"], "has no type 's9'"),
        (["--aim", "luck"], "has no aim 'luck'"),
        (["RESHAPE", "--format", "zip"], "there is no format 'zip'"),
        (["RESHAPE", "--format", ","], "no format"),
        (["QLinearConv", "--suite", "onnx", "--format", "tflite"], "does not hold the models of the suite 'onnx'"),
        (["RESHAPE", "--layout", "hwcn"], "layout is 'hwcn'"),
        (["RESHAPE", "--aim", "ties"], "no case"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["vectors", *arguments, "-o", str(tmp_path / "v")])
    assert caught.value.code == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "v").exists() or not list((tmp_path / "v").rglob("*.npz"))


# -- replay ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pristine") / "v"
    write_vectors(root, find_suite("litert"), [*suite_cases.cases()], WRITTEN)
    return root


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "v"))


@pytest.mark.parametrize("name", ["npz", "desc", "tflite", "bin"])
def test_each_format_is_replayed_alone(folder: Path, name: str) -> None:
    found = replay(folder / name)
    assert (found.framework, found.numerics) == ("bittrue-suite", ("litert",))
    assert {outcome.case for outcome in found.outcomes if outcome.equal} == {c.identity for c in suite_cases.cases()}


def test_big_endian_files_are_replayed(tmp_path: Path) -> None:
    done = run("RESHAPE", "--types", "s16", "--format", "bin", "--endianness", "big", "-o", tmp_path / "v")
    assert done.exit_code == 0
    found = replay(tmp_path / "v")
    assert found.passed
    assert found.outcomes


def test_onnx_folders_are_replayed(tmp_path: Path) -> None:
    cases = [suite_cases.onnx_case(), suite_cases.onnx_case("weights of one channel")]
    write_vectors(tmp_path / "v", find_suite("onnx"), cases, ["onnx"])
    for place in (tmp_path / "v", tmp_path / "v" / "onnx"):
        found = replay(place)
        assert found.passed
        assert (len(found.outcomes), found.numerics) == (2, ("onnxruntime",))
    # Without its manifest it is backend test data like any other.
    (tmp_path / "v" / "onnx" / "manifest.json").unlink()
    assert replay(tmp_path / "v" / "onnx", "onnxruntime").framework == "onnx"


def test_archives_are_replayed_packed_and_unpacked(tmp_path: Path) -> None:
    root = tmp_path / "v"
    write_vectors(root, find_suite("litert"), suite_cases.cases(), ["all"])
    packed = replay(root)
    assert packed.passed
    for path in [*root.glob("desc/*.zip"), *root.glob("onnx/*.zip")]:
        shutil.unpack_archive(path, path.parent)
    assert [outcome.case for outcome in replay(root).outcomes] == [outcome.case for outcome in packed.outcomes]
    for path in (root / "desc").glob("*.zip"):
        path.unlink()
    assert len(replay(root / "desc").outcomes) == len(suite_cases.cases())


def test_damaged_archives_are_cases_that_fail(tmp_path: Path) -> None:
    write_vectors(tmp_path / "v", find_suite("litert"), suite_cases.cases(), ["all"])
    for name in ("desc", "onnx"):
        path = tmp_path / "v" / name / "CONV_2D.zip"
        path.write_bytes(path.read_bytes()[:-30])
    found = [outcome for outcome in replay(tmp_path / "v").outcomes if not outcome.equal]
    assert {outcome.case.split("/")[0] for outcome in found} == {"desc", "onnx"}
    assert all(outcome.refusal.startswith("[BT-VECTORS-FORMAT]") for outcome in found)


def test_links_out_of_the_folder_are_not_followed(folder: Path, tmp_path: Path) -> None:
    place = folder / "desc" / "CONV_2D" / "s8" / "ties" / "000" / "input-0.npy"
    place.rename(tmp_path / "elsewhere.npy")
    place.symlink_to(tmp_path / "elsewhere.npy")
    (outcome,) = [outcome for outcome in replay(folder / "desc").outcomes if not outcome.equal]
    assert "is a link out of the folder" in outcome.refusal


def test_operators_are_called_as_one_likes(tmp_path: Path) -> None:
    for word in ("reshape", "Re-Shape", "RESHAPE"):
        rows = json.loads(run("list", word, "--json").stdout)["operators"]
        assert {row["operator"] for row in rows} == {"RESHAPE"}
    assert find_suite("onnx").named(["qdqconv", "QLINEARCONV"]) == ("QDQ Conv", "QLinearConv")


def test_another_numerics_is_another_question(folder: Path) -> None:
    found = replay(folder / "npz", "litert-optimized")
    unequal = {outcome.case for outcome in found.outcomes if not outcome.equal}
    # Ties are rounded in another direction there.
    assert unequal == {"CONV_2D/s8/ties/000", "CONV_2D/s8/ties/001"}


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("desc", "desc/CONV_2D/s8/ties/000/output-0.npy"),
        ("tflite", "tflite/CONV_2D/s8-ties-000.npz"),
        ("npz", "npz/CONV_2D.npz"),
        ("bin", "bin/CONV_2D.bin"),
    ],
)
def test_one_changed_byte_is_found(folder: Path, name: str, file: str) -> None:
    path = folder / file
    if path.suffix == ".npz":
        with np.load(path) as archive:
            arrays = {key: archive[key] for key in archive.files}
        key = "output-0" if name == "tflite" else "c000/output-0"
        arrays[key][0, 1, 2, 2] ^= 1
        np.savez(path, **arrays)
    else:
        content = bytearray(path.read_bytes())
        last = len(content)
        if name == "bin":
            found = json.loads((folder / name / "manifest.json").read_text())["cases"][0]["outputs"][0]
            last = found["start"] + found["length"]
        content[last - 1] ^= 1
        path.write_bytes(content)
    (outcome,) = [outcome for outcome in replay(folder).outcomes if not outcome.equal]
    assert (outcome.case, outcome.differing) == (f"{name}/CONV_2D/s8/ties/000", 1)
    assert outcome.first is not None
    assert outcome.first.index == (0, 1, 2, 2)


def test_a_model_that_runs_although_it_must_be_refused(folder: Path) -> None:
    good, bad = (folder / "tflite" / "CONV_2D" / f"s8-{name}-000.tflite" for name in ("ties", "rejects"))
    shutil.copy(good, bad)
    (outcome,) = [outcome for outcome in replay(folder / "tflite").outcomes if not outcome.equal]
    assert (outcome.case, outcome.refusal) == ("CONV_2D/s8/rejects/000", "it runs, but must be refused")


def test_damage_is_no_refusal(folder: Path) -> None:
    """A missing file must not make a case pass that expects a refusal."""
    (folder / "tflite" / "CONV_2D" / "s8-rejects-000.npz").unlink()
    (folder / "desc" / "CONV_2D" / "s8" / "rejects" / "000" / "model.tflite").unlink()
    found = [outcome for outcome in replay(folder).outcomes if not outcome.equal]
    assert [outcome.case for outcome in found] == ["desc/CONV_2D/s8/rejects/000", "tflite/CONV_2D/s8/rejects/000"]
    assert all("[BT-VECTORS-FORMAT]" in outcome.refusal for outcome in found)


Change = Callable[[dict[str, Any]], object]
_CASE: list[tuple[str, Change, str]] = [
    ("npz", lambda case: case.update(model=3), "'model' is no object"),
    ("npz", lambda case: case["model"].update(key="c000/input-0"), "not of bytes"),
    ("npz", lambda case: case["model"].update(key="gone"), "has no array 'gone'"),
    ("npz", lambda case: case.update(numerics=["litert"]), "'numerics' is no text"),
    ("npz", lambda case: case.update(numerics="tpu"), "tpu"),
    ("npz", lambda case: case["inputs"][0].update(name="other"), "arrays for the inputs ['other']"),
    ("npz", lambda case: case["inputs"].append(dict(case["inputs"][0])), "two inputs have one name"),
    ("npz", lambda case: case["outputs"].clear(), "arrays for the outputs []"),
    ("npz", lambda case: case.update(expected_failure=True), "has no outputs"),
    ("bin", lambda case: case["inputs"][0].update(byte_order="middle"), "'byte_order' is 'middle'"),
    ("bin", lambda case: case["inputs"][0].update(shape=[2**40, 2**40]), "its shape needs"),
    ("bin", lambda case: case["inputs"][0].update(shape=[-1]), "is no shape"),
    ("bin", lambda case: case["inputs"][0].update(dtype="string"), "its shape needs"),
    ("bin", lambda case: case["inputs"][0].update(dtype={}), "element type {} is not known"),
    ("bin", lambda case: case["inputs"][0].update(file="../../secret.bin"), "is no file of the folder"),
    ("bin", lambda case: case["inputs"][0].update(file="CONV_2D"), "is no file"),
    ("bin", lambda case: case["inputs"][0].update(start=-1), "are no part of a file"),
    ("bin", lambda case: case["inputs"][0].update(start=2**70), "ends before byte"),
    ("bin", lambda case: case["inputs"][0].update(length=2**40), "are no part of a file"),
    ("bin", lambda case: case["inputs"][0].pop("length"), "are no part of a file"),
    ("tflite", lambda case: case.update(archive="gone.zip"), "gone.zip is no file"),
    ("tflite", lambda case: case.update(archive="manifest.json"), "cannot read manifest.json"),
    ("bin", lambda case: case.update(archive="CONV_2D.bin"), "parts of files are not in archives"),
    ("bin", lambda case: case.update(archive="../npz/CONV_2D.npz"), "is no file of the folder"),
    ("bin", lambda case: case["model"].update(file="/etc/passwd"), "is no file of the folder"),
    ("bin", lambda case: case["model"].update(file="gone"), "is no file"),
    ("tflite", lambda case: case["model"].update(file="CONV_2D"), "is no file"),
    ("tflite", lambda case: case["model"].update(file=None), "must be texts"),
    ("bin", lambda case: case["model"].update(file="manifest.json", start=0, length=9), "[BT-"),
    ("tflite", lambda case: case["inputs"][0].update(file="CONV_2D/s8-ties-000.tflite"), "[BT-VECTORS-FORMAT]"),
]


@pytest.mark.parametrize(("name", "change", "words"), _CASE, ids=[words for _, _, words in _CASE])
def test_hostile_cases_are_refused(folder: Path, name: str, change: Change, words: str) -> None:
    path = folder / name / "manifest.json"
    content = json.loads(path.read_text())
    change(content["cases"][0])
    path.write_text(json.dumps(content))
    outcome = replay(folder / name).outcomes[0]
    assert outcome.refusal.startswith("[BT-"), outcome
    assert words in outcome.refusal


_DESC: list[tuple[Change, str]] = [
    (lambda desc: desc.update(format="tosa"), "expected the format 'bittrue-desc-1'"),
    (lambda desc: desc.update(expected_failure="no"), "'expected_failure' is no truth value"),
    (lambda desc: desc.update(test_requirements=[]), "'test_requirements' no object"),
    (lambda desc: desc["test_requirements"].pop("numerics"), "names no 'numerics'"),
    (lambda desc: desc.update(ifm_file="input-0.npy"), "are lists of texts"),
    (lambda desc: desc.update(ifm_file=[]), "1 texts in 'ifm_name', 0 in 'ifm_file'"),
    (lambda desc: desc.update(ofm_file=["../output-0.npy"]), "is no file of the folder"),
    (lambda desc: desc.update(ofm_file=["desc.json"]), "cannot read desc.json"),
    (lambda desc: desc.update(model_file="gone.tflite"), "gone.tflite is no file"),
]


@pytest.mark.parametrize(("change", "words"), _DESC, ids=[words for _, words in _DESC])
def test_hostile_descs_are_refused(folder: Path, change: Change, words: str) -> None:
    path = folder / "desc" / "CONV_2D" / "s8" / "ties" / "000" / "desc.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    (outcome,) = [outcome for outcome in replay(folder / "desc").outcomes if not outcome.equal]
    assert outcome.refusal.startswith("[BT-"), outcome
    assert words in outcome.refusal


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"format": "bittrue-desc-1"}'])
def test_descs_that_are_none(folder: Path, text: bytes) -> None:
    (folder / "desc" / "CONV_2D" / "s8" / "ties" / "000" / "desc.json").write_bytes(text)
    (outcome,) = [outcome for outcome in replay(folder / "desc").outcomes if not outcome.equal]
    assert outcome.refusal.startswith("[BT-VECTORS-FORMAT]"), outcome


_MANIFESTS = [
    (b'{"format": "bittrue-vectors-1", "cases": [{"id": "\\ud800", "operator": "ADD"}]}', "no UTF-8 text"),
    (
        b'{"format": "bittrue-vectors-1", "cases": [{"operator": "a", "id": "1"}, {"operator": "a", "id": "1"}]}',
        "called",
    ),
    (b"\xff", "no UTF-8 text"),
    (b"[" * 100_000, "no JSON"),
    (b"[]", "found list"),
]


@pytest.mark.parametrize(("text", "words"), _MANIFESTS, ids=[words for _, words in _MANIFESTS])
def test_manifests_that_are_none(tmp_path: Path, text: bytes, words: str) -> None:
    (tmp_path / "manifest.json").write_bytes(text)
    with pytest.raises(BittrueError, match=words):
        replay(tmp_path)


def test_headers_that_end_in_the_middle(folder: Path) -> None:
    place = folder / "desc" / "CONV_2D" / "s8" / "ties" / "000" / "input-0.npy"
    place.write_bytes(place.read_bytes().replace(b"'shape': (1", b"'shape': [(1"))
    (outcome,) = [outcome for outcome in replay(folder / "desc").outcomes if not outcome.equal]
    assert outcome.refusal.startswith("[BT-VECTORS-FORMAT]"), outcome


def test_mutated_folders_are_typed_errors(folder: Path) -> None:
    """Some dozen of the mutations that were tried by the thousand: bytes changed, files cut."""
    words = np.random.default_rng(8)
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".npy", ".npz", ".tflite", ".bin"))
    for number in range(40):
        path = files[int(words.integers(len(files)))]
        kept = path.read_bytes()
        changed = bytearray(kept[: int(words.integers(len(kept)))] if number % 4 == 0 else kept)
        for place in words.integers(0, max(min(len(changed), 200), 1), 4):
            if changed:
                changed[place] = int(words.integers(256))
        path.write_bytes(changed)
        try:
            outcomes = replay(folder / path.relative_to(folder).parts[0]).outcomes
        except BittrueError:
            outcomes = ()
        assert not [outcome for outcome in outcomes if outcome.refusal and not outcome.refusal.startswith("[BT-")]
        path.write_bytes(kept)


def test_pickles_are_not_opened(folder: Path) -> None:
    place = folder / "desc" / "CONV_2D" / "s8" / "ties" / "000" / "input-0.npy"
    np.save(place, np.array([{"a": 1}], object), allow_pickle=True)
    (outcome,) = [outcome for outcome in replay(folder / "desc").outcomes if not outcome.equal]
    assert "[BT-VECTORS-FORMAT]" in outcome.refusal


def test_damaged_manifests_are_errors(folder: Path) -> None:
    (folder / "bin" / "manifest.json").write_text("{}")
    for place in (folder, folder / "bin"):
        with pytest.raises(BittrueError, match="bittrue-vectors-1"):
            replay(place)
    for name in WRITTEN:
        shutil.rmtree(folder / name, ignore_errors=True)
    with pytest.raises(BittrueError, match="none of the formats"):
        replay(folder)


def test_pipes_do_not_hang(folder: Path) -> None:
    place = folder / "desc" / "CONV_2D" / "s8" / "ties" / "000" / "input-0.npy"
    place.unlink()
    os.mkfifo(place)
    (outcome,) = [outcome for outcome in replay(folder / "desc").outcomes if not outcome.equal]
    assert "is no file" in outcome.refusal


# -- the example in Verilog --------------------------------------------------------------------------------------------

VERILOG = REPOSITORY / "examples" / "verilog"


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not installed")
def test_the_verilog_unit_passes_and_the_one_with_a_bug_does_not(tmp_path: Path) -> None:
    case = suite_cases.convolution()
    per_tensor = suite_cases.addition()
    write_vectors(tmp_path / "v", find_suite("litert"), [per_tensor, case], ["hex"], accumulators=True)
    found = {}
    for design in ("requantize", "requantize_tie_bug"):
        done = subprocess.run([VERILOG / "run.sh", design, tmp_path / "v"], capture_output=True, text=True, timeout=60)
        found[design] = (done.returncode, done.stdout.splitlines())
    assert found["requantize"] == (
        0,
        ["CONV_2D/s8", "  case 0: PASS 18 quantized values", "  1 cases passed, 0 failed", "requantize: PASS"],
    )
    code, lines = found["requantize_tie_bug"]
    assert (code, lines[-2:]) == (1, ["  0 cases passed, 1 failed", "requantize_tie_bug: FAIL"])
    wrong = _codes_with_second_tie_up(case)
    assert f"  case 0: FAIL {wrong} of 18 quantized values" in lines


def _codes_with_second_tie_up(case: SuiteCase) -> int:
    """How many quantized values the planted bug changes, from the accumulators that `describe` gives."""
    from bittrue.conformance.formats import describe

    found = describe(case, "litert", accumulators=True)
    (step,), acc = found["plan"]["steps"], found["accumulators"]["output0"]["values"]
    (one,) = step["multipliers"]
    count = 0
    for place, value in enumerate(acc):
        m, e = one["multiplier"][place % 3], one["exponent"][place % 3]
        high = (value * m + 2**30) >> 31
        two = [min(max(scaled - 4, -128), 127) for scaled in (_away(high, -e), (high + (1 << -e >> 1)) >> -e)]
        count += two[0] != two[1]
    assert count
    return count


def _away(high: int, right: int) -> int:
    half = (1 << right) >> 1
    return (high + half) >> right if high >= 0 else -((-high + half) >> right)
