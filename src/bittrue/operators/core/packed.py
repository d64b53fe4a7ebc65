"""Numbers of a few bits, side by side in bytes."""

from __future__ import annotations

import numpy as np


def unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """u8[..., n] to [..., n * 8 / bits] numbers, the first of a byte in its lowest bits.

    >>> unpacked(np.uint8([0x21, 0x43]), 4).tolist()
    [1, 2, 3, 4]
    """
    parts = [(packed >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], packed.shape[-1] * len(parts))
