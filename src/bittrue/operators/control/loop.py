"""loop: a graph that is run again and again on its own results.

It goes on as long as a graph of its own says so (`condition_graph`); or at most a number of rounds and as long as the
body's first result says so, and then slices of every round are collected.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...graph import DATA_TYPES, Attribute
from ..core.base import Call, GraphUse, Lowered, Operator, Shape, Step, World
from .control import check_results


def _counts(call: Call) -> tuple[int, int]:
    """Carried values, and slices that every round gives."""
    carried = int(call.attribute("carried"))
    return carried, len(call.outputs) - carried


def _infer_counted(call: Call) -> list[Shape]:
    """The carried values' shapes where the body keeps them; slices are stacked along a new first axis."""
    call.expect((2, len(call.inputs)), None)
    (body,), (carried, slices) = call.graphs, _counts(call)
    rounds, going = call.input(0, "rounds"), call.input(1, "condition")
    if rounds.size != 1 or going.size != 1 or (rounds.dtype, going.dtype) != ("s64", "bool"):
        raise call.invalid(
            "BT-CONTROL-CONDITION", f"rounds {rounds.dtype}{list(rounds.shape)}, condition {going.dtype}: one each"
        )
    given = [call.input(position) for position in range(len(call.inputs))]
    wanted = ["bool", "bool", *(operand.dtype for operand in given[2:])]
    if list(body.outputs[: len(given)]) != wanted or len(body.outputs) != len(given) + slices:
        raise call.invalid(
            "BT-CONTROL-TYPE", f"the body returns types {list(body.outputs)}, the loop needs {wanted} and {slices} more"
        )
    before, after = [operand.shape for operand in given[2 : 2 + carried]], body.shapes[2 : 2 + carried]
    if list(after) != before:
        # One change of shape may change all others in the next round.
        return [(-1,)] * len(call.outputs)
    count = -1
    if rounds.value is not None and going.value is not None and (body.passed[0] == 1 or not going.value.all()):
        count = max(0, int(rounds.value.reshape(-1)[0])) if going.value.all() else 0
    rest = body.shapes[len(given) :]
    return [*before, *((-1,) if shape is None else (count, *shape) for shape in rest)]


def _lower_counted(call: Call) -> Lowered:
    """The body's number, and shapes and types of slices for loops that never run."""
    (body,), (carried, slices) = call.graphs, _counts(call)
    first = len(body.outputs) - slices
    parameters: dict[str, Attribute] = {"body": body.number, "carried": carried, "slices": slices}
    for number in range(slices):
        shape = body.shapes[first + number]
        parameters[f"shape_{number}"] = (-1,) if shape is None else shape
        parameters[f"type_{number}"] = body.outputs[first + number]
    sizes = sum(operand.size * operand.type.numpy.itemsize for operand in call.inputs if operand is not None)
    return Lowered(parameters, work=body.work, scratch=body.memory + 2 * sizes)


def _stacked(step: Step, number: int, parts: Sequence[np.ndarray]) -> np.ndarray:
    shape = step[f"shape_{number}"]
    if parts:
        if any(part.shape != parts[0].shape for part in parts):
            raise RunError(
                "BT-CONTROL-SLICES", f"slices {number} of the rounds have different shapes", place=step.place
            )
        return np.stack(parts)
    if -1 in shape:
        raise RunError(
            "BT-CONTROL-SLICES", f"no round ran that would tell the shape of slices {number}", place=step.place
        )
    return np.zeros((0, *shape), DATA_TYPES[step[f"type_{number}"]].numpy)


def _reference_counted(step: Step, inputs: Sequence[np.ndarray], world: World) -> list[np.ndarray]:
    """values, slices = body(round, condition, values), at most so many rounds and as long as the condition holds."""
    rounds, going, count, slices = inputs[0], inputs[1], step["carried"], step["slices"]
    carried, outside = list(inputs[2 : 2 + count]), list(inputs[2 + count :])
    collected: list[list[np.ndarray]] = [[] for _ in range(slices)]
    done, most = 0, int(rounds.reshape(-1)[0])
    while done < most and bool(going.reshape(-1)[0]):
        results = world.call(step["body"], [np.full(rounds.shape, done, np.int64), going, *carried, *outside])
        if results[0].size != 1:
            raise RunError(
                "BT-CONTROL-CONDITION", f"the body's condition has shape {results[0].shape}", place=step.place
            )
        going, carried, done = results[0].reshape(inputs[1].shape), results[2 : 2 + count], done + 1
        for part, result in zip(collected, results[len(results) - slices :] if slices else [], strict=True):
            part.append(result)
    return [*carried, *(_stacked(step, number, parts) for number, parts in enumerate(collected))]


def _is_single_bool(dtype: str, shape: Shape | None) -> bool:
    return dtype == "bool" and shape in (None, (), (1,))


def _infer_asked(call: Call) -> list[Shape]:
    """The shapes of the inputs where the body keeps them."""
    if not call.inputs or len(call.outputs) != len(call.inputs):
        raise call.invalid(
            "BT-NODE-ARITY", f"expected as many outputs as inputs, found {len(call.inputs)} and {len(call.outputs)}"
        )
    condition, body = call.graphs
    check_results(call, body)
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


def _lower_asked(call: Call) -> Lowered:
    """The numbers of both graphs, and results of the body that are simply one of its inputs."""
    condition, body = call.graphs
    carried = sum(operand.size * operand.type.numpy.itemsize for operand in call.inputs if operand is not None)
    return Lowered(
        parameters={"condition": condition.number, "body": body.number, "passed": body.passed},
        work=condition.work + body.work,
        scratch=condition.memory + body.memory + 2 * carried,
    )


def _reference_asked(step: Step, inputs: Sequence[np.ndarray], world: World) -> list[np.ndarray]:
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


def _asks(call: Call) -> bool:
    return "condition_graph" in call.node.attributes


def infer(call: Call) -> list[Shape]:
    """As the loop's form asks."""
    return _infer_asked(call) if _asks(call) else _infer_counted(call)


def lower(call: Call) -> Lowered:
    """As the loop's form asks."""
    return _lower_asked(call) if _asks(call) else _lower_counted(call)


def reference(step: Step, inputs: Sequence[np.ndarray], world: World) -> list[np.ndarray]:
    """As the loop's form asks."""
    run = _reference_asked if "condition" in step.parameters else _reference_counted
    return run(step, inputs, world)


OPERATOR = Operator(
    "loop",
    (),
    infer,
    lower,
    reference,
    "a graph run again on its own results, as often as a condition or a count says",
    worldly=True,
    graphs=(
        GraphUse("condition_graph", repeats="body_graph", optional=True),
        GraphUse("body_graph", repeats="body_graph"),
    ),
)
