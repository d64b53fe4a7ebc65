"""One-node ONNX models, ONNX Runtime as their oracle, and the property of tests/onnx_operators: equal bytes."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue.runners.processor import onnxruntime_here

from .differential import assert_same, inexact_names
from .native import check_native
from .oracle import Answer
from .recorded import Case, Recorder
from .seed import KEPT_SEED

MICROSOFT = "com.microsoft"
CLASSICAL = "ai.onnx.ml"
# The IR version that goes with opset 21 and later.
_IR_VERSION = 11
# ONNX Runtime's arithmetic on the processor that runs the tests; its kernels for 512-bit vectors are others.
HERE = onnxruntime_here().numerics
WIDE = "avx512vnni" in bittrue.isas()
# For tests that compare real numbers with the runtime here, whose kernels nobody has measured on some processors.
needs_measured = pytest.mark.skipif(
    bool(onnxruntime_here().unsure), reason="nobody has measured ONNX Runtime on this processor"
)
# For tests of numerics `onnxruntime` by name, or of sizes that follow from its processors' caches. Rows of
# `onnxruntime@aarch64` that are inexact say so, and are not compared.
needs_wide = pytest.mark.skipif(
    not WIDE and not HERE.endswith("@aarch64"),
    reason="numerics onnxruntime has the bits of processors with AVX-512 VNNI, this one has other kernels",
)
# Random models of one property: so many are the same in every run, and others, three in ten, follow from its seed.
USUAL, FIXED_SHARE, KEPT_SHARE, NEW_SHARE = 30, 0.4, 0.3, 0.3
# Set while BITTRUE_RECORD asks for models that other processors are to answer.
RECORDER: Recorder | None = None
# Models that go through the stages of a check together: code that runs again and again stays in the caches.
_TOGETHER = 32


def cases(
    request: pytest.FixtureRequest, part: int = 0, parts: int = 1, usual: int = USUAL
) -> Iterator[np.random.Generator]:
    """One seeded generator per random model of this part of a property; a failing one names itself.

    `usual` is how many there are, but for `--examples` and `--deep`. What a test asserts of all of them together must
    hold for the fixed ones, which are there always.
    """
    for name, rng in _named(request, part, parts, usual):
        try:
            yield rng
        except GeneratorExit:
            print(name)
            raise


def _named(
    request: pytest.FixtureRequest, part: int, parts: int, usual: int
) -> Iterator[tuple[str, np.random.Generator]]:
    """The first fixed ones come from the name of the test function alone, whatever its parameters."""
    option, name = request.config.option, request.node.originalname or request.node.name
    first = math.ceil(FIXED_SHARE * usual)
    fixed = first + math.floor(KEPT_SHARE * usual)
    for number in range(part, fixed + (option.examples or math.ceil(NEW_SHARE * usual)), parts):
        if number < first:
            yield f"random model {number} of {name}", np.random.default_rng([zlib.crc32(name.encode()), number])
            continue
        seed, title = (KEPT_SEED, "random model") if number < fixed else (option.seed, "new random model")
        stem = zlib.crc32(f"{seed} {request.node.nodeid}".encode())
        yield f"{title} {number} of {name}, --seed {option.seed}", np.random.default_rng([stem, number])


def value_info(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
    """A graph input or output with the type and shape of an array."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def single(
    op_type: str,
    inputs: Mapping[str, np.ndarray | None],
    outputs: Sequence[int],
    attributes: Mapping[str, Any] | None = None,
    *,
    domain: str = "",
    opset: int = 21,
    constants: Collection[str] = (),
) -> tuple[bytes, list[np.ndarray]]:
    """A model of one node, and what to feed it.

    Args:
        op_type, domain, attributes, opset: of the node; com.microsoft is imported as version 1, ai.onnx.ml as 3.
        inputs: operands in order, None for omitted ones.
        outputs: TensorProto types of the outputs (their shapes stay open).
        constants: names of the operands that become initializers; the others are graph inputs.
    """
    names = [name if array is not None else "" for name, array in inputs.items()]
    results = [f"y{i}" for i in range(len(outputs))]
    node = helper.make_node(op_type, names, results, "node", domain=domain, **(attributes or {}))
    given = {name: array for name, array in inputs.items() if array is not None}
    return build(
        [node],
        {name: array for name, array in given.items() if name not in constants},
        dict(zip(results, outputs, strict=True)),
        {name: array for name, array in given.items() if name in constants},
        opset=opset,
    )


def build(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, np.ndarray],
    outputs: Mapping[str, int],
    initializers: Mapping[str, np.ndarray] | None = None,
    *,
    opset: int = 21,
) -> tuple[bytes, list[np.ndarray]]:
    """A model of several nodes, and what to feed it. `outputs`: name to TensorProto type."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [value_info(name, array) for name, array in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (initializers or {}).items()],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    if any(node.domain == CLASSICAL for node in nodes):
        imports.append(helper.make_opsetid(CLASSICAL, 3))
    model = helper.make_model(graph, opset_imports=imports, ir_version=_IR_VERSION)
    return model.SerializeToString(), [np.asarray(array) for array in inputs.values()]


@dataclass(frozen=True)
class Refused:
    """ONNX Runtime's error."""

    message: str


def options(level: str = "ALL", **entries: str) -> onnxruntime.SessionOptions:
    """The settings whose bits the numerics `onnxruntime` reproduces."""
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = 1
    chosen.log_severity_level = 4
    chosen.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    for key, value in {"session.qdqisint8allowed": "1", **entries}.items():
        chosen.add_session_config_entry(key, value)
    return chosen


def run_runtime(content: bytes, feeds: Sequence[np.ndarray], level: str = "ALL") -> dict[str, np.ndarray] | Refused:
    """Output name to array, or the error."""
    try:
        session = onnxruntime.InferenceSession(content, options(level), ["CPUExecutionProvider"])
        names = [value.name for value in session.get_inputs()]
        results = session.run(None, dict(zip(names, feeds, strict=True)))
    except Exception as error:
        # The package raises many types of its own.
        return Refused(str(error))
    return {value.name: np.asarray(array) for value, array in zip(session.get_outputs(), results, strict=True)}


def indexed(content: bytes, answer: Mapping[str, np.ndarray] | Refused) -> Answer:
    """An answer by the indices that bittrue gives the outputs; one of a model that bittrue cannot read is refused."""
    if isinstance(answer, Refused):
        return Answer(refused=answer.message)
    try:
        graph = bittrue.load(content).graph
    except bittrue.BittrueError as error:
        return Answer(refused=error.message)
    return Answer(values={i: answer[graph.tensors[i].name] for i in graph.outputs})


def check(content: bytes, feeds: Sequence[np.ndarray], **how: Any) -> str:
    """Every output of bittrue equals the runtime's byte for byte, natively too, or both refuse.

    Args:
        how: as of `checking`.

    Returns:
        ``"equal"`` or ``"refused"``.
    """
    (outcome,) = _in_step([("", checking(content, feeds, **how))])
    return outcome


def checking(
    content: bytes,
    feeds: Sequence[np.ndarray],
    *,
    may_refuse: Collection[str] = (),
    level: str = "ALL",
    numerics: str = HERE,
    expected: Callable[[], dict[str, np.ndarray] | Refused] | None = None,
    native: bool = True,
) -> Generator[None, None, str]:
    """The stages of `check`.

    Args:
        may_refuse: error codes with which bittrue may refuse what the runtime runs (a recorded limit).
        expected: gives the results to compare with; ONNX Runtime's by default.
    """
    theirs = run_runtime(content, feeds, level) if expected is None else expected()
    if RECORDER is not None and expected is None and level == "ALL":
        test = os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0]
        RECORDER.add(Case(test, content, [list(feeds)], indexed(content, theirs)))
    yield
    refusal, values = None, {}
    try:
        model = bittrue.load(content)
        yield
        session = model.prepare(numerics, executor="reference")
        values = session.trace(*feeds)
    except bittrue.BittrueError as caught:
        refusal = caught
    if refusal is not None:
        assert refusal.code != "BT-PLAN-STEP", f"a plan that contradicts itself: {refusal}"
        assert isinstance(theirs, Refused) or refusal.code in may_refuse, f"refused what the runtime runs: {refusal}"
        return "refused"
    assert not isinstance(theirs, Refused), f"ran what the runtime refuses: {theirs.message}"
    # Where nobody has named all rules, rows say so; what they give is not compared.
    unknown = inexact_names(session.plan) if HERE.endswith("@aarch64") and numerics == HERE else ()
    for name, array in theirs.items():
        if name not in unknown:
            assert_same(name, values[name], array)
    yield
    if native:
        everything = bittrue.isas()
        draw = zlib.crc32(content)
        chosen = everything if draw % 8 == 0 else everything[draw // 8 % len(everything) :][:1] if everything else ()
        check_native(session, [list(feeds)], values, isas=list(chosen))
    return "equal"


def _in_step(named: Sequence[tuple[str, Generator[None, None, str]]]) -> list[str]:
    """Outcomes of checks that take each of their stages together."""
    outcomes = [""] * len(named)
    waiting = list(enumerate(named))
    while waiting:
        going = []
        for place, (name, stages) in waiting:
            try:
                next(stages)
                going.append((place, (name, stages)))
            except StopIteration as end:
                outcomes[place] = end.value
            except BaseException:
                print(name)
                for _, (_, others) in waiting:
                    others.close()
                raise
        waiting = going
    return outcomes


class Checks:
    """The random models of a property, checked in groups: iterate over it for their generators, and `add` each model.

    Args:
        usual: as of `cases`.
        only: the one outcome that every model must have, if there is one.

    Attributes:
        outcomes: of all models, once the iteration has ended.
    """

    def __init__(self, request: pytest.FixtureRequest, usual: int = USUAL, only: str = "") -> None:
        self.outcomes: list[str] = []
        self._request, self._usual, self._only = request, usual, only
        self._waiting: list[tuple[str, Generator[None, None, str]]] = []
        self._name = ""

    def __iter__(self) -> Iterator[np.random.Generator]:
        for name, rng in _named(self._request, 0, 1, self._usual):
            self._name = name
            try:
                yield rng
            except GeneratorExit:
                print(name)
                raise
            if len(self._waiting) >= _TOGETHER:
                self._check()
        self._check()

    def add(self, content: bytes, feeds: Sequence[np.ndarray], **how: Any) -> None:
        """A model, and what to feed it. `how`: as of `checking`."""
        self._waiting.append((self._name, checking(content, feeds, **how)))

    def _check(self) -> None:
        found = _in_step(self._waiting)
        for (name, _), outcome in zip(self._waiting, found, strict=True):
            assert outcome == (self._only or outcome), name
        self._waiting, self.outcomes = [], self.outcomes + found


def natively(content: bytes, feeds: list[np.ndarray], numerics: str = "onnxruntime") -> None:
    """Every instruction set gives the bytes of the reference by kernels of its own."""
    model = bittrue.load(content)
    expected = model.prepare(numerics, executor="reference").run(*feeds)
    for isa in bittrue.isas():
        session = model.prepare(numerics, isa=isa, threads=2)
        assert "runs on the reference" not in str(session.plan)
        for name, found in session.run(*feeds).items():
            assert found.tobytes() == expected[name].tobytes(), isa


def scale(rng: np.random.Generator, size: int | tuple[int, ...] = ()) -> np.ndarray:
    """Positive binary32 scales over a few binades, a third of them round numbers, which make ties."""
    smooth = np.exp2(rng.uniform(-10, 2, size))
    round_ones = np.exp2(rng.integers(-8, 2, size).astype(np.float64))
    return np.where(rng.random(size) < 0.33, round_ones, smooth).astype(np.float32)


def odd_scale(rng: np.random.Generator, usual: np.ndarray) -> np.ndarray:
    """Scales as they are, or in one of 30 cases some that no quantizer writes: 0, negative, infinite, tiny, huge."""
    if rng.random() < 29 / 30:
        return usual
    odd = rng.choice(np.float32([0, -0.5, np.inf, -np.inf, np.nan, 1e-45, 1e-38, 3e38]), usual.shape)
    return np.asarray(np.where(rng.random(usual.shape) < 0.5, odd, usual), usual.dtype)


def integers(rng: np.random.Generator, shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Integers over the whole type, a tenth of them extremes."""
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, tuple(shape), dtype=dtype, endpoint=True)
    ends = np.where(rng.random(tuple(shape)) < 0.5, info.min, info.max).astype(dtype)
    return np.where(rng.random(tuple(shape)) < 0.1, ends, values).astype(dtype)


def zero_point(rng: np.random.Generator, dtype: Any, size: int | tuple[int, ...] = ()) -> np.ndarray:
    """Zero points: the ends, 0, the middle, or anything."""
    info = np.iinfo(dtype)
    usual = rng.choice([info.min, info.max, 0, (info.min + info.max + 1) // 2], size)
    anything = rng.integers(info.min, info.max, size, endpoint=True)
    return np.asarray(np.where(rng.random(size) < 0.5, usual, anything)).astype(dtype)


KIND = {
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.int8): TensorProto.INT8,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.float32): TensorProto.FLOAT,
}
