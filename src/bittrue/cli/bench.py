"""`bittrue bench`: how fast, where the time goes, and how that stands to other runtimes on the same bytes."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import RenderableType
from rich.text import Text

from .. import __version__, api
from ..measure import Comparison, Contender, Result, compare, environment
from ..measure.chart import check_chart, write_chart
from ..measure.timing import FEWEST_ROUNDS, ratio_text
from ..names import did_you_mean
from ..runners.base import Peer, ports_for
from ..runners.inputs import inputs_of_levels, one_input_set
from ..runners.peers import PEERS
from ..runtime.profile import Profile, heading, machine_peak, operator_rows, step_rows
from .clicking import GroupedCommand
from .common import (
    check_targets,
    console,
    digest,
    executor_name,
    input_options,
    is_plan,
    open_session,
    prepare_options,
)
from .plain import say, say_json
from .tables import Column, table
from .terminal import one_line, waiting

FORMAT = "bittrue-bench-1"
# By format of the model.
_DEFAULT_PEERS = {"onnx": "onnxruntime"}
_OTHERS_PEERS = "litert,xnnpack"
# Reasons for not running that are longer stand below the table.
_LONG_REASON = 90
# Fewest and most rounds of a profile.
_PROFILE = (3, 200)


def _threads(_context: click.Context, _parameter: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        counts = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1:
        raise click.BadParameter(f"'{text}' is no list of thread counts such as 1,2")
    return counts


def _peers(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[Peer, ...] | None:
    if text is None:
        return None
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if names == ["none"]:
        return ()
    unknown = [name for name in names if name not in PEERS]
    if unknown or not names:
        advice = did_you_mean(", ".join(unknown), PEERS, f"choose among {', '.join(PEERS)}, or none")
        raise click.BadParameter(f"no peer '{', '.join(unknown)}'; {advice}")
    return tuple(PEERS[name] for name in names)


@click.command("bench", cls=GroupedCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--against",
    "peers",
    callback=_peers,
    metavar="LIST",
    help=f"Whom to compare with, of {', '.join(PEERS)}; or none.  [default: {_OTHERS_PEERS}; onnxruntime for ONNX]",
)
@click.option("--onnx", type=click.Path(exists=True, dir_okay=False), help="The same network for peers that read ONNX.")
@click.option("--threads", default="1", show_default=True, callback=_threads, metavar="LIST", help="For example 1,2.")
@click.option(
    "--rounds",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    help=f"Interleaved rounds; when --seconds are over it ends early, but not before {FEWEST_ROUNDS}.",
)
@click.option(
    "--seconds",
    default=5.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Time to measure, per number of threads; opening and checking the peers comes on top.",
)
@input_options
@click.option("--profile/--no-profile", "wanted", default=False, help="Also time every step.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--chart", type=click.Path(dir_okay=False, path_type=Path), help="Write bars to this .svg or .png file.")
@prepare_options
def command(
    model: str,
    peers: tuple[Peer, ...] | None,
    onnx: str | None,
    threads: tuple[int, ...],
    rounds: int,
    seconds: float,
    files: tuple[str, ...],
    seed: int | None,
    image_range: tuple[float, float] | None,
    wanted: bool,
    as_json: bool,
    chart: Path | None,
    **prepare: Any,
) -> None:
    """Time MODEL, and compare bytes and time with other runtimes installed here.

    \b
    bittrue bench model.tflite                                        # against LiteRT's two sets of kernels
    bittrue bench model.tflite --against none --profile               # where the time goes
    bittrue bench model.tflite --against xnnpack,openvino --threads 1,2 --chart bars.svg

    All run in this process on the same input bytes and take turns in every round; one call sets the inputs, runs, and
    gets all outputs. A peer whose bytes differ is timed all the same, and the verdict says so.
    """
    check_targets(chart)
    if chart is not None:
        check_chart(chart)
    path = Path(model)
    known = {} if is_plan(model) else {api.load(path, prepare["weights"]).format: path}
    if peers is None:
        names = next((_DEFAULT_PEERS[kind] for kind in known if kind in _DEFAULT_PEERS), _OTHERS_PEERS)
        peers = tuple(PEERS[name] for name in names.split(","))
    if onnx:
        known["onnx"] = Path(onnx)
    whole = prepare["graph"] == "0" and not prepare["outputs"]
    comparisons: list[Comparison] = []
    profiles: list[Profile] = []
    first: dict[str, np.ndarray] = {}
    for count in threads:
        session = open_session(model, threads=count, **prepare)
        if not comparisons:
            values, remarks = one_input_set(session.inputs, files, seed, image_range, inputs_of_levels(session.plan))
        outputs = session.run(values)
        first = first or outputs
        with waiting(f"measuring with {_count(count, 'thread')}, about {seconds:g} s"):
            measured = compare(
                Contender(functools.partial(session.run, values), outputs, _note(session, first, outputs)),
                peers,
                known,
                ports_for(session.inputs, values),
                [values[port.name] for port in session.inputs],
                threads=count,
                rounds=rounds,
                seconds=seconds,
                version=__version__,
                refuse="" if whole else "peers run the whole first graph, not what --graph and --until choose",
            )
            comparisons.append(measured)
            if wanted:
                profiles.append(_profile(session, values, measured, seconds))
    machine = environment(__version__, peers)
    machine["peak_multiply_adds_per_second"] = machine_peak(session.isa)
    if as_json:
        say_json(_as_json(path, session, values, first, remarks, machine, comparisons, profiles))
    else:
        _print(path, session, remarks, machine, comparisons, profiles)
    if chart is not None:
        title = f"{path.name}: numerics {session.plan.numerics}, executor {executor_name(session)}"
        write_chart(chart, title, _machine_line(machine), comparisons)
        say(f"chart written to {chart}", err=as_json)


def _note(session: api.Session, first: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> str:
    if any(first[name].tobytes() != value.tobytes() for name, value in outputs.items()):
        return "BYTES DIFFER from those with another number of threads: please report this"
    if session.executor == "reference" and os.environ.get("OPENBLAS_NUM_THREADS") != str(session.threads):
        return f"matrix products use as many threads as NumPy's BLAS is set to: OPENBLAS_NUM_THREADS={session.threads}"
    return ""


def _profile(session: api.Session, values: dict[str, np.ndarray], measured: Comparison, seconds: float) -> Profile:
    """As many rounds as fit into half the time of the comparison, within reason."""
    median = measured.ours.timing.median if measured.ours.timing else seconds
    return session.profile(values, rounds=int(min(max(0.5 * seconds / median, _PROFILE[0]), _PROFILE[1])))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _machine_line(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    load = "" if machine["load"] is None else f", load {machine['load']}"
    peak = machine["peak_multiply_adds_per_second"]
    measured = "" if peak is None else f", measured peak {peak / 1e9:.1f} GMAC/s a core"
    return (
        f"{machine['date']}, {machine['cpu']}, {machine['architecture']}, "
        f"{machine['usable_cores']} of {_count(machine['cores'], 'core')}{measured}{load}; {versions}"
    )


def _print(
    path: Path,
    session: api.Session,
    remarks: list[str],
    machine: dict[str, Any],
    comparisons: list[Comparison],
    profiles: list[Profile],
) -> None:
    out = console()
    numerics = f"numerics {session.plan.numerics} ({session.plan.reproduces})"
    out.print(one_line((path.name, "bold"), f", {numerics}, executor {executor_name(session)}"))
    for text in (*remarks, _machine_line(machine), " ".join(machine["flags"])):
        out.print(text)
    for comparison in comparisons:
        out.print()
        out.print(_table(comparison, out.width))
        if len(comparison.results) > 1:
            out.print(comparison.conclusion, style="bold")
        for result in comparison.results:
            for remark in result.remarks:
                out.print(f"{result.name}: {remark}")
            if len(result.problem) > _LONG_REASON:
                out.print(f"{result.name}: {result.problem}")
    for profile in profiles:
        out.print()
        for line in heading(profile):
            out.print(line)
        out.print(_step_table(profile, out.width))
        if len(profile.steps) > 1:
            out.print(_operator_table(profile, out.width))


def _table(comparison: Comparison, width: int) -> RenderableType:
    columns = [Column("runtime", "text", room=24), Column("version", least=2), Column("min ms", right=True, least=1)]
    columns += [Column("median ms", right=True), Column("time ratio (range)", right=True)]
    columns.append(Column("output bytes", "text"))
    title = f"{_count(comparison.threads, 'thread')}, {comparison.rounds} interleaved rounds"
    return table(columns, [_cells(result) for result in comparison.results], width, title)


def _step_table(profile: Profile, width: int) -> RenderableType:
    titles, *rows = step_rows(profile)
    # What matters least is left out first; the name's column has no title.
    least = {"output": 2, "work": 3, "GB/s": 5, "of peak": 4, "note": 1}
    kinds = {"": "name", "note": "text"}
    columns = [Column(titles[0])]
    columns += [
        Column(title or "tensor", kinds.get(title, "fixed"), 4 <= i < 10, least.get(title, 0))
        for i, title in enumerate(titles[1:], 1)
    ]
    return table(columns, rows, width)


def _operator_table(profile: Profile, width: int) -> RenderableType:
    titles, *rows = operator_rows(profile)
    return table([Column(title, right=i > 0) for i, title in enumerate(titles)], rows, width, "by operator")


def _cells(result: Result) -> list[str | Text]:
    if result.timing is None:
        reason = "see below" if len(result.problem) > _LONG_REASON else result.problem
        return [result.title, result.version, "-", "-", "-", Text(f"not run: {reason}", style="yellow")]
    timing, ratio = result.timing, result.ratio
    times = [f"{1e3 * timing.minimum:.4g}", f"{1e3 * timing.median:.4g}"]
    if ratio is None:
        return [Text(result.title, style="bold"), result.version, *times, "1", ""]
    against = Text(f"{ratio_text(ratio.median)} ({ratio_text(ratio.low)}-{ratio_text(ratio.high)})")
    # Colours only where every round agrees.
    against.stylize("green" if ratio.low > 1 else "red" if ratio.high < 1 else "")
    style = "green" if all(d.equal for d in result.differences) else "yellow"
    return [result.title, result.version, *times, against, Text(result.verdict, style=style)]


def _as_json(
    path: Path,
    session: api.Session,
    values: dict[str, np.ndarray],
    outputs: dict[str, np.ndarray],
    remarks: list[str],
    machine: dict[str, Any],
    comparisons: list[Comparison],
    profiles: list[Profile],
) -> dict[str, Any]:
    def described(arrays: dict[str, np.ndarray]) -> list[dict[str, Any]]:
        return [
            {"name": name, "dtype": str(a.dtype), "shape": list(a.shape), "sha256": digest(a)}
            for name, a in arrays.items()
        ]

    content = np.frombuffer(path.read_bytes(), np.uint8)
    return {
        "format": FORMAT,
        "model": {"file": path.name, "bytes": content.size, "sha256": digest(content)},
        "numerics": session.plan.numerics,
        "executor": session.executor,
        "isa": session.isa,
        "work": session.plan.work,
        "inputs": described(values),
        "outputs": described(outputs),
        "remarks": remarks,
        "environment": machine,
        "comparisons": [c.to_dict() for c in comparisons],
        "profiles": [p.to_dict() for p in profiles],
    }
