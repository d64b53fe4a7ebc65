"""Slot `half_nan`: what a NaN of binary32 becomes as a binary16 number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# NaNs of binary32, of any shape, to their 16 bits; the second argument says where a NaN lies among how many numbers.
HalfNanRule = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
_VECTOR = 8
_SIGN, _QUIET, _PAYLOAD = 0x8000, 0x7E00, 0x3FF


def sign(x: np.ndarray, places: np.ndarray, count: int) -> np.ndarray:
    """The quiet NaN of its sign, wherever it lies.

    >>> [hex(v) for v in sign(np.array([0xFFFFFFFF], np.uint32), np.array([0]), 8)]
    ['0xfe00']
    """
    return (x >> 16 & _SIGN | _QUIET).astype(np.uint16)


def payload(x: np.ndarray, places: np.ndarray, count: int) -> np.ndarray:
    """Sign and the upper bits of the payload, quiet.

    Source: run (aarch64).

    >>> [hex(v) for v in payload(np.array([0xFFFFFFFF, 0x7F802000], np.uint32), np.array([0, 1]), 2)]
    ['0xffff', '0x7e01']
    """
    return (x >> 16 & _SIGN | _QUIET | x >> 13 & _PAYLOAD).astype(np.uint16)


def payload_by_8(x: np.ndarray, places: np.ndarray, count: int) -> np.ndarray:
    """In whole groups of 8 elements `payload`, in the up to 7 elements after them `sign`.

    Source: run (processors with AVX2 and with AVX-512, one thread).

    >>> [hex(v) for v in payload_by_8(np.full(2, 0xFFFFFFFF, np.uint32), np.array([7, 8]), 9)]
    ['0xffff', '0xfe00']
    """
    whole = places < count // _VECTOR * _VECTOR
    return np.where(whole, payload(x, places, count), sign(x, places, count))


RULES: dict[str, HalfNanRule] = {"payload": payload, "payload_by_8": payload_by_8, "sign": sign}
