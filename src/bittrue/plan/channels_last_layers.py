"""How layers over images are done with channels last: what pass `channels_last` makes of each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..operators import Bound, Step, find
from ..operators.core.geometry import SIDES
from ..operators.core.role_quantization import at
from ..operators.core.roles import position_of
from ..operators.layers.integer_layers import adds_exactly, is_plain
from ..records import replace
from .channels_last import Layout, Rewrite, last_axis_of, last_shape, to_first, to_last


def _image_source(step: Step, layout: Layout) -> int | None:
    """The step's first input when it is an image of 8-bit integers with one to three spatial axes."""
    source = step.inputs[0]
    if source is None or not layout.is_image(source) or layout.tensors[source].dtype not in ("s8", "u8"):
        return None
    return source


def _emit(
    step: Step, layout: Layout, changed: Mapping[str, Any], source: int, rest: tuple[int | None, ...] = ()
) -> None:
    """The step with its image turned, reading and writing as it says itself when its channels are last already."""
    if step.parameters.get("channels_last"):
        inputs, outputs = (source, *rest), step.outputs
    else:
        inputs, outputs = (layout.last(source, step), *rest), (layout.produce(step.outputs[0]),)
    layout.emit(replace(step, inputs=inputs, outputs=outputs, **changed))


def _weights(step: Step, layout: Layout, index: int) -> tuple[np.ndarray, int] | None:
    """Constant filters [O, C / groups, taps...] and their zero point; None where zero points leave more than 8 bits."""
    value = layout.value(index)
    if value is None or value.dtype.itemsize != 1:
        return None
    if value.ndim == 3:
        value = value[:, :, None]
    points = step.arrays.get("weight_zero_points")
    if points is None:
        return value, int(step["weight_zero_point"])
    if not adds_exactly(step):
        # What is lost follows from weights as they are stored.
        return None if np.ptp(points) else (value, int(points.flat[0]))
    centered = value.astype(np.int64) - points.reshape(-1, *(1,) * (value.ndim - 1))
    if centered.min(initial=0) < -128 or centered.max(initial=0) > 127:
        return None
    return centered.astype(np.int8), 0


# Integers up to this are binary32 numbers, and so are their sums.
_EXACT = 1 << 24


def _exact_sums(step: Step, layout: Layout) -> tuple[Step, int | None]:
    """The step with an addend of binary32 numbers as a bias, where that is the same: no sum leaves what they hold."""
    addend, bound = step.arrays.get("addend"), step.accumulator
    if addend is None or step.rules["rescale"] != "binary32_add_multiply_even" or bound is None:
        return step, None
    if not adds_exactly(step) or (addend != np.rint(addend)).any():
        return step, None
    worst = bound.magnitude + int(np.abs(addend.astype(np.float64)).max(initial=0))
    if worst > _EXACT:
        return step, None
    arrays = {name: array for name, array in step.arrays.items() if name != "addend"}
    rules = {**step.rules, "rescale": "binary32_multiply_even"}
    bias = layout.constant(f"{layout.tensors[step.outputs[0]].name} (addend)", addend.astype(np.int32), "s32")
    return replace(step, rules=rules, arrays=arrays, accumulator=Bound(worst, False)), bias


def _crops(step: Step) -> bool:
    """Whether negative pads leave something of the image out."""
    return any(step[side] < 0 for sides in SIDES.values() for side in sides if side in step.parameters)


def _dilated(step: Step) -> bool:
    """Whether taps of a pool lie apart."""
    return any(step.parameters.get(f"dilation_{axis}", 1) != 1 for axis in "dhw")


def _has_twin(step: Step, dtype: str) -> bool:
    """Whether a convolution of an image of this type is done with channels last, too: exact sums, and those that lose
    something in pairs of neighbours of u8 images, where taps count before channels.
    """
    return is_plain(step) or (dtype == "u8" and not {"open_factor", "requantize"} & {*step.arrays, *step.rules})


def _conv(step: Step, layout: Layout) -> bool:
    if step["arithmetic"] != "integers":
        return False
    return _rescaled_conv(step, layout) if "store" in step.rules else _conv_sums(step, layout)


def _rescaled_conv(step: Step, layout: Layout) -> bool:
    source, filters = _image_source(step, layout), step.inputs[1]
    bias = step.inputs[2] if len(step.inputs) > 2 else None
    if (
        source is None
        or filters is None
        or not _has_twin(step, layout.tensors[source].dtype)
        or step["late"]
        or _crops(step)
        or (bias is not None and layout.value(bias) is None)
    ):
        return False
    rank = len(layout.shape(source))
    if step["channels_last"] and rank == 3:
        return False
    weights = _weights(step, layout, filters)
    if weights is None or not weights[0].size:
        return False
    value, zero_point = weights
    step, addend = _exact_sums(step, layout)
    bias = bias if addend is None else addend
    groups, channels = step["groups"], value.shape[0]
    alone = groups > 1 and value.shape[1] == 1 and channels == groups
    if alone and not adds_exactly(step):
        return False
    single = alone and rank < 5
    # [1, kh, kw, C] for a filter per channel, [O, taps..., C / groups] otherwise.
    turned = value.transpose((1, 2, 3, 0) if single else to_last(value.ndim))
    name = f"{layout.tensors[filters].name} (channels last)"
    dropped = ("late", "ranged", "dtype", "data_type")
    parameters = {key: number for key, number in step.parameters.items() if key not in dropped}
    parameters |= {"weight_zero_point": zero_point, "channels_last": True}
    parameters |= {"arithmetic": "depthwise" if single else "images", "filter_layout": "ISO" if single else "OSI"}
    arrays = {key: array for key, array in step.arrays.items() if key != "weight_zero_points"}
    changed = {
        "parameters": parameters,
        "arrays": arrays,
        "rules": step.rules,
        "accumulator": step.accumulator,
    }
    _emit(
        step, layout, changed, source, (layout.constant(name, turned, "u8" if turned.dtype == np.uint8 else "s8"), bias)
    )
    return True


def _conv_sums(step: Step, layout: Layout) -> bool:
    source, filters = _image_source(step, layout), step.inputs[1]
    points = step.inputs[6] if len(step.inputs) > 6 else None
    if source is None or filters is None or layout.value(filters) is None or _crops(step):
        return False
    if not _has_twin(step, layout.tensors[source].dtype) or step["channels_last"]:
        return False
    if points is not None and layout.value(points) is None:
        return False
    rank = len(layout.shape(source))
    value = layout.value(filters)
    assert value is not None, "looked at above"
    if rank == 3:
        filters = layout.constant(
            f"{layout.tensors[filters].name} (image)", value[:, :, None], layout.tensors[filters].dtype
        )
    parameters = {**step.parameters, "channels_last": True}
    _emit(step, layout, {"parameters": parameters}, source, (filters, *step.inputs[2:]))
    return True


def _dynamic_quantize_linear(step: Step, layout: Layout) -> bool:
    source, target = step.inputs[0], step.outputs[0]
    if source is None or not layout.only_twin(source) or not layout.is_image(target):
        return False
    twin = layout.last(source, step)
    outputs = (layout.produce(target), *step.outputs[1:])
    parameters = {**step.parameters, "order": to_first(len(layout.shape(source)))}
    layout.emit(replace(step, inputs=(twin,), outputs=outputs, parameters=parameters))
    return True


def _average_pool(step: Step, layout: Layout) -> bool:
    """Averages of 8-bit integers, tap by tap in both layouts."""
    source = _image_source(step, layout)
    if source is None or len(layout.shape(source)) == 5:
        return False
    if step.parameters.get("late") or _crops(step) or step["channels_last"]:
        return False
    whole = "average" in step.rules and step["counted"] == "inside" and not _dilated(step)
    if not whole and not step.rules.keys() & {"affine_average", "window_levels"}:
        return False
    _emit(step, layout, {"parameters": {**step.parameters, "channels_last": True}}, source)
    return True


def _max_pool(step: Step, layout: Layout) -> bool:
    source = step.inputs[0]
    if source is None or not layout.is_image(source) or len(layout.shape(source)) == 5:
        return False
    if "extreme" in step.rules:
        return False
    real = layout.tensors[source].dtype == "f32"
    if layout.tensors[source].dtype not in ("s8", "u8") and not (real and layout.only_twin(source)):
        return False
    if "rows" in step.arrays or _dilated(step) or _crops(step) or len(step.outputs) > 1:
        return False
    _emit(step, layout, {"parameters": {**step.parameters, "channels_last": True}}, source)
    return True


def _reduction(step: Step, layout: Layout) -> bool:
    """Sums and means over axes that stay where they are: one image layout is as good as the other."""
    source, target = step.inputs[0], step.outputs[0]
    if source is None or not layout.only_twin(source) or layout.tensors[source].dtype not in ("s8", "u8"):
        return False
    if step.parameters.get("late"):
        return False
    shape = layout.shape(source)
    axes = tuple(sorted(last_axis_of(axis, len(shape)) for axis in step["axes"]))
    if len(shape) == 5 or axes not in ((1, 2), (2,)) or (axes == (2,) and len(shape) == 4) or "body" in step.parameters:
        return False
    twin = layout.last(source, step)
    kept = len(layout.shape(target)) == len(shape)
    result = last_shape(layout.shape(target)) if kept else layout.shape(target)
    parameters = {**step.parameters, "axes": axes, "shape": result}
    outputs = (layout.produce(target),) if kept else step.outputs
    layout.emit(replace(step, inputs=(twin,), outputs=outputs, parameters=parameters))
    return True


def _pad(step: Step, layout: Layout) -> bool:
    source, target = step.inputs[0], step.outputs[0]
    if source is None or "before" not in step.parameters or not layout.only_twin(source) or not layout.is_image(target):
        return False
    parameters = dict(step.parameters)
    for side in ("before", "after"):
        if side in parameters:
            widths = step[side] if len(step[side]) > 3 else (*step[side][:2], 0, step[side][2])
            parameters[side] = tuple(widths[axis] for axis in to_last(len(widths)))
    if "shape" in parameters:
        parameters["shape"] = last_shape(layout.shape(target))
    inputs = (layout.last(source, step), *step.inputs[1:])
    layout.emit(replace(step, inputs=inputs, outputs=(layout.produce(target),), parameters=parameters))
    return True


def _resample(step: Step, layout: Layout) -> bool:
    source, target = step.inputs[0], step.outputs[0]
    if source is None or not layout.only_twin(source) or len(layout.shape(source)) != 4:
        return False
    named = {
        f"{name}_{to}": f"{name}_{axis}" for to, axis in enumerate(to_last(4)) for name in ("positions", "outside")
    }
    arrays = {to: step.arrays[name] for to, name in {**named, "outside": "outside"}.items() if name in step.arrays}
    parameters = {**step.parameters, "shape": last_shape(layout.shape(target))}
    twin = layout.last(source, step)
    layout.emit(replace(step, inputs=(twin,), outputs=(layout.produce(target),), parameters=parameters, arrays=arrays))
    return True


def _channels(step: Step, layout: Layout) -> bool:
    """What has numbers per channel: it is told where the channels are. Sums of two images have both turned."""
    source, target = step.inputs[0], step.outputs[0]
    if source is None or not layout.only_twin(source) or not layout.is_image(target):
        return False
    if "channels_last" not in step.parameters or step.parameters.get("late"):
        return False
    inputs = list(step.inputs)
    addend = position_of(find(step.operator), "addend")
    for position in (0, addend):
        image = at(inputs, position)
        if position is None or image is None:
            continue
        if len(layout.shape(image)) != len(layout.shape(source)):
            return False
        inputs[position] = layout.last(image, step)
    parameters = {**step.parameters, "channels_last": True}
    layout.emit(replace(step, inputs=tuple(inputs), outputs=(layout.produce(target),), parameters=parameters))
    return True


# By `Operator.layout`.
LAYERS: dict[str, Rewrite] = {
    "filters": Rewrite(_conv, eight_bits=True),
    "averages of windows": Rewrite(_average_pool, eight_bits=True),
    "largest of windows": Rewrite(_max_pool),
    "channels": Rewrite(_channels),
    "order": Rewrite(_dynamic_quantize_linear),
    "axes": Rewrite(_reduction, eight_bits=True),
    "border": Rewrite(_pad),
    "positions": Rewrite(_resample),
}
