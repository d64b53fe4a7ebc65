"""Numbers for layers of products and sums on quantized values: what QLinearConv, QLinearMatMul, QGemm and groups
share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...graph import data_type
from ...operators.core.geometry import window
from .draft import all_between, between
from .onnx_aiming import Scales, Sums, accumulators, aimed_sums

# Label of a case to types of activations and weights.
TYPES = {"s8": ("s8", "s8"), "u8": ("u8", "s8"), "u8u8": ("u8", "u8")}


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer: activations, weights and parameters.

    Attributes:
        x: quantized values, ``[rows, terms]`` or what `attributes` of a convolution are for: ``[n, c, h, w]``.
        w: quantized values, ``[channels, terms]`` or ``[m, c / groups, kh, kw]``.
        w_scale, w_zero_point: one number or one per channel.
        bias: s32, one per channel; None without.
        attributes: of the convolution.
    """

    aim: str
    note: str
    x_type: str
    w_type: str
    x: np.ndarray
    w: np.ndarray
    bias: np.ndarray | None
    x_scale: float
    x_zero_point: int
    w_scale: np.ndarray
    w_zero_point: np.ndarray
    y_scale: float
    y_zero_point: int
    attributes: dict[str, Any] = field(default_factory=dict)
    seeks: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """Scales and zero points of an aimed layer; exponents are of the multiplier x_scale * w_scale / y_scale.

    Attributes:
        exponents: of the first and last channel's multiplier; those between have exponents between.
        round_scales: powers of two only.
        per_channel: scales of weights.
        points: zero points of activations, weights and results, as parts of the type's range from 0 to 1.
    """

    aim: str
    note: str
    exponents: tuple[int, int]
    round_scales: bool
    per_channel: bool
    points: tuple[float, float, float]
    reach: int = 1

    def without_bias(self) -> Wanted:
        """Sums that nothing moves reach ties of smaller multipliers by more products."""
        first, last = (max(end, -13) for end in self.exponents)
        return replace(self, exponents=(first, last), reach=8 if last < -9 else 1)

    @property
    def image(self) -> tuple[int, int]:
        """Height and width; where a channel's sums reach one tie only, more channels earn more than more sums."""
        return (1, 6) if self.exponents[1] < -12 else (4, 9)

    @property
    def channels(self) -> int:
        return 33 if self.exponents[1] < -12 else 8


AIMED = (
    Wanted("ties", "multipliers of 2^-2 to 2^-9 per channel, odd zero point", (-2, -9), True, True, (0.5, 0.5, 0.41)),
    Wanted("ties", "multiplier 2^-6, zero point in the middle", (-6, -6), True, False, (0.5, 0.5, 0.5)),
    Wanted("ties", "multipliers of 2^-10 to 2^-17 per channel, large biases", (-10, -17), True, True, (0.3, 0.5, 0.6)),
    Wanted("near ties", "multipliers from 2^-5 to 2^-12 per channel", (-5, -12), False, True, (0.5, 0.5, 0.37)),
    Wanted("near ties", "multipliers from 2^-12 to 2^-19 per channel", (-12, -19), False, True, (0.6, 0.5, 0.5)),
    Wanted("near ties", "accumulators beyond 2^24, which binary32 rounds", (-18, -22), False, True, (0.4, 0.5, 0.7)),
    Wanted("near ties", "one multiplier for all channels", (-9, -9), False, False, (0.7, 0.5, 0.2)),
    Wanted("zero points", "all at the lowest end", (-7, -7), False, False, (0.0, 0.5, 0.0)),
    Wanted("zero points", "all at the highest end", (-7, -7), False, False, (1.0, 0.5, 1.0)),
    Wanted("saturation", "multiplier near 1: few accumulators stay inside", (0, -1), False, True, (0.5, 0.5, 0.5)),
    Wanted("saturation", "products beyond 16 bits, and beyond 32", (3, 9), True, True, (0.5, 0.5, 0.45)),
)


def normal(random: np.random.Generator, spread: float, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers that are nearly normal, of standard deviation `spread`: sums of four, without a function of any library
    that machines could have their own versions of.
    """
    four = random.random((4, *shape)) - 0.5
    return np.asarray((four[0] + four[1] + four[2] + four[3]) * (spread * 1.7320508075688772))


def point(name: str, part: float) -> int:
    """A zero point by its place in the type's range."""
    kind = data_type(name)
    return int(np.rint(kind.minimum + part * (kind.maximum - kind.minimum) + (0.0 if part in (0.0, 1.0) else 0.26)))


def weight_point(name: str, part: float = 0.5) -> int:
    """Zero points of signed weights are 0."""
    return 0 if name.startswith("s") else point(name, part)


def scales_for(wanted: Wanted, channels: int, random: np.random.Generator) -> tuple[float, np.ndarray, float]:
    """Scales of activations, weights and results that give the wanted multipliers."""
    exponents = np.rint(np.linspace(*wanted.exponents, channels if wanted.per_channel else 1)).astype(int)
    x, y = np.float32(2.0**-5), np.float32(2.0**-3)
    w = np.ldexp(4.0, exponents)
    if not wanted.round_scales:
        x, y = (np.float32(one * between(random, 1, 2)) for one in (x, y))
        w = w * all_between(random, 1, 2, w.shape) / 2
    return float(x), w.astype(np.float32), float(y)


def aimed(label: str, wanted: Wanted, random: np.random.Generator, biased: bool) -> Layer:
    """A layer whose accumulators are chosen."""
    wanted = wanted if biased else wanted.without_bias()
    rows, channels = int(np.prod(wanted.image)), wanted.channels
    x_type, w_type = TYPES[label]
    x_kind, w_kind = data_type(x_type), data_type(w_type)
    zx, zy = point(x_type, wanted.points[0]), point(x_type, wanted.points[2])
    zw = weight_point(w_type, wanted.points[1])
    x, w, y = scales_for(wanted, channels, random)

    def scales(channel: int) -> Scales:
        return Scales(x, float(w[channel % w.size]), y, zy, x_kind.minimum, x_kind.maximum)

    def choose(channel: int, low: int, high: int, count: int) -> np.ndarray:
        return accumulators(scales(channel), low, high, count, random)

    def middle(channel: int) -> int:
        if wanted.exponents[0] > 0:
            # Nothing is inside of the quantized values; products by the multiplier leave every register.
            return int(random.choice([-1, 1])) << (12 + 2 * channel % 15)
        # Where the reach of a channel is shorter than the range of its quantized values, any part of them.
        code = random.integers(x_kind.minimum + 20, x_kind.maximum - 20) - zy
        real = scales(channel).real
        return int((2 * int(code) + 1) / (2 * real)) if real < 2.0**-7 else 0

    sums: Sums = aimed_sums(
        rows,
        channels,
        5,
        (x_kind.minimum - zx, x_kind.maximum - zx),
        (max(w_kind.minimum - zw, -127), min(w_kind.maximum - zw, 127)),
        choose,
        random,
        middle=middle if biased else None,
        reach=wanted.reach,
    )
    return Layer(
        wanted.aim,
        wanted.note,
        x_type,
        w_type,
        (sums.x + zx).astype(x_kind.numpy),
        (sums.w + zw).astype(w_kind.numpy),
        sums.bias.astype(np.int32) if biased else None,
        x,
        zx,
        w,
        np.full(w.shape, zw, w_kind.numpy),
        y,
        zy,
        seeks={"accumulators": sums.acc.tolist()},
    )


@dataclass(frozen=True)
class Image:
    """Geometry of a convolution whose numbers are random but whose every sum is inside of the quantized values."""

    note: str
    x: tuple[int, ...]
    kernel: tuple[int, ...]
    channels: int
    group: int = 1
    attributes: dict[str, Any] = field(default_factory=dict)
    aim: str = "shapes"
    points: tuple[float, float, float] = (0.5, 0.5, 0.5)


def _window(**attributes: Any) -> dict[str, Any]:
    return attributes


IMAGES = (
    Image(
        "3x3, padded by 1, zero point at the low end",
        (1, 3, 5, 7),
        (3, 3),
        5,
        1,
        _window(pads=[1, 1, 1, 1]),
        "padding",
        (0.0, 0.5, 0.4),
    ),
    Image(
        "3x3, padded by 1, zero point at the high end",
        (1, 2, 4, 5),
        (3, 3),
        7,
        1,
        _window(pads=[1, 1, 1, 1]),
        "padding",
        (1.0, 0.5, 0.6),
    ),
    Image(
        "each side padded by another number",
        (1, 4, 5, 4),
        (3, 2),
        3,
        1,
        _window(pads=[2, 0, 1, 1]),
        "padding",
        (0.8, 0.5, 0.5),
    ),
    Image(
        "stride 2, SAME_UPPER",
        (1, 3, 6, 7),
        (3, 3),
        4,
        1,
        _window(auto_pad="SAME_UPPER", strides=[2, 2]),
        "padding",
        (0.2, 0.5, 0.5),
    ),
    Image(
        "stride 2, SAME_LOWER",
        (1, 3, 6, 8),
        (4, 3),
        4,
        1,
        _window(auto_pad="SAME_LOWER", strides=[2, 3]),
        "padding",
        (0.3, 0.5, 0.5),
    ),
    Image(
        "dilated by 2 and 3, padded",
        (1, 2, 7, 9),
        (3, 2),
        3,
        1,
        _window(dilations=[2, 3], pads=[2, 1, 2, 2]),
        "padding",
        (0.9, 0.5, 0.3),
    ),
    Image("depthwise, padded", (1, 17, 5, 5), (3, 3), 17, 17, _window(pads=[1, 1, 1, 1]), "padding", (0.1, 0.5, 0.5)),
    Image("depthwise, two filters per channel", (1, 3, 5, 6), (2, 3), 6, 3),
    Image("three groups, batch of 2", (2, 6, 4, 5), (2, 2), 9, 3, _window(strides=[1, 2])),
    Image("65 terms, 17 channels, 1x1", (1, 65, 3, 3), (1, 1), 17),
    Image("one row: a convolution of one axis", (1, 5, 19), (5,), 6, 1, _window(pads=[2, 2], strides=[2])),
    Image("kernel as large as the image: 189 terms", (2, 7, 9, 3), (9, 3), 5),
    Image("one channel, one output", (1, 1, 9, 9), (3, 3), 1),
)


def image(
    label: str, geometry: Image, random: np.random.Generator, biased: bool = True, per_channel: bool = True
) -> Layer:
    """Random quantized values; the multiplier is a power of two for which one sum in a few is a tie."""
    x_type, w_type = TYPES[label]
    x_kind, w_kind = data_type(x_type), data_type(w_type)
    zx, zy = point(x_type, geometry.points[0]), point(x_type, geometry.points[2])
    zw = weight_point(w_type)
    shape = (geometry.channels, geometry.x[1] // geometry.group, *geometry.kernel)
    x = random.integers(x_kind.minimum, x_kind.maximum, geometry.x, endpoint=True)
    # Small weights give small sums, so that one in 16 to 64 is a tie.
    terms = int(np.prod(shape[1:]))
    w = random.integers(-3, 4, shape)
    spread = 4.0 * np.sqrt(terms) * (x_kind.maximum - x_kind.minimum) / 2
    exponent = math.frexp(100 / spread)[1] - 1
    size = geometry.channels if per_channel else 1
    w_scale = np.ldexp(4.0, random.integers(exponent, exponent + 2, size))
    bias = random.integers(-200, 200, geometry.channels) if biased else None
    attributes = {"kernel_shape": list(geometry.kernel), **geometry.attributes}
    if geometry.group > 1:
        attributes["group"] = geometry.group
    return Layer(
        geometry.aim,
        geometry.note,
        x_type,
        w_type,
        x.astype(x_kind.numpy),
        (w + zw).astype(w_kind.numpy),
        None if bias is None else bias.astype(np.int32),
        2.0**-5,
        zx,
        w_scale.astype(np.float32),
        np.full(size, zw, w_kind.numpy),
        2.0**-3,
        zy,
        attributes,
    )


# Of long sums: two halves, so that each leaves 2^24.
_TERMS = 1300


def long_sums(label: str, random: np.random.Generator, back: bool) -> Layer:
    """Sums of 1,300 products: some beyond 24 bits, or partial sums beyond 24 bits that come `back` to a few quantized
    values.
    """
    x_type, w_type = TYPES[label]
    x_kind, w_kind = data_type(x_type), data_type(w_type)
    half, zw = _TERMS // 2, weight_point(w_type)
    # Differences from the zero point.
    x = random.integers(240, 255, (4, half))
    w = random.integers(110, 127, (9, half), endpoint=True)
    if back:
        other = x.copy()
        for row in range(len(x)):
            places = random.integers(0, half, 3)
            other[row, places] += random.integers(-1, 2, 3)
        x, w = np.concatenate([x, other], axis=1), np.concatenate([w, -w], axis=1)
    else:
        x, w = np.concatenate([x, x], axis=1), np.concatenate([w, w], axis=1)
        for channel, part in enumerate(np.linspace(0, 1, len(w))):
            w[channel, : int(part * _TERMS)] *= -1
    scales = (0.5, 0.5, 1.0) if back else (2.0**-5, 2.0**-14, 1.0)
    return Layer(
        "saturation",
        "partial sums beyond 24 bits, small results" if back else "sums beyond 24 bits",
        x_type,
        w_type,
        (x + x_kind.minimum).astype(x_kind.numpy),
        (w + zw).astype(w_kind.numpy),
        None,
        scales[0],
        int(x_kind.minimum),
        np.array([scales[1]], np.float32),
        np.array([zw], w_kind.numpy),
        scales[2],
        point(x_type, 0.5),
    )


def wide_products(label: str, random: np.random.Generator) -> Layer:
    """Zero points of both factors at the lowest end: products up to 255 * 255, which 16 bits do not hold."""
    x_type, w_type = TYPES[label]
    x_kind, w_kind = data_type(x_type), data_type(w_type)
    return Layer(
        "zero points",
        "of activations and weights at the lowest end: products beyond 16 bits",
        x_type,
        w_type,
        random.integers(x_kind.minimum, x_kind.maximum, (4, 3), endpoint=True).astype(x_kind.numpy),
        random.integers(w_kind.minimum, w_kind.maximum, (9, 3), endpoint=True).astype(w_kind.numpy),
        None,
        0.5,
        int(x_kind.minimum),
        np.array([2.0**-9], np.float32),
        np.array([w_kind.minimum], w_kind.numpy),
        1.0,
        int(x_kind.minimum),
    )


def saturating_pairs(
    label: str,
    x_shape: tuple[int, ...],
    w_shape: tuple[int, ...],
    random: np.random.Generator,
    attributes: Mapping[str, Any] | None = None,
) -> Layer:
    """Products of neighbours whose sum leaves 16 bits; processors without VNNI saturate u8 by s8 there."""
    x_kind, w_kind = (data_type(name) for name in TYPES[label])
    zw = 0 if w_kind.minimum else 128
    x = random.choice([x_kind.maximum, x_kind.maximum - 1, x_kind.minimum], x_shape, p=[0.5, 0.3, 0.2])
    w = random.choice([127, 126, -127, -128], w_shape) + zw
    return Layer(
        "saturation",
        "sums of two products leave 16 bits (numerics onnxruntime-avx2 saturates u8 by s8)",
        *TYPES[label],
        x.astype(x_kind.numpy),
        w.astype(w_kind.numpy),
        None,
        2.0**-5,
        0 if x_kind.minimum else 3,
        np.array([2.0**-6], np.float32),
        np.array([zw], w_kind.numpy),
        2.0**4,
        0 if x_kind.minimum else 128,
        dict(attributes or {}),
    )


def usual(
    label: str,
    x_shape: tuple[int, ...],
    w_shape: tuple[int, ...],
    random: np.random.Generator,
    biased: bool = True,
    attributes: dict[str, Any] | None = None,
) -> Layer:
    """What a converter writes and a tester draws: uniform quantized values, normal weights, scales that keep results
    inside.
    """
    x_type, w_type = TYPES[label]
    x_kind, w_kind = data_type(x_type), data_type(w_type)
    zx, zy = (point(x_type, between(random, 0.3, 0.7)) for _ in range(2))
    zw = weight_point(w_type, between(random, 0.4, 0.6))
    x = random.integers(x_kind.minimum, x_kind.maximum, x_shape, endpoint=True)
    w = np.clip(np.rint(normal(random, 45.0, w_shape)) + zw, w_kind.minimum, w_kind.maximum)
    x_scale = float(np.float32(between(random, 0.01, 0.1)))
    w_scale = all_between(random, 0.002, 0.01, w_shape[0]).astype(np.float32)
    terms = int(np.prod(w_shape[1:]))
    spread = np.sqrt(terms) * 45 * 85 * x_scale * 0.006
    y_scale = float(np.float32(spread * 4 / 255))
    return Layer(
        "random",
        f"uniform quantized values, {terms} terms",
        x_type,
        w_type,
        x.astype(x_kind.numpy),
        w.astype(w_kind.numpy),
        random.integers(-4000, 4000, w_shape[0]).astype(np.int32) if biased else None,
        x_scale,
        zx,
        w_scale,
        np.full(w_shape[0], zw, w_kind.numpy),
        y_scale,
        zy,
        attributes or {},
    )


def output_shape(x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]) -> tuple[int, ...]:
    """What a convolution of any number of axes makes."""
    return (x[0], w[0], *window_counts(x[2:], attributes))


def window_counts(sizes: tuple[int, ...], attributes: dict[str, Any]) -> tuple[int, ...]:
    """Windows along every axis; `auto_pad`, where it is there, is one of the SAME ones."""
    kernel, count = attributes["kernel_shape"], len(sizes)
    strides, dilations = (attributes.get(name, [1] * count) for name in ("strides", "dilations"))
    pads = attributes.get("pads", [0] * (2 * count))
    both = zip(pads[:count], pads[count:], strict=True)
    padding = f"{attributes['auto_pad'].lower()}_cropping" if "auto_pad" in attributes else "explicit"
    size = "ceil_clipped" if attributes.get("ceil_mode") else "floor"
    axes = zip(sizes, kernel, strides, dilations, both, strict=True)
    return tuple(window(*axis, padding, size).out for axis in axes)
