"""resize_cubic: the last two axes at another size, each place from the four nearest positions of both axes.

Inputs and attributes are those of `resized_places`; besides, `factor` (the a of the polynomials, -0.75 or -0.5 as a
rule) and `exclude_outside`: positions outside of the image count nothing, and the other weights are divided by their
sum, instead of the pixels of the border standing in. In binary32, products and sums by slot `multiply_add`: first each
row is interpolated, then between the rows, products added in their order. Images whose channels lie last, and do not
shrink, are made by `resize_antialiased`; only these may have 8-bit values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import multiply_add
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.stopping import check_stop
from . import resize_antialiased
from .resized_places import F32, by_factors, fill_outside, outside, places, resized_axes

_BEFORE_CHANNELS = (1, 2)


def infer(call: Call) -> list[Shape]:
    """The new sizes; the last two of two or four axes change, or become larger before channels that lie last."""
    shape, factors = by_factors(call)
    axes = resized_axes(call)
    if axes is None or (axes == _BEFORE_CHANNELS and min(factors) < 1):
        raise call.invalid(
            "BT-RESIZE-LINEAR",
            f"factors {[float(f) for f in factors]}: only the last two axes of 2 or 4 are interpolated, or axes 1 "
            "and 2 of 4 where they do not shrink",
            "resize in several steps",
        )
    return [shape]


def weights(fractions: np.ndarray, factor: float, rule: str) -> np.ndarray:
    """Of the four pixels around places that lie `fractions` behind the second one of them: [4, places], binary32.

    Source: the cubic convolution of R. Keys, as docs/facts/onnxruntime.md 5.10 orders its operations.

    >>> weights(np.float32([0, 0.5]), -0.5, "rounded_twice").T.tolist()
    [[0.0, 1.0, 0.0, 0.0], [-0.0625, 0.5625, 0.5625, -0.0625]]
    """
    a, one, two, three, four, five, eight = (F32(n) for n in (factor, 1, 2, 3, 4, 5, 8))
    near, far = fractions, one - fractions
    add = multiply_add.RULES[rule].apply
    outer = [add(add(add(a, y, -five * a), y, eight * a), y, -four * a) for y in (near + one, two - near)]
    inner = [add(add(a + two, y, -(a + three)) * y, y, one) for y in (near, far)]
    return np.stack([outer[0], inner[0], inner[1], outer[1]])


def lower(call: Call) -> Lowered:
    """Four positions and weights for every row and column, and what sums over rows are divided by."""
    source, shape = call.input(0), call.output.shape
    if resized_axes(call) == _BEFORE_CHANNELS:
        return resize_antialiased.resampled(call, F32(float(call.attribute("factor"))))
    if shape == source.shape:
        return Lowered({"shape": shape}, operator="reshape", inputs=(0,))
    arrays = {}
    for axis, side in ((-2, "y"), (-1, "x")):
        size = source.shape[axis]
        lie = places(call, source.rank + axis)
        first = np.floor(lie)
        positions = first.astype(np.int64) + np.arange(-1, 3)[:, None]
        found = weights(lie - first, float(call.attribute("factor")), call.rules["multiply_add"])
        total = np.ones(shape[axis], F32)
        if call.attribute("exclude_outside"):
            found = np.where((positions >= 0) & (positions < size), found, F32(0))
            total = found[0] + found[1] + found[2] + found[3]
        with np.errstate(all="ignore"):
            arrays[f"weights_{side}"] = found if side == "y" else found / total
        arrays[f"positions_{side}"] = np.clip(positions, 0, max(size - 1, 0))
        arrays["total_y"] = arrays.get("total_y", total)
    arrays |= outside(call)
    return Lowered(
        {"shape": shape},
        arrays,
        inputs=(0,),
        work=32 * call.output.size,
        scratch=16 * max(source.size, call.output.size),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Image by image."""
    out = np.empty(step["shape"], F32)
    arrays, rule = step.arrays, multiply_add.RULES[step.rules["multiply_add"]]
    images = inputs[0].reshape(-1, *inputs[0].shape[-2:])
    for image, target in zip(images, out.reshape(-1, *out.shape[-2:]), strict=True):
        check_stop()
        with np.errstate(all="ignore"):
            rows: np.ndarray = np.zeros((), F32)  # so that sums are not -0
            for at, w in zip(arrays["positions_x"], arrays["weights_x"], strict=True):
                rows = rule.apply(image[:, at], w, rows)
            total: np.ndarray = np.zeros((), F32)
            for at, w in zip(arrays["positions_y"], arrays["weights_y"], strict=True):
                total = total + rows[at] * w[:, None] / arrays["total_y"][:, None]
            target[...] = total
    return [fill_outside(step, out)]


OPERATOR = Operator(
    "resize_cubic",
    ("multiply_add",),
    infer,
    lower,
    reference,
    "another size, interpolated by cubic polynomials along two axes",
)
