"""Every kind of output that bittrue writes, in two forms, through the code that the commands use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import bittrue
from bittrue.compare.archive import write_arrays
from bittrue.compare.reduce import write_files
from bittrue.conformance.failing import save_failing
from bittrue.conformance.formats.writing import INDEX, write_vectors
from bittrue.conformance.result import Failing
from bittrue.conformance.suite import find_suite
from bittrue.files import is_temporary, write_bytes, written
from bittrue.report import junit, sarif
from bittrue.report.result import rendered
from bittrue.runtime.trace import write_trace


@dataclass(frozen=True)
class Output:
    """One kind of output.

    Attributes:
        write: writes form 0 or 1 to a path.
        index: of a folder, the file without which it is unfinished; empty for files, None where each file of a folder
            stands for itself.
    """

    write: Callable[[Path, int], None]
    index: str | None = ""

    def is_whole(self, content: dict[str, bytes], forms: tuple[dict[str, bytes], ...]) -> bool:
        """Whether what lies there is one of the forms, or the folder can be told to be unfinished."""
        if self.index is None:
            return all(content[name] in [form[name] for form in forms] for name in content)
        return content in forms or (bool(self.index) and self.index not in content)


def content(path: Path) -> dict[str, bytes]:
    """Files under a path, temporary ones apart; what names the path itself says ``PATH``."""
    files = [path] if path.is_file() else path.rglob("*")
    return {
        str(file.relative_to(path)): file.read_bytes().replace(bytes(path), b"PATH")
        for file in files
        if file.is_file() and not any(is_temporary(part) for part in file.parts)
    }


def temporary(folder: Path) -> list[str]:
    """What is left of writes that were not finished."""
    return [str(path) for path in folder.rglob("*") if is_temporary(path.name)]


# Names, for whoever must not wait until all are made.
KINDS = ("plan", "results", "JSON", "SARIF", "JUnit", "page", "trace", "vectors", "failing", "reduced")


@cache
def outputs() -> dict[str, Output]:
    """By name; made once."""
    model = bittrue.load(bittrue.demo_model())
    sessions = [model.prepare(numerics=name, executor="reference") for name in ("litert", "xnnpack")]
    port = sessions[0].inputs[0]
    traces = [session.trace({port.name: np.full(port.shape, 3, port.dtype)}) for session in sessions]
    checked = [bittrue.check_model(bittrue.demo_model(), name).to_dict() for name in ("litert", "xnnpack")]
    texts = {
        "JSON": [rendered(one, ".json") for one in checked],
        "SARIF": [sarif.render(one) for one in checked],
        "JUnit": [junit.render(one) for one in checked],
        "page": ["<html>" + "a" * 3_000_000, "<html>" + "b" * 2_500_000],
    }
    suite = find_suite("litert")
    cases = list(suite.cases(("RESHAPE",), ("s8",)))[:3]
    failing = [Failing(cases[0].identity, "", "y", (0,), 1.0, got, "litert") for got in (2.0, 3.0)]

    def text(name: str) -> Output:
        return Output(lambda path, form: write_bytes(path, texts[name][form].encode()))

    def results(path: Path, form: int) -> None:
        with written(path) as file:
            write_arrays(file, traces[form])

    def reduced(path: Path, form: int) -> None:
        path.mkdir(exist_ok=True)
        arrays = {path / f"m.{name}.npz": traces[form] for name in ("x", "a", "b")}
        write_files({path / "m.tflite": bytes([form]) * 2_000_000}, arrays)

    def vectors(path: Path, form: int) -> None:
        write_vectors(path, suite, cases[: 2 + form], ("npz", "bin")[: 1 + form], overwrite=True)

    found = {
        "plan": Output(lambda path, form: sessions[form].plan.save(path)),
        "results": Output(results),
        **{name: text(name) for name in texts},
        "trace": Output(lambda path, form: write_trace(path, sessions[form].plan, traces[form]) and None, "trace.json"),
        "vectors": Output(vectors, INDEX),
        "failing": Output(lambda path, form: save_failing(failing[form], cases[0], path) and None, None),
        "reduced": Output(reduced, None),
    }
    assert tuple(found) == KINDS
    return found
