"""The text for one differing element holds what the style asks for, and its command replays the element."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from bittrue.explain.mismatch import mismatch_text
from support.layer_models import LAYERS


@pytest.mark.parametrize("executor", ["native", "reference"])
def test_everything_is_said_and_the_command_replays_it(tmp_path: Path, executor: str) -> None:
    path = tmp_path / "a layer.tflite"
    path.write_bytes(LAYERS["conv2d s8"]()[0])
    session = bittrue.load(path).prepare("litert", executor=executor)
    x = np.random.default_rng(1).integers(-128, 128, session.inputs[0].shape).astype(np.int8)
    np.save(tmp_path / "x.npy", x)
    values = session.trace(x)
    tensor = session.outputs[0].name
    stored = int(values[tensor][0, 1, 2, 3])
    text = mismatch_text(
        session, values, tensor, (0, 1, 2, 3), stored, stored + 1, str(path), f"--input {tmp_path / 'x.npy'}"
    )
    assert f"[0, 1, 2, 3]: expected {stored}, got {stored + 1}" in text
    for word in ("accumulator", "multiplier", "exponent", "zero point", "tie distance", "CONV_2D", "rescale="):
        assert word in text, word
    assert f"executor {executor}" in text
    arguments = shlex.split(next(line for line in text.splitlines() if "replay: " in line).partition("replay: ")[2])
    done = CliRunner().invoke(cli, [*arguments[1:], "--json"])
    assert json.loads(done.output)["explanation"]["stored"] == stored


def test_inputs_and_unknown_tensors_are_told_without_a_calculation() -> None:
    session = bittrue.load(LAYERS["conv2d s8"]()[0]).prepare()
    assert "an input" in mismatch_text(session, {}, session.inputs[0].name, (0, 0, 0, 0), 1, 2)
    assert "no value for" in mismatch_text(session, {}, session.outputs[0].name, (0, 0, 0, 0), 1, 2)
