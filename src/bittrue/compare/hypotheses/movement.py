"""Faults of operators that move or compare quantized values: padding, permutations, extremes, positions,
comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...graph import Graph
from ...operators import Step, find, registry
from ...plan import Plan
from ..result import Cause
from .case import Case, Hypothesis, Values


def movement(case: Case) -> Iterator[Hypothesis]:
    """What may be wrong about where quantized values go, and which of two is the larger one."""
    if len(case.plan.steps) != 1:
        return
    step = case.plan.steps[0]
    if "value_is_input" in step.parameters:
        yield from _pads(step)
    if "permutation" in step.parameters:
        yield _computed("permutation inverted", "the inverse permutation is applied", "order", _inverted)
    operator = find(step.operator)
    if operator is not None and operator.positions and not step["last"]:
        yield _computed("last of equal values", "of equal values the last one is found", "order", _last)
    if operator is not None and operator.compares and operator.truth is None:
        yield _unsigned()
    if operator is not None and operator.truth is not None:
        for other in registry().values():
            if other.truth is not None and other is not operator:
                yield _instead(case, other.stem)
        yield _computed(
            "quantized values compared", "quantized values are compared, whatever they stand for", "order", _quantized
        )


def _pads(step: Step) -> Iterator[Hypothesis]:
    for code in (0, -128, 127, 128, 255):
        text = f"padded positions hold quantized value {code}"
        yield _computed(f"padding with quantized value {code}", text, "geometry", _padded(constant=code))
    yield _computed("padding swapped", "amounts before and after are swapped", "geometry", _padded(swapped=True))
    yield _computed("padding all at the end", "all padding is at the end", "geometry", _padded(before=0.0))
    yield _computed("padding all at the beginning", "all padding is at the beginning", "geometry", _padded(before=1.0))
    for name, mode in (("padding repeats the edge", "edge"), ("padding mirrors the image", "reflect")):
        yield _computed(name, name, "geometry", _padded(mode=mode))


def _padded(
    constant: int | None = None, swapped: bool = False, before: float | None = None, mode: str = "constant"
) -> Any:
    def compute(plan: Plan, values: Values) -> np.ndarray | None:
        step = plan.steps[0]
        x = _operand(plan, values, step, 0)
        first = np.array(step["before"]).reshape(-1)
        last = np.array(step["shape"]).reshape(-1) - np.array(x.shape) - first
        if swapped:
            first, last = last, first
        if before is not None:
            first, last = ((first + last) * before).astype(int), ((first + last) * (1 - before)).astype(int)
        amounts = list(zip(first.tolist(), last.tolist(), strict=True))
        if mode != "constant":
            return np.pad(x, amounts, mode=mode)  # type: ignore[call-overload]
        value: Any = constant
        if value is None:
            value = _operand(plan, values, step, 2).reshape(-1)[0] if step["value_is_input"] else step["value"]
        return np.pad(x, amounts, constant_values=int(value))

    return compute


def _inverted(plan: Plan, values: Values) -> np.ndarray:
    step = plan.steps[0]
    x = _operand(plan, values, step, 0)
    order = np.argsort(np.array(step["permutation"]))
    return np.ascontiguousarray(x.transpose(order)).reshape(plan.tensors[plan.outputs[0]].shape)


def _last(plan: Plan, values: Values) -> np.ndarray:
    step = plan.steps[0]
    x, axis = _operand(plan, values, step, 0), int(step["axis"])
    operator = find(step.operator)
    search = np.argmax if operator is not None and operator.largest else np.argmin
    found = x.shape[axis] - 1 - search(np.flip(x, axis), axis)
    output = plan.tensors[plan.outputs[0]]
    return np.asarray(found).astype(output.type.numpy).reshape(output.shape)


def _quantized(plan: Plan, values: Values) -> np.ndarray:
    step = plan.steps[0]
    operator = find(step.operator)
    assert operator is not None
    assert operator.truth is not None, "it is a comparison"
    return np.asarray(operator.truth(*(_operand(plan, values, step, k) for k in (0, 1))))


def _unsigned() -> Hypothesis:
    """Signed values are compared as unsigned ones, or the reverse: both sides with their highest bit flipped."""

    def flipped(value: np.ndarray) -> np.ndarray:
        if value.dtype.kind not in "iu" or value.dtype.itemsize > 2:
            return value
        plain = np.dtype(f"u{value.dtype.itemsize}")
        top = plain.type(1 << (8 * plain.itemsize - 1))
        return (value.view(plain) ^ top).view(value.dtype)

    def values(given: Any, position: int) -> Any:
        return {name: flipped(np.asarray(value)) for name, value in given[position].items()}

    def result(found: np.ndarray, plan: Plan) -> np.ndarray:
        return flipped(found)

    text = "signed values are compared as unsigned ones, or the reverse: a fault"
    return Hypothesis(
        Cause("quantized values compared as unsigned", text, "order", False), "comparison", values=values, result=result
    )


def _instead(case: Case, operator: str) -> Hypothesis:
    node = case.segment.node

    def graph(old: Graph) -> Graph:
        return replace(
            old, nodes=tuple(replace(n, operator=operator) if n.index == node.index else n for n in old.nodes)
        )

    from ... import numerics as numerics_tables  # the row of the other operator is A's own

    return Hypothesis(
        Cause(
            f"{operator} instead of {node.operator}", f"it is {operator}, not {node.operator}: a fault", "order", False
        ),
        "operator",
        numerics=lambda old: numerics_tables.find(old.name),
        graph=graph,
    )


def _operand(plan: Plan, values: Values, step: Step, position: int) -> np.ndarray:
    index = step.inputs[position]
    if index is None:
        raise ValueError("no such operand")
    tensor = plan.tensors[index]
    return np.asarray(values[tensor.name] if tensor.value is None else tensor.value)


def _computed(name: str, text: str, kind: str, compute: Any) -> Hypothesis:
    return Hypothesis(Cause(name, f"{text}: a fault", kind, False), "movement", compute=compute)
