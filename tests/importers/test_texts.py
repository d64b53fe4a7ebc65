"""Texts of protobuf files that are not UTF-8: the package hands them out as bytes, and no name may be that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import bittrue
from bittrue.errors import BittrueError, ModelFormatError
from bittrue.importers.caffe2_schema import messages as caffe2_messages
from bittrue.importers.caffe_schema import messages as caffe_messages
from bittrue.importers.protobuf import check_texts

MARK = "MARKED"


def onnx_model() -> Any:
    onnx = pytest.importorskip("onnx")
    from onnx import helper

    info = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, "n"])
    inner = helper.make_graph([], "inner", [], [info], [helper.make_tensor("x", 1, [1], [1.0])])
    node = helper.make_node("If", ["x"], ["y"], "node", then_branch=inner, else_branch=inner)
    graph = helper.make_graph([node], "graph", [info], [info])
    graph.quantization_annotation.add().tensor_name = "x"
    return helper.make_model(graph)


def caffe2_model() -> Any:
    net = caffe2_messages()["NetDef"]()
    net.name = "net"
    operator = net.op.add(type="Relu", name="r")
    operator.input.append("x")
    operator.output.append("y")
    operator.arg.add(name="order")
    net.external_input.append("x")
    net.external_output.append("y")
    return net


def caffe_model() -> Any:
    net = caffe_messages()["NetParameter"]()
    net.name = "net"
    net.input.append("x")
    net.layer.add(name="l", type="ReLU").bottom.append("x")
    net.layer[0].top.append("y")
    return net


def texts(message: Any) -> Iterator[tuple[Any, str, int | None]]:
    """Every text of a message: where it is."""
    for field, value in message.ListFields():
        repeated = hasattr(value, "extend")
        if field.type == field.TYPE_STRING:
            yield from ((message, field.name, i if repeated else None) for i in range(len(value) if repeated else 1))
        elif field.type == field.TYPE_MESSAGE:
            for part in value if repeated else (value,):
                yield from texts(part)


@pytest.mark.parametrize("make", [onnx_model, caffe2_model, caffe_model])
def test_every_text_is_checked(make: Any) -> None:
    check_texts(make(), "BT-X")
    count = len(list(texts(make())))
    assert count >= 6
    for number in range(count):
        message = make()
        owner, name, index = list(texts(message))[number]
        if index is None:
            setattr(owner, name, MARK)
        else:
            getattr(owner, name)[index] = MARK
        damaged = message.SerializeToString().replace(MARK.encode(), b"d\xff\x1bta\x9b")
        again = type(message)()
        again.ParseFromString(damaged)
        if name == "doc_string":
            check_texts(again, "BT-X")
            continue
        with pytest.raises(ModelFormatError, match="not UTF-8") as raised:
            check_texts(again, "BT-X", "file")
        assert name in raised.value.message
        assert str(raised.value).isprintable()
        with pytest.raises(BittrueError) as refused:
            bittrue.load(damaged)
        assert "\x1b" not in str(refused.value)
