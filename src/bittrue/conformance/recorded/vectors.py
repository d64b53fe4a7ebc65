"""Folders of recorded vectors: a manifest.json of the form ``bittrue-vectors-1`` and the files that it names.

Both are untrusted. Fields of a case that this file does not know stay in `Case.fields`, for the adapters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, ResourceError
from ...files import read_file as whole_file
from ...graph import DataType, data_type
from .stored import Archive, Source, damaged, inside, parsed, read_array, read_part

FORMAT = "bittrue-vectors-1"
MANIFEST = "manifest.json"
# Bytes of one manifest.
_MOST_BYTES = 1 << 28
_MOST_CASES = 1_000_000


@dataclass(frozen=True, eq=False)
class Recorded:
    """One input or output of a case.

    Attributes:
        name: of the operand.
        dtype: element type. Narrow integers take a byte per element.
        value: the array, in the shape that the manifest gives.
        fields: all that the manifest says about it, for example ``initializer`` or ``scale``.
    """

    name: str
    dtype: DataType
    value: np.ndarray
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Case:
    """One recorded call.

    Attributes:
        identity: unique in the set.
        operator: what the framework calls it.
        fields: the manifest's entry.
    """

    identity: str
    operator: str
    fields: Mapping[str, Any]
    folder: Path

    @property
    def place(self) -> str:
        return f"case '{self.identity}'"

    @property
    def attributes(self) -> Mapping[str, Any]:
        found = self.fields.get("attributes") or {}
        if not isinstance(found, dict):
            raise damaged("'attributes' is no object", self.place)
        return found

    @property
    def depends_on(self) -> str:
        """What the result depends on beside the operands, as the notes say it; empty when they say nothing."""
        found = re.search(r"depends? on ((?:[\w-]+ ?)+)", json.dumps(self.fields.get("notes")))
        return found[1].strip() if found else ""

    def inputs(self, constants: bool = True) -> list[Recorded | None]:
        """Operands in order; None for an omitted one.

        Args:
            constants: False leaves out those that the manifest marks as ``initializer``.
        """
        entries = self._list("inputs")
        if not constants:
            entries = [entry for entry in entries if not isinstance(entry, dict) or not entry.get("initializer")]
        return [None if entry is None else self._recorded(entry) for entry in entries]

    def outputs(self) -> list[Recorded | None]:
        """Expected results in order; None for one that the call leaves out."""
        return [None if entry is None else self._recorded(entry) for entry in self._list("outputs")]

    @property
    def must_fail(self) -> bool:
        """Whether the model is one that must be refused."""
        return self.fields.get("expected_failure") is True

    def model(self) -> bytes:
        """The model file, for vectors that have one."""
        entry = self.fields.get("model")
        if not isinstance(entry, dict):
            raise damaged("'model' is no object", self.place)
        if "key" in entry:
            array = read_array(self._source, {"file": self.fields.get("file"), **entry}, f"{self.place}, model")
            if array.dtype != np.uint8 or array.ndim != 1:
                raise damaged(f"the model is an array of {array.dtype}{list(array.shape)}, not of bytes", self.place)
            return array.tobytes()
        return read_part(self._source, {"file": self.fields.get("file"), **entry}, f"{self.place}, model")

    @property
    def _source(self) -> Source:
        """Where the case's files are: the folder, or the archive that the case names."""
        if "archive" not in self.fields:
            return self.folder
        return Archive(inside(self.folder, self.fields["archive"], self.place))

    def _list(self, name: str) -> list[Any]:
        found = self.fields.get(name)
        if not isinstance(found, list):
            raise damaged(f"'{name}' is no list", self.place)
        return found

    def _recorded(self, entry: Any) -> Recorded:
        if not isinstance(entry, dict):
            raise damaged("an operand is no object", self.place)
        name = str(entry.get("name", ""))
        place = f"{self.place}, '{name}'"
        array = read_array(self._source, {"file": self.fields.get("file"), "key": name, **entry}, place)
        dtype = _type(entry.get("dtype", array.dtype.name), place)
        shape = entry.get("shape", list(array.shape))
        if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
            raise damaged(f"shape {shape} is no shape", place)
        if list(array.shape) != shape:
            raise damaged(f"the array has shape {list(array.shape)}, the manifest says {shape}", place)
        return Recorded(name, dtype, _typed(array, dtype, place), entry)


@dataclass(frozen=True, eq=False)
class VectorSet:
    """A folder of recorded vectors.

    Attributes:
        framework: who recorded them, as the manifest says.
        version: free text.
    """

    folder: Path
    framework: str
    version: str
    cases: tuple[Case, ...]


def read_vectors(folder: Path) -> VectorSet:
    """The cases of a folder. Arrays are read when they are asked for.

    Raises:
        InputError: there is no manifest.
        ModelFormatError: it is damaged, or of another form.
    """
    path = folder / MANIFEST
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ResourceError("BT-VECTORS-SIZE", f"a manifest of more than {_MOST_BYTES:,} bytes", place=str(path))
        text = whole_file(path)
    except OSError as error:
        raise InputError("BT-VECTORS-PATH", f"cannot read the manifest: {error.strerror}", place=str(path)) from None
    content = parsed(text, str(path))
    if content.get("format") != FORMAT:
        raise damaged(f"expected the format '{FORMAT}', found {content.get('format')!r}", str(path))
    entries = content.get("cases")
    if not isinstance(entries, list) or len(entries) > _MOST_CASES:
        raise damaged("'cases' is no list, or too long a one", str(path))
    return VectorSet(
        folder, str(content.get("framework", "")), str(content.get("version", "")), tuple(_cases(entries, folder))
    )


def _cases(entries: list[Any], folder: Path) -> Iterator[Case]:
    seen: set[str] = set()
    for position, entry in enumerate(entries):
        place = f"case {position}"
        if not isinstance(entry, dict) or not isinstance(entry.get("operator"), str):
            raise damaged("a case is an object with an operator", place)
        identity = str(entry.get("id", position))
        if identity in seen:
            raise damaged(f"two cases are called '{identity}'", place)
        seen.add(identity)
        yield Case(identity, entry["operator"], entry, folder)


def _type(name: Any, place: str) -> DataType:
    try:
        return data_type(name)
    except (KeyError, TypeError):
        raise damaged(f"element type {name!r} is not known", place) from None


def _typed(array: np.ndarray, dtype: DataType, place: str) -> np.ndarray:
    """The array in the type that the manifest names: arrays hold the bits of narrow floats and values of integers."""
    wanted = dtype.numpy
    if array.dtype == wanted and not dtype.is_packed:
        return array
    kind, width = array.dtype.kind, array.dtype.itemsize
    if dtype.is_integer and kind in "iu":
        # Smaller storage types are allowed; what does not fit is an error.
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        if dtype.minimum <= low and high <= dtype.maximum:
            return array.astype(wanted)
        raise damaged(f"values {low} to {high} are no {dtype.title}", place)
    quantized = isinstance(dtype.array, str) or dtype.name == "f16"
    if quantized and width == wanted.itemsize and kind in "iuV" and array.dtype.names is None:
        return np.ascontiguousarray(array).view(wanted).reshape(array.shape)
    if array.dtype == wanted.newbyteorder():
        return array.astype(wanted)
    raise damaged(f"an array of {array.dtype} does not hold {dtype.title}", place)
