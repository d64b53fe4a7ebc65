"""softmax and log_softmax: exp(x - max) over its sum along an axis, and the logarithm of that.

Inputs: x, and where scales are operands: scale and zero point of x, then of the result. A row is one axis, or all axes
from one on (`flattened`). The rules of a row decide the arithmetic: `softmax` and `log_softmax` of quantized values by
tables, `affine_softmax` of scales that may be operands, `shifted_softmax` by shifts, `levels` of quantized values that
are kept as real numbers, `real_softmax` of real numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...arithmetic import elementary, fixed_point
from ...errors import RunError
from ...graph import DATA_TYPES, Attribute
from ...records import replace
from ...rules import (
    affine_softmax,
    center,
    levels,
    log_softmax,
    real_softmax,
    rescale,
    scale_form,
    shifted_softmax,
    softmax,
)
from ...rules.store import rescale_and_store
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.elementwise import BLOCK
from ..core.functions import LOG_SOFTMAX, SOFTMAX
from ..core.late import Prepare, Prepared, Values, prepare_late, prepare_now
from ..core.roles import OPERAND_UNARY
from ..core.scalar_operands import check_scalars, pair
from ..core.stopping import check_stop
from ..quantization import level_storage

_PARAMETERS = (1, 2, 3, 4)
Function = Callable[[np.ndarray], np.ndarray]


def infer(call: Call) -> list[Shape]:
    """The input's shape, rank 1 or more."""
    call.expect((1, 5))
    if len(call.inputs) > 1:
        check_scalars(call, (1, 3), (2, 4))
    source = call.input(0)
    if source.rank < 1:
        raise call.invalid("BT-SHAPE-RANK", f"tensor '{source.name}' must have rank 1 or more, found a scalar")
    view_of_rows(call)
    return [source.shape]


def view_of_rows(call: Call) -> tuple[int, int, int]:
    """[outer, elements of a row, inner]: along attribute `axis`, or along all axes from it on where it is `flattened`.

    Where a node names no axis, rows lie along the last one.
    """
    shape, known = call.input(0).shape, call.node.attributes
    axis, flattened = int(call.node.attributes.get("axis", -1)), bool(known.get("flattened", False))  # type: ignore[arg-type]
    # Rows of a flattened tensor may begin behind its last axis: they are its elements.
    if not (flattened and axis == len(shape) and len(call.inputs) == 1):
        axis = call.axis(axis, len(shape))
    end = len(shape) if flattened else axis + 1
    return math.prod(shape[:axis]), math.prod(shape[axis:end]), math.prod(shape[end:])


def _tabled(call: Call, prepare: Callable[[], Mapping[str, np.ndarray]], offset: int) -> Lowered:
    output = call.output
    try:
        arrays = prepare()
    except ValueError as error:
        raise call.invalid("BT-SOFTMAX-SCALE", str(error), "the input's scale does not suit this operator") from None
    parameters = {"offset": offset, "low": output.type.minimum, "high": output.type.maximum, "bits": output.type.bits}
    return Lowered({**parameters, "dtype": output.dtype}, arrays)


def _by_table(call: Call, length: int) -> Lowered:
    """Tables of exponentials. Results begin at the smallest output, or at 0 for 16-bit inputs: the output's own scale
    and zero point are fixed and play no part.
    """
    rule = softmax.RULES[call.rules["softmax"]]
    scale, beta = float(call.input(0).scale), float(call.attribute("beta"))
    if rule.counted:
        return _tabled(call, lambda: rule.prepare(scale, beta, length), 0)
    if rule.scaled:
        lowered = _tabled(call, lambda: rule.prepare(scale, beta), call.output.zero_point if rule.moved else 0)
        more = {"output_scale": np.asarray(call.output.scale)}
        if rule.centered:
            more["input_zero_point"] = np.asarray(call.input(0).zero_point, np.int64)
        return replace(lowered, arrays={**lowered.arrays, **more})
    wide = call.input(0).dtype == "s16"
    if not wide and call.output.dtype == "s16" and length == 0 and 0 not in call.input(0).shape[:-1]:
        raise call.invalid("BT-SOFTMAX-EMPTY", f"rows of shape {list(call.input(0).shape)} have no element to sum")
    lowered = _tabled(call, lambda: rule.prepare(scale, beta), 0 if wide else call.output.type.minimum)
    return replace(lowered, parameters={**lowered.parameters, "low": 0}) if wide else lowered


def _prepare_shifted(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    rule = shifted_softmax.RULES[rules["shifted_softmax"]]
    (scale, point), (output_scale, output_point) = pair(values, 1, 2), pair(values, 3, 4)
    real = scale_form.form(rules["scale_form"], rule.scale, 1, output_scale)
    zero_points = {"input_zero_point": point, "output_zero_point": output_point}
    return {"unit": rule.prepare(scale), **zero_points}, rescale.prepare(rules["rescale"], real)


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    rule = affine_softmax.RULES[rules["affine_softmax"]]
    return {}, rule.prepare(pair(values, 1, 2), pair(values, 3, 4), max(1, known["view"][1]))


def _of_operands(call: Call, view: tuple[int, int, int], prepare: Prepare) -> Lowered:
    output = call.output
    ends: dict[str, Attribute] = {"low": output.type.minimum, "high": output.type.maximum, "dtype": output.dtype}
    known = {**ends, "view": view}
    parameters, arrays = prepare_now(call, _PARAMETERS, known, prepare, OPERAND_UNARY)
    return Lowered(parameters, arrays, inputs=None if parameters["late"] else (0,))


def _with_rows(lowered: Lowered, call: Call, view: tuple[int, int, int]) -> Lowered:
    moved = 2 * 8 * call.input(0).size if view[2] != 1 else 0
    parameters: dict[str, Attribute] = {**lowered.parameters, "view": view}
    return replace(lowered, parameters=parameters, work=call.input(0).size, scratch=96 * max(BLOCK, view[1]) + moved)


def _levels(call: Call) -> Lowered:
    return Lowered({**level_storage.limits(call), **level_storage.scales_of(call, OPERAND_UNARY)}, inputs=(0,))


def lower_softmax(call: Call) -> Lowered:
    """Rows, and what the rules make of scales and zero points."""
    view = view_of_rows(call)
    if "affine_softmax" in call.rules:
        lowered = _of_operands(call, view, _prepare)
    elif "shifted_softmax" in call.rules:
        lowered = _of_operands(call, view, _prepare_shifted)
    elif "levels" in call.rules:
        lowered = _levels(call)
    elif "softmax" in call.rules:
        lowered = _by_table(call, view[1])
    else:
        lowered = Lowered({"beta": float(call.attribute("beta")), "dtype": call.output.dtype})
    return _with_rows(lowered, call, view)


def lower_log_softmax(call: Call) -> Lowered:
    """Tables of scaled differences and exponentials; results count down from the largest output."""
    view = view_of_rows(call)
    if "log_softmax" not in call.rules:
        return _with_rows(Lowered({"dtype": call.output.dtype}), call, view)
    rule = log_softmax.RULES[call.rules["log_softmax"]]
    scale = float(call.input(0).scale)
    if not rule.scaled:
        return _with_rows(_tabled(call, lambda: rule.prepare(scale), call.output.type.maximum), call, view)
    lowered = _tabled(call, lambda: rule.prepare(scale), call.output.zero_point)
    return _with_rows(
        replace(lowered, arrays={**lowered.arrays, "output_scale": np.asarray(call.output.scale)}), call, view
    )


def _in_rows(step: Step, x: np.ndarray, function: Function, whole: bool = False) -> list[np.ndarray]:
    """`function` of some rows at a time, or of all."""
    dtype = DATA_TYPES[step["dtype"]].numpy
    if not x.size:
        return [np.empty(x.shape, dtype)]
    view = np.moveaxis(x.reshape(step["view"]), 1, 2)
    rows = np.ascontiguousarray(view).reshape(-1, step["view"][1])
    out = np.empty(rows.shape, dtype)
    per_block = len(rows) if whole else max(1, BLOCK // rows.shape[1])
    for begin in range(0, len(rows), per_block):
        check_stop()
        try:
            out[begin : begin + per_block] = function(rows[begin : begin + per_block])
        except OverflowError as error:
            raise RunError(
                "BT-SOFTMAX-SUM", str(error), place=step.place, advice="shorten the rows or spread their values"
            ) from None
    return [np.ascontiguousarray(np.moveaxis(out.reshape(view.shape), 2, 1)).reshape(x.shape)]


def _stored(step: Step, apply: Callable[[np.ndarray], np.ndarray]) -> Function:
    """The results of a rule for tables, moved and limited."""
    offset, low, high = step["offset"], step["low"], step["high"]
    return lambda rows: np.clip(fixed_point.wrap_s32(apply(rows.astype(np.int64)) + offset), low, high)


def _shifted(step: Step) -> Function:
    apply = shifted_softmax.RULES[step.rules["shifted_softmax"]].apply
    remove, dtype = center.RULES[step.rules["center"]], DATA_TYPES[step["dtype"]].numpy

    def function(rows: np.ndarray) -> np.ndarray:
        shares = apply(fixed_point.wrap_s32(rows.astype(np.int64) - step["input_zero_point"]), step["unit"])
        return rescale_and_store(remove(shares, np.int64(0)), step.rules, step.arrays, step.parameters, dtype)

    return function


def _of_levels(step: Step) -> Function:
    rule, dtype = levels.RULES[step.rules["levels"]], DATA_TYPES[step["dtype"]].numpy

    def function(rows: np.ndarray) -> np.ndarray:
        real = levels.real(rows.astype(np.float32), *level_storage.pair(step, "input"))
        with np.errstate(all="ignore"):
            largest = real[:, 0].copy()
            for position in range(1, real.shape[1]):
                # As C++ compares: what is no number is kept or passed over.
                largest = np.where(largest < real[:, position], real[:, position], largest)
            entries = elementary.exp(real - largest[:, None])
            total = np.zeros_like(largest)
            for position in range(real.shape[1]):
                total = total + entries[:, position]
            shares = rule.apply(entries / total[:, None], *level_storage.pair(step, "output"))
        return level_storage.store(shares, step["low"], step["high"], dtype, step.place)

    return function


def reference_softmax(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Rows in blocks."""
    x = inputs[0]
    if "affine_softmax" in step.rules:
        now = prepare_late(step, inputs, _prepare)
        apply, low, high = affine_softmax.RULES[step.rules["affine_softmax"]].apply, step["low"], step["high"]
        return _in_rows(step, x, lambda rows: apply(rows.astype(np.int64), now.arrays, low, high))
    if "shifted_softmax" in step.rules:
        return _in_rows(step, x, _shifted(prepare_late(step, inputs, _prepare_shifted)))
    if "levels" in step.rules:
        return _in_rows(step, x, _of_levels(step))
    if "softmax" in step.rules:
        rule = softmax.RULES[step.rules["softmax"]]
        return _in_rows(step, x, _stored(step, lambda rows: rule.apply(rows, step.arrays, step["bits"])))
    real = real_softmax.RULES[step.rules["real_softmax"]]
    return _in_rows(step, x, lambda rows: real.softmax(rows, step["beta"]), real.whole)


def reference_log_softmax(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Rows in blocks."""
    if "log_softmax" in step.rules:
        rule = log_softmax.RULES[step.rules["log_softmax"]]
        return _in_rows(step, inputs[0], _stored(step, lambda rows: rule.apply(rows, step.arrays)))
    real = real_softmax.RULES[step.rules["real_softmax"]]
    return _in_rows(step, inputs[0], real.log_softmax, real.whole)


OPERATORS = (
    Operator(
        "softmax",
        (
            "softmax",
            "affine_softmax",
            "shifted_softmax",
            "center",
            "scale_form",
            "rescale",
            "store",
            "levels",
            "real_softmax",
        ),
        infer,
        lower_softmax,
        reference_softmax,
        "probabilities along an axis",
        roles=OPERAND_UNARY,
        mistaken_for=("log_softmax", "logistic"),
        function=SOFTMAX,
    ),
    Operator(
        "log_softmax",
        ("log_softmax", "real_softmax"),
        infer,
        lower_log_softmax,
        reference_log_softmax,
        "logarithms of probabilities",
        mistaken_for=("softmax",),
        function=LOG_SOFTMAX,
        unread=("multiplier", "exponent"),
    ),
)
