"""Traces: the index and the arrays of a folder, read in full and compared with the model that wrote it."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
from damage import damaged, spoiled, written
from oracle import choice, tried
from packed import join, lay_out, pack, split

import bittrue
from bittrue.runners.sides import open_side
from bittrue.runners.trace import INDEX


@cache
def _model() -> bytes:
    from support.graphs import stream

    return stream()


def seeds(folder: Path) -> Iterable[bytes]:
    """A trace as .npy files; one with raw files and archives; a few arrays without an index."""
    from test_entry_points import main_quietly

    model = folder / "model.tflite"
    model.write_bytes(_model())
    main_quietly("run", str(model), "--trace", str(folder / "trace"))
    yield pack(folder / "trace")
    files = split(pack(folder / "trace"))
    index = json.loads(files.pop(INDEX))
    for i, entry in enumerate(index["tensors"]):
        array = np.load(io.BytesIO(files.pop(entry["file"])))
        entry["file"] = f"{i}{('.bin', '.npz')[i % 2]}"
        archive = io.BytesIO()
        np.savez_compressed(archive, m=array)
        files[entry["file"]] = archive.getvalue() if i % 2 else array.tobytes()
        entry |= {"shape": list(array.shape), "member": "m"}
    yield join({INDEX: written(index), **files})
    yield join({name: content for name, content in files.items() if name.endswith(".npz")})


def change(content: bytes, seed: int) -> bytes:
    """The index, or the first bytes of an array, which describe the rest."""
    numbers = random.Random(seed)
    files = split(content)
    if seed % 3 and INDEX in files:
        return join({**files, INDEX: written(damaged(json.loads(files[INDEX]), numbers, (*files,)))})
    name = numbers.choice(sorted(files))
    head = numbers.choice((20, 128, 1 << 20))
    return join({**files, name: spoiled(files[name][:head], numbers) + files[name][head:]})


def attempt(content: bytes, folder: Path) -> str:
    place = lay_out(split(content), folder / "trace")

    def call() -> str:
        runner = open_side(f"trace:{place}")
        for recording in runner.recorded():
            for tensor in recording.tensors:
                assert tensor.load().size >= 0
        if choice(content, (False, False, False, True)):
            model = folder / "model.tflite"
            model.write_bytes(_model())
            return "equal" if bittrue.compare_models(str(model), f"trace:{place}").equal else "different"
        return "result"

    return tried(call)
