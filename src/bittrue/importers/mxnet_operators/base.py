"""What a mapping of one MXNet operator works with: the node as it is read, and the graph as it grows."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import InvalidModelError
from ...graph import Attribute, Node, Tensor
from ...records import dataclass, field, replace
from ..mapping import Growing, Refusing

# Attributes of users and of training, which decide nothing that is computed.
_FOR_TRAINING = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")
_LONGEST_TEXT = 1 << 12
_MOST_DIMENSIONS = 32


@dataclass
class GraphBuilder(Growing):
    """The graph that is being read.

    Attributes:
        untyped: inputs whose type the file does not give.
        shapes: what is known of the shapes of inputs, with -1 for what is not.
        follows: tensors with the rank and channels of another one.
        notes: what was accepted although it is odd.
    """

    untyped: set[int] = field(default_factory=set)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    follows: dict[int, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, tensor: Tensor) -> int:
        """A new tensor; its name gets a number behind it when there is such a tensor."""
        name = self.unique(tensor.name)
        return super().add(tensor if name == tensor.name else replace(tensor, name=name))


@dataclass(frozen=True)
class Inner:
    """An operator inside of a fused node."""

    operator: str
    attributes: Mapping[str, str]


@dataclass
class Source(Refusing):
    """One node of the file while it is mapped.

    Attributes:
        operator, label: what the file calls the operator and the node.
        inputs: tensor indices.
        attributes: texts, as the file holds them.
        inner: the operators of the node's subgraph, in their order.
        builder: the graph so far.
        results: tensor indices of the node's outputs, set by `emit` and `give`.
    """

    operator: str
    label: str
    inputs: list[int]
    attributes: Mapping[str, str]
    inner: Sequence[Inner]
    builder: GraphBuilder
    position: int
    results: list[int] = field(default_factory=list)
    read: set[str] = field(default_factory=set)

    # -- attributes ------------------------------------------------------------------------------------------------
    def has(self, name: str) -> bool:
        """Whether attribute `name` is given, and not as None."""
        self.read.add(name)
        return self.attributes.get(name, "None") != "None"

    def text(self, name: str, default: str, among: Sequence[str] = ()) -> str:
        """A text; one of those `among`, if there are any."""
        value = self.attributes[name] if self.has(name) else default
        if among and value not in among:
            raise self.unsupported("BT-MXNET-ATTRIBUTE", f"attribute '{name}' is '{value[:40]}', known: {list(among)}")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """A truth value: True, true, 1 and so on."""
        value = self.text(name, str(default)).lower()
        if value not in ("true", "false", "1", "0"):
            raise self.invalid("BT-MXNET-ATTRIBUTE", f"attribute '{name}' is '{value[:40]}', no truth value")
        return value in ("true", "1")

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer; a typed error when it is absent and there is no default."""
        if not self.has(name):
            if default is None:
                raise self.invalid("BT-MXNET-ATTRIBUTE", f"attribute '{name}' is missing")
            return default
        try:
            return _bounded(int(self.attributes[name]))
        except ValueError:
            raise self._no(name, "integer") from None

    def integers(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """A list of integers like ``(1, 1)``; one number is a list of one."""
        if not self.has(name):
            return default
        text = self.attributes[name].strip()
        if text[:1] not in "([" or text[-1:] not in ")]":
            text = f"({text},)"
        parts = [part.strip().removesuffix("L") for part in text[1:-1].split(",")]
        parts = parts[:-1] if parts[-1] == "" else parts
        try:
            if len(parts) > _MOST_DIMENSIONS:
                raise ValueError
            return tuple(_bounded(int(part)) for part in parts)
        except ValueError:
            raise self._no(name, "list of integers") from None

    def real(self, name: str, default: float | None = None) -> np.float32:
        """A number, rounded to binary32."""
        if not self.has(name):
            if default is None:
                raise self.invalid("BT-MXNET-ATTRIBUTE", f"attribute '{name}' is missing")
            return np.float32(default)
        try:
            return binary32(self.attributes[name])
        except ValueError:
            raise self._no(name, "number") from None

    def wide(self, name: str, default: float) -> float:
        """A number, rounded to binary64."""
        if not self.has(name):
            return default
        try:
            return float(self.attributes[name])
        except ValueError:
            raise self._no(name, "number") from None

    def ignore(self, *names: str) -> None:
        """Attributes that change no result."""
        self.read.update(names)

    def _no(self, name: str, kind: str) -> InvalidModelError:
        value = self.attributes[name][:40]
        return self.invalid("BT-MXNET-ATTRIBUTE", f"attribute '{name}' is '{value}', no {kind}")

    def check_attributes(self) -> None:
        """Refuses attributes that no mapping has read."""
        for name in self.attributes:
            hidden = name.startswith("__") or name.endswith(_FOR_TRAINING)
            if name not in self.read and not hidden:
                raise self.unsupported(
                    "BT-MXNET-ATTRIBUTE",
                    f"attribute '{name[:80]}' is not known for {self.operator}",
                    "results may depend on it; remove it if they do not",
                )

    # -- operands --------------------------------------------------------------------------------------------------
    def expect(self, *counts: int) -> None:
        """Check the number of inputs."""
        if len(self.inputs) not in counts:
            wanted = " or ".join(str(count) for count in counts)
            raise self.invalid("BT-NODE-ARITY", f"expected {wanted} inputs, found {len(self.inputs)}")

    def type(self, position: int, assumed: str = "f32") -> str:
        """Element type of input `position`; `assumed` becomes that of a graph's input without a type."""
        index = self.inputs[position]
        if index in self.builder.untyped:
            self.builder.tensors[index] = replace(self.builder.tensors[index], dtype=assumed)
            self.builder.untyped.discard(index)
        return self.builder.tensors[index].dtype

    def ranges(self, *positions: int) -> list[int]:
        """The inputs at `positions`, which hold ends of ranges."""
        for position in positions:
            if self.type(position) != "f32":
                raise self.invalid("BT-NODE-TYPE", f"input {position} is the end of a range, and must be float32")
        return [self.inputs[position] for position in positions]

    def end(self, value: Any, role: str) -> int:
        """A constant end of a range."""
        return self.builder.constant(np.asarray([value], np.float32), f"{self.label}_{role}")

    def known(self, position: int) -> tuple[int, ...] | None:
        """The shape of input `position` where it is a constant."""
        tensor = self.builder.tensors[self.inputs[position]]
        return tensor.shape if tensor.is_constant else None

    def expects(self, position: int, sizes: tuple[int, ...]) -> None:
        """The shape that input `position` must have, -1 for any dimension; declared for the input that it stems
        from.
        """
        index = self.inputs[position]
        while index in self.builder.follows:
            index = self.builder.follows[index]
        self.builder.shapes.setdefault(index, sizes)

    def keeps_shape(self, result: int, position: int) -> None:
        """Tensor `result` has the rank and the channels of input `position`."""
        self.builder.follows[result] = self.inputs[position]

    # -- results ---------------------------------------------------------------------------------------------------
    def emit(
        self,
        operator: str,
        inputs: Sequence[int | None],
        types: Sequence[str],
        names: Sequence[str],
        attributes: Mapping[str, Attribute] | None = None,
    ) -> list[int]:
        """Adds a node; tensor indices of its outputs.

        Args:
            operator: stem.
            names: of the outputs; those that start with an underscore follow the node's name (``_output``).
        """
        results = [
            self.builder.add(Tensor(self.label + name if name[:1] == "_" else name, dtype, ()))
            for name, dtype in zip(names, types, strict=True)
        ]
        self.builder.nodes.append(
            Node(
                len(self.builder.nodes),
                operator,
                self.operator,
                1,
                attributes or {},
                tuple(inputs),
                tuple(results),
            )
        )
        return results

    def copy(self, position: int, name: str) -> int:
        """Input `position` under a name of this node: ranges that pass through."""
        (result,) = self.emit("identity", [self.inputs[position]], [self.type(position)], [name])
        self.keeps_shape(result, position)
        return result

    def give(self, *results: int) -> None:
        """The node's outputs, in the file's order."""
        self.results = list(results)

    @property
    def place(self) -> str:
        return f"node {self.position} ({self.operator} '{self.label}')"


def _bounded(value: int) -> int:
    if abs(value) >= 1 << 31:
        raise ValueError
    return value


def binary32(text: str) -> np.float32:
    """The binary32 number nearest to a decimal one, rounded once, as the runtime reads it; ValueError for other texts.

    >>> float(binary32("3.512764"))
    3.5127639770507812
    >>> float(binary32("1e39"))
    inf
    """
    from fractions import Fraction

    value = float(text)
    with np.errstate(over="ignore"):
        narrow = np.float32(value)
    if not math.isfinite(value) or not np.isfinite(narrow) or len(text) > _LONGEST_TEXT:
        return narrow
    # Twice rounded, it may be the neighbour: of the three numbers around, the exact distance decides.
    exact = Fraction(text.strip().replace("_", "x"))
    around = [np.nextafter(narrow, np.float32(-np.inf)), narrow, np.nextafter(narrow, np.float32(np.inf))]
    finite = [one for one in around if np.isfinite(one)]
    even = [int(one.view(np.uint32)) & 1 for one in finite]
    best = min(range(len(finite)), key=lambda i: (abs(Fraction(float(finite[i])) - exact), even[i]))
    return finite[best] if finite[best] != 0 or narrow == 0 else narrow


def literal(text: str) -> Any:
    """A Python literal in an attribute; ValueError for other texts."""
    if len(text) > _LONGEST_TEXT:
        raise ValueError("too long")
    try:
        return ast.literal_eval(text)
    except (SyntaxError, MemoryError, RecursionError, TypeError) as error:
        raise ValueError(str(error)) from None


Mapper = Callable[[Source], None]
# MXNet's name of an operator to its mapping.
Mappers = Mapping[str, Mapper]
