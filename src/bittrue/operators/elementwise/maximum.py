"""maximum and minimum: of the quantized values, whatever their scales say; slot `extreme`: what becomes of NaN."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import zip_longest

import numpy as np

from ...graph import Attribute
from ...rules import extreme
from ..core.base import Call, Lowered, Operator, Shape, Step, broadcast_shape
from ..core.elementwise import blockwise


def _together(first: Shape, second: Shape) -> tuple[int, bool]:
    """How many neighbouring results are worked on at once, and whether the first operand is one element for them.

    They reach over the last axes in which either operand is broadcast as it is in the last one. Axes of one element in
    both count where only one operand has them.
    """
    shared, sizes = min(len(first), len(second)), list(zip_longest(first[::-1], second[::-1], fillvalue=1))
    last = max(shared - 1, 0)
    start = next((i for i, pair in enumerate(sizes[:last]) if pair != (1, 1)), last)
    single = [size == 1 for size in sizes[start]] if sizes else [True, True]
    counts = []
    for side in range(2):
        count = max(sizes[start]) if sizes else 1
        for i, pair in enumerate(sizes[start + 1 :], start + 1):
            if pair == (1, 1) and i < shared:
                continue
            if (pair[side] == 1) != single[side]:
                break
            count *= max(pair)
        counts.append(count)
    return min(counts), single[0]


def _first_is_repeated(first: Shape, second: Shape) -> bool:
    """Whether the first operand is repeated along the last axis that has more than one element; one element is."""
    sizes = zip_longest(first[::-1], second[::-1], fillvalue=1)
    return next((one == 1 for one, other in sizes if (one, other) != (1, 1)), True)


def lower(call: Call) -> Lowered:
    """Whether operands change places, and for vectors how many results are worked on at once: by the rule."""
    rule = extreme.RULES.get(call.rules.get("extreme", ""))
    shapes = call.input(0).shape, call.input(1).shape
    together, single = _together(*shapes)
    more: dict[str, Attribute] = {"together": together} if rule is not None and rule.in_vectors else {}
    exchanged = rule is not None and (
        (rule.exchanges and single) or (rule.exchanges_repeated and _first_is_repeated(*shapes))
    )
    return Lowered({"exchanged": exchanged, **more})


def _in_vectors(size: int, together: int, lanes: int) -> np.ndarray:
    """Which results lie in whole vectors, which begin at multiples of `lanes`, among those worked on at once."""
    place = np.arange(size)
    begin = place - place % together
    first = -(-begin // lanes) * lanes
    return (place >= first) & (place < first + (begin + together - first) // lanes * lanes)


def _choose(comparison: Callable[[np.ndarray, np.ndarray], np.ndarray], sign: int) -> Callable[..., list[np.ndarray]]:
    """`first if comparison(first, second) else second` without a rule: a NaN, or two equal zeros, give the second."""

    def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        first, second = inputs[::-1] if step["exchanged"] else inputs
        rule = extreme.RULES[step.rules["extreme"]] if "extreme" in step.rules else None
        marks: list[np.ndarray] = []
        if rule is not None and rule.in_vectors:
            shape = np.broadcast_shapes(first.shape, second.shape)
            marks = [_in_vectors(math.prod(shape), step["together"], 16 // first.itemsize).reshape(shape)]

        def block(a: np.ndarray, b: np.ndarray, *marked: np.ndarray) -> np.ndarray:
            if rule is not None:
                return rule.apply(np.stack([a, b], axis=1), sign, *(mark != 0 for mark in marked))
            with np.errstate(invalid="ignore"):
                return np.where(comparison(a, b), a, b)

        return [blockwise(block, [first, second, *marks], first.dtype, first.dtype)]

    return reference


def _operator(stem: str, comparison: Callable[[np.ndarray, np.ndarray], np.ndarray], sign: int, word: str) -> Operator:
    reference = _choose(comparison, sign)
    other = "minimum" if sign > 0 else "maximum"
    return Operator(
        stem,
        ("extreme",),
        broadcast_shape,
        lower,
        reference,
        f"the {word} of two elements",
        elementwise=2,
        compares=True,
        largest=sign > 0,
        commutes=True,
        mistaken_for=(other, "add", "mul", "sub"),
    )


OPERATORS = (_operator("maximum", np.greater, 1, "larger"), _operator("minimum", np.less, -1, "smaller"))
