"""What one part does when it gets the other side's inputs: the difference that arises there and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import BittrueError
from .alignment import as_a
from .elsewhere import Read, elsewhere, shown_otherwise
from .files import files_of
from .fusion import OtherGraph, explained_by
from .host import Host
from .joined import Joined
from .matching import Match
from .result import Cause, Statistics, Verdict
from .segments import Segment
from .statistics import Collector

if TYPE_CHECKING:
    from .comparison import Comparison
    from .verdict import Explainer

_NO_PART = "no isolated difference: it reads variables, calls other graphs, or its shape is only known while running"


@dataclass(frozen=True)
class Isolated:
    """What was found about one tensor.

    Attributes:
        index: of its match.
        statistics: the isolated difference; None when the part cannot run.
        note: why not, or why it is not explained.
        segment: the part.
        explicable: it differs, the part runs, and the other side's values are known in the host's type.
        inputs_equal: both sides had the same inputs there, on every run.
    """

    index: int
    statistics: Statistics | None = None
    note: str = ""
    segment: Segment | None = None
    explicable: bool = False
    inputs_equal: bool = False


class Isolation:
    """Runs the host's parts on the other side's values.

    Of a host that is another runtime it is proven first that bittrue's arithmetic gives that runtime's bits on its own
    values; where it does not, nothing is said.
    """

    def __init__(self, comparison: Comparison, host: Host) -> None:
        self.comparison, self.host = comparison, host
        self.place = 0 if host.runner is comparison.a else 1
        self.label = "AB"[self.place]
        self.by_name = {self._name(m): i for i, m in enumerate(comparison.matches) if not m.meaning.problem}
        shown = [name for name, i in self.by_name.items() if self._carries(i)]
        self.segments = host.segments([*shown, *comparison.misshapen])
        others = [pair[1 - self.place] for pair in comparison.recordings]
        guest = comparison.b if self.place == 0 else comparison.a
        names = [comparison.matches[self.by_name[name]] for name in shown]
        partners = {self._name(m): (m.b if self.place == 0 else m.a).name for m in names}
        self.other = OtherGraph(host, guest, others, "BA"[self.place], partners)
        ends = partners.values()
        self.joined = Joined(guest, others, "BA"[self.place], ends, host.numerics.name, self.other.same_file)
        mine = [pair[self.place] for pair in comparison.recordings]
        self.joined_here = Joined(host.runner, mine, self.label, shown, host.numerics.name, True)
        own = comparison.recordings[0][self.place]
        self.parameters = {name: own[name].quantization for name in shown}
        self.files = files_of(host, guest, (self.label, "BA"[self.place]))

    def of(self, index: int) -> Isolated:
        """The isolated difference of one matched tensor."""
        comparison, pair = self.comparison, self.comparison.matches[index]
        segment = self.segments.get(self._name(pair))
        if segment is None:
            if index not in self.by_name.values() or not self._carries(index):
                return Isolated(index, note=f"no isolated difference: {self.label}'s type does not have these numbers")
            return Isolated(index, note=_NO_PART)
        inputs = [self.by_name.get(name) for name in segment.shapes]
        if None in inputs or any(not self._carries(i) for i in inputs if i is not None):
            missing = next(n for n, i in zip(segment.shapes, inputs, strict=True) if i is None or not self._carries(i))
            return Isolated(index, note=f"no isolated difference: the other side does not show '{missing}'")
        known = [i for i in inputs if i is not None]
        runs = range(len(comparison.sets))
        same = [all(comparison.equal[i][k] for i in known) for k in runs]
        whole = [comparison.counted[index][k] and all(comparison.counted[i][k] for i in known) for k in runs]
        if not all(whole):
            return Isolated(index, note="no isolated difference: not every run shows all tensors")
        try:
            if not self.host.reproduces and not self._nothing_differs(index, same) and not self._reproduced(segment):
                return self._unreproduced(index, segment, same)
            return self._run(index, segment, same)
        except BittrueError as error:
            return Isolated(index, note=f"no isolated difference: {error}")

    def verdict(self, found: Isolated, explainer: Explainer) -> Verdict | None:
        """Why it differs."""
        segment, pair = found.segment, self.comparison.matches[found.index]
        assert segment is not None
        runs = range(len(self.comparison.sets))
        values = [self._values(segment, k) for k in runs]
        theirs = [self._carried(pair, k) for k in runs]
        known = [v for v in values if v is not None]
        wanted = [t for t in theirs if t is not None]
        name = (pair.b if self.place == 0 else pair.a).name
        # Two files of one format are compared node by node, which says more than that B's own graph gives B's bits.
        settled = self.files is None and self.other.settles(segment, name, self.parameters)
        joined = None if settled else self._joined(segment, pair, name, known)
        verdict = explainer.explain(
            segment,
            known,
            wanted,
            "COMMAND" if found.inputs_equal else "",
            files=() if self.files is None else self.files.of(segment.graph.nodes),
            more=lambda: elsewhere("BA"[self.place], *self._elsewhere(segment, found.index), known, wanted),
            rules=self.other.rules(name),
            settled=settled or joined is not None,
        )
        if joined is not None:
            verdict = verdict if verdict.exact else explained_by(verdict, joined)
        elif settled and found.statistics is not None:
            verdict = self.other.explain(segment, name, verdict, found.statistics)
        if not verdict.command:
            return verdict
        number = verdict.witness.get("input_set", 0)
        command = self.comparison.command(number)
        return replace(verdict, command=verdict.command.replace("COMMAND", command, 1) if command else "")

    def _joined(
        self, segment: Segment, pair: Match, name: str, known: Sequence[Mapping[str, np.ndarray]]
    ) -> Cause | None:
        """What the other side's optimiser has joined here."""
        if self.place != 0 or str(pair.layout) != "same" or pair.a.dtype != pair.b.dtype:
            return None
        return self.joined.cause(name, _sources(segment), [segment.run(values) for values in known])

    def of_shape(self, name: str, note: str) -> Verdict | None:
        """Why a tensor of this name has another shape: what differs in the other file there, if that gives the other
        side's bits on its own values.
        """
        segment = self.segments.get(name)
        if segment is None or self.files is None or not all(i in self.by_name for i in segment.shapes):
            return None
        differences = [d for d in self.files.of(segment.graph.nodes) if d.change is not None]
        causes, size = [], 0
        for run, recordings in enumerate(self.comparison.recordings):
            values, wanted = self._values(segment, run), recordings[1 - self.place][name].load()
            if values is None or not differences:
                return None
            graph = segment.graph
            for difference in differences:
                assert difference.change is not None
                graph = difference.change(graph)
            try:
                found = segment.run(values, segment.plan(change_graph=lambda _, changed=graph: changed))  # type: ignore[misc]
            except BittrueError:
                return None
            if found.shape != wanted.shape or found.tobytes() != np.ascontiguousarray(wanted).tobytes():
                return None
            size += int(np.prod(self._shape(name, run)))
        causes = [replace(d.cause, elements=size) for d in differences]
        text = f"{note}; explained: {' together with '.join(c.text for c in causes)}"
        return Verdict(size, tuple(causes), exact=True, text=text)

    def shown_otherwise(self, index: int) -> Cause:
        """The cause that a tensor has when the other side computed with the host's values of it."""
        pair = self.comparison.matches[index]
        runs = range(len(self.comparison.sets))
        shown = ((self._carried(pair, run), self._own(self._name(pair), run)) for run in runs)
        pairs = [(its, mine) for its, mine in shown if its is not None]
        return shown_otherwise("BA"[self.place], self._name(pair), pairs)

    def _shape(self, name: str, run: int) -> tuple[int, ...]:
        return self.comparison.recordings[run][0][name].shape

    def _elsewhere(self, segment: Segment, index: int) -> tuple[dict[str, Read], dict[str, Read]]:
        """The host's values of inputs that differ, and what the other side shows that has the size of this tensor."""
        comparison = self.comparison
        differing = [n for n in segment.shapes if n in self.by_name and not all(comparison.equal[self.by_name[n]])]
        inputs: dict[str, Read] = {name: lambda run, n=name: self._own(n, run) for name in differing}  # type: ignore[misc]
        one = comparison.matches[index]
        others: dict[str, Read] = {}
        for name, i in self.by_name.items():
            two = comparison.matches[i]
            alike = (two.a.dtype, two.b.dtype, two.a.bytes) == (one.a.dtype, one.b.dtype, one.a.bytes)
            if i != index and alike and two.layout == one.layout and name not in segment.shapes:
                others[name] = lambda run, pair=two: self._carried(pair, run)  # type: ignore[misc]
        return inputs, others

    def values(self, index: int, run: int) -> np.ndarray | None:
        """The host's arithmetic on the other side's inputs; None where the part does not run."""
        segment = self.segments.get(self._name(self.comparison.matches[index]))
        values = None
        if segment is not None and all(name in self.by_name for name in segment.shapes):
            values = self._values(segment, run)
        return None if segment is None or values is None else segment.run(values)

    def _name(self, pair: Match) -> str:
        return pair.a.name if self.place == 0 else pair.b.name

    def _carries(self, index: int) -> bool:
        """Whether the other side's values are known in the host's type, on every run."""
        pair = self.comparison.matches[index]
        if pair.a.dtype == pair.b.dtype:
            return True
        return all(self._carried(pair, k) is not None for k in range(len(self.comparison.sets)))

    def _carried(self, pair: Match, run: int) -> np.ndarray | None:
        """The other side's value as the host has it: its layout, its type."""
        recording = self.comparison.recordings[run][1 - self.place]
        other = pair.b if self.place == 0 else pair.a
        if other.name not in recording or recording[other.name].shape != other.shape:
            return None
        value = recording[other.name].load()
        if self.place == 0:
            return as_a(pair.a, pair.b, pair.layout(value))
        return as_a(pair.b, pair.a, pair.layout.back(value, pair.b.shape))

    def _own(self, name: str, run: int) -> np.ndarray:
        return self.comparison.recordings[run][self.place][name].load()

    def _values(self, segment: Segment, run: int) -> Mapping[str, np.ndarray] | None:
        values = {}
        for name in segment.shapes:
            value = self._carried(self.comparison.matches[self.by_name[name]], run)
            if value is None:
                return None
            values[name] = value
        return values

    def _nothing_differs(self, index: int, same: list[bool]) -> bool:
        return all(same) and all(self.comparison.equal[index])

    def _reproduced(self, segment: Segment) -> bool:
        """Whether bittrue's arithmetic gives the host's own bits on the host's own values."""
        for run in range(len(self.comparison.sets)):
            values = {name: self._own(name, run) for name in segment.shapes}
            if segment.run(values).tobytes() != np.ascontiguousarray(self._own(segment.name, run)).tobytes():
                return False
        return True

    def _unreproduced(self, index: int, segment: Segment, same: list[bool]) -> Isolated:
        """Where both sides had equal inputs, what they show is the isolated difference all the same."""
        note = f"{self.label} itself is not reproduced here by numerics {self.host.numerics.name}"
        joined = self.joined_here.cause(segment.name, _sources(segment))
        if joined is not None:
            note += f" ({joined.text})"
        if not all(same):
            return Isolated(index, note=f"{note}: no isolated difference")
        return Isolated(index, self.comparison.collectors[index].result(), f"{note}: not explained")

    def _run(self, index: int, segment: Segment, same: list[bool]) -> Isolated:
        comparison, pair = self.comparison, self.comparison.matches[index]
        collector = Collector(pair.a.shape, comparison.channel_axis(pair))
        explicable = True
        for run, (one, two) in enumerate(comparison.recordings):
            if same[run] and comparison.equal[index][run]:
                collector.add_equal()
                continue
            mine, its = one[pair.a.name].load(), pair.layout(two[pair.b.name].load())
            values = None if same[run] else self._values(segment, run)
            if values is not None:
                computed = segment.run(values)
                mine, its = (computed, its) if self.place == 0 else (mine, pair.layout(computed))
            collector.add(mine, its, pair.meaning.convert, pair.meaning.convert_a)
            explicable = explicable and self._carried(pair, run) is not None
        statistics = collector.result()
        return Isolated(index, statistics, "", segment, explicable and not statistics.equal, all(same))


def _sources(segment: Segment) -> list[str]:
    """What the runtime calls the segment's operators."""
    return [node.source for node in segment.graph.nodes]
