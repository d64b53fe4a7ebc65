"""Long short-term memory of five inputs: x, last output, weights of all gates, bias, last cell; one time step.

    [i, j, f, o] = [x, h] W^T + bias               W [4 cells, features + cells]
    c' = logistic(i) * tanh(j) + logistic(f) * c      h' = logistic(o) * tanh(c')

Outputs are h', c', the joined [x, h] and the four gates before their functions; the last two are temporaries.
With 8-bit integers (zero point 128) the gates are 16-bit numbers with 3 integer bits, rescaled from a sum of products;
the cell has 4 integer bits, products of 16-bit numbers round up at ties, and what is narrowed rounds away.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arithmetic import fixed_point
from ...arithmetic.matmul import exact_matmul
from ...arithmetic.powers import nearly_power_of_two
from ...rules import accumulate, activation, dot, gate, rescale
from ..core.accumulator import prepare_rescale, signed_span, weight_sums
from ..core.base import Bound, Call, Lowered, Shape, Step
from .recurrent import need_shape, within

STATE_EXPONENT = -11
ZERO_POINT = 128


def infer(call: Call) -> list[Shape]:
    """[batch, cells] twice, [batch, features + cells], [batch, 4 cells]."""
    call.expect(5, 4)
    source, last = call.input(0), call.input(1, "last output")
    call.rank(source, 2)
    call.rank(last, 2)
    (batch, features), cells = source.shape, last.shape[1]
    wanted = ((1, (batch, cells)), (2, (4 * cells, features + cells)), (3, (4 * cells,)), (4, (batch, cells)))
    for position, shape in wanted:
        need_shape(call, call.input(position), shape, f"input {position}", "BT-LSTM-SHAPE")
    if call.input(1).index == call.input(4).index or any(call.input(p).tensor.is_constant for p in (1, 4)):
        raise call.unsupported("BT-LSTM-STATE", "the last output and cell are overwritten: they must be two tensors")
    return [(batch, cells), (batch, cells), (batch, features + cells), (batch, 4 * cells)]


def lower(call: Call) -> Lowered:
    """Integers: the multiplier of the gates and the weights' zero point."""
    batch, depth = call.outputs[2].shape
    cells = call.outputs[0].shape[1]
    variable = tuple(int(call.input(p).tensor.is_variable) for p in (1, 4))
    work, scratch = 4 * batch * cells * depth, 64 * batch * (depth + 8 * cells)
    if call.input(0).dtype == "f32":
        if batch > 1:
            raise call.unsupported(
                "BT-LSTM-BATCH",
                f"{batch} batches at once with real weights: the order of additions is not reproduced",
                "run the batches one by one",
            )
        return Lowered(parameters={"variable": variable}, work=work, scratch=scratch)
    weights, bias = call.input(2), call.input(3)
    if nearly_power_of_two(float(call.outputs[1].scale)) != (STATE_EXPONENT, True):
        raise call.invalid(
            "BT-LSTM-CELL-SCALE",
            f"the cell scale is {float(call.outputs[1].scale)!r}, expected 2^{STATE_EXPONENT}",
        )
    sums = weight_sums(call.constant(2, "weights"), weights.zero_point)
    span = signed_span(call.input(0), ZERO_POINT)
    biases = np.abs(call.constant(3, "bias").astype(np.int64))
    magnitude = int((sums * span + biases).max(initial=0))
    return Lowered(
        parameters={"weight_zero_point": weights.zero_point, "variable": variable},
        arrays=prepare_rescale(call, np.float64(np.float32(4096) * bias.scale)),
        accumulator=Bound(magnitude, magnitude > accumulate.RULES[call.rules["accumulate"]].limit),
        work=work,
        scratch=scratch,
    )


def _integers(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    x, h, weights, bias, c = inputs
    joined = np.concatenate([x, h], axis=1)
    bound = step.accumulator.magnitude if step.accumulator else 2**62
    centred = weights.astype(np.int64) - step["weight_zero_point"]
    acc = exact_matmul(joined.astype(np.int64) - ZERO_POINT, centred.T, bound).astype(np.int64) + bias
    acc = accumulate.RULES[step.rules["accumulate"]].finish(acc)
    gates = np.clip(rescale.apply(step.rules["rescale"], acc, step.arrays), -32768, 32767)
    functions = gate.RULES[step.rules["gate"]]
    product = fixed_point.doubling_high_multiply_up_s16
    take, update, forget, output = np.split(gates, 4, axis=1)
    added = product(functions.logistic(take), functions.tanh(update, 3))
    added = fixed_point.divide_by_power_of_two_away(added, 4)
    cell = fixed_point.saturating_add_s16(added, product(functions.logistic(forget), c.astype(np.int64)))
    # tanh reads the cell with 3 integer bits: what needs the fourth saturates.
    squashed = functions.tanh(np.clip(2 * cell, -32768, 32767), 3)
    hidden = fixed_point.divide_by_power_of_two_away(product(functions.logistic(output), squashed), 8)
    out = (np.clip(hidden, -128, 127) + 128).astype(np.uint8)
    return [out, cell.astype(np.int16), joined, gates.astype(np.int16)]


def _reals(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    x, h, weights, bias, c = inputs
    functions = activation.RULES[step.rules["activation"]]
    joined = np.concatenate([x, h], axis=1)
    with np.errstate(all="ignore"):
        gates = within(dot.RULES[step.rules["dot"]](weights, joined, bias))
        take, update, forget, output = np.split(gates, 4, axis=1)

        def logistic(values: np.ndarray) -> np.ndarray:
            # Vectors begin where the result's memory has a boundary.
            rows = [functions.logistic(row, b * values.shape[1]) for b, row in enumerate(values)]
            return np.stack(rows) if rows else values

        cell = logistic(take) * functions.tanh(update) + logistic(forget) * c
        out = logistic(output) * functions.tanh(cell)
    return [out, cell, joined, gates]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The four outputs, then the states that are variable tensors."""
    results = (_reals if inputs[0].dtype == np.float32 else _integers)(step, inputs)
    return results + [results[i].copy() for i in range(2) if step["variable"][i]]
