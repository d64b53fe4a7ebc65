"""One differing element worked out, the accumulators of a tensor, and how far its values are from ties."""

from __future__ import annotations

from typing import Any

import numpy as np

from .hypotheses import Case, layers

_MOST_TIES = 512


def element_of(case: Case) -> tuple[int, tuple[int, ...]]:
    """(input set, element) of the witness: the largest difference, of equal ones the first."""
    best: tuple[float, int, tuple[int, ...]] | None = None
    for position, (a, b, mask) in enumerate(zip(case.ours, case.theirs, case.differs, strict=True)):
        if not mask.any():
            continue
        with np.errstate(all="ignore"):
            apart = np.where(mask, np.abs(b.astype(np.float64) - a.astype(np.float64)), -1.0)
        apart = np.where(np.isnan(apart), np.inf, apart)
        where = np.unravel_index(int(np.argmax(apart)), apart.shape) if apart.ndim else ()
        if best is None or apart[where] > best[0]:
            best = float(apart[where]), position, tuple(int(i) for i in where)
    assert best is not None, "a case differs somewhere"
    return best[1], best[2]


def accumulator_range(case: Case) -> tuple[int, int, int] | None:
    """Smallest and largest accumulator, and the proven bound."""
    found = [acc for i in range(len(case.values)) if (acc := case.accumulators(i)) is not None and acc.size]
    if not found or case.step.accumulator is None:
        return None
    return min(int(a.min()) for a in found), max(int(a.max()) for a in found), case.step.accumulator.magnitude


def ties(case: Case) -> tuple[tuple[float, float], ...]:
    """[distance of the unrounded value to the nearest tie, b - a] of up to 512 elements, differing ones first."""
    rows: list[tuple[float, float]] = []
    for wanted in (True, False):
        for position, (a, b, mask) in enumerate(zip(case.ours, case.theirs, case.differs, strict=True)):
            acc = case.accumulators(position)
            if acc is None:
                return ()
            chosen = np.flatnonzero((mask == wanted).reshape(-1))[: _MOST_TIES - len(rows)]
            step = case.step
            exact = np.broadcast_to(acc * layers.real_multiplier(case.plan, step), acc.shape).reshape(-1)[chosen]
            distance = np.abs(exact - np.floor(exact) - np.longdouble(0.5))
            apart = b.reshape(-1)[chosen].astype(np.int64) - a.reshape(-1)[chosen].astype(np.int64)
            rows += [(float(d), float(v)) for d, v in zip(distance, apart, strict=True)]
    return tuple(rows)


def work_out(case: Case, position: int, element: tuple[int, ...]) -> dict[str, Any]:
    """The witness: A's arithmetic of one differing element, and B's value."""
    step = case.step
    ours, theirs = case.ours[position][element], case.theirs[position][element]
    return {
        "tensor": case.segment.name,
        "element": list(element),
        "input_set": position,
        "operator": step.operator,
        "source": step.source,
        "node": step.index,
        "numerics": case.segment.numerics.name,
        "rules": dict(step.rules),
        "stored": ours.item(),
        "theirs": theirs.item(),
        "numbers": _numbers(case, position, element),
    }


def _numbers(case: Case, position: int, element: tuple[int, ...]) -> dict[str, int | float]:
    acc = case.accumulators(position)
    if acc is None:
        return {}
    step = case.step
    real = layers.real_multiplier(case.plan, step)
    one = real[element[-1] if real.size > 1 else 0]
    exact = np.longdouble(int(acc[element])) * one
    numbers: dict[str, int | float] = {
        "accumulator": int(acc[element]),
        "real_multiplier": float(one),
        "zero_point": int(step["output_zero_point"]),
        "low": int(step["low"]),
        "high": int(step["high"]),
        "exact": float(exact),
        "tie_distance": float(abs(exact - np.floor(exact) - np.longdouble(0.5))),
    }
    for name in ("multiplier", "exponent"):
        if name in step.arrays:
            array = step.arrays[name].reshape(-1)
            numbers[name] = array[element[-1] if array.size > 1 else 0].item()
    return numbers
