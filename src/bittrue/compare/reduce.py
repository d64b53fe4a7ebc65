"""The smallest model on which two sides still differ: cut out of a larger one, every step verified by running both."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import BittrueError, InputError, OutputError, UnsupportedError
from ..files import scratch_bytes, written
from ..names import short
from ..runners.base import Runner
from ..runners.guard import temporary_folder
from ..runners.recording import Recording
from .archive import write_arrays
from .surgery import Dimension, Document, open_document

Values = Mapping[str, np.ndarray]
# Told what is being tried, and how many trials there were.
Progress = Callable[[str, int], None]
TRIALS = 400


@dataclass(frozen=True)
class Reduction:
    """A model that was made smaller, and how its two sides differ.

    Attributes:
        a, b: sides over the small file, as one types them.
        files: what was written.
        inputs: shape of every input.
        operators: what the file calls the operators that are left.
        tensor: the first tensor that differs.
        elements, differing: how many it has, how many differ.
        element, of_a, of_b: the first of those; None where not even types and shapes are the same.
        steps: what was left out, in order.
        trials: how many candidates both sides ran.
        complete: False when the trials were used up before nothing more could be left out.
        command: shows the difference again.
    """

    a: str
    b: str
    files: tuple[str, ...]
    inputs: dict[str, tuple[int, ...]]
    operators: tuple[str, ...]
    tensor: str
    elements: int
    differing: int
    element: tuple[int, ...] | None
    of_a: int | float | bool | None
    of_b: int | float | bool | None
    steps: tuple[str, ...]
    trials: int
    complete: bool
    command: str


def reduce_model(
    a: Runner,
    b: Runner,
    inputs: Iterable[Values],
    output: Path,
    trials: int = TRIALS,
    progress: Progress | None = None,
) -> Reduction | None:
    """Cut the model that both sides run to the smallest one that they still answer differently, and write it.

    The first tensor in execution order that differs is computed by one operator from tensors that are equal: that
    operator is cut out, and fed with what it got. Where it does not differ alone (a runtime that fuses or delegates
    several operators), its neighbours are added until it does, and those that are not needed are left out again. Then
    batches, images and channels are made smaller, by halves first. A step counts only when both sides, run on the
    smaller file, still differ.

    Args:
        a, b: sides that run the same file, or two files of one format with the same tensors.
        inputs: input sets; the first one on which the sides differ is used.
        output: the model file; its inputs are written beside it (``.npz``), with the answers of both sides
            (``.a.npz``, ``.b.npz``), and B's model (``.b`` before the extension) where the sides run two files.
        trials: how many candidates may be run at most.
        progress: called before each trial.

    Returns:
        None when the sides agree on all tensors of all inputs.

    Raises:
        UnsupportedError: a trace, a format that cannot be written, two formats, or the package that writes it is
            missing.
        OutputError: a file could not be written; older ones are still there.
        BittrueError: a side cannot run the whole model.
    """
    documents = _documents(a, b)
    for values in inputs:
        recordings = a.record(values), b.record(values)
        different = _differing(*recordings)
        if different:
            break
    else:
        return None
    with temporary_folder("bittrue-reduce-") as folder:
        search = _Search((a, b), documents, recordings, different, folder, trials, progress)
        try:
            search.few_operators()
            search.crop()
        except _Exhausted:
            search.complete = False
        return search.write(output)


class _Exhausted(Exception):
    """No trials are left."""


class _Search:
    """The smallest candidate so far, and the ways to a smaller one.

    Args:
        sides: A and B.
        documents: the file of both, or each one's.
        recordings: of the whole model.
        different: names of tensors that differ, in execution order; the first one is the target.
        folder: for candidates.
        trials: how many candidates may be run.
        progress: called before each trial.
    """

    def __init__(
        self,
        sides: tuple[Runner, Runner],
        documents: tuple[Document, ...],
        recordings: tuple[Recording, Recording],
        different: Sequence[str],
        folder: Path,
        trials: int,
        progress: Progress | None,
    ) -> None:
        self.complete = True
        self._sides = sides
        self._whole = documents
        self._at = {operator.position: operator for operator in documents[0].operators}
        self._target = different[0]
        self._answers = [_value(recording, self._target) for recording in recordings]
        # What a part is fed with: A's values. They may be views of temporary files, which go with them.
        self._known = {t.name: np.asarray(t.load()) for t in (*recordings[1], *recordings[0])}
        self._equal = {t.name for t in recordings[0] if t.name in recordings[1]} - {*different}
        self._folder = folder
        self._trials = self._left = trials
        self._progress = progress
        self._steps: list[str] = []
        # Differences that a smaller model may have; None: any.
        self._kinds: frozenset[int] | None = None
        self._nodes = list(self._at)
        self._differences = _differences(*self._answers)
        self._best = documents, {name: self._known[name] for name in documents[0].inputs}

    def few_operators(self) -> None:
        """To as few operators as possible, around the first tensor that differs.

        Both sides must give it the bytes that they gave it in the whole model, so that no other difference takes its
        place. Only where no part of the model does that, parts with another difference of that tensor will do.
        """
        for faithful in (True, False):
            if self._find_part(faithful):
                self._drop_operators(faithful)
                self._kinds = self._differences
                self._steps.append(f"{len(self._nodes)} of {len(self._at)} operators, around '{short(self._target)}'")
                return
        self._steps.append(f"all {len(self._at)} operators: no part of them around '{short(self._target)}' differs")
        self._aim_at_what_is_shown()
        self._kinds = self._differences

    def _aim_at_what_is_shown(self) -> None:
        """Of the whole model, run as it is, a side may not show the target, which an operator has joined."""
        recordings = self._record(*self._best)
        if all(self._target in recording for recording in recordings):
            return
        shown = _differing(*recordings)
        if not shown:
            raise UnsupportedError(
                "BT-REDUCE-HIDDEN",
                f"'{short(self._target)}' differs where both sides show it, but in no part of the model, and of the"
                " whole model the outputs are equal",
                advice="`bittrue compare A B` with the same inputs shows the difference",
            )
        self._target = shown[0]
        self._answers = [_value(recording, self._target) for recording in recordings]
        self._differences = _differences(*self._answers)

    def crop(self) -> None:
        """To smaller dimensions, until a whole round over all dimensions changes nothing.

        Integers may only differ by what they differed by before: with fewer operands, the target may come to differ
        for another reason.
        """
        changed = True
        while changed:
            changed = False
            for earlier in self._best[0][0].dimensions():
                # Other dimensions may have become smaller since the list was made.
                now = (d for d in self._best[0][0].dimensions() if {*d.axes} == {*earlier.axes})
                changed |= any(self._crop(dimension) for dimension in now)

    def write(self, output: Path) -> Reduction:
        """The files, and what is known about them."""
        documents, values = self._best
        recordings = self._record(documents, values)
        one, two = (_value(recording, self._target) for recording in recordings)
        differing = _unequal(one, two)
        if not differing.any():
            raise UnsupportedError(
                "BT-REDUCE-UNSTEADY",
                "the sides differed while the model was reduced, and no longer do: one of them is not deterministic",
                advice="compare a side with itself",
            )
        models = [output] if len(documents) == 1 else [output, output.with_suffix(f".b{output.suffix}")]
        inputs = output.with_suffix(".npz")
        answers = [output.with_suffix(f".{label}.npz") for label in "ab"]
        known = [{t.name: t.load() for t in recording if t.name not in values} for recording in recordings]
        write_files(
            {path: document.content() for path, document in zip(models, documents, strict=True)},
            {inputs: values, **dict(zip(answers, known, strict=True))},
        )
        sides = [side.with_model(path) for side, path in zip(self._sides, (models[0], models[-1]), strict=True)]
        first = None
        if one.dtype == two.dtype and one.shape == two.shape:
            first = tuple(int(i) for i in np.unravel_index(int(np.flatnonzero(differing)[0]), one.shape))
        specs = [shlex.quote(side.spec) for side in sides]
        return Reduction(
            a=sides[0].spec,
            b=sides[1].spec,
            files=tuple(str(path) for path in (*models, inputs, *answers)),
            inputs={name: value.shape for name, value in values.items()},
            operators=tuple(operator.source for operator in documents[0].operators),
            tensor=self._target,
            elements=one.size,
            differing=int(differing.sum()),
            element=first,
            of_a=None if first is None else one[first].item(),
            of_b=None if first is None else two[first].item(),
            steps=tuple(self._steps),
            trials=self._trials - self._left,
            complete=self.complete,
            command=f"bittrue compare {' '.join(specs)} -i {shlex.quote(str(inputs))}",
        )

    def _record(self, documents: tuple[Document, ...], values: Values) -> list[Recording]:
        """What both sides compute on a candidate."""
        paths = [self._folder / f"{label}{self._sides[0].path.suffix}" for label in "ab"[: len(documents)]]
        for path, document in zip(paths, documents, strict=True):
            scratch_bytes(path, document.content())
        sides = zip(self._sides, (paths[0], paths[-1]), strict=True)
        return [side.with_model(path).record(values) for side, path in sides]

    def _find_part(self, faithful: bool) -> bool:
        """Whether a part of the model differs: what computes the target from equal tensors, or that and neighbours."""
        nodes = self._behind_target()
        while not self._try_nodes(nodes, faithful):
            more = self._with_neighbours(nodes)
            if len(more) == len(nodes):
                return False
            nodes = more
        return True

    def _behind_target(self) -> list[int]:
        """The operators that compute the target from the nearest tensors that are equal."""
        found, wanted = set[int](), [self._target]
        while wanted:
            name = wanted.pop()
            operator = self._whole[0].producer(name)
            if operator is not None and operator.position not in found and name not in self._equal:
                found.add(operator.position)
                wanted.extend(operator.inputs)
        return sorted(found)

    def _with_neighbours(self, nodes: Sequence[int]) -> list[int]:
        whole, found = self._whole[0], {*nodes}
        for operator in (self._at[n] for n in nodes):
            found.update(p.position for name in operator.inputs if (p := whole.producer(name)) is not None)
            found.update(reader.position for name in operator.outputs for reader in whole.readers(name))
        return sorted(found)

    def _drop_operators(self, faithful: bool) -> None:
        """Leave out what is not needed: halves first, then ever smaller parts."""
        size = len(self._nodes) // 2
        while size:
            for at in range(0, len(self._nodes), size):
                if self._try_nodes(self._nodes[:at] + self._nodes[at + size :], faithful):
                    break
            else:
                size //= 2
            size = min(size, len(self._nodes) // 2)

    def _try_nodes(self, nodes: Sequence[int], faithful: bool) -> bool:
        """Whether these operators alone differ, fed with what A computed."""
        chosen = [self._at[n] for n in nodes]
        written = {name for operator in chosen for name in operator.outputs}
        read = {name for operator in chosen for name in operator.inputs}
        ends = {self._target, *self._whole[0].outputs} | (written - read)
        if self._target not in written or not self._known.keys() >= read - written:
            return False
        outputs = [name for operator in chosen for name in operator.outputs if name in ends]
        try:
            cut = tuple(document.cut(read - written, outputs, self._known) for document in self._whole)
        except BittrueError:
            return False
        values = {name: self._known[name] for name in cut[0].inputs}
        if not self._try(cut, values, f"{len(nodes)} of {len(self._at)} operators", faithful):
            return False
        self._nodes = list(nodes)
        return True

    def _crop(self, dimension: Dimension) -> bool:
        """Take away from both ends as long as the target differs."""
        # Powers of two: strides and "same" padding look at whether dimensions are even.
        low, high, part = 0, dimension.size, 1 << (dimension.size.bit_length() - 1)
        start_documents, start_values = self._best
        while part:
            for start, end in ((low, high - part), (low + part, high)):
                if start < end and self._try_crop(start_documents, start_values, dimension, start, end):
                    low, high = start, end
                    break
            else:
                part //= 2
        if high - low == dimension.size:
            return False
        self._steps.append(f"{dimension.title}: {low}:{high} of {dimension.size}")
        return True

    def _try_crop(
        self, documents: tuple[Document, ...], values: Values, dimension: Dimension, low: int, high: int
    ) -> bool:
        cropped = dict(values)
        for name, axis in dimension.axes:
            if name in cropped:
                kept = np.moveaxis(cropped[name], axis, 0)[low:high]
                cropped[name] = np.ascontiguousarray(np.moveaxis(kept, 0, axis))
        try:
            smaller = tuple(document.cropped(dimension, low, high) for document in documents)
        except BittrueError:
            return False
        return self._try(smaller, cropped, f"{dimension.title}: {high - low} of {dimension.size}", False)

    def _try(self, documents: tuple[Document, ...], values: dict[str, np.ndarray], title: str, faithful: bool) -> bool:
        """Run both sides on a candidate; it becomes the best one when the target differs (as it did, if `faithful`)."""
        if self._left == 0:
            raise _Exhausted
        self._left -= 1
        if self._progress is not None:
            self._progress(title, self._trials - self._left)
        try:
            recordings = self._record(documents, values)
        except OutputError:
            raise
        except BittrueError:
            return False
        if not all(self._target in recording for recording in recordings):
            return False
        answers = [_value(recording, self._target) for recording in recordings]
        if faithful:
            fits = not any(_unequal(x, y).any() for x, y in zip(answers, self._answers, strict=True))
        else:
            found = _differences(*answers)
            fits = bool(_unequal(*answers).any()) and (self._kinds is None or found is None or found <= self._kinds)
        if fits:
            self._best = documents, values
            self._differences = _differences(*answers)
        return fits


def write_files(models: Mapping[Path, bytes], arrays: Mapping[Path, Values]) -> None:
    """All of them are there to be renamed before the first one is.

    Raises:
        OutputError: a file could not be written.
    """
    with ExitStack() as stack:
        for path, content in models.items():
            stack.enter_context(written(path)).write(content)
        for path, values in arrays.items():
            write_arrays(stack.enter_context(written(path)), values)


def _documents(a: Runner, b: Runner) -> tuple[Document, ...]:
    """A's file, and B's where it is another one."""
    for side in (a, b):
        if side.model is None:
            raise UnsupportedError(
                "BT-REDUCE-TRACE",
                "there is no model to cut behind a trace",
                place=side.spec,
                advice="reduce needs two sides that can run smaller models",
            )
    if a.format != b.format:
        raise UnsupportedError(
            "BT-REDUCE-FORMATS",
            f"side A runs {a.format}, side B {b.format}: a part of one cannot be cut out of the other",
            advice="compare each format's runtime with bittrue's arithmetic on the same file",
        )
    document = open_document(a.path, a.model)
    if a.path.resolve() == b.path.resolve() or a.path.read_bytes() == b.path.read_bytes():
        return (document,)
    other = open_document(b.path, b.model)
    if [(o.inputs, o.outputs) for o in document.operators] != [(o.inputs, o.outputs) for o in other.operators]:
        raise UnsupportedError(
            "BT-REDUCE-FILES",
            "the two files have different operators or names of tensors, so no part of one stands for one of the other",
            place=f"{a.path}, {b.path}",
            advice="reduce needs one file, or two that differ in constants and parameters only",
        )
    return document, other


def _differing(a: Recording, b: Recording) -> list[str]:
    """Names of tensors that both show with different types, shapes or bytes, in A's execution order."""
    common = [t.name for t in a if t.name in b and t.name not in a.inputs]
    return [name for name in common if _unequal(_value(a, name), _value(b, name)).any()]


def _differences(one: np.ndarray, two: np.ndarray) -> frozenset[int] | None:
    """All b - a other than 0 of integers; None for other types, where each pair of values has its own."""
    if one.dtype != two.dtype or one.shape != two.shape or one.dtype.kind not in "iu" or one.dtype.itemsize > 4:
        return None
    return frozenset(np.unique(two.astype(np.int64) - one.astype(np.int64)).tolist()) - {0}


def _value(recording: Recording, name: str) -> np.ndarray:
    return np.asarray(recording[name].load())


def _unequal(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """One flag per element in C order: other bytes. All are, when type or shape differ."""
    if one.dtype != two.dtype or one.shape != two.shape:
        return np.ones(one.size, bool)
    size = one.dtype.itemsize
    flat = [np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(-1, size) for x in (one, two)]
    return (flat[0] != flat[1]).any(axis=1)


def check_output(output: Path, model: Path) -> None:
    """InputError where the file cannot be written, or is the model itself."""
    if not output.parent.is_dir():
        raise InputError("BT-FILE-MISSING", f"no folder '{output.parent}'", place="--output")
    if model.is_file() and output.suffix.lower() != model.suffix.lower():
        raise InputError(
            "BT-USAGE",
            f"the small model is a {model.suffix} file like the whole one, not '{output.name}'",
            place="--output",
        )
    if output.exists() and model.exists() and output.resolve() == model.resolve():
        raise InputError("BT-USAGE", "the small model would be written over the whole one", place="--output")
