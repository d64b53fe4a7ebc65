"""Fourier transforms of power-of-two lengths in binary64, pinned to the order of their roundings.

The transform is X[k] = sum over j of x[j] * exp(+2 pi i j k / n), split into four parts at a time:

    plain block of 4q points, w = exp(2 pi i / 4q):
        part 0: (x0 + x2) + (x1 + x3)             plain      frequencies 4k
        part 1: (x0 + x2) - (x1 + x3)             shifted    frequencies 4k + 2
        part 2: ((x0 - x2) + i (x1 - x3)) w^j     plain      frequencies 4k + 1
        part 3: ((x0 - x2) - i (x1 - x3)) w^3j    plain      frequencies 4k + 3
    shifted block: the same for frequencies k + 1/2 of a block that was not multiplied by its powers of w yet; its
        parts are plain, shifted, plain, shifted.

Blocks of 16 or 8 points end the recursion with constants of their own. Which factor is taken from which table, and the
first pass, whose odd factors are means of their neighbours, follow the real FFT library that the runtime is built with
(fftsg.c of Ooura's fft2d, read; verified by running). Sines and cosines are those of the C library.

Complex numbers are arrays [2, ...] of real and imaginary parts: NumPy's own complex products round differently on some
processors. Of the two products in each part of a complex product both are rounded, or, `joined`, the second one alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bittrue.arithmetic.floats import fused_multiply_add_64

if TYPE_CHECKING:
    import numpy.typing as npt

F64 = np.ndarray[Any, np.dtype[Any]]
# z, then the real and the imaginary part of a factor.
_Product = Callable[[F64, "float | F64", "float | F64"], F64]
_Form = Callable[[F64, _Product], list[F64]]

_EIGHTH = math.cos(math.atan(1.0))


def _times(z: F64, real: float | F64, imaginary: float | F64) -> F64:
    return np.stack([real * z[0] - imaginary * z[1], real * z[1] + imaginary * z[0]])


def _times_joined(z: F64, real: float | F64, imaginary: float | F64) -> F64:
    return np.stack(
        [
            fused_multiply_add_64(real, z[0], np.negative(imaginary * z[1])),
            fused_multiply_add_64(real, z[1], imaginary * z[0]),
        ]
    )


def _turned(z: F64) -> F64:
    """i * z."""
    return np.stack([-z[1], z[0]])


def _eighth(z: F64) -> F64:
    """exp(i pi / 4) * z: one rounding after the sum."""
    return np.stack([_EIGHTH * (z[0] - z[1]), _EIGHTH * (z[1] + z[0])])


@lru_cache(maxsize=64)
def _powers(length: int) -> F64:
    """[4, length / 4]: cos a, sin a, cos 3a, -sin 3a for a = pi p / length."""
    delta = math.atan(1.0) / length
    places = range(0, length, 4)
    rows = [
        [math.cos(delta * j) for j in places],
        [math.sin(delta * j) for j in places],
        [math.cos(3 * delta * j) for j in places],
        [-math.sin(3 * delta * j) for j in places],
    ]
    return np.array(rows, np.float64)


@lru_cache(maxsize=64)
def _first_powers(quarter: int) -> F64:
    """The factors of the first pass for positions below quarter / 2: every second one between two of a short table."""
    delta = math.atan(1.0) / quarter
    ends = np.array([[1.0], [0.0], [1.0], [0.0]]), np.array([[_EIGHTH], [_EIGHTH], [-_EIGHTH], [-_EIGHTH]])
    known = np.concatenate([ends[0], _powers(quarter)[:, 1:], ends[1]], axis=1)
    spread = 0.5 / math.cos(delta * 2), 0.5 / math.cos(delta * 6)
    result = np.empty((4, quarter // 2), np.float64)
    result[:, 0::2] = known[:, :-1]
    result[:, 1::2] = np.array([spread[0], spread[0], spread[1], spread[1]])[:, None] * (known[:, :-1] + known[:, 1:])
    return result


def _quarters(z: F64) -> list[F64]:
    return np.split(z, 4, axis=-1)


def _plain_pass(z: F64, times: _Product, powers: F64) -> list[F64]:
    """`powers`: the factors of positions 0 (not used) to quarter / 2 - 1; the others mirror them."""
    x0, x1, x2, x3 = _quarters(z)
    even, odd, less, rest = x0 + x2, x1 + x3, x0 - x2, _turned(x1 - x3)
    forward, backward = less + rest, less - rest
    half = forward.shape[-1] // 2
    one, three = powers[:2, 1:], powers[2:, 1:]
    first = np.concatenate(
        [
            forward[..., :1],
            times(forward[..., 1:half], one[0], one[1]),
            _eighth(forward[..., half : half + 1]),
            times(forward[..., half + 1 :], one[1, ::-1], one[0, ::-1]),
        ],
        axis=-1,
    )
    middle = backward[..., half : half + 1]
    second = np.concatenate(
        [
            backward[..., :1],
            times(backward[..., 1:half], three[0], -three[1]),
            np.stack([-_EIGHTH * (middle[0] + middle[1]), -_EIGHTH * (middle[1] - middle[0])]),
            times(backward[..., half + 1 :], three[1, ::-1], -three[0, ::-1]),
        ],
        axis=-1,
    )
    return [even + odd, even - odd, first, second]


def _shifted_pass(z: F64, times: _Product) -> list[F64]:
    x0, x1, x2, x3 = _quarters(z)
    up, down = x0 + _turned(x2), x0 - _turned(x2)
    other_up, other_down = x1 + _turned(x3), x1 - _turned(x3)
    quarter = up.shape[-1]
    half = quarter // 2
    powers = _powers(4 * quarter)
    mirrored = np.concatenate([powers[:, :1], powers[:, :0:-1]], axis=1)
    one, two = times(up, powers[0], powers[1]), times(other_up, mirrored[1], mirrored[0])
    three, four = times(down, powers[2], -powers[3]), times(other_down, mirrored[3], -mirrored[2])
    # Position 0 has no factors, and the middle takes those of a single angle.
    one[..., 0], two[..., 0] = up[..., 0], _eighth(other_up[..., 0])
    three[..., 0], four[..., 0] = down[..., 0], _turned(_eighth(other_down[..., 0]))
    cosine, sine = powers[0, half], powers[1, half]
    three[..., half] = times(down[..., half], sine, cosine)
    four[..., half] = -times(other_down[..., half], cosine, sine)
    return [one + two, one - two, three + four, three - four]


def _four(x0: F64, x1: F64, x2: F64, x3: F64) -> list[F64]:
    """The last two passes: x0 and x1 as they are, x2 and x3 beside them."""
    turned = _turned(x3)
    return [x0 + x2, x0 - x2, x1 + turned, x1 - turned]


def _plain_leaf_16(z: F64, times: _Product) -> list[F64]:
    cosine, sine = (float(v) for v in _powers(8)[:2, 1])
    x0, x1, x2, x3 = _quarters(z)
    even, odd, less, rest = x0 + x2, x1 + x3, x0 - x2, _turned(x1 - x3)
    forward, backward = less + rest, less - rest
    y = [(even + odd)[..., j] for j in range(4)]
    s = [(even - odd)[..., j] for j in range(4)]
    f, b = ([part[..., j] for j in range(4)] for part in (forward, backward))
    f[1], f[2], f[3] = times(f[1], cosine, sine), _eighth(f[2]), times(f[3], sine, cosine)
    b[1], b[3] = times(b[1], sine, cosine), times(b[3], cosine, sine)
    b[2] = np.stack([_EIGHTH * (b[2][0] + b[2][1]), _EIGHTH * (b[2][1] - b[2][0])])
    turned = _turned(s[3])
    return [
        *_four(y[0] + y[2], y[0] - y[2], y[1] + y[3], y[1] - y[3]),
        *_four(s[0] + _turned(s[2]), s[0] - _turned(s[2]), _eighth(s[1] + turned), _eighth(s[1] - turned)),
        *_four(f[0] + f[2], f[0] - f[2], f[1] + f[3], f[1] - f[3]),
        *_four(b[0] - b[2], b[0] + b[2], b[1] - b[3], b[1] + b[3]),
    ]


def _shifted_leaf_16(z: F64, times: _Product) -> list[F64]:
    table = _powers(16)
    (c1, s1, c3, minus_s3), (c2, s2) = (float(v) for v in table[:, 1]), (float(v) for v in table[:2, 2])
    s3 = -minus_s3
    x0, x1, x2, x3 = _quarters(z)
    up, down = x0 + _turned(x2), x0 - _turned(x2)
    other_up, other_down = x1 + _turned(x3), x1 - _turned(x3)
    p, q, r, t = ([part[..., j] for j in range(4)] for part in (up, other_up, down, other_down))
    q[0], t[0] = _eighth(q[0]), _turned(_eighth(t[0]))
    p[1], q[1] = times(p[1], c1, s1), times(q[1], s3, c3)
    r[1], t[1] = times(r[1], c3, s3), times(t[1], c1, -s1)
    p[2], q[2] = times(p[2], c2, s2), times(q[2], s2, c2)
    r[2], t[2] = times(r[2], s2, c2), times(t[2], c2, s2)
    p[3], q[3] = times(p[3], c3, s3), times(q[3], s1, c1)
    r[3], t[3] = times(r[3], s1, -c1), times(t[3], s3, c3)
    y, s = [a + b for a, b in zip(p, q, strict=True)], [a - b for a, b in zip(p, q, strict=True)]
    f = [r[0] + t[0], r[1] - t[1], r[2] - t[2], r[3] + t[3]]
    b = [r[0] - t[0], r[1] + t[1], r[2] + t[2], r[3] - t[3]]
    turned, back = _turned(s[3]), _turned(b[3])
    return [
        *_four(y[0] + y[2], y[0] - y[2], y[1] + y[3], y[1] - y[3]),
        *_four(s[0] + _turned(s[2]), s[0] - _turned(s[2]), _eighth(s[1] + turned), _eighth(s[1] - turned)),
        *_four(f[0] + f[2], f[0] - f[2], f[1] - f[3], f[1] + f[3]),
        *_four(b[0] + _turned(b[2]), b[0] - _turned(b[2]), _eighth(b[1] - back), _eighth(b[1] + back)),
    ]


def _plain_leaf_8(z: F64, times: _Product) -> list[F64]:
    x = [z[..., j] for j in range(8)]
    one, two = _turned(x[2] - x[6]), _turned(x[3] - x[7])
    less, other = x[0] - x[4], x[1] - x[5]
    y0, y1 = x[0] + x[4], x[2] + x[6]
    y2, y3 = x[1] + x[5], x[3] + x[7]
    return [
        *_four(y0 + y1, y0 - y1, y2 + y3, y2 - y3),
        *_four(less + one, less - one, _eighth(other + two), _eighth(other - two)),
    ]


def _shifted_leaf_8(z: F64, times: _Product) -> list[F64]:
    cosine, sine = (float(v) for v in _powers(8)[:2, 1])
    x = [z[..., j] for j in range(8)]
    y0, y1 = x[0] + _turned(x[4]), x[0] - _turned(x[4])
    y2, y3 = _eighth(x[2] + _turned(x[6])), _turned(_eighth(x[2] - _turned(x[6])))
    y4, y5 = times(x[1] + _turned(x[5]), cosine, sine), times(x[1] - _turned(x[5]), sine, cosine)
    y6, y7 = times(x[3] + _turned(x[7]), sine, cosine), times(x[3] - _turned(x[7]), cosine, sine)
    return [*_four(y0 + y2, y0 - y2, y4 + y6, y4 - y6), *_four(y1 + y3, y1 - y3, y5 - y7, y5 + y7)]


def _both(blocks: F64, shifted: npt.NDArray[np.bool_], times: _Product, plain: _Form, other: _Form) -> F64:
    """[2, ..., blocks, points] -> [2, ..., blocks, parts, points of a part]: all blocks of a kind at once."""
    done = [np.stack(plain(blocks[..., ~shifted, :], times), axis=-2)]
    if not shifted.any():
        return done[0]
    done.append(np.stack(other(blocks[..., shifted, :], times), axis=-2))
    out = np.empty((*blocks.shape[:-1], *done[0].shape[-2:]), np.float64)
    out[..., ~shifted, :, :], out[..., shifted, :, :] = done
    return out


def _passes(z: F64, times: _Product) -> F64:
    """Frequencies of 8 points or more in bit-reversed order."""
    blocks, shifted, first = z[..., None, :], np.zeros(1, np.bool_), True
    while blocks.shape[-1] > 16:
        quarter = blocks.shape[-1] // 4
        powers = _first_powers(quarter) if first else _powers(2 * quarter)
        parts = _both(blocks, shifted, times, partial(_plain_pass, powers=powers), _shifted_pass)
        blocks, first = parts.reshape(*blocks.shape[:-2], -1, quarter), False
        shifted = np.stack([np.zeros_like(shifted), ~np.zeros_like(shifted), np.zeros_like(shifted), shifted], axis=1)
        shifted = shifted.reshape(-1)
    leaves = (_plain_leaf_16, _shifted_leaf_16) if blocks.shape[-1] == 16 else (_plain_leaf_8, _shifted_leaf_8)
    alone = tuple(partial(_apart, leaf=leaf) for leaf in leaves)
    return _both(blocks, shifted, times, *alone).reshape(z.shape)


def _apart(z: F64, times: _Product, leaf: _Form) -> list[F64]:
    """Each frequency as a part of one point."""
    return [frequency[..., None] for frequency in leaf(z, times)]


@lru_cache(maxsize=64)
def _bit_reversed(points: int) -> npt.NDArray[np.int64]:
    order = np.zeros(1, np.int64)
    while order.size < points:
        order = np.concatenate([2 * order, 2 * order + 1])
    return order


def transform(z: F64, joined: bool = False) -> F64:
    """[2, ..., n] -> [2, ..., n]: X[k] = sum x[j] exp(+2 pi i j k / n) for n a power of two, along the last axis.

    >>> transform(np.array([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]])).tolist()
    [[10.0, -2.0, -2.0, -2.0], [0.0, -2.0, 0.0, 2.0]]
    """
    points = z.shape[-1]
    if points == 1:
        return z
    x = [z[..., j] for j in range(points)] if points <= 4 else []
    if points == 2:
        return np.stack([x[0] + x[1], x[0] - x[1]], axis=-1)
    if points == 4:
        out = _four(x[0] + x[2], x[0] - x[2], x[1] + x[3], x[1] - x[3])
        return np.stack([out[0], out[2], out[1], out[3]], axis=-1)
    return _passes(z, _times_joined if joined else _times)[..., _bit_reversed(points)]


@lru_cache(maxsize=64)
def _real_powers(points: int) -> tuple[F64, F64]:
    """(1 - sin a) / 2 and cos(a) / 2 for a = pi j / 2 points, 0 < j < points."""
    half = points // 2
    delta = math.atan(1.0) / half
    table = np.zeros(points + 1, np.float64)
    for j in range(1, half):
        table[j], table[points - j] = 0.5 * math.cos(delta * j), 0.5 * math.sin(delta * j)
    table[half] = 0.5 * math.cos(delta * half)
    return 0.5 - table[points - 1 : 0 : -1], table[1:points]


def real_transform(x: F64, joined: bool = False) -> F64:
    """[..., n] -> [2, ..., n / 2]: the frequencies below n / 2 of real numbers, n > 1 a power of two.

    The imaginary part at frequency 0, which is none, holds the real one at n / 2.

    >>> real_transform(np.array([1.0, 2.0, 3.0, 4.0])).tolist()
    [[10.0, -2.0], [-2.0, -2.0]]
    """
    z = transform(np.stack([x[..., 0::2], x[..., 1::2]]), joined).copy()
    points = x.shape[-1] // 4
    if points > 1:
        near, far = z[..., 1:points].copy(), z[..., :points:-1].copy()
        times = _times_joined if joined else _times
        y = times(np.stack([near[0] - far[0], near[1] + far[1]]), *_real_powers(points))
        z[..., 1:points] = near - y
        z[0, ..., :points:-1] = far[0] + y[0]
        z[1, ..., :points:-1] = far[1] - y[1]
    real, imaginary = z[0, ..., 0].copy(), z[1, ..., 0].copy()
    z[0, ..., 0], z[1, ..., 0] = real + imaginary, real - imaginary
    return z
