"""Values and bindings: what programs hand to a session instead of arrays, and get back."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..quantization import named_type
from .sessions import ArgumentError

Run = Callable[[Sequence[str], Mapping[str, np.ndarray]], Sequence[np.ndarray]]


def _check_device(device_type: str) -> None:
    if str(device_type).lower() != "cpu":
        raise ArgumentError("BT-COMPAT-DEVICE", f"there is no device '{device_type}'", advice="use 'cpu'")


class OrtValue:
    """An array in the main memory, under the names of onnxruntime.OrtValue."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """The array itself, not a copy, where its elements lie in order."""
        _check_device(device_type)
        return OrtValue(np.asarray(numpy_obj, order="C"))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """Room for a result; zeros until then."""
        _check_device(device_type)
        return OrtValue(np.zeros(tuple(shape), np.dtype(element_type)))

    def numpy(self) -> np.ndarray:
        """The array."""
        return self._array

    def update_inplace(self, np_arr: np.ndarray) -> None:
        """Other elements; ArgumentError for another type or shape."""
        _write(self, np.asarray(np_arr), "update_inplace")

    def shape(self) -> list[int]:
        """The dimensions."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """The type in ONNX's words, as ``"tensor(float)"``."""
        return type_name(named_type(self._array.dtype).title)

    def data_ptr(self) -> int:
        """The address of the first element, valid as long as the value is."""
        return int(self._array.ctypes.data)

    def device_name(self) -> str:
        """Where it lies."""
        return "cpu"

    def has_value(self) -> bool:
        """It always has."""
        return True

    def is_tensor(self) -> bool:
        """It always is."""
        return True

    def is_sparse_tensor(self) -> bool:
        """It never is."""
        return False

    def is_tensor_sequence(self) -> bool:
        """It never is."""
        return False


def type_name(title: str) -> str:
    """``tensor(...)`` of a type's title."""
    title = {"float32": "float", "float64": "double"}.get(title, title)
    return f"tensor({title.replace('_', '') if title.startswith('float') else title})"


def _write(to: OrtValue, array: np.ndarray, place: str) -> None:
    room = to.numpy()
    if (room.dtype, room.shape) != (array.dtype, array.shape):
        raise ArgumentError(
            "BT-COMPAT-ROOM",
            f"{array.dtype}{list(array.shape)} does not fit where {room.dtype}{list(room.shape)} is",
            place=place,
        )
    room[...] = array


def _at(pointer: int, element_type: Any, shape: Sequence[int]) -> OrtValue:
    dtype, sizes = np.dtype(element_type), tuple(int(size) for size in shape)
    if not pointer or min(sizes, default=0) < 0:
        raise ArgumentError("BT-COMPAT-ROOM", f"nothing of shape {list(sizes)} lies at address {pointer}")
    room = (ctypes.c_char * (math.prod(sizes) * dtype.itemsize)).from_address(pointer)
    return OrtValue(np.frombuffer(room, dtype).reshape(sizes))


class IOBinding:
    """Inputs and outputs of one session, kept between runs, under the names of onnxruntime.IOBinding.

    Args:
        outputs: names of the session's outputs.
        run: runs the session.
    """

    def __init__(self, outputs: Sequence[str], run: Run) -> None:
        self._known, self._run = tuple(outputs), run
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """An array as an input."""
        self._inputs[name] = OrtValue.ortvalue_from_numpy(arr_on_cpu)

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Memory of the caller's, which has to stay valid, as an input."""
        _check_device(device_type)
        self._inputs[name] = _at(buffer_ptr, element_type, shape)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """A value as an input."""
        self._inputs[name] = ortvalue

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """An output that is wanted; with `buffer_ptr`, memory of the caller's for it."""
        _check_device(device_type)
        room = None if buffer_ptr is None else _at(buffer_ptr, element_type, shape or ())
        self._bind(name, room)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """An output that is wanted, and the value that takes it."""
        self._bind(name, ortvalue)

    def _bind(self, name: str, room: OrtValue | None) -> None:
        if name not in self._known:
            raise ArgumentError("BT-OUTPUT-NAME", f"'{name}' is no output", advice=f"outputs: {', '.join(self._known)}")
        self._outputs[name] = room

    def belongs_to(self, run: Run) -> bool:
        """Whether it was made for the session with this method."""
        return self._run == run

    def run(self) -> None:
        """Run the session on the inputs; the results are what `get_outputs` returns then."""
        if not self._outputs:
            raise ArgumentError(
                "BT-COMPAT-BINDING", "no output is bound", advice="bind_output(name) says what is wanted"
            )
        results = self._run(list(self._outputs), {name: value.numpy() for name, value in self._inputs.items()})
        self._results = []
        for (name, room), array in zip(self._outputs.items(), results, strict=True):
            if room is not None:
                _write(room, array, f"output '{name}'")
            self._results.append(OrtValue(array) if room is None else room)

    def get_outputs(self) -> list[OrtValue]:
        """Results in the order in which they were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """Copies of the results."""
        return [value.numpy().copy() for value in self._results]

    def synchronize_inputs(self) -> None:
        """Nothing is on its way."""

    def synchronize_outputs(self) -> None:
        """Nothing is on its way."""

    def clear_binding_inputs(self) -> None:
        """Forget all inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget all outputs."""
        self._outputs.clear()
        self._results.clear()
