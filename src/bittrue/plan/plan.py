"""The Plan: a list of steps over numbered tensors, with every decision taken. Executors only interpret it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..graph import DataType, Quantization, data_type
from ..operators import Step


@dataclass(frozen=True, eq=False)
class PlanTensor:
    """One buffer of the plan.

    Attributes:
        name: the graph's tensor name.
        dtype: short type name; sub-byte integers take one byte per element at run time.
        shape: inferred shape.
        kind: ``input``, ``constant`` (from the file), ``folded`` (computed at plan time), ``variable``,
            ``computed`` or ``unused``.
        quantization: for people and for quantizing inputs; steps hold what executors need.
        value: content of constants and folded tensors.
        offset: byte offset in the arena for computed tensors and inputs; -1 for the others.
        first, last: positions of the first and last step that touch it (-1: before the first step).
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    kind: str
    quantization: Quantization | None = None
    value: np.ndarray | None = None
    offset: int = -1
    first: int = -1
    last: int = -1

    @property
    def type(self) -> DataType:
        return data_type(self.dtype)

    @property
    def bytes(self) -> int:
        """Size at run time."""
        return math.prod(self.shape) * self.type.numpy.itemsize


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything an executor needs.

    Attributes:
        name: name of the graph.
        numerics: name of the numerics that filled the slots.
        reproduces: the runtime that this numerics stands for.
        tensors: all buffers, by index.
        steps: in execution order.
        inputs, outputs: tensor indices.
        aliases: further input and output names to tensor index.
        folded: tensors computed at plan time, in execution order.
        arena: bytes of the activation arena.
        notes: what the reader accepted and what the planner did.
        execution: how the session at hand runs it (executor, passes, steps that fall back); not saved.
    """

    name: str
    numerics: str
    reproduces: str
    tensors: tuple[PlanTensor, ...]
    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    aliases: Mapping[str, int] = field(default_factory=dict)
    folded: tuple[int, ...] = ()
    arena: int = 0
    notes: tuple[str, ...] = ()
    execution: tuple[str, ...] = ()

    @property
    def work(self) -> int:
        """Multiply-accumulates (or elements, for steps that have none) of one run."""
        return sum(step.work for step in self.steps)

    def save(self, path: object) -> None:
        """Write the plan to `path`; `bittrue.load_plan` reads it back."""
        from .file import save_plan

        save_plan(self, path)

    def __str__(self) -> str:
        from .text import plan_text

        return plan_text(self)
