"""if, stablehlo_composite and call_once: steps that run other graphs of the file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, GraphUse, Lowered, Operator, Shape, Step, Subgraph, World


def check_results(call: Call, graph: Subgraph) -> None:
    """As many results, of the types, that the node has outputs."""
    wanted = tuple(operand.dtype for operand in call.outputs)
    if graph.outputs != wanted:
        raise call.invalid(
            "BT-CONTROL-TYPE", f"its graph returns types {list(graph.outputs)}, the node has {list(wanted)}"
        )


def _unknown(shape: Shape | None) -> Shape:
    return (-1,) if shape is None else shape


def infer_if(call: Call) -> list[Shape]:
    """The shapes of both graphs where they agree, or those of the only one that is called or can run."""
    call.expect((1, len(call.inputs)), None)
    condition = call.input(0, "condition")
    if condition.dtype != "bool" or condition.size != 1:
        raise call.invalid(
            "BT-CONTROL-CONDITION", f"the condition must be one bool, found {condition.dtype}{list(condition.shape)}"
        )
    for graph in call.graphs:
        check_results(call, graph)
    fitting = [graph for graph in call.graphs if graph.error is None]
    if not fitting:
        raise call.graphs[0].error or AssertionError
    columns = zip(*(graph.shapes for graph in fitting), strict=True)
    return [(-1,) if column[0] is None or set(column) != {column[0]} else column[0] for column in columns]


def lower_if(call: Call) -> Lowered:
    """The numbers of both graphs, twice the same one where the condition is known."""
    return Lowered(
        {"then": call.graphs[0].number, "else": call.graphs[-1].number},
        work=max(graph.work for graph in call.graphs),
        scratch=sum(graph.memory for graph in call.graphs),
    )


def reference_if(step: Step, inputs: Sequence[np.ndarray], world: World) -> list[np.ndarray]:
    """Results of the branch that the condition chooses."""
    chosen = "then" if bool(inputs[0].reshape(-1)[0]) else "else"
    return world.call(step[chosen], inputs[1:])


def infer_composite(call: Call) -> list[Shape]:
    """What its graph returns."""
    if not call.inputs:
        raise call.invalid("BT-NODE-ARITY", "expected at least 1 input, found 0")
    (graph,) = call.graphs
    check_results(call, graph)
    return [_unknown(shape) for shape in graph.shapes]


def lower_composite(call: Call) -> Lowered:
    """The number of its graph."""
    (graph,) = call.graphs
    return Lowered(parameters={"graph": graph.number}, work=graph.work, scratch=graph.memory)


def reference_composite(step: Step, inputs: Sequence[np.ndarray], world: World) -> list[np.ndarray]:
    """Results of its graph."""
    return world.call(step["graph"], inputs)


def infer_once(call: Call) -> list[Shape]:
    """Neither inputs nor outputs, nor has its graph any."""
    call.expect(0, 0)
    check_results(call, call.graphs[0])
    return []


def reference_once(step: Step, inputs: Sequence[np.ndarray], world: World) -> list[np.ndarray]:
    """Runs its graph once in the life of a session."""
    world.call_once(step["graph"])
    return []


OPERATORS = (
    Operator(
        "if",
        (),
        infer_if,
        lower_if,
        reference_if,
        "one of two graphs",
        worldly=True,
        graphs=(GraphUse("then_graph", 1, when=True), GraphUse("else_graph", 1, when=False)),
    ),
    Operator(
        "stablehlo_composite",
        (),
        infer_composite,
        lower_composite,
        reference_composite,
        "the graph that defines it",
        worldly=True,
        graphs=(GraphUse("decomposition_subgraph_index"),),
    ),
    Operator(
        "call_once",
        (),
        infer_once,
        lower_composite,
        reference_once,
        "a graph on the first run only",
        worldly=True,
        graphs=(GraphUse("init_subgraph_index", None),),
    ),
)
