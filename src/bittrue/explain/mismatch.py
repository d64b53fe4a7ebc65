"""The text for one element that two sides store differently: all that it takes to find and to replay it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import numpy as np

from ..api import Session
from ..errors import BittrueError
from .decimals import integer, place
from .element import explain_element, step_of
from .explanation import Explanation

# What is shown of an explanation's numbers, in order.
_NUMBERS = ("accumulator", "multiplier", "exponent", "real_multiplier", "zero_point", "exact", "tie_distance")


def mismatch_text(
    session: Session,
    values: Mapping[str, np.ndarray],
    tensor: str,
    element: Sequence[int],
    expected: object,
    got: object,
    model: str = "MODEL",
    replay: str = "",
) -> str:
    """Several lines about one differing element.

    Args:
        session: what computed `expected`.
        values: a trace of it by tensor name; the inputs of the step suffice.
        tensor, element: where.
        expected, got: both values as they are stored.
        model: path of the model file, for the command.
        replay: options of the command that make the same inputs, for example ``--input x.npy``.

    Tensors that nothing can be said about (inputs, nested graphs) leave lines out; they raise nothing.
    """
    index = tuple(int(i) for i in element)
    lines = [f"'{tensor}' {place(index)}: expected {expected}, got {got}"]
    try:
        step, _ = step_of(session.plan, tensor)
    except BittrueError as error:
        return "\n".join([*lines, f"  {error.message}"])
    position = session.plan.steps.index(step)
    isa = f" ({session.isa})" if session.isa else ""
    lines.append(f"  step {position}: {step.operator}, {step.place}, numerics {session.plan.numerics}")
    lines.append(f"  executor {session.executor}{isa}, kernel {session.kernel(position)}")
    try:
        lines += _worked_out(explain_element(session, values, tensor, index), expected)
    except BittrueError as error:
        lines.append(f"  not worked out: {error}")
    if step.rules:
        lines.append(f"  rules {', '.join(f'{slot}={rule}' for slot, rule in step.rules.items())}")
    lines.append(f"  replay: {command(model, tensor, index, session.plan.numerics, replay)}")
    return "\n".join(lines)


def command(model: str, tensor: str, element: Sequence[int], numerics: str, more: str = "") -> str:
    """The command line that works out one element.

    >>> command("m.tflite", "a b", (0, 1), "litert", "--seed 3")
    "bittrue explain m.tflite --tensor 'a b' --element 0,1 --numerics litert --seed 3"
    """
    index = ",".join(str(int(i)) for i in element)
    parts = ["bittrue", "explain", model, "--tensor", tensor, "--element", index, "--numerics", numerics]
    return " ".join([*map(shlex.quote, parts), *([more] if more else [])])


def _worked_out(explanation: Explanation, expected: object) -> list[str]:
    shown = []
    for name in _NUMBERS:
        if name in explanation.numbers:
            value = explanation.numbers[name]
            text = integer(value) if isinstance(value, int) else f"{value:.9g}"
            shown.append(f"{name.replace('_', ' ')} {text}")
    lines = [f"  {', '.join(shown)}"] if shown else []
    roundings = [f"{line.label} {line.value}" for line in explanation.lines if "rounding" in line.label]
    if roundings:
        lines.append(f"  {', '.join(roundings)}, stored {explanation.stored}")
    if isinstance(expected, (int, float, np.generic)) and expected != explanation.stored and expected == expected:
        lines.append(f"  from these inputs the reference stores {explanation.stored}")
    return lines
