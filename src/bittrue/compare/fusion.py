"""One model, two ways to cut it into operators: a runtime that fuses against one that runs node by node.

Where both sides run the same file, the other side's own graph and arithmetic, put to the test on its own values,
explain its bits: what differs is which operators compute them, and no parameter can be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..errors import BittrueError
from ..graph import Node
from ..runners.base import Runner
from ..runners.recording import Recording
from .files import same_file
from .host import Host, can_host
from .result import Cause, Statistics, Verdict
from .segments import Segment


class OtherGraph:
    """The other side's graph, which differs from the host's though the file is the same.

    Args:
        host: the side whose graph cuts the comparison.
        runner, recordings: the other side, and its runs.
        label: ``"A"`` or ``"B"``: the other side.
        shown: names of its tensors that both sides show.
    """

    def __init__(
        self, host: Host, runner: Runner, recordings: Sequence[Recording], label: str, shown: Iterable[str]
    ) -> None:
        self.recordings, self.label = recordings, label
        self.numerics = runner.numerics
        self.segments: Mapping[str, Segment] = {}
        own = host.runner.arithmetic
        if (
            not can_host(runner)
            or runner.arithmetic is None
            or own is None
            or own.rewrites == runner.arithmetic.rewrites
        ):
            return
        if not same_file(host.runner, runner):
            return
        first = recordings[0]
        try:
            shapes = {name: first[name].shape for name in first.inputs if name in first}
            self.segments = Host(runner, shapes).segments(shown)
        except BittrueError:
            # Then there is no second opinion.
            return

    def explain(self, segment: Segment, name: str, verdict: Verdict, differing: Statistics) -> Verdict:
        """The verdict, or a better one where this graph gives every bit of the other side's tensor `name`.

        A verdict by single rules stays. `differing` is the isolated difference.
        """
        single = verdict.exact and all(segment.numerics.name not in cause.numerics for cause in verdict.causes)
        part = self.segments.get(name)
        if single or part is None or not self._reproduces(part):
            return verdict
        ways = _ways(part.graph.nodes), _ways(segment.graph.nodes)
        if ways[0] == ways[1]:
            return verdict
        # One step of the stored integer is another rounding; more may be what fusing does wrong.
        benign = (
            differing.largest is not None
            and differing.largest <= 1
            and segment.graph.tensors[segment.target].dtype[0] in "su"
        )
        names = [" + ".join(way) for way in ways]
        text = f"{self.label}'s operators {names[0]} in `{self.numerics}` instead of {names[1]}"
        text += ": another way to cut the model"
        cause = Cause(
            name=f"operators={names[0]}",
            text=f"{text}, benign" if benign else text,
            kind="order",
            benign=benign,
            numerics=(self.numerics,),
            elements=verdict.differing,
        )
        start = verdict.text.partition(";")[0]
        return replace(
            verdict,
            causes=(cause,),
            exact=True,
            unexplained=0,
            also=(),
            text=f"{start}; all are explained by {cause.text}",
        )

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


def _ways(nodes: Sequence[Node]) -> list[str]:
    return [node.operator for node in nodes]
