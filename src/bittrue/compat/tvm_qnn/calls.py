"""Calls of `bittrue.qnn` in the making: symbolic tensors, and the Python text that makes them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedError
from ...graph import Graph, Node, Tensor, data_type
from . import elementwise, layers, nn, pooling, quantization
from .expr import Expr, var
from .plain_lowering import OF_STORED

if TYPE_CHECKING:
    from ...api import Model

# Function -> the module that has it, and what it is called by users.
_WHERE: dict[str, tuple[ModuleType, str]] = {
    **dict.fromkeys(("add", "subtract", "mul", "concatenate", "clip"), (elementwise, "qnn")),
    **dict.fromkeys(("batch_matmul", "bias_add", "conv2d", "conv2d_transpose", "dense"), (layers, "qnn")),
    **dict.fromkeys(("avg_pool2d", "max_pool2d"), (pooling, "qnn")),
    **dict.fromkeys(("dequantize", "quantize", "requantize"), (quantization, "qnn")),
    **dict.fromkeys(
        tuple(
            "nn.abs nn.add nn.avg_pool2d nn.exp nn.hard_swish nn.leaky_relu nn.log nn.log_softmax nn.multiply nn.relu"
            " nn.rsqrt nn.sigmoid nn.sqrt nn.tanh".split()
        ),
        (nn, "qnn.nn"),
    ),
    **dict.fromkeys(OF_STORED, (nn, "qnn.nn")),
    **dict.fromkeys(
        tuple(
            "argmax batch_to_space_nd cast mean pad reshape resize2d softmax space_to_batch_nd space_to_depth"
            " strided_slice sum take transpose".split()
        ),
        (nn, "qnn.nn"),
    ),
}
_MOST_SHOWN = 8


@dataclass(frozen=True)
class Conversion:
    """What became of a file.

    Attributes:
        outputs: symbolic tensors, in the order of the file, named as there.
        constants: weights and the like by the names that `source` gives them.
        source: Python text that makes `outputs` from `qnn` (`bittrue.qnn`) and `constants`.
    """

    outputs: tuple[Expr, ...]
    constants: dict[str, np.ndarray]
    source: str

    def model(self, fuse: bool = True) -> Model:
        """`bittrue.qnn.model` of the outputs."""
        from .model import model

        return model(self.outputs, fuse)


@dataclass
class Calls:
    """What became of a graph so far."""

    graph: Graph
    values: dict[int, Any] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)

    # -- calls and their text --------------------------------------------------------------------------------------
    def text(self, value: Any) -> str:
        """An argument as Python text; larger arrays become constants by name."""
        if isinstance(value, Expr):
            return self.names[id(value)]
        if isinstance(value, np.ndarray) and value.ndim:
            if value.size <= _MOST_SHOWN and value.dtype == np.float32:
                return f"np.float32({value.tolist()})"
            name = f"c{len(self.constants)}"
            self.constants[name] = value
            return f'constants["{name}"]'
        if isinstance(value, np.float32 | np.ndarray):
            return f"np.float32({float(value)!r})"
        if isinstance(value, list | tuple) and any(isinstance(v, Expr | np.ndarray | np.float32) for v in value):
            return f"[{', '.join(self.text(v) for v in value)}]"
        return repr(int(value) if isinstance(value, np.integer) else value)

    def call(self, function: str, *arguments: Any, **named: Any) -> Any:
        """The result of a function of `bittrue.qnn`, and a line of text that says so."""
        (module, prefix), name = _WHERE[function], function.rpartition(".")[2]
        result = getattr(module, name)(*arguments, **named)
        return self.note(result, f"{prefix}.{name}", arguments, named)

    def note(self, result: Any, function: str, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        given = [self.text(a) for a in arguments] + [f"{key}={self.text(value)}" for key, value in named.items()]
        name = f"t{len(self.names)}"
        self.names[id(result)] = name
        self.kept.append(result)  # keeps `id` unique
        self.lines.append(f"{name} = {function}({', '.join(given)})")
        return result

    # -- tensors ---------------------------------------------------------------------------------------------------
    def tensor(self, index: int | None) -> Tensor:
        assert index is not None
        return self.graph.tensors[index]

    def value(self, index: int | None) -> Any:
        """What a tensor is: symbolic, or an array."""
        if index not in self.values:
            self.values[index] = self.tensor(index).values()  # type: ignore[index]
        return self.values[index]  # type: ignore[index]

    def unsupported(self, node: Node, what: str) -> UnsupportedError:
        return UnsupportedError(
            "BT-QNN-CONVERT", f"{what} has no form in bittrue.qnn", place=str(node), advice="run the file itself"
        )

    def input(self, index: int, shape: Sequence[int]) -> None:
        """An input of the graph as a variable."""
        tensor = self.graph.tensors[index]
        arguments = (tensor.name, tuple(int(size) for size in shape), data_type(tensor.dtype).title)
        self.values[index] = self.note(var(*arguments), "qnn.var", arguments, {})

    def finished(self) -> Conversion:
        """The outputs of the graph, named as there."""
        wanted = [self.values[index] for index in self.graph.outputs]
        self.lines.append(f"outputs = [{', '.join(self.names[id(expr)] for expr in wanted)}]")
        named = tuple(
            replace(expr, name=expr.name or self.graph.tensors[index].name)
            for expr, index in zip(wanted, self.graph.outputs, strict=True)
        )
        return Conversion(named, self.constants, "\n".join(self.lines) + "\n")
