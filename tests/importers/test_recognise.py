"""What a file is, told from its first bytes, and where its weights lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bittrue.errors import ModelFormatError
from bittrue.importers import companion
from bittrue.importers.protobuf import message_classes, parse, top_fields
from bittrue.importers.recognise import format_of

NET = message_classes(
    "recognise_test",
    {
        "Layers": "string name = 1, repeated Inner layer = 100",
        "Operators": "string name = 1, repeated Inner op = 2, repeated string external_input = 7",
        "Nodes": "repeated Inner node = 1, Inner library = 2",
        "Inner": "string name = 1, repeated float numbers = 2 packed, Kind kind = 3 default SECOND",
    },
    {"Kind": "FIRST = 0, SECOND = 1"},
)


def look(content: bytes) -> str:
    return format_of(np.frombuffer(content, np.uint8))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('name: "net"\nlayer {\n name: "a" }', "caffe"),
        ('# a comment\ninput: "data"\ninput_dim: 1\n', "caffe"),
        ('name: "net"\nop {\n  input: "x"\n}', "caffe2"),
        ('{"nodes": [{"op": "null", "name": "data"}], "arg_nodes": [0], "heads": [[0, 0, 0]]}', "mxnet"),
        ('\n {"nodes": 3}', "tflite"),
        ("layer of dust", "tflite"),
        ("", "tflite"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    assert look(text.encode()) == expected


def test_binary_messages() -> None:
    inner = NET["Inner"](name="x", numbers=[1, 2])
    assert look(NET["Layers"](name="n", layer=[inner]).SerializeToString()) == "caffe"
    assert look(NET["Operators"](name="n", op=[inner, inner]).SerializeToString()) == "caffe2"
    assert look(NET["Operators"](op=[inner], external_input=["x"]).SerializeToString()) == "caffe2"
    assert look(NET["Nodes"](node=[inner, inner], library=inner).SerializeToString()) == "tflite"
    cut = NET["Operators"](name="n", op=[inner, inner]).SerializeToString()[:-1]
    assert top_fields(cut) == []
    assert look(cut) == "tflite"


@pytest.mark.parametrize("content", [b"\x0a\xff", b"\x0a\x80\x80", b"\x00\x01", b"\x0b", b"\x0a" + b"\xff" * 12])
def test_no_messages(content: bytes) -> None:
    assert top_fields(content) == []


def test_messages_of_both_forms() -> None:
    inner = NET["Inner"](name="x", numbers=[1, 2.5])
    for content in (inner.SerializeToString(), str(inner).encode()):
        read = parse(NET["Inner"], content, "inner message")
        assert (read.name, list(read.numbers), read.kind) == ("x", [1, 2.5], 1)
    for content in (b"name: 3", b"\xff\xff", b"nothing: 1", b'name: "\xff"'):
        with pytest.raises(ModelFormatError, match="no inner message"):
            parse(NET["Inner"], content, "inner message")


@pytest.mark.parametrize(
    ("model", "beside", "expected"),
    [
        ("net.prototxt", ["net.caffemodel", "other.caffemodel"], "net.caffemodel"),
        ("net_deploy.prototxt", ["net.caffemodel"], "net.caffemodel"),
        ("predict_net.pb", ["init_net.pb"], "init_net.pb"),
        ("small_predict_net.pbtxt", ["small_init_net.pb", "init_net.pb"], "small_init_net.pb"),
        ("net-symbol.json", ["net-0003.params", "net-0012.params", "nets-0099.params"], "net-0012.params"),
        ("net-symbol.json", [], None),
        ("net.tflite", ["net.caffemodel"], None),
    ],
)
def test_companions(tmp_path: Path, model: str, beside: list[str], expected: str | None) -> None:
    for name in [model, *beside]:
        (tmp_path / name).touch()
    assert companion(tmp_path / model) == (None if expected is None else str(tmp_path / expected))
