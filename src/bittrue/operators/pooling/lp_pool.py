"""lp_pool: the length of every window, (sum of |x|^p)^(1 / p).

With a rule of the slot `average` it is the root of the average of squares. Attributes are those of `pooling`, and `p`;
any number for rules whose sums have an order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import average, plain_range, real_sum
from ..core.base import Call, Lowered, Operator, Step
from .average_reals import lowered, rows
from .pooling import Images, image_scratch, infer, limits, most_taps, pool_windows, step_geometry


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
    """The rule's length; or every operation rounded to binary32, squares added in the order of the taps."""
    images = Images(step, inputs[0])
    out = images.empty(inputs[0].dtype)
    if "real_sum" in step.rules:
        if out.size:
            rule = real_sum.RULES[step.rules["real_sum"]]
            taps, inside = (rows(step, x)[0] for x in (inputs[0], np.ones_like(inputs[0])))
            out = images.of_planes(real_sum.length(rule, taps, step["p"], inside != 0))
        return [images.result(out)]
    count, divide = images.counts("inside"), average.RULES[step.rules["average"]]
    with np.errstate(all="ignore"):
        for image, result in zip(images, out, strict=True):
            if not result.size:
                break
            root = np.sqrt(divide(images.sums(image * image, np.int64), count))
            result[...] = plain_range.clamp(root, step["low"], step["high"])
    return [images.result(out)]


OPERATOR = Operator(
    "lp_pool", ("average", "plain_range", "real_sum"), infer, lower, reference, "length of every window"
)
