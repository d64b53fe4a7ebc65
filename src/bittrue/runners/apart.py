"""One model in a runtime, in a process of its own, run on many inputs: a runtime that aborts ends that process only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..api import load
from ..errors import BittrueError, InvalidModelError, ResourceError, RunError, StoppedError, UnsupportedError
from ..files import read_file, scratch
from ..graph import data_type
from ..ports import Port, pair
from .base import Opened, input_ports
from .guard import folder_of
from .named import choose
from .process import Worker
from .sides import number

# Seconds: importing a runtime takes long on a busy machine; a run rarely does.
_TIMEOUT = 600


class Apart:
    """A model in a runtime that runs in another process. One thread runs it; another may interrupt.

    Args:
        name, options: of the runtime; see `named.choose`.
        files: format to path of the model file.
        inputs: the model's, with their shapes.
        outputs: names of the model's, in the order that `run` gives them in.

    Raises:
        InputError: the runtime has no such option.
        UnsupportedError: it is not installed, or does not read such files.
    """

    def __init__(
        self,
        name: str,
        options: Mapping[str, str],
        files: Mapping[str, Path],
        inputs: Sequence[Port],
        outputs: Sequence[str],
    ) -> None:
        chosen = choose(name, options)
        ((found, self._path),) = files.items()
        chosen.peer.check(found, chosen.title)
        self.title, self._outputs = chosen.title, outputs
        self._timeout = number(options, "timeout", _TIMEOUT, 10**6)
        self._worker = Worker(chosen.title, __name__)
        self._folder = folder_of(self, "bittrue-peer-")
        self._opening = {
            "ask": "open",
            "runtime": name,
            "options": dict(options),
            "path": str(self._path),
            "shapes": {port.name: list(port.shape) for port in inputs},
        }
        self._files = {"feeds": str(self._folder / "feeds"), "values": str(self._folder / "values")}
        self._order: list[int] = []
        self._holder: object = None
        self._interrupted = False

    def start(self) -> None:
        """Start the process, without waiting for it."""
        self._worker.start()

    def open(self) -> None:
        """Wait until the model is open in the process.

        Raises:
            BittrueError: the runtime refuses the model, takes other inputs, or ends.
        """
        process = self._worker.start()
        if process is not self._holder:
            self._order = pair(self._outputs, self._ask(self._opening)["outputs"], "outputs")
            self._holder = process

    def run(self, runs: Sequence[Sequence[np.ndarray]], reset: bool) -> list[list[np.ndarray] | BittrueError]:
        """The outputs for the inputs of each run, or why there are none; with `reset`, every run begins with the first
        values of variables.

        Raises:
            StoppedError: it was interrupted.
        """
        # Alone, so that what ends the process is known; so it is where the state goes on.
        if len(runs) > 1 and reset:
            with suppress(RunError, ResourceError):
                return self._answers(runs, reset)
        found: list[list[np.ndarray] | BittrueError] = []
        for inputs in runs:
            try:
                found += self._answers([inputs], reset)
            except StoppedError:
                raise
            except BittrueError as error:
                found.append(error)
        return found

    def _answers(self, runs: Sequence[Sequence[np.ndarray]], reset: bool) -> list[list[np.ndarray] | BittrueError]:
        if not reset and self._holder is not None and self._worker.start() is not self._holder:
            raise RunError("BT-RUNNER-ABORT", f"{self.title}: what its variables held went with its process")
        self.open()
        with scratch(self._files["feeds"]) as file:
            for inputs in runs:
                for value in inputs:
                    file.write(value.tobytes())
        reply = self._ask({"ask": "run", "count": len(runs), "reset": reset, **self._files})
        content, start = read_file(self._files["values"]), 0
        found: list[list[np.ndarray] | BittrueError] = []
        for outcome in reply["runs"]:
            if isinstance(outcome, str):
                found.append(RunError("BT-RUNNER-RUN", f"{self.title}: {outcome}"))
                continue
            outputs = []
            for name, shape in outcome:
                dtype, count = data_type(name).numpy, math.prod(shape)
                outputs.append(np.frombuffer(content, dtype, count, start).reshape(shape))
                start += count * dtype.itemsize
            found.append([outputs[i] for i in self._order])
        return found

    def interrupt(self) -> None:
        """Make a run in progress end, and every later one."""
        self._interrupted = True
        self._worker.interrupt()

    def close(self) -> None:
        """End the process."""
        self._worker.close()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            if self._interrupted:
                raise _stopped()
            reply: dict[str, Any] = self._worker.ask(request, self._timeout, self._folder / "messages")
        except BittrueError:
            if self._interrupted:
                raise _stopped() from None
            raise
        if "refused" not in reply:
            return reply
        text = f"{self.title}: {reply['refused']}"
        if reply["code"]:
            raise UnsupportedError(reply["code"], text, place=str(self._path))
        raise InvalidModelError("BT-RUNNER-REFUSED", text, place=str(self._path))


def _stopped() -> StoppedError:
    return StoppedError("BT-INTERRUPTED", "the run was ended by interrupt()")


# What is open in this process.
_opened: list[tuple[Opened, list[Port]]] = []


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """What the process does."""
    try:
        return _open(request) if request["ask"] == "open" else _run(request)
    except Exception as error:
        return {"refused": _said(error), "code": error.code if isinstance(error, BittrueError) else ""}


def _open(request: Mapping[str, Any]) -> dict[str, Any]:
    chosen, path = choose(request["runtime"], request["options"]), Path(request["path"])
    known = {port.name: port for port in input_ports(load(path))}
    ports = [
        Port(name, known[name].dtype, tuple(shape), known[name].quantization)
        for name, shape in request["shapes"].items()
    ]
    opened = chosen.peer.prepare(chosen.peer.load(), path, ports, chosen.threads)
    _opened[:] = [(opened, ports)]
    return {"outputs": list(opened.outputs)}


def _run(request: Mapping[str, Any]) -> dict[str, Any]:
    ((opened, ports),) = _opened
    content, start = read_file(request["feeds"]), 0
    outcomes: list[str | list[Any]] = []
    with scratch(request["values"]) as file:
        for _ in range(request["count"]):
            values = []
            for port in ports:
                count = math.prod(port.shape)
                values.append(np.frombuffer(content, port.dtype, count, start).reshape(port.shape))
                start += count * port.dtype.itemsize
            try:
                if request["reset"]:
                    opened.reset()
                found = [np.asarray(value) for value in opened.run(opened.fit(values))]
                # Types that are none of numbers are refused here.
                outcomes.append([[data_type(value.dtype.name).name, list(value.shape)] for value in found])
            except Exception as error:
                outcomes.append(_said(error))
                continue
            for value in found:
                file.write(value.tobytes())
    return {"runs": outcomes}


def _said(error: Exception) -> str:
    text = error.message if isinstance(error, BittrueError) else " ".join(f"{error}".split())[:600]
    return text or type(error).__name__
