"""Entry points of checking, comparing, explaining, reducing and reporting, each tried on damaged files."""

from __future__ import annotations

import contextlib
import io
import random
import struct
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from damage import damaged, spoiled, written
from watch import report, summary, watch

import bittrue
from bittrue.cli import main
from bittrue.errors import InternalError


def tried(call: Callable[[], str]) -> str:
    """What `call` says, or the code of its typed error; FAILED for warnings, and for what bittrue did wrong itself."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = call()
        except bittrue.BittrueError as error:
            internal = isinstance(error, InternalError) or error.code == "BT-PLAN-STEP"
            found = f"FAILED: {error}" if internal or not str(error) else error.code
    return f"FAILED: {caught[0].message}, {caught[0].filename}:{caught[0].lineno}" if caught else found


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


# ------------------------------------------------------------------------------------------------- results


def results(pipe: Any, originals: Sequence[dict[str, Any]], seeds: Iterable[int], folder: str) -> None:
    """Damaged results through every report."""
    from bittrue.report import html, junit, markdown, sarif
    from bittrue.report.reading import load

    def one(seed: int) -> str:
        numbers = random.Random(seed)
        original = originals[seed % len(originals)]
        content = written(original)
        content = spoiled(content, numbers) if seed // len(originals) % 4 == 3 else written(damaged(original, numbers))
        path = Path(folder, "result.json")
        path.write_bytes(content)

        def call() -> str:
            data = load(path)
            page = html.render(data)
            made = [page, markdown.render(data)]
            if data["format"] == "bittrue-check-1":
                made += [sarif.render(data), junit.render(data)]
            for text in made:
                text.encode()
            return "result"

        return tried(call)

    report(pipe, seeds, one)


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

Mutate = Callable[[bytes, int], bytes]


def _changed(content: bytes, seed: int) -> bytes:
    from change import change
    from mutate import mutate, structural_bytes
    from mutate_onnx import change as change_onnx
    from mutate_onnx import spoil

    if content[4:8] != b"TFL3":
        return spoil(content, seed) if seed % 5 == 4 else change_onnx(content, seed)
    return mutate(content, structural_bytes(content), seed) if seed % 5 == 4 else change(content, seed)


def models(pipe: Any, contents: Sequence[bytes], entry: str, seeds: Iterable[int], folder: str) -> None:
    """One entry point on mutated models."""

    def one(seed: int) -> str:
        content = contents[seed % len(contents)]
        suffix = ".tflite" if content[4:8] == b"TFL3" else ".onnx"
        original, path = Path(folder, "original" + suffix), Path(folder, "mutated" + suffix)
        try:
            changed = _changed(content, seed)
        except (AttributeError, TypeError, ValueError, struct.error):
            return "unwritable"
        original.write_bytes(content)
        path.write_bytes(changed)
        return ENTRIES[entry](original, path, seed)

    report(pipe, seeds, one)


def _small(path: Path) -> bool:
    """Whether it can be run in no time; typed errors for what cannot be run at all."""
    plan = bittrue.load(path).prepare(iteration_limit=200, memory_limit=256 << 20).plan
    return plan.work < 50_000_000 and sum(np.prod(plan.tensors[i].shape, dtype=float) for i in plan.inputs) < 1 << 22


def _check(original: Path, path: Path, seed: int) -> str:
    def call() -> str:
        result = bittrue.check_model(path)
        return f"FAILED: {result.failures}" if result.failures else "result"

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
        said = set()
        for step in session.plan.steps:
            for index in step.outputs:
                tensor = session.plan.tensors[index]
                if not traced[tensor.name].size:
                    continue
                element = tuple(int(rng.integers(extent)) for extent in traced[tensor.name].shape)
                work_out = partial(bittrue.explain_element, session, traced, tensor.name, element)
                said.add(tried(lambda work_out=work_out: str(bool(work_out().lines))))
        return next((text for text in sorted(said) if text.startswith("FAILED")), "result")

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
