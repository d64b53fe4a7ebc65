"""Slot `real_function`: functions of one real number. Binary16 is widened to binary32 and rounded back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..arithmetic import elementary, fused, fused_polynomials, rounded_functions

# The operator's parameters are named arguments.
Function = Callable[..., np.ndarray]


@dataclass(frozen=True)
class RealFunctionRule:
    """`functions`: stem of the operator to what it computes, binary32 to binary32."""

    functions: Mapping[str, Function]
    formula: str
    source: str


def _elu(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, elementary.expm1(x), x)


def _quick_gelu(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.asarray(x * fused_polynomials.logistic(x * np.float32(alpha)))


RULES: dict[str, RealFunctionRule] = {
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
    "rounded_once": RealFunctionRule(
        rounded_functions.FUNCTIONS,
        "the real result rounded to binary32, ties to even; a vanishing factor makes x times it a zero of the sign of x",
        "the definition of correct rounding; decimal arithmetic with 260 digits",
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
}
