"""Slot `table_function`: real functions whose values are the entries of a table for 8 bits, in binary32 steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..arithmetic import tables
from ..arithmetic.rounded_functions import FUNCTIONS
from ..records import dataclass

_F32 = np.float32
_ONE = _F32(1)


@dataclass(frozen=True, eq=False)
class TableFunctionRule:
    """`functions`: stem of the operator to what it computes, binary32 to binary32; NaN counts as infinite."""

    functions: Mapping[str, Callable[[np.ndarray], np.ndarray]]
    formula: str


def _logistic(x: np.ndarray) -> np.ndarray:
    return _ONE / (_ONE + FUNCTIONS["exp"](-x).astype(_F32))


def _hard_swish(x: np.ndarray) -> np.ndarray:
    return x * np.clip(x + _F32(3), _F32(0), _F32(6)) / _F32(6)


def _log(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, FUNCTIONS["log"](np.where(x > 0, x, _ONE)), np.where(x < 0, np.nan, -np.inf))


RULES: dict[str, TableFunctionRule] = {
    "binary32_steps": TableFunctionRule(
        {
            "abs": np.abs,
            "erf": FUNCTIONS["erf"],
            "exp": FUNCTIONS["exp"],
            "hard_swish": _hard_swish,
            "log": _log,
            "logistic": _logistic,
            "rsqrt": lambda x: _ONE / np.sqrt(x),
            "sqrt": np.sqrt,
            "tanh": FUNCTIONS["tanh"],
        },
        "each step is rounded to binary32, ties to even: logistic 1 / (1 + exp(-x)), rsqrt 1 / sqrt(x), hard_swish "
        "x * min(max(x + 3, 0), 6) / 6, others in one step",
    ),
    "binary32_exponentials": TableFunctionRule(
        {"tanh": tables.tanh_by_exponentials},
        "tanh: (1 - e) / (1 + e) with e = exp(-2 x) where x >= 0, else (e - 1) / (e + 1) with e = exp(2 x)",
    ),
    "binary32_times_sixth": TableFunctionRule(
        {"hard_swish": tables.hard_swish_times_sixth},
        "hard_swish: x * min(max(x + 3, 0), 6) * f32(1 / 6)",
    ),
}
