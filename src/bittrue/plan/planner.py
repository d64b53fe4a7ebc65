"""graph + numerics -> Plan: shapes inferred anew, rules looked up, integers prepared, constants folded, memory laid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..errors import BittrueError, InputError, InvalidModelError, ResourceError, UnsupportedError
from ..graph import Graph, Node, Tensor
from ..numerics import Numerics, Row
from ..operators import Call, Operand, Operator, Step, find
from ..operators.base import place_errors
from ..operators.conditions import CONDITIONS
from ..operators.requirements import REQUIREMENTS
from .layout import Lifetime, layout
from .plan import Plan, PlanTensor

# Live activations plus the largest temporary of a run. Sizes in files are claims, so there must be a limit;
# callers raise it for large pictures or batches.
DEFAULT_MEMORY_LIMIT = 256 << 20
# Results up to this many bytes are folded at plan time, and this many altogether; the rest runs as steps.
_FOLD_BYTES = 1 << 20
_FOLD_BYTES_ALTOGETHER = 32 << 20
# Far above any real model; bounds the planner's own time on hostile files.
_MAX_NODES = 20_000
# NumPy 1.x arrays end here; no kernel goes beyond 8.
_MAX_RANK = 32


@dataclass
class _State:
    """What the planner learns while it walks the graph."""

    graph: Graph
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    values: dict[int, np.ndarray] = field(default_factory=dict)
    folded: list[int] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    scratch: int = 0
    folded_bytes: int = 0

    def operand(self, index: int) -> Operand:
        return Operand(index, self.graph.tensors[index], self.shapes.get(index, ()), self.values.get(index))


def make_plan(
    graph: Graph,
    numerics: Numerics,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    notes: Sequence[str] = (),
) -> Plan:
    """Plan `graph` under `numerics`.

    Args:
        graph: nodes in execution order.
        numerics: the table that fills the slots.
        shapes: new shapes for graph inputs, by tensor or signature name.
        memory_limit: bytes of live activations and temporaries that a run may need.
        notes: kept in the plan.

    Raises:
        UnsupportedError: operators or types without a row; all of them are named in one message.
        InvalidModelError: contradictions, and what the runtime itself refuses or leaves undefined.
        ResourceError: a run would exceed `memory_limit`.
    """
    _refuse_unsupported(graph, numerics)
    state = _State(graph)
    _seed(state, shapes or {}, memory_limit)
    for node in graph.nodes:
        _plan_node(state, node, numerics, memory_limit)
    return _finish(state, numerics, memory_limit, tuple(notes))


def _refuse_unsupported(graph: Graph, numerics: Numerics) -> None:
    """One error that names every operator and type combination without a row, so that users see the whole gap."""
    if len(graph.nodes) > _MAX_NODES:
        raise ResourceError("BT-NODES", f"{len(graph.nodes):,} operators, the limit is {_MAX_NODES:,}")
    missing: dict[str, list[int]] = {}
    for node in graph.nodes:
        inputs, outputs = node_types(graph, node)
        rows = numerics.candidates(node.operator, inputs, outputs)
        # A row that refuses needs no implementation.
        if not rows or not (rows[0].refuses or find(node.operator)):
            signature = f"{node.source} ({', '.join(inputs)} -> {', '.join(outputs)})"
            missing.setdefault(signature, []).append(node.index)
        elif rows[0].refuses and not rows[0].when:
            raise _undefined(f"{node}", rows[0], numerics)
        elif not numerics.knows(node.operator, node.version):
            oldest, newest = numerics.versions.get(node.operator, (1, 1))
            raise UnsupportedError(
                "BT-OPERATOR-VERSION",
                f"version {node.version} is asked for, numerics '{numerics.name}' knows versions {oldest} to {newest}",
                place=f"{node}",
                advice="the runtime refuses it, too; convert with a converter of the same age",
            )
    if not missing:
        return
    lines = [f"{signature} at node {', '.join(map(str, nodes[:5]))}" for signature, nodes in missing.items()]
    more = f" and {len(lines) - 8} more" if len(lines) > 8 else ""
    first = graph.nodes[min(nodes[0] for nodes in missing.values())]
    known = numerics.alternatives(first.operator) if find(first.operator) else ()
    if known:
        advice = f"{first.source} is implemented for: {'; '.join(known[:6])}"
    elif first.operator == "custom":
        advice = "custom operators are defined by the program that registers them"
    else:
        advice = "`bittrue inspect MODEL` lists what the model needs"
    before = [t.name for t in (graph.tensors[i] for i in first.inputs if i is not None) if not t.is_constant]
    if first.index != graph.nodes[0].index and before:
        advice += f"; prepare(outputs={before}) or --until runs what comes before it"
    raise UnsupportedError(
        "BT-OPERATOR",
        f"numerics '{numerics.name}' has no row for {'; '.join(lines[:8])}{more}",
        place=f"{first}",
        advice=advice,
    )


def _undefined(place: str, row: Row, numerics: Numerics) -> UnsupportedError:
    return UnsupportedError(
        "BT-UNDEFINED", row.refuses, place=place, advice=f"numerics '{numerics.name}' has no defined result"
    )


def node_types(graph: Graph, node: Node) -> tuple[list[str], list[str]]:
    """Input types (``-`` for absent ones, none at the end) and output types of a node, as rows match them."""
    inputs = ["-" if i is None else graph.tensors[i].dtype for i in node.inputs]
    while inputs and inputs[-1] == "-":
        inputs.pop()
    return inputs, [graph.tensors[i].dtype for i in node.outputs]


def _seed(state: _State, shapes: Mapping[str, Sequence[int]], limit: int) -> None:
    graph = state.graph
    names = {**graph.aliases, **{graph.tensors[i].name: i for i in graph.inputs}}
    wanted: dict[int, tuple[int, ...]] = {}
    for name, shape in shapes.items():
        if names.get(name) not in graph.inputs:
            raise InputError(
                "BT-INPUT-NAME",
                f"'{name}' is no input",
                place="shapes",
                advice=f"inputs: {', '.join(graph.tensors[i].name for i in graph.inputs)}",
            )
        if any(int(extent) < 0 for extent in shape):
            raise InputError("BT-INPUT-SHAPE", f"shape {list(shape)} has a negative extent", place=f"input '{name}'")
        wanted[names[name]] = tuple(int(extent) for extent in shape)
    for index, tensor in enumerate(graph.tensors):
        if tensor.is_constant:
            state.shapes[index] = tensor.shape
            state.values[index] = tensor.values()
        elif index in graph.inputs or tensor.is_variable:
            shape = wanted.get(index, tensor.shape)
            state.shapes[index] = shape
            _check_size(f"tensor '{tensor.name}'", tensor, shape, limit)


def _check_size(place: str, tensor: Tensor, shape: tuple[int, ...], limit: int) -> None:
    if len(shape) > _MAX_RANK:
        raise UnsupportedError(
            "BT-SHAPE-RANK", f"'{tensor.name}' would have rank {len(shape)}, the limit is {_MAX_RANK}", place=place
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
    graph = state.graph
    operator = find(node.operator)
    candidates = numerics.candidates(node.operator, *node_types(graph, node))
    # _refuse_unsupported has looked at every node
    assert operator is not None
    for index in node.inputs:
        if index is not None and index not in state.shapes:
            raise InvalidModelError(
                "BT-NODE-ORDER", f"input '{graph.tensors[index].name}' is never computed", place=f"{node}"
            )
    call = Call(
        node,
        tuple(None if i is None else state.operand(i) for i in node.inputs),
        tuple(state.operand(i) for i in node.outputs),
        intermediates=tuple(graph.tensors[i] for i in node.intermediates),
    )
    try:
        step, shapes, scratch = _lower(call, operator, candidates, numerics, limit)
    except BittrueError as error:
        raise place_errors(call, error) from None
    state.shapes.update(zip(node.outputs, shapes, strict=True))
    state.scratch = max(state.scratch, scratch)
    if not _fold(state, operator, step, call):
        state.steps.append(step)


def _choose(call: Call, candidates: tuple[Row, ...], numerics: Numerics) -> Row:
    """The first candidate whose conditions hold."""
    for row in candidates:
        if all(CONDITIONS[str(name)](call, *arguments) for name, *arguments in row.when):
            if row.refuses:
                raise _undefined(call.place, row, numerics)
            return row
    raise call.unsupported(
        "BT-OPERATOR", f"numerics '{numerics.name}' has rows for these types, but none for what this node asks for"
    )


def _lower(
    call: Call, operator: Operator, candidates: tuple[Row, ...], numerics: Numerics, limit: int
) -> tuple[Step, list[tuple[int, ...]], int]:
    node = call.node
    shapes = operator.infer(call)
    if len(shapes) != len(call.outputs):
        raise call.invalid("BT-NODE-ARITY", f"expected {len(shapes)} outputs, found {len(call.outputs)}")
    for operand, shape in zip(call.outputs, shapes, strict=True):
        _check_size(call.place, operand.tensor, shape, limit)
    call = replace(call, outputs=tuple(replace(o, shape=shape) for o, shape in zip(call.outputs, shapes, strict=True)))
    row = _choose(call, candidates, numerics)
    call = replace(call, rules=row.rules)
    for name, *arguments in row.requires:
        REQUIREMENTS[str(name)](call, *arguments)
    lowered = operator.lower(call)
    step = Step(
        node.index,
        node.operator,
        node.source,
        node.inputs,
        node.outputs,
        row.rules,
        lowered.parameters,
        lowered.arrays,
        lowered.accumulator,
        sum(math.prod(shape) for shape in shapes) if lowered.work is None else lowered.work,
    )
    return step, shapes, lowered.scratch


def _fold(state: _State, operator: Operator, step: Step, call: Call) -> bool:
    """Run a step at plan time when everything it reads is known (or when shapes alone decide its result)."""
    if operator.stateful or not step.outputs:
        return False
    known = all(o is None or o.value is not None for o in call.inputs)
    if not known and not operator.needs_only_shapes:
        return False
    sizes = [math.prod(state.shapes[i]) * state.graph.tensors[i].type.numpy.itemsize for i in step.outputs]
    if sum(sizes) > _FOLD_BYTES or step.work > 1 << 24 or state.folded_bytes > _FOLD_BYTES_ALTOGETHER:
        return False
    state.folded_bytes += sum(sizes)
    inputs = [None if i is None else state.values.get(i) for i in step.inputs]
    for index, value in zip(step.outputs, operator.reference(step, inputs), strict=True):
        value.flags.writeable = False
        state.values[index] = value
        state.folded.append(index)
    return True


def _finish(state: _State, numerics: Numerics, limit: int, notes: tuple[str, ...]) -> Plan:
    graph = state.graph
    for index in graph.outputs:
        if index not in state.shapes:
            raise InvalidModelError(
                "BT-GRAPH-OUTPUT",
                "nothing computes this tensor",
                place=f"output '{graph.tensors[index].name}'",
                advice="choose a tensor that an operator writes",
            )
    first: dict[int, int] = dict.fromkeys(graph.inputs, -1)
    last: dict[int, int] = {}
    for position, step in enumerate(state.steps):
        for index in step.outputs:
            first[index] = position
            last[index] = position
        last.update({index: position for index in step.inputs if index is not None})
    for index in graph.outputs:
        last[index] = len(state.steps)
    folded = set(state.folded)
    tensors = []
    for index, tensor in enumerate(graph.tensors):
        if index in folded:
            kind = "folded"
        elif tensor.is_constant:
            kind = "constant"
        elif index in graph.inputs:
            kind = "input"
        elif tensor.is_variable:
            kind = "variable"
        else:
            kind = "computed" if index in first else "unused"
        tensors.append(
            PlanTensor(
                tensor.name,
                tensor.dtype,
                state.shapes.get(index, tensor.shape),
                kind,
                tensor.quantization,
                state.values.get(index),
                first=first.get(index, -1),
                last=last.get(index, first.get(index, -1)),
            )
        )
    placed = [i for i, t in enumerate(tensors) if t.kind in ("input", "computed")]
    offsets, arena = layout([Lifetime(tensors[i].bytes, tensors[i].first, tensors[i].last) for i in placed])
    for index, offset in zip(placed, offsets, strict=True):
        tensors[index] = replace(tensors[index], offset=offset)
    needed = arena + state.scratch + sum(t.bytes for t in tensors if t.kind == "variable")
    if needed > limit:
        raise ResourceError(
            "BT-MEMORY",
            f"a run would need {needed:,} bytes of activations and temporaries, the limit is {limit:,}",
            place=f"graph '{graph.name}'",
            advice="pass a larger memory_limit to prepare() if the model is meant to be this large",
        )
    return Plan(
        graph.name,
        numerics.name,
        numerics.reproduces,
        tuple(tensors),
        tuple(state.steps),
        graph.inputs,
        graph.outputs,
        dict(graph.aliases),
        tuple(state.folded),
        arena,
        notes,
    )
