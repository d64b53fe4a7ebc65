"""Plan files: descriptions and arrays that lie, and bytes of the archive."""

from __future__ import annotations

import io
import random
import tempfile
from collections.abc import Iterable
from pathlib import Path

from damage import spoiled
from lie import lie, members_of, write
from oracle import ITERATION_LIMIT, MEMORY_LIMIT, compared, native, tried

import bittrue

_SCRATCH = tempfile.TemporaryDirectory()


def seeds(folder: Path) -> Iterable[bytes]:
    """Plans of the smallest models of every operator, of loops and variables, and of the systems that are gone."""
    from support.system_plans import plan_files

    from . import onnx, tflite

    for content in (*tflite.seeds(folder), *onnx.seeds(folder)):
        path = folder / "seed.plan"
        try:
            bittrue.load(content).prepare(executor="reference").plan.save(path)
        except bittrue.BittrueError:
            continue
        yield path.read_bytes()
    yield from plan_files(folder)


def change(content: bytes, seed: int) -> bytes:
    """Numbers, names, lists and arrays; one time in eight bytes."""
    if seed % 8 == 0:
        return spoiled(content, random.Random(seed))
    written = io.BytesIO()
    write(lie(members_of(content, Path(_SCRATCH.name)), seed), written)  # type: ignore[arg-type]
    return written.getvalue()


def attempt(content: bytes, folder: Path) -> str:
    path = folder / "one.plan"
    path.write_bytes(content)

    def call() -> str:
        session = bittrue.load_plan(path, memory_limit=MEMORY_LIMIT, iteration_limit=ITERATION_LIMIT, **native(content))
        return compared(session)

    return tried(call, internal=())
