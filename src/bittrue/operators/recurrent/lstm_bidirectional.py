"""What `lstm` does in two directions: two cells along time, one forward and one backward.

The cells stand in `lstm_real.py`; both have the same sizes. `merge_outputs` puts the backward cell's outputs behind
the others'. An auxiliary input has weights of its own in every gate, added after those of the input; without weights it
is the input of the backward cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from ...records import replace
from ..core.base import Call, Lowered, Shape, Step
from . import lstm_layout, lstm_real
from .lstm_layout import CELL_STATE, GATES, OUTPUT_STATE, Sizes, by_time, like_input
from .recurrent import check_states, need_shape

INPUTS = 48
# Positions of each cell's first weights, of its two states, and of its first auxiliary weights.
CELLS = {"forward": (1, 35, 40), "backward": (18, 37, 44)}
AUXILIARY = 39

T = TypeVar("T")


def _local(inputs: Sequence[T], name: str) -> tuple[T | None, ...]:
    """One cell's inputs in the order of `lstm_layout`."""
    weights, states, auxiliary = CELLS[name]
    weighted = inputs[CELLS["forward"][2] + 1] is not None
    # Without weights, the auxiliary input is the backward cell's input.
    second = name == "backward" and not weighted and inputs[AUXILIARY] is not None
    source = inputs[AUXILIARY if second else 0]
    own = inputs[auxiliary : auxiliary + 4]
    return (source, *inputs[weights : weights + 17], *inputs[states : states + 2], None, None, None, None, *own)


def _calls(call: Call) -> dict[str, Call]:
    inputs = (*call.inputs, *(None,) * (INPUTS - len(call.inputs)))
    return {name: replace(call, inputs=_local(inputs, name)) for name in CELLS}


def infer(call: Call) -> list[Shape]:
    """[..., features] -> [..., outputs] of each cell, or both merged."""
    merged = bool(call.attribute("merge_outputs"))
    call.expect(INPUTS, 1 if merged else 2)
    states = [position + i for _, position, _ in CELLS.values() for i in range(2)]
    check_states(call, states, "BT-LSTM-STATE")
    _check_auxiliary(call)
    calls = _calls(call)
    sizes = {name: Sizes.of(cell, sequence=True) for name, cell in calls.items()}
    shapes = [shape for name, cell in calls.items() for shape in lstm_layout.check(cell, sizes[name], diagonal=False)]
    if sizes["forward"] != sizes["backward"]:
        raise call.invalid("BT-LSTM-SHAPE", "both cells must have the same number of cells and outputs")
    batch = sizes["forward"].batch
    if merged and batch > 1 and not sizes["forward"].time_major:
        raise call.unsupported(
            "BT-LSTM-MERGE",
            f"merged outputs of {batch} batches that are not time major: the kernel reads and writes past the states",
            "leave the outputs apart and concatenate them, or run the batches one by one",
        )
    return [(*shapes[0][:-1], 2 * shapes[0][-1])] if merged else shapes


def _check_auxiliary(call: Call) -> None:
    present = []
    for weights, _, auxiliary in CELLS.values():
        for gate in range(4):
            # A cell without an input gate needs no auxiliary weights for it.
            if gate or call.has(weights):
                present.append(call.has(auxiliary + gate))
    if any(present) != all(present):
        raise call.invalid("BT-LSTM-AUXILIARY", "auxiliary weights are given for some gates only")
    if not call.has(AUXILIARY):
        if any(present):
            raise call.invalid("BT-LSTM-AUXILIARY", "auxiliary weights without an auxiliary input")
        return
    source, extra = call.input(0), call.input(AUXILIARY)
    call.rank(source, 3)
    call.rank(extra, 3)
    features = extra.shape[2] if any(present) else source.shape[2]
    need_shape(call, extra, (*source.shape[:2], features), "auxiliary input", "BT-LSTM-SHAPE")
    for weights, _, auxiliary in CELLS.values():
        for gate, name in enumerate(GATES):
            if call.has(auxiliary + gate):
                cells = call.input(weights + 3, "output gate weights").shape[0]
                operand = call.input(auxiliary + gate)
                need_shape(call, operand, (cells, features), f"auxiliary {name} gate weights", "BT-LSTM-SHAPE")
                if operand.dtype != call.input(weights + 3).dtype:
                    raise call.invalid(
                        "BT-NODE-TYPE", f"auxiliary {name} gate weights must have the other weights' type"
                    )


def lower(call: Call) -> Lowered:
    """What each cell prepares, under the cell's name."""
    parts = {name: lstm_real.lower(cell, Sizes.of(cell, sequence=True), room=0) for name, cell in _calls(call).items()}
    forward = parts["forward"]
    return Lowered(
        parameters={
            **forward.parameters,
            "bidirectional": True,
            "merge_outputs": bool(call.attribute("merge_outputs")),
        },
        arrays={f"{name}_{key}": value for name, part in parts.items() for key, value in part.arrays.items()},
        work=sum(part.work or 0 for part in parts.values()),
        scratch=sum(part.scratch for part in parts.values()),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs, then the new output state and cell state of both cells."""
    inputs = [*inputs, *[None] * (INPUTS - len(inputs))]  # type: ignore[list-item]
    weighted = inputs[CELLS["forward"][2] + 1] is not None
    extra = by_time(inputs[AUXILIARY], step["time_major"]) if weighted else None
    outputs: list[np.ndarray] = []
    states: list[np.ndarray] = []
    for name in CELLS:
        local = _local(inputs, name)
        part = replace(step, arrays={k[len(name) + 1 :]: v for k, v in step.arrays.items() if k.startswith(name)})
        out, h, c = lstm_real.layer(part, local, extra, backward=name == "backward")
        outputs.append(like_input(out, inputs[0], step["time_major"]))
        states += [h.reshape(local[OUTPUT_STATE].shape), c.reshape(local[CELL_STATE].shape)]  # type: ignore[union-attr]
    if step["merge_outputs"]:
        outputs = [np.concatenate(outputs, axis=-1)]
    return outputs + states
