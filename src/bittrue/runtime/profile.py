"""Profiles: where the time of a run goes, step by step, and how that compares with what the machine can do."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..names import brief, distinct
from ..operators import Step, find
from ..plan import Plan
from ..records import dataclass
from ..visible import visible
from .isa import native_module

_NAME_WIDTH = 28


@dataclass(frozen=True)
class StepTime:
    """The time of one executed step.

    Attributes:
        position: position of the step in the plan; of the first one when an executor runs several as one.
        label: how the plan's text names it, for example ``"#12"``.
        operator: stem of the operator.
        name: names of the tensors that it computes.
        shape: type and shape of the first of them.
        seconds: median over the rounds.
        work: multiply-accumulates, or elements for operators that have none.
        bytes: what it must read and write at least once: inputs, constants and outputs.
        note: what the executor says about it, for example which kernel ran.
    """

    position: int
    label: str
    operator: str
    name: str
    shape: str
    seconds: float
    work: int
    bytes: int
    note: str = ""

    @property
    def multiply_adds(self) -> int:
        """Multiply-accumulates; 0 for operators that have none."""
        operator = find(self.operator)
        return self.work if operator is not None and operator.multiplies else 0

    @property
    def multiply_adds_per_second(self) -> float | None:
        return self.multiply_adds / self.seconds if self.multiply_adds and self.seconds > 0 else None

    @property
    def bytes_per_second(self) -> float | None:
        return self.bytes / self.seconds if self.seconds > 0 else None


@dataclass(frozen=True)
class Profile:
    """Step times of one session.

    Attributes:
        title: name of the graph.
        steps: in execution order.
        rounds: how many runs the medians are of.
        executor, isa, threads: what ran.
        peak_multiply_adds_per_second: measured on one core of this machine, right before; None when unknown.
        peak_bytes_per_second: read and written by one core inside of its caches, likewise.
    """

    title: str
    steps: tuple[StepTime, ...]
    rounds: int
    executor: str
    isa: str | None = None
    threads: int = 1
    peak_multiply_adds_per_second: float | None = None
    peak_bytes_per_second: float | None = None

    @property
    def seconds(self) -> float:
        """Sum of the step medians. It leaves out what a run does between steps, so it is no whole-model figure."""
        return sum(step.seconds for step in self.steps)

    @property
    def multiply_adds(self) -> int:
        return sum(step.multiply_adds for step in self.steps)

    def fraction_of_peak(self, multiply_adds_per_second: float | None) -> float | None:
        """Of what all threads of the session could do at the measured peak of one core."""
        if multiply_adds_per_second is None or not self.peak_multiply_adds_per_second:
            return None
        return multiply_adds_per_second / (self.peak_multiply_adds_per_second * self.threads)

    def roof(self, step: StepTime) -> tuple[float, str] | None:
        """The seconds that a step takes at least at the measured peaks, and of what: "arithmetic" or "memory"."""
        arithmetic, memory = self.peak_multiply_adds_per_second, self.peak_bytes_per_second
        bounds = [(step.multiply_adds / (arithmetic * self.threads), "arithmetic")] if arithmetic else []
        bounds += [(step.bytes / (memory * self.threads), "memory")] if memory else []
        return max(bounds, default=None)

    def fraction_of_roof(self, steps: Sequence[StepTime]) -> float | None:
        """What the steps take at least, of what they took; None where no peak is known."""
        roofs, seconds = [self.roof(step) for step in steps], sum(step.seconds for step in steps)
        return sum(roof[0] for roof in roofs if roof) / seconds if seconds > 0 and all(roofs) else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "title": self.title,
            "executor": self.executor,
            "isa": self.isa,
            "threads": self.threads,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "multiply_adds": self.multiply_adds,
            "peak_multiply_adds_per_second": self.peak_multiply_adds_per_second,
            "peak_bytes_per_second": self.peak_bytes_per_second,
            "steps": [
                {
                    **vars(step),
                    "multiply_adds_per_second": step.multiply_adds_per_second,
                    "fraction_of_peak": self.fraction_of_peak(step.multiply_adds_per_second),
                    "bytes_per_second": step.bytes_per_second,
                    "fraction_of_roof": self.fraction_of_roof([step]),
                    "bound": roof[1] if (roof := self.roof(step)) else None,
                }
                for step in self.steps
            ],
        }

    def __repr__(self) -> str:
        return (
            f"Profile({brief(self.title)}, {len(self.steps):,} steps, {self.seconds * 1e6:,.1f} us, medians of "
            f"{self.rounds} rounds, {self.executor}{f' ({self.isa})' if self.isa else ''})"
        )

    def __str__(self) -> str:
        return "\n".join(map(visible, _profile_lines(self)))


def step_time(plan: Plan, position: int, seconds: float, note: str = "", executed: Step | None = None) -> StepTime:
    """The step at `position` of the plan with its measured time, as it was `executed` where that is another one."""
    step = executed or plan.steps[position]
    first = plan.tensors[step.outputs[0]] if step.outputs else None
    touched = dict.fromkeys([*(i for i in step.inputs if i is not None), *step.outputs])
    return StepTime(
        position=position,
        label=f"#{step.index}",
        operator=step.operator,
        name=", ".join(plan.tensors[i].name for i in step.outputs),
        shape="" if first is None else f"{first.dtype}[{','.join(map(str, first.shape))}]",
        seconds=seconds,
        work=step.work,
        bytes=sum(plan.tensors[i].bytes for i in touched),
        note=note,
    )


def step_medians(runs: Sequence[Sequence[float]]) -> list[float]:
    """Median per step of several runs; each run is its timestamps: the start, then the end of every step."""
    import statistics

    spans = [[end - start for start, end in itertools.pairwise(run)] for run in runs]
    return [statistics.median(of_step) for of_step in zip(*spans, strict=True)]


def machine_peak(isa: str | None) -> float | None:
    """Measured 8-bit multiply-accumulates per second of one core (`isa` None: the best one here).

    None without the C++ core.
    """
    module = native_module()
    return None if module is None else float(module.peak_multiply_adds(isa))


def machine_byte_rate() -> float:
    """Measured bytes per second that one core reads and writes by vectors inside of its caches."""
    first, second = np.zeros(1 << 16, np.uint8), np.zeros(1 << 16, np.uint8)
    best = float("inf")
    for _ in range(200):
        begin = time.perf_counter()
        np.maximum(first, second, out=first)
        best = min(best, time.perf_counter() - begin)
    return 3 * first.nbytes / best


Row = tuple[str, ...]


def heading(profile: Profile) -> Iterator[str]:
    """What was measured and what it adds up to, line by line."""
    isa = f" ({profile.isa})" if profile.isa else ""
    threads = f"{profile.threads} thread{'s' if profile.threads > 1 else ''}"
    yield f"profile of '{profile.title}': executor {profile.executor}{isa}, {threads}, {profile.rounds} rounds"
    total = profile.seconds
    rate = profile.multiply_adds / total if total > 0 and profile.multiply_adds else None
    line = f"{len(profile.steps)} steps, sum of their medians {1e6 * total:,.1f} us"
    if rate is not None:
        line += f", {profile.multiply_adds:,} multiply-accumulates, {_giga(rate)} GMAC/s"
    peak = profile.peak_multiply_adds_per_second
    if peak is not None:
        line += f"; measured peak of one core {_giga(peak)} GMAC/s"
    if profile.peak_bytes_per_second is not None:
        line += f", {_giga(profile.peak_bytes_per_second)} GB/s in its caches"
    yield line
    if any(step.work and not step.multiply_adds for step in profile.steps):
        yield "work counts multiply-accumulates, or elements where there is no GMAC/s"


def step_rows(profile: Profile) -> list[Row]:
    """One row per step, below titles."""
    total = profile.seconds
    rows: list[Row] = [("", "operator", "output", "", "us", "share", "work", "GMAC/s", "of peak", "GB/s", "note")]
    for step in profile.steps:
        speed = step.multiply_adds_per_second
        rows.append(
            (
                step.label,
                step.operator,
                step.shape,
                step.name,
                f"{1e6 * step.seconds:,.1f}",
                _percent(step.seconds / total if total > 0 else None),
                f"{step.work:,}",
                _giga(speed),
                _percent(profile.fraction_of_roof([step])),
                _giga(step.bytes_per_second),
                step.note,
            )
        )
    return rows


def _profile_lines(profile: Profile) -> Iterator[str]:
    yield from heading(profile)
    yield ""
    rows = step_rows(profile)
    names = ["", *distinct([step.name for step in profile.steps], _NAME_WIDTH)]
    yield from _aligned([(*row[:3], name, *row[4:]) for row, name in zip(rows, names, strict=True)], "<<<<>>>>>><")
    if len(profile.steps) > 1:
        yield ""
        yield from _aligned(operator_rows(profile), "<>>>>>>")


def operator_rows(profile: Profile) -> list[Row]:
    """Operators with their steps' time, the largest first, below titles."""
    groups: dict[str, list[StepTime]] = {}
    for step in profile.steps:
        groups.setdefault(step.operator, []).append(step)
    rows: list[Row] = [("operator", "steps", "us", "share", "work", "GMAC/s", "of peak")]
    for operator, steps in sorted(groups.items(), key=lambda item: -sum(s.seconds for s in item[1])):
        seconds = sum(step.seconds for step in steps)
        multiply_adds = sum(step.multiply_adds for step in steps)
        speed = multiply_adds / seconds if multiply_adds and seconds > 0 else None
        rows.append(
            (
                operator,
                str(len(steps)),
                f"{1e6 * seconds:,.1f}",
                _percent(seconds / profile.seconds if profile.seconds > 0 else None),
                f"{sum(step.work for step in steps):,}",
                _giga(speed),
                _percent(profile.fraction_of_roof(steps)),
            )
        )
    return rows


def _aligned(rows: Sequence[Sequence[str]], alignment: str) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(alignment))]
    for row in rows:
        cells = (f"{cell:{side}{width}}" for cell, side, width in zip(row, alignment, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _giga(per_second: float | None) -> str:
    return "-" if per_second is None else f"{per_second / 1e9:,.2f}"


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:.1f} %"
