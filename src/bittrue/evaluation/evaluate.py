"""`evaluate`: a data set through a model under several arithmetics."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from typing import Any

from .. import __version__
from ..api import load
from ..errors import InputError
from ..files import read_file
from ..importers import companion
from ..names import near_or_all
from ..runtime.side_by_side import available_processors
from .classes import class_names, notes_on_classes
from .cluster import Job, node_facts, rows_on_ray
from .metrics import Metric
from .recipes import METADATA, Recipe, find_recipe, labels_of, recipe_of
from .results import FORMAT, PART_ROWS, Folder, folder_on_disk
from .rows import Row, Workers
from .sources import Sample, Source, open_source
from .sources.renumbered import renumbered
from .subjects import model_file, open_team, ready, several_inputs, usual, versions
from .tally import Tally
from .tasks import Task, find_task

# A part is written when it is full, or so many seconds have passed.
_PART_SECONDS = 5.0
# So many rows become columns at once.
_TABLE_ROWS = 64

# Where samples are run.
ENGINES = ("local", "ray")

# (samples done, samples in all)
Progress = Callable[[int, int], None]


def evaluate(
    model: str | os.PathLike[str] | bytes,
    data: Source | str | os.PathLike[str],
    *,
    weights: str | os.PathLike[str] | bytes | None = None,
    numerics: Sequence[str] = (),
    against: Sequence[str] = (),
    recipe: Recipe | str = "raw",
    task: Task | str = "classification",
    metric: Metric | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] = (1, 1),
    threads: int | None = None,
    executor: str = "auto",
    isa: str | None = None,
    engine: str = "local",
    address: str | None = None,
    on_error: str = "skip",
    reset: bool = True,
    require: Mapping[str, float] | None = None,
    baseline: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run every sample of a data set under every arithmetic, and add up what comes out.

    Args:
        model: a model file, or its bytes.
        data: where samples come from; see `bittrue.evaluation.sources.open_source`.
        weights: the second file of formats that have one; see `bittrue.load`.
        numerics: names of arithmetics; flips are counted between each pair. None: that of the file's format.
        against: real runtimes that are installed here, beside the arithmetics: ``"litert:builtin_ref"``,
            ``"litert:optimized"``, ``"litert:xnnpack"``, ``"ort"``, ``"openvino"``; options as ``"ort?level=basic"``.
        recipe: how a sample becomes an input: a `Recipe`, the name of a built-in one or a TOML file; ``"metadata"``: as
            the model's own file says.
        task: the question that the model answers: a `Task`, one's own among them, or a name.
        metric: a function for further figures. For every arithmetic it is called once with a list of mappings, one per
            sample without an error: ``id``, ``position``, ``label`` (None where there is none), ``prediction``,
            ``margin`` and what else rows have of the task's (``top`` and ``scores``). It returns a number, called like
            the function, or numbers by name; its attribute ``figures`` names these, if they are to be required. Those
            named in its attribute ``lower`` are the better the lower they are. A class instead of a function is made
            once per arithmetic, gets each mapping by ``add`` and gives the figures by ``result``: no row is kept.
        output: a folder for a row per sample in Parquet, and the summary; None: nothing is written.
        resume: go on where an earlier run with the same arguments ended.
        limit: only the first so many samples.
        shard: (I, N): only every N-th sample, from the I-th on, counted from 1.
        threads: samples in progress at once; None: as many as this process may use processors. With Ray, those of each
            actor, which asks for as many processors; None: one.
        executor, isa: as for `Model.prepare`; the results never depend on them.
        engine: where samples are run: ``"local"``: in this process; ``"ray"``: on nodes of a Ray cluster, which find
            the data under the same names. The results never depend on it.
        address: of the cluster: ``"auto"``: the one that this machine belongs to; ``"HOST:PORT"``; None: the one that
            this process is connected to, the one in RAY_ADDRESS, the one of this machine, or one that is begun for this
            evaluation.
        on_error: what a sample with an error does: ``"skip"``: it is a row with its error; ``"stop"``: it is the end.
        reset: whether every sample begins with the first values of variable tensors. False: they go on from sample to
            sample, as in a loop over one interpreter; then there is one thread, one shard, and nothing to resume.
        require: least values of figures of the first arithmetic, such as ``{"top1": 0.7}``, and largest ones of errors
            (``{"mae": 0.1}``); ``"flips"``: how many answers may flip between any two arithmetics.
        baseline: the folder of an earlier result of the same samples, by another version, model or recipe.
        progress: called with the numbers of samples done and in all.

    Returns:
        What was asked for and the summary, as plain data: ``samples``, ``labelled``, ``errors`` and their ``examples``
        by code, ``metrics`` by arithmetic or runtime, ``flips`` by pair of them, each sample with the ``command`` that
        explains it, ``digests`` by each, ``digest`` of all bits, ``notes`` on the numbers of classes, ``unmet``: a
        sentence for every requirement that is not met, ``seconds``, and with a baseline ``baseline``: what changed
        against it.

    Raises:
        InputError: arguments that do not fit, or a recipe that cannot make this model's input of these samples.
        BittrueError: whatever is wrong with the model.
    """
    start = time.monotonic()
    if on_error not in ("skip", "stop"):
        raise InputError("BT-ERRORS", f"unknown on_error={on_error!r}", advice="choose skip or stop")
    index, count = shard
    if not 1 <= index <= count:
        raise InputError("BT-SHARD", f"a shard is I/N with I from 1 to N, found {index}/{count}")
    if limit is not None and limit < 1:
        raise InputError("BT-LIMIT", f"at least one sample is evaluated, found {limit}", place="limit")
    if engine not in ENGINES:
        raise InputError("BT-ENGINE", f"unknown engine '{engine}'", advice=near_or_all(engine, ENGINES, "there are"))
    if address is not None and engine != "ray":
        raise InputError("BT-RAY-ADDRESS", "has no effect without the engine ray", place="address")
    if not reset and (resume or count > 1 or (threads or 1) > 1 or engine != "local"):
        raise InputError(
            "BT-EVALUATE-STATE",
            "variables go on from sample to sample, so all samples are run in order by one thread",
            place="reset=False",
            advice="leave out threads, shard, resume and engine, or let every sample begin with the first values",
        )
    given = {"model": _text(model), "data": _text(data), "recipe": _text(recipe)}
    if weights is None and not isinstance(model, bytes):
        weights = companion(model)
    loaded = load(model, weights)
    source = data if isinstance(data, Source) else open_source(data, several_inputs(loaded))
    content = model if isinstance(model, bytes) else read_file(model)
    labels = labels_of(loaded, content)
    numbering: Sequence[str] = ()
    if recipe == METADATA:
        recipe = recipe_of(loaded, content, source.holds)
        numbering = labels
        source = renumbered(source, numbering)
        given["recipe"] = given["model"]
    recipe = recipe if isinstance(recipe, Recipe) else find_recipe(recipe, source.holds)
    if not isinstance(task, Task):
        task = find_task(task, recipe.task)
    elif recipe.task:
        raise InputError("BT-TASK", "the recipe has a table [task], and the task is made already", place=recipe.name)
    names = list(dict.fromkeys(numerics)) or [usual(loaded)]
    runtimes = versions(against, loaded)
    team = open_team(loaded, model_file(loaded, model), names, runtimes, executor=executor, isa=isa, reset=reset)
    first = team[names[0]]
    recipe.check_all(source, first.inputs)
    task.check(first.inputs, first.outputs)
    classes = class_names(source, labels, task, first.outputs)
    asked = {
        "format": FORMAT,
        "bittrue": __version__,
        "given": given,
        "model": [_digest(part) for part in (model, weights) if part is not None],
        "inputs": [{"name": port.name, "dtype": str(port.dtype), "shape": list(port.shape)} for port in first.inputs],
        "data": {"kind": source.kind, "samples": len(source), "classes": classes},
        "notes": notes_on_classes(source, labels, task, first.outputs),
        "recipe": recipe.to_dict(),
        "task": task.name,
        "numerics": names,
        "against": runtimes,
        "reset": reset,
        "limit": limit,
        "shard": [index, count],
    }
    positions = range(index - 1, len(source) if limit is None else min(limit, len(source)), count)
    tally = Tally(asked, task, metric, require, baseline)
    folder = None if output is None else Folder(folder_on_disk(output), asked, task, resume=resume)
    done = 0
    if folder is not None:
        for row in folder.rows():
            tally.add(row)
            done += 1
    left = positions[done:]
    opened: AbstractContextManager[Iterator[Row]] = nullcontext(iter(()))
    if left:
        ready(team)
    if left and engine == "ray":
        open_one = partial(open_team, loaded, numerics=names, against=runtimes, executor=executor, isa=isa, reset=reset)
        facts = node_facts(source, recipe, runtimes, loaded)
        job = Job(loaded, model, data, recipe, task, open_one, threads or 1, facts, numbering)
        opened = rows_on_ray(address, job, source, left, team)
    elif left:
        workers = Workers(recipe, task, team, threads or (available_processors() if reset else 1))
        opened = _rows_here(workers, source.samples(left))
    with opened as rows:
        if folder is not None:
            folder.begin()
        part = _Part(folder, done)
        for row in rows:
            part.add(row)
            tally.add(row)
            done += 1
            if progress is not None:
                progress(done, len(positions))
            if row.code and on_error == "stop":
                part.write()
                raise InputError("BT-EVALUATE-SAMPLE", row.error, place=f"sample '{row.id}'")
        part.write()
    return tally.end(folder, time.monotonic() - start)


@contextmanager
def _rows_here(workers: Workers, samples: Iterable[tuple[int, Sample]]) -> Iterator[Iterator[Row]]:
    with closing(workers), closing(workers.rows(samples)) as rows:
        yield rows


def _text(given: object) -> str:
    """What the user named; nothing where it is no name."""
    return os.fspath(given) if isinstance(given, str | os.PathLike) else ""


def _digest(part: str | os.PathLike[str] | bytes) -> str:
    return hashlib.sha256(part if isinstance(part, bytes) else read_file(part)).hexdigest()


class _Part:
    """Rows that wait to be written, most as columns: so many objects would keep the garbage collector busy.

    Args:
        folder: where they go; None: nowhere.
        first: how many rows stand before them.
    """

    def __init__(self, folder: Folder | None, first: int) -> None:
        self._folder, self._first = folder, first
        self._rows: list[Row] = []
        self._tables: list[Any] = []
        self._count, self._began = 0, time.monotonic()

    def add(self, row: Row) -> None:
        """One more; what is full, or has waited for long, is written."""
        if self._folder is None:
            return
        self._rows.append(row)
        self._count += 1
        if self._count >= PART_ROWS or time.monotonic() - self._began > _PART_SECONDS:
            self.write()
        elif len(self._rows) >= _TABLE_ROWS:
            self._tables.append(self._folder.table(self._rows))
            self._rows = []

    def write(self) -> None:
        """Write what waits."""
        if self._folder is None or not self._count:
            return
        self._folder.write_part(self._first, [*self._tables, self._folder.table(self._rows)])
        self._first += self._count
        self._rows, self._tables = [], []
        self._count, self._began = 0, time.monotonic()
