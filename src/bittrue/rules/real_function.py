"""Slot `real_function`: functions of one real number. Binary16 is widened to binary32 and rounded back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from ..arithmetic import (
    circular,
    elementary,
    flushed_half_functions,
    fused,
    fused_polynomials,
    half_functions,
    processor_estimates,
    rational,
    rational_wide,
    reciprocal_estimate,
    rounded_functions,
    short_functions,
    tables,
)
from ..arithmetic.floats import fused_multiply_add as fma
from ..records import dataclass
from .activation import scalar_logistic

# The operator's parameters are named arguments.
Function = Callable[..., np.ndarray]
LANES = 4
_BINARY32, _BINARY64 = np.dtype(np.float32), np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class RealFunctionRule:
    """`functions`: stem of the operator to what it computes, `type` (None: that of the numbers) to `type`, for a vector
    that ends where the tensor ends, or after a multiple of LANES. `once`: products in them are not rounded by
    themselves.
    """

    functions: Mapping[str, Function]
    formula: str
    source: str
    type: np.dtype | None = _BINARY32
    once: bool = False


def _elu(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, elementary.expm1(x), x)


def _quick_gelu(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.asarray(x * fused_polynomials.logistic(x * np.float32(alpha)))


def _logistic_below_1(x: np.ndarray) -> np.ndarray:
    share = fused_polynomials.logistic(x)
    return np.where(share > 1, np.float32(1), share)


def _quick_gelu_below_1(x: np.ndarray, alpha: float) -> np.ndarray:
    """The logistic function is limited by 1.

    >>> _quick_gelu_below_1(np.float32([17.695677]), 1.0).tolist()
    [17.695676803588867]
    """
    return np.asarray(x * _logistic_below_1(x * np.float32(alpha)))


_f32 = np.float32
_ONE, _ZERO = _f32(1), _f32(0)


def _between(x: np.ndarray) -> np.ndarray:
    """Limited to 0..1; NaN stays."""
    lowered = np.where(x > _ONE, _ONE, x)
    return np.where(lowered < _ZERO, _ZERO, lowered)


def _in_groups(group: Function, rest: Function, lanes: int) -> Function:
    def apply(x: np.ndarray) -> np.ndarray:
        whole = x.size // lanes * lanes
        return np.concatenate([group(x[:whole]), rest(x[whole:])])

    return apply


def _library(name: str) -> Function:
    """The C library's function where products are joined to sums."""
    return partial(getattr(elementary, name, None) or getattr(circular, name), joined=True)


def _grouped(name: str) -> Function:
    """Whole groups of four by `arithmetic/rational`, the rest of a vector by the C library's function."""
    return _in_groups(getattr(rational, name), getattr(elementary, name, None) or getattr(circular, name), LANES)


def _fused_groups(name: str) -> Function:
    """The same where products are joined to sums."""
    return _in_groups(partial(getattr(rational, name), fused=True), _library(name), LANES)


def _in_pairs(name: str, fused: bool = False) -> Function:
    """The same of binary64 numbers, whose groups are pairs."""
    group = partial(getattr(rational_wide, name), fused=fused)
    return _in_groups(group, getattr(rational_wide, f"library_{name}"), 2)


_exp, _log1p = _grouped("exp"), _grouped("log1p")
_fused_exp = _in_groups(partial(rational.exp, fused=True), elementary.exp, LANES)
EXPONENTIALS = {False: _exp, True: _fused_exp}


def _softplus(x: np.ndarray) -> np.ndarray:
    logarithms, whole = _log1p(_exp(-np.abs(x))), x.size // LANES * LANES
    found = np.where(x > 0, x + logarithms, logarithms)
    return np.where(np.isnan(x), np.where(np.arange(x.size) < whole, rational.EVERY_BIT, x + x), found)


def _softplus_of_sum(x: np.ndarray) -> np.ndarray:
    beyond = x > 0
    return np.where(beyond, x, _ZERO) + elementary.log(elementary.exp(np.where(beyond, -x, x)) + _ONE)


def _softplus_by_library(x: np.ndarray) -> np.ndarray:
    logarithms = elementary.log1p(elementary.exp(-np.abs(x)), joined=True)
    return np.where(x > 0, x + logarithms, logarithms)


def _mish(x: np.ndarray, softplus: Function = _softplus) -> np.ndarray:
    found = fused_polynomials.tanh(softplus(x))
    # Of two NaNs it is that of the function which stays.
    return np.where(np.isnan(x), found, found * x)


def _celu(x: np.ndarray, alpha: float, exp: Function = _exp) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        below = _f32(alpha) * (exp(x / _f32(alpha)) - _ONE)
    # NaN stays, and so does a zero on its side.
    return np.where(x < 0, _ZERO, x) + np.where(below > 0, _ZERO, below)


def _parametric_elu(x: np.ndarray, alpha: float, exp: Function = _exp) -> np.ndarray:
    return np.where(x < 0, _f32(alpha) * (exp(x) - _ONE), x)


def _selu(x: np.ndarray, alpha: float, gamma: float, exp: Function = _exp) -> np.ndarray:
    return np.where(x > 0, _f32(gamma) * x, _f32(gamma) * _f32(alpha) * (exp(x) - _ONE))


def _hard_sigmoid(x: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    return _between(x * _f32(alpha) + _f32(beta))


def _hard_swish(x: np.ndarray) -> np.ndarray:
    return np.asarray(x * _between(x * _f32(1 / 6) + _f32(0.5)))


def _softsign(x: np.ndarray) -> np.ndarray:
    share = _ONE / (_ONE + np.abs(x))
    # A NaN loses its sign.
    return np.where(np.isnan(x), share, x * share)


def logistic_by_library(x: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-x), or e^x / (1 + e^x) below zero, in binary32 by the C library's exponential; NaNs keep their sign.

    >>> logistic_by_library(np.float32([-1, 0, 1])).tolist()
    [0.2689414322376251, 0.5, 0.7310585975646973]
    """
    power = elementary.exp(-np.abs(x))
    return np.where(x >= 0, _ONE / (_ONE + power), power / (_ONE + power))


def _refined(estimate: Function) -> dict[str, Function]:
    """Square roots of one estimate.

    >>> RULES["binary32_refined_lines"].functions["sqrt"](np.float32([2])).tolist()
    [1.4142135381698608]
    """
    return {
        "rsqrt": partial(processor_estimates.refined_inverse_root, estimate=estimate),
        "sqrt": partial(processor_estimates.refined_root, estimate=estimate),
    }


def _gate_of_six(x: np.ndarray) -> np.ndarray:
    """min(max(x + 3, 0), 6); NaN gives 0."""
    shifted = x + _f32(3)
    return np.where(shifted > _ZERO, np.where(shifted < _f32(6), shifted, _f32(6)), _ZERO)


def _rational_lanes_4(fused: bool) -> dict[str, Function]:
    sixth = _f32(1 / 6)
    return {
        "hard_swish": _in_groups(lambda x: x * sixth * _gate_of_six(x), lambda x: x * _gate_of_six(x) * sixth, LANES),
        "logistic": _in_groups(partial(rational.logistic, fused=fused), scalar_logistic, LANES),
        "tanh": partial(rational.tanh, fused=fused),
    }


def _floor_or_next(x: np.ndarray) -> np.ndarray:
    """The nearest integer, ties to even, as floor(x) or floor(x) + 1.

    >>> _floor_or_next(np.float32([-0.25, -0.0, 2.5, 3.5])).tolist()
    [0.0, -0.0, 2.0, 4.0]
    """
    with np.errstate(all="ignore"):
        below = np.floor(x)
        rest, even = x - below, np.fmod(below, _f32(2)) == 0
        return np.where((rest < _f32(0.5)) | ((rest == _f32(0.5)) & even), below, below + _ONE)


def _quiet(found: np.ndarray) -> np.ndarray:
    """Of a NaN of 16 bits the sign is kept, and no payload; wider numbers, which no row has here, stay."""
    if found.itemsize != 2:
        return found
    payload = 0x1FF if found.dtype == np.float16 else 0x3F
    stored = found.view(np.uint16)
    return np.where(np.isnan(found), stored & ~np.uint16(payload), stored).view(found.dtype)


def _logistic_of_16_bits(x: np.ndarray) -> np.ndarray:
    power = elementary.exp(x.astype(np.float32)).astype(x.dtype)
    one = power.dtype.type(1)
    return _quiet(np.where(power == np.inf, one, power / (one + power)))


def _tanh_of_16_bits(x: np.ndarray) -> np.ndarray:
    return _quiet(elementary.tanh(x.astype(np.float32)).astype(x.dtype))


_FOURS = (
    "logistic and hard_swish in fours and behind them: logistic of arithmetic/rational, e / (1 + e) with e = "
    "exp(min(x, 16.6355324)) of arithmetic/elementary; (x f32(1 / 6)) g, (x g) f32(1 / 6) with g = min(max(x + 3, 0), "
    "6); tanh of arithmetic/rational everywhere; "
)
RULES: dict[str, RealFunctionRule] = {
    "binary32_rational_lanes_4": RealFunctionRule(
        _rational_lanes_4(fused=False),
        _FOURS + "every operation rounded",
        "docs/facts/litert.md 2.8, run: 637 million numbers in vectors, 570 000 in tensors of 1 to 70",
    ),
    "binary32_fused_rational_lanes_4": RealFunctionRule(
        _rational_lanes_4(fused=True),
        _FOURS + "products and sums of logistic and tanh in arithmetic/rational rounded once",
        "docs/facts/litert.md 2.8, run on aarch64: 570 000 numbers each",
    ),
    "binary32_floor_or_next": RealFunctionRule(
        {"round_to_integer": _floor_or_next},
        "floor(x), or floor(x) + 1 where x - floor(x) is above 1/2, or 1/2 and floor(x) is odd: numbers below 0 that "
        "become 0 give +0",
        "docs/facts/litert.md 2.8, run: 150 000 numbers on x86-64 and aarch64",
    ),
    "operations_of_16_bits": RealFunctionRule(
        {"logistic": _logistic_of_16_bits, "tanh": _tanh_of_16_bits},
        "logistic(x) = e / (1 + e) with e = e^x, 1 where e is infinite; every operation, and tanh of "
        "arithmetic/elementary, rounded to the type of the numbers; NaN keeps its sign and no payload",
        "docs/facts/litert.md 2.8, run: every number of binary16 and bfloat16",
        type=None,
    ),
    "binary32_by_library": RealFunctionRule(
        {"exp": elementary.exp, "logistic": logistic_by_library, "tanh": elementary.tanh},
        "the C library's exponential and tanh; logistic(x) = 1 / (1 + e^-x) for x >= 0, else e^x / (1 + e^x)",
        "run: 20,000 numbers",
    ),
    "binary32_by_joined_library": RealFunctionRule(
        {"exp": elementary.exp, "tanh": _library("tanh")},
        "as binary32_by_library; the C library's products are joined to sums",
        "the same kernels on aarch64, run",
    ),
    "binary32_elementary": RealFunctionRule(
        {
            "cos": elementary.cos,
            "elu": _elu,
            "exp": elementary.exp,
            "log": elementary.log,
            "logistic": elementary.logistic,
            "sin": elementary.sin,
            "tanh": elementary.tanh,
        },
        "the functions of arithmetic/elementary; elu(x) = expm1(x) for x < 0, else x",
        "glibc 2.36, read; every binary32 number compared with it",
    ),
    "binary32_fused": RealFunctionRule(
        {
            "cos": fused.cos,
            "elu": fused.elu,
            "exp": fused.exp,
            "hard_swish": fused.hard_swish,
            "log": fused.log,
            "logistic": fused.logistic,
            "neg": fused.neg,
            "sin": fused.sin,
            "tanh": fused.tanh,
        },
        "the functions of arithmetic/fused: polynomials, or quotients of two, of fused multiply-adds",
        "docs/facts/xnnpack.md 3.6, verified by running",
    ),
    "binary32_fused_by_exponent": RealFunctionRule(
        {"elu": fused.elu_by_exponent, "log": fused.log_by_exponent, "logistic": fused.logistic_by_exponent},
        "those of arithmetic/fused that take powers of two and exponents from the bits of numbers",
        "docs/facts/xnnpack.md 3.18, verified by running",
    ),
    "binary32_fused_tables": RealFunctionRule(
        {
            "elu": fused.elu_of_16ths,
            "exp": fused.exp_of_numbers,
            "log": fused.log_by_exponent,
            "logistic": fused.logistic_of_64ths,
            "neg": fused.neg_by_sign,
        },
        "those of arithmetic/fused that take powers of two from 16 or 64 numbers, exponents from the bits of numbers, "
        "and keep NaN and the sign of zeros",
        "docs/facts/xnnpack.md 3.20, verified by running",
    ),
    "binary32_short": RealFunctionRule(
        {
            "cos": short_functions.cos,
            "logistic": short_functions.logistic,
            "sin": short_functions.sin,
            "tanh": short_functions.tanh,
        },
        "the functions of arithmetic/short_functions, of binary16: short polynomials of fused multiply-adds",
        "docs/facts/xnnpack.md 3.9, verified by running",
    ),
    "binary32_short_apart": RealFunctionRule(
        {"cos": partial(short_functions.cos, apart=True), "sin": partial(short_functions.sin, apart=True)},
        "the same with every product and every sum rounded",
        "docs/facts/xnnpack.md 3.9, verified by running",
    ),
    "binary16_fused_flushed": RealFunctionRule(
        {
            "cos": flushed_half_functions.cos,
            "logistic": flushed_half_functions.logistic,
            "sin": flushed_half_functions.sin,
            "tanh": flushed_half_functions.tanh,
        },
        "the functions of arithmetic/flushed_half_functions: polynomials of operations rounded to binary16, subnormal "
        "numbers count as zeros",
        "docs/facts/xnnpack.md 3.22, verified by running",
    ),
    "binary32_refined_lines": RealFunctionRule(
        _refined(processor_estimates.inverse_root_of_lines),
        "x y and y = e + (e / 2) (1 - x (e e)), e = inverse_root_of_lines of arithmetic/processor_estimates; subnormal "
        "numbers count as zeros, nothing is fused",
        "docs/facts/xnnpack.md 3.8, verified by running",
    ),
    "binary32_refined_tables": RealFunctionRule(
        _refined(processor_estimates.inverse_root_of_tables),
        "the same with the estimate inverse_root_of_tables",
        "docs/facts/xnnpack.md 3.8, verified by running",
    ),
    "rounded_once": RealFunctionRule(
        rounded_functions.FUNCTIONS,
        "the real result rounded to binary32, ties to even; a vanishing factor makes x times it a zero of the sign "
        "of x",
        "the definition of correct rounding; decimal arithmetic with 260 digits",
        once=True,
    ),
    "binary32_fused_polynomials": RealFunctionRule(
        {
            "erf": fused_polynomials.erf,
            "exp": fused_polynomials.exp,
            "logistic": fused_polynomials.logistic,
            "quick_gelu": _quick_gelu,
            "tanh": fused_polynomials.tanh,
        },
        "the functions of arithmetic/fused_polynomials: fused multiply-adds, subnormal numbers kept; quick_gelu(x) = "
        "x logistic(alpha x)",
        "a library of vector kernels for x86-64, read; 200 000 numbers each, run",
    ),
    "binary32_fused_below_1": RealFunctionRule(
        {"logistic": _logistic_below_1, "quick_gelu": _quick_gelu_below_1},
        "those of binary32_fused_polynomials with min(1, logistic(x))",
        "a library of vector kernels for x86-64 with 512-bit vectors, run: 3 000 000 numbers",
    ),
    "binary32_single_operations": RealFunctionRule(
        {
            "acos": _grouped("acos"),
            "acosh": circular.acosh,
            "asin": _grouped("asin"),
            "asinh": circular.asinh,
            "atan": _grouped("atan"),
            "atanh": circular.atanh,
            "celu": _celu,
            "cos": _grouped("cos"),
            "cosh": circular.cosh,
            "hard_sigmoid": _hard_sigmoid,
            "hard_swish": _hard_swish,
            "log": _grouped("log"),
            "mish": _mish,
            "parametric_elu": _parametric_elu,
            "selu": _selu,
            "sin": _grouped("sin"),
            "sinh": circular.sinh,
            "softplus": _softplus,
            "softsign": _softsign,
            "tan": circular.tan,
        },
        "hard_sigmoid(x) = clamp(x alpha + beta), hard_swish(x) = x clamp(x f32(1 / 6) + 1/2), softsign(x) = x (1 / "
        "(1 + "
        "|x|)), elu(x) = alpha (e^x - 1), celu(x) = alpha (e^(x / alpha) - 1), selu(x) = (gamma alpha) (e^x - 1) "
        "for x < "
        "0, softplus(x) = max(x, 0) + log1p(e^-|x|), mish(x) = x tanh(softplus(x)); every operation rounded; "
        "exponential, logarithms, circle functions and their inverses of arithmetic/rational in fours, the C library's"
        " for the rest; tangent, hyperbolic functions and their inverses of arithmetic/circular",
        "kernels of one runtime and a linear algebra library, read; 20 000 numbers each, run",
    ),
    "binary32_joined_operations": RealFunctionRule(
        {
            "celu": partial(_celu, exp=_fused_exp),
            "hard_sigmoid": lambda x, alpha, beta: _between(fma(x, _f32(alpha), _f32(beta))),
            "hard_swish": lambda x: np.asarray(x * _between(fma(x, _f32(1 / 6), _f32(0.5)))),
            **{name: _fused_groups(name) for name in ("acos", "asin", "atan", "cos", "log", "sin")},
            **{name: _library(name) for name in ("acosh", "asinh", "atanh", "cosh", "sinh", "tan")},
            "mish": partial(_mish, softplus=_softplus_by_library),
            "parametric_elu": partial(_parametric_elu, exp=_fused_exp),
            "selu": partial(_selu, exp=_fused_exp),
            "softplus": _softplus_by_library,
            "softsign": lambda x: np.asarray(x * reciprocal_estimate.in_fours(_ONE + np.abs(x))),
        },
        "as binary32_single_operations, but x alpha + beta is rounded once, exponentials, logarithms, sines, cosines "
        "and inverses of circle functions of whole fours have fused multiply-adds, and reciprocals of these begin with "
        "an estimate; exponential and logarithm of softplus are the C library's, whose products are joined to sums",
        "the same kernels on aarch64; verified by running",
    ),
    "binary64_in_pairs": RealFunctionRule(
        {name: _in_pairs(name) for name in ("cos", "exp", "log", "logistic", "sin", "tanh")},
        "the functions of arithmetic/rational_wide in pairs, with the C library's for what is left: logistic(x) = 1 / "
        "(1 + e^-|x|) for x > 0, else 1 less that; every operation rounded to binary64",
        "kernels of one runtime and a linear algebra library, read; 20 000 numbers each, run",
        _BINARY64,
    ),
    "binary64_in_joined_pairs": RealFunctionRule(
        {name: _in_pairs(name, fused=True) for name in ("cos", "exp", "log", "logistic", "sin", "tanh")},
        "as binary64_in_pairs with fused multiply-adds in pairs",
        "the same kernels on aarch64; verified by running",
        _BINARY64,
    ),
    "binary32_log_of_sum": RealFunctionRule(
        {"softplus": _softplus_of_sum},
        "softplus(x) = x + log(e^-x + 1) for x > 0, else log(e^x + 1); every operation rounded, exponentials and "
        "logarithms of arithmetic/elementary",
        "kernels of one runtime, read; 4 000 numbers, run",
    ),
    "binary32_of_exponentials": RealFunctionRule(
        {"logistic": tables.logistic, "tanh": tables.tanh_by_exponentials},
        "logistic(x) = 1 / (1 + e^-x); tanh(x) = (1 - e) / (1 + e) with e = e^-2x where x >= 0, else (e - 1) / (e + 1) "
        "with e = e^2x; every operation rounded, exponentials of arithmetic/elementary",
        "docs/facts/tvm_qnn.md 12, run",
    ),
    "binary16_estimated_reciprocals": RealFunctionRule(
        {"erf": half_functions.in_eights(half_functions.erf, half_functions.erf_alone)},
        "of binary16 numbers: erf(x) = sign(x) (1 - p(t) e(x^2)), t = 1 / (1 + 0.328 |x|), e a quotient of polynomials;"
        " every operation of whole eights rounded to binary16, reciprocals from estimates; the rest in binary32 with"
        " the C library's exponential",
        "a library of vector kernels for aarch64, read; run on all numbers",
    ),
    "binary32_times_sixth": RealFunctionRule(
        {"hard_swish": tables.hard_swish_times_sixth},
        "hard_swish(x) = x * min(max(x + 3, 0), 6) * f32(1 / 6), every operation rounded",
        "docs/facts/tvm_qnn.md 12, run",
    ),
}
