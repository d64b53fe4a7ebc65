"""softmax and log_softmax: exp(x - max) over its sum along the last axis, and the logarithm of that."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..arithmetic import fixed_point
from ..errors import RunError
from ..rules import log_softmax, real_softmax, softmax
from .base import Call, Lowered, Operator, Shape, Step
from .elementwise import BLOCK


def infer(call: Call) -> list[Shape]:
    """The input's shape, rank 1 or more."""
    call.expect(1)
    source = call.input(0)
    if source.rank < 1:
        raise call.invalid("BT-SHAPE-RANK", f"tensor '{source.name}' must have rank 1 or more, found a scalar")
    return [source.shape]


def row_length(call: Call) -> int:
    """Elements of a row: the last axis, or all axes from attribute `first_axis` on."""
    source = call.input(0)
    first = call.attribute("first_axis") if "first_axis" in call.node.attributes else -1
    # The rows of a vector whose rows begin behind its first axis are its elements.
    first = source.rank if first == source.rank else call.axis(int(first), source.rank, "first axis of a row")
    return math.prod(source.shape[first:])


def _lowered(call: Call, prepare: Callable[[], dict[str, np.ndarray]], offset: int) -> Lowered:
    source, output = call.input(0), call.output
    try:
        arrays = prepare()
    except ValueError as error:
        raise call.invalid("BT-SOFTMAX-SCALE", str(error), "the input's scale does not suit this operator") from None
    return Lowered(
        parameters={
            "offset": offset,
            "low": output.type.minimum,
            "high": output.type.maximum,
            "bits": output.type.bits,
            "output_dtype": output.type.numpy.name,
            **({"row": row_length(call)} if "first_axis" in call.node.attributes else {}),
        },
        arrays=arrays,
        work=source.size,
        scratch=96 * max(BLOCK, source.shape[-1]),
    )


def lower_softmax(call: Call) -> Lowered:
    """Tables of exponentials. Results begin at the smallest output, or at 0 for 16-bit inputs: the output's own scale
    and zero point are fixed and play no part.
    """
    if not call.output.type.is_integer:
        return Lowered(
            parameters={"beta": float(call.attribute("beta"))}, scratch=24 * max(BLOCK, call.input(0).shape[-1])
        )
    rule = softmax.RULES[call.rules["softmax"]]
    scale, beta = float(call.input(0).scale), float(call.attribute("beta"))
    if rule.counted:
        return _lowered(call, lambda: rule.prepare(scale, beta, row_length(call)), 0)
    if rule.scaled:
        lowered = _lowered(call, lambda: rule.prepare(scale, beta), call.output.zero_point if rule.moved else 0)
        more = {"output_scale": np.asarray(call.output.scale)}
        if rule.centered:
            more["input_zero_point"] = np.asarray(call.input(0).zero_point, np.int64)
        return replace(lowered, arrays={**lowered.arrays, **more})
    wide = call.input(0).dtype == "s16"
    if not wide and call.output.dtype == "s16" and call.input(0).shape[-1] == 0 and 0 not in call.input(0).shape[:-1]:
        raise call.invalid("BT-SOFTMAX-EMPTY", f"rows of shape {list(call.input(0).shape)} have no element to sum")
    lowered = _lowered(call, lambda: rule.prepare(scale, beta), 0 if wide else call.output.type.minimum)
    return replace(lowered, parameters={**lowered.parameters, "low": 0}) if wide else lowered


def lower_log_softmax(call: Call) -> Lowered:
    """Tables of scaled differences and exponentials; results count down from the largest output."""
    if not call.output.type.is_integer:
        return Lowered(scratch=24 * max(BLOCK, call.input(0).shape[-1]))
    rule = log_softmax.RULES[call.rules["log_softmax"]]
    scale = float(call.input(0).scale)
    if rule.scaled:
        lowered = _lowered(call, lambda: rule.prepare(scale), call.output.zero_point)
        return replace(lowered, arrays={**lowered.arrays, "output_scale": np.asarray(call.output.scale)})
    return _lowered(call, lambda: rule.prepare(scale), call.output.type.maximum)


def _real_rows(x: np.ndarray, rule: Callable[[np.ndarray], np.ndarray]) -> list[np.ndarray]:
    out = np.empty_like(x)
    if out.size:
        rows, results = x.reshape(-1, x.shape[-1]), out.reshape(-1, x.shape[-1])
        per_block = max(1, BLOCK // rows.shape[1])
        for begin in range(0, rows.shape[0], per_block):
            results[begin : begin + per_block] = rule(rows[begin : begin + per_block])
    return [out]


def _row_by_row(step: Step, x: np.ndarray, rule: Callable[[np.ndarray], np.ndarray]) -> list[np.ndarray]:
    out = np.empty(x.shape, step["output_dtype"])
    if not out.size:
        return [out]
    row = step["row"] if "row" in step.parameters else x.shape[-1]
    rows, results = x.reshape(-1, row), out.reshape(-1, row)
    per_block = max(1, BLOCK // rows.shape[1])
    for begin in range(0, rows.shape[0], per_block):
        try:
            values = rule(rows[begin : begin + per_block].astype(np.int64))
        except OverflowError as error:
            raise RunError(
                "BT-SOFTMAX-SUM", str(error), place=step.place, advice="shorten the rows or spread their values"
            ) from None
        values = fixed_point.wrap_s32(values + step["offset"])
        results[begin : begin + per_block] = np.clip(values, step["low"], step["high"])
    return [out]


def reference_softmax(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Rows in blocks."""
    if not step.arrays:
        rule = real_softmax.RULES[step.rules["real_softmax"]]
        return _real_rows(inputs[0], lambda rows: rule.softmax(rows, step["beta"]))
    apply = softmax.RULES[step.rules["softmax"]].apply
    return _row_by_row(step, inputs[0], lambda rows: apply(rows, step.arrays, step["bits"]))


def reference_log_softmax(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Rows in blocks."""
    if not step.arrays:
        return _real_rows(inputs[0], real_softmax.RULES[step.rules["real_softmax"]].log_softmax)
    apply = log_softmax.RULES[step.rules["log_softmax"]].apply
    return _row_by_row(step, inputs[0], lambda rows: apply(rows, step.arrays))


OPERATORS = (
    Operator(
        "softmax",
        ("softmax", "real_softmax"),
        infer,
        lower_softmax,
        reference_softmax,
        "probabilities along the last axis",
        mistaken_for=("log_softmax", "logistic"),
    ),
    Operator(
        "log_softmax",
        ("log_softmax", "real_softmax"),
        infer,
        lower_log_softmax,
        reference_log_softmax,
        "logarithms of probabilities",
        mistaken_for=("softmax",),
    ),
)
