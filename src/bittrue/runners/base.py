"""What every runner is made of: how to open a model in a runtime, what it is fed, and how a run is recorded."""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..api import Model
from ..errors import BittrueError, InputError, UnsupportedError
from ..names import near_or_all
from ..numerics import Numerics, default_of, find
from ..plan.first_plan import first_plan, free_axes
from ..ports import Port
from ..quantization import dequantize
from .recording import Recording

# (steps done, steps in all); 0 in all when nobody knows yet.
Progress = Callable[[int, int], None]

# What messages call the files of formats that have no extension of their own.
_FILES = {"caffe": "a Caffe network", "caffe2": "a Caffe2 network", "mxnet": "an MXNet symbol"}


@dataclass(frozen=True)
class Opened:
    """A model in a peer, ready to run.

    Attributes:
        fit: gives the model's inputs, in their order, as the peer takes them.
        run: sets such inputs, runs, and returns private arrays of all outputs.
        outputs: their names, in the order of `run`.
        remarks: what `fit` does.
        reset: brings variables back to their first values.
    """

    fit: Callable[[Sequence[np.ndarray]], list[np.ndarray]]
    run: Callable[[Sequence[np.ndarray]], list[np.ndarray]]
    outputs: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    reset: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Peer:
    """One way to run a model with another runtime.

    Attributes:
        name: for command lines.
        title: for people.
        package: what to install with pip.
        module: what to import then.
        reads: formats of model files, the preferred one first.
        prepare: (module, path, ports, threads) -> Opened.
    """

    name: str
    title: str
    package: str
    module: str
    reads: tuple[str, ...]
    prepare: Callable[[Any, Path, Sequence[Port], int], Opened]

    def version(self) -> str | None:
        """Installed version; None without the package."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version(self.package)
        except PackageNotFoundError:
            return None

    def load(self) -> Any:
        """The module; UnsupportedError without the package."""
        try:
            return importlib.import_module(self.module)
        except ImportError as error:
            reason = "not installed" if self.version() is None else f"cannot be imported: {error}"
            raise UnsupportedError("BT-PEER-MISSING", reason, advice=f"pip install {self.package}") from None

    def check(self, found: str, title: str = "") -> None:
        """That the package is here and reads files of this format.

        Raises:
            UnsupportedError: it is not, or does not.
        """
        if self.version() is None:
            raise UnsupportedError(
                "BT-PEER-MISSING", f"{title or self.title} is not installed", advice=f"pip install {self.package}"
            )
        if found not in self.reads:
            wanted = " or ".join(f".{kind}" for kind in self.reads)
            kind = _FILES.get(found, f"a .{found} file")
            raise UnsupportedError("BT-PEER-FORMAT", f"{title or self.title} reads {wanted}, this is {kind}")

    def open(self, files: Mapping[str, Path], ports: Sequence[Port], threads: int) -> Opened:
        """The model in this peer.

        Args:
            files: format to path; the same network in every format.
            ports: the model's inputs; shapes are changed to theirs where the peer can.
            threads: how many it may use.

        Raises:
            UnsupportedError: the package is missing, or no file has a format that the peer reads.
            Exception: whatever the peer raises about the model.
        """
        module = self.load()
        path = next((files[kind] for kind in self.reads if kind in files), None)
        if path is None:
            given = " or ".join(_FILES.get(kind, f".{kind}") for kind in files)
            advice = "" if files else "pass the model itself"
            raise UnsupportedError(
                "BT-PEER-FORMAT",
                f"reads {' or '.join('.' + kind for kind in self.reads)}, {f'not {given}' if given else 'not plans'}",
                advice="pass the same network with --onnx FILE" if "onnx" in self.reads else advice,
            )
        with quiet():
            return self.prepare(module, path, ports, threads)


class Runner(ABC):
    """One side of a comparison: a model in a runtime, or what a device left behind.

    Attributes:
        spec: what the user typed.
        title: the runtime, for people, with its version.
        path: of the model file, or of the folder of a trace.
        format: of that file; ``"trace"`` for a trace.
        model: what is in the file; None for a trace.
        arithmetic: the numerics that stands for the runtime with these options; None where none does.
        inputs: what `record` takes; empty for a trace, whose inputs are in its recordings.
    """

    spec: str
    title: str
    path: Path
    format: str
    model: Model | None
    arithmetic: Numerics | None
    inputs: list[Port]

    @property
    def numerics(self) -> str:
        """Name of `arithmetic`; empty without one."""
        return "" if self.arithmetic is None else self.arithmetic.name

    @abstractmethod
    def record(self, inputs: Mapping[str, np.ndarray], progress: Progress | None = None) -> Recording:
        """Run once, from the model's first state, and return every tensor that can be seen.

        Args:
            inputs: by name; other shapes than the file's resize the model where the runtime can.
            progress: called after each step with (done, in all).

        Raises:
            BittrueError: the runtime refuses the model or the inputs, aborts, or shows no defined result.
        """

    def with_model(self, path: Path) -> Runner:
        """The same runtime with the same options, and the same process where it has one of its own, for another model
        file of the same format.

        Raises:
            InputError: a trace has no model.
            BittrueError: whatever is wrong with the model.
        """
        raise InputError("BT-SIDE", f"{self.title} runs no model", place=f"'{self.spec}'")

    def recorded(self) -> list[Recording]:
        """What is there already, one recording per run; nothing for runtimes that run now."""
        return []

    def spec_with(self, path: Path) -> str:
        """What the user would have typed for another file: `spec` with `path` in place of its own."""
        # As typed, it may have had a "./" that paths lose.
        ends = [len(self.spec), *(i for i, letter in enumerate(self.spec) if letter in "?@")]
        spans = ((start, end) for start in range(len(self.spec)) for end in ends)
        found = next((span for span in spans if Path(self.spec[slice(*span)]) == self.path), None)
        return str(path) if found is None else f"{self.spec[: found[0]]}{path}{self.spec[found[1] :]}"

    def close(self) -> None:  # noqa: B027  most have nothing to end
        """End what was started. Recordings stay."""


def input_ports(model: Model, shapes: Mapping[str, Sequence[int] | int] | None = None) -> list[Port]:
    """The inputs of a model; dimensions that the file leaves open are free, with sizes that fit, where some are found.

    Those that it leaves open without a number to take for them are -1.

    Args:
        model: what is in the file.
        shapes: the sizes of free dimensions, as `Model.prepare` takes them.

    Raises:
        BittrueError: `shapes` do not fit.
    """
    graph, sizes = model.graph, dict[int, tuple[int, ...]]()
    free = free_axes(graph, {})
    if free or shapes:
        with suppress(*(() if shapes else (BittrueError,))):
            plan = first_plan(graph, find(default_of(model.format)), shapes=shapes or {}, graphs=model.graphs)
            sizes = {index: plan.tensors[index].shape for index in plan.inputs}
    ports = []
    for index in graph.inputs:
        tensor = graph.tensors[index]
        shape = tuple(tensor.shape_signature or ()) if tensor.is_open else sizes.get(index, tensor.shape)
        ports.append(
            Port(tensor.name, tensor.type.numpy, shape, tensor.quantization, free.get(tensor.name, frozenset()))
        )
    return ports


def given(ports: Sequence[Port], inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The inputs in the order of the ports, contiguous; InputError for unknown or missing names and wrong types."""
    for name in inputs:
        if name not in {port.name for port in ports}:
            raise InputError(
                "BT-INPUT-NAME",
                f"'{name}' is no input of this model",
                advice=near_or_all(name, (p.name for p in ports), "inputs"),
            )
    values = {}
    for port in ports:
        if port.name not in inputs:
            raise InputError("BT-INPUT-MISSING", f"no value for input '{port.name}'")
        value = np.asarray(inputs[port.name])
        if value.dtype != port.dtype:
            place = f"input '{port.name}'"
            raise InputError("BT-INPUT-TYPE", f"expected {port.dtype}, found {value.dtype}", place=place)
        values[port.name] = np.ascontiguousarray(value).reshape(value.shape)
    return values


def ports_for(ports: Sequence[Port], values: Mapping[str, np.ndarray]) -> list[Port]:
    """The inputs of a model with the shapes that these values have."""
    return [Port(port.name, port.dtype, values[port.name].shape, port.quantization) for port in ports]


def fitting(
    ports: Sequence[Port], wanted: Sequence[tuple[Any, tuple[int | None, ...]]]
) -> tuple[Callable[[Sequence[np.ndarray]], list[np.ndarray]], tuple[str, ...]]:
    """What gives a model's inputs the types and shapes that a peer's model wants, and what that does to them."""
    ways: list[tuple[Port, bool, bool]] = []
    remarks = []
    for port, (dtype, shape) in zip(ports, wanted, strict=True):
        real = port.dtype != np.dtype(dtype)
        if real:
            if np.dtype(dtype) != np.float32 or port.scale is None:
                raise UnsupportedError(
                    "BT-PEER-INPUT", f"takes {np.dtype(dtype)} for input '{port.name}', the model takes {port.dtype}"
                )
            remarks.append(f"input '{port.name}' as the real numbers (float32) that its {port.dtype} stands for")
        turned = not matches(port.shape, shape)
        if turned:
            if len(port.shape) != 4 or not matches((port.shape[0], port.shape[3], *port.shape[1:3]), shape):
                raise UnsupportedError(
                    "BT-PEER-INPUT",
                    f"takes shape {['?' if e is None else e for e in shape]} for input '{port.name}', "
                    f"the model takes {list(port.shape)}",
                )
            remarks.append(f"input '{port.name}' with channels first")
        ways.append((port, real, turned))

    def fit(values: Sequence[np.ndarray]) -> list[np.ndarray]:
        found = []
        for value, (port, real, turned) in zip(values, ways, strict=True):
            if real:
                assert port.scale is not None
                assert port.zero_point is not None
                value = np.ascontiguousarray(dequantize(value, port.scale, port.zero_point), np.float32)
            found.append(np.ascontiguousarray(value.transpose(0, 3, 1, 2)) if turned else value)
        return found

    return fit, tuple(remarks)


def matches(shape: Sequence[int], pattern: Sequence[int | None]) -> bool:
    """Whether a shape fits a pattern with None for open dimensions."""
    return len(shape) == len(pattern) and all(p is None or e == p for e, p in zip(shape, pattern, strict=True))


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing on standard error: runtimes announce their delegates there; their errors come as exceptions."""
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
