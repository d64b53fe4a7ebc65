"""What size a tensor gets, and where its elements come from: what resize_nearest, _linear and _cubic share.

Inputs: tensor, sizes, factors, four operands of quantized values, region. There are two forms. With the attribute
`policy`, sizes or factors belong to `axes` (all axes, where there are none), and places follow from the factors; with
the transformation ``tf_crop_and_resize`` from the region, whose numbers are lengths of axes, and what lies outside of
the tensor gets the value of the attribute `outside`. Without `policy` two sizes belong to height and width of images,
which have their `channels_last` or not, and places follow from the sizes; where a size is 0, it is the dimension times
its factor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arithmetic import floats
from ...rules import multiply_add, nearest
from ..core.base import Call, Shape, Step
from ..core.indexing import bounded

F32 = np.float32
# Positions are computed in binary32 or in 32 bits with 10 fractional ones; both are trustworthy below 2^21.
LARGEST = 1 << 20
TRANSFORMATIONS = (
    "asymmetric",
    "half_pixel",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "align_corners",
    "align_corners_half_pixel",
    "half_pixel_symmetric",
    "tf_crop_and_resize",
)
_REGION = 7
_OF_IMAGES, _OF_FACTORS = ("align_corners_half_pixel",), ("tf_crop_and_resize",)


def of_images(call: Call) -> bool:
    """Whether the node resizes height and width of images."""
    return "policy" not in call.node.attributes


def transformation(call: Call) -> str:
    """The attribute that says where places lie in the input."""
    found = str(call.attribute("transformation"))
    if found not in TRANSFORMATIONS or found in (_OF_FACTORS if of_images(call) else _OF_IMAGES):
        raise call.unsupported("BT-RESIZE-MODE", f"transformation '{found}' is not made")
    return found


def modes(call: Call) -> tuple[bool, bool]:
    """Whether corners are aligned, and whether the centres of pixels are."""
    found = transformation(call)
    return found.startswith("align_corners"), "half_pixel" in found


def first_axis(call: Call) -> int:
    """The axis of an image's height."""
    return 1 if call.attribute("channels_last") else 2


def image_shape(call: Call, smallest: int) -> Shape:
    """The shape with another height and width, of at least `smallest`."""
    call.expect((2, 7))
    source, size, first = call.input(0), call.input(1, "size"), first_axis(call)
    call.rank(source, 4)
    call.rank(size, 1)
    sizes, before = call.integers(1, "size"), source.shape[first : first + 2]
    if call.has(2) and len(sizes) == 2:
        factors = call.value(2, "factors").reshape(-1)
        for at in range(2):
            with np.errstate(over="ignore", invalid="ignore"):
                scaled = np.floor(F32(before[at]) * F32(factors[at]))
            if not sizes[at] and 0 <= scaled <= LARGEST:
                sizes[at] = int(scaled)
    if len(sizes) != 2 or min(sizes) < smallest:
        raise call.invalid("BT-RESIZE-SIZE", f"the size must be two numbers of at least {smallest}, found {sizes}")
    if min(before) < 1 and 0 not in (*sizes, *source.shape[:first], *source.shape[first + 2 :]):
        raise call.invalid("BT-RESIZE-EMPTY", f"an image of shape {list(source.shape)} has no pixel to read")
    if max(*sizes, *before) > LARGEST:
        raise call.unsupported(
            "BT-RESIZE-EXTENT", f"{before} to {sizes}: dimensions above {LARGEST} are not implemented"
        )
    return (*source.shape[:first], *sizes, *source.shape[first + 2 :])


def nearest_positions(size: int, out: int, align_corners: bool, half_pixel: bool) -> np.ndarray:
    """min(f((i + h) * s), dimension - 1) in binary32, h = 1/2 with half-pixel centres.

    s = dimension / out and f rounds down; with `align_corners` s = (dimension - 1) / (out - 1) (for out > 1) and f
    rounds to nearest, ties away from zero. Source: docs/facts/litert.md 2.4 (RESIZE_NEAREST_NEIGHBOR), verified by
    running.

    >>> nearest_positions(2, 4, False, False).tolist(), nearest_positions(3, 5, True, False).tolist()
    ([0, 0, 1, 1], [0, 1, 1, 2, 2])
    """
    if not out:
        return np.zeros(0, np.int64)
    f32 = np.float32
    step = f32(size - 1) / f32(out - 1) if align_corners and out > 1 else f32(size) / f32(out)
    position = (np.arange(out).astype(f32) + f32(0.5 if half_pixel else 0.0)) * step
    whole = floats.round_away(position) if align_corners else np.floor(position)
    return np.maximum(np.minimum(whole.astype(np.int64), size - 1), 0)


def source_places(kind: str, factor: np.float32, size: int, out: int) -> np.ndarray:
    """Where in [0, dimension) the output places 0 ... out - 1 lie, each operation rounded to binary32; factor 1: there.

    asymmetric: i / f; half_pixel: (i + 1/2) / f - 1/2; pytorch_half_pixel: the same, 0 for a single place;
    tf_half_pixel_for_nn: (i + 1/2) / f; align_corners: i (dimension - 1) / (out - 1); half_pixel_symmetric: half_pixel,
    in binary64, shifted by dimension / 2 * (1 - out / (f * dimension)).

    >>> source_places("half_pixel", np.float32(2), 2, 4).tolist()
    [-0.25, 0.25, 0.75, 1.25]
    """
    at = np.arange(out).astype(F32)
    if factor == 1:
        return at
    if kind == "asymmetric":
        return at / factor
    if kind == "align_corners":
        return at * F32(size - 1) / F32(out - 1) if out > 1 else np.zeros(out, F32)
    if kind == "tf_half_pixel_for_nn":
        return (at + F32(0.5)) / factor
    if kind == "pytorch_half_pixel" and out <= 1:
        return np.zeros(out, F32)
    if kind == "half_pixel_symmetric":
        length = factor * F32(size)
        shift = F32(size) / F32(2) * (F32(1) - F32(out) / length)
        wide = np.float64(shift) + (at.astype(np.float64) + 0.5) / np.float64(factor) - 0.5
        return np.asarray(wide, F32)
    return (at + F32(0.5)) / factor - F32(0.5)


def _region(call: Call, axis: int) -> tuple[np.float32, np.float32]:
    """Where an axis begins and ends to be read, in lengths of the axis; all of it where nothing says more."""
    rank = call.input(0).rank
    if not call.has(_REGION):
        return F32(0), F32(1)
    region = call.value(_REGION, "region").reshape(-1).astype(F32)
    if region.size % 2 or not np.isfinite(region).all():
        raise call.invalid("BT-RESIZE-REGION", f"the region must be pairs of finite numbers, found {region.tolist()}")
    half = region.size // 2
    ends = [
        _spread(call, region[part].tolist(), _REGION, [rest] * rank)
        for part, rest in ((slice(half), 0.0), (slice(half, None), 1.0))
    ]
    return F32(ends[0][axis]), F32(ends[1][axis])


def _all_places(call: Call, axis: int) -> np.ndarray:
    """Where the output places of an axis lie, also those outside of the tensor."""
    kind, factor = transformation(call), by_factors(call)[1][axis]
    size, out = call.input(0).shape[axis], call.output.shape[axis]
    if kind not in _OF_FACTORS or factor == 1:
        return source_places(kind, factor, size, out)
    (begin, end), length = _region(call, axis), F32(size - 1)
    with np.errstate(all="ignore"):
        if out > 1:
            distances = np.arange(out).astype(F32) * (end - begin) * length / F32(out - 1)
            rule = multiply_add.RULES[call.rules.get("multiply_add", "rounded_twice")]
            found = rule.apply(begin, length, distances)
        else:
            found = np.full(out, F32(0.5 * np.float64(begin + end) * np.float64(length)))
    if np.isnan(found).any():
        raise call.unsupported("BT-RESIZE-REGION", f"axis {axis}: the region {begin} to {end} gives no places")
    return found


def _beyond(call: Call, axis: int, found: np.ndarray) -> np.ndarray:
    """Which places of an axis lie outside of the tensor, where those have a value of their own."""
    return np.asarray((found < 0) | (found > F32(call.input(0).shape[axis] - 1)))


def places(call: Call, axis: int) -> np.ndarray:
    """Where the output places of an axis lie in the input, binary32; those with the value for outside at 0."""
    found = _all_places(call, axis)
    return found if transformation(call) not in _OF_FACTORS else np.where(_beyond(call, axis, found), F32(0), found)


def outside(call: Call) -> dict[str, np.ndarray]:
    """Arrays of the step: ``outside_AXIS``, the output places outside of the tensor, and the value ``outside``."""
    found: dict[str, np.ndarray] = {}
    if transformation(call) not in _OF_FACTORS:
        return found
    for axis in range(call.output.rank):
        positions = np.flatnonzero(_beyond(call, axis, _all_places(call, axis))).astype(np.int64)
        if positions.size:
            found[f"outside_{axis}"] = positions
    if found:
        numpy = call.output.type.numpy
        value = np.float64(F32(float(call.attribute("outside"))))
        if numpy.kind in "iu":
            value = np.trunc(value)
            if not np.iinfo(numpy).min <= value <= np.iinfo(numpy).max:
                raise call.unsupported(
                    "BT-RESIZE-REGION", f"the value outside, {value}, is none of {call.output.dtype}"
                )
        found["outside"] = np.array([value], numpy)
    return found


def fill_outside(step: Step, out: np.ndarray) -> np.ndarray:
    """The result with the value for outside where it belongs, in place."""
    for axis in range(out.ndim if "outside" in step.arrays else 0):
        positions = step.arrays.get(f"outside_{axis}")
        if positions is not None:
            out[(slice(None),) * axis + (positions,)] = step.arrays["outside"][0]
    return out


def _given(call: Call, position: int) -> bool:
    """Whether the factors or sizes are there; an empty tensor stands for none."""
    return call.has(position) and call.input(position).size > 0


def _axes(call: Call) -> tuple[int, ...] | None:
    """The axes that factors or sizes belong to; None: all of them."""
    axes = call.node.attributes.get("axes")
    return axes if isinstance(axes, tuple) else None


def _spread(call: Call, values: Sequence[float], position: int, rest: Sequence[float]) -> list[float]:
    """Values of the axes that are named, `rest` at the others."""
    rank, axes = len(rest), _axes(call)
    named = list(range(rank)) if axes is None else [call.axis(axis, rank) for axis in axes]
    if len(values) != len(named) or len(set(named)) != len(named):
        raise call.invalid("BT-RESIZE-SIZE", f"input {position} holds {len(values)} numbers for axes {named}")
    found = list(rest)
    for axis, value in zip(named, values, strict=True):
        found[axis] = value
    return found


def by_factors(call: Call) -> tuple[Shape, list[np.float32]]:
    """The output's shape and the factor of each axis: dimensions times factors, rounded down, or the sizes."""
    call.expect((2, _REGION + 1))
    transformation(call)
    source = call.input(0)
    call.rank(source, 1, max(1, source.rank))
    if _given(call, 2) == _given(call, 1):
        raise call.invalid("BT-RESIZE-SIZE", "either factors or sizes must be given")
    if _given(call, 2):
        values = [float(F32(v)) for v in call.value(2, "factors").reshape(-1)]
        factors = [F32(v) for v in _spread(call, values, 2, [1.0] * source.rank)]
        if not all(0 < factor < LARGEST for factor in factors):
            raise call.invalid("BT-RESIZE-SIZE", f"factors {values} must be positive and below {LARGEST}")
        shape = [int(factor * F32(dimension)) for factor, dimension in zip(factors, source.shape, strict=True)]
    else:
        sizes = _spread(call, [float(v) for v in call.integers(1, "sizes")], 1, [float(e) for e in source.shape])
        shape = [int(size) for size in sizes]
        if any(
            (dimension == 0) != (size == 0) or size < 0 for dimension, size in zip(source.shape, shape, strict=True)
        ):
            raise call.invalid("BT-RESIZE-SIZE", f"{list(source.shape)} cannot become {shape}")
        pairs = zip(shape, source.shape, strict=True)
        factors = [F32(size) / F32(dimension) if dimension else F32(1) for size, dimension in pairs]
        shape, factors = _proportional(call, shape, factors)
    if max(*source.shape, *shape, 0) > LARGEST:
        raise call.unsupported("BT-RESIZE-EXTENT", f"sizes of {shape} above {LARGEST} are not implemented")
    return bounded(call, shape), factors


def _proportional(call: Call, shape: list[int], factors: list[np.float32]) -> tuple[list[int], list[np.float32]]:
    """One factor for all named axes: the smallest or the largest of them."""
    policy, axes = call.attribute("policy"), _axes(call)
    if policy == "stretch":
        return shape, factors
    source = call.input(0).shape
    named = list(range(len(shape))) if axes is None else [call.axis(axis, len(shape)) for axis in axes]
    factor = (min if policy == "not_larger" else max)(factors[axis] for axis in named)
    for axis in range(len(shape)):
        factors[axis] = factor if axis in named else F32(1)
        shape[axis] = int(nearest.half_away(factors[axis] * F32(source[axis])))
    return shape, factors


def interpolated_axes(call: Call) -> tuple[int, ...] | None:
    """What linear interpolation changes: the last three axes of 3 or 5, or `resized_axes`."""
    factors = by_factors(call)[1]
    rank = len(factors)
    if rank in (3, 5) and all(factor == 1 for factor in factors[:-3]):
        return rank - 3, rank - 2, rank - 1
    return resized_axes(call)


def resized_axes(call: Call) -> tuple[int, int] | None:
    """The two axes that interpolation changes: the last two of 2 or 4, or 1 and 2 of 4; others have factor 1."""
    factors = by_factors(call)[1]
    rank = len(factors)
    if rank in (2, 4) and all(factor == 1 for factor in factors[:-2]):
        return rank - 2, rank - 1
    return (1, 2) if rank == 4 and factors[0] == 1 == factors[3] else None
