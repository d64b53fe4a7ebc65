"""What fuzz targets hold against bittrue: typed errors only; native results are the reference's, byte for byte.

An attempt returns a short outcome. It raises `Finding` for what must not be; any other exception is one as well.
"""

from __future__ import annotations

import math
import os
import re
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import bittrue
from bittrue.errors import InexactWarning, InternalError

# Bytes of activations, iterations of loops, seconds by the clock that all runs of one input may take, and
# multiply-accumulates and bytes of inputs above which a model is only planned.
MEMORY_LIMIT = 64 << 20
ITERATION_LIMIT = 200
SECONDS = float(os.environ.get("BITTRUE_FUZZ_SECONDS", 2))
RUN_LIMIT = 20_000_000
NATIVE_RUN_LIMIT = 20_000_000_000
INPUT_LIMIT = 1 << 20


class Finding(AssertionError):
    """What bittrue must not do.

    Attributes:
        kind: ``"different"`` (executors), ``"internal"`` (an error that only a fault of bittrue can cause) or
            ``"warning"``.
        cause: findings of one kind with the same cause count once.
    """

    def __init__(self, kind: str, cause: str, text: str) -> None:
        super().__init__(f"{kind}: {cause}: {text}")
        self.kind, self.cause = kind, cause


def choice(content: bytes, values: Sequence[Any]) -> Any:
    """One of the values; which one depends on the content alone."""
    return values[zlib.crc32(content) % len(values)]


def tried(call: Callable[[], str], internal: Sequence[str] = ("BT-PLAN-STEP",)) -> str:
    """What `call` returns, or the code of its typed error and its message without names and numbers.

    Raises:
        Finding: for warnings, errors without text, internal errors, and errors with one of the codes `internal`.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Meant for users; changed files are inexact now and then.
        warnings.simplefilter("ignore", InexactWarning)
        try:
            outcome = call()
        except bittrue.BittrueError as error:
            if isinstance(error, InternalError) or error.code in internal or not error.message:
                raise Finding("internal", f"{error.code} {_template(error.message)}", str(error)) from error
            outcome = f"{error.code} {_template(error.message)}"
    if caught:
        one = caught[0]
        place = one.filename.rpartition("bittrue/")[2]
        raise Finding("warning", f"{one.category.__name__} {place}", f"{one.message}, {one.filename}:{one.lineno}")
    return outcome


def _template(text: str) -> str:
    """A message without its names and numbers."""
    return re.sub(r"'[^']*'|-?\d[\d,.e+-]*", "_", text)[:80]


def native(content: bytes) -> dict[str, Any]:
    """Arguments of a native session: the instruction set depends on the content, unless BITTRUE_ISA chooses it."""
    sets = [None] if os.environ.get("BITTRUE_ISA") else bittrue.isas()
    return {"executor": "native", "isa": choice(content[::-1], sets)}


def tried_model(
    content: bytes,
    *files: bytes | None,
    numerics: Sequence[str | None],
    shapes: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> str:
    """A model's files read, prepared and run under one of the numerics; `shapes` are of inputs that it may have."""

    def call() -> str:
        model = bittrue.load(*files)
        assert str(model)
        names = {model.graph.tensors[index].name for index in model.graph.inputs}
        session = model.prepare(
            choice(content, numerics),
            shapes={name: shape for name, shape in shapes.items() if name in names},
            memory_limit=MEMORY_LIMIT,
            iteration_limit=ITERATION_LIMIT,
            **native(content),
        )
        return compared(session)

    return tried(call)


def ran_natively(content: bytes, folder: Path) -> str:
    """A whole model, which is too large for the reference, run once by the fastest native cores."""

    def call() -> str:
        session = bittrue.load(content).prepare(iteration_limit=ITERATION_LIMIT)
        assert str(session.plan)
        if session.plan.work > NATIVE_RUN_LIMIT:
            return "planned"
        rng = np.random.default_rng(0)
        session.run({port.name: _values(rng, port, True) for port in session.inputs}, timeout=SECONDS)
        return "result"

    return tried(call)


def compared(session: bittrue.Session) -> str:
    """Run a prepared native session and the reference on the same values, twice.

    A run that takes too long ends everything: loops may ask for any amount of work.

    Raises:
        Finding: their bytes or their errors differ.
    """
    assert str(session.plan)
    size = sum(math.prod(port.shape) * port.dtype.itemsize for port in session.inputs)
    if session.plan.work > RUN_LIMIT or size > INPUT_LIMIT:
        return "planned"
    reference = bittrue.Session(session.plan, executor="reference", iteration_limit=ITERATION_LIMIT)
    rng = np.random.default_rng(0)
    outcomes = []
    end = time.monotonic() + SECONDS
    # Twice: whatever a run leaves behind, in memory or in variables, meets the next one.
    for plain in (True, False):
        feed = {port.name: _values(rng, port, plain) for port in session.inputs}
        one, two = _outcome(session, feed, end), _outcome(reference, feed, end)
        if isinstance(one, bittrue.BittrueError) or isinstance(two, bittrue.BittrueError):
            codes = {getattr(found, "code", "") for found in (one, two)}
            if "BT-TIMEOUT" in codes:
                return "BT-TIMEOUT"
            if len(codes) > 1:
                raise Finding("different", _operators(session), f"native: {_short(one)}; reference: {_short(two)}")
            if codes == {"BT-PLAN-STEP"}:
                raise one  # type: ignore[misc]
            outcomes += codes
            continue
        for name, expected in two.items():
            if not _equal(one[name], expected):
                text = f"output {name!r}: native {_short(one[name])}, reference {_short(expected)}"
                raise Finding("different", _operators(session), text)
        outcomes.append("result")
    return max(outcomes, key="result".__eq__)


def _outcome(
    session: bittrue.Session, feed: dict[str, np.ndarray], end: float
) -> bittrue.BittrueError | dict[str, np.ndarray]:
    try:
        return session.run(feed, timeout=max(end - time.monotonic(), 1e-3))
    except bittrue.BittrueError as error:
        if not error.message:
            raise
        return error


def _operators(session: bittrue.Session) -> str:
    return " ".join(sorted({step.operator for step in session.plan.steps})[:4])


def _short(value: Any) -> str:
    return repr(value).replace("\n", " ")[:300]


def _equal(one: np.ndarray, two: np.ndarray) -> bool:
    if one.dtype != two.dtype or one.shape != two.shape:
        return False
    if one.dtype.hasobject:
        return bool(np.array_equal(one, two))
    # Memcheck sees a byte that nobody wrote when its value decides something outside of the interpreter.
    zlib.crc32(one.tobytes())
    return one.tobytes() == two.tobytes()


def _values(rng: np.random.Generator, port: bittrue.Port, plain: bool) -> np.ndarray:
    """Small integers, or any bytes at all."""
    shape, dtype = port.shape, port.dtype
    if dtype.hasobject:
        return np.full(shape, b"text", object)
    if plain or dtype.kind == "b":
        return rng.integers(0, 3, shape).astype(dtype)
    return np.frombuffer(rng.bytes(math.prod(shape) * dtype.itemsize), dtype).reshape(shape)
