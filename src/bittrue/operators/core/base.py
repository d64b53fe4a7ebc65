"""What every operator file is made of: the call it lowers, the step it lowers to, and its registration."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Protocol

import numpy as np

from ...errors import BittrueError, InvalidModelError, ModelFormatError, UnsupportedError
from ...graph import Attribute, DataType, Node, Quantization, Tensor
from ...records import dataclass, field

# -1 for a dimension that only running tells; such shapes occur in what `infer` returns and nowhere else.
Shape = tuple[int, ...]


class ValueUnknown(UnsupportedError):
    """A value that decides shapes is only known at run time: planning stops here and goes on while running."""


# Shapes, axes and sizes of pieces in files are claims; lists of them are walked through one by one.
_MOST_INTEGERS = 1 << 16


@dataclass(frozen=True, eq=False)
class Operand:
    """One input or output of a call: the tensor, the shape that the planner inferred, the value when it is known.

    Attributes:
        index: tensor index in the graph.
        tensor: the graph's tensor (its declared shape is not to be trusted).
        shape: inferred shape; for outputs, the empty tuple until inference has run.
        value: constant or folded content in `shape`, sub-byte integers widened; None when only known at run time.
        is_made: the runtime computes the value in every run, though it is known.
        unpacked_from: the type of the constant that the runtime's kernels make the value of; empty for all others.
    """

    index: int
    tensor: Tensor
    shape: Shape
    value: np.ndarray | None = None
    is_made: bool = False
    unpacked_from: str = ""

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
    def computed_size(self) -> int:
        """Elements that count for the memory limit: none of a known value, which the file holds whole."""
        return 0 if self.value is not None else self.size

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


@dataclass(frozen=True)
class GraphUse:
    """How an operator calls another graph of the file.

    Attributes:
        attribute: the node's attribute with the graph's index.
        first_input: from this input on, the node's inputs are the graph's inputs; None when the graph gets none.
        repeats: attribute with the index of the graph whose results are the next inputs of this one; it knows the
            values only of inputs that never change.
        when: input 0 decides by this truth value whether the graph is called; where it is known that it is not, the
            graph is not planned, unless the node's attribute `plans_both` says that both must fit.
        optional: a node without the attribute does not call the graph.
    """

    attribute: str
    first_input: int | None = 0
    repeats: str | None = None
    when: bool | None = None
    optional: bool = False


@dataclass(frozen=True)
class Subgraph:
    """A graph that a node calls, planned for the shapes that the node gives it.

    Attributes:
        number: its position among the plan's nested plans.
        outputs: types of the results.
        shapes: shapes of the results; None where only running tells.
        passed: for each result, the position of the input that it simply is, or -1.
        repeated: whether one tensor is several results.
        work, memory: of one run.
        error: every run of it raises this, since it does not fit what the node gives it.
    """

    number: int
    outputs: tuple[str, ...]
    shapes: tuple[Shape | None, ...]
    passed: tuple[int, ...]
    repeated: bool
    work: int
    memory: int
    error: BittrueError | None = None


class World(Protocol):
    """What steps act on that reach beyond their own tensors.

    Attributes:
        resources: values of the session's resource variables by number.
    """

    resources: MutableMapping[int, np.ndarray]

    def call(self, graph: int, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Results of the plan's nested plan number `graph`."""
        ...

    def call_once(self, graph: int) -> None:
        """The same, for a graph without inputs and results, unless the session has run it before."""
        ...


@dataclass(frozen=True, eq=False)
class Call:
    """One node with everything that plan time knows about it.

    Attributes:
        rules: slot to rule name, from the numerics' row.
        intermediates: tensors that carry only quantization parameters.
        graphs: the graphs that the node calls, in the order of `Operator.graphs`, without those never called.
        resources: number of every resource variable, by container and name.
        peek: gives the value of a tensor while planning goes on at run time; None where it cannot.
        found: what inference has found of these inputs and attributes and lowering asks again, by name.
    """

    node: Node
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand, ...]
    rules: Mapping[str, str] = field(default_factory=dict)
    intermediates: tuple[Tensor, ...] = ()
    graphs: tuple[Subgraph, ...] = ()
    resources: Mapping[tuple[str, str], int] = field(default_factory=dict)
    peek: Callable[[int], np.ndarray | None] | None = None
    found: dict[object, Any] = field(default_factory=dict)

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
            advice = (
                "the row may be about another format's operator; `bittrue inspect` lists the numerics that run a model"
            )
            raise self.invalid("BT-NODE-ATTRIBUTE", f"attribute '{name}' is missing", advice)
        return self.node.attributes[name]

    def is_stored(self, position: int) -> bool:
        """Whether an operand's value is known and none that the runtime computes anew in every run."""
        operand, computed = self.input(position), self.node.attributes.get("computed_weights", ())
        assert isinstance(computed, tuple)
        return operand.value is not None and not operand.is_made and position not in computed

    def constant(self, position: int, role: str) -> np.ndarray:
        """The value of input `position`, which must be known at plan time."""
        operand = self.input(position, role)
        if operand.value is None:
            raise self.unsupported(
                "BT-DYNAMIC",
                f"input {position} ({role}, tensor '{operand.name}') must be constant, but is only known at run time",
                "export the model with this operand as a constant",
            )
        return operand.value

    def value(self, position: int, role: str) -> np.ndarray:
        """The value of input `position`, which decides shapes. Planning stops here until a run knows it.

        The plan then holds for this value only; another one means another plan.
        """
        operand = self.input(position, role)
        value = operand.value
        if value is None and self.peek is not None:
            value = self.peek(operand.index)
        if value is not None:
            return value
        text = f"input {position} ({role}, tensor '{operand.name}') decides shapes but is only known at run time"
        if operand.tensor.is_variable:
            raise self.unsupported("BT-DYNAMIC", text, "variable tensors cannot decide shapes")
        raise ValueUnknown("BT-DYNAMIC", text, place=self.place)

    def integers(self, position: int, role: str) -> list[int]:
        """The value of input `position` as a flat list of Python integers; see `value`."""
        value = self.value(position, role)
        if value.dtype.kind not in "iu":
            raise self.invalid("BT-NODE-TYPE", f"input {position} ({role}) must be integer, found {value.dtype}")
        if value.size > _MOST_INTEGERS:
            raise self.unsupported(
                "BT-NODE-LENGTH",
                f"input {position} ({role}) holds {value.size:,} numbers, at most {_MOST_INTEGERS:,} are"
                " meaningful for shapes and axes",
            )
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
        inexact: the numerics' row says that results may differ from the runtime's in bits.
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
    inexact: bool = False

    def __repr__(self) -> str:
        rules = ", ".join(f"{slot}={rule}" for slot, rule in self.rules.items())
        bound = f", {self.accumulator}" if self.accumulator is not None else ""
        return (
            f"Step({self.index}, {self.operator}, inputs {list(self.inputs)}, outputs {list(self.outputs)}"
            f"{f', {rules}' if rules else ''}{bound})"
        )

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
        operator: stem of the operator that carries the step out, where it is not the node's own: one whose reference
            and native twin do what is left once shapes and attributes are settled.
        inputs: positions of the node's inputs that the step reads; None: all of them.
        scratch: bytes of temporary memory that a run needs beyond its tensors, for the memory limit.
    """

    parameters: Mapping[str, Attribute] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    accumulator: Bound | None = None
    work: int | None = None
    scratch: int = 0
    operator: str = ""
    inputs: tuple[int, ...] | None = None


Infer = Callable[[Call], list[Shape]]
Lower = Callable[[Call], Lowered]
Reference = Callable[..., "list[np.ndarray]"]


@dataclass(frozen=True, eq=False)
class Function:
    """A function of real numbers; those that several ask for stand in `functions`.

    Attributes:
        text: the formula, for people.
        of: the result for a step and its real input; the step says where axes and positions are.
    """

    text: str
    of: Callable[[Step, np.ndarray], np.ndarray]


# `Operator.elementwise` of operators that take any number of inputs.
EVERY = 1 << 16


@dataclass(frozen=True)
class Role:
    """What one operand of an operator is for.

    Attributes:
        name: ``"input"``, ``"weights"``, ``"bias"``, ``"output"``; ``"first input"`` and ``"second input"`` where both
            are alike.
        position: among the inputs; -1 for the result.
        scale, zero_point: positions of the inputs that hold its quantization; None where its own tensor has it.
    """

    name: str
    position: int
    scale: int | None = None
    zero_point: int | None = None


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator: its slots, its shapes, how it is planned, and what it computes.

    Attributes:
        stem: its name in every tree.
        slots: the slots that a numerics row must fill.
        infer: output shapes from a call whose inputs have shapes (and values where known). A size of -1 is one that
            only running the operator tells; planning stops behind it until then.
        lower: prepared parameters from a call whose outputs have shapes.
        reference: the NumPy meaning; receives the step, one array per input (None where absent), and the `World` when
            the operator is `worldly`.
        summary: one line for tables and pages.
        stateful: may read or change variable tensors, which are never known at plan time. `reference` returns the
            outputs followed by the new values of the variable inputs, in input order.
        needs_only_shapes: the result follows from the input shapes, so it is known at plan time. `lower` must then put
            all that `reference` needs into the step.
        worldly: it runs other graphs or touches resource variables, so it is never folded.
        graphs: the graphs that it calls.
        roles: what its operands are for, as far as others ask for them.
        weights: order of the weights' axes, for layers: ``O`` output channels, ``I`` input channels of a group, ``S``
            all spatial axes.
        transposed: windows lie in the result: the input's elements are spread over them.
        multiplies: `Lowered.work` counts multiply-accumulates; elsewhere it counts elements.
        moves: results are elements of the inputs as they are, or one value that fills what no input reaches.
        keeps_order: the result is the first input's elements in the same order.
        limits: of steps that only raise real numbers to one end and then lower them to another one, both ends, given
            the values of the step's operands as far as they are known; None for steps that do more.
        room: of operators whose result has rows that only running counts: what to set the parameter `room` to, and the
            result's shape then, given the step with the shapes and known values of its operands; None where nobody can
            say. A step with that parameter gives all these rows, and whether each is part of the result. What they take
            is part of `Lowered.scratch`.
        joins: its inputs, as many as there are, lie side by side in the result.
        layout: what of a step changes when the channels of its image come last, where more does than operands: a name
            of `plan.channels_last`. Element-wise operators and those that keep the order need none.
        writes_rows, reads_rows: native kernels can write, or read, rows that do not lie side by side in memory.
        signs: of sums of two inputs, the sign that each input has in it.
        function: of real numbers, that it stands for, where explanations or faults speak of it.
        gates: of functions of real numbers, the operator that the product of x and the function at `alpha` x is.
        gated: its steps of the form ``plain`` are products of two tensors, which that operator may do.
        commutes: whichever input comes first, results have the same bits.
        elementwise: so many inputs, the first ones of a step whose scales are known, broadcast to the result: an
            element follows from one element of each and from what is the same for all; `EVERY` for all inputs.
        quantizes: it makes quantized values of real numbers, or of quantized values of other parameters.
        dequantizes: it makes real numbers of quantized values.
        reduces: its second input or its attribute `axes` is a set of axes, along which it makes one element of many.
        compares: which of its values are larger decides what it gives.
        largest: of operators that look for one of several values: whether that is the largest or the smallest one.
        positions: the result is where that value is.
        truth: for comparisons, what they say of two arrays of numbers.
        mistaken_for: stems of operators of the same operands that a faulty device may compute instead; comparisons are
            mistaken for each other anyway.
        unread: parameters and arrays of its steps that serve people and passes, and that no executor reads.
    """

    stem: str
    slots: tuple[str, ...]
    infer: Infer
    lower: Lower
    reference: Reference
    summary: str = ""
    stateful: bool = False
    needs_only_shapes: bool = False
    worldly: bool = False
    graphs: tuple[GraphUse, ...] = ()
    roles: tuple[Role, ...] = ()
    weights: str = ""
    transposed: bool = False
    multiplies: bool = False
    moves: bool = False
    keeps_order: bool = False
    limits: Callable[[Step, Sequence[np.ndarray | None]], tuple[float, float] | None] | None = None
    room: Callable[[Step, Sequence[Shape | None], Sequence[np.ndarray | None]], tuple[int, Shape] | None] | None = None
    joins: bool = False
    layout: str = ""
    writes_rows: bool = False
    reads_rows: bool = False
    signs: tuple[int, ...] = ()
    function: Function | None = None
    gates: str = ""
    gated: bool = False
    commutes: bool = False
    elementwise: int = 0
    quantizes: bool = False
    dequantizes: bool = False
    reduces: bool = False
    compares: bool = False
    largest: bool | None = None
    positions: bool = False
    truth: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    mistaken_for: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def keeps_axes_of_nothing(call: Call) -> bool:
    """Whether axes that are counted from the back are left as they are, since the first input has no elements."""
    return call.node.attributes.get("counted_from_back") == "unless_empty" and not call.input(0).size


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
