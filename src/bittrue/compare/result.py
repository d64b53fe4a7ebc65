"""What a comparison found, as plain data: the only source of every report.

`CompareResult.to_dict` is the JSON of format ``bittrue-compare-1``; `from_dict` reads it back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError
from ..report.result import Result, plain
from ..report.words import plural
from .reading import read

FORMAT = "bittrue-compare-1"


@dataclass(frozen=True)
class Side:
    """One of the two.

    Attributes:
        label: ``"A"`` or ``"B"``.
        spec: what the user typed.
        title: the runtime, for people, with its version.
        numerics: the numerics that stands for it; empty when none does (a device).
        model: file name; empty for a trace.
        sha256: of that file.
        format: of that file.
        notes: what was done to inputs, what is not shown.
    """

    label: str
    spec: str
    title: str
    numerics: str = ""
    model: str = ""
    sha256: str = ""
    format: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Worst:
    """The element that differs most: its index (as A has it) and both values."""

    element: tuple[int, ...]
    a: float
    b: float


@dataclass(frozen=True)
class Statistics:
    """How B's values of one tensor stand to A's, over all inputs.

    Attributes:
        elements: how many were compared.
        differing: how many have other bytes.
        largest: largest |b - a|; None when nothing differs or one of them is not a number.
        bias: mean of b - a over all elements; None as above.
        histogram: for integers: b - a to number of elements, the 32 differences nearest to 0 and ``"other"``; for real
            numbers in units in the last place of A, powers of two: ``"1"``, ``"2"``, ``"4"`` ... and the sign.
        worst: where they lie furthest apart.
        per_channel: share of differing elements per index of the last axis (of the channel axis where one is known);
            empty when nothing differs.
        plane: share of differing elements per row and column of images [N, H, W, C], thinned out to 64 x 64; empty
            for other shapes or when nothing differs.
    """

    elements: int
    differing: int
    largest: float | None = None
    bias: float | None = None
    histogram: dict[str, int] = field(default_factory=dict)
    worst: Worst | None = None
    per_channel: tuple[float, ...] = ()
    plane: tuple[tuple[float, ...], ...] = ()

    @property
    def equal(self) -> bool:
        return self.differing == 0

    @property
    def share(self) -> float:
        return self.differing / self.elements if self.elements else 0.0


@dataclass(frozen=True)
class Cause:
    """One rule or fault that gives B's bits.

    Attributes:
        name: stable, for example ``"rescale=q31_one_step_up"`` or ``"input zero point ignored"``.
        text: for people: what B does, and instead of what.
        kind: ``"rounding"``, ``"range"``, ``"order"``, ``"table"``, ``"parameters"``, ``"geometry"``, ``"data"``.
        benign: whether it is another legal arithmetic, and no fault.
        slot, rule, instead: for rules: the slot, B's rule, A's rule.
        numerics: numerics that use it for such an operator.
        elements: how many differing elements it accounts for.
        formula: of B's rule.
    """

    name: str
    text: str
    kind: str
    benign: bool
    slot: str = ""
    rule: str = ""
    instead: str = ""
    numerics: tuple[str, ...] = ()
    elements: int = 0
    formula: str = ""


@dataclass(frozen=True)
class Verdict:
    """Why one tensor's isolated difference is what it is.

    Attributes:
        differing: elements that differ when A's arithmetic gets B's inputs.
        causes: what accounts for them; empty when nothing was found.
        exact: the causes together give every bit of B's tensor.
        unexplained: elements that no cause accounts for.
        text: one sentence, for example "80 of 51,200 elements differ, all by 1; all are explained by ...".
        also: other causes that fit as well; none of the inputs tells them apart, more inputs do.
        alike: others that fit, and that further random inputs do not tell from the first cause either.
        witness: one element, worked out: `Explanation.to_dict()` of A's arithmetic, with ``"theirs"``: B's value, and
            ``"other"``: the explanation under B's rule where there is one. Empty without one.
        command: replays that element.
        accumulators: smallest and largest accumulator of the tensor, and the bound that was proven; empty without them.
        ties: for up to 512 elements [distance to the nearest tie, b - a], differing ones first; empty without them.
        described: where something is unexplained: what is true of all differing elements, `compare.description`.
    """

    differing: int
    causes: tuple[Cause, ...] = ()
    exact: bool = False
    unexplained: int = 0
    text: str = ""
    also: tuple[str, ...] = ()
    witness: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    accumulators: tuple[int, int, int] | None = None
    ties: tuple[tuple[float, float], ...] = ()
    alike: tuple[str, ...] = ()
    described: tuple[str, ...] = ()

    @property
    def inexact(self) -> bool:
        """Whether a numerics records that its bits are not the runtime's here: neither explained nor unexplained."""
        return bool(self.differing) and not self.exact and not self.unexplained

    @property
    def benign(self) -> bool:
        return self.exact and all(cause.benign for cause in self.causes)


@dataclass(frozen=True)
class Pair:
    """Two tensors that stand for the same thing.

    Attributes:
        a, b: names.
        node: position of A's node; None for inputs and where A has no model.
        source, operator: of that node; empty without one.
        dtype_a, dtype_b: short type names.
        shape: as A has it.
        layout: how B's axes were brought to A's: ``"same"``, ``"NCHW to NHWC"``, a permutation such as
            ``"axes 0 2 3 1"``, ``"reshaped"``.
        how: why they were matched: ``"name"``, ``"given"``, ``"order and shape"``, ``"values"``.
        cumulative: B against A, each along its own chain.
        isolated: B against A's arithmetic on B's inputs; None where A cannot be run alone there.
        verdict: on the isolated difference; None when there is none.
        note: why there is no isolated difference, or why the tensors cannot be compared.
        is_output: of A's model.
    """

    a: str
    b: str
    node: int | None
    source: str
    operator: str
    dtype_a: str
    dtype_b: str
    shape: tuple[int, ...]
    layout: str
    how: str
    cumulative: Statistics
    isolated: Statistics | None = None
    verdict: Verdict | None = None
    note: str = ""
    is_output: bool = False

    @property
    def equal(self) -> bool:
        """Whether the tensors can be compared, and have equal bytes."""
        return self.cumulative.equal and not self.note.startswith("cannot")


@dataclass(frozen=True)
class Downstream:
    """What one isolated difference does further on, everything else being A's arithmetic.

    Attributes:
        tensor: where the difference was put in.
        reached: per tensor behind it: name and share of differing elements, in execution order.
        outputs: statistics per output.
        labels: per input: A's top-1 index and that with the difference; empty when the output is no list of scores.
    """

    tensor: str
    reached: tuple[tuple[str, float], ...]
    outputs: dict[str, Statistics]
    labels: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, repr=False)
class CompareResult(Result):
    """Everything about one comparison.

    Attributes:
        a, b: the sides.
        inputs: per input set: what was fed, in words (file, or "random values, seed 0").
        pairs: matched tensors in A's execution order.
        unmatched_a, unmatched_b: names of tensors without a partner.
        amplification: with ``--amplify``.
        passes: with ``--passes``: what bisecting the optimiser found, in words and figures.
        seconds: it took.
        version: of bittrue.
        date: ISO.
        notes: anything else that the reader must know.
        host: ``"A"``, or ``"B"`` where only B's graph and arithmetic are known: then isolated differences are those of
            A's values against B's arithmetic on A's inputs, and verdicts say what A does; empty where neither is known.
    """

    a: Side
    b: Side
    inputs: tuple[str, ...]
    pairs: tuple[Pair, ...]
    unmatched_a: tuple[str, ...] = ()
    unmatched_b: tuple[str, ...] = ()
    amplification: tuple[Downstream, ...] = ()
    passes: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    version: str = ""
    date: str = ""
    notes: tuple[str, ...] = ()
    host: str = "A"

    @property
    def equal(self) -> bool:
        """Whether there are matched tensors, and all of them have equal bytes."""
        return bool(self.pairs) and all(pair.equal for pair in self.pairs)

    @property
    def first(self) -> Pair | None:
        """The first tensor in execution order that differs."""
        return next((pair for pair in self.pairs if not pair.cumulative.equal), None)

    @property
    def unexplained(self) -> int:
        """Elements of isolated differences that no rule accounts for."""
        return sum(pair.verdict.unexplained for pair in self.pairs if pair.verdict is not None)

    @property
    def headline(self) -> str:
        sides = f"{self.a.title} against {self.b.title}"
        if not self.pairs:
            return f"{sides}: nothing was compared"
        if self.equal:
            return f"{sides}: equal, {plural(len(self.pairs), 'tensor')}"
        differing = sum(not pair.cumulative.equal for pair in self.pairs)
        first = "" if self.first is None else f", the first is '{self.first.a}'"
        return (
            f"{sides}: {differing:,} of {plural(len(self.pairs), 'tensor')} differ{first}; "
            f"{plural(self.unexplained, 'element')} unexplained"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; numbers that JSON has no words for are ``"nan"``, ``"inf"`` and ``"-inf"``."""
        found: dict[str, Any] = {"format": FORMAT, "equal": self.equal, **plain(self)}
        return found

    @classmethod
    def from_dict(cls, data: Any, place: str = "result") -> CompareResult:
        """The result that `to_dict` made plain data of.

        Raises:
            InputError: it is none, or a damaged one; the place in it is named.
        """
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            advice = "write one with `bittrue compare A B --output RESULT.json`"
            raise InputError("BT-RESULT", f"no comparison of format {FORMAT}", place=place, advice=advice)
        try:
            return read(cls, data, place)
        except RecursionError:
            raise InputError("BT-RESULT", "nested too deeply", place=place) from None
