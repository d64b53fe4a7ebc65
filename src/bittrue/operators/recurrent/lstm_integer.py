"""Long short-term memory with 8-bit input and output, 16-bit cell and 32-bit bias; step by step along time.

For each gate: g = clamp16(rescale(W x + bias - z_x sum(W))), g = clamp16(rescale(R h - z_h sum(R)) + g), with peephole
connections also g = clamp16(rescale(P * c) + g). Then i, f, o = logistic(g) and j = tanh(g), all 16 bits:

    c' = clip(sat16(round_away(f * c / 2^15) + round_away(i * j / 2^(30 + s))))      cell scale 2^s
    h' = clamp8(rescale(o * tanh(c')) + z_h)

Without the input gate's weights, i = 32767 - f. The output gate's peephole sees c'. With a projection, h' is stored
with the negated zero point of the hidden intermediate and goes through one more matrix. With layer normalization each
gate is normalized over its cells before its activation function, and the bias is added there instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arithmetic import fixed_point
from ...arithmetic.matmul import exact_matmul
from ...arithmetic.powers import nearly_power_of_two
from ...errors import RunError
from ...graph import Attribute
from ...rules import accumulate, gate, layer_norm, rescale, scale_form, store
from ..core.base import Bound, Call, Lowered, Step
from ..core.stopping import check_stop
from .lstm_layout import (
    BIASES,
    CELL_STATE,
    GATES,
    INPUT_WEIGHTS,
    NORMS,
    OUTPUT_STATE,
    PEEPHOLES,
    PROJECTION,
    PROJECTION_BIAS,
    RECURRENT_WEIGHTS,
    Sizes,
    by_time,
    like_input,
)

GATE_SCALE = 2.0**-12
HIDDEN = 4  # position of the hidden intermediate
MAX_TANH_BITS = 6


class _Preparation:
    """Collects what `lower` returns: multipliers, effective biases, and the largest accumulator."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.arrays: dict[str, np.ndarray] = {}
        self.magnitude = 0

    def multiplier(self, name: str, first: object, second: object, output: object) -> None:
        real = scale_form.form(self.call.rules["scale_form"], first, second, output)  # type: ignore[arg-type]
        try:
            prepared = rescale.prepare(self.call.rules["rescale"], real, f"{name}_")
        except ValueError as error:
            raise self.call.invalid("BT-MULTIPLIER", f"{name}: the scales give no usable multiplier: {error}") from None
        self.arrays.update(prepared)

    def bias(self, name: str, weights_position: int, bias_position: int | None, zero_point: int) -> None:
        """Adds zero_point * row sums + bias, wrapped to 32 bits. A zero point of the weights is not applied."""
        weights = self.call.constant(weights_position, f"{name} weights").astype(np.int64)
        total = zero_point * weights.sum(axis=1)
        if bias_position is not None and self.call.has(bias_position):
            total += self.call.constant(bias_position, f"{name} bias").astype(np.int64)
        effective = fixed_point.wrap_s32(total)
        self.arrays[f"{name}_bias"] = effective
        sums = np.abs(effective) + 128 * np.abs(weights).sum(axis=1)
        self.magnitude = max(self.magnitude, int(sums.max(initial=0)))


def _clip(limit: float, scale: np.float32, largest: int) -> int:
    """The fraction of limit / scale is dropped; 0 means no clip."""
    if limit <= 0:
        return 0
    with np.errstate(over="ignore"):
        return int(min(max(np.float32(limit) / scale, np.float32(-largest - 1)), np.float32(largest)))


def _gate_scale(call: Call, offset: int) -> np.float32:
    """The scale of a gate before its normalization, from an intermediate tensor."""
    quantization = call.intermediates[offset].quantization
    if quantization is None:
        raise call.invalid("BT-QUANT-MISSING", f"the intermediate of the {GATES[offset]} gate has no scale")
    return np.float32(quantization.scales[0])


def lower(call: Call, sizes: Sizes) -> Lowered:
    """Every multiplier, bias with folded zero points, clip and zero point."""
    if len(call.intermediates) == 12:
        raise call.unsupported(
            "BT-LSTM-INTERMEDIATES",
            "12 intermediates ask for gates of 8 bits, whose kernel reads multipliers that nothing has set",
            "convert with gates of 16 bits (5 intermediates)",
        )
    if len(call.intermediates) != 5:
        raise call.invalid("BT-LSTM-INTERMEDIATES", f"expected 5 intermediates, found {len(call.intermediates)}")
    source, state, cell = call.input(0), call.input(OUTPUT_STATE), call.input(CELL_STATE)
    hidden = call.intermediates[HIDDEN].quantization
    if hidden is None:
        raise call.invalid("BT-QUANT-MISSING", "the hidden intermediate has no scale and zero point")
    exponent, is_power = nearly_power_of_two(float(cell.scale))
    if not is_power:
        raise call.invalid("BT-LSTM-CELL-SCALE", f"the cell scale {float(cell.scale)!r} is no power of two")
    if not 0 <= 15 + exponent <= MAX_TANH_BITS:
        raise call.invalid("BT-LSTM-CELL-SCALE", f"the cell scale 2^{exponent} must lie in 2^-15 to 2^-9")
    preparation = _Preparation(call)
    normalized = call.has(NORMS + 1)
    guards: dict[str, Attribute] = {}
    for offset, name in enumerate(GATES):
        if not call.has(INPUT_WEIGHTS + offset):
            continue
        weights, recurrent = call.input(INPUT_WEIGHTS + offset), call.input(RECURRENT_WEIGHTS + offset)
        scale = _gate_scale(call, offset) if normalized else GATE_SCALE
        preparation.multiplier(f"{name}_in", weights.scale, source.scale, scale)
        preparation.multiplier(f"{name}_back", recurrent.scale, state.scale, scale)
        bias_position = None if normalized else BIASES + offset
        preparation.bias(f"{name}_in", INPUT_WEIGHTS + offset, bias_position, -source.zero_point)
        preparation.bias(f"{name}_back", RECURRENT_WEIGHTS + offset, None, -state.zero_point)
        if name in PEEPHOLES and call.has(PEEPHOLES[name]):
            preparation.multiplier(f"{name}_peep", 2.0**exponent, call.input(PEEPHOLES[name]).scale, scale)
        if normalized:
            # The normalized gate, times the coefficients' scale, becomes a multiple of 2^-12 again.
            norm_scale = call.input(NORMS + offset).scale
            preparation.multiplier(f"{name}_norm", norm_scale, 1, 2.0**-12)
            guards[f"{name}_guard"] = max(1, int(np.float32(10000) * norm_scale))
    hidden_scale, hidden_zero_point = np.float32(hidden.scales[0]), int(hidden.zero_points[0])
    preparation.multiplier("hidden", 2.0**-15, 2.0**-15, hidden_scale)
    if call.has(PROJECTION):
        preparation.multiplier("projection", call.input(PROJECTION).scale, hidden_scale, state.scale)
        preparation.bias("projection", PROJECTION, PROJECTION_BIAS, hidden_zero_point)
    limit = accumulate.RULES[call.rules["accumulate"]].limit
    parameters: dict[str, Attribute] = {
        "time_major": sizes.time_major,
        "cell_exponent": exponent,
        "cell_clip": _clip(float(call.attribute("cell_clip")), cell.scale, 32767),
        "projection_clip": _clip(float(call.attribute("proj_clip")), call.output.scale, 127),
        "hidden_zero_point": -hidden_zero_point if call.has(PROJECTION) else hidden_zero_point,
        "output_zero_point": state.zero_point,
        **guards,
    }
    return Lowered(
        parameters=parameters,
        arrays=preparation.arrays,
        accumulator=Bound(preparation.magnitude, preparation.magnitude > limit),
        work=sizes.work,
        scratch=256 * sizes.batch * (sizes.features + sizes.cells + sizes.outputs),
    )


class _Cell:
    """One step's arithmetic, bound to its prepared arrays and weights."""

    def __init__(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        self.step = step
        self.inputs = inputs
        self.gate = gate.RULES[step.rules["gate"]]
        self.store = store.RULES[step.rules["store"]]
        self.matrices: dict[int, np.ndarray] = {}

    def rescaled(self, acc: np.ndarray, name: str) -> np.ndarray:
        return rescale.apply(self.step.rules["rescale"], acc, self.step.arrays, f"{name}_")

    def product(self, x: np.ndarray, position: int, name: str) -> np.ndarray:
        """rescale(x W^T + bias)."""
        bound = self.step.accumulator.magnitude if self.step.accumulator else 2**62
        if position not in self.matrices:
            kind = np.float32 if bound < 2**24 else np.float64
            self.matrices[position] = np.ascontiguousarray(np.asarray(self.inputs[position], kind).T)
        acc = exact_matmul(x, self.matrices[position], bound).astype(np.int64) + self.step.arrays[f"{name}_bias"]
        return self.rescaled(accumulate.RULES[self.step.rules["accumulate"]].finish(acc), name)

    def open(self, name: str, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> np.ndarray:
        """A gate before its activation function."""
        offset = GATES.index(name)
        value = self.store(self.product(x, INPUT_WEIGHTS + offset, f"{name}_in"), 0, -32768, 32767)
        recurrent = self.product(h, RECURRENT_WEIGHTS + offset, f"{name}_back")
        value = self.store(fixed_point.wrap_s32(recurrent + value), 0, -32768, 32767)
        if f"{name}_peep_multiplier" in self.step.arrays:
            peephole = np.asarray(self.inputs[PEEPHOLES[name]], np.int64)
            value = self.store(
                fixed_point.wrap_s32(self.rescaled(peephole * c, f"{name}_peep") + value), 0, -32768, 32767
            )
        if f"{name}_norm_multiplier" in self.step.arrays:
            weights, bias = (np.asarray(self.inputs[p + offset], np.int64) for p in (NORMS, BIASES))
            normalize = layer_norm.RULES[self.step.rules["layer_norm"]]
            try:
                normal = normalize(value, weights, bias, self.step[f"{name}_guard"])
            except OverflowError as error:
                # The kernel's 32-bit sum is undefined then, and compilers make use of that.
                raise RunError("BT-RUN-OVERFLOW", f"{name} gate: {error}", place=self.step.place) from None
            value = self.store(self.rescaled(normal, f"{name}_norm"), 0, -32768, 32767)
        return value

    def run(self, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """New output and cell state for one time step of all batches."""
        step, divide = self.step, fixed_point.divide_by_power_of_two_away
        forget = self.gate.logistic(self.open("forget", x, h, c))
        with_input = "input_in_multiplier" in step.arrays
        take = self.gate.logistic(self.open("input", x, h, c)) if with_input else 32767 - forget
        update = self.gate.tanh(self.open("cell", x, h, c), 3)
        kept = divide(forget * c, 15)
        c = fixed_point.saturating_add_s16(kept, divide(take * update, 30 + step["cell_exponent"]))
        if step["cell_clip"] > 0:
            c = np.clip(c, -step["cell_clip"], step["cell_clip"])
        output = self.gate.logistic(self.open("output", x, h, c))
        squashed = self.gate.tanh(c, 15 + step["cell_exponent"])
        h = self.store(self.rescaled(output * squashed, "hidden"), step["hidden_zero_point"], -128, 127)
        if "projection_multiplier" in step.arrays:
            h = self.store(self.product(h, PROJECTION, "projection"), step["output_zero_point"], -128, 127)
            if step["projection_clip"] > 0:
                h = np.clip(h, -step["projection_clip"], step["projection_clip"])
        return h, c


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Output, then the new output state and cell state."""
    cell = _Cell(step, inputs)
    x = by_time(inputs[0], step["time_major"])
    time, batch, _ = x.shape
    cells, outputs = inputs[RECURRENT_WEIGHTS + 3].shape
    h = inputs[OUTPUT_STATE].reshape(batch, outputs).astype(np.int64)
    c = inputs[CELL_STATE].reshape(batch, cells).astype(np.int64)
    out = np.empty((time, *h.shape), np.int8)
    for t in range(time):
        check_stop()
        h, c = cell.run(x[t], h, c)
        out[t] = h
    return [
        like_input(out, inputs[0], step["time_major"]),
        h.astype(np.int8).reshape(inputs[OUTPUT_STATE].shape),
        c.astype(np.int16).reshape(inputs[CELL_STATE].shape),
    ]
