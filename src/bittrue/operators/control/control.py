"""if, while, stablehlo_composite and call_once: steps that run other graphs of the file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ..core.base import Call, GraphUse, Lowered, Operator, Shape, Step, Subgraph, World


def _check_results(call: Call, graph: Subgraph) -> None:
    """As many results, of the types, that the node has outputs."""
    wanted = tuple(operand.dtype for operand in call.outputs)
    if graph.outputs != wanted:
        raise call.invalid(
            "BT-CONTROL-TYPE", f"its graph returns types {list(graph.outputs)}, the node has {list(wanted)}"
        )


def _unknown(shape: Shape | None) -> Shape:
    return (-1,) if shape is None else shape


def _is_single_bool(dtype: str, shape: Shape | None) -> bool:
    return dtype == "bool" and shape in (None, (), (1,))


def infer_if(call: Call) -> list[Shape]:
    """The shapes of both graphs where they agree, or those of the one that is called for sure."""
    call.expect((1, len(call.inputs)), None)
    condition = call.input(0, "condition")
    if condition.dtype != "bool" or condition.size != 1:
        raise call.invalid(
            "BT-CONTROL-CONDITION", f"the condition must be one bool, found {condition.dtype}{list(condition.shape)}"
        )
    for graph in call.graphs:
        _check_results(call, graph)
    columns = zip(*(graph.shapes for graph in call.graphs), strict=True)
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


def infer_while(call: Call) -> list[Shape]:
    """The shapes of the inputs where the body keeps them."""
    if not call.inputs or len(call.outputs) != len(call.inputs):
        raise call.invalid(
            "BT-NODE-ARITY", f"expected as many outputs as inputs, found {len(call.inputs)} and {len(call.outputs)}"
        )
    condition, body = call.graphs
    _check_results(call, body)
    if len(condition.outputs) != 1 or not _is_single_bool(condition.outputs[0], condition.shapes[0]):
        raise call.invalid(
            "BT-CONTROL-CONDITION",
            f"the condition must return one bool, found {list(condition.outputs)} of shapes {list(condition.shapes)}",
        )
    given = [operand.shape for operand in call.inputs if operand is not None]
    if tuple(given) != body.shapes:
        # One change of shape may change all others in the next round.
        return [(-1,)] * len(given)
    return given


def lower_while(call: Call) -> Lowered:
    """The numbers of both graphs, and results of the body that are simply one of its inputs."""
    condition, body = call.graphs
    carried = sum(operand.size * operand.type.numpy.itemsize for operand in call.inputs if operand is not None)
    return Lowered(
        parameters={"condition": condition.number, "body": body.number, "passed": body.passed},
        work=condition.work + body.work,
        scratch=condition.memory + body.memory + 2 * carried,
    )


def reference_while(step: Step, inputs: Sequence[np.ndarray], world: World) -> list[np.ndarray]:
    """x = body(x) as long as condition(x).

    The body's inputs and the node's results share memory in the runtimes, and results are copied there one after the
    other. So a result i that simply is input j finds the new value of j where j < i. The condition has memory of its
    own and sees what the body returned.
    """
    carried = seen = list(inputs)
    passed = step["passed"]
    while True:
        (going_on,) = world.call(step["condition"], seen)
        if going_on.shape not in ((), (1,)):
            raise RunError(
                "BT-CONTROL-CONDITION", f"the condition returned shape {list(going_on.shape)}, expected one bool"
            )
        if not bool(going_on.reshape(-1)[0]):
            return carried
        seen = world.call(step["body"], carried)
        following = list(seen)
        for i, j in enumerate(passed[: len(following)]):
            if 0 <= j < i:
                if following[j].shape != seen[i].shape:
                    raise RunError("BT-CONTROL-PASSED", f"result {i} is input {j}, whose memory has got another shape")
                following[i] = following[j]
        carried = following


def infer_composite(call: Call) -> list[Shape]:
    """What its graph returns."""
    if not call.inputs:
        raise call.invalid("BT-NODE-ARITY", "expected at least 1 input, found 0")
    (graph,) = call.graphs
    _check_results(call, graph)
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
    _check_results(call, call.graphs[0])
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
        "while",
        (),
        infer_while,
        lower_while,
        reference_while,
        "a graph as often as another one says",
        worldly=True,
        graphs=(
            GraphUse("cond_subgraph_index", repeats="body_subgraph_index"),
            GraphUse("body_subgraph_index", repeats="body_subgraph_index"),
        ),
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
