"""What a mapping of one ONNX operator works with: the node as it is read, and the graph as it grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from ...graph import Attribute, Node, Tensor
from ...records import dataclass, field, replace
from ..mapping import Refusing
from ..onnx_tensors import from_array

MOST_ELEMENTS = 10_000  # of a sequence of tensors


@dataclass
class GraphBuilder:
    """Tensors and nodes of the graph that is being read.

    Attributes:
        names: tensor index by name.
        claims: type and shape that the file declares for a computed tensor.
        inferred: names of tensors of which it does not, but inference knows them.
        sequences: elements of what is a sequence of tensors, and no tensor; its own type is theirs.
        stacks: of sequences of which only running tells how many elements there are: these along a new first axis.
        optionals: the value of what is an optional one, and no tensor; None: there is none.
        notes: of the file, which every plan carries.
    """

    tensors: list[Tensor] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    claims: Mapping[str, Tensor] = field(default_factory=dict)
    inferred: Set[str] = frozenset()
    computed: set[int] = field(default_factory=set)
    sequences: dict[int, tuple[int, ...]] = field(default_factory=dict)
    stacks: dict[int, int] = field(default_factory=dict)
    optionals: dict[int, int | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, tensor: Tensor) -> int:
        """A new tensor."""
        self.names[tensor.name] = len(self.tensors)
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def unique(self, name: str) -> str:
        """`name`, with a number behind it when there is such a tensor."""
        found, number = name, 1
        while found in self.names or found in self.claims:
            number += 1
            found = f"{name}#{number}"
        return found


# From a called graph's own outputs and the inputs that stand for values of the calling graph to its outputs.
Arrange = Callable[[list[int], list[int]], list[int]]


@dataclass(frozen=True)
class Called:
    """The graphs that a node calls.

    Attributes:
        numbers: their indices in the file.
        outside: tensors of the graph at hand whose values they use; each of them gets all, behind its own inputs.
        types: of the outputs of each.
    """

    numbers: tuple[int, ...]
    outside: tuple[int, ...]
    types: tuple[tuple[str, ...], ...]


@dataclass
class Source(Refusing):
    """One node of the file while it is mapped.

    Attributes:
        op_type, domain: as in the file; the default domain is empty.
        version: the operator version that the model's opset means (the schema's since_version).
        label: for messages and for the names of tensors that a mapping adds.
        inputs: tensor indices, None where omitted.
        outputs: tensor names, empty where omitted.
        attributes: decoded: int, float, str, tuples of these, arrays, GraphProtos.
        kinds: of the attributes, as the file names them: INT, FLOATS and so on.
        builder: the graph so far.
        call: reads the graphs that the node calls.
    """

    op_type: str
    domain: str
    version: int
    label: str
    inputs: list[int | None]
    outputs: list[str]
    attributes: Mapping[str, Any]
    kinds: Mapping[str, str]
    builder: GraphBuilder
    call: Callable[[GraphBuilder, Sequence[Any], Arrange | None], Called]
    read: set[str] = field(default_factory=set)

    # -- attributes ------------------------------------------------------------------------------------------------
    def get(self, name: str, default: Any, kind: type | tuple[type, ...]) -> Any:
        """Attribute `name` of a Python type, or the default."""
        self.read.add(name)
        value = self.attributes.get(name)
        if value is None:
            return default
        if not isinstance(value, kind):
            raise self.invalid("BT-ONNX-ATTRIBUTE", f"attribute '{name}' has the wrong type ({type(value).__name__})")
        return value

    def integer(self, name: str, default: int) -> int:
        return int(self.get(name, default, int))

    def flag(self, name: str, default: bool, others: bool | None = None) -> bool:
        """An integer attribute that means no at 0 and yes at 1.

        Args:
            name: of the attribute.
            default: where it is absent.
            others: what the runtime takes any other integer for, which the specification leaves open. None: it refuses
                them, or gives no defined result.
        """
        value = self.integer(name, int(default))
        if value in (0, 1):
            return bool(value)
        if others is None:
            raise self.invalid("BT-ONNX-ATTRIBUTE", f"attribute '{name}' is {value}, expected 0 or 1")
        return others

    def real(self, name: str, default: float) -> float:
        """A float attribute: a binary32 number."""
        return float(self.get(name, default, float))

    def text(self, name: str, default: str) -> str:
        return str(self.get(name, default, str))

    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...] | None:
        """A list of integers; the default where the attribute is absent."""
        return self._list(name, default, "INTS")

    def reals(self, name: str, default: tuple[float, ...] | None = None) -> tuple[float, ...] | None:
        """The same of binary32 numbers."""
        return self._list(name, default, "FLOATS")

    def texts(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...] | None:
        """The same of texts."""
        return self._list(name, default, "STRINGS")

    def _list(self, name: str, default: Any, kind: str) -> Any:
        value = self.get(name, default, tuple)
        # Empty lists have a kind, too.
        if name in self.kinds and self.kinds[name] != kind:
            raise self.invalid("BT-ONNX-ATTRIBUTE", f"attribute '{name}' is of kind {self.kinds[name]}, not {kind}")
        return value

    def has(self, name: str) -> bool:
        """Whether attribute `name` is given."""
        self.read.add(name)
        return name in self.attributes

    def called(self, *names: str, inputs: int, arrange: Arrange | None = None) -> Called:
        """The graphs that attributes hold, which must have so many inputs."""
        protos = []
        for name in names:
            self.read.add(name)
            proto = self.attributes.get(name)
            if proto is None or not hasattr(proto, "initializer") or len(proto.input) != inputs:
                raise self.invalid("BT-ONNX-ATTRIBUTE", f"attribute '{name}' must be a graph with {inputs} inputs")
            protos.append(proto)
        return self.call(self.builder, protos, arrange)

    # -- operands --------------------------------------------------------------------------------------------------
    def present(self, position: int) -> bool:
        return position < len(self.inputs) and self.inputs[position] is not None

    def ordered(self, *positions: int) -> list[int | None]:
        """The inputs in another order: the data first, then scale and zero point of every role."""
        return [self.inputs[position] if self.present(position) else None for position in positions]

    def tensor(self, position: int) -> Tensor:
        """Input `position`; a typed error when it is absent."""
        index = self.inputs[position] if position < len(self.inputs) else None
        if index is None:
            raise self.invalid("BT-NODE-INPUT", f"input {position} is missing")
        return self.builder.tensors[index]

    def type(self, position: int) -> str:
        """Element type of input `position`."""
        return self.tensor(position).dtype

    def constant(self, array: Any, role: str) -> int:
        """A new constant, for an attribute that we take as an operand."""
        return self.builder.add(from_array(np.asarray(array), self.builder.unique(f"{self.label}/{role}")))

    def temporary(self, dtype: str, role: str) -> str:
        """The name of a new computed tensor between two nodes of a mapping."""
        name = self.builder.unique(f"{self.label}/{role}")
        self.builder.add(Tensor(name, dtype, ()))
        return name

    # -- result ----------------------------------------------------------------------------------------------------
    def emit(
        self,
        operator: str,
        types: str | Sequence[str],
        attributes: Mapping[str, Attribute] | None = None,
        *,
        inputs: Sequence[int | None] | None = None,
        outputs: Sequence[str] | None = None,
        source: tuple[str, int] | None = None,
    ) -> tuple[int, ...]:
        """Adds a node.

        Args:
            operator: stem.
            types: types of the outputs; one for all of them when it is a string.
            attributes: all that the operator asks for.
            inputs: tensor indices; None: the file's.
            outputs: tensor names; None: the file's. Trailing omitted ones are left out.
            source: operator and version that the node counts as where rewrites look for it; None: the file's.

        Returns:
            Tensor indices of the outputs.
        """
        names = list(self.outputs if outputs is None else outputs)
        while len(names) > 1 and not names[-1]:
            names.pop()
        wanted = [types] * len(names) if isinstance(types, str) else list(types)[: len(names)]
        if len(wanted) < len(names):
            raise self.invalid("BT-NODE-ARITY", f"{len(names)} outputs, at most {len(wanted)} are defined")
        results = tuple(self._result(name, dtype) for name, dtype in zip(names, wanted, strict=True))
        given = tuple(self.inputs if inputs is None else inputs)
        while given and given[-1] is None:
            given = given[:-1]
        if not self.builder.sequences.keys().isdisjoint(given):
            raise self.unsupported("BT-ONNX-SEQUENCE", "this operator is not read with a sequence of tensors")
        if not self.builder.optionals.keys().isdisjoint(given):
            raise self.unsupported("BT-ONNX-SEQUENCE", "this operator is not read with an optional value")
        self.builder.nodes.append(
            Node(
                len(self.builder.nodes),
                operator,
                *(source or (self.op_type, self.version)),
                attributes or {},
                given,
                results,
            )
        )
        return results

    def give_sequence(self, name: str, dtype: str, elements: tuple[int, ...], stack: int | None = None) -> None:
        """A new sequence of tensors of one type; where only running tells how many, slices of a `stack`."""
        known = self.builder
        if any(known.tensors[index].dtype != dtype or index in known.sequences for index in elements):
            raise self.invalid("BT-ONNX-TYPE", f"elements of a sequence of {dtype} have another type")
        if len(elements) > MOST_ELEMENTS:
            raise self.unsupported("BT-ONNX-SEQUENCE", f"{len(elements)} elements, at most {MOST_ELEMENTS} are read")
        if name in known.names:
            raise self.invalid("BT-ONNX-NAME", f"tensor '{name}' is written twice")
        index = known.add(Tensor(name, dtype, ()))
        known.sequences[index] = elements
        if stack is not None:
            known.stacks[index] = stack

    def index(self, name: str) -> int:
        """Tensor index by name."""
        return self.builder.names[name]

    def _result(self, name: str, dtype: str) -> int:
        builder = self.builder
        name = name or builder.unique(f"{self.label}/unused")
        claim = builder.claims.get(name)
        if claim is not None and dtype == "variant":
            # What an operator without mapping gives, the file may say.
            dtype = claim.dtype
        if name in builder.names:
            index = builder.names[name]
            if index in builder.computed or builder.tensors[index].is_constant or claim is not None:
                raise self.invalid("BT-ONNX-NAME", f"tensor '{name}' is written twice")
            builder.tensors[index] = replace(builder.tensors[index], dtype=dtype)
        else:
            if claim is not None and claim.dtype not in (dtype, "variant"):
                raise self.invalid(
                    "BT-ONNX-TYPE",
                    f"output '{name}' is declared as {claim.dtype}, but the operator gives {dtype}",
                    "the file contradicts itself; export it again",
                )
            index = builder.add(Tensor(name, dtype, ()) if claim is None else replace(claim, dtype=dtype))
        builder.computed.add(index)
        return index

    @property
    def place(self) -> str:
        return f"node {len(self.builder.nodes)} ({self.op_type} '{self.label}')"


PLAIN: dict[str, Attribute] = {"activation": "none"}
CAST: dict[str, Attribute] = {"saturate": True, "round_mode": "up", "one_nan": True}


class Parts:
    """The nodes of one operator, made one after the other."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def step(self, operator: str, dtype: str, inputs: list[int | None], /, **attributes: Attribute) -> int:
        """A node whose result stays inside."""
        return self.last(operator, dtype, inputs, self._source.temporary(dtype, operator), **attributes)

    def last(self, operator: str, dtype: str, inputs: list[int | None], name: str, /, **attributes: Attribute) -> int:
        """A node that gives a result of the operator."""
        return self._source.emit(operator, dtype, attributes, inputs=inputs, outputs=[name])[0]

    def single(self, index: int | None) -> int | None:
        """As a binary32 number."""
        narrow = index is not None and self._source.builder.tensors[index].dtype != "f32"
        return self.step("convert", "f32", [index], **CAST) if narrow else index

    def narrow(self, index: int, dtype: str) -> int:
        """A binary32 number as another type."""
        return self.step("convert", dtype, [index], **CAST) if dtype != "f32" else index

    def number(self, value: float, name: str) -> int:
        """A binary32 constant."""
        return self._source.constant(np.array(value, np.float32), name)

    def list(self, *values: int) -> int:
        """A constant of 64-bit integers."""
        return self._source.constant(np.array(values, np.int64), "sizes")

    def sizes(self, x: int | None, start: int, end: int | None) -> int:
        """Some dimensions of a tensor."""
        ends: dict[str, Attribute] = {"start": start} if end is None else {"start": start, "end": end}
        return self.step("shape", "s64", [x], of="dimensions", **ends)

    def total(self, x: int, axis: int, keep: bool) -> int:
        """The binary32 sum along an axis, made one number after the other; the axis has one element then, or goes."""
        along = self._source.constant(np.int64(axis), "axis")
        sums = self.step("cumsum", "f32", [x, along], exclusive=False, reverse=False)
        last = self.list(-1) if keep else self._source.constant(np.int64(-1), "last")
        return self.step("gather", "f32", [sums, last], axis=axis, batch_dims=0, from_either_end=True)

    def shaped(self, x: int | None, *parts: int) -> int:
        """A tensor in the shape that these lists make together."""
        assert x is not None
        shape = self.step("concatenation", "s64", [*parts], axis=0, **PLAIN)
        return self.step("reshape", self._source.builder.tensors[x].dtype, [x, shape], zeros="copied")


Mapper = Callable[[Source], None]
# (domain, op_type) to its mapping.
Mappers = Mapping[tuple[str, str], Mapper]

MICROSOFT = "com.microsoft"


def same_type(operator: str, **attributes: Attribute) -> Mapper:
    """An operator with the same operands, no attributes of its own, and outputs of the first input's type."""

    def apply(source: Source) -> None:
        source.emit(operator, source.type(0), attributes)

    return apply


def fixed_type(operator: str, *types: str, **attributes: Attribute) -> Mapper:
    """The same with given types of the outputs."""

    def apply(source: Source) -> None:
        source.emit(operator, types if len(types) > 1 else types[0], attributes)

    return apply
