"""Faults of zero points: ignored, off by a little or by 128, negated, taken from another operand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...graph import Graph
from ...operators import Step
from ...plan import Plan
from ..result import Cause
from .case import Case, Hypothesis, change_steps, with_parameters
from .operands import Operand, operands

_KINDS: tuple[tuple[str, str, Any], ...] = (
    ("ignored", "is ignored", lambda z: z * 0),
    ("one too large", "is one too large", lambda z: z + 1),
    ("one too small", "is one too small", lambda z: z - 1),
    ("negated", "has the wrong sign", lambda z: -z),
    ("128 too large", "is 128 too large", lambda z: z + 128),
    ("128 too small", "is 128 too small", lambda z: z - 128),
    ("doubled", "is applied twice", lambda z: 2 * z),
)

# Steps from the right zero point that are looked for.
_FARTHEST = 256


def zero_points(case: Case) -> Iterator[Hypothesis]:
    """Every operand's zero point, changed in every way."""
    found = operands(case)
    tried: list[set[tuple[int, ...]]] = []
    for operand in found:
        seen = {tuple(operand.zero_points.tolist())}
        tried.append(seen)
        for kind, text, change in _KINDS:
            points = change(operand.zero_points.astype(np.int64))
            if tuple(points.tolist()) in seen:
                continue
            seen.add(tuple(points.tolist()))
            yield from _changed(case, operand, points, kind, text)
        for other in found:
            if other is operand or other.zero_points.size != 1:
                continue
            same = tuple(np.broadcast_to(other.zero_points, operand.zero_points.shape).tolist())
            if same in seen:
                continue
            seen.add(same)
            yield from _changed(
                case, operand, other.zero_points, f"taken from the {other.role}", f"is that of the {other.role}"
            )
    yield from _all_inputs_ignored(found)
    for operand, seen in zip(found, tried, strict=True):
        by = _estimated(case, operand)
        points = operand.zero_points.astype(np.int64) + by
        if by and tuple(points.tolist()) not in seen:
            words = f"{abs(by)} too {'large' if by > 0 else 'small'}"
            yield from _changed(case, operand, points, words, f"is {words}")


def _estimated(case: Case, operand: Operand) -> int:
    """By how much the zero point may be off: the step that comes nearest to B, if a small one comes nearer; else 0."""
    kind = case.theirs[0].dtype
    if kind.kind not in "iu":
        return 0
    known: dict[int, float] = {}

    def distance(by: int) -> float:
        if by not in known:
            points = operand.zero_points.astype(np.int64) + by
            cause = Cause("", "", "parameters", False)
            tried = Hypothesis(cause, "", graph=lambda old: operand.set_zero_point(old, points))
            found = case.predict([tried], 0)
            apart = np.inf if found is None else np.abs(found.astype(np.int64) - case.theirs[0].astype(np.int64)).sum()
            known[by] = float(apart)
        return known[by]

    known[0] = float(np.abs(case.ours[0].astype(np.int64) - case.theirs[0].astype(np.int64)).sum())
    sign = min((1, -1), key=distance)
    if distance(sign) >= known[0]:
        return 0
    high = 1
    while high < _FARTHEST and distance(2 * high * sign) < distance(high * sign):
        high *= 2
    low, high = high // 2, 2 * high
    while high - low > 2:
        third = max(1, (high - low) // 3)
        one, two = low + third, high - third
        if one == two or distance(one * sign) <= distance(two * sign):
            high = two if one != two else two - 1 if distance((two - 1) * sign) < distance(two * sign) else two + 1
        else:
            low = one
        if one == two:
            break
    return sign * min(range(max(1, low), high + 1), key=lambda by: distance(by * sign))


def _changed(case: Case, operand: Operand, points: np.ndarray, kind: str, text: str) -> Iterator[Hypothesis]:
    role = operand.role
    name = f"{role} zero point {kind}"
    seat = f"{role} zero point"

    def graph(old: Graph) -> Graph:
        return operand.set_zero_point(old, points)

    yield Hypothesis(_cause(name, f"the {_whose(role)} zero point {text}: a fault"), seat, graph=graph)
    if role == "output":
        text = f"the output's zero point {text} where it is added, though not in the clamp: a fault"
        point = int(np.reshape(points, -1)[0])
        yield Hypothesis(_cause(name, text), seat, plan=lambda plan: _with_output_point(plan, point))
    if role == "input":
        outside = int(operand.zero_points[0])
        text = f"the input's zero point {text}, while padding still holds it: a fault"
        yield Hypothesis(_cause(name, text), seat, graph=graph, layer={"pad_code": lambda step: outside})


def _all_inputs_ignored(found: list[Operand]) -> Iterator[Hypothesis]:
    inputs = [o for o in found if o.role != "output" and o.zero_points.any()]
    if len(inputs) < 2:
        return

    def graph(old: Graph) -> Graph:
        for operand in inputs:
            old = operand.set_zero_point(old, operand.zero_points * 0)
        return old

    yield Hypothesis(
        _cause("zero points of all inputs ignored", "the zero points of all inputs are ignored: a fault"),
        "input zero points",
        graph=graph,
    )


def _with_output_point(plan: Plan, point: int) -> Plan:
    def change(step: Step) -> Step | None:
        if "output_zero_point" not in step.parameters or plan.outputs[0] not in step.outputs:
            return None
        return with_parameters(step, output_zero_point=point)

    return change_steps(plan, change)


def _whose(role: str) -> str:
    return f"{role}'s" if role != "weight" else "weights'"


def _cause(name: str, text: str) -> Cause:
    return Cause(name, text, "parameters", False)
