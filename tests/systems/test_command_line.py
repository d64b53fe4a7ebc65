"""What users of the systems' files see: second files that are missing, swapped or damaged, and what `inspect` says."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.cli import main
from bittrue.conformance.recorded.mxnet_case import params_file
from bittrue.errors import BittrueError
from bittrue.importers.caffe2_schema import messages as caffe2_messages
from bittrue.importers.caffe_schema import messages as caffe_messages

CAFFE = b"""
input: "x" input_shape { dim: 1 dim: 2 dim: 4 dim: 4 }
layer { name: "fc" type: "InnerProduct" bottom: "x" top: "y"
        inner_product_param { num_output: 3 input_scale: 0.5 weight_scale: 0.25 output_scale: 2
          saturate: Signed_8bit } }
"""
PREDICT = b"""
op { type: "Int8Quantize" input: "x" output: "q" arg { name: "Y_scale" f: 0.05 } }
op { type: "Int8FC" input: "q" input: "w" input: "b" output: "y" arg { name: "Y_scale" f: 0.5 } }
external_input: "x" external_input: "w" external_input: "b"
external_output: "y"
"""
INIT = b"""
name: "init"
op { type: "Int8GivenTensorFill" output: "w" arg { name: "shape" ints: 1 ints: 2 }
     arg { name: "values" s: "\\310\\240" } arg { name: "Y_scale" f: 0.01 } arg { name: "Y_zero_point" i: 128 } }
op { type: "Int8GivenIntTensorFill" output: "b" arg { name: "shape" ints: 1 } arg { name: "values" ints: 40 }
     arg { name: "Y_scale" f: 0.0005 } }
"""
NODES = [
    {"op": "null", "name": "data", "inputs": []},
    {"op": "null", "name": "fc_weight", "inputs": []},
    {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "3", "no_bias": "True"}, "inputs": [[0, 0], [1, 0]]},
]
SYMBOL = json.dumps({"nodes": NODES, "arg_nodes": [0, 1], "heads": [[2, 0, 0]]}).encode()


def caffemodel() -> bytes:
    weights = caffe_messages()["NetParameter"]()
    layer = weights.layer.add(name="fc")
    for array in (np.arange(96).reshape(3, 32) - 48, np.arange(3)):
        blob = layer.blobs.add(data=array.reshape(-1).astype(float))
        blob.shape.dim.extend(array.shape)
    return weights.SerializeToString()


def binary(text: bytes) -> bytes:
    from google.protobuf import text_format

    return text_format.Parse(text.decode(), caffe2_messages()["NetDef"]()).SerializeToString()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Networks with their weights in folders of their own, so that nothing is found by chance."""
    contents = {
        "caffe/net.prototxt": CAFFE,
        "caffe/net.caffemodel": caffemodel(),
        "caffe2/predict_net.pb": binary(PREDICT),
        "caffe2/init_net.pb": binary(INIT),
        "mxnet/net-symbol.json": SYMBOL,
        "mxnet/net-0003.params": params_file({"arg:fc_weight": np.ones((3, 5), np.float32)}),
    }
    for name, content in contents.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        away = tmp_path / ("networks" if path.suffix in (".prototxt", ".json") else "weights")
        away.mkdir(exist_ok=True)
        (away / path.name.replace("net", "alone")).write_bytes(content)
    return tmp_path


@dataclass(frozen=True)
class Done:
    exit_code: int
    output: str


def run(*arguments: object) -> Done:
    """Exit code and what is printed, errors included."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out), pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    assert isinstance(caught.value.code, int | None)
    return Done(caught.value.code or 0, out.getvalue())


def test_second_file_beside(files: Path) -> None:
    for name, shape in (
        ("caffe/net.prototxt", "x=2,2,4,4"),
        ("caffe2/predict_net.pb", "x=3,2"),
        ("mxnet/net-symbol.json", "data=4,5"),
    ):
        plan = files / "saved.plan"
        done = run("plan", files / name, "--shape", shape, "--output", plan)
        assert done.exit_code == 0, done.output
        direct, planned = run("run", files / name, "--shape", shape), run("run", plan)
        assert direct.exit_code == planned.exit_code == 0
        assert direct.output == planned.output


@pytest.mark.parametrize(
    ("network", "weights", "shape", "words"),
    [
        ("networks/alone.prototxt", None, "", ["layer 'fc'", "pass the .caffemodel"]),
        ("weights/alone.caffemodel", None, "", ["this is a file of weights", ".prototxt"]),
        ("weights/alone.caffemodel", "networks/alone.prototxt", "", ["this is a file of weights", ".prototxt"]),
        ("networks/alone.prototxt", "weights/alone-0003.params", "", ["alone-0003.params: no Caffe weight file"]),
        ("weights/predict_alone.pb", None, "x=3,2", ["'w' is no Int8", "pass the init net"]),
        (
            "weights/predict_alone.pb",
            "weights/init_alone.pb",
            "",
            ["input 'x'", "does not say the shape", "--shape x=N,N,..."],
        ),
        (
            "weights/init_alone.pb",
            "weights/predict_alone.pb",
            "x=3,2",
            ["runs 'Int8Quantize'", "the model is the predict net"],
        ),
        ("weights/predict_alone.pb", "weights/alone.caffemodel", "x=3,2", ["alone.caffemodel: no init net"]),
        ("networks/alone-symbol.json", None, "data=4,5", ["input 'fc_weight'", "if it is a weight"]),
        (
            "networks/alone-symbol.json",
            "weights/alone.caffemodel",
            "data=4,5",
            ["alone.caffemodel, byte 0: no parameters of MXNet"],
        ),
        ("weights/alone-0003.params", None, "", ["parameters of MXNet", "pass the symbol"]),
    ],
)
def test_wrong_second_file(files: Path, network: str, weights: str | None, shape: str, words: list[str]) -> None:
    given = ["--weights", files / weights] if weights else []
    done = run("run", files / network, *given, *(["--shape", shape] if shape else []))
    assert done.exit_code in (2, 3)
    said = " ".join(done.output.split()).replace("('w')", "'w'")
    assert all(word in said for word in words), said


def test_truncated(files: Path) -> None:
    for network, weights in (
        ("networks/alone.prototxt", "weights/alone.caffemodel"),
        ("weights/predict_alone.pb", "weights/init_alone.pb"),
        ("networks/alone-symbol.json", "weights/alone-0003.params"),
    ):
        for damaged in (network, weights):
            content = (files / damaged).read_bytes()
            (files / damaged).write_bytes(content[: len(content) // 2])
            with pytest.raises(BittrueError) as caught:
                bittrue.load(files / network, files / weights)
            assert caught.value.code != "BT-FILE-WEIGHTS"
            if damaged == weights:
                assert weights.split("/")[1] in caught.value.place
            (files / damaged).write_bytes(content)


def test_inspect(files: Path) -> None:
    shown = run("inspect", files / "caffe2/predict_net.pb", "--tensors", "--nodes").output
    found = "numerics that have rows for all operators: caffe2, caffe2-avx2, caffe2-dnnlowp, caffe2-dnnlowp-avx2"
    assert found in " ".join(shown.split())
    assert all(word in shown for word in ("fully_connected", "Int8FC", "engine=''"))
    rows = re.findall(
        r"^ *\d* +([xqw]) +(?:float32|uint8) +(\?|\[.*?\])", shown.partition("what computes it")[2], re.MULTILINE
    )
    shapes = dict(rows)
    assert shapes == {"x": "?", "q": "?", "w": "[1, 2]"}
    found = json.loads(run("inspect", files / "mxnet/net-symbol.json", "--json").output)
    assert found["format"] == "mxnet"
    assert "mxnet" in found["numerics"]
    found = json.loads(run("inspect", files / "caffe/net.prototxt", "--json").output)
    assert found["numerics"] == ["snps_caffe", "snps_caffe-ev", "snps_caffe-sr", "snps_caffe-document"]


def test_bench_names_what_peers_do_not_read(files: Path) -> None:
    done = run("bench", files / "caffe2/predict_net.pb", "--shape", "x=3,2", "--rounds", 2, "--seconds", 0.2)
    said = " ".join(done.output.replace("│", " ").split())
    assert "a Caffe2 network" in said or "not installed" in said
    assert "pass the model itself" not in said


def test_random_levels_for_layers_on_whole_numbers(files: Path) -> None:
    done = run("run", files / "caffe/net.prototxt")
    assert done.exit_code == 0
    assert "input 'x': random levels 0..255, seed 0" in done.output


def test_operators_of_numerics(files: Path) -> None:
    done = run("numerics", "show", "caffe2", "--operator", "Int8Conv2d")
    said = " ".join(done.output.split())
    assert done.exit_code == 2
    assert "'Int8Conv2d' is no operator of caffe2 (did you mean 'conv'?" in said
    assert "bittrue inspect" in said
    done = run("numerics", "diff", "caffe2", "mxnet", "--operator", "nothing")
    assert done.exit_code == 2
    assert "no operator of caffe2 or mxnet" in " ".join(done.output.split())
