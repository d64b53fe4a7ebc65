"""Sums of two quantized tensors, whatever form the file gives them: one subtracted, scales mixed up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...graph import Attribute, Graph
from ...operators import Step, find
from ...operators.core.roles import position_of
from ...plan import Plan
from .case import Case, Hypothesis, Values
from .common import Array, cause, of_computation, of_step
from .operands import operands

# Slots of such sums, of which each has operators of its own.
_SUMS = {"affine_sum", "range_sum", "level_sum", "align"}


def summands(case: Case) -> Iterator[Hypothesis]:
    """What may be wrong about the two summands; `results` and `scales` have it for sums whose tensors carry scales."""
    step = case.step
    operator = find(step.operator)
    if operator is None or operator.elementwise < 2 or not _SUMS & step.rules.keys() or len(case.plan.steps) != 1:
        return
    yield from _given(case)
    points = {o.role: int(o.zero_points[0]) for o in operands(case) if o.zero_points.size == 1}
    given = int(case.segment.node.attributes.get("second_zero_point", 0))  # type: ignore[arg-type]
    yield of_computation(
        "difference instead of sum",
        "the second operand is subtracted",
        lambda plan, values: _less(plan, values, points.get("second input", given)),
    )
    if "factors" in step.arrays:
        text = "the scales of first input and second input are swapped"
        yield of_step("first input and second input scales swapped", text, _reversed)
        for position, role in enumerate(("first input", "second input")):
            for power, words in ((1, "one too large"), (-1, "one too small")):
                title = f"{role} scale's exponent {words}"
                yield of_step(title, f"the {title}", lambda s, p=position, by=power: _doubled(s, p, by))  # type: ignore[misc]


def _given(case: Case) -> Iterator[Hypothesis]:
    """Zero points and scales that are attributes of the node."""
    node = case.segment.node

    def changed(name: str, text: str, **attributes: Attribute) -> Hypothesis:
        def graph(old: Graph) -> Graph:
            other = replace(node, attributes={**node.attributes, **attributes})
            return replace(old, nodes=tuple(other if n.index == node.index else n for n in old.nodes))

        return Hypothesis(cause(name, text, "parameters"), "summands", graph=graph)

    for role, key in (("first input", "first"), ("second input", "second"), ("output", "output")):
        if node.attributes.get(f"{key}_zero_point"):
            text = f"the {role}'s zero point is ignored"
            yield changed(f"{role} zero point ignored", text, **{f"{key}_zero_point": 0})
    if {"first_scale", "second_scale"} <= node.attributes.keys():
        scales = {"first_scale": node.attributes["second_scale"], "second_scale": node.attributes["first_scale"]}
        text = "the scales of first input and second input are swapped"
        yield changed("first input and second input scales swapped", text, **scales)


def _less(plan: Plan, values: Values, point: int) -> Array:
    """The step's own sum with the second operand mirrored at its zero point."""
    step = plan.steps[0]
    operator = find(step.operator)
    assert operator is not None
    known = {i: t.value for i, t in enumerate(plan.tensors) if t.value is not None}
    known.update({i: np.asarray(values[plan.tensors[i].name]) for i in plan.inputs})
    inputs = [None if i is None else known[i] for i in step.inputs]
    # Steps whose scales are prepared keep their data alone.
    named = position_of(operator, "second input")
    second = named if named is not None and len(inputs) > 2 else 1
    other = inputs[second]
    assert other is not None
    inputs[second] = (2 * point - other.astype(np.int64)).astype(np.int16)
    found = operator.reference(step, inputs)[0]
    return np.asarray(found).astype(plan.tensors[plan.outputs[0]].type.numpy)


def _reversed(step: Step) -> Step:
    return replace(step, arrays={**step.arrays, "factors": step.arrays["factors"][::-1].copy()})


def _doubled(step: Step, position: int, power: int) -> Step:
    factors = step.arrays["factors"].copy()
    factors[position] = np.ldexp(factors[position], power)
    return replace(step, arrays={**step.arrays, "factors": factors})
