"""Two sides run on the same inputs: which tensors differ, where each difference arises, and why."""

from __future__ import annotations

import hashlib
import os
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BittrueError, InputError
from ..graph import data_type
from ..names import by_number, did_you_mean
from ..numerics import default_of
from ..numerics import find as find_numerics
from ..runners.base import Runner
from ..runners.recording import Recording
from ..runners.sides import open_sides
from .alignment import as_a, with_quantization
from .amplify import amplify as amplify_difference
from .files import same_places
from .host import Host, can_host, known_parameters
from .hypotheses import SECONDS
from .inputs import Given, InputSet, input_sets
from .isolation import Isolation
from .matching import Match, match
from .result import Cause, CompareResult, Downstream, Pair, Side, Statistics, Verdict
from .statistics import Collector
from .verdict import Explainer

# (what is being done, how much of it is done, of how much; 0 when nobody knows)
Progress = Callable[[str, int, int], None]
CHANNELS_FIRST = ("onnx", "caffe", "caffe2", "mxnet")


def compare_models(
    a: str | Path | Runner,
    b: str | Path | Runner,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any] | Given] | None = None,
    *,
    seeds: Sequence[int] | None = None,
    shapes: Mapping[str, Sequence[int] | int] | None = None,
    match: Iterable[tuple[str, str]] = (),
    explain: bool = True,
    amplify: str | bool = False,
    search: float = SECONDS,
    progress: Progress | None = None,
) -> CompareResult:
    """Run two sides on the same inputs and compare every tensor that both show, byte for byte.

    Args:
        a, b: what `bittrue compare` takes, for example ``"model.tflite"``, ``"model.tflite@xnnpack"``,
            ``"litert:builtin_ref model.tflite"``, ``"ort:model.onnx"``, ``"trace:DIR"``; see
            `bittrue.runners.sides`. Or runners that are open already, which stay open.
        inputs: arrays by input name of either side, or a sequence of such mappings, one per run. Inputs that are
            missing get random values. The other side gets the same numbers in its own type and layout. Beside a trace
            they stand in for inputs that it lacks; what it holds as well must be equal.
        seeds: without `inputs`: one run on random values per seed; seed 0 by default.
        shapes: shapes of random values by input, or sizes by the names of free dimensions; of sides that are text.
        match: pairs (tensor of A, tensor of B) that belong together.
        explain: whether isolated differences are explained.
        amplify: True, or the name of one of A's tensors: what its isolated difference does further on.
        search: seconds that looking for causes that no numerics has may take; what was left out is in the notes.
        progress: called with (what is being done, done, of how many).

    Raises:
        BittrueError: a side cannot be opened or run, inputs do not fit, or there is nothing to compare.
    """
    with ExitStack() as stack:
        sides = []
        for side in (a, b):
            if not isinstance(side, str | os.PathLike | Runner):
                raise InputError(
                    "BT-SIDE",
                    f"a side is text or a path, found {type(side).__name__}",
                    advice="write for example compare_models('model.tflite@litert', 'model.tflite@xnnpack')",
                )
        texts = [os.fspath(side) for side in (a, b) if not isinstance(side, Runner)]
        opened = iter(open_sides(texts, shapes))
        for side in (a, b):
            runner = side if isinstance(side, Runner) else next(opened)
            if not isinstance(side, Runner):
                stack.callback(runner.close)
            sides.append(runner)
        if seeds is not None and (inputs is not None or any(side.recorded() for side in sides)):
            why = "inputs are given" if inputs is not None else "a trace says which runs are compared"
            raise InputError("BT-INPUT-SEED", f"have no effect: {why}", place="seeds", advice="leave them out")
        chosen = [Given(seed=seed) for seed in ((0,) if seeds is None else seeds)]
        if inputs is not None:
            listed = [inputs] if isinstance(inputs, Mapping) else list(inputs)
            chosen = [one if isinstance(one, Given) else Given(one, text="given values") for one in listed]
        if not chosen:
            raise InputError("BT-COMPARE-INPUTS", "no run is asked for", advice="give inputs or seeds")
        return Comparison(sides[0], sides[1], chosen, tuple(match), progress, search).result(explain, amplify)


class Comparison:
    """One comparison at work: runs are recorded, tensors matched, differences counted.

    Attributes:
        a, b: the sides.
        sets: the runs.
        recordings: per run that of A and that of B.
        matches: tensors that belong together, in A's execution order.
        collectors: per match, the cumulative difference.
        equal: per match and run, whether all bytes are equal.
        notes: what the reader must know.
    """

    def __init__(
        self,
        a: Runner,
        b: Runner,
        given: Sequence[Given],
        pairs: Sequence[tuple[str, str]] = (),
        progress: Progress | None = None,
        search: float = SECONDS,
    ) -> None:
        self.started = time.perf_counter()
        self._search = search
        self.a, self.b = a, b
        self.notes: dict[str, None] = {}
        self._side_notes: tuple[dict[str, None], dict[str, None]] = ({}, {})
        self._progress = progress or (lambda text, done, total: None)
        self._explaining = 0
        self.sets: list[InputSet] = input_sets(a, b, given)
        recorded = len(a.recorded()), len(b.recorded())
        if all(recorded) and recorded[0] != recorded[1]:
            self.note(f"A holds {recorded[0]} runs, B {recorded[1]}: the first {min(recorded)} are compared")
        self.recordings = [self._record(i, one) for i, one in enumerate(self.sets)]
        first = self.recordings[0]
        ports = [pair for pair in self.sets[0].ports if pair[0] in first[0] and pair[1] in first[1]]
        if not self._one_model():
            ports += [pair for pair in self._same_places() if pair[0] in first[0] and pair[1] in first[1]]
        given_pairs = [(_named(a, first[0], one), _named(b, first[1], two)) for one, two in pairs]
        self.matches: list[Match] = match(*first, self._one_model(), given_pairs, ports)
        self.misshapen = self._misshapen()
        self.collectors = [Collector(m.a.shape, self.channel_axis(m)) for m in self.matches]
        self.equal: list[list[bool]] = [[] for _ in self.matches]
        self.counted: list[list[bool]] = [[] for _ in self.matches]
        self._count()
        self.host = self._host()
        self.isolation: Isolation | None = None

    def result(self, explain: bool = True, amplify: str | bool = False) -> CompareResult:
        """Everything that was found."""
        pairs = self._pairs(explain)
        amplified: tuple[Downstream, ...] = ()
        if amplify:
            amplified = self._amplify(pairs, amplify if isinstance(amplify, str) else None)
        matched = {pair.a for pair in pairs}, {pair.b for pair in pairs}
        left = [
            tuple(t.name for t in recording if t.name not in names)
            for recording, names in zip(self.recordings[0], matched, strict=True)
        ]
        if not pairs:
            self.note("no tensor of A has a partner in B: nothing is compared; name partners with --match")
        for label, recording, names in zip("AB", self.recordings[0], matched, strict=True):
            missing = [name for name in recording.outputs if name not in names]
            if missing and pairs:
                self.note(f"outputs of {label} without a partner are not compared: {', '.join(missing)}")
        import bittrue

        return CompareResult(
            self._side("A", self.a, self._side_notes[0]),
            self._side("B", self.b, self._side_notes[1]),
            tuple(one.text for one in self.sets),
            tuple(pairs),
            left[0],
            left[1],
            amplified,
            seconds=time.perf_counter() - self.started,
            version=bittrue.__version__,
            date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            notes=tuple(self.notes),
            host="" if self.host is None else "A" if self.host.runner is self.a else "B",
        )

    def channel_axis(self, pair: Match) -> int:
        """The axis of A's tensor that counts channels: as its format has it, or as B's has it, moved."""
        rank = len(pair.a.shape)
        if self.a.model is not None or self.b.model is None:
            return 1 if rank >= 4 and self.a.format in CHANNELS_FIRST else -1
        theirs = 1 if rank >= 4 and self.b.format in CHANNELS_FIRST else rank - 1
        return pair.layout.axes.index(theirs) if pair.layout.axes is not None and rank > theirs else theirs

    def note(self, text: str) -> None:
        """Tell the reader."""
        self.notes[text] = None

    def _record(self, number: int, one: InputSet) -> tuple[Recording, Recording]:
        found = []
        for place, (label, runner, known, values) in enumerate(
            (("A", self.a, one.recorded_a, one.a), ("B", self.b, one.recorded_b, one.b))
        ):
            text = f"running {label}" + (f", input {number + 1} of {len(self.sets)}" if len(self.sets) > 1 else "")
            recording = known or runner.record(values, lambda done, total: self._progress(text, done, total))  # noqa: B023
            self._side_notes[place].update(dict.fromkeys(recording.notes))
            found.append(self._with_parameters(runner, recording))
        self._side_notes[0].update(dict.fromkeys(n.removeprefix("A: ") for n in one.notes if n.startswith("A: ")))
        self._side_notes[1].update(dict.fromkeys(n.removeprefix("B: ") for n in one.notes if n.startswith("B: ")))
        for note in one.notes:
            if not note.startswith(("A: ", "B: ")):
                self.note(note)
        return found[0], found[1]

    def _with_parameters(self, runner: Runner, recording: Recording) -> Recording:
        """The recording, with scales and zero points that only the model's nodes know."""
        if runner.model is None:
            return recording
        known = known_parameters(runner.model.graph)
        if not known:
            return recording
        tensors = tuple(with_quantization(tensor, known.get(tensor.name)) for tensor in recording)
        return Recording(tensors, recording.inputs, recording.outputs, recording.notes)

    def _one_model(self) -> bool:
        """Whether a name means the same on both sides: a trace, or one format and most names in common."""
        if "trace" in (self.a.format, self.b.format):
            return True
        names = [{tensor.name for tensor in recording} for recording in self.recordings[0]]
        fewer = min(map(len, names))
        return self.a.format == self.b.format and 2 * len(names[0] & names[1]) >= fewer

    def _same_places(self) -> list[tuple[str, str]]:
        """Tensors at the same place of two models of one format that are alike but for names."""
        if self.a.model is None or self.b.model is None or self.a.format != self.b.format:
            return []
        return same_places(self.a.model.graph, self.b.model.graph)

    def _misshapen(self) -> dict[str, str]:
        """Tensors of one name, or outputs at one place, whose shapes do not fit together: A's name to B's."""
        one, two = self.recordings[0]
        found = {t.name: t.name for t in one if t.name in two} if self._one_model() else {}
        if self.a.format == self.b.format and len(one.outputs) == len(two.outputs):
            found |= {a: b for a, b in zip(one.outputs, two.outputs, strict=True) if a not in found}
        taken = {m.a.name for m in self.matches}, {m.b.name for m in self.matches}
        return {
            a: b
            for a, b in found.items()
            if a not in taken[0] and b not in taken[1] and a in one and b in two and one[a].shape != two[b].shape
        }

    def _count(self) -> None:
        """Cumulative differences."""
        total = len(self.sets) * len(self.matches)
        for number, (one, two) in enumerate(self.recordings):
            for i, pair in enumerate(self.matches):
                self._progress("comparing", number * len(self.matches) + i, total)
                fits = (
                    pair.a.name in one
                    and pair.b.name in two
                    and (one[pair.a.name].shape, two[pair.b.name].shape) == (pair.a.shape, pair.b.shape)
                )
                self.counted[i].append(fits and not pair.meaning.problem)
                if not self.counted[i][-1]:
                    if not pair.meaning.problem:
                        self.note(f"'{pair.a.name}' has another shape or is missing in run {number}: not compared")
                    self.equal[i].append(False)
                    continue
                differing = self.collectors[i].add(
                    one[pair.a.name].load(),
                    pair.layout(two[pair.b.name].load()),
                    pair.meaning.convert,
                    pair.meaning.convert_a,
                )
                self.equal[i].append(differing == 0)

    def _host(self) -> Host | None:
        """The side that gives the graph: A where its arithmetic is known, else B."""
        for place, (label, runner) in enumerate((("A", self.a), ("B", self.b))):
            if not can_host(runner):
                continue
            recording = self.recordings[0][place]
            shapes = {name: recording[name].shape for name in recording.inputs if name in recording}
            try:
                host = Host(runner, shapes)
            except BittrueError as error:
                self.note(f"{label} cannot be cut into parts that run alone: {error}")
                continue
            if host.numerics is not runner.arithmetic:
                self.note(
                    f"{label} was run with shifts that C++ leaves undefined: '{host.numerics.name}' stands for its "
                    "arithmetic"
                )
            if place == 1:
                self.note(
                    "isolated differences are those of A's values against B's arithmetic on A's inputs: "
                    "only B's graph and arithmetic are known"
                )
            return host
        self.note("no isolated differences: bittrue knows the graph and the arithmetic of neither side")
        return None

    def _pairs(self, explain: bool) -> list[Pair]:
        isolation = self.isolation = None if self.host is None else Isolation(self, self.host)
        explainer: Explainer | None = None
        if isolation is not None and self.host is not None:
            other = self.b if self.host.runner is self.a else self.a
            explainer = Explainer(self.host.numerics, other.arithmetic, self._search, self._tried)
        if isolation is not None and isolation.files is not None:
            for note in isolation.files.notes():
                self.note(note)
        pairs: list[Pair] = []
        # What nothing explains, though both sides had the same inputs there: position in `pairs` to its match.
        puzzling: dict[int, int] = {}
        for i, pair in enumerate(self.matches):
            self._progress("looking for where differences arise", i, len(self.matches))
            cumulative = self.collectors[i].result()
            name = self._host_name(pair)
            node = None if self.host is None else self.host.producers.get(name)
            notes = [text for text in (pair.meaning.problem, pair.meaning.text) if text]
            found = None
            if isolation is not None and node is not None and not pair.meaning.problem:
                found = isolation.of(i)
                notes += [found.note] if found.note else []
            verdict = None
            if found is not None and explain and explainer is not None and found.explicable:
                self._explaining = i
                self._tried(0)
                verdict = isolation.verdict(found, explainer) if isolation is not None else None
            if (verdict is None or not verdict.differing) and explain and not cumulative.equal:
                verdict = self._misread(pair, cumulative) or verdict
            if verdict is not None and verdict.unexplained and found is not None and found.inputs_equal:
                puzzling[len(pairs)] = i
            pairs.append(
                Pair(
                    pair.a.name,
                    pair.b.name,
                    None if node is None else node.index,
                    "" if node is None else node.source,
                    "" if node is None else node.operator,
                    pair.a.dtype,
                    pair.b.dtype,
                    pair.a.shape,
                    str(pair.layout),
                    pair.how,
                    cumulative,
                    None if found is None else found.statistics,
                    verdict,
                    "; ".join(notes),
                    pair.a.name in self.recordings[0][0].outputs,
                )
            )
        if isolation is not None and explainer is not None:
            for position, i in puzzling.items():
                self._told_by_readers(pairs, position, isolation.shown_otherwise(i), explainer)
        if explainer is not None and explainer.unfinished:
            first, *more = explainer.unfinished
            behind = f" and {len(more)} more" if more else ""
            self.note(
                f"the search for causes ended early on '{first}'{behind}; not tried, or not to the end: "
                f"{', '.join(explainer.cut)}. To go on, give it more time (--search SECONDS), compare with the "
                "numerics that B is said to have (MODEL@NUMERICS), or reduce the model first (bittrue reduce)"
            )
        if explainer is not None and explainer.untried:
            count = len(explainer.untried)
            self.note(
                f"{count} tensors were not searched for causes: the search was in vain on others that are computed "
                "in the same way"
                if count > 1
                else f"'{explainer.untried[0]}' was not searched for causes: the search was in vain on others that are "
                "computed in the same way"
            )
        pairs += [self._misfit(*names, isolation if explain else None) for names in self.misshapen.items()]
        order = {tensor.name: position for position, tensor in enumerate(self.recordings[0][0])}
        return sorted(pairs, key=lambda pair: order[pair.a])

    def _tried(self, count: int) -> None:
        tried = f", {count} causes tried" if count else ""
        self._progress(f"explaining tensor {self._explaining + 1}{tried}", self._explaining, len(self.matches))

    def _told_by_readers(self, pairs: list[Pair], position: int, cause: Cause, explainer: Explainer) -> None:
        """A tensor that nothing explains, where an operator that reads it proves that its values were others."""
        told = (c.text for p in pairs if p.verdict is not None and p.verdict.exact for c in p.verdict.causes)
        if cause.text not in told:
            return
        pair = pairs[position]
        if pair.verdict is not None and pair.isolated is not None:
            verdict = _explained(pair.isolated, cause)
            verdict = replace(verdict, witness=pair.verdict.witness, command=pair.verdict.command)
            pairs[position] = replace(pair, verdict=verdict)
            name = self._host_name(self.matches[position])
            explainer.unfinished = [other for other in explainer.unfinished if other != name]

    def _misread(self, pair: Match, found: Statistics) -> Verdict | None:
        """Integers whose bytes are the other side's, in another order or taken for another type."""
        one, two = np.dtype(data_type(pair.a.dtype).numpy), np.dtype(data_type(pair.b.dtype).numpy)
        if one.kind not in "iu" or two.kind not in "iu" or one == two:
            return None
        for name, swap in (("bytes read as another type", False), ("bytes swapped", True)):
            for recordings in self.recordings:
                mine = recordings[0][pair.a.name].load()
                its = pair.layout(recordings[1][pair.b.name].load())
                its = np.ascontiguousarray(its.byteswap() if swap else its)
                # Either the bytes are the same, or the numbers are when every value's bytes are turned round.
                same = np.array_equal(mine, its) if swap else mine.tobytes() == its.tobytes()
                if not same or mine.shape != its.shape:
                    break
            else:
                what = "every value's bytes are in the other order" if swap else "the bytes are those of A, read as"
                text = f"{what}: a fault" if swap else f"{what} {pair.b.dtype} where {pair.a.dtype} is meant: a fault"
                return _explained(found, Cause(name, text, "data", False))
        return None

    def _misfit(self, name: str, theirs: str, isolation: Isolation | None) -> Pair:
        """A tensor that has another shape on the other side: all its elements count as differing."""
        a, b = self.recordings[0][0][name], self.recordings[0][1][theirs]
        node = None if self.host is None else self.host.producers.get(name)
        size = sum(int(np.prod(pair[0][name].shape)) for pair in self.recordings if name in pair[0])
        note = f"another shape: {list(a.shape)} in A, {list(b.shape)} in B"
        return Pair(
            name,
            theirs,
            None if node is None else node.index,
            "" if node is None else node.source,
            "" if node is None else node.operator,
            a.dtype,
            b.dtype,
            a.shape,
            f"{list(b.shape)} in B",
            "name" if name == theirs else "order and shape",
            Statistics(size, size),
            None,
            None if isolation is None or name != theirs else isolation.of_shape(name, note),
            note,
            name in self.recordings[0][0].outputs,
        )

    def _host_name(self, pair: Match) -> str:
        return pair.a.name if self.host is None or self.host.runner is self.a else pair.b.name

    def _amplify(self, pairs: Sequence[Pair], tensor: str | None) -> tuple[Downstream, ...]:
        if tensor is not None:
            known = [pair.a for pair in pairs]
            nodes: dict[int, list[str]] = {}
            for shown in pairs:
                if shown.node is not None:
                    nodes.setdefault(shown.node, []).append(shown.a)
            tensor = by_number(tensor, known, nodes.get, max(nodes, default=-1) + 1)
            if tensor not in known:
                advice = did_you_mean(tensor, known, "--tensors lists them")
                text = f"'{tensor}' is no tensor of A that has a partner"
                raise InputError("BT-AMPLIFY", text, place="--amplify", advice=advice)
        if self.host is None or self.host.runner is not self.a:
            self.note("nothing is amplified: that takes A's graph and arithmetic")
            return ()
        if tensor is None:
            tensor = next((p.a for p in pairs if p.isolated is not None and not p.isolated.equal), None)
        if tensor is None:
            self.note("nothing is amplified: there is no isolated difference")
            return ()
        chosen = next(i for i, m in enumerate(self.matches) if m.a.name == tensor)
        values = []
        for one, two in self.recordings:
            pair = self.matches[chosen]
            values.append(as_a(pair.a, pair.b, pair.layout(two[pair.b.name].load())))
            del one
        return amplify_difference(self, chosen, values)

    def _side(self, label: str, runner: Runner, notes: Mapping[str, None]) -> Side:
        path = Path(runner.path)
        file = path.is_file() and runner.format != "trace"
        return Side(
            label,
            runner.spec,
            runner.title,
            runner.numerics,
            path.name if file else "",
            _sha256(path) if file else "",
            runner.format,
            tuple(notes),
        )

    def isolated_values(self, index: int, run: int) -> np.ndarray | None:
        """A's arithmetic on B's inputs; None where that part does not run alone."""
        return None if self.isolation is None else self.isolation.values(index, run)

    def command(self, number: int) -> str:
        """`bittrue explain` with what it takes to compute the host's values of run `number`; empty without that."""
        assert self.host is not None
        runner, options = self.host.runner, self.sets[number].options
        if not options or runner.model is None or find_numerics(runner.numerics) is not runner.arithmetic:
            # Other rewrites than the named numerics has: no command line says that.
            return ""
        usual = default_of(runner.format) == runner.numerics
        numerics = "" if usual else f" --numerics {shlex.quote(runner.numerics)}"
        return f"bittrue explain {shlex.quote(str(runner.path))}{numerics} {options}"


def _explained(found: Statistics, cause: Cause) -> Verdict:
    """The verdict that one cause gives every bit."""
    some = "it is" if found.differing == 1 else "all are"
    start = f"{found.differing:,} of {found.elements:,} elements {'differs' if found.differing == 1 else 'differ'}"
    cause = replace(cause, elements=found.differing)
    return Verdict(found.differing, (cause,), exact=True, text=f"{start}; {some} explained: {cause.text}")


def _named(runner: Runner, recording: Recording, text: str) -> str:
    """A tensor of a side by its name, or by the number of a node of its file, as `bittrue inspect --nodes` shows it."""
    if runner.model is None:
        return text
    graph = runner.model.graph
    nodes = {node.index: [graph.tensors[i].name for i in node.outputs] for node in graph.nodes}
    return by_number(text, [tensor.name for tensor in recording], nodes.get, len(nodes))


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()
