"""Other roundings of the exact product, in several precisions, whether or not any numerics has such a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ...plan import Plan
from ..result import Cause
from .case import Case, Hypothesis, Values
from .layers import Layer, last_layer
from .unrounded import unrounded

Array = np.ndarray
Tie = Callable[[Array], Array]


def _away(v: Array) -> Array:
    # Half is added to the fraction alone, so that large numbers lose nothing.
    whole = np.trunc(v)
    return whole + np.sign(v) * (np.abs(v - whole) >= 0.5)


def _up(v: Array) -> Array:
    whole = np.floor(v)
    return whole + (v - whole >= 0.5)


def _down(v: Array) -> Array:
    whole = np.floor(v)
    return whole + (v - whole > 0.5)


def _half_of(v: Array) -> Array:
    return np.copysign(v.dtype.type(0.5), v)


TIES: tuple[tuple[str, str, Tie], ...] = (
    ("ties even", "to nearest, ties to even", np.rint),
    ("ties away", "to nearest, ties away from zero", _away),
    ("ties up", "to nearest, ties up", _up),
    ("ties down", "to nearest, ties down", _down),
    ("trunc", "toward zero", np.trunc),
    ("floor", "down", np.floor),
    ("ceiling", "up", np.ceil),
)
# As C programs write them: the sum with one half is rounded itself, so that numbers just below a half go up.
_HALVES: tuple[tuple[str, str, Tie], ...] = (
    ("half added away", "by adding 0.5 away from zero in the same precision", lambda v: np.trunc(v + _half_of(v))),
    ("half added up", "by adding 0.5 in the same precision", lambda v: np.floor(v + v.dtype.type(0.5))),
)
# With the zero point behind (False) or ahead of rounding; for whole steps down or up that is the same.
_WAYS = tuple(
    (*tie, first) for tie in TIES for first in (False, True) if not first or tie[0] not in ("floor", "ceiling")
)


def roundings(case: Case) -> Iterator[Hypothesis]:
    """Every tie in every precision, with the zero point behind and ahead of rounding."""
    if last_layer(case.plan) is not None:
        yield from _layer(case)
    else:
        yield from _other(case)


def _layer(case: Case) -> Iterator[Hypothesis]:
    def ended(product: Callable[[Layer, Array], Array], tie: Tie, first: bool) -> Callable[[Layer, Array], Array]:
        def end(layer: Layer, acc: Array) -> Array:
            point, low, high = (int(layer.step[k]) for k in ("output_zero_point", "low", "high"))
            return _store(product(layer, acc), tie, first, point, low, high).astype(layer.dtype)

        return end

    for precision, product in _PRODUCTS:
        for tie_name, tie_text, tie, first in _WAYS:
            cause = _cause(case, precision, tie_name, tie_text, first)
            yield Hypothesis(cause, "rescale store", layer={"end": ended(product, tie, first)})
    for precision, product in (("binary32 product", _binary32), ("binary64 product", _binary64)):
        for tie_name, tie_text, tie in _HALVES:
            cause = _cause(case, precision, tie_name, tie_text, False)
            yield Hypothesis(cause, "rescale store", layer={"end": ended(product, tie, False)})
    for bits in (15, 16, 24):
        for tie_name, tie_text, tie in TIES[:3]:
            cause = _cause(case, f"product with a {bits}-bit truncated multiplier", tie_name, tie_text, False)
            yield Hypothesis(cause, "rescale store", layer={"end": ended(_fixed(bits, truncated=True), tie, False)})
    yield Hypothesis(
        Cause(
            "multiplier truncated to 31 bits",
            "the multiplier is truncated to 31 bits where it should be rounded: a fault",
            "parameters",
            False,
        ),
        "multiplier",
        layer={"end": _with_truncated_multiplier},
    )
    yield from _two_steps(case)


def _with_truncated_multiplier(layer: Layer, acc: Array) -> Array:
    """The step's own rules, with a multiplier that lost the bits behind the 31st."""
    if not {"multiplier", "exponent"} <= set(layer.step.arrays):
        raise ValueError("no multipliers of integers")
    fraction, exponent = np.frexp(layer.real.astype(np.float64))
    changed = {"multiplier": np.floor(np.ldexp(fraction, 31)).astype(np.int64), "exponent": exponent.astype(np.int64)}
    other = replace(layer, step=replace(layer.step, arrays={**layer.step.arrays, **changed}))
    return other.stored(other.rescaled(acc))


def _two_steps(case: Case) -> Iterator[Hypothesis]:
    """acc * M / 2^31 rounded, then the power of two rounded: every pair of ties."""
    # The doubling high product of most processors comes first.
    for first_name, _, first in sorted(TIES, key=lambda tie: tie[0] != "ties up"):
        for second_name, _, second in TIES:
            benign = case.largest in (0, 1)
            text = f"the product rounded twice, high half {first_name}, power of two {second_name}"
            judged = "another rounding scheme, benign" if benign else "another rounding scheme"
            yield Hypothesis(
                Cause(f"two steps, {first_name} then {second_name}", f"{text}: {judged}", "rounding", benign),
                "rescale store",
                layer={"end": _in_two_steps(first, second)},
            )


def _in_two_steps(first: Tie, second: Tie) -> Callable[[Layer, Array], Array]:
    def end(layer: Layer, acc: Array) -> Array:
        fraction, exponent = np.frexp(layer.real.astype(np.float64))
        multiplier = np.floor(np.ldexp(fraction, 31) + 0.5)
        # A fraction that rounds up to 1 is 1/2 of the next power of two, as encoders have it: the shifts differ.
        full = multiplier == 2.0**31
        multiplier, exponent = np.where(full, 2.0**30, multiplier), exponent + full
        left = np.ldexp(acc.astype(np.float64), np.maximum(exponent, 0)).astype(np.longdouble)
        high = first(left * np.ldexp(multiplier, -31).astype(np.longdouble))
        point, low, high_end = (int(layer.step[k]) for k in ("output_zero_point", "low", "high"))
        shifted = np.ldexp(high, np.minimum(exponent, 0))
        return _store(shifted, second, False, point, low, high_end).astype(layer.dtype)

    return end


def _exact(layer: Layer, acc: Array) -> Array:
    return acc.astype(np.longdouble) * layer.real


def _binary64(layer: Layer, acc: Array) -> Array:
    return acc.astype(np.float64) * layer.real.astype(np.float64)


def _binary32(layer: Layer, acc: Array) -> Array:
    return (acc.astype(np.float32) * layer.real.astype(np.float32)).astype(np.float32)


def _fixed(bits: int, truncated: bool = False) -> Callable[[Layer, Array], Array]:
    def product(layer: Layer, acc: Array) -> Array:
        fraction, exponent = np.frexp(layer.real.astype(np.float64))
        if truncated:
            # The upper bits of what encoders write, which may have rounded up.
            fraction = np.ldexp(np.floor(np.ldexp(fraction, 31) + 0.5), -31)
        multiplier = np.floor(np.ldexp(fraction, bits) + (0.0 if truncated else 0.5))
        return acc.astype(np.longdouble) * np.ldexp(multiplier, exponent - bits).astype(np.longdouble)

    return product


_PRODUCTS: tuple[tuple[str, Callable[[Layer, Array], Array]], ...] = (
    ("exact product", _exact),
    ("product with a 31-bit multiplier", _fixed(31)),
    ("binary64 product", _binary64),
    ("binary32 product", _binary32),
    ("product with a 15-bit multiplier", _fixed(15)),
    ("product with a 16-bit multiplier", _fixed(16)),
    ("product with a 24-bit multiplier", _fixed(24)),
    ("product with an 8-bit multiplier", _fixed(8)),
)


def _store(real: Array, tie: Tie, first: bool, point: int, low: int, high: int) -> Array:
    """Rounded and clamped; with `first` the zero point is added to the real number."""
    if first:
        return np.clip(tie(real + real.dtype.type(point)), low, high)
    return np.clip(tie(real) + point, low, high)


def _other(case: Case) -> Iterator[Hypothesis]:
    kind = case.theirs[0].dtype
    if kind.kind not in "iu" or unrounded(case.plan, case.values[0]) is None:
        return

    def computed(tie: Tie, first: bool, dtype: type) -> Callable[[Plan, Values], Array | None]:
        def compute(plan: Plan, values: Values) -> Array | None:
            found = unrounded(plan, values)
            if found is None:
                return None
            real: Array = found.exact.astype(dtype)
            shape = tuple(plan.tensors[plan.outputs[0]].shape)
            return _store(real, tie, first, found.zero_point, found.low, found.high).astype(kind).reshape(shape)

        return compute

    for precision, dtype in (("exact result", np.longdouble), ("binary32 result", np.float32)):
        for tie_name, tie_text, tie, first in _WAYS:
            cause = _cause(case, precision, tie_name, tie_text, first)
            yield Hypothesis(cause, "rounding", compute=computed(tie, first, dtype))


def _cause(case: Case, precision: str, tie: str, text: str, first: bool) -> Cause:
    name = f"{precision}, {tie}" + (", zero point added before rounding" if first else "")
    where = " after the zero point is added" if first else ""
    benign = case.largest in (0, 1)
    judged = "another rounding scheme, benign" if benign else "another rounding scheme"
    return Cause(name, f"the {precision} rounded {text}{where}: {judged}", "rounding", benign)
