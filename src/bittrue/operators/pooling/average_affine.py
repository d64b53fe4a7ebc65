"""Averages of windows of quantized numbers by rules of the slot `affine_average`: a summand for every quantized value.

With constant scales the step reads x alone. Without any, numbers mean themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ...graph import DATA_TYPES
from ...rules import affine_average
from ..core.base import Call, Lowered, Step
from ..core.geometry import spatial_bytes, tap_count
from ..core.late import Prepared, Values, prepare_late, prepare_now
from ..core.scalar_operands import pair
from ..core.spatial import padded, sliding
from .pooling import Images, counted, pool_windows, step_geometry

_PARAMETERS = (1, 2, 3, 4)


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    rule = affine_average.RULES[rules["affine_average"]]
    scales = (pair(values, 1, 2), pair(values, 3, 4)) if len(values) > 1 else ((1.0, 0), (1.0, 0))
    return {}, rule.prepare(*scales, known["low"], known["high"])


def lower(call: Call) -> Lowered:
    """The geometry, and a summand per quantized value."""
    windows, x, output = pool_windows(call), call.input(0), call.output
    channels = x.shape[-1 if call.attribute("channels_last") else 1]
    if not channels:
        raise call.invalid("BT-WINDOW", f"shape {list(x.shape)} has no channels; only a batch may be empty")
    taps = tap_count(windows)
    if len(call.inputs) == 1 and taps * max(-x.type.minimum, x.type.maximum) >= 2**31:
        raise call.unsupported("BT-WINDOW", f"sums over {taps} elements do not fit 32 bits")
    known = {
        **step_geometry(call, windows),
        "counted": counted(call),
        "low": output.type.minimum,
        "high": output.type.maximum,
        "dtype": output.dtype,
    }
    parameters, arrays = prepare_now(call, _PARAMETERS, known, _prepare)
    return Lowered(
        parameters,
        arrays,
        work=output.size * taps,
        scratch=spatial_bytes(windows, channels, 8) + 32 * output.size,
        inputs=None if parameters["late"] else (0,),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sums tap by tap, image by image."""
    step = prepare_late(step, inputs, _prepare)
    images = Images(step, inputs[0])
    rule, values, low = affine_average.RULES[step.rules["affine_average"]], step.arrays["values"], step["low"]
    count, out = images.counts(step["counted"]), images.empty(DATA_TYPES[step["dtype"]].numpy)
    for image, result in zip(images, out, strict=True):
        if not result.size:
            break
        total = tap_by_tap(images, values[image.astype(np.intp) - low])
        result[...] = rule.finish(total, count, step.arrays, low, step["high"])
    return [images.result(out)]


def tap_by_tap(images: Images, image: np.ndarray) -> np.ndarray:
    """Sums of windows, all their taps one after the other; those beside the image add a zero."""
    view = sliding(padded(images.first(image), images.windows, 0), images.windows)
    total = np.zeros(view.shape[:-3], image.dtype)
    with np.errstate(all="ignore"):
        for tap in product(*(range(one.taps) for one in images.windows)):
            place: tuple[Any, ...] = (..., *tap)
            total += view[place]
    return images.back(total)
