"""The public API: `load` a model, `prepare` it under a numerics, `run` or `trace` it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from . import numerics as numerics_tables
from .errors import BittrueError, InputError, InvalidModelError
from .graph import Graph, ModelFile, Quantization
from .importers import read_model
from .plan import DEFAULT_MEMORY_LIMIT, Plan, make_plan
from .runtime import (
    DEFAULT_ITERATION_LIMIT,
    NativeExecutor,
    Profile,
    ReferenceExecutor,
    machine_peak,
    native_module,
)
from .text import model_text

# A typing error should not start a million threads.
MAX_THREADS = 1024
EXECUTORS = ("auto", "native", "reference")


class Port:
    """One input or output of a session.

    Attributes:
        name: tensor name.
        dtype: NumPy dtype of the array.
        shape: tuple of extents, -1 for those that only running tells (the rank is then what the file declares).
        scale, zero_point: quantization (None when the tensor has none or has it per axis).
    """

    def __init__(self, name: str, dtype: np.dtype, shape: tuple[int, ...], quantization: Quantization | None) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.quantization = quantization
        single = quantization is not None and not quantization.per_axis
        self.scale = float(quantization.scales[0]) if single and quantization else None
        self.zero_point = int(quantization.zero_points[0]) if single and quantization else None

    def __repr__(self) -> str:
        quantization = f", {self.quantization}" if self.quantization is not None else ""
        return f"Port({self.name!r}, {self.dtype}{list(self.shape)}{quantization})"


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

    def prepare(
        self,
        numerics: str | numerics_tables.Numerics | None = None,
        *,
        executor: str = "auto",
        threads: int = 1,
        isa: str | None = None,
        passes: Sequence[str] | None = None,
        graph: int | str = 0,
        shapes: Mapping[str, Sequence[int]] | None = None,
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
                steps on one thread and leaves matrix products to NumPy's BLAS.
            isa: instruction set of the native executor, for example ``"avx2"``; `bittrue.isas()` lists those of this
                processor. None: what the environment variable BITTRUE_ISA says, else the fastest. The result never
                depends on it.
            passes: which passes of `bittrue.plan.passes.PASSES` the native executor applies; None: all. The result
                never depends on them.
            graph: index of a graph, its name, or a signature key.
            shapes: new input shapes by name, for example ``{"input": (8, 224, 224, 3)}``.
            outputs: names of the tensors to compute instead of the graph's outputs; whatever they do not need is left
                out, for example a custom operator at the end.
            memory_limit: bytes of live activations and temporaries that a run may need. Where shapes depend on values,
                it holds for each stage that is planned while running.
            iteration_limit: loop iterations, branches and calls of other graphs that one run may take, so that loops
                end.

        Raises:
            InputError: unknown numerics, executor, graph or input name.
            UnsupportedError, InvalidModelError, ResourceError: see `bittrue.plan.planner.make_plan`.
        """
        _check_choice(executor, threads)
        chosen = self._graph(graph)
        if outputs is not None:
            chosen = chosen.cut(_tensor_indices(chosen, outputs))
        try:
            plan = make_plan(
                chosen,
                self._numerics(numerics),
                shapes=shapes,
                memory_limit=memory_limit,
                notes=self.notes,
                graphs=self.graphs,
            )
        except InvalidModelError as error:
            raise _with_free_inputs(error, chosen, shapes or {}) from None
        return Session(
            plan, executor=executor, threads=threads, isa=isa, passes=passes, iteration_limit=iteration_limit
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
        names = ", ".join(f"{i}: {g.signature or g.name or 'unnamed'}" for i, g in enumerate(self.graphs))
        raise InputError("BT-GRAPH", f"no graph {which!r} in this file", advice=f"graphs: {names}")

    def __str__(self) -> str:
        return model_text(self.file)


def _with_free_inputs(error: InvalidModelError, graph: Graph, shapes: Mapping[str, Sequence[int]]) -> BittrueError:
    """`error`, and which inputs leave extents open that nobody gave: they were taken as 1."""
    inputs = (graph.tensors[index] for index in graph.inputs)
    free = {t.name: t.shape_signature for t in inputs if t.name not in shapes and -1 in (t.shape_signature or ())}
    if not free:
        return error
    named = ", ".join(f"'{name}' {list(shape or ())}".replace("-1", "?") for name, shape in free.items())
    advice = f"the model leaves extents of its inputs open, which were taken as 1: {named}; give them with shapes="
    return InvalidModelError(
        error.code, error.message, place=error.place, advice=f"{error.advice}; {advice}" if error.advice else advice
    )


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
    ) -> None:
        _check_choice(executor, threads)
        if iteration_limit < 1:
            raise InputError("BT-ITERATIONS", f"iteration_limit must be at least 1, found {iteration_limit}")
        self.threads = threads
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
            self._executor = ReferenceExecutor(plan, iteration_limit=iteration_limit)
        self.isa = self._executor.isa if isinstance(self._executor, NativeExecutor) else None
        self.plan = plan
        self.executor = self._executor.name
        self.inputs = [self._port(i) for i in plan.inputs]
        self.outputs = [self._port(i) for i in plan.results]
        self._input_ports = dict(zip(plan.inputs, self.inputs, strict=True))
        aliases = {name: i for name, i in plan.aliases.items() if i in self._input_ports}
        self._input_names = {**aliases, **{port.name: i for i, port in self._input_ports.items()}}
        self._run_one = self._executor.run_one if isinstance(self._executor, NativeExecutor) else None
        if self._run_one is not None:
            self._input, self._output = self.inputs[0].name, self.outputs[0].name

    def run(
        self,
        *positional: Any,
        progress: Callable[[int], None] | None = None,
        **named: Any,
    ) -> dict[str, np.ndarray]:
        """Run once.

        Args:
            positional: one mapping from input name to array, or one array per input, in order.
            progress: called with the position of each finished step; stages planned while running count on.
            named: arrays by input name, where names are valid Python identifiers.

        Returns:
            Output name to array.

        Raises:
            InputError: names, types or shapes that do not fit; floats for a quantized input (quantize them first with
                `bittrue.quantize`).
            RunError: values without a defined result, for example a division by zero.
        """
        if self._run_one is not None and len(positional) == 1 and not named and progress is None:
            # Small networks take microseconds: the usual call goes straight to the executor.
            x = positional[0]
            value = self._run_one(x[self._input] if type(x) is dict and len(x) == 1 and self._input in x else x)
            if value is not None:
                return {self._output: value}
        inputs = self._inputs(positional, named)
        results = self._executor.run(inputs, after_step=progress)
        if isinstance(self._executor, NativeExecutor):
            # The native executor writes every result into an array of its own.
            return {port.name: value for port, value in zip(self.outputs, results, strict=True)}
        # The caller may write into what it gets, so results that alias inputs or constants are copied.
        taken = {id(value) for value in (*inputs.values(), *self._executor.state.variables.values())}
        outputs = {}
        for port, value in zip(self.outputs, results, strict=True):
            free = value.base is None and value.flags.writeable and id(value) not in taken
            taken.add(id(value))
            outputs[port.name] = value if free else value.copy()
        return outputs

    def trace(
        self,
        *positional: Any,
        progress: Callable[[int], None] | None = None,
        **named: Any,
    ) -> dict[str, np.ndarray]:
        """Run once and return every tensor by name, in execution order: inputs, then each step's results.

        Constants are not repeated; variable tensors appear with the value that they have after their step. Tensors of
        graphs that a step calls are named ``"graph::tensor"`` and appear with the values of their last call, so those
        of a loop's body with the values of the last iteration.
        Arguments and errors as for `run`.
        """
        values: dict[str, np.ndarray] = {}
        self.observe(values.__setitem__, *positional, progress=progress, **named)
        return values

    def observe(
        self,
        observer: Callable[[str, np.ndarray], None],
        *positional: Any,
        progress: Callable[[int], None] | None = None,
        **named: Any,
    ) -> None:
        """Run once and hand every tensor of `trace` to `observer` as (name, value) as soon as it is known.

        Tensors that are computed repeatedly come repeatedly. Values are the observer's to keep, not to write into.
        """
        inputs = self._inputs(positional, named)
        # Private copies: the caller may change the arrays while the trace of them is still in use.
        inputs = {index: np.array(value) for index, value in inputs.items()}
        for index in self.plan.inputs:
            observer(self.plan.tensors[index].name, inputs[index])
        self._executor.run(inputs, observe=observer, after_step=progress)

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
        if rounds < 1:
            raise InputError("BT-ROUNDS", f"rounds must be at least 1, found {rounds}")
        inputs = self._inputs(positional, named)
        peak = machine_peak(self.isa)
        steps = self._executor.profile(inputs, rounds)
        return Profile(self.plan.name, tuple(steps), rounds, self.executor, self.isa, self.threads, peak)

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
        return Port(tensor.name, tensor.type.numpy, tensor.shape, tensor.quantization)

    def _inputs(self, positional: tuple[Any, ...], named: Mapping[str, Any]) -> dict[int, np.ndarray]:
        if len(positional) == 1 and isinstance(positional[0], Mapping):
            given: Mapping[str, Any] = {**positional[0], **named} if named else positional[0]
        else:
            if len(positional) > len(self.inputs):
                raise InputError(
                    "BT-INPUT-COUNT", f"{len(positional)} arrays given, the model has {len(self.inputs)} inputs"
                )
            given = {**{p.name: a for p, a in zip(self.inputs, positional, strict=False)}, **named}
        inputs: dict[int, np.ndarray] = {}
        for name, value in given.items():
            index = self._input_names.get(name)
            if index is None:
                raise InputError(
                    "BT-INPUT-NAME",
                    f"'{name}' is no input of this model",
                    advice=f"inputs: {', '.join(p.name for p in self.inputs)}",
                )
            if index in inputs:
                raise InputError("BT-INPUT-NAME", f"input '{name}' is given twice")
            inputs[index] = _checked(self._input_ports[index], value)
        if len(inputs) < len(self._input_ports):
            missing = [p.name for i, p in self._input_ports.items() if i not in inputs]
            raise InputError("BT-INPUT-MISSING", f"no value for input {', '.join(repr(m) for m in missing)}")
        return inputs


def _tensor_indices(graph: Graph, names: Sequence[str]) -> list[int]:
    indices = {**{tensor.name: index for index, tensor in enumerate(graph.tensors)}, **graph.aliases}
    for name in names:
        if name not in indices:
            import difflib

            close = difflib.get_close_matches(name, indices, 3)
            advice = (
                f"did you mean {' or '.join(repr(c) for c in close)}?"
                if close
                else "bittrue inspect --tensors lists them"
            )
            raise InputError("BT-OUTPUT-NAME", f"no tensor '{name}' in this graph", place="outputs", advice=advice)
    if not names:
        raise InputError("BT-OUTPUT-NAME", "no tensor is named", place="outputs")
    return list(dict.fromkeys(indices[name] for name in names))


def _checked(port: Port, value: Any) -> np.ndarray:
    if (
        type(value) is np.ndarray
        and value.dtype == port.dtype
        and value.shape == port.shape
        and value.flags.c_contiguous
    ):
        return value
    place = f"input '{port.name}'"
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError("BT-INPUT-TYPE", f"no array: {error}", place=place) from None
    if array.dtype != port.dtype:
        advice = f"convert it yourself: array.astype(np.{port.dtype})"
        if array.dtype.kind == "f" and port.scale is not None:
            advice = (
                f"quantize it: bittrue.quantize(x, scale={port.scale!r}, zero_point={port.zero_point}, "
                f"dtype='{port.dtype}')"
            )
        raise InputError("BT-INPUT-TYPE", f"expected {port.dtype}, found {array.dtype}", place=place, advice=advice)
    if array.shape != port.shape:
        advice = "a scalar axis may be missing: use array[None]"
        if math.prod(array.shape) != math.prod(port.shape):
            advice = f"prepare the model for it: model.prepare(shapes={{{port.name!r}: {tuple(array.shape)}}})"
        raise InputError(
            "BT-INPUT-SHAPE",
            f"expected shape {list(port.shape)}, found {list(array.shape)}",
            place=place,
            advice=advice,
        )
    return np.ascontiguousarray(array).reshape(array.shape)


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
    from .plan.file import load_plan as read_plan

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
        raise InputError("BT-EXECUTOR", f"unknown executor '{executor}'", advice=f"choose one of {EXECUTORS}")
    if not 1 <= threads <= MAX_THREADS:
        raise InputError("BT-THREADS", f"threads must lie between 1 and {MAX_THREADS}, found {threads}")
