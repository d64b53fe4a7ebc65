"""Checks mutated models in a process of its own."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
import mutate_onnx
from change import change
from mutate import mutate, structural_bytes
from watch import report, summary, watch

import bittrue


def outcome(content: bytes) -> str:
    """``"checked"`` or the code of the typed error."""
    try:
        result = bittrue.check_model(content)
    except bittrue.BittrueError as error:
        return error.code if str(error) else "FAILED: an error without words"
    if result.failures:
        return f"FAILED: {result.failures}"
    return "found" if result.errors else "checked"


def work(pipe: Any, contents: Sequence[bytes], seeds: Iterable[int], folder: str) -> None:
    """Seed by seed: change one of the models and check it. The last one is left in `folder`."""
    structures: dict[int, np.ndarray] = {}

    def one(seed: int) -> str:
        which = seed % len(contents)
        if contents[which][4:8] != b"TFL3":
            changer = mutate_onnx.change if seed // len(contents) % 4 else mutate_onnx.spoil
            return outcome(changer(contents[which], seed))
        if which not in structures:
            structures[which] = structural_bytes(contents[which])
        # Most files stay well-formed: those are the ones that rules get to see.
        if seed // len(contents) % 4:
            try:
                changed = change(contents[which], seed)
            except (AttributeError, TypeError, ValueError, struct.error):
                return "unwritable"
        else:
            changed = mutate(contents[which], structures[which], seed)
        Path(folder, "mutated.tflite").write_bytes(changed)
        return outcome(changed)

    report(pipe, seeds, one)


def campaign(contents: Sequence[bytes], seeds: range, folder: Path) -> dict[str, Any]:
    """Counts per outcome; AssertionError with the seed for anything but a result or a typed error."""
    return summary(str(folder), watch(work, contents, seeds, str(folder), seconds=15))
