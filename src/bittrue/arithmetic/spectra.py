"""Fourier transforms of any length in binary32 or binary64, every operation rounded once.

Lengths that are powers of two go by halves, other ones by a convolution with a chirp. Complex numbers are pairs of
arrays, real parts and imaginary parts, with what is transformed along the last axis; every product is made of four
and a difference and a sum of two, where the second product is rounded first. Source: ONNX Runtime's dft.cc, read;
verified by running.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bittrue.arithmetic.elementary import cos, sin
from bittrue.arithmetic.rational_wide import library_cos, library_sin

if TYPE_CHECKING:
    import numpy.typing as npt

Reals = np.ndarray[Any, np.dtype[Any]]
Pair = tuple[Reals, Reals]
# a b + c d
Sum = Callable[[Reals, Reals, Reals, Reals], Reals]


def _plain(a: Reals, b: Reals, c: Reals, d: Reals) -> Reals:
    return np.asarray(a * b + c * d)


def _times(a: Pair, b: Pair, add: Sum = _plain) -> Pair:
    return add(a[0], b[0], -a[1], b[1]), add(a[0], b[1], a[1], b[0])


def _real(x: Reals) -> Pair:
    return x, np.zeros_like(x)


def _reversed(length: int) -> npt.NDArray[Any]:
    """Each index below a power of two with its bits in reverse."""
    order = np.zeros(1, np.int64)
    while len(order) < length:
        order = np.concatenate([2 * order, 2 * order + 1])
    return order


def _circle(angles: Reals) -> Pair:
    """Cosines and sines; those of binary64 numbers are the C library's."""
    if angles.dtype == np.float64:
        return library_cos(angles), library_sin(angles)
    return cos(angles), sin(angles)


def _turns(length: int, inverse: bool, dtype: np.dtype[Any]) -> Pair:
    """Powers of the root of unity, in the order of reversed bits."""
    number = dtype.type
    turn = number(1 if inverse else -1) * (number(2) * number(np.pi)) / number(length)
    found, order = _circle(np.arange(length).astype(dtype) * turn), _reversed(length)
    return found[0][order], found[1][order]


def _by_halves(x: Pair, turns: Pair, inverse: bool, add: Sum) -> Pair:
    length = x[0].shape[-1]
    order, size = _reversed(length), 2
    x = (x[0][..., order], x[1][..., order])
    while size <= length:
        middle, places = size // 2, _reversed(size)
        parts = [part.reshape(*part.shape[:-1], length // size, size) for part in x]
        even: Pair = (parts[0][..., :middle], parts[1][..., :middle])
        odd: Pair = (parts[0][..., middle:], parts[1][..., middle:])
        near, far = ((turns[0][at], turns[1][at]) for at in (places[:middle], places[middle:]))
        halves = [_times(near, odd, add), _times(odd, far, add)]
        first, second = (np.concatenate([even[c] + half[c] for half in halves], -1).reshape(x[c].shape) for c in (0, 1))
        x, size = (first, second), 2 * size
    by = x[0].dtype.type(length)
    return (x[0] / by, x[1] / by) if inverse else x


def _scaled(x: Pair, window: Reals, *, real: bool) -> Pair:
    """x times 1, which brings zeros into sums, times a window; real numbers have no imaginary part before."""
    if real:
        return x[0] * window, x[0].dtype.type(0) * x[0] * window
    one = (np.ones(1, window.dtype), np.zeros(1, window.dtype))
    return _times(_times(one, x), _real(window))


def _filled(x: Pair, length: int) -> Pair:
    def fill(part: Reals) -> Reals:
        out = np.zeros((*part.shape[:-1], length), part.dtype)
        known = min(length, part.shape[-1])
        out[..., :known] = part[..., :known]
        return out

    return fill(x[0]), fill(x[1])


def chirp_length(length: int) -> int:
    """The power of two that a transform of another length is made of."""
    found = 1
    while found < 2 * length - 1:
        found *= 2
    return found


def _by_chirp(x: Pair, length: int, window: Reals | None, inverse: bool, real: bool, add: Sum) -> Pair:
    whole, count, dtype = chirp_length(length), x[0].shape[-1], x[0].dtype
    number, steps = dtype.type, np.arange(length).astype(dtype)
    chirp = _circle(number(1 if inverse else -1) * number(np.pi) * steps * steps / number(length))
    around = _filled((chirp[0], -chirp[1]), whole)
    for part in around:
        part[whole - length + 1 :] = part[1:length][::-1]
    ones, turns = np.ones(whole, dtype), _turns(whole, False, dtype)

    def transform(signal: Pair, inverse: bool) -> Pair:
        return _by_halves(_scaled(signal, ones, real=False), turns, inverse, add)

    weights = np.ones(count, dtype) if window is None else window
    signal = (x[0] * weights, np.zeros_like(x[0]) * weights) if real else _times(x, _real(weights))
    long = _filled(chirp, max(length, count))
    signal = _times((long[0][:count], long[1][:count]), signal, add)
    product = _times(transform(around, False), transform(_filled(signal, whole), False), add)
    found, back = transform(product, True), -np.arange(length) % whole
    result = _times((found[0][..., back], found[1][..., back]), chirp, add)
    # A binary32 number, whatever the type.
    scale = number(np.float32(1) / np.float32(length)) if inverse else number(1)
    return result[0] * scale, result[1] * scale


def transform(
    x: Pair,
    length: int,
    window: Reals | None = None,
    *,
    inverse: bool = False,
    real: bool = False,
    add: Sum = _plain,
) -> Pair:
    """The sum over j of x[j] window[j] exp(-+2 pi i j k / length) for every k, divided by the length when inverse.

    Args:
        x: along the last axis, cut or filled with zeros to `length`; lengths that are no power of two take no more
            than `chirp_length` numbers.
        length: of the result.
        window: as long as x.
        inverse: the other sign of the exponent.
        real: the imaginary parts are not looked at.
        add: a b + c d.

    Domain: finite numbers. C++ mends complex products of infinities.

    >>> transform((np.float32([1, 2]), np.zeros(2, np.float32)), 2)[0].tolist()
    [3.0, -1.0]
    """
    with np.errstate(all="ignore"):
        if length & (length - 1):
            return _by_chirp(x, length, window, inverse, real, add)
        weights = np.ones(length, x[0].dtype) if window is None else window
        turns = _turns(length, inverse, x[0].dtype)
        return _by_halves(_scaled(_filled(x, length), weights, real=real), turns, inverse, add)
