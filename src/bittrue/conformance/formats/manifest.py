"""The formats whose folders have one manifest of the form ``bittrue-vectors-1``: npz, tflite, bin, onnx.

The form is described by ``schemas/bittrue-vectors-1.json``; `bittrue replay` reads all of them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from .entry import Entry, Part, suite_facts
from .exporter import MANIFEST, Exporter, json_bytes, npy, npz, path_of

FORMAT = "bittrue-vectors-1"
# The framework that manifests of our own suites name.
FRAMEWORK = "bittrue-suite"
_FIELDS = (
    "inputs: operands in the operator's order, null for absent ones; 'initializer' marks what the model holds as a "
    "constant. real = scale * (q - zero_point). Narrow integers take a byte per element. expected_failure: a device "
    "must refuse the model."
)


class WithManifest(Exporter):
    """A format that adds one object per case to a list and writes it at the end."""

    def __init__(self, folder: Any, options: Any) -> None:
        super().__init__(folder, options)
        self.cases: list[dict[str, Any]] = []
        self.head: dict[str, Any] = {}

    def add(self, entry: Entry) -> None:
        """The case's files, and its object in the manifest."""
        if not self.head:
            self.head = suite_facts(entry)
        found = dict(entry.header)
        found["model"] = {"format": entry.case.format, **self.model(entry)}
        found["inputs"] = [None if part is None else self._operand(entry, part) for part in entry.operands]
        found["outputs"] = [self._operand(entry, part) for part in entry.outputs]
        if entry.with_accumulators and self.writes_sums:
            sums = [{"role": part.role, **part.facts(), **self.place(entry, part)} for part in entry.sums]
            found["accumulators"] = sums
        self.cases.append(found)

    # Whether accumulators have a place in the format.
    writes_sums = True

    def _operand(self, entry: Entry, part: Part) -> dict[str, Any]:
        initializer = {"initializer": True} if part.role == "constant" else {}
        return {**part.facts(), **self.place(entry, part), **initializer}

    @abstractmethod
    def model(self, entry: Entry) -> dict[str, Any]:
        """Where the model file is."""

    @abstractmethod
    def place(self, entry: Entry, part: Part) -> dict[str, Any]:
        """Where an array is; writes it."""

    def finish(self) -> None:
        """The manifest."""
        version = f"bittrue suite {self.head['suite']} {self.head['suite_version']}"
        head = {"format": FORMAT, "framework": FRAMEWORK, "version": version, **self.head, "fields": _FIELDS}
        self.folder.write(MANIFEST, json_bytes({**head, "cases": self.cases}))


class Npz(WithManifest):
    """manifest.json and one .npz file per operator, with the model files in it."""

    name = "npz"
    title = "manifest.json and one .npz per operator, model files in it"

    def __init__(self, folder: Any, options: Any) -> None:
        super().__init__(folder, options)
        self._file = ""
        self._arrays: list[tuple[str, np.ndarray]] = []
        self._written: set[str] = set()
        self._count = 0

    def add(self, entry: Entry) -> None:
        """Arrays wait until the operator's last case."""
        file = f"{path_of(entry.case.operator)}.npz"
        if file != self._file:
            self._flush()
            if file in self._written:
                raise ValueError(f"the cases of {entry.case.operator} do not come together")
            self._file, self._count = file, 0
        super().add(entry)
        self.cases[-1]["file"] = file
        self._count += 1

    def model(self, entry: Entry) -> dict[str, Any]:
        """Its bytes are one more array."""
        return self._keep("model", np.frombuffer(entry.case.content, np.uint8))

    def place(self, entry: Entry, part: Part) -> dict[str, Any]:
        """A key of the operator's file."""
        return self._keep(part.stem, part.value)

    def _keep(self, stem: str, value: np.ndarray) -> dict[str, Any]:
        key = f"c{self._count:03d}/{stem}"
        self._arrays.append((key, value))
        return {"key": key}

    def _flush(self) -> None:
        if self._file:
            self.folder.write(self._file, npz(self._arrays))
            self._written.add(self._file)
            self._arrays.clear()

    def finish(self) -> None:
        """The last operator's file and the manifest."""
        self._flush()
        super().finish()


class Tflite(WithManifest):
    """One folder per case: the single-operator .tflite file and .npy files."""

    name = "tflite"
    title = "single-operator .tflite with inputs and outputs as .npy"
    suites = ("litert",)
    writes_sums = False

    def model(self, entry: Entry) -> dict[str, Any]:
        """A file of the case's folder."""
        name = f"{path_of(entry.case.identity)}/model.tflite"
        self.folder.write(name, entry.case.content)
        return {"file": name}

    def place(self, entry: Entry, part: Part) -> dict[str, Any]:
        """A file of the case's folder; constants are in the model alone."""
        name = f"{path_of(entry.case.identity)}/{part.stem}.npy"
        self.folder.write(name, npy(part.value))
        return {"file": name}

    def _operand(self, entry: Entry, part: Part) -> dict[str, Any]:
        if part.role == "constant":
            return {**part.facts(), "initializer": True}
        return super()._operand(entry, part)


class Binary(WithManifest):
    """One folder per case: the model file and one raw file per array, without any header."""

    name = "bin"
    title = "raw binary files, little- or big-endian, with manifest.json"

    def model(self, entry: Entry) -> dict[str, Any]:
        """A file of the case's folder."""
        name = f"{path_of(entry.case.identity)}/model.{entry.case.format}"
        self.folder.write(name, entry.case.content)
        return {"file": name}

    def place(self, entry: Entry, part: Part) -> dict[str, Any]:
        """A file of elements in C order."""
        name = f"{path_of(entry.case.identity)}/{part.stem}.bin"
        order = self.options.endianness
        self.folder.write(name, raw(part.value, order))
        return {"file": name, "byte_order": order}


def raw(value: np.ndarray, order: str) -> bytes:
    """Elements in C order, each in this byte order.

    >>> raw(np.int16([1, -2]), "big").hex()
    '0001fffe'
    """
    width = value.dtype.itemsize
    content = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8).reshape(-1, width)
    # Both halves of a complex number are numbers of their own.
    half = width // 2 if value.dtype.kind == "c" else width
    parts = content.reshape(-1, half)
    return (parts[:, ::-1] if order == "big" else parts).tobytes()
