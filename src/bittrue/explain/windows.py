"""Pools, averages and sums along axes, on paper."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np

from ..operators.reduction.reduce import neighbours
from ..rules import accumulate, affine_average, average, formula, mean, row_sums
from .decimals import TIES, decimal, integer, nearness, place, signed
from .rescaling import NARRATORS
from .rescaling import rescale as told
from .site import Number, Site, Work, pick
from .storing import store

_SHOWN = 9


def _values(work: Work, name: str, values: np.ndarray, box: tuple[slice, ...]) -> None:
    shown = ", ".join(str(v) for v in values[:_SHOWN]) + (", ..." if values.size > _SHOWN else "")
    where = ", ".join(f"{s.start}..{s.stop - 1}" if s.stop - s.start != 1 else str(s.start) for s in box)
    work.add("values", shown or "none", f"{values.size:,} of '{name}' [{where}]")


_AXES = (("d", "pad_front"), ("h", "pad_top"), ("w", "pad_left"))


def spatial_window(site: Site, last: bool) -> tuple[np.ndarray, list[tuple[int, ...]], int]:
    """Values of a window of a tensor [N, C, ...] or [N, ..., C] that lie inside, their indices, and all taps."""
    x, step, element = site.array(0), site.step, site.element
    n, c, *at = (element[0], element[-1], *element[1:-1]) if last else element
    sizes = x.shape[1:-1] if last else x.shape[2:]
    places, count = [], 1
    for (axis, side), position, dimension in zip(_AXES[-len(at) :], at, sizes, strict=True):
        first = position * step[f"stride_{axis}"] - step[side]
        size, apart = step[f"filter_{axis}"], step[f"dilation_{axis}"]
        low, high = max(0, -(first // apart)), min(size, (dimension - 1 - first) // apart + 1)
        places.append([first + tap * apart for tap in range(low, high)])
        count *= size
    indices = [(n, *where, c) if last else (n, c, *where) for where in product(*places)]
    values = np.array([x[index] for index in indices], x.dtype)
    return values, indices, count


# Taps of a window that are walked one by one.
_MOST_TAPS = 1 << 16


def _taps(site: Site) -> int:
    """Taps of a window that can lie in the image."""
    step, largest = site.step, max(site.array(0).shape, default=0)
    return math.prod(min(int(step[f"filter_{axis}"]), largest) for axis in "dhw" if f"filter_{axis}" in step.parameters)


def _met(site: Site, work: Work) -> tuple[np.ndarray, list[tuple[int, ...]], int] | None:
    """`spatial_window` of what is no whole step of another operator and not too large to be walked through."""
    step = site.step
    if site.output or "channels_last" not in step.parameters or _taps(site) > _MOST_TAPS:
        return None
    if len(site.array(0).shape) > len(_AXES) + 2:
        return None
    values, indices, count = spatial_window(site, bool(step["channels_last"]))
    if not len(values) or values.dtype.kind not in "iuf" or (values.dtype.kind == "f" and np.isnan(values).any()):
        return None
    _listed(work, site.name(0), values, indices)
    return values, indices, count


def max_pool(site: Site, work: Work) -> Number | None:
    """max_pool: the largest of a window; its second output is the position."""
    found = _met(site, work)
    if found is None:
        return None
    values, indices, _ = found
    at = int(values.argmax())
    work.add("largest", str(values[at]), f"'{site.name(0)}' {place(indices[at])}")
    if "activation_range" not in site.step.rules:
        return values[at].item()
    stored = min(max(values[at].item(), site.step["low"]), site.step["high"])
    work.add("clamp", integer(stored), f"into [{site.step['low']}, {site.step['high']}]")
    return stored


def average_pool(site: Site, work: Work) -> Number | None:
    """average_pool of integers under rules of the slot `average`."""
    step = site.step
    if "average" not in step.rules or "accumulate" not in step.rules or site.array(0).dtype.kind not in "iu":
        return None
    found = _met(site, work)
    if found is None or step["counted"] != "inside":
        return None
    values = found[0]
    total = int(values.astype(np.int64).sum())
    kept = int(accumulate.RULES[step.rules["accumulate"]].finish(np.asarray(total, np.int64)))
    work.add("sum", integer(kept), "of the integers as stored: zero points play no part")
    exact, rule = Fraction(kept, values.size), step.rules["average"]
    ties = rule.rpartition("_")[2]
    work.add("exact average", decimal(exact), f"{integer(kept)} / {values.size}; {nearness(exact, TIES[ties])}")
    result = int(average.RULES[rule](np.asarray(kept, np.int64), np.asarray(values.size, np.int64)))
    work.add("average", integer(result), f"{rule}: {formula('average', rule)}")
    stored = min(max(result, int(step["low"])), int(step["high"]))
    work.add("clamp", integer(stored), f"into [{step['low']}, {step['high']}]")
    work.numbers |= {"accumulator": kept, "low": int(step["low"]), "high": int(step["high"])}
    work.exact(exact)
    return stored


def _listed(work: Work, name: str, values: np.ndarray, indices: list[tuple[int, ...]]) -> None:
    """The values and where they are: a box where nothing lies between them."""
    box = tuple(slice(min(at), max(at) + 1) for at in zip(*indices, strict=True))
    if math.prod(one.stop - one.start for one in box) == len(indices):
        _values(work, name, values, box)
        return
    shown = ", ".join(str(v) for v in values[:_SHOWN]) + (", ..." if values.size > _SHOWN else "")
    work.add("values", shown, f"{values.size:,} of '{name}' {place(indices[0])} onwards")


def affine_average_pool(site: Site, work: Work) -> Number | None:
    """average_pool under rules of the slot `affine_average`: every quantized value has a summand."""
    step = site.step
    if "affine_average" not in step.rules or step["late"] or _taps(site) > _MOST_TAPS:
        return None
    values, indices, count = spatial_window(site, bool(step["channels_last"]))
    rule = affine_average.RULES[step.rules["affine_average"]]
    table = step.arrays["values"]
    if not indices:
        return None
    _listed(work, site.name(0), values, indices)
    summands = table[values.astype(np.intp) - step["low"]]
    total = np.zeros((), table.dtype)
    with np.errstate(all="ignore"):
        for summand in summands:
            total = total + summand
    shown = ", ".join(str(s) for s in summands[:4])
    work.add("sum", str(total), f"of the summands {shown}... of these quantized values, tap by tap")
    whole = step["counted"] == "taps"
    divisor = count if whole else len(values)
    work.add("count", integer(divisor), "padding included" if whole else "elements inside")
    stored = int(rule.finish(np.asarray(total), np.asarray(divisor), step.arrays, int(step["low"]), int(step["high"])))
    work.add(step.rules["affine_average"], integer(stored), formula("affine_average", step.rules["affine_average"]))
    return stored


def reduced(site: Site, work: Work) -> Number | None:
    """mean and sum of quantized numbers along axes."""
    step, x = site.step, site.array(0)
    if x.dtype.kind not in "iu" or not x.size or "accumulate" not in step.rules or "order" in step.rules:
        return None
    if step.parameters.get("late"):
        return None
    axes = tuple(int(a) % x.ndim for a in step["axes"])
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    flat = np.unravel_index(site.flat, tuple(x.shape[axis] for axis in kept)) if kept else ()
    at = dict(zip(kept, (int(i) for i in flat), strict=True))
    box = tuple(slice(at[a], at[a] + 1) if a in at else slice(0, x.shape[a]) for a in range(x.ndim))
    values = x[box].reshape(-1)
    _values(work, site.name(0), values, box)
    exact_total, narrow = int(values.astype(np.int64).sum()), ""
    if "row_sums" in step.rules:
        rows = values.reshape(-1, neighbours(x.shape, axes))
        narrow = f", {integer(exact_total)} in lanes of 16 bits ({step.rules['row_sums']})"
        exact_total = int(row_sums.RULES[step.rules["row_sums"]](rows).sum())
    exact_total -= int(step["total_zero_point"])
    bound = step.accumulator
    total = exact_total
    if bound is None or bound.wraps:
        total = int(accumulate.RULES[step.rules["accumulate"]].finish(np.asarray(exact_total, np.int64)))
    points = f", less {integer(step['total_zero_point'])} of zero points" if step["total_zero_point"] else ""
    work.add("sum", integer(total), f"of {values.size:,} values{points}{narrow}")
    work.numbers["accumulator"] = total
    rescaled = _divided(site, work, total)
    if "store" not in step.rules:
        return rescaled
    zero_point, low, high = (int(step[name]) for name in ("output_zero_point", "low", "high"))
    lines, stored = store(step.rules["store"], rescaled, zero_point, low, high)
    work.extend(lines)
    work.numbers |= {"zero_point": zero_point, "low": low, "high": high}
    return stored


# Rules of the slot `mean` that end as one of the slot `rescale` does, with the count in the multiplier.
_FOLDED = {
    "q31_count_folded_two_step_up_away": "q31_two_step_up_away",
    "q31_count_folded_one_step_up": "q31_one_step_up",
}


def _divided(site: Site, work: Work, total: int) -> int:
    step, values = site.step, pick(site.step.arrays, 0)
    rule = step.rules.get("mean", "")
    if "mean_tail" in step.rules and site.element and site.element[-1] >= step["body"]:
        rule = step.rules["mean_tail"]
    name = _FOLDED.get(rule) or ("" if rule else step.rules.get("rescale", ""))
    if name in NARRATORS and "rescale" not in (() if not rule else step.rules):
        found = told(name, total, values, "sum")
        work.extend(found.lines)
        work.numbers |= found.numbers
        work.exact(found.exact)
        return int(found.value)
    if not rule:
        return total
    arrays = {key: np.asarray(value) for key, value in values.items()}
    result = int(mean.RULES[rule].apply(np.asarray(total, np.int64), arrays))
    work.add(rule, integer(result), formula("mean", rule))
    if "rescale" in step.rules:
        moved = result - int(step["input_zero_point"])
        work.add("less zero point", integer(moved), f"{integer(result)} {signed(-int(step['input_zero_point']))}")
        found = told(step.rules["rescale"], moved, values, "average")
        work.extend(found.lines)
        work.exact(found.exact)
        return int(found.value)
    return result
