"""resize_nearest and resize_linear: tensors of another size; inputs and attributes are those of `resized_places`.

Each output place has a place in the input, and takes the nearest element there, or what the neighbours along two axes
give: by a rule of the slot `interpolate`, whose positions follow from the sizes, or of `weighted`, with a weight for
each of two positions, along three axes also. Quantized values may be stored as real numbers, with scales as operands
behind the factors; slot `levels` then: absent, results stay as they are; a rule on quantized values takes results as
they are; any other one gets results of real numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...graph import DATA_TYPES, Attribute
from ...rules import interpolate, levels, nearest
from ..core.base import Call, Lowered, Operator, Role, Shape, Step
from ..core.elementwise import BLOCK
from ..core.functions import BILINEAR
from ..core.stopping import check_stop
from ..quantization.level_storage import limits, pair, scales_of, store
from .resized_places import (
    F32,
    by_factors,
    fill_outside,
    first_axis,
    image_shape,
    interpolated_axes,
    modes,
    nearest_positions,
    of_images,
    outside,
    places,
    transformation,
)

_ROLES = (Role("input", 0, 3, 4), Role("output", -1, 5, 6))


def infer_nearest(call: Call) -> list[Shape]:
    """The new sizes."""
    return [image_shape(call, 0) if of_images(call) else by_factors(call)[0]]


def infer_linear(call: Call) -> list[Shape]:
    """The same; two or three axes change."""
    if of_images(call):
        if all(modes(call)):
            raise call.invalid("BT-RESIZE-MODE", "align_corners and half_pixel_centers exclude each other")
        return [image_shape(call, 1)]
    shape, factors = by_factors(call)
    if interpolated_axes(call) is None:
        raise call.invalid(
            "BT-RESIZE-LINEAR",
            f"factors {[float(f) for f in factors]}: only the last two axes of 2 or 4, axes 1 and 2 of 4, or the last "
            "three of 3 or 5 are interpolated",
            "resize in several steps",
        )
    return [shape]


def lower_nearest(call: Call) -> Lowered:
    """The input position of every output position, axis by axis.

    Nothing moves where the shape stays, unless places follow from sizes or the attribute `always` is set.
    """
    source, shape = call.input(0), call.output.shape
    if of_images(call):
        first = first_axis(call)
        found = [
            nearest_positions(size, out, *modes(call)) if axis in (first, first + 1) else np.arange(out)
            for axis, (size, out) in enumerate(zip(source.shape, shape, strict=True))
        ]
    elif shape == source.shape and not call.node.attributes.get("always", False):
        return Lowered({"shape": shape}, operator="reshape", inputs=(0,))
    else:
        found = [_rounded(call, axis) for axis in range(len(shape))]
    arrays = {f"positions_{axis}": np.asarray(positions, np.int64) for axis, positions in enumerate(found)}
    if not of_images(call):
        arrays |= outside(call)
    moved = sum(_moves(positions, size) for positions, size in zip(found, source.shape, strict=True))
    # What is made on the way along one axis after the other.
    between = math.prod(map(max, source.shape, shape)) * source.type.numpy.itemsize
    return Lowered({"shape": shape}, arrays, inputs=(0,), scratch=min(2, max(0, moved - 1)) * between)


def _moves(positions: np.ndarray, size: int) -> bool:
    return positions.size != size or bool((positions != np.arange(size)).any())


def _rounded(call: Call, axis: int) -> np.ndarray:
    """Positions of an axis; without resizing there is nothing to round."""
    factor, size = by_factors(call)[1][axis], call.input(0).shape[axis]
    positions = np.arange(call.output.shape[axis])
    if factor != 1:
        rule = nearest.RULES[call.rules["nearest"]]
        positions = rule(places(call, axis), call.attribute("nearest"), bool(factor < 1))
    return np.clip(positions, 0, max(size - 1, 0))


def reference_nearest(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Picked one axis after the other."""
    out = inputs[0]
    if 0 in step["shape"]:
        return [np.empty(step["shape"], out.dtype)]
    for axis in range(out.ndim):
        positions = step.arrays[f"positions_{axis}"]
        if _moves(positions, out.shape[axis]):
            out = np.take(out, positions, axis=axis)
    return [fill_outside(step, out.copy() if out is inputs[0] else out)]


def lower_linear(call: Call) -> Lowered:
    """Two positions for every row and column (and plane), and one weight or two."""
    shape, source = call.output.shape, call.input(0)
    if of_images(call):
        axis, arrays = first_axis(call), _of_sizes(call)
    else:
        axes = interpolated_axes(call)
        if shape == source.shape or axes is None:
            return Lowered({"shape": shape}, operator="reshape", inputs=(0,))
        axis, arrays = axes[0], _of_factors(call, axes) | outside(call)
    parameters: dict[str, Attribute] = {"shape": shape, "first_axis": axis}
    if "low" in call.node.attributes:
        parameters |= {**limits(call), **scales_of(call, _ROLES)}
    inner = math.prod(shape[axis + 1 :])
    return Lowered(parameters, arrays, inputs=(0,), scratch=128 * max(BLOCK, inner) + 8 * call.output.size)


def _of_sizes(call: Call) -> dict[str, np.ndarray]:
    """Positions and weights that follow from the sizes of the image before and after."""
    rule, arrays, first = interpolate.RULES[call.rules["interpolate"]], {}, first_axis(call)
    for axis, side in zip((first, first + 1), "yx", strict=True):
        size, out = call.input(0).shape[axis], call.output.shape[axis]
        # A single pixel is the first one there: as if there were no others.
        if transformation(call) == "pytorch_half_pixel" and out == 1:
            size = 1
        try:
            prepared = rule.prepare(max(1, size), out, *modes(call))
        except ValueError as error:
            raise call.invalid(
                "BT-RESIZE-RANGE",
                f"axis {axis}: {error}",
                "the step between positions was rounded up too far; enlarge in several steps",
            ) from None
        arrays.update({f"{key}_{side}": value for key, value in prepared.items()})
    return arrays


def _of_factors(call: Call, axes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Positions and weights that follow from the factors."""
    rule, arrays = interpolate.WEIGHTED[call.rules["weighted"]], {}
    for axis, side in zip(axes, "zyx"[-len(axes) :], strict=True):
        size, found = call.input(0).shape[axis], places(call, axis)
        found = np.maximum(F32(0), np.minimum(found, F32(size - 1)) if rule.limited else found)
        low = np.minimum(found.astype(np.int64), size - 1)
        high = np.minimum(low + 1, size - 1)
        arrays[f"low_{side}"], arrays[f"high_{side}"] = low, high
        arrays[f"weight_low_{side}"], arrays[f"weight_high_{side}"] = rule.prepare(found, low, high)
    return arrays


def reference_linear(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Image by image, [rows, columns, channels behind them], some rows at a time."""
    x, shape, first = inputs[0], step["shape"], step["first_axis"]
    out = np.empty(shape, DATA_TYPES[step["dtype"]].numpy if "dtype" in step.parameters else x.dtype)
    if not out.size:
        return [out]
    if "low_z" in step.arrays:
        return [fill_outside(step, _volumes(step, x, out))]
    blend = _weighted if "weighted" in step.rules else _quantized if "dtype" in step.parameters else _interpolated
    inner = math.prod(shape[first + 2 :])
    per_block = max(1, BLOCK // (shape[first + 1] * inner))
    sources = x.reshape(-1, *x.shape[first : first + 2], inner)
    targets = out.reshape(-1, *shape[first : first + 2], inner)
    for source, target in zip(sources, targets, strict=True):
        for top in range(0, shape[first], per_block):
            rows = slice(top, top + per_block)
            parts = [source[step.arrays[f"{end}_y"][rows]] for end in ("low", "high")]
            target[rows] = _stored(blend(step, parts, rows), out.dtype)
    return [fill_outside(step, out)]


def _volumes(step: Step, x: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Plane by plane of every result."""
    first, arrays = step["first_axis"], step.arrays
    volumes = x.reshape(-1, *x.shape[first:], 1)
    for volume, target in zip(volumes, out.reshape(-1, *out.shape[first:], 1), strict=True):
        for plane in range(out.shape[first]):
            check_stop()
            ends = [volume[arrays[f"{end}_z"][plane]] for end in ("low", "high")]
            parts = [part[arrays[f"{end}_y"]] for part in ends for end in ("low", "high")]
            target[plane] = _stored(_weighted(step, parts, slice(None), plane), out.dtype)
    return out


def _interpolated(step: Step, parts: Sequence[np.ndarray], rows: slice) -> np.ndarray:
    """The rule's blend of the upper and lower rows."""
    arrays = step.arrays
    wide = [part.astype(np.float32 if part.dtype == np.float32 else np.int64) for part in parts]
    one, two, three, four = (part[:, arrays[f"{end}_x"]] for end in ("low", "high") for part in wide)
    apply = interpolate.RULES[step.rules["interpolate"]].apply
    return apply((one, two, three, four), arrays["weight_y"][rows, None, None], arrays["weight_x"][:, None])


def _quantized(step: Step, parts: Sequence[np.ndarray], rows: slice) -> np.ndarray:
    """The same of quantized values in binary32, or of the real numbers that they stand for, limited."""
    rule = levels.RULES[step.rules["levels"]] if "levels" in step.rules else None
    values = [part.astype(np.float32) for part in parts]
    if rule is not None and not rule.stored:
        values = [levels.real(part, *pair(step, "input")) for part in values]
    y = _interpolated(step, values, rows)
    if rule is not None:
        y = rule.apply(y, *pair(step, "output"))
    return store(y, step["low"], step["high"], DATA_TYPES[step["dtype"]].numpy, step.place)


def _weighted(step: Step, parts: Sequence[np.ndarray], rows: slice, plane: int | None = None) -> np.ndarray:
    """The rule's blend with a weight for each of the two rows and columns, and planes."""
    arrays = step.arrays
    weights = [arrays[f"weight_{end}_y"][rows, None, None] for end in ("low", "high")]
    weights += [arrays[f"weight_{end}_x"][:, None] for end in ("low", "high")]
    if plane is not None:
        weights += [arrays[f"weight_{end}_z"][plane] for end in ("low", "high")]
    corners = [part[:, arrays[f"{end}_x"]] for part in parts for end in ("low", "high")]
    return interpolate.WEIGHTED[step.rules["weighted"]].apply(corners, weights)


def _stored(found: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """In the type of the result; what rounds to 2^31 becomes the least integer."""
    if dtype == np.int32:
        found = np.where(found >= F32(2**31), F32(-(2**31)), found)
    return found.astype(dtype)


OPERATORS = (
    Operator(
        "resize_nearest",
        ("nearest", "multiply_add"),
        infer_nearest,
        lower_nearest,
        reference_nearest,
        "another size, nearest element",
        moves=True,
        layout="positions",
    ),
    Operator(
        "resize_linear",
        ("interpolate", "weighted", "levels", "multiply_add"),
        infer_linear,
        lower_linear,
        reference_linear,
        "another size, interpolated linearly along two or three axes",
        roles=_ROLES,
        function=BILINEAR,
    ),
)
