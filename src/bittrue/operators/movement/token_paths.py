"""append_verified and warped_path: tokens that a source agrees with, and the cheapest way through a matrix of costs.

append_verified: source tokens [S], tokens so far [T], where in the source the last match was [1], perhaps predicted
tokens: those up to the first one that the source does not have there are appended. The second result is where the
source goes on behind the longest run of last tokens, of `least` to `most`, that is found in it once; -1 without any.

warped_path: costs [M, N] or [1, M, N] to rows and columns [2, length] of the way from the first element to the last
one, each step one row down, one column on, or both. A step along a row is taken unless another one is cheaper than both
others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ..core.base import Call, Lowered, Operator, Shape, Step


def infer_verified(call: Call) -> list[Shape]:
    """Without predictions nothing is appended; else values decide."""
    call.expect((3, 4), 2)
    for position in (0, 1, *((3,) if call.has(3) else ())):
        call.rank(call.input(position), 1)
    least, most = int(call.attribute("least")), int(call.attribute("most"))
    if not 1 <= least <= most or not call.input(2).size:
        raise call.invalid("BT-VERIFIED", f"runs of {least} to {most} tokens behind {call.input(2).size} places")
    return [(-1,) if call.has(3) else call.input(1).shape, call.input(2).shape]


def lower_verified(call: Call) -> Lowered:
    """The lengths of runs."""
    work = call.input(0).size * (1 + min(int(call.attribute("most")), call.input(0).size))
    return Lowered({name: int(call.attribute(name)) for name in ("least", "most")}, work=work, scratch=64 * work)


def _first(source: np.ndarray, run: np.ndarray) -> int:
    """Where a run begins in a row first; -1 for nowhere."""
    if run.size > source.size:
        return -1
    found = np.flatnonzero((np.lib.stride_tricks.sliding_window_view(source, run.size) == run).all(axis=1))
    return int(found[0]) if found.size else -1


def _behind_match(source: np.ndarray, tokens: np.ndarray, least: int, most: int) -> int:
    """Runs become longer as long as they are found; one that ends with the source ends the search."""
    behind = -1
    for size in range(least, min(most, tokens.size) + 1):
        run = tokens[tokens.size - size :]
        begin = _first(source, run)
        if begin < 0:
            break
        behind = begin + size
        if behind >= source.size:
            break
        if _first(source[begin + 1 :], run) >= 0:
            behind = -1
    return behind


def reference_verified(step: Step, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """Predictions are one more than what the source has left."""
    source, tokens, place, predicted = (*inputs, None)[:4]
    assert source is not None
    assert tokens is not None
    assert place is not None
    if predicted is not None:
        begin = int(place.reshape(-1)[0])
        left = source.size - begin
        if begin < 0 or left < 0 or predicted.size != left + 1:
            raise RunError(
                "BT-VERIFIED",
                f"{predicted.size} predictions behind place {begin} of {source.size} tokens",
                place=step.place,
            )
        wrong = np.flatnonzero(predicted[:left] != source[begin:])
        tokens = np.concatenate([tokens, predicted[: (int(wrong[0]) if wrong.size else left) + 1]])
    behind = place.copy()
    behind.reshape(-1)[0] = _behind_match(source, tokens, step["least"], step["most"])
    return [tokens.copy(), behind]


def infer_path(call: Call) -> list[Shape]:
    """The length is in the values."""
    call.expect(1)
    costs = call.input(0)
    call.rank(costs, 2, 3)
    if costs.rank == 3 and costs.shape[0] != 1:
        raise call.invalid("BT-WARPED-PATH", f"costs {list(costs.shape)} are of several matrices")
    return [(2, -1)]


def lower_path(call: Call) -> Lowered:
    """Nothing but what it costs."""
    return Lowered(work=call.input(0).size, scratch=32 * (call.input(0).size + sum(call.input(0).shape) + 1))


def reference_path(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sums from the first element on, diagonal by diagonal; then the way back."""
    costs: np.ndarray = inputs[0].reshape(inputs[0].shape[-2:])
    rows, columns = costs.shape
    best = np.full((rows + 1, columns + 1), np.inf, np.float32)
    best[0, 0] = 0
    came = np.zeros(best.shape, np.int8)
    with np.errstate(all="ignore"):
        for diagonal in range(2, rows + columns + 1):
            i = np.arange(max(1, diagonal - columns), min(rows, diagonal - 1) + 1)
            j = diagonal - i
            both, down, along = best[i - 1, j - 1], best[i - 1, j], best[i, j - 1]
            taken = np.where((both < down) & (both < along), 0, np.where((down < both) & (down < along), 1, 2))
            came[i, j] = taken
            best[i, j] = np.choose(taken, [both, down, along]) + costs[i - 1, j - 1]
    way = []
    row, column = rows, columns
    while row > 0 and column > 0:
        way.append((row - 1, column - 1))
        step_back = came[row, column]
        row, column = row - (step_back != 2), column - (step_back != 1)
    return [np.array(way[::-1], np.int32).reshape(-1, 2).T.copy()]


OPERATORS = (
    Operator(
        "append_verified", (), infer_verified, lower_verified, reference_verified, "tokens that a source agrees with"
    ),
    Operator("warped_path", (), infer_path, lower_path, reference_path, "the cheapest way through a matrix"),
)
