"""mean and sum: exact sums along axes, in binary32 in row-major order; integers are then rescaled and stored.

Rules of the slot `real_sum` add up in orders of their own; for them, a sum may be one of magnitudes, squares or powers,
and its root or logarithm (attributes `before` and `after`). Scales of means may be operands: x, axes, x_scale,
x_zero_point, y_scale, y_zero_point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...records import replace
from ...rules import accumulate, lanes, mean, order, read_as, rescale, row_sums, scale_form, shift_count, store
from ..core.accumulator import finish_accumulator, multiplier_arrays, proven_bound, signed_span
from ..core.base import Bound, Call, Lowered, Operator, Role, Shape, Step
from ..core.functions import MEAN, SUM
from ..core.scalar_operands import check_scalars
from . import affine_mean, real_reduce
from .reduce import in_order, infer, neighbours, reduced_axes, row_major, starts_with_first
from .reduce import lower as lower_axes

# Where scales and zero points that are operands stand: those of the input, then those of the output.
_SCALES = 2


def infer_mean(call: Call) -> list[Shape]:
    """As sums; scales may be operands."""
    if len(call.inputs) <= _SCALES:
        return infer(call)
    call.expect((5, 6))
    check_scalars(call, (_SCALES, _SCALES + 2), (_SCALES + 1, _SCALES + 3))
    return infer(replace(call, inputs=call.inputs[:_SCALES]))


def _count(call: Call) -> int:
    return math.prod(call.input(0).shape[axis] for axis in reduced_axes(call))


def _quantized(call: Call, count: int) -> tuple[dict[str, int], Bound]:
    source, output = call.input(0), call.output
    parameters = {
        "total_zero_point": source.zero_point * count,
        "output_zero_point": output.zero_point,
        "low": output.type.minimum,
        "high": output.type.maximum,
    }
    if "lanes" in call.rules:
        # Channels are the runs.
        parameters["body"] = lanes.RULES[call.rules["lanes"]].body(output.shape[-1])
    return parameters, proven_bound(call, count, signed_span(source, source.zero_point), None)


def _lowered(call: Call, parameters: dict[str, int], arrays: dict[str, np.ndarray], bound: Bound | None) -> Lowered:
    axes = lower_axes(call)
    exponent = arrays.get("exponent", np.asarray(0))
    if int(exponent) > 30 and "shift_count" in call.rules:
        counted = shift_count.RULES[call.rules["shift_count"]](exponent)
        arrays = {**arrays, "exponent": counted, "undefined_shift": arrays.get("undefined_shift", exponent)}
    elif int(exponent) > 30:
        raise call.invalid(
            "BT-MULTIPLIER",
            f"input scale {float(call.input(0).scale)!r} over output scale {float(call.output.scale)!r} needs a left "
            "shift by more than 30, which 32-bit kernels do not define",
        )
    return Lowered(
        parameters={**axes.parameters, **parameters},
        arrays=arrays,
        accumulator=bound,
        work=axes.work,
        scratch=axes.scratch + 32 * call.output.size,
    )


def lower_mean(call: Call) -> Lowered:
    """The count as part of the multiplier (quantized types) or on its own, and the bound of the sum."""
    if "real_sum" in call.rules:
        return real_reduce.lower(call, "mean")
    if len(call.inputs) > _SCALES:
        return affine_mean.lower(call, reduced_axes(replace(call, inputs=call.inputs[:_SCALES])), _SCALES)
    count = _count(call)
    rule = mean.RULES[call.rules["mean"]]
    if "accumulate" not in call.rules:
        return _lowered(call, {}, rule.prepare(1.0, max(1, count)), None)
    return _lowered_by(call, rule, count, max(1, count))


def _lowered_by(call: Call, rule: mean.MeanRule, count: int, divisor: int) -> Lowered:
    """A sum of `count` integers over `divisor`, under a rule of the slot `mean`."""
    parameters, bound = _quantized(call, count)
    source = call.input(0)
    if "rescale" in call.rules:
        # The quotient of quantized values is a quantized value, which is then requantized.
        arrays = {**rule.prepare(1.0, divisor), **multiplier_arrays(call, source.scale, 1.0)}
        plain = {**parameters, "total_zero_point": 0, "input_zero_point": source.zero_point}
        return _lowered(call, plain, arrays, proven_bound(call, count, signed_span(source, 0), None))
    if rule.prepare_scales is not None:
        try:
            arrays = rule.prepare_scales(
                float(source.scale),
                float(call.output.scale),
                count,
                source.zero_point,
                call.output.zero_point,
            )
        except ValueError as error:
            raise call.invalid("BT-MULTIPLIER", f"the scales give no usable multiplier: {error}") from None
        plain = {**parameters, "total_zero_point": 0, "output_zero_point": 0}
        return _lowered(call, plain, arrays, proven_bound(call, count, signed_span(source, 0), None))
    real = float(scale_form.form(call.rules["scale_form"], source.scale, 1.0, call.output.scale))
    if rule.prepare_affine is None:
        return _lowered(call, parameters, rule.prepare(real, divisor), bound)
    arrays = rule.prepare_affine(real, divisor, source.zero_point * count // divisor, call.output.zero_point)
    plain = {**parameters, "total_zero_point": 0, "output_zero_point": 0}
    return _lowered(call, plain, arrays, proven_bound(call, count, signed_span(source, 0), None))


def lower_sum(call: Call) -> Lowered:
    """The multiplier of the sum and its bound; nothing for types that are not quantized."""
    kind = real_reduce.function_of_sum(call)
    if "real_sum" in call.rules:
        return real_reduce.lower(call, kind)
    if kind != "sum":
        raise call.unsupported("BT-SUM-FUNCTION", f"'{kind}' of {call.input(0).type.title} has no rule")
    if "accumulate" not in call.rules:
        return _lowered(call, {}, {}, None)
    if "mean" in call.rules:
        return _lowered_by(call, mean.RULES[call.rules["mean"]], _count(call), 1)
    parameters, bound = _quantized(call, _count(call))
    if "center" in call.rules:
        # Off the sum, once, and not off every summand.
        source = call.input(0)
        parameters["total_zero_point"] = source.zero_point
        magnitude = _count(call) * signed_span(source, 0) + abs(source.zero_point)
        bound = Bound(magnitude, magnitude > accumulate.RULES[call.rules["accumulate"]].limit)
    if "read_as" in call.rules:
        parameters.update(low=0, high=255)
        bound = proven_bound(call, _count(call), 255 + abs(call.input(0).zero_point), None)
    return _lowered(call, parameters, multiplier_arrays(call, call.input(0).scale, 1.0), bound)


def _total(step: Step, x: np.ndarray) -> np.ndarray:
    """Exact 64-bit sums minus the zero points; the accumulator's width is applied."""
    if "row_sums" in step.rules:
        add = row_sums.RULES[step.rules["row_sums"]]
        parts = add(row_major(x, step["axes"]).reshape(-1, neighbours(x.shape, step["axes"])))
        total = parts.reshape(math.prod(step["shape"]), -1).sum(axis=1).reshape(step["shape"])
    else:
        total = np.add.reduce(x, axis=step["axes"], dtype=np.int64).reshape(step["shape"])
    if "accumulate" not in step.rules:
        return total
    return finish_accumulator(step.rules["accumulate"], step.accumulator, total - step["total_zero_point"])


def _store(step: Step, rescaled: np.ndarray, dtype: np.dtype) -> np.ndarray:
    finish = store.RULES[step.rules["store"]]
    return finish(rescaled, step["output_zero_point"], step["low"], step["high"]).astype(dtype)


def reference_mean(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sum, divide, store. Without elements: NaN for binary32, 0 for integers, whatever the zero point."""
    if "real_sum" in step.rules:
        return real_reduce.reference(step, inputs)
    if step.parameters.get("late"):
        step = affine_mean.settled(step, inputs)
    x = inputs[0]
    if not x.size:
        return [np.full(step["shape"], np.nan if x.dtype == np.float32 else 0, x.dtype)]
    apply = mean.RULES[step.rules["mean"]].apply
    grouped = order.RULES[step.rules["order"]] if "order" in step.rules else None
    if grouped is not None and grouped.scaled_sums is not None:
        factor = np.float32(step.arrays["factor"])
        return [grouped.scaled_sums(x, step["axes"], factor).reshape(step["shape"])]
    if grouped is not None and grouped.sums is not None:
        return [apply(grouped.sums(row_major(x, step["axes"])), step.arrays).reshape(step["shape"])]
    if x.dtype == np.float32:
        # Unless the row says otherwise, 0 is added, so that no negative zero comes out.
        total = in_order(np.add, x, step["axes"], 0.0, starts_with_first(step, x))
        if "start" not in step.rules:
            total = total + np.float32(0)
        return [apply(total, step.arrays).reshape(step["shape"])]
    total = _total(step, x)
    result = apply(total, step.arrays)
    if "rescale" in step.rules:
        result = rescale.apply(step.rules["rescale"], result - step["input_zero_point"], step.arrays)
    if "mean_tail" in step.rules:
        tail, body = mean.RULES[step.rules["mean_tail"]].apply, step["body"]
        result = np.concatenate([result[..., :body], tail(total[..., body:], step.arrays)], axis=-1)
    return [_store(step, result, x.dtype) if "store" in step.rules else np.asarray(result).astype(x.dtype)]


def reference_sum(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sum, rescale, store; other integers wrap to their own width. Without elements: 0, whatever the zero point."""
    if "real_sum" in step.rules:
        return real_reduce.reference(step, inputs)
    x = inputs[0]
    if "order" in step.rules and x.size:
        scaled_sums = order.RULES[step.rules["order"]].scaled_sums
        assert scaled_sums is not None, "an order of sums along axes"
        return [scaled_sums(x, step["axes"], np.float32(1)).reshape(step["shape"])]
    if x.dtype == np.float32:
        return [in_order(np.add, x, step["axes"], 0.0, starts_with_first(step, x)).reshape(step["shape"])]
    if not x.size:
        return [np.zeros(step["shape"], x.dtype)]
    if "read_as" in step.rules:
        x = read_as.RULES[step.rules["read_as"]](x)
    total = _total(step, x)
    if "mean" in step.rules:
        return [_store(step, mean.RULES[step.rules["mean"]].apply(total, step.arrays), x.dtype)]
    if "rescale" not in step.rules:
        return [np.asarray(total).astype(x.dtype)]
    return [_store(step, rescale.apply(step.rules["rescale"], total, step.arrays), x.dtype).view(inputs[0].dtype)]


OPERATORS = (
    Operator(
        "mean",
        (
            "accumulate",
            "scale_form",
            "mean",
            "mean_tail",
            "lanes",
            "order",
            "real_sum",
            "rescale",
            "row_sums",
            "shift_count",
            "start",
            "store",
        ),
        infer_mean,
        lower_mean,
        reference_mean,
        "average along axes",
        roles=(Role("input", 0, _SCALES, _SCALES + 1), Role("output", -1, _SCALES + 2, _SCALES + 3)),
        mistaken_for=("sum", "reduce_max", "reduce_min"),
        function=MEAN,
        reduces=True,
        layout="axes",
    ),
    Operator(
        "sum",
        (
            "accumulate",
            "center",
            "scale_form",
            "mean",
            "order",
            "read_as",
            "real_sum",
            "rescale",
            "row_sums",
            "shift_count",
            "start",
            "store",
        ),
        infer,
        lower_sum,
        reference_sum,
        "sum along axes, of magnitudes, squares or powers, and its root or logarithm",
        mistaken_for=("mean", "reduce_max", "reduce_min"),
        function=SUM,
        reduces=True,
        layout="axes",
    ),
)
