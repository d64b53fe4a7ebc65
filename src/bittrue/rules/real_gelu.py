"""Slot `real_gelu`: x times the normal distribution function of x, for tensors of real numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..arithmetic import (
    elementary,
    flushed_half_functions,
    fused,
    fused_polynomials,
    half_functions,
    rational,
    rounded_functions,
    short_functions,
)
from ..arithmetic.floats import fused_multiply_add as fma
from ..arithmetic.reciprocal_estimate import refined
from ..records import dataclass

# Elements that the vector form takes at a time; blocks given to a rule begin at a multiple of it.
LANES = 4


@dataclass(frozen=True, eq=False)
class RealGeluRule:
    """`apply(x, approximate)` for a vector of binary32 or binary16 that ends where the tensor ends, or after a multiple
    of LANES; the result has its type.
    """

    apply: Callable[[np.ndarray, bool], np.ndarray]
    formula: str
    source: str


def _rounded_once(x: np.ndarray, approximate: bool) -> np.ndarray:
    return rounded_functions.FUNCTIONS["gelu_tanh" if approximate else "gelu"](x)


_HALF, _ONE = np.float32(0.5), np.float32(1)
_ROOT_OF_HALF = np.float32(0.7071067811865476)
_ROOT_OF_TWO_OVER_PI = np.float32(0.7978845608028654)


def _one_by_one(x: np.ndarray, approximate: bool) -> np.ndarray:
    """Every operation rounded to binary16, which is what NumPy does."""
    half, one, root = x.dtype.type(0.5), x.dtype.type(1), x.dtype.type(_ROOT_OF_HALF)
    if approximate:
        inner = x.dtype.type(_ROOT_OF_TWO_OVER_PI) * (x + x.dtype.type(0.044715) * (x * x * x))
        return half * x * (one + elementary.tanh(inner).astype(x.dtype))
    return half * x * elementary.erfc(x * -root).astype(x.dtype)


def _lanes_4(x: np.ndarray, approximate: bool) -> np.ndarray:
    """Whole groups of four use another exponential than the rest; they differ in the last bit.

    >>> RULES["binary32_rational_lanes_4"].apply(np.float32([0, 1, -1, 3, -12]), False).tolist()
    [0.0, 0.8413447141647339, -0.15865525603294373, 2.995950222015381, -2.1317925068052168e-32]
    """
    with np.errstate(all="ignore"):
        if x.dtype == np.float16:
            return _one_by_one(x, approximate)
        if approximate:
            inner = _ROOT_OF_TWO_OVER_PI * (x + np.float32(0.044715) * (x * x * x))
            return _HALF * x * (_ONE + rational.tanh(inner))
        argument = x * -_ROOT_OF_HALF
        whole = x.size // LANES * LANES
        grouped = rational.erfc(argument[:whole], rational.exp)
        rest = rational.erfc(argument[whole:], elementary.exp)
        return _HALF * x * np.concatenate([grouped, rest])


def _fused_lanes_4(x: np.ndarray, approximate: bool) -> np.ndarray:
    """Whole groups of four have an estimated reciprocal, and another exponential than the rest.

    >>> x = np.float32([1.02])
    >>> [RULES[f"binary32_{name}_lanes_4"].apply(x, True).tolist() for name in ("rational", "fused_rational")]
    [[0.8628987669944763], [0.8628987073898315]]
    """
    with np.errstate(all="ignore"):
        if x.dtype == np.float16:
            return _one_by_one(x, approximate)
        if approximate:
            inner = _ROOT_OF_TWO_OVER_PI * (x + np.float32(0.044715) * (x * (x * x)))
            return _HALF * x * (_ONE + rational.tanh(inner, fused=True))
        argument = x * -_ROOT_OF_HALF
        whole = x.size // LANES * LANES
        grouped = rational.erfc(argument[:whole], partial(rational.exp, fused=True), True, refined)
        rest = rational.erfc(argument[whole:], elementary.exp, True)
        return _HALF * x * np.concatenate([grouped, rest])


_CUBE = np.float32(0.044715) * _ROOT_OF_TWO_OVER_PI


def _fused_polynomials(x: np.ndarray, approximate: bool) -> np.ndarray:
    """Approximately x / 2 * (tanh(x (c x x + r)) + 1), c = f32(0.044715 r), r = sqrt(2 / pi).

    >>> RULES["binary32_fused_polynomials"].apply(np.float32([0, 1, -1]), False).tolist()
    [0.0, 0.8413447141647339, -0.15865525603294373]
    """
    with np.errstate(all="ignore"):
        if approximate:
            gate = fused_polynomials.tanh(x * (_CUBE * x * x + _ROOT_OF_TWO_OVER_PI))
        else:
            gate = fused_polynomials.erf(x * _ROOT_OF_HALF)
        return np.asarray(_HALF * x * (gate + _ONE))


def _fused_polynomials_joined(x: np.ndarray, approximate: bool) -> np.ndarray:
    """c x x + r is rounded once behind the product c x.

    >>> x = np.float32([-4.140262])
    >>> [RULES[f"binary32_fused_polynomials{end}"].apply(x, True).tolist() for end in ("", "_joined")]
    [[-3.51659873558674e-05], [-3.541276601026766e-05]]
    """
    if not approximate:
        return _fused_polynomials(x, False)
    with np.errstate(all="ignore"):
        gate = fused_polynomials.tanh(x * fma(_CUBE * x, x, _ROOT_OF_TWO_OVER_PI))
        return np.asarray(_HALF * x * (gate + _ONE))


def _short(x: np.ndarray, approximate: bool, apart: bool = False) -> np.ndarray:
    """Of binary16, through binary32.

    >>> RULES["binary32_short"].apply(np.float16([0, 1, -1]), False).tolist()
    [0.0, 0.841796875, -0.158447265625]
    """
    wide = x.astype(np.float32)
    with np.errstate(all="ignore"):
        found = short_functions.gelu_by_tanh(wide, apart) if approximate else short_functions.gelu(wide)
        return np.asarray(found.astype(np.float16))


def _of_halves(x: np.ndarray, approximate: bool) -> np.ndarray:
    """Of binary16.

    >>> RULES["binary16_fused_flushed"].apply(np.float16([0, 1, -1]), False).tolist()
    [0.0, 0.841796875, -0.158447265625]
    """
    return np.asarray(flushed_half_functions.gelu(x.astype(np.float32), approximate).astype(np.float16))


RULES: dict[str, RealGeluRule] = {
    "binary32_rational_lanes_4": RealGeluRule(
        _lanes_4,
        "x / 2 * erfc(-x / sqrt 2), or x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), rational functions without "
        "fused operations",
        "the reference kernel and its linear algebra library, read and run",
    ),
    "binary32_fused_rational_lanes_4": RealGeluRule(
        _fused_lanes_4,
        "the same functions with one rounding of each product and its sum; 1 / x^2 of whole fours by an estimate of 8 "
        "bits and two steps that make it a better one",
        "the same library for aarch64, its machine code; verified by running",
    ),
    "binary32_fused": RealGeluRule(
        fused.gelu,
        "x / 2 * (1 + z P(z^2) / Q(z^2)), z = x limited, polynomials of degrees 11 and 10 of fused multiply-adds, "
        "others for the approximate form",
        "docs/facts/xnnpack.md 3.6, verified by running",
    ),
    "binary32_short": RealGeluRule(
        _short,
        "of binary16: gelu and gelu_by_tanh of arithmetic/short_functions, the first with every operation rounded to "
        "binary16, the other with fused multiply-adds in binary32",
        "docs/facts/xnnpack.md 3.9, verified by running",
    ),
    "binary32_short_apart": RealGeluRule(
        partial(_short, apart=True),
        "the same with every product and every sum of gelu_by_tanh rounded, x limited to +-3.26953125",
        "docs/facts/xnnpack.md 3.9, verified by running",
    ),
    "binary16_fused_flushed": RealGeluRule(
        _of_halves,
        "gelu of arithmetic/flushed_half_functions: operations rounded to binary16, subnormal numbers count as zeros",
        "docs/facts/xnnpack.md 3.22, verified by running",
    ),
    "rounded_once": RealGeluRule(
        _rounded_once,
        "x / 2 * (1 + erf(x / sqrt 2)), or x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), rounded once to "
        "binary32",
        "the definition of correct rounding; decimal arithmetic with 260 digits",
    ),
    "binary32_fused_polynomials": RealGeluRule(
        _fused_polynomials,
        "x / 2 * (erf(x / sqrt 2) + 1), or x / 2 * (tanh(x (c x x + r)) + 1), r = sqrt(2 / pi), c = f32(0.044715 r), "
        "functions of arithmetic/fused_polynomials",
        "a library of vector kernels for x86-64, read; run",
    ),
    "binary32_fused_polynomials_joined": RealGeluRule(
        _fused_polynomials_joined,
        "as binary32_fused_polynomials with fma(f32(c x), x, r)",
        "the same library as compilers for aarch64 join its operations; verified by running",
    ),
    "binary16_estimated_reciprocals": RealGeluRule(
        half_functions.in_eights(half_functions.gelu, half_functions.gelu_alone),
        "of binary16 numbers: as binary32_fused_polynomials with tanh's argument limited to 5, erf and tanh of "
        "arithmetic/half_functions; every operation of whole eights rounded to binary16, of the rest the argument and "
        "the value of erf or tanh",
        "a library of vector kernels for aarch64, read; run on all numbers",
    ),
}
