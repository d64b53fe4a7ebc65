"""Runtimes that are installed here: LiteRT with each of its resolvers, ONNX Runtime, OpenVINO.

They run in a process of their own, since all of them can abort; models are opened as users open them, no inner tensor
is kept. What a runtime raises about a model, be it when loading, allocating or running, is its refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...api import Port
from ...errors import BittrueError
from ...runners.base import input_ports
from ...runners.named import choose
from ..suite import SuiteCase
from .hosted import Host, Hosted, respond
from .refused import Refused
from .values import clean


class RuntimeDevice(Hosted):
    """One runtime with its options.

    Args:
        spec: what the user typed.
        name: ``"litert"``, ``"ort"`` or ``"openvino"``.
        options: texts by name; see `bittrue.runners.named.OPTIONS`.
        timeout: seconds for one case.

    Raises:
        InputError: an option has no such value.
        UnsupportedError: the runtime is not installed.
    """

    def __init__(self, spec: str, name: str, options: Mapping[str, str], timeout: float) -> None:
        chosen = choose(name, options)
        chosen.peer.check(chosen.peer.reads[0])
        self.numerics = chosen.numerics
        settings = {"runtime": name, "options": dict(options)}
        super().__init__(spec, clean(chosen.title), __name__, settings, timeout, pairs=True)
        self.reads = chosen.peer.reads


class _Runtime(Host):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._chosen = choose(settings["runtime"], settings["options"])
        self._module = self._chosen.peer.load()

    def run(self, case: SuiteCase, path: Path) -> Mapping[str, np.ndarray]:
        try:
            opened = self._chosen.peer.prepare(self._module, path, _ports(case), self._chosen.threads)
            values = opened.run(opened.fit([*case.inputs.values()]))
        except Exception as error:
            text = error.message if isinstance(error, BittrueError) else f"{error}".strip()
            raise Refused(text or type(error).__name__) from None
        # Names that occur twice must not swallow an output.
        names = opened.outputs if len(set(opened.outputs)) == len(values) else map(str, range(len(values)))
        return {name: np.array(value, order="C") for name, value in zip(names, values, strict=True)}


def _ports(case: SuiteCase) -> list[Port]:
    """The inputs, with what their real numbers are, should the runtime want these."""
    try:
        known = {port.name: port.quantization for port in input_ports(case.model)}
    except BittrueError:
        known = {}
    return [Port(name, value.dtype, value.shape, known.get(name)) for name, value in case.inputs.items()]


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """What the device's process does."""
    return respond(request, _Runtime)
