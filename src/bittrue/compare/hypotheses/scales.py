"""Faults of scales: of channels, of exponents, of precision, of operands mixed up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from ...graph import Graph
from ...operators import Step, find
from ...plan import Plan
from ...rules import rescale
from ..result import Cause
from .case import Case, Hypothesis, change_steps
from .layers import last_layer, real_of
from .operands import Operand, is_layer, main_node, operands

_MUCH = {1: "one", 2: "two", 7: "seven", 8: "eight"}
_OF_CHANNELS: tuple[tuple[str, str, Callable[[np.ndarray], object]], ...] = (
    ("multiplier of channel 0 for all channels", "all channels use channel 0's multiplier", lambda s: s[0]),
    ("multiplier of the last channel for all channels", "all channels use the last one's", lambda s: s[-1]),
    ("largest multiplier for all channels", "all channels use the largest multiplier", lambda s: s.max()),
    ("smallest multiplier for all channels", "all channels use the smallest multiplier", lambda s: s.min()),
    ("mean multiplier for all channels", "all channels use the mean multiplier", lambda s: s.mean()),
    ("multipliers shifted by one channel", "channel c uses the multiplier of c - 1", lambda s: np.roll(s, 1)),
    ("multipliers shifted by one channel", "channel c uses the multiplier of c + 1", lambda s: np.roll(s, -1)),
    ("multipliers in reversed order", "the channels' multipliers are in reversed order", lambda s: s[::-1]),
)


def scales(case: Case) -> Iterator[Hypothesis]:
    """Every change of scales and of prepared multipliers."""
    found = operands(case)
    yield from _channels(found)
    yield from _powers(case, found)
    if last_layer(case.plan) is not None and not any(o.role in ("weight", "second input") for o in found):
        yield from _multipliers()
    yield from _mixed(found)
    yield from _narrow(found)
    for bits in (8, 15, 16, 23, 24):
        yield from _bits(bits)


def _channels(found: list[Operand]) -> Iterator[Hypothesis]:
    for operand in found:
        if operand.scales.size < 2:
            continue
        for name, text, change in _OF_CHANNELS:
            changed = np.broadcast_to(np.asarray(change(operand.scales), np.float32), operand.scales.shape)
            yield _scaled(operand, changed, name, text)


def _powers(case: Case, found: list[Operand]) -> Iterator[Hypothesis]:
    operator = find(main_node(case).operator)
    layer = is_layer(main_node(case)) or (operator is not None and "product" in operator.slots)
    for operand in found:
        if layer and operand.role not in ("weight", "first input"):
            continue
        what = "exponent" if layer else f"{operand.role} scale's exponent"
        for power in (1, -1, 2, -2, 7, 8, -7, -8):
            kind = f"{_MUCH[abs(power)]} too {'large' if power > 0 else 'small'}"
            with np.errstate(all="ignore"):
                changed = np.ldexp(operand.scales, power).astype(np.float32)
            yield _scaled(operand, changed, f"{what} {kind}", f"the {what} is {kind}")


def _multipliers() -> Iterator[Hypothesis]:
    """The same for layers whose multipliers follow from what is no scale of an operand."""
    for power in (1, -1, 2, -2, 7, 8, -7, -8):
        kind = f"{_MUCH[abs(power)]} too {'large' if power > 0 else 'small'}"
        yield _prepared(f"exponent {kind}", f"the exponent is {kind}", lambda real, p=power: np.ldexp(real, p))  # type: ignore[misc]
    for name, text, change in _OF_CHANNELS:
        yield _prepared(name, text, lambda real, c=change: real * 0 + c(real))  # type: ignore[misc]


def _prepared(name: str, text: str, change: Callable[[np.ndarray], np.ndarray]) -> Hypothesis:
    def changed(step: Step) -> Step | None:
        known = real_of(step)
        if known is None:
            return None
        arrays = rescale.RULES[step.rules["rescale"]].prepare(change(known.astype(np.float64)))
        return replace(step, arrays={**step.arrays, **arrays})

    def plan(old: Plan) -> Plan:
        layer = last_layer(old)
        return change_steps(old, lambda step: changed(step) if step is layer else None)

    return Hypothesis(Cause(name, f"{text}: a fault", "parameters", False), "multiplier", plan=plan)


def _mixed(found: list[Operand]) -> Iterator[Hypothesis]:
    single = [o for o in found if o.scales.size == 1 and o.role != "weight"]
    for i, one in enumerate(single):
        for two in single[i + 1 :]:
            if one.scales[0] == two.scales[0]:
                continue
            yield _swapped(one, two)
    for one in single:
        for two in single:
            if one is not two and one.scales[0] != two.scales[0]:
                name = f"{one.role} scale taken from the {two.role}"
                yield _scaled(one, two.scales, name, f"the {one.role} is taken to have the scale of the {two.role}")
    inputs, output = [o for o in single if o.role != "output"], [o for o in single if o.role == "output"]
    if len(inputs) > 1 and output:

        def graph(old: Graph) -> Graph:
            for operand in inputs:
                old = operand.set_scale(old, output[0].scales)
            return old

        text = "the inputs are not rescaled to the output's scale: a fault"
        yield Hypothesis(Cause("inputs not rescaled", text, "parameters", False), "scales", graph=graph)


def _swapped(one: Operand, two: Operand) -> Hypothesis:
    def graph(old: Graph) -> Graph:
        return two.set_scale(one.set_scale(old, two.scales), one.scales)

    name = f"{one.role} and {two.role} scales swapped"
    return Hypothesis(
        Cause(name, f"the scales of {one.role} and {two.role} are swapped: a fault", "parameters", False),
        "scales",
        graph=graph,
    )


def _narrow(found: list[Operand]) -> Iterator[Hypothesis]:
    for title, dtype in (("binary16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):

        def graph(old: Graph, dtype: Any = dtype) -> Graph:
            for operand in found:
                with np.errstate(all="ignore"):
                    old = operand.set_scale(old, operand.scales.astype(dtype).astype(np.float32))
            return old

        text = f"the scales are kept in {title}: a fault"
        yield Hypothesis(Cause(f"scales in {title}", text, "parameters", False), "scales", graph=graph)


def _bits(bits: int) -> Iterator[Hypothesis]:
    for kind, ends in (("truncated", False), ("rounded", True)):
        name = f"multiplier {kind} to {bits} bits"
        yield Hypothesis(
            Cause(name, f"the multiplier is {kind} to {bits} bits: a fault", "parameters", False),
            "multiplier",
            plan=lambda plan, ends=ends: _with_bits(plan, bits, ends),  # type: ignore[misc]
        )


def _with_bits(plan: Plan, bits: int, rounds: bool) -> Plan:
    def narrowed(array: np.ndarray) -> np.ndarray:
        fraction, exponent = np.frexp(array.astype(np.float64))
        steps = np.ldexp(fraction, bits)
        kept = np.floor(steps + 0.5) if rounds else np.trunc(steps)
        return np.ldexp(kept, exponent - bits).astype(array.dtype)

    def change(step: Step) -> Step | None:
        arrays = {k: narrowed(v) if "multiplier" in k or k in ("real", "factor") else v for k, v in step.arrays.items()}
        same = all(np.array_equal(arrays[k], step.arrays[k]) for k in arrays)
        return None if same else replace(step, arrays=arrays)

    return change_steps(plan, change)


def _scaled(operand: Operand, changed: np.ndarray, name: str, text: str) -> Hypothesis:
    return Hypothesis(
        Cause(name, f"{text}: a fault", "parameters", False),
        f"{operand.role} scale",
        graph=lambda graph: operand.set_scale(graph, changed),
    )
