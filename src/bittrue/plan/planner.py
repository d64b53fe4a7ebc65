"""graph + numerics -> Plan: shapes inferred anew, rules looked up, integers prepared, constants folded, memory laid."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from operator import index as as_index
from typing import Any

import numpy as np

from ..errors import BittrueError, InputError, InvalidModelError, ResourceError, RunError, UnsupportedError
from ..graph import UNREPRODUCED, Graph, Node, Tensor
from ..names import near_or_all
from ..numerics import Numerics, Row
from ..operators import Call, Operand, Operator, Step, Subgraph, ValueUnknown, find
from ..operators.admission.conditions import CONDITIONS
from ..operators.admission.requirements import REQUIREMENTS
from ..operators.core.base import GraphUse
from ..operators.core.called import unchanged_inputs
from ..records import dataclass, field, replace
from .calls import never_called
from .folding import FOLD_BYTES, Room, constant_bytes, may_fold
from .layout import Lifetime, layout
from .plan import Later, Nested, Plan, PlanTensor, Source
from .support import MAX_NODES, check_graph, node_types, open_shape, refused, undefined

# Live activations plus the largest temporary of a run. Sizes in files are claims, so there must be a limit;
# callers raise it for large images or batches.
DEFAULT_MEMORY_LIMIT = 256 << 20
# What is wrong with sizes that a graph cannot have; computing with them is, where a tensor follows from sizes alone.
UNFIT = (InvalidModelError, RunError)
# Tensors that `_State.look` computes with: shapes and indices are small.
_LOOK_ELEMENTS = 64
# NumPy 1.x arrays end here; no kernel goes beyond 8.
MAX_RANK = 32


Peek = Callable[[int], "np.ndarray | None"]


@dataclass
class _Job:
    """What all graphs of one planning share.

    Attributes:
        nodes: how many have been planned.
        folded_work: of all steps that ran at plan time.
        nested: plans of called graphs by graph, input shapes and known values.
    """

    source: Source
    nodes: int = 0
    folded_work: int = 0
    nested: dict[tuple[object, ...], Nested] = field(default_factory=dict)

    def count(self) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise ResourceError(
                "BT-NODES", f"more than {MAX_NODES:,} operators, counting those of called graphs for every call"
            )


@dataclass
class _State:
    """What the planner learns while it walks one graph.

    Attributes:
        given: values of graph inputs, and of tensors that an earlier stage folded.
        folded_inexact: operators that were folded by rows that are marked inexact.
        seen: values of this stage's results that `look` has found.
        unknown: results whose shape only running tells.
        nested: their numbers in the plan.
        only_shapes: steps are made to be folded alone, which products and conversions of unknown values never are, and
            for rewrites, which fold no dequantization.
        room: where more is folded than a plan may hold.
        asked: step, bytes of results and bytes of operands of which `may_fold` was asked last.
    """

    graph: Graph
    job: _Job
    peek: Peek | None = None
    given: Mapping[int, np.ndarray] = field(default_factory=dict)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    values: dict[int, np.ndarray] = field(default_factory=dict)
    seen: dict[int, np.ndarray] = field(default_factory=dict)
    folded: list[int] = field(default_factory=list)
    folded_inexact: list[str] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    made_by: dict[int, Step] = field(default_factory=dict)
    nested: dict[Nested, int] = field(default_factory=dict)
    scratch: int = 0
    folded_bytes: int = 0
    only_shapes: bool = False
    room: Room | None = None
    asked: tuple[Step, int, int] | None = None

    @functools.cached_property
    def constant_bytes(self) -> int:
        return constant_bytes(self.graph)

    @functools.cached_property
    def unpacked(self) -> dict[int, str]:
        """Tensors that the runtime's kernels take for constants though nodes make them, with the type that these read.

        What an earlier stage folded counts as such, of a type that nobody knows any more.
        """
        unpacks, found = self.job.source.numerics.unpacks, dict[int, str]()
        if not unpacks:
            return found
        found.update(dict.fromkeys(self.given, ""))
        for node in self.graph.nodes:
            source = node.inputs[0] if node.operator in unpacks else None
            tensor = None if source is None else self.graph.tensors[source]
            if tensor is None or tensor.dtype not in unpacks[node.operator]:
                continue
            if tensor.is_constant or source in found:
                found.update(dict.fromkeys(node.outputs, tensor.dtype))
        return found

    def again(self, job: _Job, shapes: dict[int, tuple[int, ...]]) -> _State:
        """Another walk of the graph for shapes alone, which knows the same values."""
        state = _State(self.graph, job, shapes=shapes, values=dict(self.values), only_shapes=True)
        state.constant_bytes, state.unpacked = self.constant_bytes, self.unpacked
        return state

    def may_fold(self, step: Step, size: int, read: int) -> bool:
        """Whether a step with results of `size` bytes, whose operands of `read` bytes are known, is folded."""
        self.asked = step, size, read
        if self.room is not None:
            return self.room.takes(step, size)
        return may_fold(step, size, read, self.constant_bytes, self.folded_bytes, self.job.folded_work)

    def operand(self, index: int) -> Operand:
        tensor, value = self.graph.tensors[index], self.values.get(index)
        made = self.job.source.numerics.prepares_constants and not tensor.is_constant and index not in self.unpacked
        shape, source = self.shapes.get(index, ()), self.unpacked.get(index, "")
        return Operand(index, tensor, shape, value, is_made=made and value is not None, unpacked_from=source)

    def look(self, index: int, deep: int = 16) -> np.ndarray | None:
        """A value that only a run at hand knows: of an input, or of what a few small steps make of inputs."""
        known = self.values.get(index, self.seen.get(index))
        if known is not None or self.peek is None:
            return known
        step = self.made_by.get(index)
        operator = None if step is None else find(step.operator)
        if step is None:
            return self.peek(index)
        if operator is None or operator.stateful or operator.worldly or not deep:
            return None
        if any(math.prod(self.shapes[i]) > _LOOK_ELEMENTS for i in (*step.inputs, index) if i is not None):
            return None
        inputs = [None if i is None else self.look(i, deep - 1) for i in step.inputs]
        if any(i is not None and value is None for i, value in zip(step.inputs, inputs, strict=True)):
            return None
        self.seen.update(zip(step.outputs, operator.reference(step, inputs), strict=True))
        return self.seen[index]

    @property
    def inputs(self) -> tuple[int, ...]:
        """Inputs of the graph that are not given."""
        return tuple(i for i in self.graph.inputs if i not in self.given)


def plan_source(source: Source, notes: Sequence[str]) -> Plan:
    """The plan of a source's main graph, whose rewrites are done; it ends as `make_plan` may. Errors as for that."""
    check_graph(source.graphs[source.main], source)
    return _plan_main(source, notes)


def _plan_main(source: Source, notes: Sequence[str]) -> Plan:
    """The same where every node has a row: whether it has one follows from no shape."""
    graph = source.graphs[source.main]
    is_open = any(-1 in (graph.tensors[i].shape_signature or ()) for i in graph.inputs if i not in source.shapes)
    return _plan_graph(_Job(source), graph, source.shapes, {}, notes=tuple(notes), may_end=is_open)


def _to_the_end(plan: Plan) -> Plan:
    if plan.later is not None and plan.later.error is not None:
        raise plan.later.error
    return plan


def plan_for(plan: Plan, shapes: Mapping[str, Sequence[int] | int]) -> Plan:
    """What was planned, for other shapes of some inputs, by name. Errors as for `make_plan`."""
    source = plan.source
    assert source is not None
    wanted = {**source.shapes, **_wanted(source.graphs[source.main], shapes)}
    return _to_the_end(_plan_main(replace(source, shapes=wanted), plan.notes))


def plan_nested(source: Source, nested: Nested, shapes: Mapping[int, tuple[int, ...]]) -> Plan:
    """A called graph planned anew, for other shapes of its inputs (by tensor index). Errors as for `make_plan`."""
    graph = source.graphs[nested.graph]
    given = {i: value for i in graph.inputs if (value := nested.plan.tensors[i].value) is not None}
    return _plan_graph(_Job(source), graph, shapes, given, scope=nested.plan.scope)


def plan_later(source: Source, plan: Plan, shapes: Mapping[int, tuple[int, ...]], peek: Peek) -> Plan:
    """What follows `plan` once it has run.

    Args:
        source: where `plan` came from.
        plan: one with a later stage.
        shapes: shapes of the plan's outputs, by tensor index.
        peek: gives the value of a plan's output; whatever is asked for, the new plan only holds for that value.
    """
    if plan.later is None:
        raise ValueError("nothing follows this plan")
    given = {i: t.value for i, t in enumerate(plan.tensors) if t.kind == "folded" and t.value is not None}
    return _plan_graph(_Job(source), plan.later.graph, shapes, given, scope=plan.scope, peek=peek)


# What overflows and what is no number is decided by requirements and rules.
@np.errstate(all="ignore")
def _plan_graph(
    job: _Job,
    graph: Graph,
    shapes: Mapping[int, tuple[int, ...]],
    given: Mapping[int, np.ndarray],
    *,
    scope: str = "",
    peek: Peek | None = None,
    notes: tuple[str, ...] = (),
    may_end: bool = False,
) -> Plan:
    state = _State(graph, job, peek, given)
    _seed(state, shapes)
    done, reason, unfit = len(graph.nodes), "", None
    for position, node in enumerate(graph.nodes):
        job.count()
        try:
            _plan_node(state, node, job.source.numerics, job.source.memory_limit)
        except ValueUnknown as error:
            # A later stage begins where values were missing; without progress it would begin there again.
            if peek is not None and position == 0:
                raise
            done, reason = position, f"{node}: {error.message}"
            break
        except UNFIT as error:
            if not may_end:
                raise
            done, reason, unfit = position, str(error), error
            break
        if state.unknown:
            done, reason = position + 1, f"{node}: shapes of its results depend on values"
            break
    return _finish(state, done, reason, unfit, scope, notes)


def _wanted(graph: Graph, shapes: Mapping[str, Sequence[int] | int]) -> dict[int, tuple[int, ...]]:
    """Shapes by tensor index."""
    names = {**graph.aliases, **{graph.tensors[i].name: i for i in graph.inputs}}
    wanted: dict[int, tuple[int, ...]] = {}
    dimensions: dict[str, int] = {}
    known = {symbol: None for i in graph.inputs for symbol in graph.tensors[i].symbols or () if symbol}
    for name, shape in shapes.items():
        if names.get(name) in graph.inputs:
            wanted[names[name]] = _checked_sizes(shape, f"input '{name}'")
        elif name in known:
            sizes = _checked_sizes((shape,) if isinstance(shape, int) else shape, f"dimension '{name}'")
            if len(sizes) != 1:
                raise InputError("BT-INPUT-SHAPE", f"{list(sizes)} is not one size", place=f"dimension '{name}'")
            dimensions[name] = sizes[0]
        else:
            inputs = [graph.tensors[i].name for i in graph.inputs]
            raise InputError(
                "BT-INPUT-NAME",
                f"'{name}' is no input" + (" and no free dimension" if known else ""),
                place="shapes",
                advice=near_or_all(name, [*inputs, *known], "inputs and free dimensions" if known else "inputs"),
            )
    for index in graph.inputs:
        tensor = graph.tensors[index]
        symbols, sizes = tensor.symbols or (), wanted.get(index, tensor.shape)
        given = _sizes_of(symbols, dimensions) if dimensions else ()
        if len(symbols) == len(sizes) and any(size is not None for size in given):
            pairs = zip(given, sizes, strict=True)
            wanted[index] = tuple(size if new is None else new for new, size in pairs)
    return wanted


def _sizes_of(symbols: Sequence[str], dimensions: Mapping[str, int]) -> list[int | None]:
    from .dimensions import size_of

    return [size_of(symbol, dimensions) for symbol in symbols]


def _checked_sizes(shape: Any, place: str) -> tuple[int, ...]:
    try:
        sizes = tuple(as_index(size) for size in shape)
    except TypeError:
        raise InputError("BT-INPUT-SHAPE", f"{shape!r} is no list of integers", place=place) from None
    if any(size < 0 for size in sizes):
        raise InputError("BT-INPUT-SHAPE", f"shape {list(shape)} has a negative dimension", place=place)
    return sizes


def _seed(state: _State, wanted: Mapping[int, tuple[int, ...]]) -> None:
    graph, limit = state.graph, state.job.source.memory_limit
    # Later stages are planned while running and often small, so they look at what they use only.
    used = None if state.peek is None else {*graph.outputs, *(i for node in graph.nodes for i in node.inputs)}
    inputs = set(graph.inputs)
    for index, tensor in enumerate(graph.tensors):
        if used is not None and index not in used:
            continue
        if index in state.given:
            state.shapes[index] = state.given[index].shape
            state.values[index] = state.given[index]
        elif tensor.is_constant:
            state.shapes[index] = tensor.shape
            # Nothing computes with strings; their bytes are no array of the tensor's shape.
            if tensor.type.bits:
                state.values[index] = tensor.values()
        elif index in inputs or tensor.is_variable:
            if index in inputs and index not in wanted and tensor.is_open:
                raise open_shape(tensor)
            shape = wanted.get(index, tensor.shape)
            state.shapes[index] = shape
            _check_size(f"tensor '{tensor.name}'", tensor, shape, limit)


def _check_size(place: str, tensor: Tensor, shape: tuple[int, ...], limit: int) -> None:
    if len(shape) > MAX_RANK:
        raise UnsupportedError(
            "BT-SHAPE-RANK", f"'{tensor.name}' would have rank {len(shape)}, the limit is {MAX_RANK}", place=place
        )
    size = math.prod(shape) * tensor.type.numpy.itemsize
    if size > limit:
        raise ResourceError(
            "BT-MEMORY",
            f"shape {list(shape)} of '{tensor.name}' takes {size:,} bytes, the limit is {limit:,}",
            place=place,
            advice="pass a larger memory_limit to prepare() if the model is meant to be this large",
        )


def _plan_node(state: _State, node: Node, numerics: Numerics, limit: int) -> None:
    """Add the node's step; leaves `state` alone when a value is unknown."""
    graph = state.graph
    operator = find(node.operator)
    candidates = numerics.candidates(node.operator, *node_types(graph, node))
    # check_graph has looked at every node
    assert operator is not None
    for index in node.inputs:
        if index is not None and index not in state.shapes:
            raise InvalidModelError(
                "BT-NODE-ORDER", f"input '{graph.tensors[index].name}' is never computed", place=f"{node}"
            )
        if index is None or not operator.stateful or not graph.tensors[index].is_variable:
            continue
        if index in graph.inputs:
            raise UnsupportedError(
                "BT-VARIABLE-INPUT",
                f"variable tensor '{graph.tensors[index].name}' is a graph input as well, but this operator changes it",
                place=f"{node}",
                advice="keep the state in a tensor that is no graph input",
            )
    call = Call(
        node,
        tuple(None if i is None else state.operand(i) for i in node.inputs),
        tuple(state.operand(i) for i in node.outputs),
        intermediates=tuple(graph.tensors[i] for i in node.intermediates),
        resources=state.job.source.resources,
        peek=state.look if state.peek is not None else None,
    )
    try:
        if operator.graphs:
            uses = [use for use in operator.graphs if not never_called(call, use)]
            # A graph that another one may be called for need not fit, unless the runtime plans both.
            chosen = len(uses) > 1 and all(use.when is not None for use in uses)
            perhaps = chosen and not call.attribute("plans_both")
            call = replace(call, graphs=tuple(_subgraph(state, call, use, perhaps) for use in uses))
        call, row = _settle(call, operator, candidates, numerics, limit)
        known = all(operand is None or operand.value is not None for operand in call.inputs)
        never = operator.dequantizes or (not known and (operator.multiplies or operator.quantizes))
        skipped = state.only_shapes and never
        step, scratch = (None, 0) if skipped else _lower(call, operator, row)
    except BittrueError as error:
        raise refused(call, error, numerics, graph) from None
    for operand in call.outputs:
        if operand.tensor.is_variable and operand.shape != state.shapes.get(operand.index):
            raise call.unsupported(
                "BT-VARIABLE-SHAPE",
                f"shape {list(operand.shape)} is written into variable tensor '{operand.name}' of another shape",
                "variable tensors keep the shape that they begin with",
            )
    state.scratch = max(state.scratch, scratch)
    state.unknown = [operand.index for operand in call.outputs if -1 in operand.shape]
    state.shapes.update((operand.index, operand.shape) for operand in call.outputs if -1 not in operand.shape)
    if step is not None and not _fold(state, find(step.operator) or operator, step, call):
        state.steps.append(step)
        state.made_by.update(dict.fromkeys(step.outputs, step))


def _choose(call: Call, candidates: tuple[Row, ...], numerics: Numerics) -> Row:
    """The first candidate whose conditions hold."""
    for row in candidates:
        if all(CONDITIONS[str(name)](call, *arguments) for name, *arguments in row.when):
            if row.refuses:
                raise undefined(call.place, row, numerics)
            return row
    raise call.unsupported(
        "BT-OPERATOR", f"numerics '{numerics.name}' has rows for these types, but none for what this node asks for"
    )


def _subgraph(state: _State, call: Call, use: GraphUse, perhaps: bool) -> Subgraph:
    """A graph that the node calls, planned for what the node gives it; up to what does not fit where it is only
    perhaps called.
    """
    source = state.job.source
    index = int(call.attribute(use.attribute))
    graph = source.graphs[index]
    given = () if use.first_input is None else call.inputs[use.first_input :]
    types = ["-" if operand is None else operand.dtype for operand in given]
    wanted = [graph.tensors[i].dtype for i in graph.inputs]
    if types != wanted:
        raise call.invalid(
            "BT-CONTROL-TYPE", f"graph '{graph.name}' takes inputs of types {wanted}, the node gives {types}"
        )
    # Values that never change are known inside, too: weights and shapes often come this way.
    fixed = set(range(len(given)))
    if use.repeats is not None:
        fixed = unchanged_inputs(source.graphs[int(call.attribute(use.repeats))])
    operands = {i: operand for i, operand in zip(graph.inputs, given, strict=True) if operand is not None}
    values = {
        i: operand.value for k, (i, operand) in enumerate(operands.items()) if k in fixed and operand.value is not None
    }
    shapes = {i: operand.shape for i, operand in operands.items()}
    key = (index, perhaps, tuple(shapes.items()), tuple((i, id(value)) for i, value in values.items()))
    label = source.label(index)
    if key not in state.job.nested:
        try:
            plan = _plan_graph(state.job, graph, shapes, values, scope=f"{label}::", may_end=perhaps)
        except BittrueError as error:
            raise _inside(label, error) from None
        state.job.nested[key] = Nested(index, plan)
    nested = state.job.nested[key]
    number, later = state.nested.setdefault(nested, len(state.nested)), nested.plan.later
    results = [None if later else nested.plan.tensors[i] for i in graph.outputs]
    return Subgraph(
        number,
        tuple(graph.tensors[i].dtype for i in graph.outputs),
        tuple(None if t is None or t.kind == "unknown" else t.shape for t in results),
        tuple(graph.inputs.index(i) if i in graph.inputs else -1 for i in graph.outputs),
        len(set(graph.outputs)) < len(graph.outputs),
        nested.plan.work,
        nested.plan.memory,
        _inside(label, later.error) if later and later.error else None,
    )


def _inside(label: str, error: BittrueError) -> BittrueError:
    """The error of a called graph."""
    place = f"graph '{label}', {error.place}" if error.place else f"graph '{label}'"
    return type(error)(error.code, error.message, place=place, advice=error.advice)


def _settle(
    call: Call, operator: Operator, candidates: tuple[Row, ...], numerics: Numerics, limit: int
) -> tuple[Call, Row]:
    """The call with the shapes of its outputs and the rules of its row."""
    shapes = operator.infer(call)
    if len(shapes) != len(call.outputs):
        raise call.invalid("BT-NODE-ARITY", f"expected {len(shapes)} outputs, found {len(call.outputs)}")
    for operand, shape in zip(call.outputs, shapes, strict=True):
        if -1 not in shape:
            _check_size(call.place, operand.tensor, shape, limit)
    call = replace(call, outputs=tuple(replace(o, shape=shape) for o, shape in zip(call.outputs, shapes, strict=True)))
    row = _choose(call, candidates, numerics)
    call = replace(call, rules=row.rules)
    for name, *arguments in row.requires:
        REQUIREMENTS[str(name)](call, *arguments)
    return call, row


def _lower(call: Call, operator: Operator, row: Row) -> tuple[Step, int]:
    node = call.node
    lowered = operator.lower(call)
    sizes = [math.prod(operand.shape) for operand in call.outputs if -1 not in operand.shape]
    step = Step(
        node.index,
        lowered.operator or node.operator,
        node.source,
        node.inputs if lowered.inputs is None else tuple(node.inputs[position] for position in lowered.inputs),
        node.outputs,
        row.rules,
        lowered.parameters,
        lowered.arrays,
        lowered.accumulator,
        sum(sizes) if lowered.work is None else lowered.work,
        row.inexact or bool(node.attributes.get(UNREPRODUCED)),
    )
    return step, lowered.scratch


def _fold(state: _State, operator: Operator, step: Step, call: Call) -> bool:
    """Run a step at plan time when everything it reads is known (or when shapes alone decide its result)."""
    if operator.worldly or state.unknown or not step.outputs:
        return False
    if any(operand.tensor.is_variable for operand in call.outputs):
        return False
    known = all(index is None or index in state.values for index in step.inputs)
    if not known and not operator.needs_only_shapes:
        return False
    sizes = [math.prod(state.shapes[i]) * state.graph.tensors[i].type.numpy.itemsize for i in step.outputs]
    size = sum(sizes)
    read = sum(o.value.nbytes for o in call.inputs if o is not None and o.value is not None)
    if not state.may_fold(step, size, read):
        return False
    state.folded_bytes += size
    if step.inexact:
        state.folded_inexact.append(step.source)
    state.job.folded_work += step.work
    inputs = [None if i is None else state.values.get(i) for i in step.inputs]
    for index, result in zip(step.outputs, operator.reference(step, inputs), strict=True):
        # Arithmetic of rank 0 gives NumPy scalars.
        value = np.asarray(result)
        value.flags.writeable = False
        state.values[index] = value
        state.folded.append(index)
    return True


def _finish(
    state: _State, done: int, reason: str, unfit: BittrueError | None, scope: str, notes: tuple[str, ...]
) -> Plan:
    """The plan of the first `done` nodes; why the others come later, and their error."""
    graph, source = state.graph, state.job.source
    rest = graph.nodes[done:]
    to_come = {index for node in rest for index in node.outputs}
    for index in graph.outputs:
        if index not in state.shapes and index not in to_come and index not in state.unknown:
            raise InvalidModelError(
                "BT-GRAPH-OUTPUT",
                "nothing computes this tensor",
                place=f"output '{graph.tensors[index].name}'",
                advice="choose a tensor that an operator writes",
            )
        if graph.tensors[index].is_constant and not graph.tensors[index].type.bits:
            raise UnsupportedError(
                "BT-GRAPH-OUTPUT",
                f"a constant of {graph.tensors[index].type.title}s cannot be an output",
                place=f"output '{graph.tensors[index].name}'",
                advice="choose the other outputs",
            )
    inputs, taken = state.inputs, set(state.inputs)
    first: dict[int, int] = dict.fromkeys(inputs, -1)
    last: dict[int, int] = {}
    for position, step in enumerate(state.steps):
        for index in step.outputs:
            first[index] = position
            last[index] = position
        last.update({index: position for index in step.inputs if index is not None})
    outputs, later = graph.outputs, None
    if rest:
        needed = {*graph.outputs, *(i for node in rest for i in node.inputs if i is not None)}
        outputs = tuple(sorted(index for index in needed if index in first))
        later = Later(replace(graph, nodes=rest, inputs=outputs), reason, unfit)
    for index in outputs:
        last[index] = len(state.steps)
    known = {*state.folded, *state.given}
    # Large values on the way to others are let go.
    gone = {i for i in state.folded if i not in last and i not in state.given and state.values[i].nbytes > FOLD_BYTES}
    gone -= {i for node in rest for i in node.inputs if i is not None}
    tensors = []
    for index, tensor in enumerate(graph.tensors):
        shape, value = state.shapes.get(index, tensor.shape), None
        if index in gone:
            kind = "unused"
        elif index in state.values:
            kind, value = "folded" if index in known else "constant", state.values[index]
        elif index in taken:
            kind = "input"
        elif tensor.is_variable:
            kind = "variable" if index in state.shapes else "unused"
        elif index in to_come or index in state.unknown:
            kind = "later" if index in to_come else "unknown"
            shape = tensor.shape_signature or (-1,) * len(tensor.shape)
        else:
            kind = "computed" if index in first else "unused"
        begin = first.get(index, -1)
        end = last.get(index, begin)
        tensors.append(
            PlanTensor(tensor.name, tensor.dtype, shape, kind, tensor.quantization, value, first=begin, last=end)
        )
    constants = dict.fromkeys(i for i in outputs if tensors[i].kind == "constant")
    placed = [i for i, t in enumerate(tensors) if t.kind in ("input", "computed")]
    offsets, arena = layout([Lifetime(tensors[i].bytes, tensors[i].first, tensors[i].last) for i in placed])
    for index, offset in zip(placed, offsets, strict=True):
        tensors[index] = replace(tensors[index], offset=offset)
    needed_bytes = arena + state.scratch + sum(t.bytes for t in tensors if t.kind == "variable")
    if needed_bytes > source.memory_limit:
        raise ResourceError(
            "BT-MEMORY",
            f"a run would need {needed_bytes:,} bytes of activations and temporaries, "
            f"the limit is {source.memory_limit:,}",
            place=f"graph '{graph.name}'",
            advice="pass a larger memory_limit to prepare() if the model is meant to be this large",
        )
    return Plan(
        graph.name,
        source.numerics.name,
        source.numerics.reproduces,
        tuple(tensors),
        tuple(state.steps),
        inputs,
        outputs,
        dict(graph.aliases),
        (*(i for i in graph.inputs if i in state.given), *(i for i in state.folded if i not in gone), *constants),
        arena,
        needed_bytes,
        notes,
        scope,
        tuple(state.nested),
        later,
        source,
        folded_inexact=tuple(state.folded_inexact),
    )
