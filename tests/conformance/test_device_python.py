"""Devices in Python: what they may return, and that nothing that they do harms the run."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from bittrue.conformance.conform import conform
from bittrue.conformance.devices import Refused
from bittrue.conformance.devices.opening import open_device
from bittrue.errors import InputError
from support import misbehaving
from support.device_cases import case, first_and_next, is_right, unreadable_case
from support.runtimes import not_emulated

FILE = Path(misbehaving.__file__)

# Those that end the process or never end: in a process of their own alone.
FATAL = {
    "segfault": ("crashed", "SIGSEGV"),
    "abort": ("crashed", "SIGABRT"),
    "leave": ("crashed", "exit code 0"),
    "sleep": ("timed out", "more than 1 s"),
    "spin": ("timed out", "more than 1 s"),
    "close_all": ("crashed", ""),
    "scribble": ("unreadable", "pipe"),
}
HARMLESS = {
    "say_goodbye": ("crashed", "goodbye"),
    "raise_error": ("raised", "ValueError: no\\x1b[31m luck (misbehaving.py:"),
    "raise_mute": ("raised", "Mute"),
    "raise_base": ("raised", "GeneratorExit: strange"),
    "recurse": ("raised", "RecursionError"),
    "refuse": ("refused", "not my size"),
    "unwritten": ("refused", "later"),
    "nothing": ("unreadable", "nothing (None)"),
    "text": ("unreadable", "no array but an object of type str"),
    "number_list": ("unreadable", "a sequence of 256, the model has 1 output"),
    "objects": ("unreadable", "type object"),
    "texts": ("unreadable", "no type of numbers"),
    "structures": ("unreadable", "no type of numbers"),
    "the_class": ("unreadable", "the class ndarray"),
    "no_array": ("unreadable", "not today"),
    "odd_array": ("unreadable", "an object of type Odd"),
    "numbered_keys": ("unreadable", "not all names of outputs"),
    "empty": ("unreadable", "no outputs"),
    "two_outputs": ("unreadable", "a sequence of 2, the model has 1 output"),
    "endless": ("unreadable", "the limit is"),
    "lazy": ("unreadable", "an object of type generator"),
}
RIGHT = ("noise", "overwrite", "read_input", "strided", "by_name", "in_order")


# Both ways share what makes an answer of a call; a few show that it is so.
@not_emulated
@pytest.mark.in_turns(2)
@pytest.mark.parametrize("name", [*FATAL, "say_goodbye", "raise_error", "refuse", "endless"])
def test_misbehaviour_is_an_answer_and_the_next_case_works(name: str) -> None:
    status, text = {**FATAL, **HARMLESS}[name]
    device = open_device(f"{FILE}:{name}?timeout=1")
    first, second = first_and_next(device)
    device.close()
    assert (first.status, dict(first.outputs)) == (status, {}), first.text
    assert text in first.text
    assert first.text.isprintable()
    assert is_right(case("SQUEEZE"), second), second


@pytest.mark.parametrize("name", HARMLESS)
def test_the_same_in_this_process(name: str) -> None:
    status, text = HARMLESS[name]
    first, second = first_and_next(open_device(getattr(misbehaving, name)))
    assert (first.status, dict(first.outputs)) == (status, {}), first.text
    assert text in first.text
    assert is_right(case("SQUEEZE"), second)


@pytest.mark.parametrize(
    ("name", "isolate"),
    [*((name, False) for name in RIGHT if name != "read_input"), *((name, True) for name in RIGHT[:3])],
)
def test_right_answers(name: str, isolate: bool) -> None:
    found = f"{FILE}:{name}" if isolate else getattr(misbehaving, name)
    device = open_device(found, timeout=10)
    first, second = first_and_next(device)
    device.close()
    assert is_right(case("RESHAPE"), first), first
    assert is_right(case("SQUEEZE"), second)


@pytest.mark.parametrize("isolate", [False, True])
def test_wrong_shapes_and_types_are_handed_on(isolate: bool) -> None:
    for name, dtype, shape in (("flat", "i1", (256,)), ("real", "f8", (4, 8, 8)), ("big_endian", "i2", (4, 8, 8))):
        device = open_device(f"{FILE}:{name}" if isolate else getattr(misbehaving, name))
        answer = device.answer(case("RESHAPE"))
        device.close()
        value = answer.outputs["output0"]
        assert (answer.status, value.dtype, value.shape) == ("outputs", np.dtype(dtype), shape)
        (given,) = case("RESHAPE").inputs.values()
        assert value.reshape(-1).tolist() == given.reshape(-1).tolist()
    answer = open_device(misbehaving.other_name).answer(case("RESHAPE"))
    assert list(answer.outputs) == ["another"]


def test_three_methods() -> None:
    device = open_device(misbehaving.Methods())
    assert (device.title, device.reads) == ("three methods, 1.0", ("tflite",))
    assert is_right(case("RESHAPE"), device.answer(case("RESHAPE")))
    other = device.answer(case("RESHAPE", 1))
    assert (other.status, other.text) == ("refused", "codes only")
    for spec in (f"python:{FILE}", f"{FILE}:Methods", "python:support.misbehaving:Methods", f"python:{FILE}:device"):
        device = open_device(spec)
        assert (device.spec, device.title, device.reads) == (spec, "three methods, 1.0", ("tflite",))
        assert is_right(case("SQUEEZE"), device.answer(case("SQUEEZE")))
        device.close()


def test_close_is_called_once() -> None:
    found = misbehaving.Methods()
    device = open_device(found)
    device.close()
    assert found.closed == 1


def test_isolated_functions() -> None:
    device = open_device(misbehaving.Methods, isolate=True, timeout=5)
    assert is_right(case("RESHAPE"), device.answer(case("RESHAPE")))
    device.close()
    for found in (lambda model, inputs: None, misbehaving.Methods()):
        with pytest.raises(bittrue.InputError, match="a process of its own cannot find"):
            open_device(found, isolate=True)


def test_what_a_model_tells() -> None:
    seen: list[Any] = []

    def device(model: Any, inputs: dict[str, np.ndarray]) -> Any:
        seen.append(model)
        assert model.path.read_bytes() == model.bytes
        raise Refused

    open_device(device).answer(case("ADD"))
    (model,) = seen
    assert (model.operator, model.types, model.format, model.identity) == ("ADD", "s8", "tflite", case("ADD").identity)
    assert [port.name for port in model.inputs] == list(case("ADD").inputs)
    assert [(port.name, port.dtype) for port in model.outputs] == [("output0", np.dtype(np.int8))]
    assert model.attributes["activation"] == "none"
    assert model.description["plan"]["steps"][0]["operator"] == "add"
    # What a device must do is not told.
    assert not {"rejects", "note", "aim", "seeks"} & set(model.description)


@pytest.mark.parametrize("isolate", [False, True])
def test_models_that_nobody_can_read(isolate: bool) -> None:
    device = open_device(f"{FILE}:right" if isolate else misbehaving.right)
    answer = device.answer(unreadable_case())
    device.close()
    # The device looked for an output's shape, and there is none.
    assert answer.status == "raised"
    assert "IndexError" in answer.text


def test_a_device_that_does_not_come_back(tmp_path: Path) -> None:
    file = tmp_path / "once.py"
    mark = tmp_path / "mark"
    file.write_text(
        "import os, pathlib\n"
        f"mark = pathlib.Path({str(mark)!r})\n"
        "if mark.exists():\n    raise RuntimeError('the chip is dead')\n"
        "mark.write_text('')\n"
        "def device(model, inputs):\n    os._exit(5)\n"
    )
    first, second = first_and_next(open_device(str(file)))
    assert (first.status, second.status) == ("crashed", "crashed")
    assert "exit code 5" in first.text
    assert "the chip is dead" in second.text


@not_emulated
def test_starting_is_not_charged_to_a_case(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text(
        "import time\ntime.sleep(1.1)\ndef device(model, inputs):\n    return next(iter(inputs.values()))\n"
    )
    device = open_device(f"{file}?timeout=1")
    start = time.monotonic()
    answer = device.answer(case("RESHAPE"))
    assert (answer.status, time.monotonic() - start < 1) == ("outputs", True)
    device.close()


def test_what_a_device_prints_is_shown_and_constants_have_shapes(tmp_path: Path) -> None:
    device = tmp_path / "talkative.py"
    device.write_text(
        "import os, sys\n"
        "def run(model, inputs):\n"
        "    print('shapes', [value.shape for value in model.constants.values()])\n"
        "    sys.stdout.flush()\n"
        "    os.write(2, b'to the other \\x1b[31m side\\n')\n"
        "    raise NotImplementedError('only talks')\n"
    )
    said: dict[str, str] = {}
    identity = "FULLY_CONNECTED/s8/ties/000"
    result = conform(f"{device}:run", cases=[identity], demo=False, prints=said.__setitem__)
    assert list(said) == [identity]
    shapes, other = said[identity].splitlines()
    assert re.fullmatch(r"shapes \[\((\d+), (\d+)\), \((\1),\)\]", shapes)
    assert other == "to the other \x1b[31m side"
    assert result.count("skipped") == 1
    with pytest.raises(InputError, match="one job"):
        conform(f"{device}:run", jobs=2, prints=said.__setitem__)
    shown = CliRunner().invoke(cli, ["conform", f"{device}:run", "--case", identity, "--no-demo", "--prints"])
    assert f"{identity}: to the other \\x1b[31m side\n" in shown.stderr
