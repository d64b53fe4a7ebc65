"""Few elements that tell many arithmetics apart: chosen from all quantized values of narrow types, by what the answers
are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...api import Session, load
from ...errors import BittrueError
from ...graph import DataType

# Whose answers are told apart; fixed, so that a suite does not change when a numerics is added.
NUMERICS = (
    "litert",
    "litert-optimized",
    "xnnpack",
    "single-rounding",
    "litert@1.2",
    "tvm-qnn",
    "tvm-qnn-tonearest",
    "tvm-qnn-float32",
    "tvm-qnn-float32-tonearest",
    "tvm-qnn-float64",
)


def answers(content: bytes, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """What the numerics say to a model, flat, each answer once; that of `litert` is the first.

    Raises:
        BittrueError: `litert` cannot run it.
    """
    found: dict[bytes, np.ndarray] = {}
    model = load(content)
    for name in NUMERICS:
        try:
            outputs = model.prepare(name).run(dict(inputs))
        except BittrueError:
            if not found:
                raise
            continue
        value = np.ascontiguousarray(next(iter(outputs.values()))).reshape(-1)
        found.setdefault(value.tobytes(), value)
    return list(found.values())


def shaken(content: bytes, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """What `litert` would say if one of its multipliers were a little off, or had fewer bits; flat."""
    plan = load(content).prepare("litert").plan
    (step,) = plan.steps
    found = []
    for name, array in step.arrays.items():
        if "multiplier" not in name:
            continue
        cut = [array & ~mask for mask in (0xFF, 0x7FFF, 0xFFFF)]
        rounded = [(array + mask // 2 + 1) & ~mask for mask in (0xFF, 0x7FFF, 0xFFFF)]
        # One more and one less, half a unit of 24 bits; what is left of 23, of 16 and of 15 bits.
        for changed in (array + 1, array - 1, array + 64, array - 64, *cut, *rounded):
            if changed.max() >= 2**31:
                continue
            shaken_step = replace(step, arrays={**step.arrays, name: changed})
            outputs = Session(replace(plan, steps=(shaken_step,))).run(dict(inputs))
            found.append(np.ascontiguousarray(next(iter(outputs.values()))).reshape(-1))
    return found


def roundings(real: np.ndarray, zero_point: int, low: int, high: int) -> list[np.ndarray]:
    """Stored values of real numbers in steps of the output under every tie and direction, in binary64 and binary32,
    the zero point added behind and ahead of rounding, saturated before and after it is added.
    """
    found = []
    for value in (real, real.astype(np.float32)):
        for moved, behind in ((value, zero_point), (value + value.dtype.type(zero_point), 0)):
            whole = np.floor(moved)
            part = moved - whole
            toward = np.where(moved < 0, whole + (part > 0.5), whole + (part >= 0.5))
            for rounded in (
                np.rint(moved),
                toward,
                whole + (part >= 0.5),
                whole + (part > 0.5),
                np.trunc(moved),
                whole,
                np.ceil(moved),
            ):
                found.append(np.clip(rounded + behind, low, high))
    found.append(np.clip(np.clip(np.rint(real), low, high) + zero_point, low, high))
    return found


def separating(columns: Sequence[np.ndarray], each: int = 2) -> np.ndarray:
    """Places, in rising order, among which every two columns that differ anywhere differ `each` times, where they can.

    The rarest differences are looked at first: what tells a hard pair apart often serves the easy ones, too.
    """
    narrow = {column.tobytes(): column for column in (np.asarray(c, np.int32) for c in columns)}
    different = list(narrow.values())
    pairs = [
        (int(np.count_nonzero(different[one] != different[two])), one, two)
        for one in range(len(different))
        for two in range(one)
    ]
    chosen = np.zeros(0, np.int64)
    for _, one, two in sorted(pairs):
        a, b = different[one], different[two]
        missing = each - int(np.count_nonzero(a[chosen] != b[chosen]))
        if missing > 0:
            left = np.setdiff1d(np.flatnonzero(a != b), chosen, assume_unique=True)
            added = left[np.linspace(0, left.size - 1, min(missing, left.size)).astype(np.int64)]
            chosen = np.append(chosen, added)
    return np.sort(chosen)


def nearest_ties(real: np.ndarray, low: float, high: float, count: int) -> np.ndarray:
    """Places of the `count` real numbers inside (low, high) that lie nearest to a half, above and below zero alike.

    Of equal numbers the first two count.
    """
    away = np.abs(real - np.floor(real) - 0.5)
    inside = (real > low) & (real < high)
    found = []
    for side in (real < 0, real >= 0):
        places = np.flatnonzero(side & inside)
        looked, wanted = 0, count // 2
        chosen = places[:0]
        while chosen.size < count // 2 and looked < places.size:
            # Equal numbers lie equally far from a half, so that none of them is left out of `near`.
            near = places[_smallest(away[places], wanted)]
            looked, wanted = near.size, 4 * max(wanted, 1)
            order = np.argsort(real[near], kind="stable")
            third = np.zeros(near.size, bool)
            third[order[2:]] = real[near[order[2:]]] == real[near[order[:-2]]]
            chosen = near[~third]
        found.append(chosen[: count // 2])
    return np.sort(np.concatenate(found))


def _smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Places of the `count` smallest values, and of those equal to the last of them, in rising order; of equal ones
    the first place comes first.
    """
    places = np.arange(values.size)
    if 0 < count < values.size:
        places = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    return places[np.argsort(values[places], kind="stable")]


def at_ends(real: np.ndarray, low: float, high: float, count: int) -> np.ndarray:
    """Places of the real numbers next to both ends of the clamp, inside and outside of it."""
    found = []
    for end in (low, high):
        for half in (-0.5, 0.5):
            apart = real - (end + half)
            for side in (apart < 0, apart >= 0):
                places = np.flatnonzero(side)
                found.append(places[_smallest(np.abs(apart[places]), count // 8 + 1)[: count // 8 + 1]])
    return np.unique(np.concatenate(found))


def edge_values(kind: DataType, *points: int) -> np.ndarray:
    """The ends of the type, 0, and `points`, with their neighbours."""
    around = [kind.minimum, kind.maximum, 0, *points]
    quantized = {code + by for code in around for by in (-1, 0, 1)}
    return np.array(sorted(c for c in quantized if kind.minimum <= c <= kind.maximum), np.int64)
