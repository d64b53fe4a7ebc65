"""ban_repeats: scores [B, V] with minus infinity for tokens that would end a group that is there already.

Operands: tokens [B, S], scores. Attribute `size`: of groups. A token is banned where the last `size` - 1 tokens stand
before it elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ..core.base import Call, Lowered, Operator, Shape, Step


def infer(call: Call) -> list[Shape]:
    """The shape of the scores."""
    call.expect(2)
    tokens, scores = call.input(0), call.input(1)
    call.rank(tokens, 2, 2)
    call.rank(scores, 2, 2)
    if tokens.shape[0] != scores.shape[0] or call.attribute("size") < 1:
        raise call.invalid(
            "BT-REPEATS",
            f"tokens {list(tokens.shape)} and scores {list(scores.shape)}, groups of {call.attribute('size')}",
        )
    return [scores.shape]


def lower(call: Call) -> Lowered:
    """The size of groups."""
    tokens = call.input(0).size
    return Lowered({"size": int(call.attribute("size"))}, work=call.output.size + tokens, scratch=16 * tokens)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Row by row."""
    tokens, out, size = inputs[0], inputs[1].copy(), step["size"]
    for row, into in zip(tokens, out, strict=True):
        if row.size < size:
            continue
        groups = np.lib.stride_tricks.sliding_window_view(row, size)
        ends = groups[(groups[:, :-1] == row[row.size - size + 1 :]).all(axis=1), -1]
        wrong = ends[(ends < 0) | (ends >= into.size)]
        if wrong.size:
            raise RunError(
                "BT-REPEATS-TOKEN", f"token {int(wrong[0])} has no score among {into.size}", place=step.place
            )
        into[ends] = -np.inf
    return [out]


OPERATOR = Operator("ban_repeats", (), infer, lower, reference, "scores without those of repeated groups of tokens")
