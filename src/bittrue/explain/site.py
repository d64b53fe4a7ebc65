"""What an explanation starts from: one element of one tensor, the step that writes it, and the step's inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import InternalError
from ..graph import Quantization
from ..names import short
from ..operators import Step
from ..plan import Plan, PlanTensor
from .decimals import tie_distance
from .explanation import Line

Number = int | float | bool | complex


@dataclass(frozen=True, eq=False)
class Site:
    """One element and where it comes from.

    Attributes:
        plan: the plan.
        step: the step that writes the tensor.
        output: position of the tensor among the step's outputs.
        inputs: one array per input of the step, None where it is absent.
        element: index of the element.
        results: what the reference makes of the inputs, one array per output.
    """

    plan: Plan
    step: Step
    output: int
    inputs: tuple[np.ndarray | None, ...]
    element: tuple[int, ...]
    results: tuple[np.ndarray, ...]

    @property
    def tensor(self) -> PlanTensor:
        return self.plan.tensors[self.step.outputs[self.output]]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.results[self.output].shape

    @property
    def flat(self) -> int:
        """The element's position in memory."""
        return int(np.ravel_multi_index(self.element, self.shape)) if self.element else 0

    @property
    def stored(self) -> Any:
        """The stored value, as a NumPy scalar."""
        return self.results[self.output][self.element]

    def array(self, position: int) -> np.ndarray:
        """Input `position`, which is present."""
        array = self.inputs[position]
        if array is None:
            raise InternalError("BT-EXPLAIN", f"input {position} is absent", place=self.step.place)
        return array

    def has(self, position: int) -> bool:
        """Whether input `position` is present."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def source(self, position: int) -> PlanTensor:
        """The tensor of input `position`, which is present."""
        index = self.step.inputs[position]
        if index is None:
            raise InternalError("BT-EXPLAIN", f"input {position} is absent", place=self.step.place)
        return self.plan.tensors[index]

    def name(self, position: int) -> str:
        """The name of input `position`, as lines show it."""
        return shown_name(self.source(position).name)

    def at(self, element: tuple[int, ...]) -> Site:
        """The same step, another element."""
        return replace(self, element=element)

    def with_rules(self, rules: Mapping[str, str]) -> Site:
        """The same under other rules: those that hold for this element."""
        return replace(self, step=replace(self.step, rules=rules))


# Names of fused operators list everything that went into them.
_LONGEST_NAME = 44


def shown_name(name: str) -> str:
    """A tensor's name, the middle of long ones left out.

    >>> shown_name("x" * 50 + "y" * 50)
    'xxxxxxxxxxxxxxxxxxxxx…yyyyyyyyyyyyyyyyyyyyyy'
    """
    return short(name, _LONGEST_NAME)


def scale_of(quantization: Quantization | None, channel: int = 0) -> np.float32 | None:
    """The scale of a tensor, or that of one channel."""
    if quantization is None or not quantization.scales.size:
        return None
    return np.float32(quantization.scales[channel if channel < quantization.scales.size else 0])


@dataclass
class Work:
    """The lines and numbers of an explanation while it is being written."""

    lines: list[Line] = field(default_factory=list)
    numbers: dict[str, int | float] = field(default_factory=dict)

    def add(self, label: str, value: object, remark: str = "") -> None:
        """One more line."""
        self.lines.append(Line(label, str(value), remark))

    def extend(self, lines: list[Line]) -> None:
        """Several more."""
        self.lines.extend(lines)

    def exact(self, value: Fraction | None) -> None:
        """Keep the unrounded value, and how far it is from a tie."""
        if value is not None:
            self.numbers["exact"] = float(value)
            self.numbers["tie_distance"] = float(tie_distance(value))


def pick(arrays: Mapping[str, np.ndarray], channel: int) -> dict[str, np.ndarray]:
    """The prepared parameters of one channel, arrays without axes."""
    flat = {name: np.asarray(array).reshape(-1) for name, array in arrays.items()}
    return {name: a[channel if a.size > 1 else 0] for name, a in flat.items() if a.size == 1 or channel < a.size}
