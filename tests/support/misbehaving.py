"""Devices in Python that go wrong on RESHAPE, each in its way, and are right on SQUEEZE."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bittrue.conformance.devices import Refused


def right(model: Any, inputs: dict[str, np.ndarray]) -> np.ndarray:
    (value,) = inputs.values()
    return value.reshape(model.outputs[0].shape)


def _wrong(behave: Callable[[np.ndarray], Any]) -> Callable[[Any, dict[str, np.ndarray]], Any]:
    def device(model: Any, inputs: dict[str, np.ndarray]) -> Any:
        value = right(model, inputs)
        return behave(value) if model.operator == "RESHAPE" else value

    return device


def _raise(error: BaseException) -> Any:
    raise error


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class NoArray:
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("not today")


class Odd:
    """Gives a text where NumPy asks for an array."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        return "an array"


def _recurse(value: Any) -> Any:
    return [_recurse(value)]


def _print(value: np.ndarray) -> np.ndarray:
    print('{"status": "outputs"}\n' * 1000)
    os.write(1, b"\xff\x00garbage\n" * 1000)
    os.write(2, b"\xfe\n")
    return value


def _scribble(value: np.ndarray) -> np.ndarray:
    for descriptor in range(3, 40):
        try:
            os.write(descriptor, b"garbage\n")
        except OSError:
            continue
    return value


def _overwrite(value: np.ndarray) -> np.ndarray:
    kept = value.copy()
    value[...] = 77
    return kept


def _read(value: np.ndarray) -> np.ndarray:
    return value if sys.stdin.read() == "" else value[:0]


segfault = _wrong(lambda value: ctypes.string_at(0))
abort = _wrong(lambda value: os.abort())
leave = _wrong(lambda value: os._exit(0))
say_goodbye = _wrong(lambda value: sys.exit("goodbye"))
sleep = _wrong(lambda value: time.sleep(1000))
spin = _wrong(lambda value: [0 for _ in iter(int, 1)])
close_all = _wrong(lambda value: os.closerange(0, 100))
scribble = _wrong(_scribble)
raise_error = _wrong(lambda value: _raise(ValueError("no\x1b[31m\nluck")))
raise_mute = _wrong(lambda value: _raise(Mute()))
raise_base = _wrong(lambda value: _raise(GeneratorExit("strange")))
recurse = _wrong(_recurse)
refuse = _wrong(lambda value: _raise(Refused("not my size")))
unwritten = _wrong(lambda value: _raise(NotImplementedError("later")))
nothing = _wrong(lambda value: None)
text = _wrong(lambda value: "output0")
number_list = _wrong(lambda value: value.reshape(-1).tolist())
objects = _wrong(lambda value: value.astype(object))
texts = _wrong(lambda value: value.astype(str))
structures = _wrong(lambda value: value.view([("a", np.int8)]))
the_class = _wrong(lambda value: np.ndarray)
no_array = _wrong(lambda value: NoArray())
odd_array = _wrong(lambda value: Odd())
numbered_keys = _wrong(lambda value: {0: value})
empty = _wrong(lambda value: {})
two_outputs = _wrong(lambda value: (value, value))
endless = _wrong(lambda value: np.broadcast_to(value.reshape(-1)[:1], (1 << 40,)))
lazy = _wrong(lambda value: (one for one in [value]))
noise = _wrong(_print)
overwrite = _wrong(_overwrite)
read_input = _wrong(_read)
flat = _wrong(lambda value: value.reshape(-1))
real = _wrong(lambda value: value.astype(np.float64))
other_name = _wrong(lambda value: {"another": value})
big_endian = _wrong(lambda value: value.astype(">i2"))
strided = _wrong(lambda value: np.asfortranarray(value))
by_name = _wrong(lambda value: {"output0": value})
in_order = _wrong(lambda value: [value])


class Methods:
    """Three methods."""

    title = "three methods, 1.0"
    reads = ("tflite",)

    def __init__(self) -> None:
        self.model: Any = None
        self.closed = 0

    def load(self, model: Any) -> None:
        if model.operator == "RESHAPE" and "codes" not in model.identity:
            raise Refused("codes only")
        self.model = model

    def run(self, inputs: dict[str, np.ndarray]) -> Any:
        return [right(self.model, inputs)]

    def close(self) -> None:
        self.closed += 1


class Half:
    """No device: a method is missing."""

    def load(self, model: Any) -> None:
        """Nothing."""


device = Methods
value = 3


class Unpowered:
    """Three methods, but it cannot be started."""

    def __init__(self) -> None:
        raise RuntimeError("no power")

    def load(self, model: Any) -> None:
        """Never."""

    run = close = load
