"""What a device is shown of a case: the model file, and what is in it as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BittrueError
from ...files import scratch_bytes
from ...graph import Node, Tensor
from ...numerics import default_of
from ...ports import Port
from ...runners.guard import folder_of
from ..suite import SuiteCase

# Of a description, what a device must find out by itself, and what is about the suite.
_ANSWERS = ("aim", "note", "rejects", "seeks", "refusal")


class DeviceModel:
    """A model of one operator, as devices in Python get it.

    Attributes:
        identity: of the case: ``"CONV_2D/s8/ties/003"``.
        format: ``"tflite"`` or ``"onnx"``.
        operator: as files call it.
        types: of the case, ``"s8"``.
        bytes: the model file.
    """

    def __init__(self, case: SuiteCase, path: Path | None = None) -> None:
        self._case = case
        self._path = path
        self.identity = case.identity
        self.format = case.format
        self.operator = case.operator
        self.types = case.types
        self.bytes = case.content

    @cached_property
    def path(self) -> Path:
        """The model file on disk; it goes when the model does."""
        if self._path is not None:
            return self._path
        found = folder_of(self, "bittrue-device-") / f"model.{self.format}"
        scratch_bytes(found, self.bytes)
        return found

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        """Names, types, shapes and quantization."""
        # Planning is imported with it, which most devices never need.
        from ...runners.base import input_ports

        try:
            return tuple(input_ports(self._case.model))
        except BittrueError:
            # A model that must be refused.
            return tuple(Port(name, value.dtype, value.shape, None) for name, value in self._case.inputs.items())

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        """Likewise, with the shapes that the file claims; empty when bittrue cannot read the model."""
        return output_ports(self._case)

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """Of the operator, in bittrue's words; empty when bittrue cannot read the model."""
        return {} if self._node is None else dict(self._node.attributes)

    @cached_property
    def version(self) -> int | None:
        """Of the operator, as the file says; None when bittrue cannot read the model."""
        return None if self._node is None else self._node.version

    @cached_property
    def _node(self) -> Node | None:
        """The one of the case's operator."""
        try:
            nodes = self._case.model.graph.nodes
        except BittrueError:
            return None
        return next((node for node in nodes if node.source == self.operator), nodes[0] if nodes else None)

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """All of the graph, constants as the file packs them; empty when bittrue cannot read the model."""
        try:
            return tuple(self._case.model.graph.tensors)
        except BittrueError:
            return ()

    @cached_property
    def constants(self) -> Mapping[str, np.ndarray]:
        """Weights, bias and other constants by name, in the order of the operator's inputs.

        Arrays have the shape and type of the tensor, integers below 8 bits one byte each; they are read-only. Empty
        when bittrue cannot read the model.
        """
        if self._node is None:
            return {}
        operands = (self.tensors[index] for index in self._node.inputs if index is not None)
        return {tensor.name: tensor.values() for tensor in operands if tensor.is_constant}

    @cached_property
    def description(self) -> Mapping[str, Any]:
        """Everything about the case but its values and what is expected, as plain data: see
        `bittrue.conformance.formats.describe`.

        ``plan`` is that of the runtime that the model's format comes with: multipliers, exponents, clamps; it is left
        out when that runtime does not run the model. Of a file that bittrue cannot read, only the inputs are told.
        """
        from ..formats.describe import describe

        asked = replace(self._case, rejects="", advisory=False, note="", seeks={})
        try:
            found = describe(asked, default_of(self.format))
        except BittrueError:
            found = describe(replace(asked, rejects="unknown"))
        return {key: value for key, value in found.items() if key not in _ANSWERS}

    def __repr__(self) -> str:
        return f"DeviceModel({self.identity!r}, {self.format})"


def output_ports(case: SuiteCase) -> tuple[Port, ...]:
    """The outputs of a case's model as the file declares them; empty when bittrue cannot read it."""
    try:
        graph = case.model.graph
    except BittrueError:
        return ()
    tensors = (graph.tensors[index] for index in graph.outputs)
    return tuple(Port(t.name, t.type.numpy, t.shape, t.quantization) for t in tensors)


def output_names(case: SuiteCase) -> tuple[str, ...]:
    """Names of the outputs of a case's model; empty when bittrue cannot read it."""
    return tuple(port.name for port in output_ports(case))
