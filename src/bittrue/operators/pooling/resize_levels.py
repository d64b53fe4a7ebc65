"""resize_levels: quantized values of images, interpolated linearly to another height and width.

[N, C, H, W], or [N, H, W, C] with `channels_last`. Slot `levels`: absent, results stay as they are; a rule on stored
numbers takes results as they are; any other one gets results of real numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import DATA_TYPES
from ...rules import interpolate, levels
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.elementwise import BLOCK
from ..core.roles import OPERAND_UNARY
from ..quantization.level_storage import limits, pair, scales_of, store
from .resize import LARGEST_EXTENT


def _extents(call: Call) -> tuple[int, int]:
    """The new height and width: attributes, or where they are 0 the floor of f32(dimension) * f32(scale)."""
    source, found = call.input(0), []
    for axis, name in enumerate(("height", "width"), 1 if call.attribute("channels_last") else 2):
        given = int(call.attribute(f"output_{name}"))
        with np.errstate(over="ignore"):
            scaled = np.floor(np.float32(source.shape[axis]) * np.float32(call.attribute(f"scale_{name}")))
        extent = given if given or not 0 <= scaled <= LARGEST_EXTENT else int(scaled)
        if extent < 1 or source.shape[axis] < 1:
            raise call.invalid("BT-RESIZE-SIZE", f"{name} {source.shape[axis]} cannot become {extent}")
        if max(extent, source.shape[axis]) > LARGEST_EXTENT:
            raise call.unsupported("BT-RESIZE-EXTENT", f"{name} {extent}: at most {LARGEST_EXTENT} is implemented")
        found.append(extent)
    return found[0], found[1]


def infer(call: Call) -> list[Shape]:
    """The shape with another height and width."""
    call.expect((1, 5))
    call.rank(call.input(0), 4)
    shape, (height, width) = call.input(0).shape, _extents(call)
    if call.attribute("channels_last"):
        return [(shape[0], height, width, shape[3])]
    return [(*shape[:2], height, width)]


def lower(call: Call) -> Lowered:
    """Two positions and a weight for every output row and column."""
    shape, first = call.input(0).shape, 1 if call.attribute("channels_last") else 2
    modes = [bool(call.attribute(f"{mode}")) for mode in ("align_corners", "half_pixel", "single_first")]
    if modes[0] and (modes[1] or modes[2]):
        raise call.invalid("BT-RESIZE-MODE", "align_corners and half pixels exclude each other")
    rule, arrays = interpolate.RULES[call.rules["interpolate"]], {}
    for axis, side, extent in zip((first, first + 1), "yx", _extents(call), strict=True):
        # A single pixel is the first one with `single_first`: as if there were no others.
        before = 1 if modes[2] and extent == 1 else shape[axis]
        try:
            prepared = rule.prepare(before, extent, modes[0], modes[1] or modes[2])
        except ValueError as error:
            raise call.invalid("BT-RESIZE-RANGE", f"axis {axis}: {error}", "enlarge in several steps") from None
        arrays.update({f"{key}_{side}": value for key, value in prepared.items()})
    parameters = {
        **limits(call),
        **scales_of(call, OPERAND_UNARY),
        "channels_last": bool(call.attribute("channels_last")),
    }
    scratch = 96 * max(BLOCK, call.output.shape[-1] * call.output.shape[-2])
    return Lowered(parameters, arrays, inputs=(0,), scratch=scratch)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Image by image, some output rows at a time; channels before the image count as images."""
    x, arrays, dtype = inputs[0], step.arrays, DATA_TYPES[step["dtype"]].numpy
    rows_x, last = (x, x.shape[3]) if step["channels_last"] else (x.reshape(-1, *x.shape[2:], 1), 1)
    out = np.empty((rows_x.shape[0], arrays["low_y"].size, arrays["low_x"].size, last), dtype)
    rule = levels.RULES[step.rules["levels"]] if "levels" in step.rules else None
    apply, weight_x = interpolate.RULES[step.rules["interpolate"]].apply, arrays["weight_x"][:, None]
    per_block = max(1, BLOCK // max(1, out.shape[2] * last))
    for n in range(out.shape[0] if out.size else 0):
        picture = rows_x[n].astype(np.float32)
        if rule is not None and not rule.stored:
            picture = levels.real(picture, *pair(step, "input"))
        for top in range(0, out.shape[1], per_block):
            rows = slice(top, top + per_block)
            low, high = (picture[arrays[f"{end}_y"][rows]] for end in ("low", "high"))
            corners = tuple(part[:, arrays[f"{end}_x"]] for end in ("low", "high") for part in (low, high))
            y = apply(corners, arrays["weight_y"][rows, None, None], weight_x)
            if rule is not None:
                y = rule.apply(y, *pair(step, "output"))
            out[n, rows] = store(y, step["low"], step["high"], dtype, step.place)
    shape = (*x.shape[:2], *out.shape[1:3]) if not step["channels_last"] else out.shape
    return [out.reshape(shape)]


OPERATOR = Operator(
    "resize_levels",
    ("interpolate", "levels"),
    infer,
    lower,
    reference,
    "images of another size, interpolated linearly between quantized values",
    roles=OPERAND_UNARY,
)
