"""The side whose graph cuts a comparison into parts that run alone, and what is known of its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, partial

import numpy as np

from ..api import Session
from ..errors import InvalidModelError
from ..graph import Graph, Node, Quantization
from ..numerics import Numerics
from ..numerics import find as find_numerics
from ..plan import Plan, make_plan
from ..runners.base import Runner
from ..runners.ours import Ours
from .segments import Segment, segments


class Host:
    """A side with a model and an arithmetic, planned for the shapes of one run.

    Attributes:
        runner: that side.
        numerics: its arithmetic; that which goes on where the usual one refuses shifts without a meaning.
        graph: after the numerics' rewrites.
        plan: of that graph.
        reproduces: it is bittrue's own arithmetic, so there is nothing to prove.

    Raises:
        BittrueError: the model cannot be planned under this numerics.
    """

    def __init__(self, runner: Runner, shapes: Mapping[str, tuple[int, ...]]) -> None:
        assert runner.model is not None
        assert runner.arithmetic is not None
        self.runner = runner
        self.numerics: Numerics = runner.arithmetic
        model = runner.model
        self.reproduces = isinstance(runner, Ours)
        if isinstance(runner, Ours):
            self.plan: Plan = runner.session(dict(shapes)).plan
        else:
            planned = partial(make_plan, model.graph, shapes=shapes, graphs=model.graphs)
            try:
                self.plan = planned(numerics=self.numerics)
            except InvalidModelError as error:
                # The runtime did run it.
                if error.code != "BT-MULTIPLIER" or not self.numerics.goes_on:
                    raise
                self.numerics = find_numerics(self.numerics.goes_on)
                self.plan = planned(numerics=self.numerics)
        assert self.plan.source is not None
        self.graph: Graph = self.plan.source.graphs[self.plan.source.main]

    @cached_property
    def producers(self) -> dict[str, Node]:
        """Tensor name to the node that computes it."""
        return {self.graph.tensors[index].name: node for node in self.graph.nodes for index in node.outputs}

    @property
    def outputs(self) -> set[str]:
        """Names of the model's outputs."""
        return {self.graph.tensors[index].name for index in self.graph.outputs}

    def segments(self, shown: Iterable[str]) -> dict[str, Segment]:
        """What computes each shown tensor from the nearest shown ones, by name, in execution order."""
        return {part.name: part for part in segments(self.graph, self.plan, self.numerics, shown)}

    def session(self) -> Session:
        """The whole plan, ready to run."""
        return Session(self.plan)


def can_host(runner: Runner) -> bool:
    """Whether a side's graph and arithmetic are known."""
    return runner.model is not None and runner.arithmetic is not None


def known_parameters(graph: Graph) -> dict[str, Quantization]:
    """Scales and zero points that the file gives as operands and not with its tensors, by tensor name.

    Operands of such nodes are triples (tensor, scale, zero point); a pair (scale, zero point) that is left over belongs
    to the result.
    """
    found: dict[str, Quantization] = {}
    for node in graph.nodes:
        position, inputs = 0, node.inputs
        while position < len(inputs):
            index = inputs[position]
            triple = None if index is None else _parameters(graph, inputs[position + 1 : position + 3])
            if index is not None and triple is not None and graph.tensors[index].dtype[0] in "su":
                found.setdefault(graph.tensors[index].name, triple)
                position += 3
                continue
            pair = _parameters(graph, inputs[position : position + 2])
            if pair is not None and len(node.outputs) == 1 and graph.tensors[node.outputs[0]].dtype[0] in "su":
                found.setdefault(graph.tensors[node.outputs[0]].name, pair)
                position += 2
                continue
            position += 1
    return found


def _parameters(graph: Graph, pair: tuple[int | None, ...]) -> Quantization | None:
    """Per-tensor parameters, where two operands are a constant scale and a constant zero point."""
    if len(pair) != 2 or pair[0] is None or pair[1] is None:
        return None
    scale, zero_point = graph.tensors[pair[0]], graph.tensors[pair[1]]
    if not (scale.is_constant and zero_point.is_constant) or scale.dtype != "f32" or zero_point.dtype[0] not in "su":
        return None
    scales, zero_points = scale.values().reshape(-1), zero_point.values().reshape(-1)
    if scales.size != 1 or zero_points.size != 1 or not np.isfinite(scales).all() or scales[0] <= 0:
        return None
    return Quantization(scales.astype(np.float32), zero_points.astype(np.int64))
