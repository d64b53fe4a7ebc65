"""Digests of what a sample was, became and gave, and one digest of all samples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np

_MODULUS = 1 << 512
_ROW = hashlib.sha512()
# Short lengths, written with the lowest byte first.
_LENGTHS = [n.to_bytes(8, "little") for n in range(256)]


def digest_of(parts: Sequence[bytes | np.ndarray | Mapping[str, bytes | np.ndarray]]) -> str:
    """SHA-256 of bytes as they are; of an array's type, shape and values in C order with the lowest byte first.

    That of several parts, or of the values of a mapping, is the one of their digests, one after the other.
    """
    if len(parts) != 1:
        return digest_of(["".join(digest_of([part]) for part in parts).encode()])
    (value,) = parts
    # Copies of a state are made in half the time of a new one.
    if isinstance(value, bytes):
        state = _NOTHING.copy()
    elif isinstance(value, np.ndarray):
        kind, shape = value.dtype, value.shape
        state = _head(kind, shape).copy()
        if kind.byteorder == ">":
            value = value.astype(kind.newbyteorder("<"))
        value = value.tobytes()
    else:
        return digest_of([*value.values()])
    state.update(value)
    return state.hexdigest()


_NOTHING = hashlib.sha256()


@lru_cache
def _head(dtype: np.dtype, shape: tuple[int, ...]) -> hashlib._Hash:
    """What has taken in an array's type and shape."""
    return hashlib.sha256(f"{dtype.str[1:]}{list(shape)}".encode())


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
        content = []
        for part in parts:
            text = part.encode()
            content.append(_LENGTHS[len(text)] if len(text) < len(_LENGTHS) else len(text).to_bytes(8, "little"))
            content.append(text)
        row = _ROW.copy()
        row.update(b"".join(content))
        self._sum += int.from_bytes(row.digest(), "little")
        self._count += 1

    def hexdigest(self) -> str:
        """64 hexadecimal digits: SHA-256 of the number of rows and the sum."""
        content = self._count.to_bytes(8, "little") + (self._sum % _MODULUS).to_bytes(64, "little")
        return hashlib.sha256(content).hexdigest()
