"""ONNX Runtime's results as memory holds them: element types of fewer than 8 bits and 8-bit floats, too."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from bittrue.graph import data_type
from bittrue.graph.graph import unpack_integers

from .onnx_models import Refused, options

# What a session calls its types, where it is not ours.
_NAMES = {"tensor(float)": "f32", "tensor(double)": "f64", "tensor(bool)": "bool"}


def type_of(name: str) -> str:
    """Our short name of a session's type."""
    return _NAMES.get(name) or data_type(name[7:-1].replace("float8e", "float8_e")).name


def run_memory(content: bytes, feeds: Sequence[np.ndarray], level: str = "ALL") -> dict[str, np.ndarray] | Refused:
    """Output name to array in our types, or the error; outputs are read from the runtime's memory."""
    try:
        session = onnxruntime.InferenceSession(content, options(level), ["CPUExecutionProvider"])
        binding = session.io_binding()
        for value, array in zip(session.get_inputs(), feeds, strict=True):
            binding.bind_ortvalue_input(value.name, _value(np.asarray(array, order="C")))
        for value in session.get_outputs():
            binding.bind_output(value.name, "cpu")
        session.run_with_iobinding(binding)
        results = binding.get_outputs()
    except Exception as error:
        # The package raises many types of its own.
        return Refused(str(error))
    return {
        value.name: _array(result, type_of(value.type))
        for value, result in zip(session.get_outputs(), results, strict=True)
    }


def _value(array: np.ndarray) -> onnxruntime.OrtValue:
    """An operand, also of types that NumPy lacks and the runtime takes as bits."""
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    if kind < TensorProto.BFLOAT16:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(f"u{array.itemsize}"), kind)


def _array(result: onnxruntime.OrtValue, name: str) -> np.ndarray:
    dtype, shape = data_type(name), tuple(result.shape())
    count = int(np.prod(shape))
    size = (count * (dtype.bits if dtype.is_packed else 8 * dtype.numpy.itemsize) + 7) // 8
    raw = np.frombuffer(ctypes.string_at(result.data_ptr(), size) if size else b"", np.uint8)
    if dtype.is_packed:
        return unpack_integers(raw, dtype, count).reshape(shape)
    return raw.view(dtype.numpy).reshape(shape)
