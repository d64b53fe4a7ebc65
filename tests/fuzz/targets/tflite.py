"""TFLite models: flatbuffers, changed through their schema and as bytes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import change as schema
import mutate
from oracle import tried_model

NUMERICS = (None, None, None, "xnnpack", "litert-optimized")


def seeds(folder: Path) -> Iterable[bytes]:
    """The smallest models that the operators' tests build, until every operator is there; loops and variables."""
    from support.graphs import growing, nested_loops, staged, stream
    from support.seeds import built_by_tests, operators_of

    yield from (nested_loops(), growing(3, True), staged(), stream())
    met: set[str] = set()
    for content in sorted((one for found in built_by_tests().values() for one in found), key=len):
        if operators_of(content) - met:
            met |= operators_of(content)
            yield content


def change(content: bytes, seed: int) -> bytes:
    """Fields through the schema; one time in four bytes that describe structure."""
    if seed % 4:
        return schema.change(content, seed)
    return mutate.mutate(content, mutate.structural_bytes(content), seed)


def attempt(content: bytes, folder: Path) -> str:
    return tried_model(content, content, numerics=NUMERICS)
