"""resample_nearest and resample_linear: tensors of another size. Inputs: tensor, -, factors, sizes.

Factors are binary32; each output place has a place in the input, by `transformation`, and takes the nearest element
there, or what the neighbours along two axes give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from ...rules import interpolate, nearest
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.elementwise import BLOCK
from ..core.indexing import bounded

F32 = np.float32
_LARGEST = 1 << 20
TRANSFORMATIONS = (
    "asymmetric",
    "half_pixel",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "align_corners",
    "half_pixel_symmetric",
)


def source_places(kind: str, factor: np.float32, extent: int, out: int) -> np.ndarray:
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
        return at * F32(extent - 1) / F32(out - 1) if out > 1 else np.zeros(out, F32)
    if kind == "tf_half_pixel_for_nn":
        return (at + F32(0.5)) / factor
    if kind == "pytorch_half_pixel" and out <= 1:
        return np.zeros(out, F32)
    if kind == "half_pixel_symmetric":
        length = factor * F32(extent)
        shift = F32(extent) / F32(2) * (F32(1) - F32(out) / length)
        wide = np.float64(shift) + (at.astype(np.float64) + 0.5) / np.float64(factor) - 0.5
        return np.asarray(wide, F32)
    return (at + F32(0.5)) / factor - F32(0.5)


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


def _geometry(call: Call) -> tuple[Shape, list[np.float32]]:
    """The output's shape and the factor of each axis."""
    call.expect((3, 4))
    source = call.input(0)
    call.rank(source, 1, max(1, source.rank))
    if _given(call, 2) == _given(call, 3):
        raise call.invalid("BT-RESIZE-SIZE", "either factors or sizes must be given")
    if _given(call, 2):
        values = [float(F32(v)) for v in call.value(2, "factors").reshape(-1)]
        factors = [F32(v) for v in _spread(call, values, 2, [1.0] * source.rank)]
        if not all(0 < factor < _LARGEST for factor in factors):
            raise call.invalid("BT-RESIZE-SIZE", f"factors {values} must be positive and below {_LARGEST}")
        shape = [int(factor * F32(extent)) for factor, extent in zip(factors, source.shape, strict=True)]
    else:
        sizes = _spread(call, [float(v) for v in call.integers(3, "sizes")], 3, [float(e) for e in source.shape])
        shape = [int(size) for size in sizes]
        if any((extent == 0) != (size == 0) or size < 0 for extent, size in zip(source.shape, shape, strict=True)):
            raise call.invalid("BT-RESIZE-SIZE", f"{list(source.shape)} cannot become {shape}")
        pairs = zip(shape, source.shape, strict=True)
        factors = [F32(size) / F32(extent) if extent else F32(1) for size, extent in pairs]
        shape, factors = _proportional(call, shape, factors)
    if max(*source.shape, *shape, 0) > _LARGEST:
        raise call.unsupported("BT-RESIZE-EXTENT", f"sizes of {shape} above {_LARGEST} are not implemented")
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


def infer(call: Call) -> list[Shape]:
    """The dimensions times the factors, rounded down; or the sizes."""
    if call.attribute("transformation") not in TRANSFORMATIONS:
        raise call.unsupported("BT-RESIZE-MODE", f"transformation '{call.attribute('transformation')}' is not made")
    return [_geometry(call)[0]]


def resized_axes(call: Call) -> tuple[int, int] | None:
    """The two axes that linear interpolation changes: the last two of 2 or 4, or 1 and 2 of 4; others have factor 1."""
    factors = _geometry(call)[1]
    rank = len(factors)
    if rank in (2, 4) and all(factor == 1 for factor in factors[:-2]):
        return rank - 2, rank - 1
    return (1, 2) if rank == 4 and factors[0] == 1 == factors[3] else None


def infer_linear(call: Call) -> list[Shape]:
    """The same; two axes change."""
    shapes = infer(call)
    if resized_axes(call) is None:
        raise call.unsupported(
            "BT-RESIZE-LINEAR",
            f"factors {[float(f) for f in _geometry(call)[1]]}: only the last two axes of 2 or 4, or axes 1 and 2 "
            "of 4, are interpolated",
            "resize in several steps",
        )
    return shapes


def lower_nearest(call: Call) -> Lowered:
    """The input position of every output position, axis by axis.

    Nothing moves where the shape stays, unless the attribute `always` is set.
    """
    shape, factors = _geometry(call)
    source = call.input(0)
    if shape == source.shape and not call.node.attributes.get("always", False):
        return Lowered({"shape": shape}, operator="reshape", inputs=(0,))
    rule = nearest.RULES[call.rules["nearest"]]
    arrays: dict[str, np.ndarray] = {}
    for axis, (extent, out) in enumerate(zip(source.shape, shape, strict=True)):
        places = source_places(call.attribute("transformation"), factors[axis], extent, out)
        if factors[axis] == 1:
            # Without resizing there is nothing to round.
            positions = np.arange(out)
        else:
            positions = rule(places, call.attribute("nearest"), bool(factors[axis] < 1))
        arrays[f"positions_{axis}"] = np.clip(positions, 0, max(extent - 1, 0)).astype(np.int64)
    item = source.type.numpy.itemsize
    return Lowered({"shape": shape}, arrays, inputs=(0,), scratch=2 * (call.output.size + source.size) * item)


def reference_nearest(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Picked one axis after the other."""
    out = inputs[0]
    if 0 in step["shape"]:
        return [np.empty(step["shape"], out.dtype)]
    for axis in range(out.ndim):
        out = np.take(out, step.arrays[f"positions_{axis}"], axis=axis)
    return [np.ascontiguousarray(out)]


def lower_linear(call: Call) -> Lowered:
    """Two positions and two weights for every row and column."""
    shape, factors = _geometry(call)
    source, axes = call.input(0).shape, resized_axes(call)
    if shape == source or axes is None:
        return Lowered({"shape": shape}, operator="reshape", inputs=(0,))
    rule = interpolate.WEIGHTED[call.rules["weighted"]]
    arrays: dict[str, np.ndarray] = {}
    for axis, side in zip(axes, "yx", strict=True):
        extent = source[axis]
        places = source_places(call.attribute("transformation"), factors[axis], extent, shape[axis])
        places = np.maximum(F32(0), np.minimum(places, F32(extent - 1)))
        low = np.minimum(places.astype(np.int64), extent - 1)
        high = np.minimum(low + 1, extent - 1)
        arrays[f"low_{side}"], arrays[f"high_{side}"] = low, high
        arrays[f"weight_low_{side}"], arrays[f"weight_high_{side}"] = rule.prepare(places, low, high)
    parameters: dict[str, Attribute] = {"shape": shape, "first_axis": axes[0]}
    inner = math.prod(shape[axes[0] + 1 :])
    return Lowered(parameters, arrays, inputs=(0,), scratch=128 * max(BLOCK, inner) + 8 * call.output.size)


def reference_linear(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Image by image, [rows, columns, channels behind them], some rows at a time."""
    x, shape, arrays, first = inputs[0], step["shape"], step.arrays, step["first_axis"]
    out = np.empty(shape, x.dtype)
    if not out.size:
        return [out]
    apply = interpolate.WEIGHTED[step.rules["weighted"]].apply
    inner = math.prod(shape[first + 2 :])
    weight_x = [arrays[f"weight_{end}_x"][:, None] for end in ("low", "high")]
    per_block = max(1, BLOCK // (shape[first + 1] * inner))
    sources = x.reshape(-1, *x.shape[first : first + 2], inner)
    targets = out.reshape(-1, *shape[first : first + 2], inner)
    for source, target in zip(sources, targets, strict=True):
        for top in range(0, shape[first], per_block):
            rows = slice(top, top + per_block)
            weights = [arrays[f"weight_{end}_y"][rows, None, None] for end in ("low", "high")] + weight_x
            parts = [source[arrays[f"{end}_y"][rows]] for end in ("low", "high")]
            corners = [part[:, arrays[f"{end}_x"]] for part in parts for end in ("low", "high")]
            target[rows] = apply(corners, weights).astype(x.dtype)
    return [out]


OPERATORS = (
    Operator(
        "resample_nearest",
        ("nearest",),
        infer,
        lower_nearest,
        reference_nearest,
        "another size, nearest element",
        moves=True,
        layout="positions",
    ),
    Operator(
        "resample_linear", ("weighted",), infer_linear, lower_linear, reference_linear, "another size, interpolated"
    ),
)
