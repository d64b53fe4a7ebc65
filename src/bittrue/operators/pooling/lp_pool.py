"""lp_pool: the length of every window, (sum of |x|^p)^(1 / p).

With a rule of the slot `average` it is the root of the average of squares, which a rule of `sum_of_products` adds row
by row of the window, from +0 on; whole eights are those of what lies in the image, and images of several channels have
none. Attributes are those of `pooling`, and `p`; any number for rules whose sums have an order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from ...rules import average, plain_range, real_sum, sum_of_products
from ..core.base import Call, Lowered, Operator, Step
from .average_reals import lowered, rows
from .pooling import Images, image_scratch, infer, limits, met, most_taps, pool_windows, step_geometry


def lower(call: Call) -> Lowered:
    """Geometry, and the power."""
    p, windows = int(call.node.attributes.get("p", 2)), pool_windows(call)  # type: ignore[arg-type]
    ordered = "real_sum" in call.rules and real_sum.RULES[call.rules["real_sum"]].ordered
    if not (p == 2 or ("real_sum" in call.rules and p == 1) or ordered):
        raise call.unsupported("BT-LP-POOL", f"p is {p}, which has no rule")
    if "real_sum" in call.rules:
        return lowered(call, windows, {"p": p})
    return Lowered(
        {**step_geometry(call, windows), **limits(call)},
        work=call.output.size * most_taps(windows),
        scratch=image_scratch(call),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's length; or the root of an average, squares added in the order of the taps."""
    images = Images(step, inputs[0])
    out = images.empty(inputs[0].dtype)
    if "real_sum" in step.rules:
        if out.size:
            rule = real_sum.RULES[step.rules["real_sum"]]
            taps, inside = (rows(step, x)[0] for x in (inputs[0], np.ones_like(inputs[0])))
            out = images.of_planes(real_sum.length(rule, taps, step["p"], inside != 0))
        return [images.result(out)]
    count, divide = images.counts("inside"), average.RULES[step.rules["average"]]
    adding = sum_of_products.RULES[step.rules["sum_of_products"]] if "sum_of_products" in step.rules else None
    with np.errstate(all="ignore"):
        for image, result in zip(images, out, strict=True):
            if not result.size:
                break
            sums = images.sums(image * image, np.int64) if adding is None else _sums_of_squares(images, adding, image)
            result[...] = sums
        # Of all images at once: which pixels lie in fours shows in some quotients.
        if out.size:
            out = plain_range.clamp(np.sqrt(divide(out, count)), step["low"], step["high"])
    return [images.result(out)]


def _sums_of_squares(images: Images, rule: sum_of_products.SumRule, image: np.ndarray) -> np.ndarray:
    """Of all windows of an image."""
    total = np.zeros(images.empty(image.dtype).shape[1:], image.dtype)
    down, rows, across = images.windows
    places = np.arange(across.out)
    # Taps of a row that lie in the image: where they begin, and how many fill whole eights.
    first = np.maximum(0, across.before - places * across.stride)
    inside = np.minimum(across.taps, across.size + across.before - places * across.stride) - first
    eights = inside // 8 * 8 if len(images.first(image)) == 1 else np.zeros_like(inside)
    for depth, line in product(met(down), met(rows)):
        for tap in across.taps_met():
            to, positions = across.met(tap)
            if not to.stop:
                continue
            where, x = images.place(depth[0], line[0], to), image[images.place(depth[1], line[1], positions)]
            whole, rest, room = total[where].copy(), total[where].copy(), np.empty_like(x)
            rule.add(whole, x, x, room)
            (rule.rest or rule.add)(rest, x, x, room)
            begins = images.channels((tap - first[to] < eights[to])[None, None])
            total[where] = np.where(begins, whole, rest)
    return total


OPERATOR = Operator(
    "lp_pool",
    ("average", "plain_range", "real_sum", "sum_of_products"),
    infer,
    lower,
    reference,
    "length of every window",
)
