"""Functions by table, softmax, interpolation and positions of extremes, on paper."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from ..arithmetic import fixed_point
from ..operators import Function, find
from ..operators.core.functions import LOGISTIC
from ..rules import formula, interpolate, softmax, table
from .decimals import TIES, decimal, integer, nearness, place, real, signed
from .site import Number, Site, Work, scale_of


def read(site: Site, work: Work) -> Number | None:
    """A quantized value that indexes a table."""
    step = site.step
    if "table" not in step.arrays or "table" not in step.rules or "minimum" not in step.parameters:
        return None
    array = site.array(0)
    if array.dtype.kind not in "iu" or array.shape != site.shape:
        return None
    q, minimum, rule = int(array[site.element]), int(step["minimum"]), step.rules["table"]
    work.add("input", integer(q), f"'{site.name(0)}' {place(site.element)}")
    _function(site, work, q)
    stored = int(table.RULES[rule].read(step.arrays["table"], np.asarray(q, np.int64), minimum))
    direct = step.arrays["table"].size == 256
    number = f"number {q - minimum} of {step.arrays['table'].size}; " if direct else ""
    label = "table entry" if direct else "interpolated"
    work.add(label, integer(stored), f"{number}{rule}: {formula('table', rule)}")
    return stored


# What files call operators whose tables are read as the logistic function's are.
_LOGISTIC = frozenset({"logistic", "sigmoid", "qlinearsigmoid", "nn.sigmoid", "qnn.sigmoid", "int8sigmoid"})


def _named(site: Site) -> Function | None:
    operator = find(site.step.operator)
    function = None if operator is None else operator.function
    # Other functions are carried out as the logistic one's lookups, too.
    return None if function is LOGISTIC and site.step.source.lower() not in _LOGISTIC else function


def _function(site: Site, work: Work, q: int) -> None:
    """The real argument and the function's value, where tensors have scales and the function is known."""
    source, output = site.source(0).quantization, site.tensor.quantization
    scale, output_scale = scale_of(source), scale_of(output)
    if source is None or output is None or scale is None or output_scale is None or source.per_axis or not output_scale:
        return
    zero_point = int(source.zero_points[0])
    argument = float(np.float64(scale) * (q - zero_point))
    work.add("real argument", real(argument), f"{real(scale)} * ({q} {signed(-zero_point)})")
    known = _named(site)
    if known is None:
        return
    with np.errstate(all="ignore"):
        value = float(known.of(site.step, np.asarray(argument)))
    if not math.isfinite(value):
        return
    exact = Fraction(value) / Fraction(float(output_scale))
    work.add("function", real(value), f"{known.text}, in binary64")
    near = nearness(exact, "see the rule for ties")
    moved = f"/ {real(output_scale)}, zero point {int(output.zero_points[0])} to be added"
    work.add("in output steps", decimal(exact), f"{moved}; {near}")
    if site.step.rules["table"].startswith(("binary32_", "exact_")):
        work.exact(exact)


def soft_maximum(site: Site, work: Work) -> Number | None:
    """softmax of quantized numbers: row maximum, exponentials, sum, share."""
    step, x = site.step, site.array(0)
    if not step.arrays or "softmax" not in step.rules or x.dtype.kind not in "iu":
        return None
    length = int(step["view"][1])
    row, at = x.reshape(-1, length)[site.flat // length].astype(np.int64), site.flat % length
    largest, rule = int(row.max()), step.rules["softmax"]
    work.add("input", integer(int(row[at])), f"number {at} of {length} in its row of '{site.name(0)}'")
    work.add("row maximum", integer(largest), f"number {int(row.argmax())} of the row")
    work.add("difference", integer(int(row[at]) - largest), f"{int(row[at])} {signed(-largest)}")
    scale = scale_of(site.source(0).quantization)
    if scale is not None:
        exponents = np.exp(np.float64(scale) * (row - largest))
        share = float(exponents[at] / exponents.sum())
        remark = f"exp({real(scale)} * ({int(row[at]) - largest})), beta 1, in binary64"
        work.add("exponential", f"{float(exponents[at]):.9g}", remark)
        work.add("sum", f"{float(exponents.sum()):.9g}", "of the row's exponentials, in binary64")
        work.add("share", f"{share:.9g}", "what real numbers would give")
    if "exponentials" in step.arrays and step.arrays["exponentials"].size == 256:
        _entries(work, step.arrays["exponentials"], row, at, largest)
    apply = softmax.RULES[rule].apply
    shares = apply(row[None], step.arrays, step["bits"])[0]
    value = int(fixed_point.wrap_s32(int(shares[at]) + int(step["offset"])))
    work.add("result", integer(int(shares[at])), f"{rule}: {formula('softmax', rule)}")
    stored = min(max(value, int(step["low"])), int(step["high"]))
    remark = f"{signed(int(step['offset']))}, into [{step['low']}, {step['high']}]"
    work.add("moved, clamped", integer(stored), remark)
    return stored


def _entries(work: Work, entries: np.ndarray, row: np.ndarray, at: int, largest: int) -> None:
    """The prepared exponentials of the row, as integers."""
    taken = entries.reshape(-1)[row - largest + 255]
    work.add("table entry", str(taken[at]), "the prepared exponential of this difference")


def resized(site: Site, work: Work) -> Number | None:
    """resize_linear: four neighbours and their weights."""
    step, x = site.step, site.array(0)
    if "interpolate" not in step.rules or "dtype" in step.parameters:
        return None
    n, y, column, c = site.element
    arrays, rule = step.arrays, step.rules["interpolate"]
    wide = np.float32 if x.dtype == np.float32 else np.int64
    corners, weights = [], (arrays["weight_y"][y], arrays["weight_x"][column])
    for across in ("low", "high"):
        for down in ("low", "high"):
            index = (n, int(arrays[f"{down}_y"][y]), int(arrays[f"{across}_x"][column]), c)
            corners.append(np.asarray(x[index], wide))
            corner = f"{'top' if down == 'low' else 'bottom'} {'left' if across == 'low' else 'right'}"
            work.add(corner, str(x[index]), f"'{site.name(0)}' {place(index)}")
    work.add("weights", f"{weights[0]}, {weights[1]}", "of the bottom and the right neighbours")
    result = interpolate.RULES[rule].apply(tuple(corners), weights[0], weights[1])  # type: ignore[arg-type]
    kept = np.asarray(result).astype(x.dtype)[()]
    unit = {"ten_bits_half_away": 1024, "ten_bits_half_up": 1024, "eleven_bits_half_up": 2048}.get(rule)
    if unit:
        down_share, across_share = (Fraction(int(weight), unit) for weight in weights)
        exact = _blend([int(corner) for corner in corners], down_share, across_share)
        ties = "away" if rule.endswith("away") else "up"
        work.add("exact blend", decimal(exact), nearness(exact, TIES[ties]))
        work.exact(exact)
    work.add("interpolated", str(kept), f"{rule}: {formula('interpolate', rule)}")
    return kept.item()


def _blend(corners: list[int], down: Fraction, across: Fraction) -> Fraction:
    top = corners[0] * (1 - across) + corners[2] * across
    bottom = corners[1] * (1 - across) + corners[3] * across
    return top * (1 - down) + bottom * down


def position(site: Site, work: Work) -> Number | None:
    """arg_max and arg_min: the row, and the first (or last) extreme in it."""
    step, x = site.step, site.array(0)
    axis, operator = step.parameters.get("axis"), find(step.operator)
    if not isinstance(axis, int) or x.dtype.kind not in "iu" or operator is None:
        return None
    axis %= x.ndim
    index: list[Any] = list(site.element)
    if len(index) == x.ndim:
        index[axis] = slice(None)
    else:
        index.insert(axis, slice(None))
    row = x[tuple(index)]
    largest, last = bool(operator.largest), bool(step["last"])
    seen = row[::-1] if last else row
    at = int(seen.argmax() if largest else seen.argmin())
    at = row.size - 1 - at if last else at
    shown = ", ".join(str(v) for v in row[:9]) + (", ..." if row.size > 9 else "")
    work.add("values", shown, f"{row.size} along axis {axis} of '{site.name(0)}'")
    work.add("largest" if largest else "smallest", str(row[at]), f"{'last' if last else 'first'} at position {at}")
    return at
