"""Devices that live in a process of their own: its end, its silence and its garbage are answers.

One process serves many cases. Values travel in files, everything else as one JSON object a line; what the device prints
goes to a file of its own. Nothing that comes back is believed before it is checked.
"""

from __future__ import annotations

import math
import resource
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BittrueError, InputError, ResourceError, RunError, UnsupportedError
from ...files import scratch, scratch_bytes
from ...ports import pair
from ...runners.guard import folder_of
from ...runners.process import Worker, end_of
from ...visible import visible
from ..suite import SuiteCase
from .answers import answered, where
from .base import STATUSES, Answer, Device
from .model import output_names
from .values import OUTPUT_LIMIT, clean, is_number_type, told

# Importing a framework can take long on a busy machine; that is nothing that a case should be charged with.
_START_SECONDS = 120.0
_END_SECONDS = 5.0
# No file that a hosted device writes may become larger, what it prints included.
_FILE_LIMIT = 4 << 30

# Of a case, what its process is told.
_WORDS = ("identity", "suite", "operator", "types", "aim", "format")


class Hosted(Device):
    """A device behind the function `answer` of a module, which hands its requests to `respond`.

    Args:
        spec: what the user typed.
        title: for people, until the device says its own.
        module: where `answer` is.
        settings: what that needs to know of the device; anything that JSON can say.
        timeout: seconds for one case.
        pairs: the device gives outputs in the model's order under names of its own making.
    """

    def __init__(
        self,
        spec: str,
        title: str,
        module: str,
        settings: Mapping[str, Any],
        timeout: float,
        pairs: bool = False,
    ) -> None:
        self.spec = spec
        self.title = title
        self.timeout = timeout
        self._settings = dict(settings)
        self._pairs = pairs
        self._worker = Worker(title, module)
        self._ready = False
        self._folder = folder_of(self, "bittrue-device-")

    def open(self) -> None:
        """Start the process and the device in it.

        Raises:
            InputError: there is no such device, or what is named is none.
            UnsupportedError: it cannot be opened; the text says why.
        """
        try:
            reply = self._ask({"ask": "open"}, max(self.timeout, _START_SECONDS))
        except (BittrueError, ValueError) as error:
            self._worker.close()
            text = error.message if isinstance(error, BittrueError) else "it wrote on the pipe that carries its answers"
            raise UnsupportedError("BT-DEVICE-OPEN", f"cannot be opened: {text}", place=f"'{self.spec}'") from None
        if not isinstance(reply, dict) or reply.get("status") != "open":
            reply = reply if isinstance(reply, dict) else {}
            self._worker.close()
            kind = InputError if reply.get("usage") is True else UnsupportedError
            text, advice = (clean(str(reply.get(key, ""))) for key in ("text", "advice"))
            text = f"cannot be opened: {text or 'it wrote on the pipe that carries its answers'}"
            raise kind("BT-DEVICE-OPEN", text, place=f"'{self.spec}'", advice=advice)
        # What the user typed keeps its line ends, visibly: a name cannot begin a line.
        self.title = clean(str(reply.get("title") or visible(self.title)))
        reads = reply.get("reads")
        if isinstance(reads, list) and reads and all(kind in ("tflite", "onnx") for kind in reads):
            self.reads = tuple(reads)
        self._ready = True

    def answer(self, case: SuiteCase) -> Answer:
        if case.format not in self.reads:
            wanted = " or ".join(f".{kind}" for kind in self.reads)
            return Answer("refused", {}, f"reads {wanted}, this is .{case.format}")
        start, outputs = time.monotonic(), dict[str, np.ndarray]()
        try:
            if not self._ready:
                self.open()
            start = time.monotonic()
            reply = self._ask(self._request(case), self.timeout)
        except (UnsupportedError, InputError) as error:
            # It has run before: this is a device that does not come back after a crash.
            status, text = "crashed", f"{error.message}, after its process had ended"
        except RunError as error:
            status, text = "crashed", error.message
        except ResourceError as error:
            status, text = "timed out", error.message
        except ValueError:
            status, text, outputs = self._read(None)
        else:
            status, text, outputs = self._read(reply)
            if self._pairs and outputs:
                outputs = _renamed(outputs, output_names(case))
        return Answer(status, outputs, text, time.monotonic() - start, end_of(self._folder / "messages"))

    def close(self) -> None:
        if self._ready:
            with suppress(BittrueError, ValueError, OSError):
                self._ask({"ask": "close"}, _END_SECONDS)
        self._ready = False
        self._worker.close()

    def _ask(self, request: Mapping[str, Any], timeout: float) -> Any:
        messages = self._folder / "messages"
        # The process appends to it: what it said about earlier cases is nobody's business any more.
        scratch_bytes(messages, b"")
        try:
            return self._worker.ask({**self._settings, **request}, timeout, messages)
        except BaseException:
            # Its process has ended; none is started for saying goodbye.
            self._ready = False
            raise

    def _request(self, case: SuiteCase) -> dict[str, Any]:
        path = self._folder / f"model.{case.format}"
        scratch_bytes(path, case.content)
        feeds, start = [], 0
        with scratch(self._folder / "feeds") as file:
            for name, value in case.inputs.items():
                entry = {"name": name, "dtype": value.dtype.name, "shape": list(value.shape), "start": start}
                feeds.append(entry)
                start += file.write(np.ascontiguousarray(value).tobytes())
        return {
            "ask": "run",
            "path": str(path),
            "values": str(self._folder / "values"),
            "feeds": feeds,
            "feeds_file": str(self._folder / "feeds"),
            **{key: getattr(case, key) for key in _WORDS},
        }

    def _read(self, reply: Any) -> tuple[str, str, dict[str, np.ndarray]]:
        """(status, text, outputs) of what the process said."""
        if not isinstance(reply, dict) or reply.get("status") not in STATUSES:
            self._worker.close()
            self._ready = False
            return "unreadable", "it wrote on the pipe that carries its answers", {}
        status, text = reply["status"], clean(str(reply.get("text", "")))
        if status != "outputs":
            return status, text, {}
        try:
            outputs = _read_values(self._folder / "values", reply.get("outputs"))
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            return "unreadable", f"its outputs cannot be read: {told(error)}", {}
        return status, text, outputs


class Host(ABC):
    """What stands for a device inside of its process.

    Attributes:
        title: for people; empty to keep what the parent calls it.
        reads: model formats; empty to keep the parent's.
    """

    title: str = ""
    reads: tuple[str, ...] = ()

    @abstractmethod
    def run(self, case: SuiteCase, path: Path) -> Mapping[str, np.ndarray]:
        """The outputs.

        Raises:
            Refused: the device does not run such a model.
            Unreadable: what it gave is no array.
            Exception: anything else that it raised.
        """

    def close(self) -> None:  # noqa: B027  most have nothing to end
        """End what was started."""


_HOSTS: list[Host] = []


def respond(request: Mapping[str, Any], open_host: Callable[[Mapping[str, Any]], Host]) -> dict[str, Any]:
    """Answer one request, in the device's process.

    Args:
        request: from `Hosted`.
        open_host: makes the host from the device's settings; whatever it raises is the reason why it cannot be opened.
    """
    try:
        if request["ask"] == "open":
            resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_LIMIT, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
            _HOSTS[:] = [open_host(request)]
            return {"status": "open", "title": _HOSTS[0].title, "reads": list(_HOSTS[0].reads)}
        if request["ask"] == "close":
            for host in _HOSTS:
                host.close()
            _HOSTS.clear()
            return {"status": "closed"}
    except BittrueError as error:
        usage = isinstance(error, InputError)
        return {"status": "failed", "text": error.message, "advice": error.advice, "usage": usage}
    except BaseException as error:
        return {"status": "failed", "text": f"{told(error)}{where(error)}"}
    path = Path(request["path"])
    inputs = {feed["name"]: _feed(Path(request["feeds_file"]), feed) for feed in request["feeds"]}
    words = {key: request[key] for key in _WORDS}
    case = SuiteCase(**words, content=path.read_bytes(), inputs=inputs)
    status, text, outputs = answered(lambda: _HOSTS[0].run(case, path))
    return {"status": status, "text": text, "outputs": _write_values(Path(request["values"]), outputs)}


def _feed(path: Path, entry: Mapping[str, Any]) -> np.ndarray:
    # A copy that the device may write into.
    dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
    return np.fromfile(path, dtype, math.prod(shape), offset=entry["start"]).reshape(shape)


def _write_values(path: Path, outputs: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    entries, start = [], 0
    with scratch(path) as file:
        for name, value in outputs.items():
            dtype = value.dtype.str if value.dtype.kind != "V" else value.dtype.name
            entries.append({"name": name, "dtype": dtype, "shape": list(value.shape), "start": start})
            start += file.write(value.tobytes())
    return entries


def _read_values(path: Path, entries: Any) -> dict[str, np.ndarray]:
    found = {}
    if path.stat().st_size > OUTPUT_LIMIT:
        raise ValueError(f"they take more than {OUTPUT_LIMIT:,} bytes")
    content = path.read_bytes()
    for entry in entries:
        dtype, shape = _dtype(entry["dtype"]), tuple(map(int, entry["shape"]))
        if not is_number_type(dtype) or any(size < 0 for size in shape):
            raise ValueError(f"{dtype}{list(shape)}")
        value = np.frombuffer(content, dtype, math.prod(shape), int(entry["start"])) if math.prod(shape) else ()
        found[str(entry["name"])] = np.array(value, dtype).reshape(shape)
    return found


def _dtype(name: str) -> np.dtype:
    try:
        return np.dtype(name)
    except TypeError:
        # Types that NumPy knows once this is imported.
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


def _renamed(outputs: dict[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
    """Outputs under the model's names where they can be told; as the runtime calls them otherwise."""
    try:
        order = pair(names, list(outputs), "outputs")
    except BittrueError:
        return outputs
    values = list(outputs.values())
    return {name: values[i] for name, i in zip(names, order, strict=True)}
