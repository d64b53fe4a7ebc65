"""Rows of samples from a Ray cluster.

Positions of samples go to actors, a chunk at a time; each actor has opened the source and the model once, and reads its
samples itself. Rows come back in the order of the samples, and whoever asked for them writes them: so parts, summaries
and what `--resume` finds are those of one machine, and a chunk that was lost with its node is done again by Ray.
"""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import __version__
from ..api import Model
from ..errors import BittrueError, InputError, ResourceError, UnsupportedError
from .recipes import Recipe
from .rows import Row, Workers
from .sources import Source, located, open_source
from .sources.renumbered import renumbered
from .subjects import Subject, model_file, ready, several_inputs, versions
from .tasks import Task

# A chunk takes about so long, judged by the first sample: this much is lost with a worker. It has no more samples than:
_CHUNK_SECONDS, _CHUNK_SAMPLES = 1.0, 256
# So many chunks for every actor, so that none waits long for another one at the end.
_CHUNKS_EACH = 4
# A pipeline that has had no actor for so long does not get one.
PATIENCE = 60.0
# Actors that may die while they begin, one after the other.
_DEATHS = 5
# Until an address that is there has answered, and until a pipeline that is told to end has.
_CONNECT_SECONDS, _END_SECONDS = 5.0, 10.0
_BEGIN = "`ray start --head` begins one; RAY_AUTH_MODE=token is for those that ask for a token"
_ADVICE = "finished parts are kept: the same command with --resume goes on from there"


@dataclass(frozen=True)
class Job:
    """What actors need to make rows; what does not depend on the chunk.

    Attributes:
        model: the model, read.
        given: its file or bytes, for real runtimes.
        data: what `open_source` takes, or a source that can be pickled.
        recipe, task: as for `Workers`.
        open_one: opens what answers; it takes the path of the model.
        threads: of each actor.
        facts: those of this process; see `node_facts`.
        labels: names of classes by which the source's are numbered; empty: they have its own numbers.
    """

    model: Model
    given: str | os.PathLike[str] | bytes
    data: Source | str | os.PathLike[str]
    recipe: Recipe
    task: Task
    open_one: Callable[[Path], Mapping[str, Subject]]
    threads: int
    facts: Mapping[str, Any]
    labels: Sequence[str] = ()

    def located(self) -> Job:
        """The job for processes that stand in another folder."""
        given = self.given if isinstance(self.given, bytes) else os.path.abspath(self.given)
        data = self.data if isinstance(self.data, Source) else located(self.data)
        # What a recipe has made of its steps is made again there.
        return replace(self, given=given, data=data, recipe=replace(self.recipe, _made={}))


def node_facts(source: Source, recipe: Recipe, against: Collection[str], model: Model) -> dict[str, Any]:
    """What must be the same on all nodes."""
    return {
        "bittrue": __version__,
        "samples": len(source),
        "classes": source.classes,
        "libraries": recipe.libraries(),
        "against": versions(list(against), model),
    }


class Opened:
    """A job, opened in the process that does it.

    Args:
        content: a pickled job.
    """

    def __init__(self, content: bytes) -> None:
        self._failure: Exception | None = None
        try:
            job: Job = pickle.loads(content)
            inputs = several_inputs(job.model)
            opened = job.data if isinstance(job.data, Source) else open_source(job.data, inputs)
            self._source = renumbered(opened, job.labels)
            facts = node_facts(self._source, job.recipe, job.facts["against"], job.model)
            differs = [
                f"{name} {facts[name]}, expected {job.facts[name]}" for name in facts if facts[name] != job.facts[name]
            ]
            if differs:
                raise InputError("BT-RAY-NODE", f"it has {'; '.join(differs)}")
            path = model_file(job.model, job.given)
            if job.facts["against"] and not path.is_file():
                raise InputError("BT-RAY-NODE", "there is no such file", place=str(path))
            team = job.open_one(path)
            ready(team)
            self._workers = Workers(job.recipe, job.task, team, job.threads)
        except Exception as error:
            self._failure = error

    def rows(self, positions: range) -> list[Row] | Exception:
        """Rows of the samples at these positions, or why there are none."""
        if self._failure is not None:
            return self._failure
        try:
            return list(self._workers.rows(self._source.samples(positions)))
        except Exception as error:
            return error


@contextmanager
def rows_on_ray(
    address: str | None, job: Job, source: Source, positions: range, team: Mapping[str, Subject]
) -> Iterator[Iterator[Row]]:
    """Rows of the samples at these positions, in their order; what was started for them ends with the block.

    Args:
        address: of the cluster; see `bittrue.evaluate`.
        source, team: the samples and what answers them, as they are here.
        positions: at least one.

    Raises:
        UnsupportedError: Ray is not installed.
        InputError: no cluster at the address, a node that lacks bittrue or files, or something that cannot be sent.
        ResourceError: the cluster has no room for an actor, or was lost.
    """
    ray = _ray()
    with closing(Workers(job.recipe, job.task, team, 1)) as workers, _connected(ray, address):
        actors = _actors(job.threads)
        try:
            content = ray.cloudpickle.dumps(job.located())
        except (TypeError, ValueError, AttributeError, pickle.PicklingError) as error:
            text = f"a part of the evaluation cannot be sent to other nodes: {error}"
            raise InputError("BT-RAY-PICKLE", text) from None
        # The first one is done here: how long it takes says how many are a chunk.
        start = time.monotonic()
        first = list(workers.rows(source.samples(positions[:1])))
        seconds = max(time.monotonic() - start, 1e-6)
        left = positions[1:]
        size = min(_CHUNK_SAMPLES, int(job.threads * _CHUNK_SECONDS / seconds), len(left) // (actors * _CHUNKS_EACH))

        def rows(chunks: Iterator[tuple[str, list[Row]]]) -> Iterator[Row]:
            yield from first
            for node, found in chunks:
                for row in found:
                    # What cannot be read is the same everywhere, or a node lacks it.
                    if row.code and not row.source:
                        (here,) = workers.rows(source.samples(range(row.position, row.position + 1)))
                        if here.code != row.code:
                            text = f"a sample that is here cannot be read there: {row.error}"
                            raise InputError("BT-RAY-FILES", text, place=node)
                    yield row

        with closing(_chunks(ray, content, left, max(size, 1), actors, job.threads)) as chunks:
            yield rows(chunks)


def _chunks(
    ray: Any, content: bytes, positions: range, size: int, actors: int, threads: int
) -> Generator[tuple[str, list[Row]], None, None]:
    """Chunks of rows in order, each with the node that it comes from."""
    if not positions:
        return
    count = -(-len(positions) // size)
    context, begun = ray.data.DataContext.get_current().copy(), _Begun()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.execution_options.preserve_order = True
    context.max_consecutive_actor_init_deaths = _DEATHS
    context.custom_execution_callback_classes = [_watch(begun, threads)]
    try:
        with ray.data.DataContext.current(context):
            # Nothing else in the pipeline takes a processor: tasks that read could be starved by actors that wait for
            # what they read, for ever.
            dataset = ray.data.from_items(list(positions), override_num_blocks=count).map_batches(
                _actor(),
                fn_constructor_args=(ray.put(content), positions.step),
                batch_size=None,
                batch_format="pyarrow",
                compute=ray.data.ActorPoolStrategy(min_size=1, initial_size=min(actors, count), max_size=count),
                num_cpus=threads,
            )
            for table in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
                for line in table.to_pylist():
                    yield _chunk(f"node {line['node']}", pickle.loads(line["content"]))
    except ray.exceptions.RayError as error:
        text = (str(error).strip().splitlines() or [""])[0]
        raise ResourceError("BT-RAY-LOST", f"{type(error).__name__}: {text}", advice=_ADVICE) from None
    finally:
        for executor in begun:
            executor.shutdown(force=True)
            executor.join(_END_SECONDS)


def _chunk(node: str, found: Any) -> tuple[str, list[Row]]:
    """What an actor has sent, or its error with the node in it."""
    if isinstance(found, str):
        raise InputError("BT-RAY-NODE", found, place=node, advice=f"install bittrue {__version__} on every node")
    if isinstance(found, BittrueError):
        place = f"{node}: {found.place}" if found.place else node
        raise type(found)(found.code, found.message, place=place, advice=found.advice)
    if isinstance(found, Exception):
        raise found
    return node, found


class _Begun(list[Any]):
    """What Ray has begun here; other processes, to which Ray sends all that it is told, get an empty list."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return list, ()


def _watch(begun: _Begun, threads: int) -> type:
    """The class of what Ray calls while a pipeline runs: an error ends one that has had no actor for too long.

    It is made in here so that Ray sends it by value: nodes that lack bittrue get it, too.
    """

    class Watch:
        def before_execution_starts(self, executor: Any) -> None:
            import time

            self.last = self.looked = self.asked = time.monotonic()
            from bittrue.evaluation import cluster

            self.needed = cluster.needed()
            begun.append(executor)

        def on_execution_step(self, executor: Any) -> None:
            import time

            from bittrue.evaluation import cluster

            now = time.monotonic()
            if now - self.asked > 0.5:
                self.asked = now
                cluster.check_needed(self.needed)
            if now - self.looked > cluster.PATIENCE / 10:
                self.looked = now
                if cluster.running():
                    self.last = now
                elif now - self.last > cluster.PATIENCE:
                    raise cluster.no_room(threads, f"no actor has been running for {now - self.last:.0f} s")

        def after_execution_succeeds(self, executor: Any) -> None:
            pass

        def after_execution_fails(self, executor: Any, error: Exception) -> None:
            pass

    return Watch


def _actor() -> type:
    """The class of actors. It is made in here so that Ray sends it by value: nodes without bittrue can say so."""

    class Rows:
        def __init__(self, content: Any, step: int) -> None:
            import ray

            self.node, self.step = ray.util.get_node_ip_address(), step
            try:
                from bittrue.evaluation.cluster import Opened

                self.opened = Opened(ray.get(content))
            except ImportError as error:
                self.failure = f"{type(error).__name__}: {error}"

        def __call__(self, batch: Any) -> Any:
            import pickle

            import pyarrow

            if hasattr(self, "opened"):
                positions = batch["item"].to_pylist()
                content = pickle.dumps(self.opened.rows(range(positions[0], positions[-1] + 1, self.step)))
            else:
                content = pickle.dumps(self.failure)
            return pyarrow.table({"node": [self.node], "content": pyarrow.array([content], "binary")})

    return Rows


def _ray() -> Any:
    """Ray with its Data library.

    Raises:
        UnsupportedError: it is not installed.
    """
    try:
        importlib.import_module("ray.data")
        return importlib.import_module("ray")
    except ImportError:
        raise UnsupportedError("BT-PACKAGE", "Ray is not installed", advice='pip install "bittrue[ray]"') from None


@contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    """A connection to the cluster, or to one that begins and ends with this block; one that is there stays."""
    if ray.is_initialized():
        there = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", there):
            raise InputError(
                "BT-RAY-ADDRESS",
                f"this process is connected to {there} already",
                place=address,
                advice="ray.shutdown()",
            )
        yield
        return
    _check_address(address)
    with _quiet():
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            with _silent():
                ray.init(address, log_to_driver=False, logging_level=logging.CRITICAL)
        except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
            text = " ".join(str(error).split())
            raise InputError(
                "BT-RAY-ADDRESS",
                f"no cluster answers: {text}",
                place=address or "",
                advice="`ray start --head` begins one",
            ) from None
        finally:
            # Ray takes some for itself.
            for number, handler in handlers.items():
                with suppress(ValueError):
                    signal.signal(number, handler)
        try:
            yield
        finally:
            ray.shutdown()


def _check_address(address: str | None) -> None:
    """Raises InputError where nobody listens; Ray itself would try for minutes."""
    if address in (None, "auto", "local"):
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal():
        raise InputError(
            "BT-RAY-ADDRESS",
            "expected auto or HOST:PORT",
            place=address,
            advice="run bittrue on a node of the cluster; the address is what `ray start --head` said",
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError("BT-RAY-ADDRESS", f"no cluster answers: {error}", place=address, advice=_BEGIN) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Ray prints nothing: what goes wrong is an error of ours, and Ray's own words are in its log files."""
    added = {"RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_USAGE_STATS_ENABLED": "0"}
    added = {name: value for name, value in added.items() if name not in os.environ}
    handlers = [(one, one.level) for one in logging.getLogger("ray.data").handlers if one.name == "console"]
    worker: Any = importlib.import_module("ray._private.worker")
    os.environ.update(added)
    for handler, _ in handlers:
        handler.setLevel(logging.CRITICAL + 1)
    # What nodes say about workers that have died would stand on standard output; there is no public switch.
    shown, worker._worker_logs_enabled = getattr(worker, "_worker_logs_enabled", True), False
    try:
        yield
    finally:
        worker._worker_logs_enabled = shown
        for handler, level in handlers:
            handler.setLevel(level)
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _silent() -> Iterator[None]:
    """Nothing reaches standard error: Ray's C++ part writes to it that it writes little."""
    sys.stderr.flush()
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def _processors() -> list[float]:
    """Those of every node."""
    return [float(node["Resources"].get("CPU", 0)) for node in _ray().nodes() if node["Alive"]]


def _actors(threads: int) -> int:
    """How many actors the cluster has room for.

    Raises:
        ResourceError: for none.
    """
    count = sum(int(processors // threads) for processors in _processors())
    if not count:
        raise no_room(threads, "no node is large enough for an actor")
    return count


def no_room(threads: int, text: str) -> ResourceError:
    """The error of a pipeline without actors: what they ask for, and what the cluster has."""
    processors = _processors()
    return ResourceError(
        "BT-RAY-RESOURCES",
        f"{text}: each asks for {threads} CPU, the cluster has nodes with "
        f"{', '.join(f'{count:g}' for count in processors) or 'no'} CPU, "
        f"of which {_ray().available_resources().get('CPU', 0):g} are free",
        advice=f"ask for fewer --threads, end what else runs there, or add nodes; {_ADVICE}",
    )


def needed() -> list[tuple[str, int]]:
    """Where those listen without whom Ray ends this process, without a word: the head node, and Ray on this node."""
    context = _ray().get_runtime_context()
    host, _, port = context.gcs_address.rpartition(":")
    own = [node for node in _ray().nodes() if node["NodeID"] == context.get_node_id()]
    return [(host.strip("[]"), int(port)), *((node["NodeManagerAddress"], node["NodeManagerPort"]) for node in own)]


def check_needed(places: Sequence[tuple[str, int]]) -> None:
    """Raises ResourceError when nobody listens at one of these places."""
    for host, port in places:
        with suppress(TimeoutError):
            try:
                socket.create_connection((host, port), _CONNECT_SECONDS).close()
            except ConnectionError:
                text = "the head node of the cluster, or Ray on this node, has gone"
                raise ResourceError("BT-RAY-LOST", text, place=f"{host}:{port}", advice=_ADVICE) from None


def running() -> bool:
    """Whether an actor of this process is running. There is no public call for that without Ray's dashboard."""
    state = importlib.import_module("ray._private.state")
    ray = _ray()
    job = ray.JobID.from_hex(ray.get_runtime_context().get_job_id())
    actors = state.actors(job_id=job, actor_state_name="ALIVE").values()
    return any(actor["ActorClassName"].startswith("MapWorker") for actor in actors)
