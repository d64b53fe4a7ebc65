"""TFLite metadata, and the files zipped behind a model that they name."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Iterable
from pathlib import Path

from damage import spoiled
from oracle import tried
from packed import join, pair

from bittrue.importers.tflite_metadata import read_description


def seeds(folder: Path) -> Iterable[bytes]:
    """A grey input with one list of labels, colours with two."""
    from support.tflite_metadata import metadata

    for content, names in (
        (metadata(), ("labels.txt",)),
        (metadata((1.0, 2.0, 3.0), (0.5,), False, (("de.txt", "de"), ("en.txt", ""))), ("de.txt", "en.txt")),
    ):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                archive.writestr(name, f"{name}\nnought\none\n")
        yield join({"metadata": content, "model": stream.getvalue()})


def change(content: bytes, seed: int) -> bytes:
    """The metadata, or what lies behind the model."""
    numbers = random.Random(seed)
    metadata, model = pair(content)
    if seed % 2:
        return join({"metadata": spoiled(metadata, numbers), "model": model})
    return join({"metadata": metadata, "model": spoiled(model, numbers)})


def attempt(content: bytes, folder: Path) -> str:
    metadata, model = pair(content)

    def call() -> str:
        said = read_description(metadata, model)
        return f"{bool(said.mean)}, {said.grey}, {bool(said.labels)}"

    return tried(call)
