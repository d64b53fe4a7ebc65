"""Folders of recorded vectors: manifests and arrays, also those that `bittrue vectors` writes, replayed."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from damage import damaged, spoiled, written
from oracle import Finding, choice, tried
from packed import join, lay_out, pack, split

from bittrue.conformance.formats.writing import write_vectors
from bittrue.conformance.recorded import replay
from bittrue.conformance.recorded.vectors import MANIFEST
from bittrue.conformance.suite import find_suite


def seeds(folder: Path) -> Iterable[bytes]:
    """The smallest case of every operator that was recorded, alone; a few that `bittrue vectors` writes."""
    recorded = Path(__file__).resolve().parents[2] / "data" / "recorded"
    for manifest in sorted(recorded.glob(f"*/{MANIFEST}")):
        index = json.loads(manifest.read_bytes())
        smallest: dict[str, Any] = {}
        for case in sorted(index.get("cases", ()), key=lambda case: len(json.dumps(case))):
            smallest.setdefault(case["operator"], case)
        for case in smallest.values():
            yield join({MANIFEST: written({**index, "cases": [case]}), case["file"]: _arrays(manifest.parent, case)})
    for suite_name, operator, formats in (
        ("litert", "SQUEEZE", ("npz",)),
        ("litert", "LOGISTIC", ("tflite", "bin")),
        ("onnx", "QDQ Relu", ("onnx", "desc")),
    ):
        suite = find_suite(suite_name)
        target = folder / f"{suite_name}-{operator}"
        write_vectors(target, suite, list(suite.cases((operator,)))[:1], formats)
        (target / "README.md").unlink(missing_ok=True)
        yield pack(target)


def _arrays(folder: Path, case: Any) -> bytes:
    """An archive of one case's arrays."""
    with np.load(folder / case["file"]) as archive:
        keys = [operand["key"] for operand in (*case["inputs"], *case["outputs"]) if operand and "key" in operand]
        arrays = {key: archive[key] for key in keys if key in archive}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def change(content: bytes, seed: int) -> bytes:
    """The manifest, or another file's structure."""
    numbers = random.Random(seed)
    files = split(content)
    texts = [name for name in files if name.endswith(".json")]
    if seed % 4 and texts:
        name = numbers.choice(texts)
        return join({**files, name: written(damaged(json.loads(files[name]), numbers, (*files,)))})
    name = numbers.choice(sorted(files))
    return join({**files, name: spoiled(files[name], numbers)})


def attempt(content: bytes, folder: Path) -> str:
    place = lay_out(split(content), folder / "vectors")

    def call() -> str:
        said = [
            replay(place, choice(content, (None, None, None, "litert")), executor=e) for e in ("native", "reference")
        ]
        for one, two in zip(*(found.outcomes for found in said), strict=True):
            if "internal error" in one.refusal or "BT-PLAN-STEP" in one.refusal:
                raise Finding("internal", f"{one.operator} {one.refusal[:60]}", one.refusal)
            if str(one) != str(two):
                raise Finding("different", one.operator, f"native {one}, reference {two}")
        return "equal" if said[0].passed else "refused" if any(one.refusal for one in said[0].outcomes) else "different"

    return tried(call)
