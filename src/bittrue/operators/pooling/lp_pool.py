"""lp_pool: the length of every window, (sum of |x|^p)^(1 / p).

With a rule of the slot `average` it is the root of the average of squares. Attributes are those of `pooling`, and `p`,
1 or 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import average, plain_range, real_sum
from ..core.base import Call, Lowered, Operator, Step
from .average_reals import lowered, rows
from .pooling import Images, image_scratch, infer, limits, most_taps, pool_windows, step_geometry


def lower(call: Call) -> Lowered:
    """Geometry; only absolute and Euclidean lengths."""
    p, windows = int(call.node.attributes.get("p", 2)), pool_windows(call)  # type: ignore[arg-type]
    if p not in ((2,) if "average" in call.rules else (1, 2)):
        raise call.unsupported("BT-LP-POOL", f"p is {p}, 1 and 2 are possible")
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
            rule = real_sum.RULES[step.rules["real_sum"]].reductions[f"lp_{step['p']}"]
            out = images.of_planes(rule(rows(step, inputs[0])[0], None, real_sum.Way()))
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
