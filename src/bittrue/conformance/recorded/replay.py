"""Recorded vectors through an executor: which cases give the recorded bytes, and where the first other ones are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import MISFITS, BittrueError, InputError
from ...files import check_finished
from ...names import near_or_all
from ...numerics import Numerics, find
from ...plan import make_plan
from ...runtime import NativeExecutor, ReferenceExecutor, native_module
from .adapters import SUITE, Adapter, Trial, find_adapter
from .desc_tests import DescTest, find_desc_tests
from .model_runs import ModelRun, find_model_runs
from .node_tests import NodeTest, find_node_tests
from .stored import damaged
from .vectors import MANIFEST, Case, Recorded, VectorSet, read_vectors

EXECUTORS = ("auto", "native", "reference")
# What `bittrue vectors` leaves beside the formats' folders, and those of them that can be replayed.
INDEX = "suite.json"
WRITTEN = ("npz", "desc", "tflite", "onnx", "bin")


@dataclass(frozen=True)
class FirstDifference:
    """The first element that is not the recorded one.

    Attributes:
        output: its name.
        index: of the element; None when type or shape differ.
        expected, found: the element's values, or types and shapes.
    """

    output: str
    index: tuple[int, ...] | None
    expected: str
    found: str

    def __str__(self) -> str:
        place = self.output if self.index is None else f"{self.output}{list(self.index)}"
        return f"{place}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True)
class Outcome:
    """One case.

    Attributes:
        values: how many were compared.
        differing: how many of them are not the recorded ones.
        refusal: the error when it did not run; it names what is missing.
        depends_on: what else the recorded result depends on, for example the CPU; empty for nothing.
    """

    case: str
    operator: str
    values: int = 0
    differing: int = 0
    first: FirstDifference | None = None
    refusal: str = ""
    depends_on: str = ""

    @property
    def equal(self) -> bool:
        return not self.refusal and self.first is None


@dataclass(frozen=True)
class Summary:
    """All cases of one operator.

    Attributes:
        first: the first case that is not equal.
    """

    operator: str
    cases: int
    equal: int
    refused: int
    values: int
    differing: int
    first: Outcome | None


@dataclass(frozen=True)
class Replay:
    """What became of a folder.

    Attributes:
        framework, version: who recorded the vectors.
        numerics: whose arithmetic they were replayed with, in the order of the cases.
    """

    folder: str
    framework: str
    version: str
    numerics: tuple[str, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def equal(self) -> int:
        """Number of cases with the recorded bytes."""
        return sum(outcome.equal for outcome in self.outcomes)

    @property
    def passed(self) -> bool:
        return self.equal == len(self.outcomes)

    def apart(self) -> dict[str, list[Outcome]]:
        """The cases whose recorded results depend on something else, by what that is."""
        groups: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            if outcome.depends_on:
                groups.setdefault(outcome.depends_on, []).append(outcome)
        return groups

    def operators(self) -> list[Summary]:
        """One summary per operator, in the order of the folder."""
        groups: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            groups.setdefault(outcome.operator, []).append(outcome)
        return [_summary(operator, outcomes) for operator, outcomes in groups.items()]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "folder": self.folder,
            "framework": self.framework,
            "version": self.version,
            "numerics": list(self.numerics),
            "cases": len(self.outcomes),
            "equal": self.equal,
            "depends_on": {
                reason: {"cases": len(outcomes), "equal": sum(outcome.equal for outcome in outcomes)}
                for reason, outcomes in self.apart().items()
            },
            "operators": [
                {
                    **{key: value for key, value in vars(summary).items() if key != "first"},
                    "first": None if summary.first is None else asdict(summary.first),
                }
                for summary in self.operators()
            ],
            "unequal": [asdict(outcome) for outcome in self.outcomes if not outcome.equal],
        }


def _summary(operator: str, outcomes: Sequence[Outcome]) -> Summary:
    return Summary(
        operator,
        len(outcomes),
        sum(outcome.equal for outcome in outcomes),
        sum(bool(outcome.refusal) for outcome in outcomes),
        sum(outcome.values for outcome in outcomes),
        sum(outcome.differing for outcome in outcomes),
        next((outcome for outcome in outcomes if not outcome.equal), None),
    )


def replay(
    folder: str | Path,
    numerics: str | None = None,
    *,
    operators: Collection[str] = (),
    executor: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> Replay:
    """Run every case of a folder and compare the results with the recorded bytes.

    Args:
        folder: one with a manifest.json of the form ``bittrue-vectors-1``, one whose manifest names models and their
            runs, one of ONNX backend tests (folders with a model.onnx and test_data_set_*; they may lie deeper), one of
            folders with a desc.json, or one that `bittrue vectors` wrote.
        numerics: whose arithmetic; None: that of the framework that recorded the vectors.
        operators: only these; all when empty.
        executor: ``"auto"``, ``"native"`` or ``"reference"``.
        progress: called with the number of finished cases and that of all.

    Raises:
        InputError: no such folder, framework, numerics or operator.
        ModelFormatError: the manifest is damaged. What is wrong with a single case is that case's refusal.
    """
    if executor not in EXECUTORS:
        raise InputError(
            "BT-EXECUTOR",
            f"unknown executor '{executor}'",
            advice=near_or_all(executor, EXECUTORS, "choose one of"),
        )
    framework, version, cases = _found(Path(folder))
    adapter = find_adapter(framework)
    if numerics is not None:
        find(numerics)
    used: dict[str, None] = {}
    known = dict.fromkeys(case.operator for case in cases)
    for operator in operators:
        if operator not in known:
            raise InputError("BT-VECTORS-OPERATOR", f"no case of '{operator}'", advice=f"operators: {', '.join(known)}")
    chosen = [case for case in cases if not operators or case.operator in operators]
    outcomes = []
    for case in chosen:
        trials = partial(_single, adapter, case) if isinstance(case, Case) else case.trials
        outcomes.append(_outcome(case.identity, case.operator, trials, numerics, adapter.numerics, executor, used))
        if progress is not None:
            progress(len(outcomes), len(chosen))
    return Replay(str(folder), framework, version, tuple(used) or (numerics or adapter.numerics,), tuple(outcomes))


def _found(place: Path) -> tuple[str, str, Sequence[Case | NodeTest | ModelRun | DescTest]]:
    """Who recorded a folder, which version, and its cases."""
    if not place.is_dir():
        raise InputError("BT-VECTORS-PATH", "no such folder", place=str(place))
    check_finished(place, INDEX)
    if (place / INDEX).is_file():
        return _written(place)
    manifest = (place / MANIFEST).is_file()
    if manifest and (own := _own(place)) is not None:
        return own.framework, own.version, own.cases
    if tests := find_node_tests(place):
        return "onnx", "ONNX backend test data", tests
    if manifest and (runs := find_model_runs(place)):
        return "mxnet", "recorded runs of models", runs
    if manifest:
        vectors = read_vectors(place)
        return vectors.framework, vectors.version, vectors.cases
    if descs := find_desc_tests(place):
        return SUITE, "folders with a desc.json", descs
    raise InputError(
        "BT-VECTORS-PATH",
        f"neither a {MANIFEST} nor ONNX backend tests nor folders with a desc.json are in this folder",
        place=str(place),
    )


def _own(place: Path) -> VectorSet | None:
    """The vectors of a manifest of our own suites, which may stand beside backend tests; None for others."""
    try:
        vectors = read_vectors(place)
    except BittrueError:
        return None
    return vectors if vectors.framework == SUITE else None


def _written(place: Path) -> tuple[str, str, Sequence[Case | DescTest]]:
    """What `bittrue vectors` left: the formats that can be read, one after the other."""
    cases: list[Case | DescTest] = []
    versions: dict[str, None] = {}
    for name in WRITTEN:
        folder = place / name
        if not folder.is_dir():
            continue
        if (folder / MANIFEST).is_file():
            vectors = read_vectors(folder)
            versions[vectors.version] = None
            if vectors.framework != SUITE:
                raise damaged(f"the vectors are of '{vectors.framework}', not of '{SUITE}'", str(folder / MANIFEST))
            cases += [replace(case, identity=f"{name}/{case.identity}") for case in vectors.cases]
        else:
            cases += [replace(case, identity=f"{name}/{case.identity}") for case in find_desc_tests(folder)]
    if not cases:
        raise InputError(
            "BT-VECTORS-PATH",
            f"none of the formats that can be replayed is in this folder: {', '.join(WRITTEN)}",
            place=str(place),
        )
    return SUITE, ", ".join(versions) or "folders with a desc.json", cases


def _single(adapter: Adapter, case: Case) -> Iterator[Trial]:
    try:
        trial = adapter.trial(case)
    except MISFITS as error:
        raise damaged(f"its fields do not fit together ({type(error).__name__}: {error})", case.place) from error
    yield replace(trial, depends_on=trial.depends_on or case.depends_on)


def _outcome(
    identity: str,
    operator: str,
    trials: Callable[[], Iterator[Trial]],
    numerics: str | None,
    recorded: str,
    executor: str,
    used: dict[str, None],
) -> Outcome:
    """`numerics`: what the caller asks for; `recorded`: what is taken unless that or the trial names one."""
    values = differing = 0
    first: FirstDifference | None = None
    refusal = depends_on = ""
    try:
        for trial in trials():
            depends_on = depends_on or trial.depends_on
            table = find(numerics or trial.numerics or recorded)
            used[table.name] = None
            if trial.must_fail:
                refusal = refusal or _ran_anyway(trial, table, executor)
                continue
            for expected, found in zip(trial.expected, _run(trial, table, executor), strict=True):
                if expected is None:
                    continue
                values += expected.value.size
                count, different = compare(expected, found if trial.zero_signs else found + found.dtype.type(0))
                differing += count
                first = first or different
    except BittrueError as error:
        refusal = str(error)
    except Exception as error:
        # A fault of ours in one case must not hide what became of the others.
        refusal = f"internal error: {type(error).__name__}: {error}"
    return Outcome(identity, operator, values, differing, first, refusal, depends_on)


def _ran_anyway(trial: Trial, table: Numerics, executor: str) -> str:
    """What is wrong when a model runs that was refused; empty when it is refused, or was not."""
    if trial.model is None or not trial.refused:
        return ""
    try:
        _run(trial, table, executor)
    except BittrueError:
        return ""
    return "it runs, but must be refused"


def _run(trial: Trial, table: Numerics, executor: str) -> list[np.ndarray]:
    """Results in the order of the graph's outputs."""
    if trial.model is None:
        raise InputError("BT-VECTORS-MODEL", "the model cannot be read")
    graph = trial.model.graphs[0]
    if len(trial.feeds) != len(graph.inputs):
        raise InputError("BT-INPUT-COUNT", f"{len(trial.feeds)} arrays, the model has {len(graph.inputs)} inputs")
    feeds = dict(zip(graph.inputs, (np.asarray(value, order="C") for value in trial.feeds), strict=True))
    shapes = {graph.tensors[i].name: value.shape for i, value in feeds.items()}
    for index, value in feeds.items():
        wanted = graph.tensors[index].type.numpy
        if value.dtype != wanted:
            raise InputError(
                "BT-INPUT-TYPE", f"expected {wanted}, found {value.dtype}", place=f"input '{graph.tensors[index].name}'"
            )
    plan = make_plan(graph, table, shapes=shapes, notes=trial.model.notes, graphs=trial.model.graphs)
    native = executor == "native" or (executor == "auto" and native_module() is not None)
    engine: NativeExecutor | ReferenceExecutor = NativeExecutor(plan) if native else ReferenceExecutor(plan)
    results = dict(zip(plan.results, engine.run(feeds), strict=True))
    return [results[index] for index in graph.outputs]


def compare(expected: Recorded, found: np.ndarray) -> tuple[int, FirstDifference | None]:
    """How many elements have other bytes than recorded, and the first one of them; a narrow float's NaN is any NaN.

    >>> from bittrue.conformance.recorded.vectors import Recorded
    >>> from bittrue.graph import data_type
    >>> y = Recorded("y", data_type("s8"), np.int8([[1, 2], [3, 4]]))
    >>> count, first = compare(y, np.int8([[1, 2], [3, 5]]))
    >>> count, str(first)
    (1, 'y[1, 1]: expected 4, found 5')
    """
    value = expected.value
    if found.dtype != value.dtype or found.shape != value.shape:
        kinds = [f"{array.dtype}{list(array.shape)}" for array in (value, found)]
        return value.size, FirstDifference(expected.name, None, *kinds)
    if value.dtype == object:
        apart = np.array([one != two for one, two in zip(value.reshape(-1), found.reshape(-1), strict=True)], bool)
    else:
        one, two = (
            np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8).reshape(array.size, array.dtype.itemsize)
            for array in (value, found)
        )
        apart = (one != two).any(1)
        if value.dtype.itemsize == 1 and isinstance(expected.dtype.array, str):
            # Several codes of a narrow float mean NaN, and recorders write the one that their conversion gives.
            apart &= ~(np.isnan(value) & np.isnan(found)).reshape(-1)
    places = np.flatnonzero(apart)
    if not places.size:
        return 0, None
    index = tuple(int(i) for i in np.unravel_index(places[0], value.shape))
    texts = [_text(array[index]) for array in (value, found)]
    return int(places.size), FirstDifference(expected.name, index, *texts)


def _text(value: Any) -> str:
    """An element; its bytes, too, where its number alone may not tell it from another."""
    if isinstance(value, bytes | str | bool | int) or value.dtype.kind in "iub":
        return str(value)
    return f"{value} (0x{value.tobytes()[::-1].hex()})"
