"""A plan as an executor with its own memory carries it out: rewritten steps, and tensors that live inside others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import ModelFormatError
from ..operators import Step
from ..records import dataclass, field
from .layout import Lifetime, layout
from .plan import Plan


def check_reads(plan: Plan) -> None:
    """Every tensor that a step reads is an input, a value, a variable, or the result of an earlier step.

    Planning makes it so; plans that were changed in memory need not be like that.

    Raises:
        ModelFormatError: a step, or the caller who wants the results, would read what nothing has written.
    """
    ready = set(plan.inputs)
    for index, tensor in enumerate(plan.tensors):
        if tensor.kind == "variable":
            ready.add(index)
        elif tensor.value is not None:
            if tensor.value.shape != tensor.shape or tensor.value.dtype != tensor.type.numpy:
                raise ModelFormatError("BT-PLAN-STEP", "the value has another type or shape", place=f"'{tensor.name}'")
            ready.add(index)
    for place, inputs, outputs in (
        *((step.place, step.inputs, step.outputs) for step in plan.steps),
        ("outputs", plan.outputs, ()),
    ):
        for operand in inputs:
            if operand is not None and operand not in ready:
                name = plan.tensors[operand].name
                raise ModelFormatError("BT-PLAN-STEP", f"'{name}' is read, but nothing has written it", place=place)
        ready.update(outputs)


@dataclass(frozen=True)
class Part:
    """Where a tensor lives inside another one.

    Attributes:
        root: the tensor that owns the memory.
        offset: bytes from the root's beginning.
        row_stride: bytes from one row of the last axis to the next.
    """

    root: int
    offset: int
    row_stride: int


@dataclass(frozen=True, eq=False)
class Then:
    """An addition that is done inside of the step before it, whose last input is what is added.

    Attributes:
        step: the addition.
        result: which of its operands the step before it computes; it has no memory any more.
    """

    step: Step
    result: int


@dataclass(frozen=True, eq=False)
class Schedule:
    """What to run, after passes that never change a bit.

    Attributes:
        plan: where it came from.
        steps: in execution order; `Step.index` still names the node of the graph.
        parts: tensors without memory of their own.
        then: first output of a step to what is done inside of it as well.
        notes: what each pass did, for people.
    """

    plan: Plan
    steps: tuple[Step, ...]
    parts: Mapping[int, Part] = field(default_factory=dict)
    then: Mapping[int, Then] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def root(self, index: int) -> int:
        """The tensor whose memory holds tensor `index`."""
        return self.parts[index].root if index in self.parts else index

    def offsets(self, keep: Sequence[int] = ()) -> tuple[dict[int, int], int]:
        """Byte offset of every input and computed tensor that the steps use, and the size of the arena.

        `keep` lists tensors that stay readable until the end of the run, besides the outputs.
        """
        first: dict[int, int] = {}
        last: dict[int, int] = {}

        def touch(index: int, position: int) -> None:
            root = self.root(index)
            first[root] = min(first.get(root, position), position)
            last[root] = max(last.get(root, position), position)

        for index in self.plan.inputs:
            touch(index, -1)
        for position, step in enumerate(self.steps):
            for operand in (*step.inputs, *step.outputs):
                if operand is not None:
                    touch(operand, position)
        for index in (*self.plan.outputs, *keep):
            touch(index, len(self.steps))
        tensors = self.plan.tensors
        placed = [index for index in first if tensors[index].kind in ("input", "computed")]
        places, arena = layout([Lifetime(tensors[i].bytes, first[i], last[i]) for i in placed])
        offsets = dict(zip(placed, places, strict=True))
        for index, part in self.parts.items():
            if part.root in offsets:
                offsets[index] = offsets[part.root] + part.offset
        return offsets, arena
