"""Entry points of checking, comparing, explaining, reducing and reporting, each tried on damaged files."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from damage import damaged, spoiled, written
from oracle import Finding, tried
from targets import onnx, tflite
from watch import changed, report, summary, watch

import bittrue
from bittrue.cli import main


def typed(*arguments: str) -> str:
    """The command's exit code and the code of its error; FAILED for a traceback or an exit code that it has not."""
    output, errors = io.StringIO(), io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            main(list(arguments))
        except SystemExit as end:
            code = end.code
    if code not in (0, 1, 2, 3) or "Traceback" in errors.getvalue() or "Warning" in errors.getvalue():
        return f"FAILED: exit code {code}: {errors.getvalue()}"
    return f"exit code {code}"


# ------------------------------------------------------------------------------------------------- traces


def traces(
    pipe: Any, files: dict[str, bytes], index: dict[str, Any], model: str, seeds: Iterable[int], folder: str
) -> None:
    """Damaged traces against the model that wrote them."""

    def one(seed: int) -> str:
        numbers = random.Random(seed)
        place = Path(folder, "trace")
        place.mkdir(exist_ok=True)
        for path in place.iterdir():
            path.unlink()
        contents = {**files, "trace.json": written(index)}
        kind = seed % 4
        if kind < 2:
            contents["trace.json"] = written(damaged(index, numbers, (*files,)))
        elif kind == 2:
            contents["trace.json"] = spoiled(contents["trace.json"], numbers)
        else:
            if numbers.random() < 0.3:
                del contents["trace.json"]
            for name in numbers.sample(sorted(files), 2):
                head = numbers.choice((20, 128, 1 << 20))
                contents[name] = spoiled(files[name][:head], numbers) + files[name][head:]
        for name, content in contents.items():
            Path(place, name).write_bytes(content)
        if numbers.random() < 0.1:
            name = numbers.choice(sorted(contents))
            Path(place, name).unlink()
            target = numbers.choice(("/dev/zero", "/etc/passwd", str(place), name, "/proc/self/mem", "trace.json"))
            Path(place, name).symlink_to(target)

        def call() -> str:
            sides = [model, f"trace:{place}"]
            numbers.shuffle(sides)
            result = bittrue.compare_models(*sides, explain=seed % 8 == 0)
            return "equal" if result.equal else "different"

        return tried(call)

    report(pipe, seeds, one)


# ------------------------------------------------------------------------------------------------- models


def change_model(content: bytes, seed: int) -> bytes:
    """A changed TFLite or ONNX model."""
    return (tflite if content[4:8] == b"TFL3" else onnx).change(content, seed)


def models(pipe: Any, contents: Sequence[bytes], entry: str, seeds: Iterable[int], folder: str) -> None:
    """One entry point on mutated models."""

    def one(seed: int) -> str:
        content = contents[seed % len(contents)]
        suffix = ".tflite" if content[4:8] == b"TFL3" else ".onnx"
        original, path = Path(folder, "original" + suffix), Path(folder, "mutated" + suffix)
        original.write_bytes(content)
        path.write_bytes(changed(change_model, content, random.Random(seed).getrandbits(31)))
        return ENTRIES[entry](original, path, seed)

    report(pipe, seeds, one)


def _small(path: Path) -> bool:
    """Whether it can be run in no time; typed errors for what cannot be run at all."""
    plan = bittrue.load(path).prepare(iteration_limit=200, memory_limit=256 << 20).plan
    return plan.work < 50_000_000 and sum(np.prod(plan.tensors[i].shape, dtype=float) for i in plan.inputs) < 1 << 22


def checked(model: Path | bytes) -> str:
    """What a check says; rules that come to no end are findings."""
    result = bittrue.check_model(model)
    if result.failures:
        raise Finding("internal", f"check {result.failures[0]}"[:80], str(result.failures))
    return "found" if result.errors else "result"


def _check(original: Path, path: Path, seed: int) -> str:
    def call() -> str:
        return checked(path)

    return tried(call)


def _compare(original: Path, path: Path, seed: int) -> str:
    def call() -> str:
        if not _small(path):
            return "large"
        sides = [str(original), str(path)]
        if seed % 3 == 0:
            sides.reverse()
        if seed % 7 == 0:
            other = {".tflite": "@xnnpack", ".onnx": "@onnx"}[path.suffix]
            sides = [str(path), str(path) + other]
        return "equal" if bittrue.compare_models(*sides, amplify=seed % 4 == 0).equal else "different"

    return tried(call)


def _explain(original: Path, path: Path, seed: int) -> str:
    def call() -> str:
        if not _small(path):
            return "large"
        session = bittrue.load(path).prepare(iteration_limit=200)
        rng = np.random.default_rng(seed)
        from bittrue.runners.inputs import random_input

        traced = session.trace({port.name: random_input(rng, port) for port in session.inputs})
        for step in session.plan.steps:
            for index in step.outputs:
                tensor = session.plan.tensors[index]
                if not traced[tensor.name].size:
                    continue
                element = tuple(int(rng.integers(size)) for size in traced[tensor.name].shape)
                work_out = partial(bittrue.explain_element, session, traced, tensor.name, element)
                tried(lambda work_out=work_out: str(bool(work_out().lines)))
        return "result"

    return tried(call)


def _reduce(original: Path, path: Path, seed: int) -> str:
    from bittrue.compare.reduce import reduce_model
    from bittrue.runners.inputs import input_sets
    from bittrue.runners.sides import open_side

    def call() -> str:
        if not _small(path):
            return "large"
        sides = [str(original), str(path)] if seed % 2 else [str(path), f"{path}@{NUMERICS[path.suffix]}"]
        with contextlib.ExitStack() as stack:
            runners = [open_side(side) for side in sides]
            for runner in runners:
                stack.callback(runner.close)
            given = [one.values for one in input_sets(runners[0].inputs)]
            found = reduce_model(runners[0], runners[1], given, path.with_name("reduced" + path.suffix), 30)
        return "equal" if found is None else "reduced"

    return tried(call)


def _command(original: Path, path: Path, seed: int) -> str:
    a, b, json_file = str(original), str(path), str(path.with_name("result.json"))
    commands = (
        ("check", b, "--json"),
        ("check", b, "--all", "--sarif", json_file + ".sarif", "--junit", json_file + ".xml", "--markdown", "-"),
        ("compare", a, b, "--tensors", "-o", json_file, "--markdown", json_file + ".md"),
        ("compare", b, f"{b}@{NUMERICS[path.suffix]}", "--json", "--html", json_file + ".html"),
        ("explain", b),
        ("reduce", a, b, "-o", json_file + path.suffix, "--trials", "10"),
    )
    try:
        if not _small(path):
            return "large"
    except bittrue.BittrueError:
        pass
    return tried(lambda: typed(*commands[seed % len(commands)]))


NUMERICS = {".tflite": "xnnpack", ".onnx": "onnx"}
ENTRIES = {"check": _check, "compare": _compare, "explain": _explain, "reduce": _reduce, "command": _command}


def campaign(
    work: Callable[..., None], *arguments: Any, seeds: range, folder: Path, seconds: float = 15
) -> dict[str, Any]:
    """Counts per outcome; AssertionError with the seed for anything but a result or a typed error."""
    return summary(f"{folder}", watch(work, *arguments, seeds, str(folder), seconds=seconds))
