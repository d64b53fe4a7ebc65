"""The Plan: a list of steps over numbered tensors, with every decision taken. Executors only interpret it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import BittrueError
from ..graph import DataType, Graph, Quantization, data_type
from ..names import brief
from ..numerics import Numerics
from ..operators import Step
from ..records import dataclass, field
from .inexact import inexact


@dataclass(frozen=True, eq=False)
class PlanTensor:
    """One buffer of the plan.

    Attributes:
        name: the graph's tensor name.
        dtype: short type name; sub-byte integers take one byte per element at run time.
        shape: inferred shape; of unknown and later tensors what the file declares, with -1 for free dimensions.
        kind: ``input``, ``constant`` (from the file), ``folded`` (computed at plan time), ``variable``,
            ``computed``, ``unknown`` (computed, its shape is only known then), ``later`` (computed by a later stage)
            or ``unused``.
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

    def __repr__(self) -> str:
        quantization = f", {self.quantization}" if self.quantization is not None else ""
        return f"PlanTensor({brief(self.name)}, {self.kind} {self.dtype}{list(self.shape)}{quantization})"

    @property
    def bytes(self) -> int:
        """Size at run time; 0 where only running tells."""
        return 0 if self.kind in ("unknown", "later") else math.prod(self.shape) * self.type.numpy.itemsize


@dataclass(frozen=True, eq=False)
class Source:
    """What a plan and all that it calls are planned from, to plan more while running and to derive a plan file anew.

    Attributes:
        numerics: the table that fills the slots.
        graphs: the graphs of the model file after the rewrites of `numerics`; the main graph alone when it needs no
            other one.
        memory_limit: as for `make_plan`.
        planner: plans it, with the notes that the plan shall carry; saving asks it what a plan file will be held to.
        main: index of the graph that was asked for.
        shapes: shapes of its inputs that were asked for, by tensor index.
    """

    numerics: Numerics
    graphs: tuple[Graph, ...]
    memory_limit: int
    planner: Callable[[Source, Sequence[str]], Plan]
    main: int = 0
    shapes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @cached_property
    def resources(self) -> dict[tuple[str, str], int]:
        """Number of every resource variable by container and name, in the order of the file."""
        names = (
            (str(node.attributes["container"]), str(node.attributes["shared_name"]))
            for graph in self.graphs
            for node in graph.nodes
            if "shared_name" in node.attributes and "container" in node.attributes
        )
        return {name: number for number, name in enumerate(dict.fromkeys(names))}

    def label(self, graph: int) -> str:
        """The graph's name, with its index when it shares the name with another one."""
        name = self.graphs[graph].name
        return name if self._names[name] == 1 else f"{name}#{graph}"

    @cached_property
    def _names(self) -> Counter[str]:
        return Counter(graph.name for graph in self.graphs)


@dataclass(frozen=True, eq=False)
class Nested:
    """A graph that a step calls, planned for the shapes that the step gives it; others are planned when they come.

    Attributes:
        graph: index of the graph in the file.
        plan: its inputs are those whose values the planner did not know.
    """

    graph: int
    plan: Plan


@dataclass(frozen=True, eq=False)
class Later:
    """The rest of a graph, which can only be planned when the plan before it has run.

    Attributes:
        graph: the nodes that remain; its inputs are the outputs of the plan before it.
        reason: why planning stopped there, for people.
        error: the first node does not fit the shapes at hand: running it raises this.
    """

    graph: Graph
    reason: str
    error: BittrueError | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything an executor needs.

    Attributes:
        name: name of the graph.
        numerics: name of the numerics that filled the slots.
        reproduces: the runtime that this numerics stands for.
        tensors: all buffers, by index.
        steps: in execution order.
        inputs, outputs: tensor indices. With a later stage, the outputs are what that stage needs.
        aliases: further input and output names to tensor index.
        folded: tensors computed at plan time, in execution order, and constants that are outputs: for traces.
        arena: bytes of the activation arena.
        memory: bytes of activations and temporaries that a run needs.
        notes: what the reader accepted and what the planner did.
        scope: put before the names of tensors in traces, to tell the graphs of a file apart; empty for the main graph.
        nested: the graphs that steps call, by number.
        later: what follows once this plan has run; None when nothing does.
        source: what it was planned from, shared with nested plans and later stages; None for plans made by hand.
        execution: how the session at hand runs it (executor, passes, steps that fall back); not saved.
        folded_inexact: operators computed at plan time whose results may differ from the runtime's; not saved.
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
    memory: int = 0
    notes: tuple[str, ...] = ()
    scope: str = ""
    nested: tuple[Nested, ...] = ()
    later: Later | None = None
    source: Source | None = None
    execution: tuple[str, ...] = ()
    folded_inexact: tuple[str, ...] = ()

    @property
    def results(self) -> tuple[int, ...]:
        """Tensor indices of what a whole run returns, later stages included."""
        return self.outputs if self.later is None else self.later.graph.outputs

    @property
    def work(self) -> int:
        """Multiply-accumulates (or elements, for steps that have none) of one run."""
        return sum(step.work for step in self.steps)

    @cached_property
    def inexact(self) -> tuple[str, ...]:
        """The operators, one entry per node, whose results may differ from the runtime's in bits, as the numerics says.

        Those of called graphs are among them, and those of later stages that may get such a row.
        """
        return inexact(self)

    def to_dict(self, constants: bool = False) -> dict[str, Any]:
        """The plan as plain data, with the members of a plan file; arrays as type, shape, SHA-256 and values.

        Args:
            constants: the values of weights and other constants, too.
        """
        from .description import InlineArrays, plan_entry

        return plan_entry(self, InlineArrays(constants))

    def save(self, path: object) -> None:
        """Write the plan to `path`; `bittrue.load_plan` reads it back."""
        from .saving import save_plan

        save_plan(self, path)

    def __repr__(self) -> str:
        later = ", and a later stage" if self.later is not None else ""
        return (
            f"Plan({brief(self.name)} under '{self.numerics}', {len(self.steps):,} steps{later}, "
            f"{len(self.tensors):,} tensors, {self.memory:,} bytes of activations)"
        )

    def __str__(self) -> str:
        from .text import plan_text

        return plan_text(self)
