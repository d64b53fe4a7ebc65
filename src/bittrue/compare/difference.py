"""Equality of two arrays: equal bytes or not, and how far apart. There is no tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Difference:
    """How the bytes of one output stand to ours.

    Attributes:
        name: of the output.
        differing, bytes: how many bytes differ, of how many.
        largest: largest absolute difference of two values; None when equal, or when one is not a number.
        incomparable: why there is no verdict; then the figures mean nothing.
    """

    name: str
    differing: int = 0
    bytes: int = 0
    largest: float | None = None
    incomparable: str = ""

    @property
    def equal(self) -> bool:
        return not self.incomparable and self.differing == 0

    def __str__(self) -> str:
        if self.incomparable:
            return f"no verdict: {self.incomparable}"
        if self.equal:
            return "equal"
        by = "" if self.largest is None else f", values by at most {self.largest:.9g}"
        return f"{self.differing:,} of {self.bytes:,} bytes differ{by}"


def difference(name: str, ours: np.ndarray, theirs: np.ndarray) -> Difference:
    """Compare two arrays byte for byte; dimensions of 1 may be missing or added.

    >>> str(difference("y", np.int8([1, 2, 3]), np.int8([1, 4, 3])))
    '1 of 3 bytes differ, values by at most 2'
    >>> str(difference("y", np.int8([1, 2, 3]), np.float32([1, 2, 3])))
    'no verdict: float32 where ours is int8'
    """
    if ours.dtype != theirs.dtype:
        return Difference(name, incomparable=f"{theirs.dtype} where ours is {ours.dtype}")
    if [e for e in ours.shape if e != 1] != [e for e in theirs.shape if e != 1]:
        return Difference(name, incomparable=f"shape {list(theirs.shape)} where ours is {list(ours.shape)}")
    one, two = (np.ascontiguousarray(a).reshape(-1) for a in (ours, theirs))
    differing = int((one.view(np.uint8) != two.view(np.uint8)).sum())
    return Difference(name, differing, one.nbytes, _largest(one, two) if differing else None)


def summary(differences: Sequence[Difference]) -> str:
    """One verdict on all outputs.

    >>> summary([Difference("a", 0, 10), Difference("b", 2, 5, 1.0), Difference("c", 1, 5, 3.0)])
    '2 of 3 outputs: 3 of 20 bytes differ, values by at most 3'
    """
    if not differences:
        return "no outputs"
    if len(differences) == 1:
        return str(differences[0])
    different = [d for d in differences if not d.equal]
    if not different:
        return "equal"
    many = f"{len(different)} of {len(differences)} outputs: "
    reasons = [d.incomparable for d in different if d.incomparable]
    if reasons:
        return f"no verdict: {many}{reasons[0]}"
    largest = [d.largest for d in different if d.largest is not None]
    total = Difference(
        "", sum(d.differing for d in different), sum(d.bytes for d in differences), max(largest, default=None)
    )
    return f"{many}{total}"


def _largest(one: np.ndarray, two: np.ndarray) -> float | None:
    if one.dtype.kind in "iub":
        # Python integers: 64-bit values may lie further apart than 64 bits can say.
        changed = np.flatnonzero(one != two)
        low, high = np.minimum(one, two)[changed], np.maximum(one, two)[changed]
        if one.dtype.itemsize < 8:
            return float((high.astype(np.int64) - low.astype(np.int64)).max())
        return float(max(int(a) - int(b) for a, b in zip(high, low, strict=True)))
    with np.errstate(invalid="ignore"):
        apart = np.abs(one.astype(np.float64) - two.astype(np.float64))
    return None if not np.isfinite(apart).all() else float(apart.max())
