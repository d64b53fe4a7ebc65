"""The other side's own graph and arithmetic, put to the test on its own values.

Where both sides run the same file, they explain the other side's bits: what differs is which operators compute them,
and no parameter can be wrong. Where it is another file, this holds for operators without weights whose tensors have
the same scales and zero points. What the other side's steps are planned with is the first thing to try in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..errors import BittrueError
from ..graph import Quantization
from ..runners.base import Runner
from ..runners.recording import Recording
from .files import same_file
from .host import Host, can_host
from .result import Cause, Statistics, Verdict
from .segments import Segment

# Constants with more elements than this are weights and no shapes.
_FEW = 8


class OtherGraph:
    """The other side's graph, which differs from the host's though it stands for the same network.

    Args:
        host: the side whose graph cuts the comparison.
        runner, recordings: the other side, and its runs.
        label: ``"A"`` or ``"B"``: the other side.
        partners: names of the host's tensors that both sides show, to those of the other side.
    """

    def __init__(
        self, host: Host, runner: Runner, recordings: Sequence[Recording], label: str, partners: Mapping[str, str]
    ) -> None:
        self.runner, self.recordings, self.label = runner, recordings, label
        self._own = host
        self.numerics = runner.numerics
        self.partners = partners
        own = host.runner.arithmetic
        self._planned = can_host(runner) and own is not None and runner.arithmetic is not None
        self.same_file = self._planned and same_file(host.runner, runner)
        rewrites = (None if one is None else one.rewrites for one in (own, runner.arithmetic))
        self._same_graph = self.same_file and len({*rewrites}) == 1

    @cached_property
    def host(self) -> Host | None:
        """The other side as a host; None where its arithmetic is unknown."""
        if not self._planned:
            return None
        if self._same_graph and self._own.numerics is self.runner.arithmetic:
            return self._own
        first = self.recordings[0]
        try:
            return Host(self.runner, {name: first[name].shape for name in first.inputs if name in first})
        except BittrueError:
            # Then there is no second opinion.
            return None

    @cached_property
    def segments(self) -> Mapping[str, Segment]:
        """What computes each tensor there; empty where it is computed as on the host's side."""
        return {} if self._same_graph or self.host is None else self.host.segments(self.partners.values())

    @cached_property
    def _rules(self) -> dict[str, Mapping[str, str]]:
        plan = None if self.host is None else self.host.plan
        return {} if plan is None else {plan.tensors[i].name: s.rules for s in plan.steps for i in s.outputs}

    def rules(self, name: str) -> Mapping[str, str]:
        """What the step that computes its tensor `name` is planned with, by slot; empty where that is not known."""
        return self._rules.get(name, {})

    def settles(self, segment: Segment, name: str, parameters: Mapping[str, Quantization | None]) -> bool:
        """Whether this graph gives every bit of its tensor `name`, computed differently, and no parameter can be wrong.

        `parameters`: of the host's tensors, by name.
        """
        part = self.segments.get(name)
        if part is None or not self._reproduces(part):
            return False
        if self.same_file:
            theirs, mine = _ways(part, segment)
            return theirs != mine
        partners = {self.partners.get(mine) for mine in segment.shapes}
        return (
            partners == set(part.shapes)
            and not _weighs(part)
            and not _weighs(segment)
            and self._alike((*segment.shapes, segment.name), parameters)
        )

    def explain(self, segment: Segment, name: str, verdict: Verdict, differing: Statistics) -> Verdict:
        """The verdict on a tensor that this graph settles, or a better one.

        A verdict by the rules of the other side stays, and in other files that of a fault. `differing` is the isolated
        difference.
        """
        part = self.segments[name]
        told = [cause.numerics for cause in verdict.causes]
        if verdict.exact and self.same_file and not any(segment.numerics.name in names for names in told):
            return verdict
        if verdict.exact and not self.same_file and all(self.numerics in names for names in told):
            return verdict
        # One step of the quantized value is another rounding; more may be what fusing does wrong.
        benign = (
            differing.largest is not None
            and differing.largest <= 1
            and segment.graph.tensors[segment.target].dtype[0] in "su"
        )
        names = [" + ".join(way) for way in _ways(part, segment)]
        text = f"{self.label}'s operators {names[0]} in `{self.numerics}` instead of {names[1]}"
        text += ": another way to cut the model" if self.same_file else ": another way to compute it"
        cause = Cause(
            name=f"operators={names[0]}",
            text=f"{text}, benign" if benign else text,
            kind="order",
            benign=benign,
            numerics=(self.numerics,),
        )
        return explained_by(verdict, cause)

    def _reproduces(self, part: Segment) -> bool:
        try:
            for recording in self.recordings:
                if any(name not in recording for name in (*part.shapes, part.name)):
                    return False
                values = {name: recording[name].load() for name in part.shapes}
                if part.run(values).tobytes() != np.ascontiguousarray(recording[part.name].load()).tobytes():
                    return False
        except BittrueError:
            return False
        return True

    def _alike(self, names: Sequence[str], parameters: Mapping[str, Quantization | None]) -> bool:
        """Whether tensors of the host and their partners have the same scales and zero points."""
        for name in names:
            mine, its = parameters.get(name), self.recordings[0][self.partners[name]].quantization
            if mine is None or its is None:
                return False
            if not (np.array_equal(mine.scales, its.scales) and np.array_equal(mine.zero_points, its.zero_points)):
                return False
        return True


def explained_by(verdict: Verdict, cause: Cause) -> Verdict:
    """The verdict that this one cause gives every bit."""
    start = verdict.text.partition(";")[0]
    return replace(
        verdict,
        causes=(replace(cause, elements=verdict.differing),),
        exact=True,
        unexplained=0,
        also=(),
        text=f"{start}; all are explained by {cause.text}",
        witness={key: value for key, value in verdict.witness.items() if key != "other"},
    )


def _weighs(part: Segment) -> bool:
    """Whether constants are more than shapes and single parameters."""
    tensors = part.graph.tensors
    read = (tensors[i] for node in part.graph.nodes for i in node.inputs if i is not None and tensors[i].is_constant)
    return any(int(np.prod(t.shape)) > (1 if t.dtype in ("s4", "u4", "s8", "u8", "s16", "u16") else _FEW) for t in read)


def _ways(*parts: Segment) -> list[list[str]]:
    """The operators of each part; what the runtime calls them where that alone tells them apart."""
    operators = [[node.operator for node in part.graph.nodes] for part in parts]
    sources = [[node.source for node in part.graph.nodes] for part in parts]
    return sources if all(way == operators[0] for way in operators) else operators
