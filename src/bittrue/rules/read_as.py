"""Slot `read_as`: which numbers a kernel takes the quantized values for, and stores; usually those that they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def unsigned_bytes(x: np.ndarray) -> np.ndarray:
    """The same bytes as u8, and back: results are limited to 0..255 and stored as such. Domain: s8.

    Source: docs/facts/litert.md 1.10 (SUM), run.

    >>> unsigned_bytes(np.int8([1, -1, -128])).tolist()
    [1, 255, 128]
    """
    return x.view(np.uint8)


RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"unsigned_bytes": unsigned_bytes}
