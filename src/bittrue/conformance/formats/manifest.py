"""The formats whose folders have one manifest of the form ``bittrue-vectors-1``: npz, tflite, bin, onnx.

The form is described by ``schemas/bittrue-vectors-1.json``; `bittrue replay` reads all of them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from .entry import Entry, Part, suite_facts
from .exporter import MANIFEST, Exporter, json_bytes, npz, path_of

FORMAT = "bittrue-vectors-1"
# The framework that manifests of our own suites name.
FRAMEWORK = "bittrue-suite"
_FIELDS = (
    "inputs: operands in the operator's order, null for absent ones; 'initializer' marks what the model holds as a "
    "constant. real = scale * (q - zero_point). Narrow integers take a byte per element. expected_failure: a device "
    "must refuse the model. start and length: bytes of a .bin file."
)
# Every array of a .bin file begins at a multiple of so many bytes.
ALIGNMENT = 16


class WithManifest(Exporter):
    """A format that adds one object per case to a list and writes it at the end."""

    def __init__(self, folder: Any, options: Any) -> None:
        super().__init__(folder, options)
        self.cases: list[dict[str, Any]] = []
        self.head: dict[str, Any] = {}
        self.extra: dict[str, Any] = {}

    def add(self, entry: Entry) -> None:
        """The case's files, and its object in the manifest."""
        # A case that cannot be worked out raises here, before any of its files is written.
        list(entry.parts)
        self.head = self.head or suite_facts(entry)
        found = dict(entry.header)
        found["model"] = {"format": entry.case.format, **self.model(entry)}
        found["inputs"] = [None if part is None else self._operand(entry, part) for part in entry.operands]
        found["outputs"] = [self._operand(entry, part) for part in entry.outputs]
        if entry.with_accumulators and self.writes_sums:
            sums = [{"role": part.role, **part.facts(), **self.place(entry, part)} for part in entry.sums]
            found["accumulators"] = sums
        if self.folder.archive:
            found["archive"] = self.folder.archive
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
        name = f"{self.head.get('suite', '')} {self.head.get('suite_version', '')}"
        head = {"format": FORMAT, "framework": FRAMEWORK, "version": f"bittrue suite {name}", **self.head}
        head |= {"fields": _FIELDS, **self.extra}
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
    """Per operator a folder with two files per case: the single-operator model and its arrays."""

    name = "tflite"
    title = "per operator NNN.tflite with NNN.npz: inputs and outputs"
    suites = ("litert",)
    writes_sums = False

    def __init__(self, folder: Any, options: Any) -> None:
        super().__init__(folder, options)
        self._arrays: list[tuple[str, np.ndarray]] = []

    def add(self, entry: Entry) -> None:
        """Both files."""
        self._arrays = []
        super().add(entry)
        file = f"{_flat(entry)}.npz"
        self.folder.write(file, npz(self._arrays))
        self.cases[-1]["file"] = file

    def model(self, entry: Entry) -> dict[str, Any]:
        """A file of the operator's folder."""
        name = f"{_flat(entry)}.tflite"
        self.folder.write(name, entry.case.content)
        return {"file": name}

    def place(self, entry: Entry, part: Part) -> dict[str, Any]:
        """A key of the case's .npz file; constants are in the model alone."""
        self._arrays.append((part.stem, part.value))
        return {"key": part.stem}

    def _operand(self, entry: Entry, part: Part) -> dict[str, Any]:
        if part.role == "constant":
            return {**part.facts(), "initializer": True}
        return super()._operand(entry, part)


def _flat(entry: Entry) -> str:
    """The case's name with no folder but the operator's: ``CONV_2D/s8-near-ties-003``."""
    operator, *rest = path_of(entry.case.identity).split("/")
    return f"{operator}/{'-'.join(rest)}"


class Binary(WithManifest):
    """One raw file per operator; the manifest says at which byte each array and each model begins."""

    name = "bin"
    title = "one raw .bin per operator, little- or big-endian; manifest.json says where what begins"

    def __init__(self, folder: Any, options: Any) -> None:
        super().__init__(folder, options)
        self._file = ""
        self._content = bytearray()

    def add(self, entry: Entry) -> None:
        """Bytes wait until the operator's last case."""
        file = f"{path_of(entry.case.operator)}.bin"
        if file != self._file:
            self._flush()
            self._file = file
        super().add(entry)
        self.cases[-1]["file"] = file

    def model(self, entry: Entry) -> dict[str, Any]:
        """Its bytes as they are."""
        return self._keep(entry.case.content)

    def place(self, entry: Entry, part: Part) -> dict[str, Any]:
        """Elements in C order, without any header."""
        order = self.options.endianness
        return {**self._keep(raw(part.value, order)), "byte_order": order}

    def _keep(self, content: bytes) -> dict[str, Any]:
        self._content += bytes(-len(self._content) % ALIGNMENT)
        start = len(self._content)
        self._content += content
        return {"start": start, "length": len(content)}

    def _flush(self) -> None:
        if self._file:
            self.folder.write(self._file, bytes(self._content))
            self._content.clear()

    def finish(self) -> None:
        """The last operator's file and the manifest."""
        self._flush()
        super().finish()


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
