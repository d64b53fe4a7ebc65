"""Pass `channels_last`: images with channels first are worked on with channels last, as native layers have them.

Convolutions and pools over [N, C, H, W] become the steps of [N, H, W, C] that every executor has; element-wise steps
between them follow, so that an image changes its layout where it enters such a stretch and where it leaves it, and
nowhere inside. [N, C, W] is taken as [N, C, 1, W], and [N, C, D, H, W] becomes [N, D, H, W, C]. Constants are turned
when the schedule is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..operators import Step, find
from ..records import dataclass, replace
from .plan import PlanTensor
from .schedule import Schedule


def to_last(rank: int) -> tuple[int, ...]:
    """Axes of channels-first images, at least four of them, in the order of channels-last ones."""
    return (0, *range(2, max(4, rank)), 1)


def to_first(rank: int) -> tuple[int, ...]:
    """Axes of channels-last images in the order of channels-first ones."""
    return (0, max(4, rank) - 1, *range(1, max(4, rank) - 1))


class Layout:
    """A schedule while it is rewritten.

    Attributes:
        tensors: the plan's, and those that are added.
        steps: what has been rewritten so far.
        readers: operators that read each tensor of the plan; the empty name stands for the caller.
        known: operators that may be rewritten, and whether only images of 8-bit integers are.
        rewritten, turned: how many steps were rewritten, and how many tensors change their layout.
    """

    def __init__(self, schedule: Schedule, known: Mapping[str, bool]) -> None:
        plan = schedule.plan
        self.known = known
        self.tensors: list[PlanTensor] = list(plan.tensors)
        self.steps: list[Step] = []
        self.turned = 0
        self.rewritten = 0
        # The twin [N, H, W, C] of a tensor; and tensors of which there is only the twin so far.
        self._twins: dict[int, int] = {}
        self._only_twin: set[int] = set()
        self.readers: dict[int, list[str]] = {index: [""] for index in plan.outputs}
        for step in schedule.steps:
            for index in step.inputs:
                if index is not None:
                    self.readers.setdefault(index, []).append(step.operator)

    # -- tensors -----------------------------------------------------------------------------------------------------
    def shape(self, index: int) -> tuple[int, ...]:
        """Dimensions of a tensor, channels first."""
        return self.tensors[index].shape

    def is_image(self, index: int) -> bool:
        """Whether a tensor can have a twin."""
        tensor = self.tensors[index]
        return len(tensor.shape) in (3, 4, 5) and tensor.kind in ("input", "computed", "constant", "folded")

    def value(self, index: int) -> np.ndarray | None:
        """The tensor's content where it is known."""
        return self.tensors[index].value

    def goes_on(self, index: int) -> bool:
        """Whether a reader of a tensor may be rewritten."""
        small = self.tensors[index].type.numpy.itemsize == 1
        return any(small or not self.known[reader] for reader in self.readers.get(index, []) if reader in self.known)

    def only_twin(self, index: int | None) -> bool:
        """Whether a tensor exists with its channels last only."""
        return index is not None and index in self._only_twin

    def constant(self, name: str, value: np.ndarray, dtype: str) -> int:
        """A new constant."""
        return self._add(PlanTensor(name, dtype, value.shape, "folded", None, np.ascontiguousarray(value)))

    def produce(self, index: int) -> int:
        """A new tensor: the twin of `index`, which the step that is being rewritten computes."""
        tensor = self.tensors[index]
        twin = self._add(
            PlanTensor(f"{tensor.name} (channels last)", tensor.dtype, last_shape(tensor.shape), "computed")
        )
        self.name(index, twin)
        return twin

    def name(self, index: int, twin: int) -> None:
        """`twin` holds tensor `index`, which need not be computed itself until someone asks for it."""
        self._twins[index] = twin
        self._only_twin.add(index)

    def last(self, index: int, step: Step) -> int:
        """The twin of a tensor, made for `step` where there is none yet."""
        if index in self._twins:
            return self._twins[index]
        tensor = self.tensors[index]
        shape = last_shape(tensor.shape)
        name = f"{tensor.name} (channels last)"
        if tensor.value is not None:
            turned = _image(tensor.value).transpose(to_last(len(tensor.shape)))
            twin = self._add(replace(tensor, name=name, shape=shape, value=np.ascontiguousarray(turned)))
        else:
            twin = self._add(PlanTensor(name, tensor.dtype, shape, "computed"))
            self._turn(index, _image_shape(tensor.shape), to_last(len(tensor.shape)), twin, step)
        self._twins[index] = twin
        return twin

    def first(self, index: int, step: Step) -> None:
        """Makes sure that a tensor itself exists before `step`."""
        if index not in self._only_twin:
            return
        self._only_twin.remove(index)
        twin = self._twins[index]
        shape = self.tensors[twin].shape
        self._turn(twin, shape, to_first(len(shape)), index, step)

    def _add(self, tensor: PlanTensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    # -- steps -------------------------------------------------------------------------------------------------------
    def emit(self, step: Step) -> None:
        """Adds a step whose operands all exist."""
        self.steps.append(step)

    def keep(self, step: Step) -> None:
        """Adds a step as it is."""
        for index in step.inputs:
            if index is not None:
                self.first(index, step)
        self.steps.append(step)

    def move(self, source: int, target: int, step: Step) -> None:
        """`target` holds the elements of `source` in the same order."""
        self.steps.append(_helper(step, "reshape", source, target, {"shape": self.tensors[target].shape}))

    def turn(self, source: int, axes: Sequence[int], target: int, step: Step) -> None:
        """`target` is `source` with its axes in another order."""
        self._turn(source, self.tensors[source].shape, axes, target, step)

    def _turn(self, source: int, shape: Sequence[int], axes: Sequence[int], target: int, step: Step) -> None:
        """`source` seen as `shape`, its axes in another order, becomes `target`."""
        if keeps_order(shape, axes):
            self.move(source, target, step)
            return
        self.turned += 1
        turned = tuple(shape[axis] for axis in axes)
        dtype = self.tensors[source].dtype
        if self.tensors[source].shape != tuple(shape):
            seen = self._add(PlanTensor(f"{self.tensors[source].name} (image)", dtype, tuple(shape), "computed"))
            self.move(source, seen, step)
            source = seen
        result = target
        if self.tensors[target].shape != turned:
            result = self._add(PlanTensor(f"{self.tensors[target].name} (image)", dtype, turned, "computed"))
        self.steps.append(_helper(step, "transpose", source, result, {"permutation": tuple(axes)}))
        if result != target:
            self.move(result, target, step)


def _helper(step: Step, operator: str, source: int, target: int, parameters: Mapping[str, Any]) -> Step:
    return Step(step.index, operator, operator.upper(), (source,), (target,), {}, parameters, {})


def keeps_order(shape: Sequence[int], axes: Sequence[int]) -> bool:
    """Whether elements stay in order when axes are exchanged: those longer than 1 do."""
    moved = [axis for axis in axes if shape[axis] != 1]
    return moved == sorted(moved) or 0 in shape


def _image_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """[N, C, W] as [N, C, 1, W]."""
    return (*shape[:2], 1, shape[2]) if len(shape) == 3 else tuple(shape)


def _image(value: np.ndarray) -> np.ndarray:
    return value.reshape(_image_shape(value.shape))


def last_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of an image's twin."""
    image = _image_shape(shape)
    return tuple(image[axis] for axis in to_last(len(image)))


def last_axis_of(axis: int, rank: int) -> int:
    """Where an axis of an image lies in its twin."""
    return to_last(rank).index(axis + 1 if rank == 3 and axis == 2 else axis)


# Rewrites a step and returns True, or leaves everything alone and returns False.
Handler = Callable[[Step, Layout], bool]


@dataclass(frozen=True)
class Rewrite:
    """How an operator is done with channels last.

    Attributes:
        handler: rewrites a step, or says that it cannot.
        eight_bits: whether it can for images of 8-bit integers only.
    """

    handler: Handler
    eight_bits: bool = False


def _follow(step: Step, layout: Layout) -> bool:
    """An element-wise step on images: done with channels last when one of its operands is there."""
    operator = find(step.operator)
    if operator is None or step.parameters.get("late"):
        return False
    data = range(min(operator.elementwise, len(step.inputs)))
    operands = [step.inputs[position] for position in data]
    images = [index for index in operands if index is not None]
    target = step.outputs[0]
    if not any(layout.only_twin(index) for index in images) or not layout.is_image(target):
        return False
    rank = len(layout.shape(target))
    # What depends on places in memory stays where it is.
    tails = any(slot.endswith("_tail") for slot in step.rules)
    if tails or "lanes" in step.rules or step.parameters.get("block_size", 0) or step.parameters.get("by_row"):
        return False
    # Arrays that lie along the image's axes as they are.
    if any(array.ndim > 1 for array in step.arrays.values()):
        return False
    for index in images:
        single = math.prod(layout.shape(index)) == 1
        if not single and not (layout.is_image(index) and len(layout.shape(index)) == rank):
            value = layout.value(index)
            if value is None or value.ndim > rank:
                return False
    wider = layout.tensors[target].type.numpy.itemsize > layout.tensors[images[0]].type.numpy.itemsize
    if wider and not layout.goes_on(target):
        # Fewer bytes change their layout before it.
        return False
    inputs: list[int | None] = list(step.inputs)
    for position, operand in zip(data, operands, strict=True):
        if operand is None:
            continue
        if len(layout.shape(operand)) == rank:
            inputs[position] = layout.last(operand, step)
        elif math.prod(layout.shape(operand)) > 1:
            value = layout.value(operand)
            assert value is not None, "looked at above"
            spread = value.reshape((1,) * (rank - value.ndim) + value.shape)
            turned = _image(spread).transpose(to_last(rank))
            inputs[position] = layout.constant(
                f"{layout.tensors[operand].name} (channels last)", turned, layout.tensors[operand].dtype
            )
    parameters: dict[str, Any] = dict(step.parameters)
    if parameters.get("axis", -1) >= 0:
        parameters["axis"] = last_axis_of(parameters["axis"], rank)
    for key in ("shape", "output_shape"):
        if key in parameters:
            parameters[key] = last_shape(layout.shape(target))
    layout.emit(replace(step, inputs=tuple(inputs), outputs=(layout.produce(target),), parameters=parameters))
    return True


def _transpose(step: Step, layout: Layout) -> bool:
    source, target, order = step.inputs[0], step.outputs[0], tuple(step["permutation"])
    if source is None or len(order) not in (4, 5) or not layout.is_image(source):
        return False
    if not layout.only_twin(source):
        # A channels-last image that the model turns: nothing need be done until someone asks for the result.
        if tuple(order[axis] for axis in to_last(len(order))) == tuple(range(len(order))) and layout.is_image(target):
            layout.name(target, source)
            layout.rewritten += 1
            return True
        return False
    twin = layout.last(source, step)
    # Both orders at once.
    first = to_first(len(order))
    layout.turn(twin, tuple(first[axis] for axis in order), target, step)
    return True


def _reshape(step: Step, layout: Layout) -> bool:
    source = step.inputs[0]
    if source is None or not layout.only_twin(source):
        return False
    twin = layout.last(source, step)
    if not keeps_order(layout.shape(twin), to_first(len(layout.shape(twin)))):
        return False
    layout.emit(replace(step, inputs=(twin,)))
    return True


def _concatenation(step: Step, layout: Layout) -> bool:
    target = step.outputs[0]
    inputs = [index for index in step.inputs if index is not None]
    if step.parameters.get("late"):
        return False
    if not any(layout.only_twin(index) for index in inputs) or not layout.is_image(target):
        return False
    rank = len(layout.shape(target))
    if any(not layout.is_image(i) or len(layout.shape(i)) != rank for i in inputs) or len(inputs) < len(step.inputs):
        return False
    axis = last_axis_of(step["axis"], rank)
    twins = tuple(layout.last(index, step) for index in inputs)
    parameters = {**step.parameters, "axis": axis}
    layout.emit(replace(step, inputs=twins, outputs=(layout.produce(target),), parameters=parameters))
    return True


# By `Operator.layout`, apart from those of layers.
MOVEMENT: dict[str, Rewrite] = {"permutation": Rewrite(_transpose), "axis": Rewrite(_concatenation)}


def _rewrite_of(stem: str, known: Mapping[str, Rewrite]) -> Rewrite | None:
    operator = find(stem)
    if operator is None or operator.layout:
        return None if operator is None else known[operator.layout]
    if operator.keeps_order:
        return Rewrite(_reshape)
    return Rewrite(_follow) if operator.elementwise else None


def rewritten(schedule: Schedule, layers: Mapping[str, Rewrite]) -> Schedule:
    """The pass; `layers` are rewrites by `Operator.layout` besides those of this file."""
    known = {**layers, **MOVEMENT}
    found = {stem: _rewrite_of(stem, known) for stem in {step.operator for step in schedule.steps}}
    rewrites = {stem: rewrite for stem, rewrite in found.items() if rewrite is not None}
    layout = Layout(schedule, {stem: rewrite.eight_bits for stem, rewrite in rewrites.items()})
    for step in schedule.steps:
        rewrite = rewrites.get(step.operator)
        if rewrite is not None and rewrite.handler(step, layout):
            layout.rewritten += 1
        else:
            layout.keep(step)
    if not layout.rewritten:
        return schedule
    for index in schedule.plan.outputs:
        layout.first(index, schedule.steps[-1])
    note = f"channels last: {layout.rewritten} steps rewritten, {layout.turned} tensors turned"
    plan = replace(schedule.plan, tensors=tuple(layout.tensors))
    return replace(schedule, plan=plan, steps=tuple(layout.steps), notes=(*schedule.notes, note))
