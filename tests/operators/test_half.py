"""Element-wise operators on binary16 and bfloat16 against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.build import NUMPY, T, single
from support.differential import check
from support.elementwise import broadcast_shapes
from support.strategies import activations, seeds
from support.unary import reals

COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
ARITHMETIC = {"ADD": "AddOptions", "MUL": "MulOptions"}
CASES = [
    *((operator, "f16") for operator in (*COMPARISONS, "MAXIMUM", "MINIMUM", "ADD", "MUL")),
    *((operator, "bf16") for operator in ("GREATER", "LESS", "MAXIMUM", "MINIMUM")),
]


@pytest.mark.in_turns(2)
@given(
    shapes=broadcast_shapes(), seed=seeds, activation=activations, nan=st.booleans(), step=st.sampled_from([0.5, 9.0])
)
@pytest.mark.parametrize(("operator", "dtype"), CASES)
def test_two_halves(
    operator: str,
    dtype: str,
    shapes: tuple[tuple[int, ...], ...],
    seed: int,
    activation: int,
    nan: bool,
    step: float,
) -> None:
    first, second = (reals(seed + i, shape, step, NUMPY[dtype]) for i, shape in enumerate(shapes))
    second = np.where(np.isnan(second), NUMPY[dtype](1), second).astype(NUMPY[dtype])
    if not nan:
        first = np.where(np.isnan(first), NUMPY[dtype](1), first).astype(NUMPY[dtype])
    options = None
    if operator in ARITHMETIC:
        options = (ARITHMETIC[operator], {"fusedActivationFunction": activation})
    target = T("bool" if operator in COMPARISONS else dtype, ())
    content = single(operator, options, [T(dtype, shape) for shape in shapes], [target])
    check(content, [[first.reshape(shapes[0]), second.reshape(shapes[1])]])
