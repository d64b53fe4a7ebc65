"""shape: dimensions of a tensor, how many they are, or how many elements it has, known once a graph is planned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import Attribute, data_type
from ..core.base import Call, Lowered, Operator, Shape, Step


def _part(call: Call) -> Shape:
    """Dimensions from `start` up to `end`, negative ones counted from the back; all of them without these
    attributes.
    """
    start, end = (call.node.attributes.get(name) for name in ("start", "end"))
    return call.input(0).shape[None if start is None else int(str(start)) : None if end is None else int(str(end))]


def infer(call: Call) -> list[Shape]:
    """One number per dimension, or one number."""
    call.expect(1)
    wanted = call.node.attributes.get("out_type", call.output.dtype)
    if wanted != call.output.dtype:
        raise call.invalid("BT-SHAPE-TYPE", f"out_type is {wanted}, but the output tensor is {call.output.dtype}")
    return [(len(_part(call)),)] if call.attribute("of") == "dimensions" else [()]


def lower(call: Call) -> Lowered:
    """The numbers themselves: `of` is dimensions, rank or elements."""
    source = call.input(0)
    known: dict[str, Attribute] = {"dimensions": _part(call), "rank": source.rank, "elements": source.size}
    return Lowered(parameters={"sizes": known[str(call.attribute("of"))], "type": call.output.dtype})


def reference(step: Step, inputs: Sequence[Any]) -> list[np.ndarray]:
    """The numbers from the plan; the input is not read."""
    return [np.array(step["sizes"], data_type(step["type"]).numpy)]


OPERATOR = Operator(
    "shape", (), infer, lower, reference, "sizes of a tensor, or how many there are", needs_only_shapes=True
)
