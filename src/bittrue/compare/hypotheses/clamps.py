"""Faults of clamps: activations ignored or mixed up, ends off by one, before the zero point, wrapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...graph import data_type
from ...operators import Step
from ...plan import Plan
from ..result import Cause
from .case import Case, Hypothesis, change_writer, with_parameters
from .layers import Layer, scales_of

Ends = Callable[["_Clamp"], "tuple[int, int]"]


class _Clamp:
    """The clamp of a step: its ends, the type's, the zero point, and how many steps a real number is."""

    def __init__(self, plan: Plan, step: Step) -> None:
        tensor = plan.tensors[step.outputs[0]]
        kind = data_type(tensor.dtype)
        self.low, self.high = int(step["low"]), int(step["high"])
        self.minimum, self.maximum = kind.minimum, kind.maximum
        scales, quantization = scales_of(plan, step, "output"), tensor.quantization
        self.zero_point = 0 if quantization is None else int(quantization.zero_points[0])
        if quantization is None and "output_zero_point" in step.parameters:
            self.zero_point = int(step["output_zero_point"])
        self.scale = 1.0 if scales is None else float(scales[0])

    def at(self, real: float) -> int:
        return self.inside(self.zero_point + int(np.floor(real / self.scale + 0.5)))

    def inside(self, code: int) -> int:
        return min(max(code, self.minimum), self.maximum)


def clamps(case: Case) -> Iterator[Hypothesis]:
    """Other ends of the clamp of the step that writes the tensor."""
    step = case.step
    if not {"low", "high"} <= set(step.parameters) or case.theirs[0].dtype.kind not in "iu":
        return
    clamp = _Clamp(case.plan, step)
    by_ends: dict[tuple[int, int], list[Cause]] = {}
    for name, text, ends in _ends(clamp, case.segment.node.attributes.get("activation", "none") != "none"):
        found = ends(clamp)
        if found != (clamp.low, clamp.high) and found[0] <= found[1]:
            by_ends.setdefault(found, []).append(_cause(name, text))
    if case.segment.node.attributes.get("activation") == "relu6" and clamp.high < clamp.maximum:
        text = "relu6 is taken for relu, other activations with an upper end are applied"
        by_ends.setdefault((clamp.low, clamp.maximum), []).append(_cause("relu6 taken for relu", text))
    for found, causes in by_ends.items():
        yield _ended(found, causes)
    yield from _wraps()
    yield from _wraps_first(clamp)


def _ends(clamp: _Clamp, fused: bool) -> Iterator[tuple[str, str, Ends]]:
    bounded = (clamp.low, clamp.high) != (clamp.minimum, clamp.maximum)
    if bounded:
        yield "fused activation ignored", "the fused activation is ignored", lambda c: (c.minimum, c.maximum)
    if clamp.high < clamp.maximum:
        yield "upper end of the activation ignored", "only the lower end is applied", lambda c: (c.low, c.maximum)
    if clamp.low > clamp.minimum:
        yield "lower end of the activation ignored", "only the upper end is applied", lambda c: (c.minimum, c.high)
    yield "relu taken for relu6", "relu6 is applied instead", lambda c: (c.inside(c.zero_point), c.at(6.0))
    yield "relu applied", "relu is applied although none is asked for", lambda c: (c.inside(c.zero_point), c.maximum)
    yield (
        "clamp before the zero point",
        "the clamp is applied before the zero point is added",
        lambda c: (c.inside(c.low + c.zero_point), c.inside(c.high + c.zero_point)),
    )
    # An activation that reaches the ends of the type may be applied wrongly all the same.
    if fused or bounded:
        yield (
            "clamp at quantized value 0",
            "the lower end is quantized value 0 instead of the zero point",
            lambda c: (0, c.high),
        )
        yield (
            "clamp of another zero point",
            "the ends lie as if the zero point were 0",
            lambda c: (
                c.inside(c.low - c.zero_point),
                c.inside(c.high - c.zero_point) if c.high < c.maximum else c.maximum,
            ),
        )
    yield (
        "saturates to [-127, 127]",
        "the lowest quantized value is never used",
        lambda c: (max(c.low, c.minimum + 1), c.high),
    )
    yield (
        "saturates to 7 bits",
        "values saturate to half of the range",
        lambda c: (
            max(c.low, (c.minimum + 1) // 2 if c.minimum < 0 else 0),
            min(c.high, c.maximum // 2),
        ),
    )
    if clamp.high < clamp.maximum:
        text = "the upper end of the activation is one too small"
        yield "upper end of the activation one too low", text, lambda c: (c.low, c.high - 1)
        text = "the upper end of the activation is one too large"
        yield "upper end of the activation one too high", text, lambda c: (c.low, c.high + 1)
    if clamp.low > clamp.minimum:
        text = "the lower end of the activation is one too small"
        yield "lower end of the activation one too low", text, lambda c: (c.low - 1, c.high)
        text = "the lower end of the activation is one too large"
        yield "lower end of the activation one too high", text, lambda c: (c.low + 1, c.high)
    yield "clamp one too low", "the upper end is one too small", lambda c: (c.low, c.high - 1)
    yield "clamp one too high", "the lower end is one too large", lambda c: (c.low + 1, c.high)
    yield "clamp one too low", "the lower end is one too small", lambda c: (max(c.low - 1, c.minimum), c.high)
    yield "clamp one too high", "the upper end is one too large", lambda c: (c.low, min(c.high + 1, c.maximum))


def _ended(ends: tuple[int, int], causes: list[Cause]) -> Hypothesis:
    return Hypothesis(
        causes[0],
        "clamp",
        plan=lambda plan: change_last(plan, low=ends[0], high=ends[1]),
        aliases=tuple(causes[1:]),
    )


def change_last(plan: Plan, **parameters: Any) -> Plan:
    """The step that writes the plan's output with other parameters."""
    return change_writer(plan, lambda step: with_parameters(step, **parameters))


def _wraps() -> Iterator[Hypothesis]:
    def wrapped(layer: Layer, acc: np.ndarray) -> np.ndarray:
        found = layer.rescaled(acc)
        if found.dtype.kind != "i":
            raise ValueError("rounded behind the zero point")
        return (found + int(layer.step["output_zero_point"])).astype(layer.dtype)

    text = "what leaves the type wraps around instead of saturating"
    yield Hypothesis(_cause("wraps instead of saturating", text), "clamp", layer={"end": wrapped})
    yield Hypothesis(
        _cause("wraps instead of saturating", text),
        "clamp",
        plan=lambda plan: change_last(plan, low=-(2**31), high=2**31 - 1),
        reference=True,
    )

    def before_sum(layer: Layer, acc: np.ndarray) -> np.ndarray:
        kind = np.iinfo(layer.dtype)
        point = int(layer.step["output_zero_point"])
        found = np.clip(layer.rescaled(acc), kind.min, kind.max) + point
        return np.clip(found, int(layer.step["low"]), int(layer.step["high"])).astype(layer.dtype)

    text = "the rescaled value saturates to the type before the zero point is added"
    yield Hypothesis(_cause("clamp before the zero point", text), "clamp", layer={"end": before_sum})


def _wraps_first(clamp: _Clamp) -> Iterator[Hypothesis]:
    """Cut to the type's bits, and clamped when it is too late."""
    cause = _cause("wraps before the clamp", "what leaves the type wraps around before the clamp of the activation")

    def wrapped(layer: Layer, acc: np.ndarray) -> np.ndarray:
        found = layer.rescaled(acc)
        if found.dtype.kind != "i":
            raise ValueError("rounded behind the zero point")
        return clamped((found + int(layer.step["output_zero_point"])).astype(layer.dtype))

    def clamped(values: np.ndarray) -> np.ndarray:
        return np.clip(values.astype(np.int64), clamp.low, clamp.high).astype(values.dtype)

    yield Hypothesis(cause, "clamp", layer={"end": wrapped})
    yield Hypothesis(
        cause,
        "clamp",
        plan=lambda plan: change_last(plan, low=-(2**31), high=2**31 - 1),
        reference=True,
        result=lambda values, _: clamped(values),
    )


def _cause(name: str, text: str) -> Cause:
    return Cause(name, f"{text}: a fault", "range", False)
