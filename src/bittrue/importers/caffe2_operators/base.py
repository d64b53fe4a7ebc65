"""What the mapping of one Caffe2 operator works with: the operator as it is read, and the graph as it grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...graph import Attribute, Node, Quantization, Tensor
from ...records import dataclass, field
from ..mapping import Growing, Refusing

_S32 = range(-(2**31), 2**31)
_U8 = range(256)
# Fields of an argument that hold one value, and those that hold several.
_SINGLE = {"f": float, "i": int, "s": bytes}
_SEVERAL = {"floats": float, "ints": int, "strings": bytes}
# Arguments that say how to run, not what to compute.
_WITHOUT_MEANING = frozenset(
    "ws_nbytes_limit exhaustive_search shared_buffer cudnn_exhaustive_search broadcast_bias init_params "
    "device_option debug_info dequantize_output_name save_unpacked_weights".split()
)
SERVER = "DNNLOWP"


@dataclass
class GraphBuilder(Growing):
    """The graph that is being read.

    Attributes:
        blobs: the tensor that a name stands for now; operators may overwrite blobs.
        writes: how many operators still write a name.
    """

    blobs: dict[str, int] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)

    def unique(self, name: str) -> str:
        """`name`, with a number behind it when there is such a tensor, or will be."""
        found, number = name, 1
        while found in self.names or (number > 1 and found in self.writes):
            number += 1
            found = f"{name}#{number}"
        return found

    def write(self, blob: str, dtype: str, quantization: Quantization | None) -> int:
        """A new tensor that `blob` stands for from now on; its last one has the blob's own name."""
        left = self.writes.get(blob, 1) - 1
        self.writes[blob] = left
        name = blob if not left and blob not in self.names else self.unique(f"{blob}#1")
        index = self.add(Tensor(name, dtype, (), quantization=quantization))
        self.blobs[blob] = index
        return index


@dataclass
class Source(Refusing):
    """One operator of the file while it is mapped.

    Attributes:
        type: as in the file.
        label: for messages and for the names of tensors that a mapping adds.
        engine: empty for the default one.
        inputs: tensor indices.
        outputs: blobs.
        arguments: by name; their fields are read when they are asked for.
        builder: the graph so far.
    """

    type: str
    label: str
    engine: str
    inputs: list[int]
    outputs: list[str]
    arguments: Mapping[str, Any]
    builder: GraphBuilder
    read: set[str] = field(default_factory=set)

    # -- arguments -------------------------------------------------------------------------------------------------
    def has(self, name: str) -> bool:
        """Whether argument `name` is given."""
        self.read.add(name)
        return name in self.arguments

    def _single(self, name: str, field_name: str, default: Any) -> Any:
        if not self.has(name):
            return default
        argument = self.arguments[name]
        if not argument.HasField(field_name):
            kind = _SINGLE[field_name].__name__
            raise self.invalid("BT-CAFFE2-ARGUMENT", f"argument '{name}' has no field '{field_name}' (of type {kind})")
        return getattr(argument, field_name)

    def integer(self, name: str, default: int) -> int:
        """An integer of 32 bits."""
        value = int(self._single(name, "i", default))
        if value not in _S32:
            raise self.invalid("BT-CAFFE2-ARGUMENT", f"argument '{name}' is {value}, which does not fit 32 bits")
        return value

    def real(self, name: str, default: float) -> float:
        """A binary32 number."""
        return float(np.float32(self._single(name, "f", default)))

    def content(self, name: str) -> bytes | None:
        """Bytes; None where the argument is absent."""
        value = self._single(name, "s", None)
        return None if value is None else bytes(value)

    def text(self, name: str, default: str) -> str:
        """Bytes as text."""
        value = self.content(name)
        return default if value is None else value.decode("utf-8", "replace")

    def several(self, name: str, field_name: str) -> list[Any] | None:
        """The list in one field of argument `name`; None where the argument is absent."""
        if not self.has(name):
            return None
        found = list(getattr(self.arguments[name], field_name))
        others = [other for other in (*_SEVERAL, *_SINGLE) if other != field_name and self._filled(name, other)]
        if others:
            raise self.invalid(
                "BT-CAFFE2-ARGUMENT", f"argument '{name}' is given as '{others[0]}', expected '{field_name}'"
            )
        return found

    def _filled(self, name: str, field_name: str) -> bool:
        argument = self.arguments[name]
        return argument.HasField(field_name) if field_name in _SINGLE else bool(len(getattr(argument, field_name)))

    def integers(self, name: str) -> list[int] | None:
        """A list of integers; None where the argument is absent."""
        found = self.several(name, "ints")
        return None if found is None else [int(value) for value in found]

    def channels_last(self, default: str = "NCHW") -> None:
        """Refuses an argument `order` that is not NHWC."""
        order = self.text("order", default)
        if order != "NHWC":
            raise self.invalid(
                "BT-CAFFE2-ORDER",
                f"the order is '{order}'{'' if self.has('order') else ' (the default)'}, int8 operators run in NHWC",
                "the runtime refuses it, too; set the argument order to NHWC",
            )

    def finish(self) -> None:
        """Refuses arguments that nobody has read: they may change results."""
        unread = [name for name in self.arguments if name not in self.read and name not in _WITHOUT_MEANING]
        if unread:
            raise self.unsupported(
                "BT-CAFFE2-ARGUMENT", f"argument '{unread[0]}' is not known", "remove it if it means nothing"
            )

    # -- operands --------------------------------------------------------------------------------------------------
    def expect(self, inputs: int | tuple[int, int], outputs: int = 1) -> None:
        """Checks the number of inputs (exact, or between two counts) and outputs."""
        low, high = (inputs, inputs) if isinstance(inputs, int) else inputs
        if not low <= len(self.inputs) <= high or len(self.outputs) != outputs:
            wanted = str(low) if low == high else f"{low} to {high}"
            raise self.invalid(
                "BT-NODE-ARITY",
                f"expected {wanted} inputs and {outputs} outputs, found {len(self.inputs)} and {len(self.outputs)}",
            )

    def tensor(self, position: int) -> Tensor:
        """Input `position`."""
        return self.builder.tensors[self.inputs[position]]

    def quantization(self, position: int) -> Quantization:
        """Scale and zero point of input `position`; a typed error for a real tensor."""
        found = self.tensor(position).quantization
        if found is None:
            raise self.invalid(
                "BT-QUANT-MISSING",
                f"input {position} ('{self.tensor(position).name}') is no Int8 tensor",
                "if it is a weight, pass the init net that fills it (weights=..., --weights FILE); else quantize it "
                "with Int8Quantize, or say its scale and zero point in the init net: an Int8GivenTensorFill without "
                "values declares an input",
            )
        return found

    def requested(self) -> Quantization:
        """Scale and zero point that the arguments Y_scale and Y_zero_point ask for."""
        return self.parameters(self.real("Y_scale", 1.0), self.integer("Y_zero_point", 0))

    def parameters(self, scale: float, zero_point: int) -> Quantization:
        """Checked parameters of an Int8 tensor."""
        if not (np.isfinite(scale) and scale > 0):
            raise self.invalid("BT-QUANT-SCALE", f"scale {scale!r} must be finite and above 0")
        if zero_point not in _U8:
            raise self.invalid("BT-QUANT-ZERO-POINT", f"zero point {zero_point} lies outside of 0..255")
        return Quantization(np.array([scale], np.float32), np.array([zero_point], np.int64))

    def constant(self, array: Any, role: str, quantization: Quantization | None = None) -> int:
        """A new constant."""
        return self.builder.constant(np.ascontiguousarray(array), f"{self.label}/{role}", quantization)

    def integers_of(self, position: int, role: str) -> list[int]:
        """The content of a constant input of integers."""
        tensor = self.tensor(position)
        if not tensor.is_constant or tensor.dtype not in ("s32", "s64"):
            raise self.unsupported(
                "BT-DYNAMIC", f"input {position} ({role}) must be a constant of integers, filled by the init net"
            )
        return [int(value) for value in tensor.values().reshape(-1)]

    # -- result ----------------------------------------------------------------------------------------------------
    def emit(
        self,
        operator: str,
        dtype: str,
        quantization: Quantization | None,
        attributes: Mapping[str, Attribute] | None = None,
        *,
        inputs: Sequence[int | None] | None = None,
        inner: str = "",
        output: int = 0,
    ) -> int:
        """Adds a node; the index of its output.

        Args:
            operator: stem.
            dtype, quantization: of the output.
            attributes: all that the operator asks for; the engine comes along.
            inputs: tensor indices; None: the file's.
            output: position of the file's output.
            inner: what a result between two nodes of one mapping is called; empty for the file's output.
        """
        if inner:
            name = self.builder.unique(f"{self.label}/{inner}")
            result = self.builder.add(Tensor(name, dtype, (), quantization=quantization))
        else:
            result = self.builder.write(self.outputs[output], dtype, quantization)
        given = tuple(self.inputs if inputs is None else inputs)
        everything = {**(attributes or {}), "engine": self.engine}
        self.builder.nodes.append(Node(len(self.builder.nodes), operator, self.type, 1, everything, given, (result,)))
        return result

    @property
    def place(self) -> str:
        return f"node {len(self.builder.nodes)} ({self.type} '{self.label}')"


Mapper = Callable[[Source], None]
Mappers = Mapping[str, Mapper]


def in_u8(source: Source, *positions: int) -> None:
    """Inputs at `positions` are Int8 tensors of bytes."""
    for position in positions:
        source.quantization(position)
        if source.tensor(position).dtype != "u8":
            tensor = source.tensor(position)
            raise source.invalid("BT-NODE-TYPE", f"input {position} ('{tensor.name}') is {tensor.dtype}, expected u8")
