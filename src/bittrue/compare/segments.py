"""A planned graph cut between the tensors that both sides show, so that each part can run alone on given inputs.

A part that runs on the other side's inputs shows what the other side did there and nowhere else: the isolated
difference. Parts are graphs, so they can be planned under any numerics, and with any change to graph or plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..api import Session
from ..graph import Graph, Node
from ..numerics import Numerics
from ..operators import Step, find
from ..plan import DEFAULT_MEMORY_LIMIT, Plan, make_plan

ChangeGraph = Callable[[Graph], Graph]
ChangePlan = Callable[[Plan], Plan]


@dataclass(frozen=True, eq=False)
class Segment:
    """What computes one tensor from the nearest tensors that are shown.

    Attributes:
        graph: its nodes and the tensors that they touch; inputs are the shown tensors that it reads, the only output is
            `target`. Nodes keep their positions in the whole graph; tensors are counted anew.
        target: index of the tensor that it computes.
        shapes: of its inputs, by name.
        numerics: the arithmetic of the side whose graph it is.
        memory_limit: as for `make_plan`.
    """

    graph: Graph
    target: int
    shapes: Mapping[str, tuple[int, ...]]
    numerics: Numerics
    memory_limit: int = DEFAULT_MEMORY_LIMIT

    @property
    def node(self) -> Node:
        """The node that writes the target."""
        return self.graph.nodes[-1]

    @property
    def name(self) -> str:
        """The target's name."""
        return self.graph.tensors[self.target].name

    def plan(
        self,
        numerics: Numerics | None = None,
        change_graph: ChangeGraph | None = None,
        change_plan: ChangePlan | None = None,
    ) -> Plan:
        """Its plan: as its own side has it, or under another numerics, or with a change.

        Raises:
            BittrueError: as `make_plan`: the numerics has no row for it, or the change makes no sense.
        """
        graph = self.graph if change_graph is None else change_graph(self.graph)
        plan = make_plan(graph, numerics or self.numerics, shapes=self.shapes, memory_limit=self.memory_limit)
        return plan if change_plan is None else change_plan(plan)

    @cached_property
    def own_plan(self) -> Plan:
        """Its plan as its own side has it."""
        return self.plan()

    @property
    def step(self) -> Step:
        """The step of `own_plan` that makes the target's elements."""
        return writer(self.own_plan)

    @cached_property
    def settled(self) -> Segment:
        """The same part in which everything that is known at plan time is a constant; nodes and tensors keep places."""
        values = {
            index: tensor.value
            for index, tensor in enumerate(self.own_plan.tensors)
            if tensor.kind == "folded" and tensor.value is not None and not self.graph.tensors[index].type.is_packed
        }
        if not values:
            return self
        tensors = tuple(
            replace(t, data=np.ascontiguousarray(values[i]), shape=values[i].shape) if i in values else t
            for i, t in enumerate(self.graph.tensors)
        )
        nodes = tuple(n for n in self.graph.nodes if not all(i in values for i in n.outputs))
        return replace(self, graph=replace(self.graph, tensors=tensors, nodes=nodes))

    def run(self, values: Mapping[str, np.ndarray], plan: Plan | None = None) -> np.ndarray:
        """The target's value for these values of the inputs, by name.

        Args:
            values: at least all inputs of the graph.
            plan: one that `plan` gave; None for its own.
        """
        plan = plan or self.own_plan
        session = Session(plan)
        given = {plan.tensors[i].name: values[plan.tensors[i].name] for i in plan.inputs}
        return next(iter(session.run(given).values()))


def writer(plan: Plan) -> Step:
    """The step that makes the elements of the plan's output: steps behind it that only move them are passed over."""
    makers = {index: step for step in plan.steps for index in step.outputs}
    step = makers[plan.outputs[0]]
    while (operator := find(step.operator)) is not None and operator.moves:
        sources = {i for i in step.inputs if i is not None and plan.tensors[i].value is None}
        if len(sources) != 1 or (before := makers.get(sources.pop())) is None:
            break
        step = before
    return step


def segments(
    graph: Graph,
    plan: Plan,
    numerics: Numerics,
    shown: Iterable[str],
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> Iterator[Segment]:
    """The parts of a planned graph, in execution order: one for every shown tensor that nodes compute.

    Args:
        graph: the graph that `plan` was made of, after the numerics' rewrites.
        plan: for shapes, and for what is known at plan time.
        numerics: that of the plan.
        shown: names of tensors whose values both sides have. Graph inputs count in any case.

    Parts with variable tensors, with calls of other graphs, or whose shapes only running tells are left out.
    """
    names = set(shown)
    producers = {index: node for node in graph.nodes for index in node.outputs}
    ends = {i for i in producers if graph.tensors[i].name in names} | set(graph.inputs)
    for target in (i for node in graph.nodes for i in node.outputs if i in ends):
        part = _part(graph, plan, producers, ends, target)
        if part is not None:
            inputs = {graph.tensors[i].name: plan.tensors[i].shape for i in part.inputs}
            part = _alone(part)
            yield Segment(part, part.outputs[0], inputs, numerics, memory_limit)


def _alone(graph: Graph) -> Graph:
    """The graph without tensors that no node touches: planning looks at every tensor."""
    touched = {i for node in graph.nodes for i in (*node.inputs, *node.outputs, *node.intermediates) if i is not None}
    new = {old: position for position, old in enumerate(sorted(touched | {*graph.inputs, *graph.outputs}))}

    def renumbered(indices: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(None if i is None else new[i] for i in indices)

    nodes = tuple(
        replace(
            node,
            inputs=renumbered(node.inputs),
            outputs=renumbered(node.outputs),
            intermediates=renumbered(node.intermediates),
        )
        for node in graph.nodes
    )
    tensors = tuple(graph.tensors[i] for i in new)
    inputs, outputs = renumbered(graph.inputs), renumbered(graph.outputs)
    return replace(graph, tensors=tensors, nodes=nodes, inputs=inputs, outputs=outputs)


def _part(graph: Graph, plan: Plan, producers: Mapping[int, Node], ends: set[int], target: int) -> Graph | None:
    wanted, nodes, inputs = [target], dict[int, Node](), dict[int, None]()
    if plan.tensors[target].kind != "computed":
        return None
    while wanted:
        node = producers[wanted.pop()]
        if node.index in nodes:
            continue
        nodes[node.index] = node
        for index in node.inputs:
            if index is None or graph.tensors[index].is_constant:
                continue
            if graph.tensors[index].is_variable or (index not in ends and index not in producers):
                return None
            if index in ends and index != target and plan.tensors[index].kind in ("input", "computed"):
                inputs[index] = None
            elif index in producers:
                wanted.append(index)
            else:
                return None
    kept = tuple(node for node in graph.nodes if node.index in nodes)
    if any(plan.tensors[i].kind in ("unknown", "later") for node in kept for i in node.outputs):
        return None
    return replace(graph, nodes=kept, inputs=tuple(sorted(inputs)), outputs=(target,), aliases={}, signature="")
