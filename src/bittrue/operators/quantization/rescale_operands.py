"""quantize from integers to integers with scales and zero points that are operands: the output's, then the input's.

The input's may be vectors along attribute `axis`. Steps whose operands are all known are those of `quantize` without
operands; the others are prepared while running.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...graph import Attribute
from ...rules import rescale, scale_form
from ..core.base import Call, Lowered, Shape, Step
from ..core.late import Prepared, Values, prepare_late, prepare_now
from ..core.scalar_operands import check_scalars

_OUTPUT, _INPUT = (1, 2), (3, 4)


def asked(call: Call) -> bool:
    """Whether the node has all four parameters and the axis that they belong to."""
    return len(call.inputs) > 3 and "axis" in call.node.attributes


def infer(call: Call) -> list[Shape]:
    """The shape of x."""
    call.expect(5)
    check_scalars(call, _OUTPUT[:1], _OUTPUT[1:])
    source = call.input(0)
    for position in _INPUT:
        given = call.input(position)
        if given.rank > 1 or (given.size != 1 and given.size != source.shape[_axis(call)]):
            raise call.invalid("BT-QUANT-AXIS", f"'{given.name}' of shape {list(given.shape)} does not fit")
    return [source.shape]


def _axis(call: Call) -> int:
    return call.axis(call.attribute("axis"), call.input(0).rank, "axis of the scales")


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    """Multipliers and zero points, one per slice where one of them is."""
    scale, point = (np.asarray(values[position]).reshape(-1) for position in _INPUT)
    if "axis" in known:
        scale, point = np.broadcast_arrays(scale, point)
    output = np.asarray(values[_OUTPUT[0]]).reshape(())
    real = scale_form.form(rules["scale_form"], scale if "axis" in known else scale[0], 1, output)
    arrays = dict(rescale.prepare(rules["rescale"], real))
    more: dict[str, Attribute] = {"output_zero_point": int(np.asarray(values[_OUTPUT[1]]).reshape(()))}
    if "axis" in known:
        arrays["input_zero_points"] = point.astype(np.int64)
    else:
        more["input_zero_point"] = int(point[0])
    return more, arrays


def lower(call: Call) -> Lowered:
    """The whole range of the output's type, and what is prepared of scales and zero points."""
    source, output = call.input(0), call.output
    common: dict[str, Attribute] = {"low": output.type.minimum, "high": output.type.maximum, "dtype": output.dtype}
    if any(call.input(position).size != 1 for position in _INPUT):
        common["axis"] = _axis(call)
    parameters, arrays = prepare_now(call, (*_OUTPUT, *_INPUT), common, _prepare)
    kept = None if parameters["late"] else (0,)
    return Lowered(parameters, arrays, inputs=kept, scratch=32 * source.size if "axis" in common else 0)


def prepared(step: Step, inputs: Values) -> Step:
    """The step with what this run's operands say."""
    return prepare_late(step, inputs, _prepare) if "late" in step.parameters else step
