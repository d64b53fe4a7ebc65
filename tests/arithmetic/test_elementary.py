"""elementary: against the C library whose sequences it pins, where that is at hand, and against exact values."""

from __future__ import annotations

import ctypes
import inspect
import math
import platform
from collections.abc import Callable

import numpy as np
import pytest

from bittrue.arithmetic import elementary

ONE = {"exp": "expf", "expm1": "expm1f", "tanh": "tanhf"}

# Where the functions change their way, and where they leave the range of binary32.
BORDERS = np.float32(
    [0.25, 0.34657359, 0.4375, 0.75, 0.84375, 1.0397207, 1.25, 2.857143, 6, 9, 18.714973, 22, 28, 88.72168, 88.722839]
    + [103.27893, 103.97208, 120, 2.0**-12, 2.0**-25, 2.0**-55]
)


def arguments(seed: int, count: int) -> np.ndarray:
    """Random bit patterns (so every exponent, NaN and infinities), and numbers of everyday size."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    everyday = (rng.standard_normal(count) * np.exp(rng.uniform(-3, 4, count))).astype(np.float32)
    special = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 1e-38, 3.4e38, -3.4e38, 1, -1])
    near = (BORDERS.view(np.uint32)[:, None] + np.arange(-20, 21).astype(np.uint32)).reshape(-1).view(np.float32)
    with np.errstate(invalid="ignore"):
        return np.concatenate([bits, everyday, special, near, -near])


def c_library() -> ctypes.CDLL:
    """The C library's mathematics, when it is of the versions whose sequences are pinned."""
    name, version = platform.libc_ver()
    if name != "glibc" or not (2, 28) <= tuple(int(part) for part in version.split(".")) <= (2, 40):
        pytest.skip("the pinned sequences are those of glibc 2.28 to 2.40")
    return ctypes.CDLL("libm.so.6")


def same_bits(ours: np.ndarray, theirs: np.ndarray, *x: np.ndarray) -> None:
    wrong = np.flatnonzero(ours.view(np.uint32) != theirs.view(np.uint32))
    assert not wrong.size, [(float(v[wrong[0]]), ours[wrong[0]], theirs[wrong[0]]) for v in x]


def call(library: ctypes.CDLL, name: str, *x: np.ndarray) -> np.ndarray:
    function = getattr(library, name)
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float] * len(x)
    # Python's floats quieten signalling NaNs; the functions do, too.
    return np.array([function(*values) for values in zip(*(v.tolist() for v in x), strict=True)], np.float32)


@pytest.mark.parametrize("name", ONE)
def test_equal_to_the_c_library(name: str) -> None:
    x = arguments(1, 100_000)
    same_bits(getattr(elementary, name)(x), call(c_library(), ONE[name], x), x)


# Error bound of each function in units of the last place, as published or measured.
@pytest.mark.parametrize(("name", "units"), [("exp", 0.51), ("expm1", 1.0), ("tanh", 2.2)])
def test_close_to_the_true_value(name: str, units: float) -> None:
    exact: Callable[[float], float] = getattr(math, name)
    x = np.random.default_rng(2).uniform(-20, 20, 20_000).astype(np.float32)
    result = getattr(elementary, name)(x)
    expected = np.array([exact(float(v)) for v in x])
    error = np.abs(result.astype(np.float64) - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert error.max() < units


@pytest.mark.parametrize("name", ONE)
def test_shapes_and_types(name: str) -> None:
    function = getattr(elementary, name)
    x = np.random.default_rng(3).standard_normal((3, 4))
    assert function(x).shape == (3, 4)
    assert function(x).dtype == np.float32
    assert function(0.5).shape == ()
    assert function(0.5) == function(x * 0 + 0.5)[0, 0]
    assert function(np.zeros((0, 2), np.float32)).shape == (0, 2)


def test_every_function_is_tested_and_named_in_its_source() -> None:
    public = {
        n for n, f in vars(elementary).items() if inspect.isfunction(f) and not n.startswith("_") and n != "wraps"
    }
    assert public == set(ONE)
    for name in public:
        text = getattr(elementary, name).__doc__
        assert "Source:" in text, name
        assert ">>>" in text, name
