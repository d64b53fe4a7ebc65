"""elementary and circular: against the C library whose sequences they pin, where that is at hand; exact values."""

from __future__ import annotations

import ctypes
import inspect
import math
import platform
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from bittrue.arithmetic import circular, elementary
from support import c_library as recorded
from support.elementary import BORDERS

TWO = {"power": "powf", "atan2": "atan2f"}
ONE = {name: name + "f" for name in ("exp", "expm1", "tanh", "log", "log1p", "sin", "cos", "atan", "erfc")}


def arguments(seed: int, count: int) -> np.ndarray:
    """Random bit patterns (so every exponent, quiet NaN and infinities), and numbers of everyday size."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    everyday = (rng.standard_normal(count) * np.exp(rng.uniform(-3, 4, count))).astype(np.float32)
    special = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 1e-38, 3.4e38, -3.4e38, 1, -1])
    near = (BORDERS.view(np.uint32)[:, None] + np.arange(-20, 21).astype(np.uint32)).reshape(-1).view(np.float32)
    with np.errstate(invalid="ignore"):
        return np.concatenate([bits, everyday, special, near, -near]) * np.float32(1)


def c_library() -> ctypes.CDLL:
    """The C library's mathematics, when it is the one whose sequences are pinned."""
    if platform.libc_ver() != ("glibc", "2.36") or platform.machine() != "x86_64":
        pytest.skip("the pinned sequences are those of glibc 2.36 for x86-64")
    return ctypes.CDLL("libm.so.6")


def same_bits(ours: np.ndarray, theirs: np.ndarray, *x: np.ndarray) -> None:
    wrong = np.flatnonzero(ours.view(np.uint32) != theirs.view(np.uint32))
    assert not wrong.size, [(float(v[wrong[0]]), ours[wrong[0]], theirs[wrong[0]]) for v in x]


def call(library: ctypes.CDLL, name: str, *x: np.ndarray) -> np.ndarray:
    function = getattr(library, name)
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float] * len(x)
    return np.array([function(*values) for values in zip(*(v.tolist() for v in x), strict=True)], np.float32)


CIRCULAR = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh", "tan")


@pytest.mark.parametrize("name", CIRCULAR)
def test_circular_functions_equal_the_c_library(name: str, request: pytest.FixtureRequest) -> None:
    x = arguments(1, 10_000_000 if request.config.getoption("--deep") else 50_000)
    x = np.concatenate([x, np.remainder(x[np.isfinite(x)], np.float32(2)) - np.float32(1)])
    same_bits(getattr(circular, name)(x), call(c_library(), name + "f", x), x)


@pytest.mark.parametrize("name", ONE)
def test_equal_to_the_c_library(name: str, request: pytest.FixtureRequest) -> None:
    x = arguments(1, 10_000_000 if request.config.getoption("--deep") else 100_000)
    if name == "log1p":
        # Its domain; NaN belongs to it.
        x = x[~(np.abs(x) > 1)]
        x = np.where(x == 0, x, np.abs(x))
    same_bits(getattr(elementary, name)(x), call(c_library(), ONE[name], x), x)


@pytest.mark.parametrize("name", [*recorded.ONE, *recorded.TWO])
def test_joined_equal_the_c_library_of_aarch64(name: str) -> None:
    """Recorded there, with arguments at which joined products tell."""
    with np.load(recorded.AARCH64) as vectors:
        *x, expected = vectors[f"float32 {name}"]
    if name == "log1p":
        inside = ~(x[0] < 0) & ~(x[0] > 1)
        x, expected = [x[0][inside]], expected[inside]
    function = getattr(elementary, name, None) or getattr(circular, name)
    how = {"joined": True} if "joined" in inspect.signature(function).parameters else {}
    ours = function(*x, **how)
    same_bits(ours, expected, *x)
    if how and name not in ("cos", "log", "power", "sin"):
        numbers = ~np.isnan(expected)
        assert (function(*x)[numbers] != expected[numbers]).any()


# Error bound of each function in units of the last place, as published or measured.
UNITS = {
    "exp": 0.51,
    "expm1": 1.0,
    "log1p": 1.0,
    "tanh": 2.2,
    "log": 0.82,
    "sin": 0.57,
    "cos": 0.57,
    "atan": 1.0,
    "erfc": 4.0,
}


@pytest.mark.parametrize("name", ONE)
def test_close_to_the_true_value(name: str) -> None:
    exact: Callable[[float], float] = getattr(math, name)
    x = np.random.default_rng(2).uniform(-9 if name == "erfc" else -20, 9, 20_000).astype(np.float32)
    x = np.abs(x) if name == "log" else np.abs(x) / 20 if name == "log1p" else x
    result = getattr(elementary, name)(x)
    expected = np.array([exact(float(v)) for v in x])
    error = np.abs(result.astype(np.float64) - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert error.max() < UNITS[name]


def pairs(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Two shuffles of `arguments`, some of the second ones whole, and every pair of special numbers."""
    rng = np.random.default_rng(seed)
    x, y = rng.permutation(arguments(seed, count)), rng.permutation(arguments(seed + 1, count))
    with np.errstate(invalid="ignore"):
        y = np.where(rng.random(y.size) < 0.3, np.rint(np.clip(y, -50, 50)), y)
    special = np.float32([0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, np.inf, -np.inf, np.nan, -np.nan, 1e-45, 2.0**24, 3e38])
    first, second = (grid.reshape(-1) for grid in np.meshgrid(special, special))
    return np.concatenate([x, first]), np.concatenate([y, second])


@pytest.mark.parametrize("name", TWO)
def test_pairs_equal_the_c_library(name: str) -> None:
    x, y = pairs(5, 50_000)
    same_bits(getattr(elementary, name)(x, y), call(c_library(), TWO[name], x, y), x, y)


def test_logistic_is_made_of_exponentials() -> None:
    x = arguments(7, 50_000)
    one = np.float32(1)
    with np.errstate(all="ignore"):
        middle = one / (one + elementary.exp(-x))
    expected = np.select([x > np.float32(16.619047), x < -9], [one, elementary.exp(x)], middle)
    same_bits(elementary.logistic(x), expected, x)


@pytest.mark.parametrize("name", ONE)
def test_shapes_and_types(name: str) -> None:
    function = getattr(elementary, name)
    x = np.random.default_rng(3).standard_normal((3, 4))
    assert function(x).shape == (3, 4)
    assert function(x).dtype == np.float32
    assert function(0.5).shape == ()
    assert function(0.5) == function(x * 0 + 0.5)[0, 0]
    assert function(np.zeros((0, 2), np.float32)).shape == (0, 2)


def test_quarter_turns() -> None:
    """Of every size, against 100 digits of pi; n modulo 4 and the remainder to 2^-40 or 2^-20 of itself."""
    digits = (
        "3141592653589793238462643383279502884197169399375105820974944592307816406286208998628034825342117067982148"
    )
    quarter = Fraction(int(digits), 10 ** (len(digits) - 1)) / 2
    rng = np.random.default_rng(0)
    x = (rng.choice([-1, 1], 4000) * np.exp2(rng.uniform(-12, 127.9, 4000))).astype(np.float32)
    for value, n, r in zip(x, *elementary.quarter_turns(x), strict=True):
        whole = Fraction(float(value if abs(value) < 120 else abs(value)))
        left = whole - round(whole / quarter) * quarter
        assert (int(n) - round(whole / quarter)) % 4 == 0, value
        assert abs(Fraction(float(r)) - left) <= Fraction(1, 2**40) + abs(left) / 2**20, value


# What functions are made of, here and in `circular`.
SHARED = (
    "wraps",
    "on_vectors",
    "bits_of",
    "from_bits",
    "fused_multiply_add",
    "horner",
    "multiply_add",
    "without_value",
)


def test_every_function_is_tested_and_named_in_its_source() -> None:
    public = {
        n for n, f in vars(elementary).items() if inspect.isfunction(f) and not n.startswith("_") and n not in SHARED
    }
    assert public == {*ONE, *TWO, "logistic", "quarter_turns"}
    for name in public:
        text = getattr(elementary, name).__doc__
        assert "Source:" in text, name
        assert ">>>" in text, name
