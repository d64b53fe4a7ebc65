"""svdf: a layer of low rank along features and time. Every filter remembers its last `memory` values.

    a = features W^T                                     [batch, filters], W [filters, features]
    state = state moved one place to the past, a at its end        [batch, filters, memory]
    y = sum of `rank` neighbouring filters of (sum over memory of state * T) + bias           T [filters, memory]

With 8-bit integers a = clamp16(rescale(sum (x - z_x) w)) and y = clamp8(rescale(y) + z_y); the fused relu is the clamp.
With 8-bit weights and real numbers, features are quantized at run time, and T is T's integer times its scale.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arithmetic import dots
from ...arithmetic.matmul import exact_matmul
from ...graph import Attribute
from ...rules import accumulate, dot, rescale, row_product, scale_form, store
from ..core.accumulator import prepare_rescale, signed_span, weight_sums
from ..core.base import Bound, Call, Lowered, Operator, Role, Shape, Step
from .recurrent import activate, as_s8, check_activation, check_states, is_zero, need_shape, quantize_rows

FEATURES, TIME, BIAS, STATE = 1, 2, 3, 4


def _sizes(call: Call) -> tuple[int, int, int, int, int]:
    """Batches, features, filters, memory, rank."""
    source, weights, time = call.input(0), call.input(FEATURES, "feature weights"), call.input(TIME, "time weights")
    for operand in (source, weights, time):
        call.rank(operand, 2)
    return source.shape[0], source.shape[1], weights.shape[0], time.shape[1], int(call.attribute("rank"))


def infer(call: Call) -> list[Shape]:
    """[batch, features] -> [batch, filters / rank]."""
    call.expect(5)
    batch, features, filters, memory, rank = _sizes(call)
    if rank <= 0 or filters % rank:
        raise call.invalid("BT-SVDF-RANK", f"rank {rank} does not divide the {filters} filters")
    if memory <= 0:
        raise call.invalid("BT-SVDF-SHAPE", "the memory is empty")
    if not batch:
        raise call.invalid("BT-SVDF-SHAPE", "no batch; kernels end the process then")
    need_shape(call, call.input(FEATURES), (filters, features), "feature weights", "BT-SVDF-SHAPE")
    need_shape(call, call.input(TIME), (filters, memory), "time weights", "BT-SVDF-SHAPE")
    if call.has(BIAS):
        need_shape(call, call.input(BIAS), (filters // rank,), "bias", "BT-SVDF-SHAPE")
    check_states(call, [STATE], "BT-SVDF-STATE")
    need_shape(call, call.input(STATE), (batch, memory * filters), "state", "BT-SVDF-SHAPE")
    return [(batch, filters // rank)]


def lower(call: Call) -> Lowered:
    """Integers: two multipliers, zero points. Quantized weights of real numbers: real time weights, scale and sums."""
    batch, features, filters, memory, rank = _sizes(call)
    work = batch * filters * (features + memory)
    scratch = 16 * batch * filters * (memory + 8)
    if call.input(0).dtype != "f32":
        return _lower_integers(call, work, scratch)
    parameters: dict[str, Attribute] = {"rank": rank, "activation": check_activation(call, none=True)}
    arrays: dict[str, np.ndarray] = {}
    if call.input(FEATURES).dtype != "f32":
        weights, time = as_s8(call.constant(FEATURES, "weights")), as_s8(call.constant(TIME, "time weights"))
        parameters["asymmetric"] = bool(call.attribute("asymmetric_quantize_inputs"))
        arrays["scale"] = np.asarray([call.input(FEATURES).scale])
        with np.errstate(all="ignore"):
            arrays["time"] = time.astype(np.float32) * call.input(TIME).scale
        scratch += 12 * weights.size
    return Lowered(parameters=parameters, arrays=arrays, work=work, scratch=scratch)


def _lower_integers(call: Call, work: int, scratch: int) -> Lowered:
    source, weights, time, state = (call.input(p) for p in (0, FEATURES, TIME, STATE))
    if call.attribute("activation") != "relu":
        raise call.invalid("BT-ACTIVATION", f"fused activation '{call.attribute('activation')}', integers need relu")
    form = call.rules["scale_form"]
    inner = scale_form.form(form, source.scale, weights.scale, state.scale)
    outer = scale_form.form(form, state.scale, time.scale, call.output.scale)
    sums = weight_sums(call.constant(FEATURES, "feature weights"), 0)
    magnitude = int(sums.max(initial=0)) * signed_span(source, source.zero_point)
    return Lowered(
        parameters={
            "rank": int(call.attribute("rank")),
            "input_zero_point": source.zero_point,
            "output_zero_point": call.output.zero_point,
            "low": -128,
            "high": 127,
        },
        arrays={**prepare_rescale(call, inner, "inner_"), **prepare_rescale(call, outer)},
        accumulator=Bound(magnitude, magnitude > accumulate.RULES[call.rules["accumulate"]].limit),
        work=work,
        scratch=scratch,
    )


def _remember(state: np.ndarray, fresh: np.ndarray, memory: int) -> np.ndarray:
    """[batch, filters, memory] with the oldest value of every filter gone and the fresh one at its end."""
    kept = state.reshape(*fresh.shape, memory)[..., 1:]
    return np.concatenate([kept, fresh.astype(state.dtype)[..., None]], axis=-1)


def _by_unit(filters: np.ndarray, rank: int) -> np.ndarray:
    """[batches, filters] as [batches, units, rank], also without batches."""
    return filters.reshape(len(filters), filters.shape[1] // rank, rank)


def _integers(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    x, weights, time, bias, state = inputs
    register = accumulate.RULES[step.rules["accumulate"]]
    bound = step.accumulator.magnitude if step.accumulator else 2**62
    acc = exact_matmul(x.astype(np.int64) - step["input_zero_point"], weights.T.astype(np.int64), bound)
    fresh = rescale.apply(step.rules["rescale"], register.finish(acc.astype(np.int64)), step.arrays, "inner_")
    memory = _remember(state, np.clip(fresh, -32768, 32767), time.shape[1])
    # |sum| <= memory * 2^30 stays far below 2^63.
    total = _by_unit((memory.astype(np.int64) * time).sum(axis=-1), step["rank"]).sum(axis=-1)
    if bias is not None:
        total = total + bias
    y = store.rescale_and_store(register.finish(total), step.rules, step.arrays, step.parameters, np.dtype(np.int8))
    return [y, memory.reshape(state.shape)]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Output and new state."""
    x, weights, time, bias, state = inputs
    if x.dtype != np.float32:
        return _integers(step, inputs)
    product = dot.RULES[step.rules["dot"]]
    start = np.zeros((len(x), len(weights)), np.float32)
    if weights.dtype == np.float32:
        fresh = product(weights, x, start)
    else:
        time, fresh = step.arrays["time"], start
        rule = row_product.RULES[step.rules["row_product"]]
        if not is_zero(x, rule.nan_is_zero):
            rows = quantize_rows(step, rule, x, step["asymmetric"], "the input")
            fresh = row_product.Weights(rule, as_s8(weights), float(step.arrays["scale"][0])).add(start, rows)
    memory = _remember(state, fresh, time.shape[1])
    with np.errstate(all="ignore"):
        each = np.empty(memory.shape[:2], np.float32)
        for f in range(len(time)):
            each[:, f] = product(time[f : f + 1], memory[:, f], 0.0)[:, 0]
        y = dots.sums(_by_unit(each, step["rank"]), product)
        if bias is not None:
            y = y + bias
    return [activate(step, y), memory.reshape(state.shape)]


OPERATOR = Operator(
    "svdf",
    ("accumulate", "scale_form", "rescale", "store", "dot", "row_product", "activation"),
    infer,
    lower,
    reference,
    "low-rank layer along features and time, with memory",
    stateful=True,
    multiplies=True,
    roles=(Role("bias", 3),),
)
