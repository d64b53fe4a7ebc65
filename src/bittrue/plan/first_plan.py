"""A graph's plan under a numerics, and that of a model whose file leaves sizes of inputs open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from ..errors import BittrueError
from ..graph import Graph, Tensor
from ..numerics import Numerics
from .calls import needed_graphs
from .folding import with_constants
from .inexact import limits
from .plan import Plan, Source
from .planner import DEFAULT_MEMORY_LIMIT, UNFIT, _to_the_end, _wanted, plan_for, plan_source

# Sizes of open axes that are tried after those of the file.
_SIZES = (*range(2, 17), 32, 64, 128, 224, 256, 512)
# Dimensions that are tried while the others stay as they are.
_TRIED_ALONE = 4


def make_plan(
    graph: Graph,
    numerics: Numerics,
    *,
    shapes: Mapping[str, Sequence[int] | int] | None = None,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    notes: Sequence[str] = (),
    graphs: Sequence[Graph] = (),
    may_end: bool = False,
) -> Plan:
    """Plan `graph` under `numerics`.

    Where a value decides shapes that is only known at run time, the plan ends and names what comes `later`.

    Args:
        graph: nodes in execution order.
        numerics: the table that fills the slots.
        shapes: new shapes for graph inputs, by tensor or signature name, and sizes of free dimensions by their names.
        memory_limit: bytes of live activations and temporaries that a run may need, beside eight times those of
            the constants.
        notes: kept in the plan.
        graphs: all graphs of the file, for operators that call other graphs.
        may_end: where a node does not fit sizes that the file leaves open and `shapes` does not give, the plan ends
            before it.

    Raises:
        UnsupportedError: operators or types without a row; all of them are named in one message.
        InvalidModelError: contradictions, and what the runtime itself refuses or leaves undefined.
        ResourceError: a run would exceed `memory_limit`.
    """
    given, others, found = graph, graphs, tuple[str, ...]()
    if numerics.rewrites:
        from .declared import rewritten_graphs

        (graph, found), others = rewritten_graphs(graph, graphs, numerics, memory_limit)
    kept = needed_graphs(graph, others)
    main = next(index for index, one in enumerate(kept) if one is graph)
    limit = with_constants(memory_limit, given, *graphs)
    source = Source(numerics, kept, limit, plan_source, main, _wanted(graph, shapes or {}))
    plan = plan_source(source, (*notes, *found, *limits(kept, numerics)))
    return plan if may_end else _to_the_end(plan)


def free_axes(graph: Graph, shapes: Mapping[str, Sequence[int] | int]) -> dict[str, frozenset[int]]:
    """The axes whose sizes the file leaves open, of inputs that nobody gave a shape; none where runs have state."""
    if any(tensor.is_variable for tensor in graph.tensors):
        return {}
    inputs = [graph.tensors[index] for index in graph.inputs]
    found = {t.name: frozenset(axis for axis, size in enumerate(t.shape_signature or ()) if size == -1) for t in inputs}
    return {name: axes for name, axes in found.items() if axes and name not in shapes}


def first_plan(
    graph: Graph,
    numerics: Numerics,
    *,
    shapes: Mapping[str, Sequence[int] | int],
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    notes: Sequence[str] = (),
    graphs: Sequence[Graph] = (),
) -> Plan:
    """A plan for sizes of free axes that the graph can have, of which `shapes` may name some; where none of those
    that are tried fit, one that ends before what they do not fit. Runs with other sizes are planned anew.

    Args:
        graph, numerics, shapes, memory_limit, notes, graphs: as for `make_plan`, whose errors it has.

    Raises:
        InvalidModelError: the graph fits no sizes: with all of them it has one and the same fault, or some are named.
    """
    planned = partial(make_plan, graph, numerics, memory_limit=memory_limit, notes=notes, graphs=graphs)
    free = free_axes(graph, shapes)
    inputs = [graph.tensors[i] for i in graph.inputs]
    own = {*graph.aliases, *(tensor.name for tensor in inputs)}
    named = {name: size for name, size in shapes.items() if name not in own}
    unfit: BittrueError | None
    try:
        plan = planned(shapes=shapes, may_end=bool(free) and not named)
        unfit = plan.later.error if plan.later is not None else None
    except UNFIT as error:
        if not named:
            raise
        # Other free dimensions are 1 there, which may be what does not fit.
        unfit = error
        plan = planned(shapes={name: shape for name, shape in shapes.items() if name in own}, may_end=True)
    if unfit is None:
        return plan
    inputs = [tensor for tensor in inputs if tensor.name in free]
    faults, known = {str(unfit)}, [{t.name: t.shape for t in inputs}]
    sizes = {name: size if isinstance(size, int) else int(size[0]) for name, size in named.items()}
    for tried in _first_shapes(inputs, free, sizes):
        if tried in known:
            continue
        known.append(tried)
        try:
            return plan_for(plan, {**tried, **named})
        except BittrueError as error:
            faults.add(str(error))
    if named or len(faults) == 1:
        raise unfit
    return plan


def _first_shapes(
    inputs: Sequence[Tensor], free: Mapping[str, frozenset[int]], named: Mapping[str, int]
) -> Iterator[dict[str, tuple[int, ...]]]:
    """Shapes to try, by input: sizes that follow from others, then all alike, then one alone, at last other numbers of
    samples. Axes of one name have one size, and those without names, of one input.

    The first axis counts samples, as a rule: before that it stays as it is, and so do those of its name.
    """
    from .dimensions import parts, size_of

    samples = {t.symbols[0] for t in inputs if t.symbols and len(t.shape) > 1} - {""}
    names = {t.name: t.symbols or ("",) * len(t.shape) for t in inputs}
    usual = {names[t.name][axis]: t.shape[axis] for t in inputs for axis in free[t.name]}
    usual = {name: size for name, size in usual.items() if name and not usual.keys() > parts(name) > set()}

    def key(tensor: Tensor, axis: int) -> str | tuple[str, bool]:
        return names[tensor.name][axis] or (tensor.name, axis == 0 and len(tensor.shape) > 1)

    keys = dict.fromkeys(key(t, axis) for t in inputs for axis in sorted(free[t.name]))
    open_ones = [one for one in keys if one in usual or isinstance(one, tuple)]
    counting = [one for one in open_ones if one in samples or (isinstance(one, tuple) and one[1])]
    others = [one for one in open_ones if one not in counting]

    def shapes(size: int, changed: Sequence[str | tuple[str, bool]]) -> dict[str, tuple[int, ...]]:
        known = {**usual, **{one: size for one in changed if isinstance(one, str)}, **named}

        def one(tensor: Tensor, axis: int, old: int) -> int:
            if axis not in free[tensor.name]:
                return old
            mine = key(tensor, axis)
            new = size_of(mine, known) if isinstance(mine, str) else size if mine in changed else None
            return old if new is None else new

        return {t.name: tuple(one(t, axis, old) for axis, old in enumerate(t.shape)) for t in inputs}

    yield shapes(1, [])
    for size in _SIZES if others else ():
        yield shapes(size, others)
    for alone in others[:_TRIED_ALONE] if len(others) > 1 else ():
        for size in _SIZES:
            yield shapes(size, [alone])
    for size in _SIZES if counting else ():
        yield shapes(size, counting)
