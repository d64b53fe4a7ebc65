"""Digests of what a sample was, became and gave, and one digest of all samples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

_MODULUS = 1 << 512


def digest_of(parts: Sequence[bytes | np.ndarray]) -> str:
    """SHA-256 of bytes as they are; of an array's type, shape and values in C order with the lowest byte first.

    That of several parts is the one of their digests, one after the other.
    """
    if len(parts) != 1:
        return hashlib.sha256("".join(digest_of([part]) for part in parts).encode()).hexdigest()
    (value,) = parts
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    head = f"{value.dtype.str[1:]}{list(value.shape)}".encode()
    if value.dtype.byteorder == ">":
        value = value.astype(value.dtype.newbyteorder("<"))
    return hashlib.sha256(head + value.tobytes()).hexdigest()


class Combined:
    """One digest of any number of rows that depends neither on their order nor on how they were split.

    It is the sum of the rows' SHA-512 modulo 2^512, and their number: two combined digests add up to that of all their
    rows, and its size does not grow.

    >>> one, two = Combined(), Combined()
    >>> one.add(["a", "b"]); one.add(["c"]); two.add(["c"]); two.add(["a", "b"])
    >>> one.hexdigest() == two.hexdigest()
    True
    """

    def __init__(self) -> None:
        self._sum = self._count = 0

    def add(self, parts: Iterable[str]) -> None:
        """One more row, made of these texts."""
        content = b"".join(len(part.encode()).to_bytes(8, "little") + part.encode() for part in parts)
        self._sum = (self._sum + int.from_bytes(hashlib.sha512(content).digest(), "little")) % _MODULUS
        self._count += 1

    def hexdigest(self) -> str:
        """64 hexadecimal digits: SHA-256 of the number of rows and the sum."""
        content = self._count.to_bytes(8, "little") + self._sum.to_bytes(64, "little")
        return hashlib.sha256(content).hexdigest()
