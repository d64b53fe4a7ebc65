"""What every runner is made of: how to open a model in another runtime, and what it is fed."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UnsupportedError

# What messages call the files of formats that have no extension of their own.
_FILES = {"caffe": "a Caffe network", "caffe2": "a Caffe2 network", "mxnet": "an MXNet symbol"}


@dataclass(frozen=True)
class Feed:
    """One input.

    Attributes:
        name: of the input in the model that bittrue runs.
        value: the array that bittrue gets.
        real: the real numbers that `value` stands for, for peers whose model takes floats; None when there are none.
    """

    name: str
    value: np.ndarray
    real: np.ndarray | None = None


@dataclass(frozen=True)
class Opened:
    """A model in a peer, ready to run.

    Attributes:
        run: sets the inputs, runs, and returns private arrays of all outputs.
        outputs: their names, in the order of `run`.
        remarks: what was done to the inputs so that they fit.
    """

    run: Callable[[], list[np.ndarray]]
    outputs: tuple[str, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Peer:
    """One way to run a model with another runtime.

    Attributes:
        name: for command lines.
        title: for people.
        package: what to install with pip.
        module: what to import then.
        reads: formats of model files, the preferred one first.
        prepare: (module, path, feeds, threads) -> Opened.
    """

    name: str
    title: str
    package: str
    module: str
    reads: tuple[str, ...]
    prepare: Callable[[Any, Path, Sequence[Feed], int], Opened]

    def version(self) -> str | None:
        """Installed version; None without the package."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return None

    def open(self, files: Mapping[str, Path], feeds: Sequence[Feed], threads: int) -> Opened:
        """The model in this peer.

        Args:
            files: format to path; the same network in every format.
            feeds: the inputs, in the model's order; shapes are changed to theirs where the peer can.
            threads: how many it may use.

        Raises:
            UnsupportedError: the package is missing, or no file has a format that the peer reads.
            Exception: whatever the peer raises about the model.
        """
        try:
            module = importlib.import_module(self.module)
        except ImportError as error:
            reason = "not installed" if self.version() is None else f"cannot be imported: {error}"
            raise UnsupportedError("BT-PEER-MISSING", reason, advice=f"pip install {self.package}") from None
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
            return self.prepare(module, path, feeds, threads)


def pair(ours: Sequence[str], theirs: Sequence[str | list[str]], what: str) -> list[int]:
    """For each of our names the position among theirs: by name where all are found, else in order."""
    known = {name: i for i, names in enumerate(theirs) for name in ([names] if isinstance(names, str) else names)}
    if len(set(ours)) == len(ours) and all(name in known for name in ours):
        return [known[name] for name in ours]
    if len(ours) != len(theirs):
        raise UnsupportedError("BT-PEER-PORTS", f"its model has {len(theirs)} {what}, ours {len(ours)}")
    return list(range(len(ours)))


def fit(
    feeds: Sequence[Feed], wanted: Sequence[tuple[Any, tuple[int | None, ...]]]
) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """The inputs in the types and shapes that a peer's model wants, and what was done to them."""
    values, remarks = [], []
    for feed, (dtype, shape) in zip(feeds, wanted, strict=True):
        value = feed.value
        if value.dtype != np.dtype(dtype):
            if np.dtype(dtype) != np.float32 or feed.real is None:
                raise UnsupportedError(
                    "BT-PEER-INPUT", f"takes {np.dtype(dtype)} for input '{feed.name}', the model takes {value.dtype}"
                )
            value = np.ascontiguousarray(feed.real, np.float32)
            remarks.append(f"input '{feed.name}' as the real numbers (float32) that its {feed.value.dtype} stands for")
        if not matches(value.shape, shape):
            if value.ndim != 4 or not matches((value.shape[0], value.shape[3], *value.shape[1:3]), shape):
                raise UnsupportedError(
                    "BT-PEER-INPUT",
                    f"takes shape {['?' if e is None else e for e in shape]} for input '{feed.name}', "
                    f"the model takes {list(value.shape)}",
                )
            value = np.ascontiguousarray(value.transpose(0, 3, 1, 2))
            remarks.append(f"input '{feed.name}' with channels first")
        values.append(value)
    return values, tuple(remarks)


def matches(shape: Sequence[int], pattern: Sequence[int | None]) -> bool:
    """Whether a shape fits a pattern with None for open extents."""
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
