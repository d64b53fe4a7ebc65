"""Sums of two tensors of quantized values that are stored as real numbers or in 8 bits; scales are binary64 operands.

The slot `level_sum` adds in integers, element by element; `levels` adds real numbers and quantizes the sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import DATA_TYPES
from ...rules import level_sum, levels
from ..core.base import Call, Lowered, Shape, Step
from ..core.elementwise import blockwise
from ..core.roles import OPERAND_PAIR
from ..quantization.level_storage import check, limits, pair, scales_of, store, stored_blocks, undefined


def infer_equal_counts(call: Call) -> list[Shape]:
    """The first shape; the second tensor has as many elements."""
    first, second = call.input(0), call.input(1)
    if first.size != second.size or [e for e in first.shape if e != 1] != [e for e in second.shape if e != 1]:
        raise call.unsupported(
            "BT-SHAPE-BROADCAST",
            f"shapes {list(first.shape)} and {list(second.shape)}: a quantized sum does not broadcast",
            "the runtime reads past the end of the smaller tensor; give both the same shape",
        )
    return [first.shape]


def lower(call: Call) -> Lowered:
    """What the rule makes of scales and zero points."""
    parameters = {**limits(call), **scales_of(call, OPERAND_PAIR), "form": "stored values"}
    if "levels" in call.rules:
        return Lowered(parameters, inputs=(0, 1))
    rule, pairs = level_sum.RULES[call.rules["level_sum"]], [pair(parameters, n) for n in ("first", "second", "output")]
    return Lowered(parameters, check(call, lambda: rule.prepare(*pairs)), inputs=(0, 1))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule, block by block."""
    if "levels" in step.rules:
        return [_of_reals(step, *inputs)]
    return [_of_integers(step, inputs[0], inputs[1].reshape(inputs[0].shape))]


def _of_reals(step: Step, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    rule = levels.RULES[step.rules["levels"]]

    def apply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            total = levels.real(a, *pair(step, "first")) + levels.real(b, *pair(step, "second"))
            return rule.apply(total, *pair(step, "output"))

    return stored_blocks(apply, [first, second], step.parameters, step.place)


def _of_integers(step: Step, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    rule, dtype = level_sum.RULES[step.rules["level_sum"]], DATA_TYPES[step["dtype"]].numpy
    real = "f" in (first.dtype.kind, second.dtype.kind)

    def apply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return store(rule.apply(a, b, step.arrays), step["low"], step["high"], dtype, step.place)

    try:
        return blockwise(apply, [first, second], dtype, np.dtype(np.float32 if real else np.int64))
    except ValueError as error:
        raise undefined(str(error), step.place) from None
