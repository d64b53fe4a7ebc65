"""Values and bindings: the same programs with ONNX Runtime's module and with bittrue's."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import bittrue
import bittrue.compat
from support.onnx_models import build

_X = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)
_MODULES = pytest.mark.parametrize("module", [onnxruntime, bittrue.compat])


def _session(module: Any) -> Any:
    """y = relu(x) and z = x + x."""
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Add", ["x", "x"], ["z"])]
    content, _ = build(nodes, {"x": _X}, {"y": TensorProto.FLOAT, "z": TensorProto.FLOAT})
    return module.InferenceSession(content, providers=module.get_available_providers())


@_MODULES
def test_values(module: Any) -> None:
    value = module.OrtValue.ortvalue_from_numpy(_X)
    assert (value.shape(), value.data_type(), value.device_name()) == ([2, 4], "tensor(float)", "cpu")
    assert (value.has_value(), value.is_tensor(), value.is_sparse_tensor()) == (True, True, False)
    results = _session(module).run_with_ort_values(["z", "y"], {"x": value})
    assert [result.numpy().tolist() for result in results] == [(2 * _X).tolist(), np.maximum(_X, 0).tolist()]
    room = module.OrtValue.ortvalue_from_shape_and_type([3], np.int8, "cpu", 0)
    room.update_inplace(np.int8([1, 2, 3]))
    assert (room.numpy().tolist(), room.data_type()) == ([1, 2, 3], "tensor(int8)")


@_MODULES
def test_arrays_bound(module: Any) -> None:
    session = _session(module)
    binding = session.io_binding()
    binding.bind_cpu_input("x", _X)
    binding.bind_output("z")
    binding.bind_output("y", "cpu")
    session.run_with_iobinding(binding)
    assert [array.tolist() for array in binding.copy_outputs_to_cpu()] == [
        (2 * _X).tolist(),
        np.maximum(_X, 0).tolist(),
    ]
    assert [value.shape() for value in binding.get_outputs()] == [[2, 4], [2, 4]]


@_MODULES
def test_memory_bound(module: Any) -> None:
    session, x = _session(module), module.OrtValue.ortvalue_from_numpy(_X)
    room = module.OrtValue.ortvalue_from_shape_and_type([2, 4], np.float32)
    other = module.OrtValue.ortvalue_from_shape_and_type([2, 4], np.float32)
    binding = session.io_binding()
    binding.bind_input("x", x.device_name(), 0, np.float32, x.shape(), x.data_ptr())
    binding.bind_output("y", "cpu", 0, np.float32, room.shape(), room.data_ptr())
    binding.bind_ortvalue_output("z", other)
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    assert room.numpy().tolist() == np.maximum(_X, 0).tolist()
    assert other.numpy().tolist() == (2 * _X).tolist()
    binding.clear_binding_outputs()
    binding.bind_ortvalue_input("x", module.OrtValue.ortvalue_from_numpy(-_X))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == np.maximum(-_X, 0).tolist()


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (lambda b: b.bind_output("q"), "BT-OUTPUT-NAME"),
        (lambda b: b.bind_output("y", "cuda"), "BT-COMPAT-DEVICE"),
        (lambda b: b.bind_output("y", "cpu", 0, np.float32, [2, 4], 0), "BT-COMPAT-ROOM"),
        (
            lambda b: b.bind_ortvalue_output("y", bittrue.compat.OrtValue(np.zeros((2, 3), np.float32))),
            "BT-COMPAT-ROOM",
        ),
        (lambda b: b.clear_binding_inputs(), "BT-INPUT-MISSING"),
        (lambda b: b.clear_binding_outputs(), "BT-COMPAT-BINDING"),
        (lambda b: _session(bittrue.compat).run_with_iobinding(b), "BT-COMPAT-BINDING"),
    ],
)
def test_what_cannot_be_bound(wrong: Any, code: str) -> None:
    session = _session(bittrue.compat)
    binding = session.io_binding()
    binding.bind_cpu_input("x", _X)
    binding.bind_output("y")

    def program() -> None:
        wrong(binding)
        session.run_with_iobinding(binding)

    with pytest.raises(bittrue.InputError, match=code):
        program()
