"""What the mappings of all formats share: a graph that grows, refusals that name the place, tables by theme."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidModelError, UnsupportedError
from ..graph import Node, Quantization, Tensor, data_type
from ..records import dataclass, field


@dataclass
class Growing:
    """Tensors and nodes of the graph that is being read; `names`: of all tensors."""

    tensors: list[Tensor] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def add(self, tensor: Tensor) -> int:
        """A new tensor; its name must be unique."""
        self.names.add(tensor.name)
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def unique(self, name: str) -> str:
        """`name`, with a number behind it when there is such a tensor."""
        found, number = name, 1
        while found in self.names:
            number += 1
            found = f"{name}#{number}"
        return found

    def constant(self, array: Any, name: str, quantization: Quantization | None = None) -> int:
        """A new constant, its name made unique."""
        value = np.asarray(array)
        flat = np.ascontiguousarray(value).reshape(-1)
        dtype = data_type(value.dtype.name).name
        return self.add(Tensor(self.unique(name), dtype, value.shape, quantization=quantization, data=flat))


class Refusing:
    """Errors about one node of a file."""

    @property
    def place(self) -> str:
        """Which node, for people."""
        raise NotImplementedError

    def invalid(self, code: str, message: str, advice: str = "") -> InvalidModelError:
        """An error about this node: the model contradicts itself, or the runtime refuses it."""
        return InvalidModelError(code, message, place=self.place, advice=advice)

    def unsupported(self, code: str, message: str, advice: str = "") -> UnsupportedError:
        """An error about this node: legal, but not read."""
        return UnsupportedError(code, message, place=self.place, advice=advice)


def collected(package: str, themes: Sequence[str]) -> Mapping[Any, Any]:
    """The tables MAPPERS of a package's modules as one."""
    found: dict[Any, Any] = {}
    for theme in themes:
        mappers = importlib.import_module(f"{package}.{theme}").MAPPERS
        double = found.keys() & mappers.keys()
        if double:
            raise RuntimeError(f"two mappings for {sorted(double)}")
        found.update(mappers)
    return found


def unmapped(name: str) -> str:
    """What stands in place of a stem for an operator that no table names: with a dot, as no stem has one.

    Nodes of other domains and layers of other branches have the names of operators here and mean something else.

    >>> unmapped("StringSplit")
    'unmapped.StringSplit'
    """
    return f"unmapped.{name}"
