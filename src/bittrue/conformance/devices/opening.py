"""Devices, from what users type or pass.

`SPECS` lists what can be typed. Options follow as ``?name=value&name=value``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...names import did_you_mean, near
from ...runners.litert import RESOLVERS
from ...runners.named import OPTIONS
from ...runners.sides import number
from . import runtimes
from .base import Device
from .hosted import Hosted
from .library import LibraryDevice
from .ours import Ours
from .program import ProgramDevice
from .python import InProcess, PythonDevice, isolated
from .results import Results
from .values import clean

# Packages announce devices under this name in their pyproject.toml; the value is a function, an object or a class.
GROUP = "bittrue.devices"
TIMEOUT = 30.0


# What LiteRT itself calls the resolvers; its default is the one with XNNPACK.
_RESOLVER_NAMES = {title: name for name, (title, _, _) in RESOLVERS.items()} | {"BUILTIN": "xnnpack"}


@dataclass(frozen=True)
class Spec:
    """One kind of device.

    Attributes:
        name: what stands before the colon.
        form: what users type.
        help: what it is, one line.
        options: what may follow the question mark.
        make: (spec, target, options, timeout) -> Device.
    """

    name: str
    form: str
    help: str
    options: tuple[str, ...]
    make: Callable[[str, str, Mapping[str, str], float], Device]


def _bittrue(spec: str, target: str, options: Mapping[str, str], timeout: float) -> Device:
    return Ours(spec, target)


def _litert(spec: str, target: str, options: Mapping[str, str], timeout: float) -> Device:
    if target and "resolver" in options:
        raise InputError("BT-DEVICE-OPTION", "resolver is given twice", place=f"'{spec}'")
    target = _RESOLVER_NAMES.get(target.upper(), target)
    if target and target not in RESOLVERS:
        close = near(target, RESOLVERS, 1)
        advice = f"did you mean litert:{close[0]}?" if close else f"choose one of: {', '.join(RESOLVERS)}"
        raise InputError("BT-DEVICE", f"litert has no resolver '{clean(target)}'", advice=advice)
    chosen = {**options, "resolver": target} if target else options
    return runtimes.RuntimeDevice(spec, "litert", chosen, timeout)


def _runtime(name: str) -> Callable[[str, str, Mapping[str, str], float], Device]:
    def make(spec: str, target: str, options: Mapping[str, str], timeout: float) -> Device:
        if target:
            known = ", ".join(OPTIONS[name])
            advice = f"options follow a question mark: {name}?NAME=VALUE, NAME one of {known}"
            raise InputError("BT-DEVICE", f"'{clean(target)}' cannot follow '{name}:'", advice=advice)
        return runtimes.RuntimeDevice(spec, name, options, timeout)

    return make


def _python(spec: str, target: str, options: Mapping[str, str], timeout: float) -> Device:
    file, colon, name = target.rpartition(":")
    if not colon:
        file, name = target, ""
    if not file:
        raise InputError("BT-DEVICE", "no file or module is named", place=f"'{spec}'", advice="write python:FILE:NAME")
    if file.endswith(".py") and not os.path.isfile(file):
        raise InputError("BT-DEVICE", f"there is no file '{clean(file)}'", place=f"'{spec}'")
    return PythonDevice(spec, file, name, timeout)


def _program(spec: str, target: str, options: Mapping[str, str], timeout: float) -> Device:
    if not target:
        raise InputError("BT-DEVICE", "no program is named", place=f"'{spec}'", advice="write program:./device.sh")
    batch = number(options, "batch", 1, 10_000) if "batch" in options else 0
    return ProgramDevice(spec, target, timeout, batch)


def _library(spec: str, target: str, options: Mapping[str, str], timeout: float) -> Device:
    if not os.path.isfile(target):
        text = f"there is no library '{clean(target)}'" if target else "no library is named"
        raise InputError("BT-DEVICE", text, place=f"'{spec}'", advice="write library:./libdevice.so")
    return LibraryDevice(spec, target, timeout)


def _results(spec: str, target: str, options: Mapping[str, str], timeout: float) -> Device:
    return Results(spec, target)


SPECS: tuple[Spec, ...] = (
    Spec("bittrue", "bittrue[:NUMERICS]", "bittrue itself, in this process", (), _bittrue),
    Spec(
        "litert",
        f"litert[:{'|'.join(RESOLVERS)}]",
        "LiteRT as it is installed here (package ai-edge-litert)",
        OPTIONS["litert"],
        _litert,
    ),
    Spec(
        "ort",
        "ort",
        "ONNX Runtime as it is installed here; also onnxruntime",
        OPTIONS["ort"],
        _runtime("ort"),
    ),
    Spec(
        "openvino",
        "openvino",
        "OpenVINO's CPU plugin as it is installed here",
        OPTIONS["openvino"],
        _runtime("openvino"),
    ),
    Spec(
        "python",
        "python:FILE_OR_MODULE[:NAME]",
        "a function f(model, inputs), or an object or class with load, run and close; also plain FILE.py[:NAME]",
        ("timeout",),
        _python,
    ),
    Spec(
        "program",
        "program:COMMAND",
        "anything that runs as COMMAND CASE_DIR OUTPUT_DIR",
        ("timeout", "batch"),
        _program,
    ),
    Spec("library", "library:FILE.so", "a C shared library with the table of bittrue_device.h", ("timeout",), _library),
    Spec(
        "results",
        "results:DIR",
        "outputs recorded from exported vectors, by the names of the cases",
        (),
        _results,
    ),
)
_ALIASES = {"onnxruntime": "ort", "py": "python"}


def open_device(device: Any, *, timeout: float = TIMEOUT, isolate: bool = False) -> Device:
    """The device that a text, function, object or class stands for.

    Args:
        device: what users type: one of the forms of `SPECS`, plain ``FILE.py[:NAME]``, or the name of an entry point of
            the group ``bittrue.devices``. Or a function ``f(model, inputs) -> outputs``, an object or class with the
            methods ``load(model)``, ``run(inputs)`` and ``close()``, or a `Device`.
        timeout: seconds that one case may take; what is typed after the question mark goes first. Functions and objects
            in this process cannot be stopped.
        isolate: run a function or class that is passed in a process of its own, as those that are typed always do.

    Raises:
        InputError: there is no such device, or no such option.
        UnsupportedError: its runtime is not installed, or it cannot be opened.

    >>> open_device("bittrue:xnnpack").title
    'bittrue, numerics xnnpack'
    """
    if not 0 < timeout < math.inf:
        raise InputError("BT-DEVICE-OPTION", f"timeout cannot be {timeout}", advice="a number of seconds")
    if isinstance(device, Device):
        return device
    if isinstance(device, (str, os.PathLike)):
        found = _typed(os.fspath(device).strip(), timeout)
    elif isolate:
        found = isolated(device, timeout)
    else:
        return InProcess(device)
    if isinstance(found, Hosted):
        found.open()
    return found


def _typed(text: str, timeout: float) -> Device:
    head, colon, rest = text.partition(":")
    bare, _, _ = head.partition("?")
    name = _ALIASES.get(bare, bare)
    spec = next((spec for spec in SPECS if spec.name == name), None)
    if spec is not None:
        target = rest if colon else text[len(bare) :]
        target, options = _options(text, spec, target)
        return spec.make(text, target, options, _seconds(options, timeout))
    plugins = {point.name: point for point in entry_points(group=GROUP)}
    if bare in plugins and not colon:
        return _plugin(text, plugins[bare], text[len(bare) :], timeout)
    python = next(spec for spec in SPECS if spec.name == "python")
    file = text.partition("?")[0].rpartition(":")[0] or text.partition("?")[0]
    if text.partition("?")[0].endswith(".py") or file.endswith(".py"):
        target, options = _options(text, python, text)
        return python.make(text, target, options, _seconds(options, timeout))
    raise _unknown(text, head, rest, list(plugins))


def _plugin(text: str, point: EntryPoint, rest: str, timeout: float) -> Device:
    python = next(spec for spec in SPECS if spec.name == "python")
    _, options = _options(text, python, rest)
    return PythonDevice(text, point.module, point.attr, _seconds(options, timeout))


def _unknown(text: str, head: str, rest: str, plugins: list[str]) -> InputError:
    names = [*(spec.name for spec in SPECS), *_ALIASES, *plugins]
    close = near(head.partition("?")[0], names, 1)
    path = Path(text.partition("?")[0])
    if close:
        advice = f"did you mean {close[0]}{text[len(head.partition('?')[0]) :]}?"
    else:
        kind = _kind_of(path)
        known = ", ".join([*(spec.form for spec in SPECS), *plugins])
        advice = f"did you mean {kind}:{clean(text)}?" if kind else f"write one of {known}"
    return InputError("BT-DEVICE", f"there is no device '{clean(text)}'", advice=advice)


def _kind_of(path: Path) -> str:
    """What a path by itself looks like; empty when it looks like nothing."""
    try:
        if path.is_dir():
            return "results"
        if not path.is_file():
            return ""
    except (OSError, ValueError):
        return ""
    return "library" if path.suffix in (".so", ".dylib") else "program" if os.access(path, os.X_OK) else ""


def _options(text: str, spec: Spec, target: str) -> tuple[str, dict[str, str]]:
    """What is named, and the options behind it."""
    options: dict[str, str] = {}
    if "?" not in target or os.path.exists(target):
        return target.strip(), options
    target, _, query = target.rpartition("?")
    for part in filter(None, query.split("&")):
        key, equals, value = part.partition("=")
        if key not in spec.options or not equals:
            known = f"options: {', '.join(spec.options) or 'none'}"
            advice = did_you_mean(key, spec.options, known) if equals else known
            raise InputError("BT-DEVICE-OPTION", f"'{clean(part)}' is no option of {spec.name}", advice=advice)
        if key in options:
            raise InputError("BT-DEVICE-OPTION", f"{key} is given twice", place=f"'{clean(text)}'")
        options[key] = value
    return target.strip(), options


def _seconds(options: Mapping[str, str], default: float) -> float:
    text = options.get("timeout")
    if text is None:
        return default
    try:
        value = float(text) if text.isascii() else math.nan
    except ValueError:
        value = math.nan
    if not 0 < value < 1e6:
        raise InputError("BT-DEVICE-OPTION", f"timeout cannot be '{clean(text)}'", advice="a number of seconds")
    return value
