"""What every operator file is made of: the call it lowers, the step it lowers to, and its registration."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import BittrueError, InvalidModelError, ModelFormatError, UnsupportedError
from ..graph import Attribute, DataType, Node, Quantization, Tensor

Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Operand:
    """One input or output of a call: the tensor, the shape that the planner inferred, the value when it is known.

    Attributes:
        index: tensor index in the graph.
        tensor: the graph's tensor (its declared shape is not to be trusted).
        shape: inferred shape; for outputs, the empty tuple until inference has run.
        value: constant or folded content in `shape`, sub-byte integers widened; None when only known at run time.
    """

    index: int
    tensor: Tensor
    shape: Shape
    value: np.ndarray | None = None

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def dtype(self) -> str:
        return self.tensor.dtype

    @property
    def type(self) -> DataType:
        return self.tensor.type

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def quantization(self) -> Quantization:
        """The quantization parameters; a typed error when the tensor has none."""
        if self.tensor.quantization is None:
            raise InvalidModelError(
                "BT-QUANT-MISSING",
                f"needs a scale and a zero point, but this {self.type.title} tensor has none",
                place=f"tensor '{self.name}'",
                advice="quantize the model again; the integers mean nothing without a scale",
            )
        return self.tensor.quantization

    @property
    def scale(self) -> np.float32:
        """The per-tensor binary32 scale; a typed error for per-axis parameters."""
        return np.float32(self._per_tensor().scales[0])

    @property
    def zero_point(self) -> int:
        """The per-tensor zero point; a typed error for per-axis parameters."""
        return int(self._per_tensor().zero_points[0])

    def _per_tensor(self) -> Quantization:
        quantization = self.quantization
        if quantization.per_axis:
            raise InvalidModelError(
                "BT-QUANT-PER-AXIS",
                f"per-axis parameters ({quantization.scales.size} scales) where one scale per tensor is needed",
                place=f"tensor '{self.name}'",
                advice="only weights and biases of convolutions and fully-connected layers may be per axis",
            )
        return quantization


@dataclass(frozen=True, eq=False)
class Call:
    """One node with everything that plan time knows about it.

    Attributes:
        rules: slot to rule name, from the numerics' row.
        intermediates: tensors that carry only quantization parameters.
    """

    node: Node
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand, ...]
    rules: Mapping[str, str] = field(default_factory=dict)
    intermediates: tuple[Tensor, ...] = ()

    @property
    def place(self) -> str:
        outputs = f" -> '{self.outputs[0].name}'" if self.outputs else ""
        return f"{self.node}{outputs}"

    def invalid(self, code: str, message: str, advice: str = "") -> InvalidModelError:
        """An error about this node, ready to raise: the model contradicts itself or the numerics refuses it."""
        return InvalidModelError(code, message, place=self.place, advice=advice)

    def unsupported(self, code: str, message: str, advice: str = "") -> UnsupportedError:
        """An error about this node, ready to raise: legal, but not implemented."""
        return UnsupportedError(code, message, place=self.place, advice=advice)

    def has(self, position: int) -> bool:
        """Whether the optional input at `position` is present."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def input(self, position: int, role: str = "input") -> Operand:
        """Input `position`; a typed error when it is absent."""
        operand = self.inputs[position] if position < len(self.inputs) else None
        if operand is None:
            raise self.invalid(
                "BT-NODE-INPUT", f"input {position} ({role}) is missing", "the operator cannot run without it"
            )
        return operand

    @property
    def output(self) -> Operand:
        """The only output; a typed error when there are none."""
        if not self.outputs:
            raise self.invalid("BT-NODE-OUTPUT", "the node has no output")
        return self.outputs[0]

    def expect(self, inputs: int | tuple[int, int], outputs: int | None = 1) -> None:
        """Check the number of inputs (exact, or between two counts) and outputs."""
        low, high = (inputs, inputs) if isinstance(inputs, int) else inputs
        if not low <= len(self.inputs) <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            raise self.invalid("BT-NODE-ARITY", f"expected {wanted} inputs, found {len(self.inputs)}")
        if outputs is not None and len(self.outputs) != outputs:
            raise self.invalid("BT-NODE-ARITY", f"expected {outputs} outputs, found {len(self.outputs)}")

    def attribute(self, name: str) -> Any:
        """Attribute `name`; importers resolve every default, so absence is a typed error."""
        if name not in self.node.attributes:
            raise self.invalid("BT-NODE-ATTRIBUTE", f"attribute '{name}' is missing")
        return self.node.attributes[name]

    def constant(self, position: int, role: str) -> np.ndarray:
        """The value of input `position`, which must be known at plan time."""
        operand = self.input(position, role)
        if operand.value is None:
            raise self.unsupported(
                "BT-DYNAMIC",
                f"input {position} ({role}, tensor '{operand.name}') decides shapes but is only known at run time",
                "bittrue plans every shape ahead of the run; export the model with static shapes",
            )
        return operand.value

    def integers(self, position: int, role: str) -> list[int]:
        """The value of input `position` as a flat list of Python integers, known at plan time."""
        value = self.constant(position, role)
        if value.dtype.kind not in "iu":
            raise self.invalid("BT-NODE-TYPE", f"input {position} ({role}) must be integer, found {value.dtype}")
        return [int(v) for v in value.reshape(-1)]

    def rank(self, operand: Operand, low: int, high: int | None = None) -> None:
        """Check the rank of an operand."""
        high = low if high is None else high
        if not low <= operand.rank <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            raise self.invalid(
                "BT-SHAPE-RANK", f"tensor '{operand.name}' must have rank {wanted}, found shape {list(operand.shape)}"
            )

    def axis(self, axis: int, rank: int, role: str = "axis") -> int:
        """`axis` counted from the front; a typed error when it is outside [-rank, rank)."""
        if not -rank <= axis < rank:
            raise self.invalid("BT-SHAPE-AXIS", f"{role} {axis} is outside a tensor of rank {rank}")
        return axis % rank if rank else 0


@dataclass(frozen=True)
class Bound:
    """What is proven about an accumulator: |acc| <= magnitude; `wraps` when the register is narrower than that."""

    magnitude: int
    wraps: bool

    def __str__(self) -> str:
        return f"|acc| <= {self.magnitude} ({'wraps' if self.wraps else 'exact'})"


@dataclass(frozen=True, eq=False)
class Step:
    """One operator with every decision taken: what executors interpret.

    Attributes:
        index: the node's position in the graph.
        operator: stem.
        source: what the file calls the operator.
        inputs, outputs: tensor indices of the plan.
        rules: slot to rule name.
        parameters: geometry, zero points and clamps as plain values.
        arrays: prepared multipliers, exponents and tables.
        accumulator: the proven bound, for operators that accumulate.
        work: multiply-accumulates, or elements touched, whichever describes the cost.
    """

    index: int
    operator: str
    source: str
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]
    rules: Mapping[str, str]
    parameters: Mapping[str, Attribute]
    arrays: Mapping[str, np.ndarray]
    accumulator: Bound | None = None
    work: int = 0

    def __getitem__(self, name: str) -> Any:
        try:
            return self.parameters[name]
        except KeyError:
            raise ModelFormatError(
                "BT-PLAN-STEP", f"the plan gives no parameter '{name}'", place=self.place, advice="plan the model again"
            ) from None

    @property
    def place(self) -> str:
        return f"node {self.index} ({self.source})"


@dataclass(frozen=True, eq=False)
class Lowered:
    """What an operator's `lower` returns; the planner adds indices and rules to make a `Step`.

    Attributes:
        work: multiply-accumulates; None means one per output element.
        scratch: bytes of temporary memory that a run needs beyond its tensors, for the memory limit.
    """

    parameters: Mapping[str, Attribute] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    accumulator: Bound | None = None
    work: int | None = None
    scratch: int = 0


Infer = Callable[[Call], list[Shape]]
Lower = Callable[[Call], Lowered]
Reference = Callable[[Step, Sequence[Any]], "list[np.ndarray]"]


@dataclass(frozen=True)
class Operator:
    """One operator: its slots, its shapes, how it is planned, and what it computes.

    Attributes:
        stem: its name in every tree.
        slots: the slots that a numerics row must fill.
        infer: output shapes from a call whose inputs have shapes (and values where known).
        lower: prepared parameters from a call whose outputs have shapes.
        reference: the NumPy meaning; receives one array per input (None where absent).
        summary: one line for tables and pages.
        stateful: reads or changes variable tensors, so it is never folded. `reference` returns the outputs followed
            by the new values of the variable inputs, in input order.
        needs_only_shapes: the result follows from the input shapes, so it is known at plan time. `lower` must then put
            all that `reference` needs into the step.
    """

    stem: str
    slots: tuple[str, ...]
    infer: Infer
    lower: Lower
    reference: Reference
    summary: str = ""
    stateful: bool = False
    needs_only_shapes: bool = False


def nothing_to_prepare(call: Call) -> Lowered:
    """`lower` of operators that need no prepared values."""
    return Lowered()


def same_shape(call: Call) -> list[Shape]:
    """`infer` of unary element-wise operators."""
    call.expect(1)
    return [call.input(0).shape]


def broadcast_shape(call: Call) -> list[Shape]:
    """`infer` of binary element-wise operators: NumPy broadcasting."""
    call.expect(2)
    first, second = call.input(0), call.input(1)
    rank = max(first.rank, second.rank)
    one, two = ((1,) * (rank - len(s)) + s for s in (first.shape, second.shape))
    if any(a != b and 1 not in (a, b) for a, b in zip(one, two, strict=True)):
        raise call.invalid(
            "BT-SHAPE-BROADCAST", f"shapes {list(first.shape)} and {list(second.shape)} do not broadcast together"
        )
    return [tuple(b if a == 1 else a for a, b in zip(one, two, strict=True))]


def place_errors(call: Call, error: BittrueError) -> BittrueError:
    """The same error with the node prepended to its place, so that tensor-level errors also name the node."""
    if error.place.startswith("node "):
        return error
    place = f"{call.place}: {error.place}" if error.place else call.place
    return type(error)(error.code, error.message, place=place, advice=error.advice)
