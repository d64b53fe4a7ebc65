"""Runtimes that are installed here: LiteRT with each of its resolvers, ONNX Runtime, OpenVINO.

They run in a process of their own, since all of them can abort; models are opened as users open them, no inner tensor
is kept. What a runtime raises about a model, be it when loading, allocating or running, is its refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...api import Port
from ...errors import BittrueError
from ...quantization import dequantize
from ...runners import PEERS
from ...runners.base import Feed, Peer, input_ports
from ...runners.litert import RESOLVERS, open_litert
from ...runners.onnxruntime import LEVELS, Settings, open_onnxruntime
from ...runners.processor import onnxruntime_here
from ...runners.sides import choice, number
from ..suite import SuiteCase
from .hosted import Host, Hosted, respond
from .refused import Refused
from .values import clean

OPTIONS = {
    "litert": ("resolver", "threads", "timeout"),
    "ort": ("level", "disable", "threads", "integers", "timeout"),
    "openvino": ("threads", "timeout"),
}
_PEERS = {"litert": PEERS["litert"], "ort": PEERS["onnxruntime"], "openvino": PEERS["openvino"]}


class RuntimeDevice(Hosted):
    """One runtime with its options.

    Args:
        spec: what the user typed.
        name: ``"litert"``, ``"ort"`` or ``"openvino"``.
        options: texts by name; see `OPTIONS`.
        timeout: seconds for one case.

    Raises:
        InputError: an option has no such value.
        UnsupportedError: the runtime is not installed.
    """

    def __init__(self, spec: str, name: str, options: Mapping[str, str], timeout: float) -> None:
        peer = _PEERS[name]
        peer.check(peer.reads[0])
        settings: dict[str, Any] = {"runtime": name, "threads": number(options, "threads", 1, 1024)}
        details = ""
        if name == "litert":
            resolver = choice(options, "resolver", tuple(RESOLVERS), "builtin_ref")
            settings["resolver"] = resolver
            kernels, self.numerics, words = RESOLVERS[resolver]
            details = f", {words} ({kernels})"
        elif name == "ort":
            settings["level"] = choice(options, "level", tuple(LEVELS), "all")
            settings["disable"] = options.get("disable", "")
            settings["integers"] = choice(options, "integers", ("1", "0"), "1")
            details = f", level {settings['level']}"
            if settings["disable"]:
                details += f", without {clean(settings['disable'])}"
            self.numerics = (
                onnxruntime_here().numerics if settings["level"] == "all" and not settings["disable"] else ""
            )
        title = "LiteRT" if name == "litert" else peer.title
        super().__init__(spec, f"{title} {peer.version()}{details}", __name__, settings, timeout, pairs=True)
        self.reads = peer.reads


class _Runtime(Host):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        name = settings["runtime"]
        self._peer: Peer = _PEERS[name]
        self._threads = settings["threads"]
        self._module = self._peer.load()
        self._prepare = self._peer.prepare
        if name == "litert":
            self._prepare = open_litert(settings["resolver"])
        elif name == "ort":
            disable = tuple(filter(None, settings["disable"].split(",")))
            chosen = Settings(settings["level"], disable, self._threads, settings["integers"] == "1")
            self._prepare = partial(_with_settings, chosen)

    def run(self, case: SuiteCase, path: Path) -> Mapping[str, np.ndarray]:
        try:
            opened = self._prepare(self._module, path, _feeds(case), self._threads)
            values = opened.run()
        except Exception as error:
            text = error.message if isinstance(error, BittrueError) else f"{error}".strip()
            raise Refused(text or type(error).__name__) from None
        # Names that occur twice must not swallow an output.
        names = opened.outputs if len(set(opened.outputs)) == len(values) else map(str, range(len(values)))
        return {name: np.array(value, order="C") for name, value in zip(names, values, strict=True)}


def _with_settings(chosen: Settings, module: Any, path: Path, feeds: Any, threads: int) -> Any:
    return open_onnxruntime(module, path, feeds, chosen)


def _feeds(case: SuiteCase) -> list[Feed]:
    """The inputs, with the real numbers that they stand for, should the runtime want these."""
    try:
        ports = {port.name: port for port in input_ports(case.model)}
    except BittrueError:
        ports = {}
    return [Feed(name, value, _real(ports.get(name), value)) for name, value in case.inputs.items()]


def _real(port: Port | None, value: np.ndarray) -> np.ndarray | None:
    if port is None or port.scale is None or port.zero_point is None:
        return None
    return dequantize(value, port.scale, port.zero_point)


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """What the device's process does."""
    return respond(request, _Runtime)
