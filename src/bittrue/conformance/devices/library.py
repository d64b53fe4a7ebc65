"""Devices that are C shared libraries: a table of functions, described in ``include/bittrue_device.h``.

The library is loaded in a process of its own through ctypes.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Mapping, Sequence
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...graph import data_type
from ..suite import SuiteCase
from .facts import Operand, Value, operands, parameters
from .hosted import Host, Hosted, respond
from .model import DeviceModel
from .refused import Refused
from .values import OUTPUT_LIMIT, Failed, Unreadable, clean

ABI = 1
_OK, _REFUSED, _ERROR = 0, 1, 2
_ROLES = ("input", "constant", "output", "inner")
_TEXT_BYTES = 4096
# Around every output, to see whether something is written beside it.
_GUARD_BYTES = 4096
# Outputs hold one of these before a run: an element that a device leaves out changes from run to run.
_FILLS = (0xA5, 0x5A, 0x3C)


class _Tensor(Structure):
    _fields_ = (
        ("name", c_char_p),
        ("role", c_int32),
        ("position", c_int32),
        ("type", c_char_p),
        ("rank", c_int32),
        ("axis", c_int32),
        ("shape", POINTER(c_int64)),
        ("scale_count", c_int32),
        ("reserved", c_int32),
        ("scales", POINTER(c_double)),
        ("zero_points", POINTER(c_int64)),
        ("data", c_void_p),
        ("bytes", c_size_t),
    )


class _Parameter(Structure):
    _fields_ = (
        ("name", c_char_p),
        ("kind", c_int32),
        ("reserved", c_int32),
        ("count", c_size_t),
        ("integers", POINTER(c_int64)),
        ("reals", POINTER(c_double)),
        ("text", c_char_p),
    )


class _Model(Structure):
    _fields_ = (
        ("identity", c_char_p),
        ("operator_name", c_char_p),
        ("types", c_char_p),
        ("format", c_char_p),
        ("content", c_void_p),
        ("content_bytes", c_size_t),
        ("tensor_count", c_size_t),
        ("tensors", POINTER(_Tensor)),
        ("parameter_count", c_size_t),
        ("parameters", POINTER(_Parameter)),
        ("description", c_char_p),
    )


class _Buffer(Structure):
    _fields_ = (("data", c_void_p), ("bytes", c_size_t))


_LOAD = ctypes.CFUNCTYPE(c_int, POINTER(_Model), POINTER(c_void_p), c_void_p, c_size_t)
_RUN = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(_Buffer), c_size_t, POINTER(_Buffer), c_size_t, c_void_p, c_size_t)
_UNLOAD = ctypes.CFUNCTYPE(None, c_void_p)


class _Table(Structure):
    _fields_ = (
        ("abi", c_uint32),
        ("size", c_uint32),
        ("title", c_char_p),
        ("reads", c_char_p),
        ("load", _LOAD),
        ("run", _RUN),
        ("unload", _UNLOAD),
    )


def device_header() -> str:
    """Path of ``bittrue_device.h``, the contract of C libraries; its folder goes to the compiler with ``-I``."""
    return str(Path(__file__).parent / "include" / "bittrue_device.h")


class LibraryDevice(Hosted):
    """A shared library in a process of its own.

    Args:
        spec: what the user typed.
        path: of the library.
        timeout: seconds for one case.
    """

    def __init__(self, spec: str, path: str, timeout: float) -> None:
        super().__init__(spec, Path(path).name, __name__, {"library": os.path.abspath(path)}, timeout)


class _Library(Host):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        try:
            # Symbols stay the library's own, and all of them must be there.
            self._library = ctypes.CDLL(settings["library"], mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            raise UnsupportedError("BT-DEVICE-LIBRARY", f"the library cannot be loaded: {error}") from None
        try:
            function = self._library.bittrue_device_table
        except AttributeError:
            text = "the library exports no function bittrue_device_table"
            advice = 'see bittrue_device.h; C++ libraries need extern "C"'
            raise UnsupportedError("BT-DEVICE-LIBRARY", text, advice=advice) from None
        function.restype, function.argtypes = POINTER(_Table), ()
        pointer = function()
        if not pointer:
            raise UnsupportedError("BT-DEVICE-LIBRARY", "bittrue_device_table returned nothing (NULL)")
        self._table = pointer.contents
        found = self._table.abi, self._table.size
        if found != (ABI, ctypes.sizeof(_Table)):
            text = f"its table says ABI {found[0]} and {found[1]} bytes, this bittrue has {ABI} and "
            advice = f"build it with {device_header()}"
            raise UnsupportedError("BT-DEVICE-LIBRARY", f"{text}{ctypes.sizeof(_Table)}", advice=advice)
        if not (self._table.load and self._table.run and self._table.unload):
            raise UnsupportedError("BT-DEVICE-LIBRARY", "one of load, run and unload is missing (NULL)")
        self.title = _text(self._table.title)
        self.reads = tuple(filter(None, (kind.strip() for kind in _text(self._table.reads).split(","))))
        self._runs = 0

    def run(self, case: SuiteCase, path: Path) -> Mapping[str, np.ndarray]:
        model = DeviceModel(case, path)
        every = operands(model, case.inputs)
        # Everything that the library sees must live as long as it may look.
        kept: list[Any] = []
        shown = _model(model, every, kept)
        state, text = c_void_p(), ctypes.create_string_buffer(_TEXT_BYTES)
        _check("load", self._table.load(shown, ctypes.byref(state), text, _TEXT_BYTES), text)
        try:
            return self._run(state, every, kept)
        finally:
            self._table.unload(state)

    def _run(self, state: c_void_p, every: Sequence[Operand], kept: list[Any]) -> dict[str, np.ndarray]:
        inputs = [operand.value for operand in every if operand.role == "input" and operand.value is not None]
        outputs = [_Output(operand, self._runs) for operand in every if operand.role == "output"]
        self._runs += 1
        given = (_Buffer * len(inputs))(*(_buffer(value, kept) for value in inputs))
        wanted = (_Buffer * len(outputs))(*(output.buffer for output in outputs))
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        status = self._table.run(state, given, len(inputs), wanted, len(outputs), text, _TEXT_BYTES)
        _check("run", status, text)
        return {output.operand.name: output.value() for output in outputs}


class _Output:
    """Room for one output between guards."""

    def __init__(self, operand: Operand, number: int) -> None:
        self.operand = operand
        self._dtype = data_type(operand.dtype).numpy
        if any(dimension < 0 for dimension in operand.shape):
            raise Unreadable(f"the shape of output '{clean(operand.name)}' is not known before it runs")
        size = self._dtype.itemsize * int(np.prod(operand.shape, dtype=object))
        if size > OUTPUT_LIMIT:
            raise Unreadable(f"output '{clean(operand.name)}' would take {size:,} bytes")
        self._fill = _FILLS[number % len(_FILLS)]
        self._memory = np.full(size + 2 * _GUARD_BYTES, self._fill, np.uint8)
        self._inside = slice(_GUARD_BYTES, _GUARD_BYTES + size)
        self.buffer = _Buffer(self._memory[_GUARD_BYTES:].ctypes.data, size)

    def value(self) -> np.ndarray:
        """What was written; Unreadable when something was written beside it."""
        guards = {
            "before the beginning": self._memory[: self._inside.start],
            "past the end": self._memory[self._inside.stop :],
        }
        for where, guard in guards.items():
            if np.any(guard != self._fill):
                raise Unreadable(f"it wrote {where} of output '{clean(self.operand.name)}'")
        return self._memory[self._inside].copy().view(self._dtype).reshape(self.operand.shape)


def _check(function: str, status: int, text: Any) -> None:
    said = clean(text.value.decode(errors="replace"))
    if status == _OK:
        return
    if status == _REFUSED:
        raise Refused(said)
    if status == _ERROR:
        raise Failed(said or f"{function} failed and does not say why")
    raise Failed(f"{function} returned {status}, which is no status{f': {said}' if said else ''}")


def _model(model: DeviceModel, every: Sequence[Operand], kept: list[Any]) -> _Model:
    tensors = (_Tensor * len(every))(*(_tensor(operand, kept) for operand in every))
    known = parameters(model)
    listed = (_Parameter * len(known))(*(_parameter(name, value, kept) for name, value in known.items()))
    content = np.frombuffer(model.bytes, np.uint8)
    # Kernels read constants where they lie in the file, which starts at a multiple of 64 here.
    memory = np.zeros(content.size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    memory[start : start + content.size] = content
    kept += [tensors, listed, memory]
    return _Model(
        *(value.encode() for value in (model.identity, model.operator, model.types, model.format)),
        memory.ctypes.data + start,
        content.size,
        len(every),
        tensors,
        len(known),
        listed,
        json.dumps(model.description).encode(),
    )


def _tensor(operand: Operand, kept: list[Any]) -> _Tensor:
    shape, points = ((c_int64 * len(v))(*v) for v in (operand.shape, operand.zero_point))
    scales = (c_double * len(operand.scale))(*operand.scale)
    kept += [shape, points, scales]
    constant = operand.role == "constant" and operand.value is not None
    data = _buffer(operand.value, kept) if constant and operand.value is not None else None
    size = data_type(operand.dtype).numpy.itemsize * int(np.prod(operand.shape, dtype=object))
    return _Tensor(
        operand.name.encode(),
        _ROLES.index(operand.role),
        -1 if operand.position is None else operand.position,
        operand.dtype.encode(),
        len(operand.shape),
        -1 if operand.axis is None else operand.axis,
        shape,
        len(operand.scale),
        0,
        scales,
        points,
        data.data if data is not None else None,
        data.bytes if data is not None else max(size, 0),
    )


def _parameter(name: str, value: Value, kept: list[Any]) -> _Parameter:
    if isinstance(value, str):
        text = value.encode()
        return _Parameter(name.encode(), 2, 0, len(text), None, None, text)
    if all(isinstance(one, int) for one in value):
        integers = (c_int64 * len(value))(*map(int, value))
        kept.append(integers)
        return _Parameter(name.encode(), 0, 0, len(value), integers, None, None)
    reals = (c_double * len(value))(*value)
    kept.append(reals)
    return _Parameter(name.encode(), 1, 0, len(value), None, reals, None)


def _buffer(value: np.ndarray, kept: list[Any]) -> _Buffer:
    # A copy: what a device does to its inputs stays there.
    copy = np.array(value, order="C")
    kept.append(copy)
    return _Buffer(copy.ctypes.data, copy.nbytes)


def _text(value: bytes | None) -> str:
    return clean((value or b"").decode(errors="replace"))


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """What the device's process does."""
    return respond(request, _Library)
