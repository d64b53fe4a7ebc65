"""Whole models on data, for level 4: the same bytes as one numerics, end to end."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import numerics as numerics_tables
from ..api import load
from ..errors import BittrueError, InputError
from ..files import read_file
from ..quantization import quantize
from ..runners.inputs import input_sets
from ..samples import demo_digits, demo_model
from .expected import Expected, Prepared
from .result import ModelResult
from .suite import SuiteCase
from .verdicts import Record, deviation_of, digest_of_all, misfit

# How many of the embedded digits are run.
_DIGITS = 50
_DEMO = "digits_int8.tflite (embedded)"


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A model and what it is fed.

    Attributes:
        name: for people.
        content: the file.
        files: inputs as `bittrue run -i` takes them; random ones without.
        seeds: of random inputs, one run each; 0 to 7 by default.
    """

    name: str
    content: bytes
    files: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()

    @classmethod
    def demo(cls) -> ModelFile:
        """The embedded network on its held-out digits."""
        return cls(_DEMO, demo_model())

    @classmethod
    def read(cls, path: str | Path, files: Sequence[str] = (), seeds: Sequence[int] = ()) -> ModelFile:
        """A file.

        Raises:
            OSError: it cannot be read.
        """
        return cls(Path(path).name, read_file(path), tuple(files), tuple(seeds))

    def cases(self) -> tuple[list[SuiteCase], list[str]]:
        """One case per run, and what is fed in words.

        Raises:
            BittrueError: bittrue cannot read the model, or the inputs do not fit.
        """
        model = load(self.content)
        session = model.prepare()
        if self.name == _DEMO:
            port = session.inputs[0]
            images = demo_digits()[0][:_DIGITS].astype(np.float32) / 16
            quantized = quantize(images, port.scale or 1.0, port.zero_point or 0, str(port.dtype))
            sets = [({port.name: code[None]}, f"digit {i}") for i, code in enumerate(quantized)]
        else:
            seeds = self.seeds or (() if self.files else range(8))
            sets = [(s.values, s.description) for s in input_sets(session.inputs, self.files, seeds)]
        first = SuiteCase("model/000", "model", "model", self.name, "random", model.format, self.content, {})
        cases = [first.fed(values, f"model/{i:03d}") for i, (values, _) in enumerate(sets)]
        return cases, [text for _, text in sets]


def model_results(
    ask: Callable[[SuiteCase], Record], reads: Sequence[str], models: Sequence[ModelFile], numerics: str = ""
) -> list[ModelResult]:
    """Run models; the embedded one only where the device reads its format.

    Args:
        ask: has the device run a case.
        reads: formats that the device takes.
        models: what to run.
        numerics: the only one that may be named; empty for any.
    """
    found = []
    for model in models:
        cases, texts = model.cases()
        if cases and cases[0].format not in reads:
            if model.name == _DEMO:
                continue
            message = f"the device reads {', '.join(reads)}, this model is {cases[0].format}"
            raise InputError("BT-SUITE-FORMAT", message, place=model.name)
        found.append(_result(model, texts, [ask(case) for case in cases], numerics))
    return found


def _result(model: ModelFile, texts: Sequence[str], records: Sequence[Record], numerics: str) -> ModelResult:
    alive = list((numerics,) if numerics else numerics_tables.distinct())
    counts: Counter[str] = Counter()
    text, prepared = "", Prepared()
    for record in records:
        outcome, said = _outcome(record, alive, prepared)
        counts[outcome] += 1
        text = text or said
    matches = tuple(alive) if set(counts) <= {"exact"} and counts else ()
    return ModelResult(
        model.name,
        hashlib.sha256(model.content).hexdigest(),
        tuple(texts),
        digest_of_all([r.case.inputs for r in records]),
        digest_of_all([r.outputs for r in records]),
        matches,
        dict(counts),
        text,
    )


def _outcome(record: Record, alive: list[str], prepared: Prepared) -> tuple[str, str]:
    """The outcome of one run; numerics that are not exact leave `alive`."""
    if record.status != "outputs":
        alive.clear()
        return ("skipped" if record.status == "refused" else record.status), record.text
    before = list(alive)
    if before:
        expected = Expected(record.case, before, prepared)
        alive[:] = [name for one in expected.matching(record.outputs) for name in one.names]
        alive.sort(key=before.index)
    if alive:
        return "exact", ""
    for name in before or numerics_tables.distinct():
        try:
            wanted = Expected(record.case, (name,), prepared).outputs(name)
        except BittrueError:
            continue
        wrong = misfit(record.outputs, wanted)
        if wrong:
            return "wrong outputs", wrong
        off = deviation_of(record.outputs, wanted)
        far = "" if off.largest is None else f" by at most {off.largest}"
        return "differs", f"{off.differing} of {off.elements} elements differ from {name}{far}"
    return "no reference", "no numerics runs this model"


def reproduces(model: ModelFile, result: ModelResult) -> str:
    """What does not hold of a recorded result; empty when all does."""
    if hashlib.sha256(model.content).hexdigest() != result.sha256:
        return "another file: its SHA-256 differs"
    cases, texts = model.cases()
    if tuple(texts) != result.inputs or digest_of_all([c.inputs for c in cases]) != result.inputs_sha256:
        return "other inputs: their SHA-256 differs"
    prepared = Prepared()
    for name in result.matches:
        try:
            outputs = [Expected(case, (name,), prepared).outputs(name) for case in cases]
        except BittrueError as error:
            return f"numerics {name} cannot run it: {error.message}"
        if digest_of_all(outputs) != result.outputs_sha256:
            return f"numerics {name} gives other outputs than the device is said to have given"
    return ""
