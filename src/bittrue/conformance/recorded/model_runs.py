"""Recorded runs of whole models: a manifest that names model files, and archives with inputs, outputs and internals.

    {"models": [{"name": ..., "symbol": ..., "params": ..., "arrays": ..., "input": ..., "runs": [0, 1, ...]}]}

An archive holds ``runNN/<input>``, ``runNN/output`` and ``runNN/internal/<name>``; every array of a run is compared.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...files import read_file as whole_file
from ...importers import read_model
from .adapters import Trial
from .vectors import MANIFEST, Case, Recorded, damaged

_MOST_RUNS = 100_000


@dataclass(frozen=True, eq=False)
class ModelRun:
    """One run of a model.

    Attributes:
        identity: the model and the run.
        operator: the model.
        arrays: the archive, relative to the folder.
        keys: of the run's arrays, by what they are called in it.
    """

    identity: str
    operator: str
    folder: Path
    model: tuple[Path, Path | None]
    arrays: str
    input: str
    keys: dict[str, str]

    def _recorded(self, *names: str) -> list[Recorded]:
        entries = [{"name": name.removeprefix("internal/"), "key": self.keys[name]} for name in names]
        fields = {"file": self.arrays, "inputs": entries}
        return [given for given in Case(self.identity, self.operator, fields, self.folder).inputs() if given]

    def trials(self) -> Iterator[Trial]:
        """The run, with all tensors that were recorded as outputs of the graph."""
        if self.input not in self.keys or "output" not in self.keys:
            raise damaged(f"the archive has no '{self.input}' or no 'output'", self.identity)
        model = read_model(*self.model)
        graph = model.graphs[0]
        by_name = {tensor.name: index for index, tensor in enumerate(graph.tensors)}
        internals = [name for name in self.keys if name.startswith("internal/")]
        indices = []
        for name in internals:
            wanted = name.removeprefix("internal/")
            if wanted not in by_name:
                raise InputError("BT-VECTORS-TENSOR", f"the model has no tensor '{wanted}'", place=self.identity)
            indices.append(by_name[wanted])
        outputs = (*graph.outputs[:1], *indices)
        watched = replace(model, graphs=(replace(graph, outputs=outputs), *model.graphs[1:]))
        (given,) = self._recorded(self.input)
        yield Trial(watched, [given.value], self._recorded("output", *internals))


def find_model_runs(folder: Path) -> list[ModelRun]:
    """All runs that the folder's manifest names; empty when it names no models."""
    content = _manifest(folder / MANIFEST)
    entries = content.get("models") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        return []
    found: list[ModelRun] = []
    for position, entry in enumerate(entries):
        place = f"model {position}"
        texts = ("name", "symbol", "arrays", "input")
        if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in texts):
            raise damaged(f"a model is an object with the texts {list(texts)}", place)
        weights, runs = entry.get("params"), entry.get("runs")
        if not isinstance(runs, list) or not all(type(run) is int and 0 <= run < _MOST_RUNS for run in runs):
            raise damaged("'runs' is no list of numbers", place)
        if weights is not None and not isinstance(weights, str):
            raise damaged("'params' is no text", place)
        names = [name for name in (entry["symbol"], weights, entry["arrays"]) if name is not None]
        if any(Path(name).name != name for name in names):
            raise damaged(f"{names} are no files of the folder", place)
        model = folder / entry["symbol"], None if weights is None else folder / weights
        keys = _keys(folder / entry["arrays"], place)
        for run in runs:
            own = {key.split("/", 1)[1]: key for key in keys if key.startswith(f"run{run:02}/")}
            identity = f"{entry['name']}/run{run:02}"
            found.append(ModelRun(identity, entry["name"], folder, model, entry["arrays"], entry["input"], own))
    return found


def _manifest(path: Path) -> Any:
    try:
        return json.loads(whole_file(path).decode())
    except (OSError, InputError, ValueError, RecursionError):
        # What is wrong with it is said where a manifest of cases is asked for.
        return None


def _keys(path: Path, place: str) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise damaged(f"cannot read {path.name}: {error}", place) from None
