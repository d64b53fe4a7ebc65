"""Slot `widen`: numbers of 16 bits to binary32, which holds all of them; rules differ in NaNs that are not quiet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Numbers of f16 or bf16, of any shape, to binary32.
WidenRule = Callable[[np.ndarray], np.ndarray]
_VECTOR = 16
_QUIET = 0x400000


def quiet_by_16(x: np.ndarray) -> np.ndarray:
    """In whole groups of 16 elements NaNs become quiet; in the up to 15 elements after them a signalling one stays.

    Source: run (processors with AVX2 and with AVX-512, one thread).

    >>> x = np.full(17, 0x7C01, np.uint16).view(np.float16)
    >>> [hex(v) for v in quiet_by_16(x)[15:].view(np.uint32).tolist()]
    ['0x7fc02000', '0x7f802000']
    """
    result = exact(x)
    whole = result.reshape(-1)[: x.size // _VECTOR * _VECTOR]
    whole.view(np.uint32)[np.isnan(whole)] |= _QUIET
    return result


def quiet(x: np.ndarray) -> np.ndarray:
    """Every NaN becomes quiet.

    Source: run (aarch64).

    >>> hex(quiet(np.array([0x7C01], np.uint16).view(np.float16)).view(np.uint32)[0])
    '0x7fc02000'
    """
    result = exact(x)
    result.view(np.uint32)[np.isnan(result)] |= _QUIET
    return result


def exact(x: np.ndarray) -> np.ndarray:
    """Signalling NaNs stay what they are.

    >>> [hex(v) for v in exact(np.array([0x7C01, 0x3C00], np.uint16).view(np.float16)).view(np.uint32).tolist()]
    ['0x7f802000', '0x3f800000']
    """
    result = x.astype(np.float32)
    missing = np.isnan(result)
    if missing.any():
        bits = x.view(np.uint16)[missing].astype(np.uint32)
        kept = (bits & 0x3FF) << 13 if x.dtype == np.float16 else (bits & 0x7F) << 16
        result.view(np.uint32)[missing] = (bits & 0x8000) << 16 | 0x7F800000 | kept
    return result


RULES: dict[str, WidenRule] = {"exact": exact, "quiet": quiet, "quiet_by_16": quiet_by_16}
