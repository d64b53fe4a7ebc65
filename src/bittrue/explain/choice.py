"""Which element is worth an explanation when nobody names one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import InputError
from ..plan import Plan
from .accumulators import accumulators, tie_distances
from .against import comparable
from .element import explain_site, outputs_of

# Elements that are worked out one by one to find the one closest to a tie.
_TRIED = 64


def closest_to_tie(plan: Plan, values: Mapping[str, np.ndarray], tensor: str) -> tuple[tuple[int, ...], str]:
    """An element whose rounding is the closest call, and what to say about the choice.

    Of layers all elements are looked at, of other steps a few evenly spread ones. Elements that a clamp decides come
    last.

    Raises:
        InputError: as `explain_element`; a tensor without elements.
    """
    site = outputs_of(plan, values, tensor)
    result = site.results[site.output]
    if not result.size:
        raise InputError("BT-EXPLAIN-ELEMENT", f"'{site.tensor.name}' has no elements", place="tensor")
    acc = accumulators(plan, site.step, site.inputs)
    distances = None if acc is None else tie_distances(site.step, acc)
    if distances is not None:
        low, high = (site.step.parameters.get(name, bound) for name, bound in (("low", -np.inf), ("high", np.inf)))
        clamped = (result <= low) | (result >= high)
        order = np.where(clamped, distances + 1, distances)
        index = np.unravel_index(int(order.argmin()), result.shape)
        kind = "" if clamped.all() else " that no clamp decides"
        return tuple(int(i) for i in index), f"the element{kind} with the smallest distance to a tie"
    best: tuple[float, tuple[int, ...]] | None = None
    flats = sorted({int(flat) for flat in np.linspace(0, result.size - 1, min(result.size, _TRIED))})
    for flat in flats:
        tried = tuple(int(i) for i in np.unravel_index(flat, result.shape))
        numbers = explain_site(site.at(tried)).numbers
        if "tie_distance" in numbers:
            decided = result[tried] in (numbers.get("low"), numbers.get("high"))
            key = float(numbers["tie_distance"] + decided)
            best = min(best, (key, tried)) if best else (key, tried)
    if best is None:
        return tuple(0 for _ in result.shape), "the first element: nothing is rounded here"
    which = f"of {len(flats)} elements " if len(flats) < result.size else ""
    return best[1], f"{which}the one with the smallest distance to a tie"


def first_different(
    plan: Plan, other: Plan, values: Mapping[str, np.ndarray], tensor: str
) -> tuple[tuple[int, ...], str] | None:
    """The first element that two plans store differently from the same inputs of its step, and how many there are."""
    own = outputs_of(plan, values, tensor)
    with comparable(other, tensor):
        theirs = outputs_of(other, values, tensor)
    one, two = own.results[own.output], theirs.results[theirs.output]
    if one.shape != two.shape or one.dtype != two.dtype:
        return None
    both_nan = (one != one) & (two != two) if one.dtype.kind in "fc" else np.zeros(one.shape, np.bool_)
    different = np.argwhere((one != two) & ~both_nan)
    if not len(different):
        return None
    return tuple(int(i) for i in different[0]), f"the first of {len(different):,} of {one.size:,} elements that differ"
