"""`bittrue inspect --saturation`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from support import emulated
from support.onnx_models import KIND, single


def example(path: Path, *, known: bool = True) -> Path:
    op_type, domain, inputs, attributes, out = emulated.known_example()
    constants = list(inputs)[1:] if known else []
    content, _ = single(op_type, inputs, [KIND[np.dtype(out)]], attributes, domain=domain, constants=constants)
    path.write_bytes(content)
    return path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["inspect", "--saturation", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.output


def test_text(tmp_path: Path) -> None:
    text = run(str(example(tmp_path / "model.onnx")))
    assert "1 layers of u8 by s8 products, 1 of them can saturate" in text
    for word in ("64770", "8 of 8", "127 to 127", "256,024"):
        assert word in text, word
    text = run(str(example(tmp_path / "late.onnx", known=False)))
    assert "known while running" in text


def test_json(tmp_path: Path) -> None:
    found = json.loads(run("--json", str(example(tmp_path / "model.onnx"))))
    assert found["numerics"] == "onnxruntime"
    (layer,) = found["layers"]
    assert layer["can_saturate"] is True
    assert layer["worst"] == {
        "channel": 0,
        "places": [0, 1],
        "quantized": [127, 127],
        "total": 64770,
        "reachable": True,
    }


def test_models_without_such_layers(tmp_path: Path) -> None:
    path = tmp_path / "digits.tflite"
    path.write_bytes(bittrue.demo_model())
    assert "0 layers of u8 by s8 products" in run(str(path))
