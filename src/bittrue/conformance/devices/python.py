"""Devices written in Python: a function, or three methods.

A function ``f(model, inputs) -> outputs`` gets a `DeviceModel` and the inputs by name, arrays of its own. An object (or
a class, which is called without arguments) has ``load(model)``, ``run(inputs) -> outputs`` and ``close()``; it may have
``title`` and ``reads``, the model formats that it takes. Outputs are a dict by name, a sequence in the model's order,
or one array. A device that does not run a model raises `Refused` or NotImplementedError with the reason.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...names import did_you_mean
from ..suite import SuiteCase
from .answers import answered
from .base import Answer, Device
from .hosted import Host, Hosted, respond
from .model import DeviceModel
from .values import clean, named_arrays, told

# What a file's device is called when the user names none.
DEFAULT_NAME = "device"
_METHODS = ("load", "run", "close")


class Caller:
    """Calls a function, an object or a class as a device.

    Attributes:
        title: what the object calls itself; empty when it does not.
        reads: model formats that the object says it takes; empty when it does not.

    Raises:
        InputError: it is neither callable nor has the three methods.
    """

    def __init__(self, found: Any) -> None:
        device = found
        if inspect.isclass(found):
            if not all(callable(getattr(found, name, None)) for name in _METHODS):
                raise _no_device(found)
            device = found()
        self._load: Callable[[DeviceModel], Any] | None = None
        self._close: Callable[[], Any] | None = None
        if all(callable(getattr(device, name, None)) for name in _METHODS):
            self._load, self._run, self._close = device.load, device.run, device.close
        elif callable(device):
            self._run = device
        else:
            raise _no_device(found)
        title = getattr(device, "title", "")
        self.title = clean(title) if isinstance(title, str) else ""
        reads = getattr(device, "reads", ())
        self.reads = tuple(str(kind) for kind in reads) if isinstance(reads, (tuple, list)) else ()

    def run(self, case: SuiteCase, path: Path | None = None) -> dict[str, np.ndarray]:
        """The outputs; raises what the device raises, or Unreadable."""
        model = DeviceModel(case, path)
        inputs = {name: np.array(value, order="C") for name, value in case.inputs.items()}
        if self._load is None:
            given = self._run(model, inputs)
        else:
            self._load(model)
            given = self._run(inputs)
        return named_arrays(given, [port.name for port in model.outputs])

    def close(self) -> None:
        """Call the object's `close`; what it raises does not matter any more."""
        if self._close is not None:
            with suppress(Exception, SystemExit):
                self._close()


def _no_device(found: Any) -> InputError:
    kind = "the class" if inspect.isclass(found) else "an object of type"
    name = found.__name__ if inspect.isclass(found) else type(found).__name__
    return InputError(
        "BT-DEVICE",
        f"{kind} {clean(name)} is no device",
        advice="a device is a function f(model, inputs), or has the methods load(model), run(inputs) and close()",
    )


class InProcess(Device):
    """A function or object in this process: fast and easy to debug, but what ends the process ends the run, and nobody
    can stop it.
    """

    def __init__(self, found: Any, spec: str = "") -> None:
        self._caller = Caller(found)
        name = getattr(found, "__qualname__", "") or type(found).__name__
        self.spec = spec or f"python:{clean(getattr(found, '__module__', '') or type(found).__module__)}:{clean(name)}"
        self.title = self._caller.title or clean(name)
        self.reads = self._caller.reads or Device.reads

    def answer(self, case: SuiteCase) -> Answer:
        start = time.monotonic()
        status, text, outputs = answered(lambda: self._caller.run(case))
        return Answer(status, outputs, text, time.monotonic() - start)

    def close(self) -> None:
        self._caller.close()


class PythonDevice(Hosted):
    """A function, object or class of a file or module, in a process of its own.

    Args:
        spec: what the user typed.
        target: a .py file, or the name of a module.
        name: of the function, object or class; dots reach into classes. Empty: ``device``.
        timeout: seconds for one case.
    """

    def __init__(self, spec: str, target: str, name: str, timeout: float) -> None:
        settings = {"target": os.path.abspath(target) if target.endswith(".py") else target, "name": name}
        # Modules are looked for where the user stands, too, as `python -m` does.
        settings["folder"] = os.getcwd()
        super().__init__(spec, f"{target}:{name or DEFAULT_NAME}", __name__, settings, timeout)


class _Python(Host):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._caller = Caller(find_object(settings["target"], settings["name"], settings["folder"]))
        self.title, self.reads = self._caller.title, self._caller.reads

    def run(self, case: SuiteCase, path: Path) -> Mapping[str, np.ndarray]:
        return self._caller.run(case, path)

    def close(self) -> None:
        self._caller.close()


def find_object(target: str, name: str, folder: str = "") -> Any:
    """What a file or module calls `name`.

    Raises:
        InputError: it cannot be imported, or has no such name.
    """
    try:
        module = _file(Path(target)) if target.endswith(".py") else _module(target, folder)
    except (Exception, SystemExit) as error:
        raise InputError("BT-DEVICE", f"{clean(target)} cannot be imported: {told(error)}") from None
    found: Any = module
    for part in (name or DEFAULT_NAME).split("."):
        if not hasattr(found, part):
            known = [word for word in vars(found) if not word.startswith("_") and callable(getattr(found, word))]
            advice = did_you_mean(part, known, f"it has {', '.join(known[:10]) or 'nothing callable'}")
            text = f"{clean(target)} has no '{clean(part)}'"
            raise InputError("BT-DEVICE", text, advice=f"{advice}; write python:{clean(target)}:NAME")
        found = getattr(found, part)
    return found


def _file(path: Path) -> Any:
    sys.path.insert(0, str(path.parent))
    # A file called like a module of Python's must not take its place.
    name = f"bittrue_device_{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def _module(name: str, folder: str) -> Any:
    if folder and folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def isolated(found: Any, timeout: float) -> PythonDevice:
    """The same function or class in a process of its own.

    Raises:
        InputError: another process could not find it.
    """
    name, module = getattr(found, "__qualname__", ""), getattr(found, "__module__", "")
    where = sys.modules.get(module)
    file = getattr(where, "__file__", None)
    reached: Any = where
    for part in name.split("."):
        reached = getattr(reached, part, None)
    if not name or reached is not found or (module == "__main__" and not file):
        raise InputError(
            "BT-DEVICE",
            f"a process of its own cannot find {clean(name) or 'an ' + type(found).__name__}",
            advice="isolate functions and classes at the top of a module or file, or pass the text python:FILE:NAME",
        )
    target = file if module == "__main__" else module
    return PythonDevice(f"python:{target}:{name}", str(target), name, timeout)


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """What the device's process does."""
    return respond(request, _Python)
