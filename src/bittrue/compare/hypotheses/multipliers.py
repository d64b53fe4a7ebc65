"""Other forms of the multiplier behind an accumulator, and other ends of layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .case import Case, Hypothesis
from .common import Array, cause
from .layers import Layer, last_layer


def multipliers(case: Case) -> Iterator[Hypothesis]:
    """Truncated multipliers, the zero point added on the way, biases kept narrow."""
    if last_layer(case.plan) is None:
        return
    for bits in (31, 24, 16, 15, 8):
        title = f"multiplier of {bits} bits truncated, ties up"
        text = f"a multiplier of {bits} bits is truncated instead of rounded"
        yield Hypothesis(cause(title, text, "parameters"), "multiplier", layer={"end": _truncated(bits)})
    for title, text, end in (
        ("half added before the zero point of negative numbers", "negative halves go the other way", _half_magnitude),
        ("rescaled in binary32 step by step", "scales are multiplied and divided in binary32", _step_by_step),
        ("divided by the inverse in binary32", "the sum is divided by the binary32 inverse", _divided),
        ("right shift without rounding", "the high half is rounded, the power of two cuts off", _shift_cuts),
        ("high half without rounding", "the high half is cut off, the power of two is rounded", _high_cuts),
        ("single rounding of 32 bits", "the sum is cut to 32 bits behind the left shift", _narrow_left),
    ):
        yield Hypothesis(cause(title, text, "rounding"), "rescale store", layer={"end": end})


def _stored(layer: Layer, rounded: Array) -> Array:
    point, low, high = (int(layer.step[k]) for k in ("output_zero_point", "low", "high"))
    return np.clip(rounded + point, low, high).astype(layer.dtype)


def _parts(layer: Layer, bits: int, whole: Callable[[Array], Array]) -> tuple[Array, Array]:
    fraction, exponent = np.frexp(layer.real.astype(np.float64))
    return whole(np.ldexp(fraction, bits)), exponent


def _truncated(bits: int) -> Callable[[Layer, Array], Array]:
    def end(layer: Layer, acc: Array) -> Array:
        multiplier, exponent = _parts(layer, bits, np.floor)
        real = acc.astype(np.longdouble) * np.ldexp(multiplier, exponent - bits).astype(np.longdouble)
        return _stored(layer, np.floor(real + np.longdouble(0.5)))

    return end


def _half_magnitude(layer: Layer, acc: Array) -> Array:
    real = acc.astype(np.longdouble) * layer.real
    return _stored(layer, np.trunc(real + np.longdouble(0.5)))


def _step_by_step(layer: Layer, acc: Array) -> Array:
    real = acc.astype(np.float32) * layer.real.astype(np.float32)
    point = np.float32(int(layer.step["output_zero_point"]))
    whole = np.trunc(real + point + np.copysign(np.float32(0.5), real + point))
    return np.clip(whole, int(layer.step["low"]), int(layer.step["high"])).astype(layer.dtype)


def _divided(layer: Layer, acc: Array) -> Array:
    real = acc.astype(np.float32) / (np.float32(1) / layer.real.astype(np.float32))
    return _stored(layer, np.rint(real))


def _high(layer: Layer, acc: Array) -> tuple[Array, Array]:
    multiplier, exponent = _parts(layer, 31, lambda m: np.floor(m + 0.5))
    left = np.ldexp(acc.astype(np.float64), np.maximum(exponent, 0)).astype(np.longdouble)
    return left * np.ldexp(multiplier, -31).astype(np.longdouble), np.minimum(exponent, 0)


def _shift_cuts(layer: Layer, acc: Array) -> Array:
    product, exponent = _high(layer, acc)
    return _stored(layer, np.floor(np.ldexp(np.floor(product + np.longdouble(0.5)), exponent)))


def _high_cuts(layer: Layer, acc: Array) -> Array:
    product, exponent = _high(layer, acc)
    return _stored(layer, np.floor(np.ldexp(np.floor(product), exponent) + np.longdouble(0.5)))


def _narrow_left(layer: Layer, acc: Array) -> Array:
    multiplier, exponent = _parts(layer, 15, lambda m: np.floor(m + 0.5))
    high = np.floor(np.ldexp(acc.astype(np.longdouble) * multiplier, -15))
    return _stored(layer, np.floor(np.ldexp(high, exponent) + np.longdouble(0.5)))
