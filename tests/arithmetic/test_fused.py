"""fused: against binary64 mathematics within each function's bound, and what becomes of special numbers.

Bits are compared with the runtime in tests/operators; here stands what no table of constants may break.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from bittrue.arithmetic import fused

_erf = np.vectorize(math.erf)
# Function, what it approximates, the range that is tried, and its largest error in units of the last place.
CASES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray], float, float]] = {
    "tanh": (fused.tanh, np.tanh, 10, 5),
    "exp": (fused.exp, np.exp, 1, 3),
    "exp_on_negative": (lambda x: fused.exp_on_negative(-np.abs(x)), lambda x: np.exp(-np.abs(x)), 80, 3),
    "exp_on_negative_of_64ths": (
        lambda x: fused.exp_on_negative_of_64ths(-np.abs(x)),
        lambda x: np.exp(-np.abs(x)),
        80,
        5,
    ),
    "logistic_of_64ths": (fused.logistic_of_64ths, lambda x: 1 / (1 + np.exp(-x)), 10, 5),
    "elu_of_16ths": (fused.elu_of_16ths, lambda x: np.where(x < 0, np.expm1(x), x), 30, 4),
    "log": (lambda x: fused.log(np.abs(x)), lambda x: np.log(np.abs(x)), 0.5, 3),
    "sin": (fused.sin, np.sin, 1.5, 3),
    "cos": (fused.cos, np.cos, 1, 5),
    "logistic": (fused.logistic, lambda x: 1 / (1 + np.exp(-x)), 80, 3),
    "logistic_by_exponent": (fused.logistic_by_exponent, lambda x: 1 / (1 + np.exp(-x)), 10, 4),
    "elu_by_exponent": (fused.elu_by_exponent, lambda x: np.where(x < 0, np.expm1(x), x), 30, 3),
    "log_by_exponent": (lambda x: fused.log_by_exponent(np.abs(x)), lambda x: np.log(np.abs(x)), 0.5, 3),
    "elu": (fused.elu, lambda x: np.where(x < 0, np.expm1(x), x), 30, 3),
    "gelu": (lambda x: fused.gelu(x, False), lambda x: x / 2 * (1 + _erf(x / math.sqrt(2))), 1, 8),
    "hard_swish": (fused.hard_swish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1), 2, 4),
    "neg": (fused.neg, np.negative, 1e30, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_close_to_binary64(name: str) -> None:
    function, exact, reach, units = CASES[name]
    x = (np.random.default_rng(1).uniform(-1, 1, 20_000) * reach).astype(np.float32)
    expected = exact(x.astype(np.float64))
    error = np.abs(function(x).astype(np.float64) - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert error.max() <= units


SPECIAL = np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40])
NAN = "nan"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tanh", [NAN, 1.0, -1.0, 0.0, -0.0, 0.0]),
        ("exp", [0.0, math.inf, 0.0, 1.0, 1.0, 1.0]),
        ("log", [NAN, math.inf, NAN, -math.inf, -math.inf, -math.inf]),
        ("sin", [NAN, NAN, NAN, 0.0, 0.0, 0.0]),
        ("logistic", [NAN, 1.0, 0.0, 0.5, 0.5, 0.5]),
        ("elu", [NAN, math.inf, -1.0, 0.0, -0.0, 0.0]),
        # The exponent's bits of infinity and NaN count as 128.
        ("log_by_exponent", [88.78173065185547, 88.37626647949219, NAN, -math.inf, -math.inf, -math.inf]),
        ("logistic_by_exponent", [NAN, 1.0, 0.0, 0.5, 0.5, 0.5]),
        ("elu_by_exponent", [NAN, math.inf, -1.0, 0.0, 0.0, 0.0]),
        ("logistic_of_64ths", [NAN, 1.0, 0.0, 0.5, 0.5, 0.5]),
        ("elu_of_16ths", [NAN, math.inf, -1.0, 0.0, -0.0, 0.0]),
        ("hard_swish", [NAN, math.inf, NAN, 0.0, -0.0, 0.0]),
        ("neg", [NAN, -math.inf, math.inf, 0.0, 0.0, 0.0]),
    ],
)
def test_special_numbers(name: str, expected: list[object]) -> None:
    found = [NAN if math.isnan(v) else v for v in getattr(fused, name)(SPECIAL).tolist()]
    assert [(v, math.copysign(1, v) if v != NAN else 0) for v in found] == [
        (v, math.copysign(1, v) if v != NAN else 0)  # type: ignore[arg-type]
        for v in expected
    ]


def test_functions_by_exponent_are_told_apart() -> None:
    """Numbers at which polynomials of other degrees round otherwise."""
    x = np.random.default_rng(3).standard_normal(1000).astype(np.float32)
    for name, least in (("logistic", 200), ("elu", 50)):
        found = getattr(fused, name)(x) != getattr(fused, f"{name}_by_exponent")(x)
        assert least < np.count_nonzero(found) < 500, name
    three = [f(x).tobytes() for f in (fused.elu, fused.elu_by_exponent, fused.elu_of_16ths)]
    assert len({*three}) == 3
    assert (fused.log(np.abs(x)) == fused.log_by_exponent(np.abs(x))).all()


def test_shapes_stay_and_scalars_are_taken() -> None:
    assert fused.tanh(np.zeros((2, 0, 3))).shape == (2, 0, 3)
    assert fused.logistic(0.0) == 0.5
