"""`bittrue explain`: tables, JSON, the choice of elements, and errors that say what to do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import bittrue
from support.command import run
from support.layer_models import LAYERS


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    path = tmp_path / "layer.tflite"
    path.write_bytes(LAYERS["conv2d s8"]()[0])
    return path


def _tensor(path: Path) -> str:
    return bittrue.load(path).prepare().outputs[0].name


def test_tensors_are_listed(layer: Path) -> None:
    out = run("explain", layer).stdout
    assert "conv" in out
    listed = json.loads(run("explain", layer, "--json").stdout)["tensors"]
    assert [row["tensor"] for row in listed] == [_tensor(layer)]
    assert listed[0]["rules"]["rescale"] == "q31_two_step_up_away"


def test_one_element_as_table_and_as_json(layer: Path, tmp_path: Path) -> None:
    session = bittrue.load(layer).prepare()
    x = np.random.default_rng(3).integers(-128, 128, session.inputs[0].shape).astype(np.int8)
    np.save(tmp_path / "x.npy", x)
    stored = session.run(x)[_tensor(layer)][0, 1, 2, 3]
    arguments = ("explain", layer, "-t", _tensor(layer), "-e", "0,1,2,3", "-i", tmp_path / "x.npy")
    out = run(*arguments).stdout
    for word in ("accumulator", "real multiplier", "first rounding", "second rounding", "ties away", "clamp", "stored"):
        assert word in out, word
    found = json.loads(run(*arguments, "--json").stdout)["explanation"]
    assert found["stored"] == stored
    assert found["element"] == [0, 1, 2, 3]
    public = bittrue.explain_element(session, session.trace(x), _tensor(layer), (0, 1, 2, 3))
    assert public.to_dict()["numbers"] == found["numbers"]


def test_without_an_element_the_closest_call_is_taken(layer: Path) -> None:
    found = json.loads(run("explain", layer, "-t", _tensor(layer), "--json").stdout)
    assert any("smallest distance to a tie" in remark for remark in found["remarks"])
    assert found["explanation"]["numbers"]["tie_distance"] < 0.01


@pytest.mark.parametrize("against", ["xnnpack", "q31_one_step_up", "rescale=binary32_multiply_even"])
def test_two_calculations_side_by_side(layer: Path, against: str) -> None:
    arguments = ("explain", layer, "-t", _tensor(layer), "--against", against, "--seed", "5")
    found = json.loads(run(*arguments, "--json").stdout)
    if "differ" in found["remarks"][-1] and "no element" not in found["remarks"][-1]:
        assert not found["equal"]
        assert found["first_difference"]
        assert "parts here" in run(*arguments).stdout
    assert found["against"]["rules"] != found["explanation"]["rules"]


def test_rules_that_differ_somewhere_are_shown_where(tmp_path: Path) -> None:
    path = tmp_path / "digits.tflite"
    path.write_bytes(bittrue.demo_model())
    tensor = next(
        row["tensor"]
        for row in json.loads(run("explain", path, "--json").stdout)["tensors"]
        if row["operator"] == "conv"
    )
    found = json.loads(run("explain", path, "-t", tensor, "--against", "q31_one_step_up", "--json").stdout)
    assert not found["equal"]
    assert found["first_difference"] == "rounding"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-t", "nothing"), "no tensor 'nothing'"),
        (("-t", "{tensor}x", "-e", "0,0,0,0"), "did you mean '{tensor}'"),
        (("-t", "{tensor}", "-e", "0,0,0"), "of shape"),
        (("-t", "{tensor}", "-e", "0,0,0,-1"), "of shape"),
        (("-t", "{tensor}", "-e", "0,99,0,0"), "of shape"),
        (("-t", "{tensor}", "-e", "0,a"), "cannot read the element"),
        (("-t", "{input}", "-e", "0,0,0,0"), "an input"),
        (("-t", "{weights}", "-e", "0,0,0,0"), "a constant"),
        (("-t", "{tensor}", "--against", "q31_one_step_upp"), "did you mean 'q31_one_step_up'"),
        (("-e", "0,0,0,0"), "need --tensor"),
    ],
)
def test_wrong_usage_is_told(layer: Path, arguments: tuple[str, ...], words: str) -> None:
    plan = bittrue.load(layer).prepare().plan
    names = {"tensor": _tensor(layer), "input": plan.tensors[plan.inputs[0]].name}
    names["weights"] = next(t.name for t in plan.tensors if t.kind == "constant")
    done = run("explain", layer, *(part.format(**names) for part in arguments), check=2)
    assert words.format(**names) in " ".join(done.stderr.split())


def test_a_saved_plan_is_explained_but_not_compared(layer: Path, tmp_path: Path) -> None:
    path = tmp_path / "layer.plan"
    bittrue.load(layer).prepare().plan.save(path)
    assert "accumulator" in run("explain", path, "-t", _tensor(layer), "-e", "0,0,0,0").stdout
    done = run("explain", path, "-t", _tensor(layer), "--against", "xnnpack", check=2)
    assert "a plan is fixed" in done.stderr


def test_a_part_of_a_name_that_one_tensor_has(tmp_path: Path) -> None:
    path = tmp_path / "digits.tflite"
    path.write_bytes(bittrue.demo_model())
    whole = json.loads(run("explain", path, "-t", "stem_1/Squeeze1", "-e", "0,0,0,0", "--json").stdout)
    assert whole["explanation"]["tensor"].endswith("digits_1/stem_1/Squeeze1")
    # Several tensors have this part: they are named, none is taken.
    error = run("explain", path, "-t", "Squeeze1", "-e", "0,0,0,0", check=2).stderr
    assert error.count("Squeeze1'") >= 3
