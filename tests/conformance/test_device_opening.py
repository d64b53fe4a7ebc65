"""What users type: every form, near misses, options; plug-ins; recorded outputs; the examples."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.conformance.devices.opening import SPECS, open_device
from bittrue.conformance.expected import Expected, same_bytes
from bittrue.conformance.suite import find_suite
from support import misbehaving
from support.compilers import compiler
from support.device_cases import case, is_right
from support.shared import REPOSITORY

FILE = misbehaving.__file__
GCC = compiler("gcc")
EXAMPLES = REPOSITORY / "examples"

WRONG = {
    "": "there is no device ''",
    "litrt:xnnpack": "did you mean litert:xnnpack?",
    "Litert": "did you mean litert?",
    "onnxruntim?level=all": r"did you mean onnxruntime\?level=all\?",
    "nothing_like_it": "write one of bittrue",
    "litert:optimised": "did you mean litert:optimized?",
    "litert:fast": "choose one of: builtin_ref, optimized, xnnpack",
    "litert:xnnpack?resolver=xnnpack": "resolver is given twice",
    "litert?resolver=fast": "resolver cannot be 'fast'",
    "litert?thread=2": "did you mean 'threads'?",
    "litert?threads=0": "threads cannot be '0'",
    "litert?threads=1&threads=2": "threads is given twice",
    "litert?timeout=soon": "timeout cannot be 'soon'",
    "litert?timeout=-1": "timeout cannot be '-1'",
    "litert?timeout=nan": "timeout cannot be 'nan'",
    "ort:all": "options follow a question mark",
    "ort?level=most": "level cannot be 'most'",
    "openvino?level=all": "options: threads, timeout",
    "bittrue:litret": "litret",
    "bittrue?timeout=3": "options: none",
    "python:": "no file or module is named",
    "no_such_file.py": "there is no file 'no_such_file.py'",
    "python:no_such_module": "cannot be imported: ModuleNotFoundError",
    f"{FILE}:sleeep": "did you mean 'sleep'?",
    f"{FILE}:value": "an object of type int is no device",
    f"{FILE}:Half": "the class Half is no device",
    "program:": "no program is named",
    "program:no_such_program_here": "there is no program 'no_such_program_here'",
    f"program:{FILE}": "is not executable",
    "program:sh 'x": "cannot be read",
    "program:sh x?batch=0": "batch cannot be '0'",
    "library:": "no library is named",
    "library:no.so": "there is no library 'no.so'",
    "results:no_such_folder": "there is no folder 'no_such_folder'",
    "/tmp": "did you mean results:/tmp?",
}


@pytest.mark.parametrize("spec", WRONG)
def test_near_misses_get_advice(spec: str) -> None:
    with pytest.raises(bittrue.InputError) as caught:
        open_device(spec)
    text = WRONG[spec].replace("\\", "")
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_paths_that_lack_their_word(tmp_path: Path) -> None:
    for name, word in (("x.so", "library"), ("x.sh", "program")):
        path = tmp_path / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        with pytest.raises(bittrue.InputError, match=f"did you mean {word}:"):
            open_device(path)


def test_what_is_no_device() -> None:
    for found in (3, None, misbehaving.Half(), object()):
        with pytest.raises(bittrue.InputError, match="is no device"):
            bittrue.open_device(found)
    for timeout in (0, -1, float("nan"), float("inf")):
        with pytest.raises(bittrue.InputError, match="timeout cannot be"):
            open_device("bittrue", timeout=timeout)
    with pytest.raises(bittrue.UnsupportedError, match="RuntimeError: no power"):
        open_device(f"{FILE}:Unpowered")
    device = open_device("bittrue")
    assert open_device(device) is device


def test_every_kind_says_what_it_is() -> None:
    assert [spec.name for spec in SPECS] == "bittrue litert ort openvino python program library results".split()
    for spec in SPECS:
        assert spec.form.startswith(spec.name)
        assert spec.help


def test_a_file_with_a_question_mark(tmp_path: Path) -> None:
    path = tmp_path / "device?timeout=no.sh"
    path.write_text('#!/bin/sh\ncp "$1/input-0.bin" "$2/output-0.bin"\n')
    path.chmod(0o755)
    assert is_right(case("RESHAPE"), open_device(f"program:{path}").answer(case("RESHAPE")))


def test_plug_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_npu.py").write_text(
        "class Board:\n"
        "    title = 'ACME board 7'\n"
        "    def load(self, model):\n        self.shape = model.outputs[0].shape\n"
        "    def run(self, inputs):\n        return next(iter(inputs.values())).reshape(self.shape)\n"
        "    def close(self):\n        pass\n"
    )
    information = tmp_path / "acme_npu-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-npu\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[bittrue.devices]\nacme = acme_npu:Board\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    device = open_device("acme?timeout=20")
    assert (device.spec, device.title) == ("acme?timeout=20", "ACME board 7")
    assert is_right(case("RESHAPE"), device.answer(case("RESHAPE")))
    device.close()
    with pytest.raises(bittrue.InputError, match="did you mean acme"):
        open_device("acmee")


def test_recorded_outputs(tmp_path: Path) -> None:
    cases = [case("RESHAPE"), case("SQUEEZE"), case("SQUEEZE", 1), case("SQUEEZE", 2), case("RESHAPE", 1)]
    folders = [tmp_path / one.identity for one in cases]
    values = [Expected(one).outputs("litert")["output0"] for one in cases]
    for number, folder in enumerate(folders):
        folder.parent.mkdir(parents=True, exist_ok=True)
        if number in (0, 1, 3):
            folder.mkdir()
    np.save(folders[0] / "output-0.npy", values[0])
    (folders[1] / "output0.bin").write_bytes(values[1].tobytes())
    np.savez_compressed(folders[2].with_suffix(".npz"), output0=values[2])
    (folders[3] / "refused").write_text("too small\n")
    device = open_device(f"results:{tmp_path}")
    answers = [device.answer(one) for one in cases]
    assert [answer.status for answer in answers] == ["outputs", "outputs", "outputs", "refused", "skipped"]
    assert [answer.text for answer in answers[3:]] == ["too small", "not recorded"]
    for one, answer in zip(cases[:3], answers[:3], strict=True):
        assert is_right(one, answer), one.identity
    # Garbage is the laboratory's fault, and links lead out of the folder.
    (folders[0] / "output-0.npy").write_bytes(b"garbage")
    assert device.answer(cases[0]).status == "unreadable"
    folders[2].with_suffix(".npz").write_bytes(b"garbage")
    assert device.answer(cases[2]).status == "unreadable"
    np.savez(tmp_path / "other.npz", value=values[4])
    os.symlink(tmp_path / "other.npz", folders[4].with_suffix(".npz"))
    assert device.answer(cases[4]).status == "skipped"
    folders[1].rename(tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", folders[1])
    assert device.answer(cases[1]).status == "skipped"


def test_exported_vectors_are_perfect_results(tmp_path: Path) -> None:
    """What `bittrue vectors` writes as desc holds the outputs where results: looks for them."""
    done = subprocess.run(
        [sys.executable, "-m", "bittrue", "vectors", "SQUEEZE", "--format", "desc", "-o", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    device = open_device(f"results:{tmp_path / 'desc'}")
    answers = [device.answer(one) for one in find_suite("litert").cases(operators=("SQUEEZE",)) if not one.rejects]
    assert answers
    assert all(answer.status == "outputs" for answer in answers)


@pytest.mark.skipif(GCC is None or shutil.which("make") is None, reason="no gcc and make here")
def test_the_example_in_c(tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLES / "c_device", tmp_path / "c_device", ignore=shutil.ignore_patterns("*.so"))
    # The Makefile asks the package where its header is.
    environment = {**os.environ, "PYTHONPATH": str(Path(bittrue.__file__).parents[1])}
    command = ["make", f"PYTHON={sys.executable}", f"CC={GCC}"]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    device = open_device(f"library:{folder / 'libdevice.so'}")
    counts = {"ADD": 0, "FULLY_CONNECTED": 0}
    for number, asked in enumerate(find_suite("litert").cases(operators=tuple(counts))):
        if number % 3 and not asked.rejects:
            continue
        answer = device.answer(asked)
        if asked.rejects:
            assert answer.status == "refused", asked.identity
            continue
        assert answer.status == "outputs", f"{asked.identity}: {answer.text}"
        assert same_bytes(dict(answer.outputs), Expected(asked, ("litert",)).outputs("litert")), asked.identity
        counts[asked.operator] += 1
    assert min(counts.values()) > 8
    other = device.answer(case("RESHAPE"))
    assert (other.status, other.text) == ("refused", "no kernel for RESHAPE")
    device.close()


def test_the_example_in_shell() -> None:
    device = open_device(f"program:{EXAMPLES / 'shell_device' / 'device.sh'}")
    right = 0
    for operator in ("ADD", "MAXIMUM", "RESHAPE"):
        for number, asked in enumerate(find_suite("litert").cases(operators=(operator,))):
            # A program is started for each: some of each operator are enough here.
            if number % 5 or asked.rejects:
                continue
            answer = device.answer(asked)
            if answer.status == "refused":
                assert "different shapes" in answer.text or "constant" in answer.text
                continue
            assert answer.status == "outputs", f"{asked.identity}: {answer.text}"
            assert same_bytes(dict(answer.outputs), Expected(asked, ("litert",)).outputs("litert")), asked.identity
            right += 1
    assert right >= 7
    assert device.answer(case("LOGISTIC")).status == "refused"
