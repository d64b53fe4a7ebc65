"""Bias scale = input scale * weight scale, in every channel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...graph import Quantization, Tensor
from ..finding import Finding
from ..operands import Place, specified_places, tensor_at
from ..rule import Rule, Subject
from ..specification import SOURCE

# What rounding the three scales to binary32 one by one can make, in units in the last place.
_ROUNDING = 3


def find(subject: Subject) -> Iterator[Finding]:
    """Biases with a channel whose scale is not f32(input scale * weight scale)."""
    for place in specified_places(subject, "bias", ("s8", "u8", "s16")):
        first, weight = (tensor_at(place.graph, place.node, "input", position) for position in (0, 1))
        bias = place.tensor.quantization
        if bias is None or first is None or weight is None or not first.quantization or not weight.quantization:
            continue
        if first.quantization.per_axis:
            continue
        with np.errstate(all="ignore"):
            expected = first.quantization.scales * weight.quantization.scales
        counts = {expected.size, bias.scales.size}
        # Two different numbers of scales are no scales of one layer; BT303 says so.
        if len(counts) == 1 or 1 in counts:
            found = _finding(place, bias, *np.broadcast_arrays(expected, bias.scales))
            if found is not None:
                yield found


def _finding(place: Place, bias: Quantization, expected: np.ndarray, scales: np.ndarray) -> Finding | None:
    wrong = expected != scales
    if not wrong.any():
        return None
    units = np.abs(_position(scales) - _position(expected))
    rounded = bool((units <= _ROUNDING).all()) and bool(np.isfinite(expected).all())
    if rounded and place.scheme != "s8":
        return None
    steps = _output_steps(place, scales.astype(np.float64) - expected)
    ratio = np.divide(scales, expected, out=np.full(scales.shape, np.inf), where=expected > 0, dtype=np.float64)
    with np.errstate(all="ignore"):
        distance = np.where(ratio > 0, np.abs(np.log(ratio)), np.inf)
    worst = int(np.argmax(np.where(wrong, distance, -1)))
    channels = int(wrong.sum())
    many = scales.size > 1
    off = f"{units[worst]} units in the last place off" if rounded else f"{ratio[worst]:.6g} times as large"
    message = (
        f"bias scale {float(scales[worst]):.9g}, expected input scale * weight scale = {float(expected[worst]):.9g} "
        f"({off})"
    )
    if many:
        message += f" in channel {worst}; {channels} of {scales.size} channels are off"
    numbers: dict[str, int | float | str] = {
        "channels": channels,
        "channel": worst,
        "expected": float(expected[worst]),
        "found": float(scales[worst]),
        "ratio": float(ratio[worst]),
        "units_in_the_last_place": int(units[worst]),
    }
    if steps is not None and steps.size:
        largest = float(steps.max())
        message += f"; the bias that was meant differs from the one that is added by up to {largest:.4g} output steps"
        numbers["output_steps"] = largest
    advice = f"quantize the bias again: q = round(real / {float(expected[worst]):.9g})"
    return RULE.finding(
        message,
        graph=place.graph,
        node=place.node,
        tensor=place.tensor,
        severity="warning" if rounded else place.severity,
        place=f"channel {worst}" if many else "",
        expected=f"{float(expected[worst]):.9g}",
        found=f"{float(scales[worst]):.9g}",
        advice="set the scale to the product of the other two in binary32"
        if rounded
        else advice + (" in this channel, and so in the others" if many else ""),
        numbers=numbers,
    )


def _position(scales: np.ndarray) -> np.ndarray:
    """Where nonnegative binary32 numbers stand in the order of all of them."""
    return np.ascontiguousarray(scales, np.float32).view(np.int32).astype(np.int64)


def _output_steps(place: Place, error: np.ndarray) -> np.ndarray | None:
    """|q_bias| * |error of the scale| / output scale per channel; None when something of it is unknown."""
    output: Tensor | None = tensor_at(place.graph, place.node, "output", 0)
    if not place.tensor.is_constant or output is None or output.quantization is None or output.quantization.per_axis:
        return None
    values = np.abs(place.tensor.values().reshape(-1).astype(np.float64))
    if error.size not in (1, values.size):
        return None
    with np.errstate(all="ignore"):
        return np.nan_to_num(values * np.abs(error) / float(output.quantization.scales[0]))


RULE = Rule(
    code="BT301",
    name="bias-scale",
    severity="error",
    what="The scale of a bias is that of the accumulator in every channel: "
    "bias scale[c] = f32(input scale * weight scale[c]).",
    why="Kernels add the bias' integer to the sum of products as it is, in units of input scale * weight scale. With "
    "another scale the bias that is added is not the one that was trained: it is off by the ratio of the two.",
    enforced="LiteRT does not look at it for int8 and int16 convolutions and per-axis FULLY_CONNECTED: ten times the "
    "scale runs without a word. uint8 layers and per-tensor FULLY_CONNECTED are refused when |difference| > 0.02 * "
    "output scale (run). Converters write f32(input scale * weight scale) exactly (run). A difference of at most "
    f"{_ROUNDING} units in the last place, which rounding the scales one by one can make, is a warning for "
    "int8 and fine for uint8 and int16.",
    fix="Quantize the real bias again: q[c] = round(bias[c] / (input scale * weight scale[c])).",
    source=SOURCE,
    find=find,
    formats=("tflite",),
)
