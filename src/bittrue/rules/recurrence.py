"""Slot `recurrence`: gates of recurrent layers on real numbers, in binary32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from ..arithmetic import elementary, fused_polynomials, rounded_functions
from ..arithmetic.correct_rounding import fraction, settle
from ..arithmetic.floats import fused_multiply_add as fma
from ..arithmetic.fused import polynomial
from ..records import dataclass, replace

# (x, alpha, beta)
Function = Callable[[np.ndarray, float, float], np.ndarray]
_f32 = np.float32
_ONE, _ZERO = _f32(1), _f32(0)


@dataclass(frozen=True, eq=False)
class RecurrenceRule:
    """How gates are computed from sums of products.

    Attributes:
        joined: all products and biases that enter a gate make one sum; else the products with all inputs come first,
            those with the hidden state and with a cell are added, then the sum of both biases.
        functions: of gates, by lower-case name.
        cell, reset, candidate: where the function of a cell, of a reset gate and of a candidate state is another one.
        whole_layer: the same for layers without gates.
        products: (a, b, c, d) to a b + c d.
        add_product: (sum, a, b) to sum + a b.
        blend: (z, n, h) to (1 - z) n + z h.
        limit: (x, threshold, whether a bias was added) to x limited to -threshold..threshold; 0 stands for no
            threshold.
    """

    joined: bool
    functions: Mapping[str, Function]
    cell: Mapping[str, Function]
    reset: Mapping[str, Function]
    candidate: Mapping[str, Function]
    whole_layer: Mapping[str, Function]
    products: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    add_product: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    blend: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    limit: Callable[[np.ndarray, float, bool], np.ndarray]
    formula: str
    source: str


def _logistic(x: np.ndarray) -> np.ndarray:
    """By the exponential of -|x|, every operation rounded; NaN keeps its sign."""
    power = elementary.exp(np.where(x >= 0, -x, x))
    return np.where(x >= 0, _ONE, power) / (_ONE + power)


def _scaled_tanh(x: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    return _f32(alpha) * (_f32(2) * _logistic(_f32(2) * (_f32(beta) * x)) - _ONE)


def _hard_sigmoid(x: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    line = _f32(alpha) * x + _f32(beta)
    raised = np.where(line > 0, line, _ZERO)
    return np.where(raised < 1, raised, _ONE)


def _softplus(x: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    return elementary.log(_ONE + elementary.exp(x))


_SINGLE: dict[str, Function] = {
    "affine": lambda x, alpha, beta: _f32(alpha) * x + _f32(beta),
    "elu": lambda x, alpha, beta: np.where(x >= 0, x, _f32(alpha) * (elementary.exp(x) - _ONE)),
    "hardsigmoid": _hard_sigmoid,
    "leakyrelu": lambda x, alpha, beta: np.where(x >= 0, x, _f32(alpha) * x),
    "relu": lambda x, alpha, beta: np.where(x > 0, x, _ZERO),
    "scaledtanh": _scaled_tanh,
    "softplus": _softplus,
    "softsign": lambda x, alpha, beta: x / (_ONE + np.abs(x)),
    "thresholdedrelu": lambda x, alpha, beta: np.where(x > _f32(alpha), x, _ZERO),
}
_CELL: dict[str, Function] = {
    **_SINGLE,
    "sigmoid": lambda x, alpha, beta: fused_polynomials.logistic(x),
    "tanh": lambda x, alpha, beta: fused_polynomials.tanh(x),
}
# A vector maximum keeps NaN and -0.
_GATES: dict[str, Function] = {**_CELL, "relu": lambda x, alpha, beta: np.where(x < 0, _ZERO, x)}
_ODD = tuple(_f32(v) for v in (
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05,
    6.37261928875436e-04, 4.89352455891786e-03,
))  # fmt: skip
_EVEN = tuple(_f32(v) for v in (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03))


def _quotient(x: np.ndarray) -> np.ndarray:
    """x P(x^2) / Q(x^2), every operation rounded."""
    square = x * x
    sums = []
    for coefficients in (_ODD, _EVEN):
        total: np.ndarray = np.full_like(x, coefficients[0])
        for c in coefficients[1:]:
            total = square * total + c
        sums.append(total)
    return np.asarray(x * sums[0] / sums[1])


def _within(x: np.ndarray, bound: float) -> np.ndarray:
    return np.where(x < -bound, _f32(-bound), np.where(x > bound, _f32(bound), x))


def _tanh_by_quotient(x: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    return _quotient(_within(x, 10))


def _sigmoid_by_quotient(x: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    return _f32(0.5) * (_ONE + _quotient(_f32(0.5) * _within(x, 20)))


def _fused_line(x: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    return fma(_f32(alpha), x, _f32(beta))


def _quotient_of_fused(x: np.ndarray) -> np.ndarray:
    square = x * x
    return np.asarray(x * polynomial(square, _ODD) / polynomial(square, _EVEN))


_MERGED: dict[str, Function] = {**_SINGLE, "sigmoid": _sigmoid_by_quotient, "tanh": _tanh_by_quotient}
_JOINED: dict[str, Function] = {
    "affine": _fused_line,
    "hardsigmoid": lambda x, alpha, beta: _hard_sigmoid(_fused_line(x, alpha, beta), 1, 0),
}
_MERGED_JOINED: dict[str, Function] = {
    **_MERGED,
    **_JOINED,
    "sigmoid": lambda x, alpha, beta: _f32(0.5) * (_ONE + _quotient_of_fused(_f32(0.5) * _within(x, 20))),
    "tanh": lambda x, alpha, beta: _quotient_of_fused(_within(x, 10)),
}
_WHOLE: dict[str, Function] = {
    **_SINGLE,
    "sigmoid": lambda x, alpha, beta: _logistic(x),
    "tanh": lambda x, alpha, beta: _f32(2) * _logistic(_f32(2) * x) - _ONE,
}


def _rounded_products(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    return np.asarray(a * b + c * d)


def _add_rounded_product(total: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(total + a * b)


def _rounded_blend(z: np.ndarray, n: np.ndarray, h: np.ndarray) -> np.ndarray:
    return np.asarray((_ONE - z) * n + z * h)


def _products_joined(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The second product is rounded, then the first one and the sum at once.

    >>> _products_joined(*(np.float32([v]) for v in (1 + 2.0**-12, 1 + 2.0**-12, -1, 1 + 2.0**-11))).tolist()
    [5.960464477539063e-08]
    """
    return fma(a, b, c * d)


def _limit(x: np.ndarray, threshold: float, biased: bool) -> np.ndarray:
    """NaN becomes the threshold behind a bias, else it stays. Without a threshold it is the largest number."""
    high = _f32(threshold) if threshold else np.finfo(np.float32).max
    low = -high
    below = np.where(x < high, x, high) if biased else np.where(x > high, high, x)
    return np.where(below < low, low, below)


def _products_once(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """One rounding.

    >>> _products_once(*(np.float32([v]) for v in (1 + 2.0**-12, 1 + 2.0**-12, -1, 1 + 2.0**-11))).tolist()
    [5.960464477539063e-08]
    """
    arrays = [np.asarray(x, np.float64).reshape(-1) for x in np.broadcast_arrays(a, b, c, d)]
    with np.errstate(all="ignore"):
        first, second = arrays[0] * arrays[1], arrays[2] * arrays[3]
        value = first + second
        error = np.where(np.isfinite(value), (np.abs(first) + np.abs(second)) * 2.0**-52, 0)

    def exact(place: int) -> Fraction:
        one, two, three, four = (fraction(x[place]) for x in arrays)
        return one * two + three * four

    return settle(value, error, exact).reshape(np.shape(a))


def _blend_once(z: np.ndarray, n: np.ndarray, h: np.ndarray) -> np.ndarray:
    arrays = [np.asarray(x, np.float64).reshape(-1) for x in (z, n, h)]
    first, second = (1 - arrays[0]) * arrays[1], arrays[0] * arrays[2]
    value = first + second
    error = np.where(np.isfinite(value), (np.abs(first) + np.abs(second)) * 2.0**-51, 0)

    def exact(place: int) -> Fraction:
        one, two, three = (fraction(x[place]) for x in arrays)
        return (1 - one) * two + one * three

    return settle(value, error, exact).reshape(z.shape)


def _clamped(x: np.ndarray, threshold: float, biased: bool) -> np.ndarray:
    return np.clip(x, _f32(-threshold), _f32(threshold)) if threshold else x


def _once(name: str, *parameters: str) -> Function:
    """A function of arithmetic/rounded_functions, with alpha and beta under its own names."""
    function = rounded_functions.FUNCTIONS[name]

    def apply(x: np.ndarray, alpha: float, beta: float) -> np.ndarray:
        return function(x, **dict(zip(parameters, (alpha, beta), strict=False)))

    return apply


def _line_once(x: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    return _products_once(np.full_like(x, alpha), x, np.ones_like(x), np.full_like(x, beta))


def _scaled_once(x: np.ndarray, alpha: float) -> np.ndarray:
    """The product of two binary32 numbers fits binary64."""
    return np.asarray((np.float64(alpha) * x).astype(np.float32))


_ROUNDED: dict[str, Function] = {
    "affine": _line_once,
    "elu": _once("parametric_elu", "alpha"),
    "hardsigmoid": _once("hard_sigmoid", "alpha", "beta"),
    "leakyrelu": lambda x, alpha, beta: np.where(x >= 0, x, _scaled_once(x, alpha)),
    "relu": _SINGLE["relu"],
    "sigmoid": _once("logistic"),
    "softplus": _once("softplus"),
    "softsign": _once("softsign"),
    "tanh": _once("tanh"),
    "thresholdedrelu": lambda x, alpha, beta: np.where(x > _f32(alpha), x, _ZERO),
}

_SEPARATE = RecurrenceRule(
    False,
    _GATES,
    _CELL,
    _MERGED,
    _MERGED,
    _WHOLE,
    _rounded_products,
    _add_rounded_product,
    _rounded_blend,
    _limit,
    "every operation rounded; sigmoid and tanh of arithmetic/fused_polynomials, the others by the C library's "
    "exponential and logarithm",
    "a library of recurrent kernels for x86-64, read; verified by running",
)
RULES: dict[str, RecurrenceRule] = {
    "binary32_polynomials": _SEPARATE,
    "binary32_polynomials_joined": replace(
        _SEPARATE,
        functions={**_GATES, **_JOINED},
        cell={**_CELL, **_JOINED},
        reset=_MERGED_JOINED,
        candidate=_MERGED_JOINED,
        whole_layer={**_WHOLE, **_JOINED},
        products=_products_joined,
        add_product=lambda total, a, b: fma(a, b, total),
        blend=lambda z, n, h: fma(_ONE - z, n, z * h),
        formula="the same with products and sums rounded once where one meets the other; of two products that are "
        "added up the second one is rounded",
        source="the same library as compilers for aarch64 join its operations; verified by running",
    ),
    "rounded_once": RecurrenceRule(
        True,
        *(_ROUNDED,) * 5,
        _products_once,
        lambda total, a, b: _products_once(a, b, np.ones_like(total), total),
        _blend_once,
        _clamped,
        "the sum that enters a gate, the gate's function, each sum of two products and each product, rounded once",
        "the definition of correct rounding, applied to the layer's equations one by one",
    ),
}
