"""The real runtime in a process of its own: a probe that aborts the interpreter is an answer, not the tests' end.

That process imports the runtime once and answers from a copy of itself, so that it is back at once after an abort.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import platform
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Answer:
    """What the interpreter did: `values` by tensor index, or `refused` with its message, or `aborted`."""

    values: dict[Any, Any] = field(default_factory=dict)
    refused: str = ""
    aborted: bool = False

    @property
    def ran(self) -> bool:
        return not self.refused and not self.aborted


def _serve(pipe: Any, resolver: str, site: str) -> None:
    if site:
        sys.path.insert(0, site)
    # `close` ends the group: this process and the one that answers.
    os.setsid()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    import ai_edge_litert.interpreter  # noqa: F401
    import ml_dtypes  # noqa: F401  the interpreter returns bfloat16 tensors only once this has registered the type

    while True:
        answering = os.fork()
        if answering == 0:
            _answer(pipe, resolver)
            os._exit(0)
        if os.waitpid(answering, 0)[1] == 0:
            return
        pipe.send(("aborted", ""))


def _answer(pipe: Any, resolver: str) -> None:
    """Until the other end is closed."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    while True:
        try:
            content, feeds, wanted = pipe.recv()
        except EOFError:
            return
        try:
            interpreter = Interpreter(
                model_content=content,
                experimental_op_resolver_type=getattr(OpResolverType, resolver),
                experimental_preserve_all_tensors=True,
                num_threads=1,
            )
            # Details hold names, which the binding refuses unless they are UTF-8; the runtime itself does not mind.
            indices = [int(index) for index in interpreter._interpreter.InputIndices()]
            for index, feed in zip(indices, feeds[0], strict=True):
                # The wheel for aarch64 dies of a scalar's shape.
                if feed.shape or platform.machine() != "aarch64":
                    interpreter.resize_tensor_input(index, list(feed.shape))
            interpreter.allocate_tensors()
            for feed_set in feeds:
                if feed_set is None:
                    interpreter.reset_all_variables()
                    continue
                for index, feed in zip(indices, feed_set, strict=True):
                    interpreter.set_tensor(index, feed)
                interpreter.invoke()
            hidden = _never_written(interpreter)
            pipe.send(("values", {key: None if key in hidden else _read(interpreter, key) for key in wanted}))
        except Exception as error:
            pipe.send(("refused", f"{type(error).__name__}: {error}"))


def _never_written(interpreter: Any) -> set[int]:
    """What the delegate unpacks of constants for itself: no memory of the interpreter holds it."""
    # Details hold names, as above.
    inner = interpreter._interpreter
    nodes = [
        (inner.NodeName(i), {int(j) for j in inner.NodeInputs(i)}, {int(j) for j in inner.NodeOutputs(i)})
        for i in range(inner.NumNodes())
    ]
    written = {int(index) for index in inner.InputIndices()}.union(*(results for _, _, results in nodes))
    delegated = set[int]().union(*(results for name, _, results in nodes if name == "DELEGATE"))
    found = set[int]()
    for name, sources, results in nodes:
        if name in ("DEQUANTIZE", "DENSIFY") and not sources & (written - found):
            found |= results & delegated
    return found


def _read(interpreter: Any, key: int | tuple[int, int]) -> np.ndarray | None:
    """A tensor of the main graph, or (graph, tensor): None where that memory is gone."""
    graph, index = (0, key) if isinstance(key, int) else key
    try:
        return interpreter.get_tensor(index, graph)
    except ValueError as error:
        details = interpreter._get_tensor_details(index, graph)
        # The binding takes empty tensors whose shape was found while running for broken ones.
        if "Invalid tensor size" in str(error) and 0 in details["shape"]:
            return np.empty(details["shape"], details["dtype"])
        if isinstance(key, int):
            raise
        return None


class Oracle:
    """One worker process with one resolver.

    `site` is a folder with another ai_edge_litert than the installed one (`pip install --target`).
    """

    def __init__(self, resolver: str = "BUILTIN_REF", site: str = "") -> None:
        self.resolver = resolver
        self.site = site
        self._process: Any = None
        self._pipe: Any = None
        atexit.register(self.close)

    def run(
        self,
        content: bytes,
        feeds: Sequence[list[np.ndarray] | None],
        wanted: Sequence[int | tuple[int, int]],
        timeout: float = 60,
    ) -> Answer:
        """Invoke once per feed set (state is kept) and read the tensors `wanted` after the last invocation.

        A tensor of another graph is wanted as (graph, tensor). None instead of a feed set, but not as the first one,
        resets the variable tensors.
        """
        if self._process is None or not self._process.is_alive():
            self._start()
        try:
            self._pipe.send((content, feeds, list(wanted)))
            if not self._pipe.poll(timeout):
                self.close()
                return Answer(aborted=True)
            kind, payload = self._pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self.close()
            return Answer(aborted=True)
        if kind == "aborted":
            return Answer(aborted=True)
        return Answer(values=payload) if kind == "values" else Answer(refused=payload)

    def close(self) -> None:
        if self._process is not None:
            # No such group: it has not begun yet.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = self._pipe = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, child = context.Pipe()
        self._process = context.Process(target=_serve, args=(child, self.resolver, self.site), daemon=True)
        self._process.start()
        child.close()


_oracles: dict[tuple[str, str], Oracle] = {}


def oracle(resolver: str = "BUILTIN_REF", site: str = "") -> Oracle:
    """The shared worker for a resolver of the installed runtime, or of the one in the folder `site`."""
    return _oracles.setdefault((resolver, site), Oracle(resolver, site))
