"""What recurrent layers over whole sequences share: shapes, lengths, directions.

Operands begin with x[T, B, I], w and r per direction, then optional ones. With the attribute `batch_first`, x is
[B, T, I] and states are [B, D, H]. Results are y[T, D, B, H] ([B, T, D, H]) and the last states [D, B, H] ([B, D, H]).
A sequence ends at its length: behind it, y is 0 and states stay; a sequence of no steps gives states of 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...graph import Attribute
from ...records import dataclass
from ..core.base import Call, Shape, Step
from ..core.stopping import check_stop

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
# (step number, states) to new states, hidden one first.
Advance = Callable[[int, "list[np.ndarray]"], "list[np.ndarray]"]


def stacked(call: Call) -> bool:
    """Whether the weights of all gates and directions are one tensor, and states are operands."""
    return bool(call.attribute("operands") == "stacked")


@dataclass(frozen=True)
class Sizes:
    """Dimensions of a layer: steps, sequences, inputs, directions, hidden neurons."""

    steps: int
    batch: int
    inputs: int
    directions: int
    hidden: int


def directions(direction: str) -> tuple[bool, ...]:
    """Which of the layer's directions walk backwards."""
    return _DIRECTIONS[direction]


def check_shape(call: Call, position: int, role: str, *wanted: Shape) -> None:
    """Input `position`, where present, has one of the wanted shapes."""
    if call.has(position) and call.input(position).shape not in wanted:
        operand = call.input(position)
        texts = " or ".join(str(list(shape)) for shape in wanted)
        raise call.invalid(
            "BT-SHAPE-RECURRENT", f"{role} ('{operand.name}') has shape {list(operand.shape)}, expected {texts}"
        )


def layer_sizes(call: Call, gates: int, turned: bool = False, beside: int = 0) -> Sizes:
    """Dimensions from x and r, checked against w[D, gates * H, I] and r[D, gates * H, H]; `turned`: w[D, I, gates *
    H]; `beside`: so many inputs that w has beside x.
    """
    x, recurrent = call.input(0), call.input(2)
    call.rank(x, 3)
    call.rank(recurrent, 3)
    batch_first = bool(call.attribute("batch_first"))
    steps, batch, inputs = (x.shape[1], x.shape[0], x.shape[2]) if batch_first else x.shape
    direction = str(call.attribute("direction"))
    if direction not in _DIRECTIONS:
        raise call.invalid("BT-NODE-ATTRIBUTE", f"direction '{direction}' is none of {', '.join(_DIRECTIONS)}")
    count, hidden = len(_DIRECTIONS[direction]), recurrent.shape[1 if turned else 2]
    named = call.attribute("hidden_size")
    if named and named != hidden:
        raise call.invalid("BT-SHAPE-RECURRENT", f"hidden_size is {named}, but r has {hidden}")
    if hidden < 1:
        raise call.invalid("BT-SHAPE-RECURRENT", "a layer needs at least one hidden neuron")
    for position, role, depth in ((1, "w", inputs + beside), (2, "r", hidden)):
        columns = gates * hidden
        check_shape(call, position, role, (count, depth, columns) if turned else (count, columns, depth))
    return Sizes(steps, batch, inputs, count, hidden)


def check_common(call: Call, sizes: Sizes, gates: int, states: Sequence[int]) -> None:
    """Bias (input 3), lengths (4) and initial states (at `states`)."""
    check_shape(call, 3, "the bias", (sizes.directions, 2 * gates * sizes.hidden))
    check_shape(call, 4, "sequence_lens", (sizes.batch,))
    for position in states:
        check_shape(call, position, "an initial state", _state_shape(call, sizes))


def _state_shape(call: Call, sizes: Sizes) -> Shape:
    if call.attribute("batch_first"):
        return sizes.batch, sizes.directions, sizes.hidden
    return sizes.directions, sizes.batch, sizes.hidden


def result_shapes(call: Call, sizes: Sizes, states: int) -> list[Shape]:
    """Of y and the last states, as many as the node has outputs."""
    if not 1 <= len(call.outputs) <= 1 + states:
        raise call.invalid("BT-NODE-ARITY", f"expected 1 to {1 + states} outputs, found {len(call.outputs)}")
    inner: Shape = (sizes.directions, sizes.batch, sizes.hidden)
    y: Shape = (sizes.steps, *inner)
    if call.attribute("batch_first"):
        y = (sizes.batch, sizes.steps, sizes.directions, sizes.hidden)
    return [y, *[_state_shape(call, sizes)] * states][: len(call.outputs)]


def read_functions(text: str) -> list[tuple[str, float, float]]:
    """Names with alpha and beta.

    >>> read_functions("elu 0.5 0.0, tanh 0.0 0.0")
    [('elu', 0.5, 0.0), ('tanh', 0.0, 0.0)]
    """
    parts = [part.split() for part in text.split(",")]
    return [(name, float(alpha), float(beta)) for name, alpha, beta in parts]


def check_functions(call: Call, count: int, known: Sequence[str]) -> None:
    """`count` functions per layer, each of them known, and the threshold of what enters them (0: none)."""
    text = str(call.attribute("functions"))
    found = read_functions(text) if text else []
    if len(found) != count:
        raise call.invalid("BT-NODE-ATTRIBUTE", f"expected {count} functions, found {len(found)}")
    for name, *_ in found:
        if name not in known:
            raise call.unsupported("BT-RECURRENT-FUNCTION", f"function '{name}' is none of {', '.join(sorted(known))}")
    if not call.attribute("clip") >= 0:
        raise call.invalid("BT-NODE-ATTRIBUTE", f"clip must not be negative, found {call.attribute('clip')}")


def layer_parameters(call: Call) -> dict[str, Attribute]:
    """What every such layer keeps of its attributes."""
    names = ("direction", "batch_first", "functions", "clip")
    return {name: call.attribute(name) for name in names}


def sequence_lengths(step: Step, operand: np.ndarray | None, steps: int, batch: int) -> np.ndarray:
    """Lengths as s64.

    Raises:
        RunError: one of them is negative or above the number of steps.
    """
    lengths = np.full(batch, steps) if operand is None else operand.astype(np.int64)
    if ((lengths < 0) | (lengths > steps)).any():
        raise RunError(
            "BT-SEQUENCE-LENGTH", f"sequence lengths {lengths.tolist()} are not within 0..{steps}", place=step.place
        )
    return lengths


def turn(x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """x[T, B, ...] with every sequence reversed within its length."""
    out = x.copy()
    for column, length in enumerate(lengths):
        out[:length, column] = x[:length, column][::-1]
    return out


def walk(
    advance: Advance, lengths: np.ndarray, states: list[np.ndarray], steps: int, keep: bool
) -> tuple[np.ndarray, list[np.ndarray]]:
    """y[T, B, H] and the last states.

    Args:
        advance: one step for all sequences, those that have ended, too.
        keep: what `advance` sees as hidden state of a sequence that has ended: its last one, else 0.
    """
    hidden = states[0]
    y = np.zeros((steps, *hidden.shape), np.float32)
    last = [np.zeros_like(state) for state in states]
    for t in range(int(lengths.max(initial=0))):
        check_stop()
        live, ends = np.asarray(t < lengths)[:, None], np.asarray(t + 1 == lengths)[:, None]
        new = advance(t, states)
        y[t] = np.where(live, new[0], np.float32(0))
        states = [np.where(live, now, before) for now, before in zip(new, states, strict=True)]
        last = [np.where(ends, now, before) for now, before in zip(states, last, strict=True)]
        if not keep:
            states[0] = y[t]
    return y, last


def batch_leads(step: Step, inputs: Sequence[Any], states: Sequence[int]) -> list[Any]:
    """The operands with x as [T, B, I] and states as [D, B, H]."""
    arrays = list(inputs)
    if step["batch_first"]:
        for position in (0, *states):
            if position < len(arrays) and arrays[position] is not None:
                arrays[position] = np.swapaxes(arrays[position], 0, 1)
    return arrays


def results(step: Step, ys: list[np.ndarray], states: list[list[np.ndarray]]) -> list[np.ndarray]:
    """Results of all directions in the node's layout, as many as it has outputs."""
    y = np.stack(ys, 1)
    lasts = [np.stack(each) for each in zip(*states, strict=True)]
    if step["batch_first"]:
        y, lasts = y.transpose(2, 0, 1, 3), [np.swapaxes(last, 0, 1) for last in lasts]
    return [np.ascontiguousarray(array) for array in (y, *lasts)][: len(step.outputs)]
