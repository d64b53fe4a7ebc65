"""Sessions of one model, prepared for the shapes that come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..api import Model, Session
from ..errors import BittrueError, InputError
from ..graph import DataType, Graph, ModelFile
from ..recent import Recent

# Prepared sessions kept; a program with more shapes than these prepares again.
_KEPT = 16
# What is refused whatever the shapes are.
_ALWAYS = ("BT-OPERATOR", "BT-OPERATOR-VERSION", "BT-UNDEFINED")

Shapes = Mapping[str, tuple[int, ...]]


class ArgumentError(InputError, ValueError):
    """Arguments that do not fit; programs written for other packages expect a ValueError."""


class Sessions:
    """Sessions of one graph of a model, one per combination of input shapes.

    Args:
        model: read.
        graph: index of the graph.
        options: for `Model.prepare`.
    """

    def __init__(self, model: Model, graph: int = 0, **options: Any) -> None:
        self.model = model
        self.graph: Graph = model.graphs[graph]
        self._index = graph
        self._options = options
        self._kept = Recent[Session](_KEPT)

    def is_fixed(self) -> bool:
        """Whether the file leaves nothing of the shapes of inputs open, as far as its graph tells.

        In ONNX files, an input whose rank is open looks like a scalar.
        """
        tensors = [self.graph.tensors[i] for i in self.graph.inputs]
        return all(t.shape_signature is None and (t.shape or self.model.format != "onnx") for t in tensors)

    def check(self) -> None:
        """What can be refused before any shape is known."""
        try:
            self.find({})
        except BittrueError as error:
            if isinstance(error, InputError) or self.is_fixed() or error.code in _ALWAYS:
                raise

    def find(self, shapes: Shapes, replaced: Shapes | None = None) -> Session:
        """The session for shapes of inputs.

        Args:
            shapes: by input name; those left out are as in the file.
            replaced: shapes of constants that become inputs behind the others, by name.
        """
        key = (tuple(sorted(shapes.items())), tuple(sorted((replaced or {}).items())))

        def prepare() -> Session:
            model = self.model if not replaced else Model(_opened(self.model, replaced))
            return model.prepare(shapes={**shapes, **(replaced or {})}, graph=self._index, **self._options)

        return self._kept.find(key, prepare)


def _opened(model: Model, names: Shapes) -> ModelFile:
    """The model file with constants of its first graph turned into inputs."""
    graph = model.graph
    indices = [i for i, tensor in enumerate(graph.tensors) if tensor.name in names]
    tensors = [replace(t, data=None) if i in indices else t for i, t in enumerate(graph.tensors)]
    opened = replace(graph, tensors=tuple(tensors), inputs=(*graph.inputs, *indices))
    return replace(model.file, graphs=(opened, *model.graphs[1:]))


def as_stored(value: Any, dtype: DataType, place: str) -> np.ndarray:
    """An array as sessions take it: narrow integers of `ml_dtypes` get a byte per element, lists become arrays.

    Raises:
        ArgumentError: another type, or values that a narrow type does not hold.
    """
    try:
        array = np.asarray(value) if isinstance(value, (np.ndarray, np.generic)) else np.asarray(value, dtype.numpy)
    except (ValueError, TypeError, OverflowError) as error:
        raise ArgumentError("BT-INPUT-TYPE", f"no array of {dtype.title}: {error}", place=place) from None
    if dtype.is_packed:
        if array.dtype.name == dtype.title:
            return array.astype(dtype.numpy)
        if array.dtype == dtype.numpy and array.size:
            low, high = int(array.min()), int(array.max())
            if low < dtype.minimum or high > dtype.maximum:
                raise ArgumentError("BT-INPUT-TYPE", f"values {low} to {high} are no {dtype.title}", place=place)
    if array.dtype != dtype.numpy:
        raise ArgumentError(
            "BT-INPUT-TYPE",
            f"expected {dtype.title}, found {array.dtype}",
            place=place,
            advice=f"convert it yourself: array.astype(np.{dtype.numpy})",
        )
    return array


def as_narrow(array: np.ndarray, dtype: DataType) -> np.ndarray:
    """A result whose dtype says what it holds: narrow integers as those of `ml_dtypes`."""
    if not dtype.is_packed:
        return array
    import ml_dtypes

    return array.astype(getattr(ml_dtypes, dtype.title))
