"""Devices that are programs: what they may leave behind, one case at a time and many at once."""

from __future__ import annotations

import io
import json
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from bittrue.conformance.devices.folders import write_case
from bittrue.conformance.devices.opening import open_device
from support.device_cases import case, first_and_next, is_right, unreadable_case

RIGHT = 'cp "$1/input-0.bin" "$2/output-0.bin"\n'


def program(folder: Path, wrong: str, name: str = "device.sh") -> Path:
    """A script that does `wrong` on RESHAPE, and the right thing else."""
    path = folder / name
    path.write_text(
        f'#!/bin/sh\nset -e\nhere={folder}\n. "$1/parameters.txt"\n'
        f'if [ "$operator" = RESHAPE ]; then\n{wrong}\nexit 0\nfi\n{RIGHT}'
    )
    path.chmod(0o755)
    return path


def npy(value: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, value, allow_pickle=True)
    return stream.getvalue()


def prepare(folder: Path) -> None:
    """Files that scripts hand over."""
    zeros = np.zeros((4, 8, 8), np.int8)
    files = {
        "good": npy(zeros),
        "cut": npy(zeros)[:-7],
        "long": npy(zeros) + b"x",
        "pickle": npy(np.array([{"a": 1}], object)),
        "texts": npy(np.array(["a"])),
        "huge": npy(zeros).replace(b"(4, 8, 8), }  ", b"(1<<40,),}    "),
        "claims": npy(zeros).replace(b"(4, 8, 8), }     ", b"(99999999999,), }"),
        "garbage": b"\x93NUMPY\xff\xffgarbage",
        "flat": npy(zeros.reshape(-1)),
        "real": npy(zeros.astype(np.float32)),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)


MISBEHAVIOUR = {
    "kill -SEGV $$": ("crashed", "SIGSEGV"),
    "sh -c 'kill -ABRT $$'": ("crashed", "SIGABRT"),
    "echo out of luck; exit 3": ("raised", "exit code 3: out of luck"),
    "echo wrong size; exit 77": ("refused", "wrong size"),
    'echo noise; echo too big > "$2/refused"; exit 77': ("refused", "too big"),
    'echo too big > "$2/refused"': ("refused", "too big"),
    "sleep 1000": ("timed out", "more than 1 s"),
    "trap '' TERM INT; while :; do :; done": ("timed out", "more than 1 s"),
    "yes": ("timed out", "more than 1 s"),
    "exec sleep 1000 > /dev/null 2>&1": ("timed out", "more than 1 s"),
    "": ("unreadable", "neither output-0.npy nor output-0.bin"),
    'rmdir "$2"': ("unreadable", "no folder of outputs"),
    'rmdir "$2"; ln -s "$1" "$2"': ("unreadable", "no folder of outputs"),
    'echo 1 2 3 > "$2/output-0.txt"': ("unreadable", "neither output-0.npy nor output-0.bin"),
    ': > "$2/output-0.npy"': ("unreadable", "output-0.npy"),
    'cp "$here/cut" "$2/output-0.npy"': ("unreadable", "cut off"),
    'cp "$here/long" "$2/output-0.npy"': ("unreadable", "too many bytes"),
    'cp "$here/pickle" "$2/output-0.npy"': ("unreadable", "pickles"),
    'cp "$here/texts" "$2/output-0.npy"': ("unreadable", "no type of numbers"),
    'cp "$here/huge" "$2/output-0.npy"': ("unreadable", "no readable .npy file"),
    'cp "$here/claims" "$2/output-0.npy"': ("unreadable", "cut off"),
    'cp "$here/garbage" "$2/output-0.npy"': ("unreadable", "no readable .npy file"),
    'truncate -s 20G "$2/output-0.npy"': ("unreadable", "no readable .npy file"),
    'truncate -s 20G "$2/output-0.bin"': ("unreadable", "too many bytes"),
    'head -c 255 "$1/input-0.bin" > "$2/output-0.bin"': ("unreadable", "takes 256 bytes, there are 255"),
    'cp "$1/input-0.bin" "$2/x"; ln -s x "$2/output-0.bin"': ("unreadable", "a link"),
    'ln -s "$here/good" "$2/output-0.npy"': ("unreadable", "a link"),
    'mkfifo "$2/output-0.npy"': ("unreadable", "no regular file"),
    'mkdir "$2/output-0.npy"': ("unreadable", "no regular file"),
    'echo text > "$2/outputs.npz"': ("unreadable", "outputs.npz"),
}


def test_misbehaviour_is_an_answer_and_the_next_case_works(tmp_path: Path) -> None:
    prepare(tmp_path)
    for wrong, (status, text) in MISBEHAVIOUR.items():
        start = time.monotonic()
        timed = status == "timed out"
        device = open_device(f"program:{program(tmp_path, wrong)}?timeout={1 if timed else 30}")
        first, second = first_and_next(device)
        assert (first.status, dict(first.outputs)) == (status, {}), f"{wrong}: {first}"
        assert text in first.text, f"{wrong}: {first.text}"
        # A timeout of one second may hit the next case on a busy machine.
        assert is_right(case("SQUEEZE"), second) or (timed and second.status == "timed out"), f"{wrong}: {second}"
        assert time.monotonic() - start < 40
        device.close()


def test_right_answers_in_every_form(tmp_path: Path) -> None:
    prepare(tmp_path)
    (given,) = case("RESHAPE").inputs.values()
    forms = (
        RIGHT,
        'cp "$1/$input_0_file" "$2/$output_0_name.bin"',
        'cp "$1/input-0.bin" "$2/output-0.raw"; yes garbage | head -c 300000',
        # What it started keeps its standard output and does not delay the answer.
        f"sleep 1000 &\n{RIGHT}",
        # Its input is its own.
        f'{RIGHT}: > "$1/input-0.bin"; rm -r "$1"',
    )
    for form in forms:
        start = time.monotonic()
        answer = open_device(f"program:{program(tmp_path, form)}").answer(case("RESHAPE"))
        assert is_right(case("RESHAPE"), answer), f"{form}: {answer}"
        assert time.monotonic() - start < 20
    np.savez(tmp_path / "all.npz", output0=given.reshape(4, 8, 8))
    answer = open_device(f"program:{program(tmp_path, 'cp $here/all.npz $2/outputs.npz')}").answer(case("RESHAPE"))
    assert is_right(case("RESHAPE"), answer), answer
    for name, dtype, shape in (("flat", "i1", (256,)), ("real", "f4", (4, 8, 8))):
        answer = open_device(f"program:{program(tmp_path, f'cp $here/{name} $2/output-0.npy')}").answer(case("RESHAPE"))
        value = answer.outputs["output0"]
        assert (answer.status, value.dtype, value.shape) == ("outputs", np.dtype(dtype), shape)


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()
    device = open_device(
        f"program:{program(tmp_path, 'echo $$ > $here/pid; sleep 1000 & echo $! > $here/child; exit 5')}"
    )
    assert device.answer(case("RESHAPE")).status == "raised"
    assert list((tmp_path / "temporary").iterdir()) == []
    child = int((tmp_path / "child").read_text())
    for _ in range(100):
        try:
            state = Path(f"/proc/{child}/stat").read_text().split()[2]
        except OSError:
            break
        if state == "Z":
            break
        time.sleep(0.05)
    else:
        raise AssertionError("what the program started still runs")


def test_commands_with_arguments_and_what_cannot_start(tmp_path: Path) -> None:
    path = program(tmp_path, RIGHT)
    assert is_right(case("RESHAPE"), open_device(f"program:sh {path}").answer(case("RESHAPE")))
    path.write_text("no program at all")
    answer = open_device(f"program:{path}").answer(case("RESHAPE"))
    assert (answer.status, dict(answer.outputs)) == ("crashed", {})
    assert "#!/bin/sh" in answer.text


BATCH = """#!/bin/sh
echo started >> {here}/starts
while read -r name; do
  (
    . "$1/$name/parameters.txt"
    case $operator in
      RESHAPE) {wrong} ;;
      *) cp "$1/$name/input-0.bin" "$2/$name/output-0.bin" ;;
    esac
  ) || exit 9
done < "$1/cases.txt"
"""


@pytest.mark.parametrize(
    ("wrong", "status", "starts"),
    [
        ('cp "$1/$name/input-0.bin" "$2/$name/output-0.bin"', "outputs", 2),
        ('echo no > "$2/$name/refused"', "refused", 2),
        # Nothing is left for it: run again alone.
        ("true", "unreadable", 3),
        # The first batch ends there: this case and the two behind it run alone.
        ("exit 1", "raised", 5),
    ],
)
def test_batches(tmp_path: Path, wrong: str, status: str, starts: int) -> None:
    path = tmp_path / "batch.sh"
    path.write_text(BATCH.format(here=tmp_path, wrong=wrong))
    path.chmod(0o755)
    asked = [case("SQUEEZE"), case("RESHAPE"), case("SQUEEZE", 1), case("SQUEEZE", 2), case("SQUEEZE")]
    device = open_device(f"program:{path}?batch=4&timeout=20")
    answers = list(device.answers(iter(asked)))
    assert [answer.status for answer in answers] == ["outputs", status, "outputs", "outputs", "outputs"]
    for one, answer in zip(asked, answers, strict=True):
        assert answer.status != "outputs" or is_right(one, answer)
    assert len((tmp_path / "starts").read_text().splitlines()) == starts
    assert is_right(case("SQUEEZE"), device.answer(case("SQUEEZE")))


def test_the_folder_of_a_case(tmp_path: Path) -> None:
    asked = next(c for c in [case("ADD", i) for i in range(3)] if c.aim == "ties")
    write_case(tmp_path / "case", asked)
    desc = json.loads((tmp_path / "case" / "desc.json").read_text())
    assert desc["op"] == "ADD"
    assert desc["ifm_file"] == ["input-0.npy", "input-1.npy"]
    assert desc["ofm_file"] == ["output-0.npy"]
    # Neither what is expected nor what the case is after.
    assert not {"expected_failure", "aim", "note"} & {*desc, *desc["meta"]}
    for number, value in enumerate(asked.inputs.values()):
        assert np.array_equal(np.load(tmp_path / "case" / f"input-{number}.npy"), value)
        assert (tmp_path / "case" / f"input-{number}.bin").read_bytes() == value.tobytes()
    assert (tmp_path / "case" / desc["model_file"]).read_bytes() == asked.content
    shell = (
        '. "$0/parameters.txt"; echo "$operator|$input_0_shape|$step0_multiplier|$input_0_scale|$attribute_activation"'
    )
    done = subprocess.run(["sh", "-c", shell, str(tmp_path / "case")], capture_output=True, text=True, check=True)
    multiplier = desc["meta"]["plan"]["steps"][0]["arrays"]["multiplier"]["values"][0]
    scale = desc["meta"]["tensors"][0]["scale"][0]
    shape = " ".join(map(str, asked.inputs["input0"].shape))
    assert done.stdout.strip() == f"ADD|{shape}|{multiplier}|{scale}|none"


def test_models_that_nobody_can_read(tmp_path: Path) -> None:
    path = program(tmp_path, "grep -q 'no model' $1/model.tflite && exit 77")
    assert open_device(f"program:{path}").answer(unreadable_case()).status == "refused"
    path = program(tmp_path, "cp $1/input-0.npy $2/whatever.npy")
    answer = open_device(f"program:{path}").answer(unreadable_case())
    assert (answer.status, list(answer.outputs)) == ("outputs", ["whatever"])
