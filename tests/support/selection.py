"""What the tests of selection and placement operators share: operands that are constants or inputs, and their feeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bittrue

from .build import NUMPY, T, single
from .movement import runs_in_runtime

Case = tuple[bytes, list[list[np.ndarray]]]


def given_as(
    operator: str,
    options: tuple[str, dict[str, Any]] | None,
    operands: list[tuple[str, np.ndarray]],
    outputs: list[str],
    constants: int = 0,
    version: int = 1,
    scale: float | None = None,
) -> Case:
    """A model of one operator from typed values; bit i of `constants` makes operand i a constant."""
    inputs, feed = [], []
    for position, (dtype, value) in enumerate(operands):
        array = np.asarray(value).astype(NUMPY[dtype])
        # An empty buffer reads as no constant at all.
        constant = constants >> position & 1 and array.size
        inputs.append(T(dtype, array.shape, scale, data=array if constant else None))
        if not constant:
            feed.append(array)
    return single(operator, options, inputs, [T(dtype, (), scale) for dtype in outputs], version=version), [feed]


def refused_by_both(case: Case, code: str) -> None:
    """Both bittrue (with this code) and the runtime refuse, when planning or when running."""
    content, (feed,) = case
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare().run(*feed)
    assert caught.value.code == code
    assert not runs_in_runtime(content, feed)


def refused(case: Case, code: str) -> None:
    """Refused here because the runtime's result is undefined; the runtime is not asked."""
    content, (feed,) = case
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare().run(*feed)
    assert caught.value.code == code
