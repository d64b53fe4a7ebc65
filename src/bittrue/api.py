"""The public API: `load` a model, `prepare` it under a numerics, `run` or `trace` it."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from . import numerics as numerics_tables
from .errors import (
    BittrueError,
    InexactWarning,
    InputError,
    StoppedError,
    UnsupportedError,
    caller_level,
    memory_errors,
)
from .graph import Graph, ModelFile
from .importers import read_model
from .names import brief, by_number, did_you_mean, near_or_all
from .plan import DEFAULT_MEMORY_LIMIT, Plan
from .plan.first_plan import first_plan, free_axes
from .plan.inexact import counted
from .plan.planner import plan_for
from .ports import Port, checked
from .recent import Recent
from .records import replace
from .runtime import DEFAULT_ITERATION_LIMIT, NativeExecutor, native_module
from .runtime.run import Run, deadline_of, timeout_seconds
from .uncollected import uncollected

if TYPE_CHECKING:
    from .runtime import ReferenceExecutor
    from .runtime.profile import Profile

# A typing error should not start a million threads.
MAX_THREADS = 1024
_SHOWN_NOTES = 2
# Sessions for other shapes that are kept; a program with more of them prepares again.
_KEPT = 16
# Inputs and outputs that `repr` names.
_SHOWN_PORTS = 3
EXECUTORS = ("auto", "native", "reference")
_ERRORS = ("raise", "return")
Item = TypeVar("Item")
Result = TypeVar("Result")

# What `map` hands to a thread at once, at most. Outputs of native runs lie in one array per chunk, which a result that
# is kept keeps, too.
_CHUNK_SAMPLES, _CHUNK_INPUT_BYTES, _CHUNK_OUTPUT_BYTES = 4096, 1 << 23, 1 << 18


class Model:
    """A model read from a file, not yet bound to any numerics. `print(model)` shows what is inside.

    Attributes:
        file: everything that was read.
        graph: the main graph.
        graphs: all graphs of the file.
        notes: deviations that the reader accepted.
    """

    def __init__(self, file: ModelFile) -> None:
        self.file = file

    @property
    def format(self) -> str:
        return self.file.format

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return self.file.graphs

    @property
    def graph(self) -> Graph:
        return self.file.graphs[0]

    @property
    def notes(self) -> tuple[str, ...]:
        return self.file.notes

    @memory_errors
    @uncollected
    def prepare(
        self,
        numerics: str | numerics_tables.Numerics | None = None,
        *,
        executor: str = "auto",
        threads: int = 1,
        isa: str | None = None,
        passes: Sequence[str] | None = None,
        graph: int | str = 0,
        shapes: Mapping[str, Sequence[int] | int] | None = None,
        outputs: Sequence[str] | None = None,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        iteration_limit: int = DEFAULT_ITERATION_LIMIT,
    ) -> Session:
        """Take every decision of `numerics` for one graph and return a session that runs it.

        Args:
            numerics: whose arithmetic, for example ``"litert"``; `bittrue.numerics_names()` lists them. None: that of
                the runtime that the file's format comes with (``"litert"`` or ``"onnxruntime"``). Or a table itself.
            executor: ``"auto"`` (the fastest one available), ``"native"`` (C++) or ``"reference"`` (NumPy).
            threads: for executors that use threads; the result never depends on it. The reference executor runs its
                steps on one thread and leaves matrix products to NumPy's BLAS. Many weights are packed by two threads,
                where there are two processors.
            isa: instruction set of the native executor, for example ``"avx2"``; `bittrue.isas()` lists those of this
                processor. None: what the environment variable BITTRUE_ISA says, else the fastest. The result never
                depends on it.
            passes: which passes of `bittrue.plan.passes.PASSES` the native executor applies; None: all. The result
                never depends on them.
            graph: index of a graph, its name, or a signature key.
            shapes: new input shapes by name, for example ``{"input": (8, 224, 224, 3)}``. Where a file leaves sizes of
                inputs open and no shape is given, every run may have others: a session of one plan for each combination
                of shapes, of which the last few are kept. `session.plan` is then one for small sizes, or for those
                given by the names that the file has for free dimensions: ``{"sequence": 64}``. Where none of the small
                sizes that are tried fit, it ends before what they do not fit.
            outputs: names of the tensors to compute instead of the graph's outputs; whatever they do not need is left
                out, for example a custom operator at the end.
            memory_limit: bytes of live activations and temporaries that a run may need, beside eight times the bytes of
                the file's constants, in steps of 64 MiB, and copies of weights that products make. Where shapes depend
                on values, it holds for each stage that is planned while running.
            iteration_limit: loop iterations, branches and calls of other graphs that one run may take, so that loops
                end.

        Raises:
            InputError: unknown numerics, executor, graph or input name.
            UnsupportedError, InvalidModelError, ResourceError: see `bittrue.plan.make_plan`.

        Warns:
            InexactWarning: rows of the numerics that this model needs are marked inexact.
        """
        _check_choice(executor, threads)
        chosen = self._graph(graph)
        if outputs is not None:
            chosen = chosen.cut(_tensor_indices(chosen, outputs))
        try:
            plan = first_plan(
                chosen,
                self._numerics(numerics),
                shapes=shapes or {},
                memory_limit=memory_limit,
                notes=self.notes,
                graphs=self.graphs,
            )
        except UnsupportedError as error:
            # What the reader noted may be why the graph has such an operator.
            advice = "; ".join(filter(None, (error.advice, *self.notes[:_SHOWN_NOTES])))
            raise UnsupportedError(error.code, error.message, place=error.place, advice=advice) from None
        _warn_of_inexact(plan)
        return Session(
            plan,
            executor=executor,
            threads=threads,
            isa=isa,
            passes=passes,
            iteration_limit=iteration_limit,
            free=free_axes(chosen, shapes or {}),
        )

    def _numerics(self, which: str | numerics_tables.Numerics | None) -> numerics_tables.Numerics:
        if isinstance(which, numerics_tables.Numerics):
            return which
        return numerics_tables.find(which or numerics_tables.default_of(self.format))

    def _graph(self, which: int | str) -> Graph:
        if isinstance(which, str):
            for graph in self.graphs:
                if which in (graph.signature, graph.name):
                    return graph
        elif -len(self.graphs) <= which < len(self.graphs):
            return self.graphs[which]
        names = ", ".join(f"{i}: {g.signature or g.name or 'unnamed'}" for i, g in enumerate(self.graphs[:20]))
        known = [name for graph in self.graphs for name in (graph.signature, graph.name) if name]
        advice = did_you_mean(str(which), known, f"graphs: {names}")
        raise InputError("BT-GRAPH", f"no graph {which!r} in this file", advice=advice)

    def __repr__(self) -> str:
        tensors = [self.graph.tensors[index] for index in self.graph.inputs]
        inputs = [f"{brief(t.name)} {t.type.title}{list(t.shape_signature or t.shape)}" for t in tensors]
        return f"Model({self.format}, {len(self.graph.nodes):,} operators, inputs: {_listed(inputs)})"

    def __str__(self) -> str:
        from .text import model_text

        return model_text(self.file)


def _listed(texts: Sequence[str]) -> str:
    """The first ones, and that there are more."""
    return ", ".join([*texts[:_SHOWN_PORTS], *(["..."] if len(texts) > _SHOWN_PORTS else [])])


def _warn_of_inexact(plan: Plan) -> None:
    if plan.inexact:
        where = f"{counted(plan.inexact)} under numerics '{plan.numerics}' (session.plan tells more)"
        message = f"results may differ from the runtime's in bits: {where}"
        warnings.warn(message, InexactWarning, stacklevel=caller_level())


class Session:
    """A prepared model. Runs it as often as wanted; variable tensors and resource variables keep their values between
    runs, until `reset`.

    Attributes:
        plan: the decisions; `print(session.plan)` and `session.plan.save(path)`.
        executor: name of the executor in use.
        isa: instruction set that it uses; None for the reference executor.
        threads: as asked for.
        inputs, outputs: a `Port` per input and output.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        executor: str = "auto",
        threads: int = 1,
        isa: str | None = None,
        passes: Sequence[str] | None = None,
        iteration_limit: int = DEFAULT_ITERATION_LIMIT,
        free: Mapping[str, frozenset[int]] | None = None,
    ) -> None:
        _check_choice(executor, threads)
        if iteration_limit < 1:
            raise InputError("BT-ITERATIONS", f"iteration_limit must be at least 1, found {iteration_limit}")
        self.threads = threads
        # What `map` runs samples with: sessions like this one, by whether there are several, and those at work.
        alike = partial(Session, executor=executor, isa=isa, passes=passes, iteration_limit=iteration_limit)
        self._again = partial(alike, plan, free=free)
        # Axes of inputs whose sizes are open, by name, and sessions for others than the plan's.
        self._free, self._others = free or {}, Recent[Session](_KEPT)
        self._other = partial(alike, threads=threads)
        self._copies: dict[bool, list[Session]] = {False: [], True: []}
        self._copies_in_use: list[Session] = []
        # Samples in a chunk, when the last ones that were at hand had been run.
        self._pace = 1
        self._executor: NativeExecutor | ReferenceExecutor
        if executor == "native" or (executor == "auto" and native_module() is not None):
            self._executor = NativeExecutor(
                plan, threads=threads, isa=isa, passes=passes, iteration_limit=iteration_limit
            )
            plan = replace(plan, execution=self._executor.execution)
        else:
            if isa is not None:
                raise InputError(
                    "BT-ISA",
                    f"the reference executor has no instruction sets to choose from, found '{isa}'",
                    advice="leave isa out",
                )
            from .runtime import ReferenceExecutor

            self._executor = ReferenceExecutor(plan, iteration_limit=iteration_limit)
        self.isa = self._executor.isa if isinstance(self._executor, NativeExecutor) else None
        self.plan = plan
        self.executor = self._executor.name
        self.inputs = [self._port(i) for i in plan.inputs]
        self.outputs = [self._port(i) for i in plan.results]
        self._input_ports = dict(zip(plan.inputs, self.inputs, strict=True))
        aliases = {name: i for name, i in plan.aliases.items() if i in self._input_ports}
        self._input_names = {**aliases, **{port.name: i for i, port in self._input_ports.items()}}
        self._run_call = self._executor.run_call if isinstance(self._executor, NativeExecutor) else None

    def __reduce__(self) -> NoReturn:
        raise InputError(
            "BT-PICKLE",
            "a session cannot be pickled or copied: it owns threads and native memory",
            advice="prepare the model in each process, or hand on session.plan.save(path) and bittrue.load_plan(path)",
        )

    def __repr__(self) -> str:
        ports = [
            _listed([f"{brief(port.name)} {port.dtype}{list(port.shape)}" for port in side])
            for side in (self.inputs, self.outputs)
        ]
        how = f"{self.executor} {self.isa}" if self.isa else self.executor
        return (
            f"Session('{self.plan.numerics}', {how}, {len(self.plan.steps):,} steps, inputs: {ports[0]}, "
            f"outputs: {ports[1]})"
        )

    def run(
        self,
        *positional: Any,
        progress: Callable[[int], None] | None = None,
        timeout: float | None = None,
        **named: Any,
    ) -> dict[str, np.ndarray]:
        """Run once.

        Args:
            positional: one mapping from input name to array, or one array per input, in order.
            progress: called with the position of each finished step; stages planned while running count on.
            timeout: seconds after which the run ends with an error; None: never. Native code notices within a fraction
                of a second. The reference executor looks between steps and in its own loops; a long call of NumPy
                inside of a step cannot be ended.
            named: arrays by input name, where names are valid Python identifiers. Inputs that are called ``progress``
                or ``timeout`` are given in a mapping.

        Returns:
            Output name to array.

        Raises:
            StoppedError: the timeout has passed, or another thread called `interrupt`. Like every run that raises,
                KeyboardInterrupt included, it leaves the session as it was before: variables keep their values.
            InputError: names, types or shapes that do not fit; floats for a quantized input (quantize them first with
                `bittrue.quantize`).
            RunError: values without a defined result, for example a division by zero.
        """
        if self._run_call is not None and progress is None and not (named and positional):
            # Small networks take microseconds: the usual call goes straight to the C++ core.
            deadline = None if timeout is None else deadline_of(timeout)
            try:
                outputs = self._run_call((named,) if named else positional, deadline)
            except Exception as error:
                assert isinstance(self._executor, NativeExecutor)
                raise self._executor.failure(error, timeout) from None
            if outputs is not None:
                return outputs
        return self._run(positional, named, progress, timeout)

    @memory_errors
    def _run(
        self,
        positional: tuple[Any, ...],
        named: Mapping[str, Any],
        progress: Callable[[int], None] | None,
        timeout: float | None,
    ) -> dict[str, np.ndarray]:
        session, inputs = self._inputs(positional, named)
        return session._results(inputs, session._executor.run(inputs, after_step=progress, timeout=timeout))

    def _results(self, inputs: Mapping[int, np.ndarray], results: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """Output name to an array that the caller may write into."""
        if isinstance(self._executor, NativeExecutor):
            # The native executor writes every result into an array of its own.
            return {port.name: value for port, value in zip(self.outputs, results, strict=True)}
        # Results that alias inputs or constants are copied.
        taken = {id(value) for value in (*inputs.values(), *self._executor.state.variables.values())}
        outputs = {}
        for port, value in zip(self.outputs, results, strict=True):
            free = value.base is None and value.flags.writeable and id(value) not in taken
            taken.add(id(value))
            outputs[port.name] = value if free else value.copy()
        return outputs

    @memory_errors
    def map(
        self,
        samples: Iterable[Any],
        *,
        threads: int | None = None,
        transform: Callable[[Any], Any] | None = None,
        reset: bool = True,
        errors: str = "raise",
        timeout: float | None = None,
    ) -> Iterator[dict[str, np.ndarray]]:
        """Run many samples side by side; results come in the order of the samples, each with the bytes of its own run.

        Samples are taken from `samples` when results are wanted, a few chunks of about a hundredth of a second ahead,
        so that memory does not grow with their number. Threads that call it at the same time share the plan; each has
        buffers and variables of its own.

        Args:
            samples: any iterable. A sample is what `run` takes as its one argument: a mapping from input name to array,
                or the array of a model with one input; or a tuple with an array per input.
            threads: samples in progress at once, each on a thread of its own; None: as many as this process may use
                processors. The results never depend on it. With 1, every run uses the threads of the session.
            transform: makes a sample of what `samples` gives, for example reads an image; called in those threads.
            reset: True: every sample begins with the first values of variable tensors, and the session's own stay as
                they are. False: they go on from sample to sample, as between runs, so `threads` must be 1 or None.
            errors: ``"raise"``: the first sample with an error ends everything, after the results before it.
                ``"return"``: its `BittrueError` stands in the place of its result.
            timeout: seconds for all samples together; None: any number.

        Returns:
            An iterator of output name to array, as `run` returns it. Small arrays of neighbours share their memory, up
            to 256 KiB; copy what is kept for long.

        Raises:
            InputError: arguments that do not fit, at once; samples that do not fit, in their place.
            RunError, StoppedError: see `run`. StoppedError is never in the place of a result.
        """
        if errors not in _ERRORS:
            raise InputError("BT-ERRORS", f"unknown errors={errors!r}", advice=near_or_all(errors, _ERRORS, "choose"))

        def work(session: Session, run: Run, chunk: list[Any]) -> list[dict[str, np.ndarray] | BittrueError]:
            return session._outcomes(transform, reset, errors == "return", run, chunk)

        most = min(
            _CHUNK_SAMPLES, _CHUNK_INPUT_BYTES // _bytes(self.inputs), _CHUNK_OUTPUT_BYTES // _bytes(self.outputs)
        )
        known = len(samples) if isinstance(samples, list | tuple) and transform is None else 0
        chunks = self._side_by_side(work, samples, known, max(most, 1), threads, reset, timeout)
        return _one_by_one(chunks, errors == "return")

    def _side_by_side(
        self,
        work: Callable[[Session, Run, list[Item]], list[Result]],
        items: Iterable[Item],
        known: int,
        most: int,
        threads: int | None,
        reset: bool,
        timeout: float | None,
    ) -> Generator[list[Result], None, None]:
        """What `work` makes of items, chunk by chunk, on sessions like this one.

        Args:
            known: how many there are, where they are at hand and take as long as others before; else 0.
            most: items that a chunk may have.
            threads, reset, timeout: as for `map`.
        """
        if threads is None:
            from .runtime.side_by_side import available_processors

            threads = available_processors() if reset else 1
        _check_choice("auto", threads)
        if not reset and threads > 1:
            raise InputError(
                "BT-THREADS",
                f"variables go on from sample to sample, so there is one thread, found {threads}",
                place="map",
                advice="leave threads out, or let every sample begin with the first values (reset=True)",
            )
        timeout_seconds(timeout)
        return self._chunks(work, items, known, most if reset else 1, threads, reset, timeout)

    def _chunks(
        self,
        work: Callable[[Session, Run, list[Item]], list[Result]],
        items: Iterable[Item],
        known: int,
        most: int,
        threads: int,
        reset: bool,
        timeout: float | None,
    ) -> Generator[list[Result], None, None]:
        from .runtime.side_by_side import AHEAD, in_order

        sessions: list[Session] = [] if reset else [self]

        def end() -> None:
            for session in sessions:
                session.interrupt()

        try:
            # Other threads may do the same: the lists are changed by nothing but single steps.
            for _ in range(threads if reset else 0):
                sessions.append(self._copy(threads))
                self._copies_in_use.append(sessions[-1])
            workers = [partial(work, session, session._executor.new_run(timeout)) for session in sessions]
            first = min(self._pace, -(-known // (AHEAD * threads if threads > 1 else 1)))
            pace = yield from in_order(workers, items, first=first, most=most, end=end)
            if known:
                self._pace = pace
        finally:
            if reset:
                for session in sessions:
                    self._copies_in_use.remove(session)
                    self._copies[threads > 1].append(session)

    def _copy(self, threads: int) -> Session:
        """A session like this one with a state of its own, for one of `threads` threads."""
        try:
            return self._copies[threads > 1].pop()
        except IndexError:
            return self._again(threads=1 if threads > 1 else self.threads)

    def _outcomes(
        self,
        transform: Callable[[Any], Any] | None,
        reset: bool,
        keep_errors: bool,
        run: Run,
        samples: list[Any],
    ) -> list[dict[str, np.ndarray] | BittrueError]:
        """A result per sample, or its error; without `keep_errors` nothing after the first one."""
        outcomes: list[dict[str, np.ndarray] | BittrueError] = []
        while len(outcomes) < len(samples):
            count, given, error = self._given(samples[len(outcomes) :], transform)
            for found in self._blocks(count, partial(self._part, given), reset, run):
                outcomes += self._separate(*found) if isinstance(found, tuple) else [found]
                if isinstance(found, BittrueError) and not keep_errors:
                    return outcomes
            if error is not None:
                outcomes.append(error)
                if not keep_errors:
                    return outcomes
        return outcomes

    def _part(self, given: list[Any], first: int, last: int) -> list[Any]:
        """What is given for some samples, from what there is for all: an array per input of each."""
        return given[first * len(self.inputs) : last * len(self.inputs)]

    def _blocks(
        self, count: int, given: Callable[[int, int], list[Any]], reset: bool, run: Run
    ) -> Iterator[tuple[int, list[np.ndarray]] | dict[str, np.ndarray] | BittrueError]:
        """Results of samples in their order: those of many, with an array per output that has them along a new first
        axis; those of one; or its error.

        Args:
            count: how many samples there are.
            given: what `run_samples` takes for those from one number up to another.
        """
        done = 0
        while done < count:
            if isinstance(self._executor, NativeExecutor):
                found = self._executor.run_samples(count - done, given(done, count), reset, run)
                if found[0]:
                    yield found
                done += found[0]
            if done < count:
                yield self._outcome(given(done, done + 1), reset, run)
                done += 1

    def _separate(self, count: int, columns: list[np.ndarray]) -> list[dict[str, np.ndarray]]:
        """The results of so many samples, one by one."""
        results: list[dict[str, np.ndarray]] = []
        for port, column in zip(self.outputs, columns, strict=True):
            # Items of an array of one axis would be no arrays.
            rows = column if column.ndim > 1 else [column[i, ...] for i in range(count)]
            if results:
                for result, value in zip(results, rows, strict=True):
                    result[port.name] = value
            else:
                results = [{port.name: value} for value in rows]
        return results or [{} for _ in range(count)]

    def _given(
        self, samples: list[Any], transform: Callable[[Any], Any] | None
    ) -> tuple[int, list[Any], BittrueError | None]:
        """How many samples are without an error, an array per input of each, and the error of the one behind them."""
        if transform is None and (given := self._usual(samples)) is not None:
            return len(samples), given, None
        given = []
        for count, sample in enumerate(samples):
            try:
                given += self._row(sample if transform is None else transform(sample))
            except BittrueError as error:
                return count, given, error
        return len(samples), given, None

    def _usual(self, samples: list[Any]) -> list[Any] | None:
        """An array per input of each; None where they are not all arrays of a model with one input, or of all names."""
        types, names = set(map(type, samples)), [port.name for port in self.inputs]
        if types == {np.ndarray} and len(names) == 1:
            return samples
        if types != {dict} or set(map(len, samples)) != {len(names)} or not names:
            return None
        try:
            values = map(itemgetter(*names), samples)
            return list(values if len(names) == 1 else chain.from_iterable(values))
        except KeyError:
            return None

    def _row(self, sample: Any) -> Sequence[Any]:
        """An array per input."""
        if len(self.inputs) == 1 and not isinstance(sample, (Mapping, tuple)):
            return (sample,)
        given = self._named(sample if isinstance(sample, tuple) else (sample,), {})
        return [given[index] for index in self.plan.inputs]

    def _outcome(self, row: Sequence[Any], reset: bool, run: Run) -> dict[str, np.ndarray] | BittrueError:
        """The result of one sample, or its error."""
        if reset:
            self.reset()
        run.check()
        try:
            session, inputs = self._checked(dict(zip(self.plan.inputs, row, strict=True)))
            return session._results(inputs, session._executor.run(inputs, timeout=run.left()))
        except StoppedError as error:
            raise run.stopped(interrupted=error.code != "BT-TIMEOUT") from None
        except BittrueError as error:
            return error

    @memory_errors
    def run_batch(
        self, *positional: Any, threads: int = 1, reset: bool = True, timeout: float | None = None, **named: Any
    ) -> dict[str, np.ndarray]:
        """Run the samples of a batch, each by itself: `map` for arrays that hold one sample after the other.

        For files that fix their batch, in a RESHAPE for example: their runtimes refuse other batches, too. Every
        sample has the bytes of its own run.

        Args:
            positional, named: as for `run`; the first size of every array is the same multiple of its input's.
            threads, reset, timeout: as for `map`.

        Returns:
            Output name to array: the samples' results, joined along their first axis (a scalar's along a new one).

        Raises:
            InputError: also where arrays are no such multiples, or results have shapes that cannot be joined.
            RunError, StoppedError: see `run`. Without `reset`, variable tensors are as after the last sample that was
                finished.
        """
        given = self._named(positional, named)
        batches: dict[str, np.ndarray] = {}
        counts = set()
        for index, value in given.items():
            port = self._input_ports[index]
            array = np.asarray(value)
            if not port.shape or array.shape[1:] != port.shape[1:] or array.ndim != len(port.shape):
                raise InputError(
                    "BT-INPUT-SHAPE",
                    f"expected shape {['N', *port.shape[1:]]}, found {list(array.shape)}",
                    place=f"input '{port.name}'",
                )
            counts.add(divmod(array.shape[0], port.shape[0]) if port.shape[0] else (0, 0))
            batches[port.name] = array
        count, left = counts.pop() if len(counts) == 1 else (0, 1)
        if left or not count:
            shapes = ", ".join(f"{list(array.shape)} for '{name}'" for name, array in batches.items())
            raise InputError(
                "BT-INPUT-SHAPE",
                f"no number of samples fits all inputs: {shapes or 'the model has none'}",
                place="run_batch",
                advice="give every input the same number of samples, one after the other along the first axis",
            )
        arrays = [(batches[port.name], port.shape[0]) for port in self.inputs]

        def work(session: Session, run: Run, numbers: list[int]) -> list[tuple[int, list[np.ndarray]]]:
            def given(first: int, last: int) -> list[Any]:
                return [array[(numbers[0] + first) * size : (numbers[0] + last) * size] for array, size in arrays]

            parts = []
            for found in session._blocks(len(numbers), given, reset, run):
                if isinstance(found, BittrueError):
                    raise found
                rows, values = found if isinstance(found, tuple) else (1, [found[p.name][None] for p in self.outputs])
                # One after the other along their first axis; scalars have the new one alone.
                parts.append((rows, [x.reshape(math.prod(x.shape[:2]), *x.shape[2:]) for x in values]))
            return parts

        done, results = 0, list[list[np.ndarray]]()
        try:
            for parts in self._side_by_side(work, range(count), count, count, threads, reset, timeout):
                for rows, values in parts:
                    done += rows
                    results.append(values)
        except StoppedError as error:
            message = error.message if error.code != "BT-TIMEOUT" else f"the timeout of {timeout:g} seconds has passed"
            message += f"; at least {done} of {count} samples were done"
            raise StoppedError(error.code, message, place=error.place, advice=error.advice) from None
        joined = {}
        for port, values in zip(self.outputs, zip(*results, strict=True), strict=True):
            if len({value.shape[1:] for value in values}) > 1:
                raise InputError(
                    "BT-OUTPUT-SHAPE",
                    f"output '{port.name}' has other shapes for other samples",
                    place="run_batch",
                    advice="use map(...), which returns them one by one",
                )
            joined[port.name] = np.concatenate(values)
        return joined

    def trace(
        self,
        *positional: Any,
        progress: Callable[[int], None] | None = None,
        timeout: float | None = None,
        **named: Any,
    ) -> dict[str, np.ndarray]:
        """Run once and return every tensor by name, in execution order: inputs, then each step's results.

        Constants are not repeated; variable tensors appear with the value that they have after their step. Tensors of
        graphs that a step calls are named ``"graph::tensor"`` and appear with the values of their last call, so those
        of a loop's body with the values of the last iteration.
        Arguments and errors as for `run`.
        """
        values: dict[str, np.ndarray] = {}
        self.observe(values.__setitem__, *positional, progress=progress, timeout=timeout, **named)
        return values

    @memory_errors
    def observe(
        self,
        observer: Callable[[str, np.ndarray], None],
        *positional: Any,
        progress: Callable[[int], None] | None = None,
        timeout: float | None = None,
        **named: Any,
    ) -> None:
        """Run once and hand every tensor of `trace` to `observer` as (name, value) as soon as it is known.

        Tensors that are computed repeatedly come repeatedly. Values are the observer's to keep, not to write into.
        """
        session, inputs = self._inputs(positional, named)
        # Private copies: the caller may change the arrays while the trace of them is still in use.
        inputs = {index: np.array(value) for index, value in inputs.items()}
        for index in session.plan.inputs:
            observer(session.plan.tensors[index].name, inputs[index])
        session._executor.run(inputs, observe=observer, after_step=progress, timeout=timeout)

    def interrupt(self) -> None:
        """End all runs of this session that are in progress, from another thread: they raise StoppedError.

        Runs that begin later are not touched. In the main thread, Ctrl-C does the same and raises KeyboardInterrupt.
        """
        for session in (self, *self._copies_in_use):
            for one in (session, *session._others):
                one._executor.state.interrupts[0] += 1

    @property
    def missing(self) -> Mapping[int, str]:
        """Steps of the plan that the native executor leaves to the reference: position to reason."""
        return self._executor.missing if isinstance(self._executor, NativeExecutor) else {}

    def kernel(self, position: int) -> str:
        """What carries out the step at `position` of the plan when it is traced, for people."""
        native = self._executor if isinstance(self._executor, NativeExecutor) else None
        return "reference" if native is None else native.kernel(position) or native.name

    def profile(self, *positional: Any, rounds: int = 10, **named: Any) -> Profile:
        """Run `rounds` times and return the median time of every step; `print` it, or take `to_dict()`.

        Variable tensors keep the values that they had before. Arguments and errors as for `run`.
        """
        from .runtime.profile import Profile, machine_byte_rate, machine_peak

        if rounds < 1:
            raise InputError("BT-ROUNDS", f"rounds must be at least 1, found {rounds}")
        session, inputs = self._inputs(positional, named)
        peaks = machine_peak(self.isa), machine_byte_rate()
        steps = session._executor.profile(inputs, rounds)
        return Profile(self.plan.name, tuple(steps), rounds, self.executor, self.isa, self.threads, *peaks)

    def reset(self, *, resources: bool = True) -> None:
        """Put all state back to its start: the next run is like the first one of a new session.

        Variable tensors get the first values that the runtime gives them, resource variables and what initialised them
        are forgotten.

        Args:
            resources: False resets variable tensors only, as interpreters do.
        """
        self._executor.reset(resources)

    def _port(self, index: int) -> Port:
        tensor = self.plan.tensors[index]
        free = self._free.get(tensor.name, frozenset()) if index in self.plan.inputs else frozenset[int]()
        return Port(tensor.name, tensor.type.numpy, tensor.shape, tensor.quantization, free)

    @memory_errors
    def fitting(self, inputs: Mapping[str, Any]) -> Session:
        """The session that runs these inputs: this one, or where the file leaves sizes open one whose `plan` is for
        theirs. Arguments and errors as for `run`.
        """
        return self._for(self._named((inputs,), {}))

    def _for(self, given: Mapping[int, Any]) -> Session:
        """The session for the shapes of what is given: another one where those differ in free axes."""
        if not self._free:
            return self
        shapes = {index: np.shape(value) for index, value in given.items()}
        other = {p.name: shapes[i] for i, p in self._input_ports.items() if shapes[i] != p.shape}
        # What does not fit a port is left to the check of inputs, which says so.
        if not other or not all(p.takes(shapes[i]) for i, p in self._input_ports.items()):
            return self
        return self._others.find(tuple(other.items()), lambda: self._made_for(other))

    def _made_for(self, shapes: Mapping[str, tuple[int, ...]]) -> Session:
        """A session for other shapes of inputs; a warning where more of its results may differ from the runtime's."""
        plan = plan_for(self.plan, shapes)
        if Counter(plan.inexact) - Counter(self.plan.inexact):
            _warn_of_inexact(plan)
        return self._other(plan)

    def _named(self, positional: tuple[Any, ...], named: Mapping[str, Any]) -> dict[int, Any]:
        """What is given for every input, by its index in the plan."""
        if len(positional) == 1 and isinstance(positional[0], Mapping):
            given: Mapping[str, Any] = {**positional[0], **named} if named else positional[0]
        else:
            if len(positional) > len(self.inputs):
                raise InputError(
                    "BT-INPUT-COUNT", f"{len(positional)} arrays given, the model has {len(self.inputs)} inputs"
                )
            given = {**{p.name: a for p, a in zip(self.inputs, positional, strict=False)}, **named}
        inputs: dict[int, Any] = {}
        for name, value in given.items():
            index = self._input_names.get(name)
            if index is None:
                raise InputError(
                    "BT-INPUT-NAME",
                    f"'{name}' is no input of this model",
                    advice=near_or_all(name, self._input_names, "inputs"),
                )
            if index in inputs:
                raise InputError("BT-INPUT-NAME", f"input '{name}' is given twice")
            inputs[index] = value
        if len(inputs) < len(self._input_ports):
            missing = [p.name for i, p in self._input_ports.items() if i not in inputs]
            raise InputError("BT-INPUT-MISSING", f"no value for input {', '.join(repr(m) for m in missing)}")
        return inputs

    def _inputs(self, positional: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Session, dict[int, np.ndarray]]:
        return self._checked(self._named(positional, named))

    def _checked(self, given: Mapping[int, Any]) -> tuple[Session, dict[int, np.ndarray]]:
        """The session that runs what is given, and that as arrays."""
        session = self._for(given)
        if session is not self:
            given = {session._input_names[self._input_ports[index].name]: value for index, value in given.items()}
        return session, {index: checked(session._input_ports[index], value) for index, value in given.items()}


def _one_by_one(
    chunks: Generator[list[dict[str, np.ndarray] | BittrueError], None, None], keep_errors: bool
) -> Iterator[dict[str, np.ndarray]]:
    """Results of all chunks. Without `keep_errors`, an error is the last one of its chunk, and raised."""
    with closing(chunks):
        for outcomes in chunks:
            last = outcomes[-1]
            if isinstance(last, BittrueError) and not keep_errors:
                yield from outcomes[:-1]  # type: ignore[misc]
                raise last
            yield from outcomes  # type: ignore[misc]


def _bytes(ports: Sequence[Port]) -> int:
    """Of an array for each, and at least 1."""
    return max(1, sum(math.prod(max(n, 0) for n in port.shape) * port.dtype.itemsize for port in ports))


def _tensor_indices(graph: Graph, names: Sequence[str]) -> list[int]:
    indices = {**{tensor.name: index for index, tensor in enumerate(graph.tensors)}, **graph.aliases}
    nodes = {node.index: [graph.tensors[i].name for i in node.outputs] for node in graph.nodes}
    names = [by_number(name, indices, nodes.get, len(nodes)) for name in names]
    for name in names:
        if name not in indices:
            advice = did_you_mean(name, indices, "bittrue inspect --tensors lists them")
            raise InputError("BT-OUTPUT-NAME", f"no tensor '{name}' in this graph", place="outputs", advice=advice)
    if not names:
        raise InputError("BT-OUTPUT-NAME", "no tensor is named", place="outputs")
    return list(dict.fromkeys(indices[name] for name in names))


@memory_errors
@uncollected
def load(source: Any, weights: Any = None) -> Model:
    """Read a model.

    Args:
        source: path, bytes or binary file object. The format is found from the content, not from the name.
        weights: the same for formats that keep their weights in a second file (.caffemodel for a .prototxt, init_net
            for a predict_net, .params for a -symbol.json). None: the one beside `source` that goes by its name.

    Raises:
        InputError: the path does not exist or is no file.
        ModelFormatError: the bytes are no model of a known format, or a damaged one.
        InvalidModelError: the model contradicts itself.
        UnsupportedError: it uses features of the format that bittrue does not read.
    """
    return Model(read_model(source, weights))


@memory_errors
@uncollected
def load_plan(
    path: Any,
    *,
    executor: str = "auto",
    threads: int = 1,
    isa: str | None = None,
    passes: Sequence[str] | None = None,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    iteration_limit: int = DEFAULT_ITERATION_LIMIT,
) -> Session:
    """A session from a plan that `session.plan.save(path)` wrote; the model file is not needed any more.

    Args:
        memory_limit: as for `Model.prepare`. Sizes in files are claims, so a plan that was prepared with a larger limit
            needs it here, too.

    Raises:
        ModelFormatError: it is no plan file, or a damaged one; the session's `run` raises it for steps whose numbers
            do not fit their tensors.
        ResourceError: a run would exceed `memory_limit`.
    """
    from .plan.loading import load_plan as read_plan

    return Session(
        read_plan(path, memory_limit=memory_limit),
        executor=executor,
        threads=threads,
        isa=isa,
        passes=passes,
        iteration_limit=iteration_limit,
    )


def _check_choice(executor: str, threads: int) -> None:
    if executor not in EXECUTORS:
        raise InputError(
            "BT-EXECUTOR",
            f"unknown executor '{executor}'",
            advice=near_or_all(executor, EXECUTORS, "choose one of"),
        )
    if not 1 <= threads <= MAX_THREADS:
        raise InputError("BT-THREADS", f"threads must lie between 1 and {MAX_THREADS}, found {threads}")
