"""What surgery on a model file needs, whatever its format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import UnsupportedError
from .dimensions import Dimension

# Format to the module that operates on it.
_MODULES = {"tflite": "tflite", "onnx": "onnx"}


@dataclass(frozen=True)
class Operator:
    """One node of the file.

    Attributes:
        position: in the file's order.
        source: what the file calls it.
        inputs: names of the tensors that it reads and that are no constants.
        outputs: names of those that it writes.
    """

    position: int
    source: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Document(ABC):
    """A model file that can be cut. Changes make new documents; constants are shared between them.

    Attributes:
        operators: of the main graph, in the file's order.
        inputs, outputs: names of its inputs and outputs.
    """

    operators: tuple[Operator, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @abstractmethod
    def cut(self, inputs: Iterable[str], outputs: Sequence[str], values: Mapping[str, np.ndarray]) -> Document:
        """The part that computes `outputs` from `inputs`, with fixed shapes.

        Graph inputs that it needs are inputs in any case; of `inputs`, those that it does not need are left out.

        Args:
            inputs: names of tensors that become inputs.
            outputs: names of tensors that nodes compute.
            values: of tensors, as far as they are known: their types and shapes are written down.
        """

    @abstractmethod
    def dimensions(self) -> list[Dimension]:
        """Axes that can be cropped: those of inputs, and of weights together with what goes along with them."""

    @abstractmethod
    def cropped(self, dimension: Dimension, low: int, high: int) -> Document:
        """With `low` <= index < `high` of a dimension; shapes of computed tensors are inferred anew.

        Raises:
            BittrueError: such a model makes no sense.
        """

    @abstractmethod
    def content(self) -> bytes:
        """The file."""

    def producer(self, name: str) -> Operator | None:
        """Who writes a tensor; None for inputs."""
        return self._producers.get(name)

    def readers(self, name: str) -> list[Operator]:
        """Who reads a tensor."""
        return [operator for operator in self.operators if name in operator.inputs]

    def describe(self) -> None:
        """To be called when operators, inputs and outputs are known."""
        self._producers = {name: operator for operator in self.operators for name in operator.outputs}


def open_document(path: Path, model: Any) -> Document:
    """The file at `path`.

    Args:
        path: of the file.
        model: what `bittrue.load` says about it (`bittrue.Model`).

    Raises:
        UnsupportedError: a format that cannot be written, or the package that writes it is missing.
    """
    if model.format not in _MODULES:
        known = " and ".join(f".{name}" for name in _MODULES)
        raise UnsupportedError(
            "BT-SURGERY-FORMAT", f"only {known} files can be cut, this is {model.format}", place=str(path)
        )
    module = import_module(f".{_MODULES[model.format]}", __package__)
    document: Document = module.read(path, model)
    return document
