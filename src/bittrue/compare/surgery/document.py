"""What surgery on a model file needs, whatever its format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, UnsupportedError
from .dimensions import Dimension

# Format to the module that operates on it.
_MODULES = {"tflite": "tflite", "onnx": "onnx"}


@dataclass(frozen=True)
class Operator:
    """One node of the file.

    Attributes:
        position: in the file's order.
        source: what the file calls it.
        inputs: names of the tensors that it reads and that depend on the model's inputs.
        outputs: names of those that it writes.
        constants: names of what it reads besides.
    """

    position: int
    source: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: tuple[str, ...] = ()


class Document(ABC):
    """A model file that can be cut. Changes make new documents; constants are shared between them.

    Attributes:
        inputs, outputs: names of its inputs and outputs.
        operators: those of the main graph that depend on its inputs, in the file's order. What computes constants goes
            along with who reads them.
    """

    operators: tuple[Operator, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

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

    def cut(self, inputs: Iterable[str], outputs: Sequence[str], values: Mapping[str, np.ndarray]) -> Document:
        """The part that computes `outputs` from `inputs`, with fixed shapes.

        Graph inputs that it needs are inputs in any case; of `inputs`, those that it does not need are left out.

        Args:
            inputs: names of tensors that become inputs.
            outputs: names of tensors that operators compute.
            values: of tensors, as far as they are known: their types and shapes are written down.

        Raises:
            InputError: an output that no operator computes.
        """
        ends, wanted = {*inputs} - {*outputs}, list(outputs)
        kept, found = dict[int, None](), dict[str, None]()
        for name in outputs:
            if name not in self._producers:
                raise InputError("BT-SURGERY-TENSOR", f"no operator computes '{name}'")
        while wanted:
            name = wanted.pop()
            operator = self._producers.get(name)
            if operator is None or name in ends:
                found[name] = None
            elif operator.position not in kept:
                kept[operator.position] = None
                wanted.extend(operator.inputs)
                wanted.extend(n for n in operator.constants if n in self._producers)
        return self._part(sorted(kept), list(found), list(outputs), values)

    def producer(self, name: str) -> Operator | None:
        """Who writes a tensor; None for inputs and constants."""
        operator = self._producers.get(name)
        return operator if operator is None or operator.inputs else None

    def readers(self, name: str) -> list[Operator]:
        """Who reads a tensor."""
        return [operator for operator in self.operators if name in operator.inputs]

    @abstractmethod
    def _part(
        self, positions: Sequence[int], inputs: list[str], outputs: list[str], values: Mapping[str, np.ndarray]
    ) -> Document:
        """The operators at these positions; `inputs` may name state that stays what it is."""

    def _describe(self, operators: Iterable[Operator]) -> None:
        """Take the operators, with all that they read as `inputs`, and tell constants from the rest."""
        changing, found = {*self.inputs}, list[Operator]()
        for operator in operators:
            inputs = tuple(name for name in operator.inputs if name in changing)
            constants = tuple(name for name in operator.inputs if name not in changing)
            if inputs:
                changing.update(operator.outputs)
            found.append(Operator(operator.position, operator.source, inputs, operator.outputs, constants))
        self.operators = tuple(operator for operator in found if operator.inputs)
        self._producers = {name: operator for operator in found for name in operator.outputs}


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
