"""Runners that show what a test hands them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bittrue.graph import Quantization, data_type
from bittrue.runners.base import Runner
from bittrue.runners.recording import Recorded, Recording


@dataclass
class Tensor:
    """What a recording holds of one tensor."""

    value: np.ndarray
    scale: float | None = None
    zero_point: int = 0


def recording(
    tensors: Mapping[str, Tensor | np.ndarray], inputs: Sequence[str] = (), outputs: Sequence[str] = ()
) -> Recording:
    found = []
    for name, given in tensors.items():
        tensor = given if isinstance(given, Tensor) else Tensor(given)
        value = tensor.value
        quantization = None
        if tensor.scale is not None:
            quantization = Quantization(np.float32([tensor.scale]), np.int64([tensor.zero_point]))
        dtype = next(n for n in ("s8", "u8", "s16", "s32", "s64", "u64", "f32", "f64", "bool") if _is(n, value))
        found.append(Recorded(name, dtype, value.shape, quantization, lambda value=value: value))
    return Recording(tuple(found), tuple(inputs), tuple(outputs))


def _is(name: str, value: np.ndarray) -> bool:
    return bool(data_type(name).numpy == value.dtype)


class Shown(Runner):
    """A side that is recorded already."""

    def __init__(self, *recordings: Recording, title: str = "recorded by a test") -> None:
        self.spec, self.title, self.path, self.format = "trace:test", title, Path("test"), "trace"
        self.model, self.arithmetic, self.inputs = None, None, []
        self._recordings = list(recordings)

    def record(self, inputs: Mapping[str, Any], progress: Any = None) -> Recording:
        raise AssertionError("is recorded already")

    def recorded(self) -> list[Recording]:
        return self._recordings
