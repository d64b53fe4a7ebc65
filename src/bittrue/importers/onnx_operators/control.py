"""Mappings of If and Loop: values of the graph around a called graph become inputs of it."""

from __future__ import annotations

import numpy as np

from .base import Mappers, Source

_ENDLESS = 2**63 - 1


def _if(source: Source) -> None:
    called = source.called("then_branch", "else_branch", inputs=0)
    attributes = {"then_graph": called.numbers[0], "else_graph": called.numbers[1], "plans_both": False}
    source.emit("if", called.types[0], attributes, inputs=[*source.inputs[:1], *called.outside])


def _loop(source: Source) -> None:
    """The body gets (round, condition, values, outside) and returns (condition, condition, values, outside, slices)."""
    carried = source.inputs[2:]
    if None in carried:
        raise source.invalid("BT-NODE-INPUT", "values that a loop carries may not be missing")
    count = len(carried)

    def arrange(outputs: list[int], outside: list[int]) -> list[int]:
        # Repeating the condition puts every value at the place of the input that it is in the next round.
        return [outputs[0], *outputs[: 1 + count], *outside, *outputs[1 + count :]]

    called = source.called("body", inputs=2 + count, arrange=arrange)
    rounds = source.inputs[0] if source.present(0) else source.constant(np.array(_ENDLESS, np.int64), "rounds")
    going = source.inputs[1] if source.present(1) else source.constant(np.array(True), "condition")
    (types,) = called.types
    kept = types[2 : 2 + count]
    slices = types[2 + count + len(called.outside) :]
    attributes = {"body_graph": called.numbers[0], "carried": count}
    source.emit("loop", (*kept, *slices), attributes, inputs=[rounds, going, *carried, *called.outside])


MAPPERS: Mappers = {
    ("", "If"): _if,
    ("", "Loop"): _loop,
}
