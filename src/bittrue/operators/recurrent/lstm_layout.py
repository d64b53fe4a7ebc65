"""What all layers of long short-term memory with full inputs share: their places among the inputs, and the checks.

The 20 or 24 inputs are: x; four weights; four recurrent weights; three peepholes; four biases; projection weights and
bias; output state; cell state; four coefficients of a layer normalization. Each cell of a layer in two directions is
seen as such a list, too, with the weights of an auxiliary input at its end.
"""

from __future__ import annotations

import numpy as np

from ...records import dataclass
from ..core.base import Call, Operand, Shape
from .recurrent import check_states, need_shape

GATES = ("input", "forget", "cell", "output")
# Positions of the first of four tensors (in the order of GATES); there is no peephole of the cell gate.
INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES, NORMS = 1, 5, 12, 20
PEEPHOLES = {"input": 9, "forget": 10, "output": 11}
PROJECTION, PROJECTION_BIAS, OUTPUT_STATE, CELL_STATE = 16, 17, 18, 19
AUXILIARY = 24


@dataclass(frozen=True)
class Sizes:
    """Dimensions of one layer, and whether time is its first axis."""

    batch: int
    time: int
    features: int
    cells: int
    outputs: int
    time_major: bool

    @classmethod
    def of(cls, call: Call, sequence: bool) -> Sizes:
        """From the input and the output gate's weights; a recurrent weight vector is a diagonal matrix.

        Without `sequence` the layer is one time step and its input has no axis of time.
        """
        source = call.input(0)
        call.rank(source, 3 if sequence else 2)
        time_major = bool(call.attribute("time_major")) if sequence else True
        first, second = source.shape[:2] if sequence else (1, source.shape[0])
        time, batch = (first, second) if time_major else (second, first)
        weights, recurrent = call.input(INPUT_WEIGHTS + 3, "output gate weights"), call.input(RECURRENT_WEIGHTS + 3)
        call.rank(weights, 2)
        call.rank(recurrent, 1, 2)
        return cls(batch, time, source.shape[-1], weights.shape[0], recurrent.shape[-1], time_major)

    @property
    def work(self) -> int:
        """Multiply-accumulates."""
        return 4 * self.batch * self.time * self.cells * (self.features + self.outputs)


def by_time(x: np.ndarray, time_major: bool) -> np.ndarray:
    """[time, batch, features] of a layer's input."""
    if x.ndim == 2:
        return x[None]
    return x if time_major else x.swapaxes(0, 1)


def like_input(out: np.ndarray, x: np.ndarray, time_major: bool) -> np.ndarray:
    """The inverse of `by_time` for a layer's results."""
    if x.ndim == 2:
        return out[0]
    return out if time_major else np.ascontiguousarray(out.swapaxes(0, 1))


def infer(call: Call, sequence: bool) -> list[Shape]:
    """The input's shape; the last dimension becomes that of the output state."""
    call.expect((20, 24))
    if len(call.inputs) not in (20, 24):
        raise call.invalid("BT-NODE-ARITY", f"expected 20 or 24 inputs, found {len(call.inputs)}")
    return check(call, Sizes.of(call, sequence), diagonal=sequence)


def check(call: Call, sizes: Sizes, diagonal: bool) -> list[Shape]:
    """Every input of a layer or of one of its cells; the output's shape. `diagonal`: recurrent weights may be one."""
    cells, outputs = sizes.cells, sizes.outputs
    for offset, name in enumerate(GATES):
        present = [call.has(base + offset) for base in (INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES)]
        if name == "input" and not any(present):
            continue
        if not all(present):
            raise call.invalid("BT-NODE-INPUT", f"the {name} gate needs weights, recurrent weights and a bias")
        _need(call, call.input(INPUT_WEIGHTS + offset), (cells, sizes.features), f"{name} gate weights")
        _check_recurrent(call, sizes, offset, diagonal)
        _need(call, call.input(BIASES + offset), (cells,), f"{name} gate bias")
    _check_extras(call, cells, outputs)
    check_states(call, [OUTPUT_STATE, CELL_STATE], "BT-LSTM-STATE")
    for position, size in ((OUTPUT_STATE, outputs), (CELL_STATE, cells)):
        state = call.input(position, "state")
        if state.size != sizes.batch * size:
            raise call.invalid("BT-LSTM-STATE", f"state '{state.name}' must have {sizes.batch * size} elements")
    for name in ("cell_clip", "proj_clip"):
        if not float(call.attribute(name)) >= 0:
            raise call.invalid("BT-LSTM-CLIP", f"{name} is {call.attribute(name)}, expected 0 (none) or more")
    return [(*call.input(0).shape[:-1], outputs)]


def _need(call: Call, operand: Operand, shape: Shape, role: str) -> None:
    need_shape(call, operand, shape, role, "BT-LSTM-SHAPE")


def _check_recurrent(call: Call, sizes: Sizes, offset: int, diagonal: bool) -> None:
    operand, role = call.input(RECURRENT_WEIGHTS + offset), f"recurrent {GATES[offset]} gate weights"
    if operand.rank != 1 or not diagonal:
        _need(call, operand, (sizes.cells, sizes.outputs), role)
        if operand.dtype != call.input(INPUT_WEIGHTS + 3).dtype:
            raise call.invalid("BT-NODE-TYPE", f"{role} must have the type of the gate's other weights")
        return
    _need(call, operand, (sizes.cells,), role)
    if operand.dtype != "f32" or call.input(0).dtype != "f32" or sizes.cells != sizes.outputs:
        raise call.invalid(
            "BT-LSTM-SHAPE", f"{role} are a diagonal, which must be real and as long as the output state"
        )


def _check_extras(call: Call, cells: int, outputs: int) -> None:
    """Peephole, projection and layer normalization."""
    norms = [name for offset, name in enumerate(GATES) if call.has(NORMS + offset)]
    gates = [name for name in GATES if name != "input" or call.has(INPUT_WEIGHTS)]
    if norms and norms != gates:
        raise call.invalid("BT-LSTM-LAYER-NORM", f"coefficients are given for {norms}, expected {gates} or none")
    for name in norms:
        _need(call, call.input(NORMS + GATES.index(name)), (cells,), f"coefficients of the {name} gate")
    peepholes = [name for name, position in PEEPHOLES.items() if call.has(position)]
    wanted = [name for name in PEEPHOLES if name != "input" or call.has(INPUT_WEIGHTS)]
    if peepholes and peepholes != wanted:
        raise call.invalid("BT-LSTM-PEEPHOLE", f"peephole weights are given for {peepholes}, expected {wanted} or none")
    for name in peepholes:
        _need(call, call.input(PEEPHOLES[name]), (cells,), f"peephole weights of the {name} gate")
    if call.has(PROJECTION):
        _need(call, call.input(PROJECTION), (outputs, cells), "projection weights")
        if call.has(PROJECTION_BIAS):
            _need(call, call.input(PROJECTION_BIAS), (outputs,), "projection bias")
    elif call.has(PROJECTION_BIAS):
        raise call.invalid("BT-LSTM-PROJECTION", "a projection bias without projection weights")
    # Kernels would write past a state, or combine the wrong elements.
    integer = call.input(0).dtype != "f32"
    if outputs != cells and ((peepholes and integer) or not call.has(PROJECTION)):
        raise call.invalid("BT-LSTM-SHAPE", f"{cells} cells and {outputs} outputs need a projection and no peepholes")
