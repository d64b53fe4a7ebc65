"""The ready-made devices: runtimes that are installed here give their own bits, refuse, abort, and come back."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from onnx import TensorProto, helper

import bittrue
from bittrue.conformance.devices.opening import open_device
from bittrue.conformance.expected import Expected, same_bytes
from bittrue.conformance.suite import SuiteCase, find_suite
from bittrue.conformance.suite.tflite import Operand, one_operator
from support.device_cases import case, unreadable_case

TITLES = {
    "litert": "reference kernels (BUILTIN_REF)",
    "litert:optimized": "optimised kernels (BUILTIN_WITHOUT_DEFAULT_DELEGATES)",
    "litert:xnnpack": "with XNNPACK (AUTO)",
}


def telling() -> SuiteCase:
    """An ADD that LiteRT's three ways answer in three ways."""
    for found in find_suite("litert").cases(operators=("ADD",)):
        expected = Expected(found, ("litert", "litert-optimized", "xnnpack"))
        answers = [expected.outputs(name)["output0"].tobytes() for name in ("litert", "litert-optimized", "xnnpack")]
        if len(set(answers)) == 3:
            return found
    raise AssertionError("no ADD of the suite tells the three apart")


def test_each_resolver_gives_its_own_bits() -> None:
    asked = telling()
    for spec, title in TITLES.items():
        device = open_device(spec, timeout=60)
        answer = device.answer(asked)
        assert title in device.title
        assert device.reads == ("tflite",)
        expected = Expected(asked).outputs(device.numerics)
        assert answer.status == "outputs", answer.text
        assert same_bytes(dict(answer.outputs), expected)
        ours = open_device(f"bittrue:{device.numerics}")
        assert same_bytes(dict(ours.answer(asked).outputs), expected)
        device.close()


def aborting() -> SuiteCase:
    """LiteRT's reference kernel writes shapes of more axes than it has room for."""
    shape = (1,) * 8 + (2,)
    x, y = Operand("s8", shape, 0.5), Operand("s8", (*shape[:-1], 1), 0.5)
    content = one_operator("SUB", [x, y], [x], {})
    inputs = {"input0": np.zeros(shape, np.int8), "input1": np.zeros((1,) * 9, np.int8)}
    return SuiteCase("SUB/s8/shapes/999", "litert", "SUB", "s8", "shapes", "tflite", content, inputs)


def test_an_abort_is_an_answer_and_the_next_case_works() -> None:
    device = open_device("litert", timeout=60)
    answer = device.answer(aborting())
    assert (answer.status, dict(answer.outputs)) == ("crashed", {}), answer
    assert "died of SIG" in answer.text
    assert device.answer(case("RESHAPE")).status == "outputs"
    device.close()


def test_what_a_runtime_raises_is_its_refusal() -> None:
    device = open_device("litert:xnnpack", timeout=60)
    answer = device.answer(unreadable_case())
    assert answer.status == "refused"
    assert "flatbuffer" in answer.text.lower()
    # Constants of another shape than the output's.
    target = Operand("s32", (1,), data=np.array([7], np.int32))
    x, y = Operand("s8", (2, 3), 0.5), Operand("s8", (7,), 0.5)
    content = one_operator("RESHAPE", [x, target], [y], {"new_shape": (7,)})
    inputs = {"input0": np.zeros((2, 3), np.int8)}
    asked = SuiteCase("RESHAPE/s8/rejects/9", "litert", "RESHAPE", "s8", "rejects", "tflite", content, inputs, "", "7")
    answer = device.answer(asked)
    assert answer.status == "refused"
    assert answer.text
    device.close()


def quantizer() -> SuiteCase:
    """QuantizeLinear of real numbers around ties."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [8])
    y = helper.make_tensor_value_info("y", TensorProto.INT8, [8])
    constants = [
        helper.make_tensor("scale", TensorProto.FLOAT, [], [2.0]),
        helper.make_tensor("zero", TensorProto.INT8, [], [3]),
    ]
    node = helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    values = np.array([-5, -3, -1, 0, 1, 3, 5, 1e9], np.float32)
    words = ("QuantizeLinear/s8/ties/000", "onnx", "QuantizeLinear", "s8", "ties", "onnx")
    return SuiteCase(*words, model.SerializeToString(), {"x": values})


@pytest.mark.parametrize("spec", ["ort", "onnxruntime?level=disable&threads=2", "openvino", "bittrue:onnxruntime"])
def test_onnx_models(spec: str) -> None:
    if spec == "openvino" and importlib.util.find_spec("openvino") is None:
        pytest.skip("openvino is not installed here")
    device = open_device(spec, timeout=60)
    answer = device.answer(quantizer())
    assert answer.status == "outputs", answer.text
    assert answer.outputs["y"].dtype == np.int8
    # Ties to even; OpenVINO adds the zero point before it rounds.
    expected = [0, 2, 2, 3, 4, 4, 6, 127] if spec == "openvino" else [1, 1, 3, 3, 3, 5, 5, 127]
    assert answer.outputs["y"].tolist() == expected
    if spec == "ort":
        other = device.answer(case("RESHAPE"))
        assert (other.status, other.text) == ("refused", "reads .onnx, this is .tflite")
    device.close()


def test_openvino_reads_tflite() -> None:
    if importlib.util.find_spec("openvino") is None:
        pytest.skip("openvino is not installed here")
    device = open_device("openvino?threads=1", timeout=60)
    answer = device.answer(case("RESHAPE"))
    assert same_bytes(dict(answer.outputs), Expected(case("RESHAPE")).outputs("litert"))
    device.close()


def test_a_missing_runtime_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bittrue.runners.base.Peer.version", lambda self: None)
    with pytest.raises(bittrue.UnsupportedError, match="pip install openvino"):
        open_device("openvino")


def test_bittrue_refuses_what_it_cannot_run() -> None:
    answer = open_device("bittrue:litert").answer(unreadable_case())
    assert answer.status == "refused"
    assert "BT-" in answer.text
