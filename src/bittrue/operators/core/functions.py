"""Functions of real numbers that operators stand for, whatever arithmetic rules approximate them with.

They serve explanations and wrong devices, which ask `Operator.function` and not for an operator's name; results never
come from here. Each works in the type of its arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .base import Function, Step

Array = np.ndarray
_Change = Callable[[Array], Array]


def _same(x: Array) -> Array:
    return x


def shares(x: Array) -> Array:
    """Every exponential over the sum of those along the last axis."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def log_shares(x: Array) -> Array:
    """The logarithms of `shares`.

    >>> log_shares(np.float32([1000, 0])).tolist()
    [0.0, -1000.0]
    """
    apart = x - x.max(-1, keepdims=True)
    return np.asarray(apart - np.log(np.exp(apart).sum(-1, keepdims=True)))


def of_length_one(x: Array) -> Array:
    """Rows along the last axis over their lengths; rows of zeros stay."""
    squares = (x * x).sum(-1, keepdims=True)
    return np.where(squares > 0, x / np.sqrt(np.where(squares > 0, squares, 1)), 0)


def _weights_of(step: Step, side: str) -> Array:
    """What the higher one of two positions counts, between 0 and 1."""
    arrays = step.arrays
    weights = arrays[f"weight_{side}"] if f"weight_{side}" in arrays else arrays[f"weight_high_{side}"]
    if weights.dtype.kind == "f":
        return weights
    return weights / (2048 if step.rules.get("interpolate", "").startswith("eleven") else 1024)


def blended(step: Step, x: Array, whole: _Change = _same, between: _Change = _same) -> Array:
    """Images between their pixels, by the step's own positions and weights.

    The weights are changed by `whole`, and rows by `between` before they are blended.
    """
    first, arrays = step["first_axis"], step.arrays
    x = x.reshape(-1, *x.shape[first : first + 2], math.prod(x.shape[first + 2 :]))
    down, across = (whole(_weights_of(step, side).astype(x.dtype)) for side in "yx")
    across, down = across[:, None], down[:, None, None]
    lines = []
    for side in ("low", "high"):
        line = x[:, arrays[f"{side}_y"]]
        lines.append(between(line[:, :, arrays["low_x"]] * (1 - across) + line[:, :, arrays["high_x"]] * across))
    return np.asarray(lines[0] * (1 - down) + lines[1] * down)


def _elu(step: Step, x: Array) -> Array:
    return np.where(x >= 0, x, np.expm1(x))


def _gelu(step: Step, x: Array) -> Array:
    return np.asarray(x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))) / 2)


LOGISTIC = Function("1 / (1 + exp(-x))", lambda step, x: 1 / (1 + np.exp(-x)))
TANH = Function("tanh(x)", lambda step, x: np.tanh(x))
EXP = Function("exp(x)", lambda step, x: np.exp(x))
LOG = Function("log(x)", lambda step, x: np.log(x))
ELU = Function("x or exp(x) - 1", _elu)
HARD_SWISH = Function("x * clamp(x / 6 + 1/2, 0, 1)", lambda step, x: x * np.clip(x / 6 + 0.5, 0, 1))
INVERSE_ROOT = Function("1 / sqrt(x)", lambda step, x: 1 / np.sqrt(x))
GELU = Function("x * (1 + erf(x / sqrt(2))) / 2", _gelu)
IDENTITY = Function("x", lambda step, x: x)
SOFTMAX = Function("exp(x) / sum of exp(x)", lambda step, x: shares(x))
LOG_SOFTMAX = Function("log(exp(x) / sum of exp(x))", lambda step, x: log_shares(x))
LENGTH_ONE = Function("x / sqrt(sum of x^2)", lambda step, x: of_length_one(x))
SUM = Function("sum of x", lambda step, x: x.sum(axis=tuple(step["axes"])))
MEAN = Function("mean of x", lambda step, x: x.mean(axis=tuple(step["axes"])))
BILINEAR = Function("x between four pixels", blended)
