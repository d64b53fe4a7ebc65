"""Faults of zero points: ignored, off by a little or by 128, negated, taken from another operand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...graph import Graph
from ...operators import Step
from ...plan import Plan
from ..result import Cause
from .case import Case, Hypothesis, change_writer, with_parameters
from .layers import own_padding
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


# Kind and text, for names and sentences.
_Way = tuple[str, str]


def zero_points(case: Case) -> Iterator[Hypothesis]:
    """Every operand's zero point, changed in every way."""
    found = operands(case)
    for operand in found:
        for wrong, ways in _ways(operand, found).items():
            yield from _changed(operand, np.array(wrong, np.int64), ways, _of_all(operand, found, ways))
    yield from _all_inputs_ignored(found)
    yield from _swapped(found)
    for operand in found:
        by = _estimated(case, operand)
        points = operand.zero_points.astype(np.int64) + by
        if by and tuple(points.tolist()) not in _ways(operand, found):
            words = f"{abs(by)} too {'large' if by > 0 else 'small'}"
            yield from _changed(operand, points, [(words, f"is {words}")])


def _ways(operand: Operand, found: Sequence[Operand]) -> dict[tuple[int, ...], list[_Way]]:
    """Wrong zero points, and what may have led to them."""
    own = operand.zero_points.astype(np.int64)
    ways: dict[tuple[int, ...], list[_Way]] = {}
    for kind, text, change in _KINDS:
        ways.setdefault(tuple(change(own).tolist()), []).append((kind, text))
    for other in found:
        if other is not operand and other.zero_points.size == 1:
            same = tuple(np.broadcast_to(other.zero_points, own.shape).tolist())
            ways.setdefault(same, []).append((f"taken from the {other.role}", f"is that of the {other.role}"))
    ways.pop(tuple(own.tolist()), None)
    return ways


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


def _changed(
    operand: Operand, points: np.ndarray, ways: Sequence[_Way], more: tuple[Cause, ...] = ()
) -> Iterator[Hypothesis]:
    role = operand.role
    seat = f"{role} zero point"

    def graph(old: Graph) -> Graph:
        return operand.set_zero_point(old, points)

    def causes(sentence: str) -> tuple[Cause, tuple[Cause, ...]]:
        first, *others = [_cause(f"{role} zero point {kind}", sentence.format(text)) for kind, text in ways]
        return first, (*others, *more)

    cause, aliases = causes(f"the {_whose(role)} zero point {{}}: a fault")
    yield Hypothesis(cause, seat, graph=graph, aliases=aliases)
    if role == "output":
        cause, aliases = causes("the output's zero point {} where it is added, though not in the clamp: a fault")
        point = int(np.reshape(points, -1)[0])
        yield Hypothesis(cause, seat, plan=lambda plan: _with_output_point(plan, point), aliases=aliases)
    if role == "input":
        outside = int(operand.zero_points[0])
        cause, aliases = causes("the input's zero point {}, while padding still holds it: a fault")
        held = {"pad_code": lambda step: outside}
        yield Hypothesis(cause, seat, graph=graph, plan=own_padding, layer=held, aliases=aliases)


def _of_all(operand: Operand, found: Sequence[Operand], ways: Sequence[_Way]) -> tuple[Cause, ...]:
    """Where one input alone has a zero point, ignoring it is ignoring those of all inputs."""
    inputs = [o for o in found if o.role not in ("output", "weight")]
    alone = len(inputs) > 1 and [o for o in inputs if o.zero_points.any()] == [operand]
    return (_ALL_IGNORED,) if alone and any(kind == "ignored" for kind, _ in ways) else ()


def _all_inputs_ignored(found: list[Operand]) -> Iterator[Hypothesis]:
    inputs = [o for o in found if o.role != "output" and o.zero_points.any()]
    if len(inputs) < 2:
        return

    def graph(old: Graph) -> Graph:
        for operand in inputs:
            old = operand.set_zero_point(old, operand.zero_points * 0)
        return old

    yield Hypothesis(
        _ALL_IGNORED,
        "input zero points",
        graph=graph,
    )


def _swapped(found: list[Operand]) -> Iterator[Hypothesis]:
    """Zero points of two operands, each used for the other."""
    single = [o for o in found if o.zero_points.size == 1]
    for i, one in enumerate(single):
        for two in single[i + 1 :]:
            if one.zero_points[0] == two.zero_points[0]:
                continue

            def graph(old: Graph, one: Operand = one, two: Operand = two) -> Graph:
                return two.set_zero_point(one.set_zero_point(old, two.zero_points), one.zero_points)

            name = f"{one.role} and {two.role} zero points swapped"
            text = f"the zero points of {one.role} and {two.role} are swapped: a fault"
            yield Hypothesis(_cause(name, text), "zero points", graph=graph)


def _with_output_point(plan: Plan, point: int) -> Plan:
    def change(step: Step) -> Step | None:
        if "output_zero_point" not in step.parameters:
            return None
        return with_parameters(step, output_zero_point=point)

    return change_writer(plan, change)


def _whose(role: str) -> str:
    return f"{role}'s" if role != "weight" else "weights'"


def _cause(name: str, text: str) -> Cause:
    return Cause(name, text, "parameters", False)


_ALL_IGNORED = _cause("zero points of all inputs ignored", "the zero points of all inputs are ignored: a fault")
