"""A file that grows by one line per answered case, so that a run that was ended goes on where it was."""

from __future__ import annotations

import base64
import json
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..files import append_line, cut_off, read_file, write_text
from .suite import SuiteCase
from .verdicts import Record

FORMAT = "bittrue-conform-journal-1"
_ADVICE = "name a new file, or run with the options that this one was begun with"


class Journal:
    """One such file; a line that was cut off by the end of a run is left out.

    Args:
        path: of the file, which may exist.
        header: what must be the same for its answers to be of use.

    Raises:
        InputError: the file is something else, or belongs to another run.
        OutputError: it cannot be written.
    """

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path = path
        self._known: dict[str, dict[str, Any]] = {}
        lines = read_file(path).split(b"\n") if path.exists() else []
        if lines and lines != [b""]:
            self._read(lines, header)
            # What a run that was ended has begun to write.
            cut_off(path, sum(len(line) + 1 for line in lines[:-1]))
        else:
            write_text(path, f"{_line({'format': FORMAT, **header})}\n")

    def _read(self, lines: list[bytes], header: dict[str, Any]) -> None:
        entries = []
        for number, line in enumerate(lines[:-1], 1):
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                entry = None
            if not isinstance(entry, dict):
                raise InputError("BT-JOURNAL", f"line {number} is damaged", place=str(self.path), advice=_ADVICE)
            entries.append(entry)
        if not entries or entries[0].get("format") != FORMAT:
            raise InputError("BT-JOURNAL", "this is no journal of a conformance run", place=str(self.path))
        for key, value in header.items():
            if entries[0].get(key) != value:
                message = f"it was begun with {key} {entries[0].get(key)!r}, not {value!r}"
                raise InputError("BT-JOURNAL", message, place=str(self.path), advice=_ADVICE)
        self._known = {str(entry.get("identity")): entry for entry in entries[1:]}

    def find(self, case: SuiteCase) -> Record | None:
        """What the device answered in an earlier run; None when it was not asked."""
        entry = self._known.get(case.identity)
        if entry is None or entry.get("sha256") != case.sha256:
            return None
        try:
            outputs = {str(name): _array(*packed) for name, packed in entry["outputs"]}
            return Record(case, str(entry["status"]), outputs, str(entry["text"]), float(entry["seconds"]))
        except (KeyError, OverflowError, TypeError, ValueError, zlib.error):
            raise InputError(
                "BT-JOURNAL", f"the entry of {case.identity} is damaged", place=str(self.path), advice=_ADVICE
            ) from None

    def add(self, record: Record) -> None:
        """Keep what the device answered."""
        outputs = [
            (name, (str(v.dtype), v.shape, base64.b64encode(zlib.compress(v.tobytes(), 1)).decode()))
            for name, v in record.outputs.items()
        ]
        entry = {
            "identity": record.case.identity,
            "sha256": record.case.sha256,
            "status": record.status,
            "text": record.text,
            "seconds": record.seconds,
            "outputs": outputs,
        }
        append_line(self.path, _line(entry))


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, separators=(",", ":"))


def _array(dtype: str, shape: list[int], packed: str) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.hasobject or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(dtype)
    count = math.prod(shape)
    raw = zlib.decompressobj().decompress(base64.b64decode(packed, validate=True), count * kind.itemsize + 1)
    return np.frombuffer(raw, kind).reshape(shape)
