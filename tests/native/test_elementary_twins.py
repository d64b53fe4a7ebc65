"""The C++ twins of arithmetic/elementary.py and circular.py: the same bits on every argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest

from bittrue.arithmetic import circular, elementary, wide_elementary
from support import c_library
from support.elementary import BORDERS

native = pytest.importorskip("bittrue._native", reason="the package is imported from its sources, without the C++ core")


def arguments(seed: int, count: int) -> np.ndarray:
    """Random bit patterns (signalling NaN included), numbers of everyday size, and both sides of every border."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**32, count, dtype=np.uint32)
    everyday = (rng.standard_normal(count) * np.exp(rng.uniform(-3, 4, count))).astype(np.float32).view(np.uint32)
    near = (BORDERS.view(np.uint32)[:, None] + np.arange(-20, 21).astype(np.uint32)).reshape(-1)
    special = np.array([0, 1, 0x3F800000, 0x40000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000], np.uint32)
    positive = np.concatenate([near, special])
    return rng.permutation(np.concatenate([bits, everyday, positive, positive ^ np.uint32(1 << 31)])).view(np.float32)


def the_function(name: str) -> Callable[..., np.ndarray]:
    return getattr(elementary, name, None) or getattr(circular, name)


BOTH = [
    (name, joined)
    for name in native.elementary_functions
    for joined in (False, True)
    if not joined or "joined" in inspect.signature(the_function(name)).parameters
]


@pytest.mark.parametrize(("name", "joined"), BOTH)
def test_native_equals_numpy(name: str, joined: bool, request: pytest.FixtureRequest) -> None:
    function, how = the_function(name), {"joined": True} if joined else {}
    count = 10_000_000 if request.config.getoption("--deep") else 200_000
    x, y = arguments(1, count), arguments(2, count)
    if name == "power":
        y = np.where(np.arange(y.size) % 3 == 0, np.arange(y.size) % 101 - 50, y).astype(np.float32)
    if name == "log1p":
        # Its domain is 0 to 1.
        x = np.ascontiguousarray(np.abs(x[np.abs(x) <= 1]))
        y = y[: x.size]
    out = np.empty_like(x)
    native.elementary(name, x, y, out, joined)
    expected = function(x, y, **how) if name in c_library.TWO else function(x, **how)
    wrong = np.flatnonzero(out.view(np.uint32) != expected.view(np.uint32))
    assert not wrong.size, (x[wrong[0]], y[wrong[0]], out[wrong[0]], expected[wrong[0]])


def test_every_function_has_a_twin() -> None:
    both = {**vars(elementary), **vars(circular)}
    public = {name for name, value in both.items() if inspect.isfunction(value) and name[0] != "_"}
    # The C++ twin of quarter_turns is inside of sine and cosine; the others are parts of functions.
    parts = {"wraps", "quarter_turns", "on_vectors", "bits_of", "from_bits", "horner"}
    parts |= {"fused_multiply_add", "multiply_add", "without_value"}
    assert set(native.elementary_functions) == public - parts


@pytest.mark.parametrize("name", native.wide_elementary_functions)
def test_wide_native_equals_numpy(name: str, request: pytest.FixtureRequest) -> None:
    count = 1_000_000 if request.config.getoption("--deep") else 20_000
    x, y = c_library.two(np.float64, 1, count)
    out = np.empty_like(x)
    native.wide_elementary(name, x, y, out)
    function = getattr(wide_elementary, name)
    expected = function(x, y) if name == "power" else function(x)
    wrong = np.flatnonzero(out.view(np.uint64) != expected.view(np.uint64))
    assert not wrong.size, (x[wrong[0]], y[wrong[0]], out[wrong[0]], expected[wrong[0]])


def test_every_wide_function_has_a_twin() -> None:
    assert set(native.wide_elementary_functions) == set(c_library.WIDE)


def test_bad_calls_raise() -> None:
    x = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match="no native function"):
        native.elementary("no_such_function", x, x, x.copy())
    with pytest.raises(ValueError, match="same length"):
        native.elementary("exp", x, x, np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="the same when joined"):
        native.elementary("exp", x, x, x.copy(), True)
    wide = np.zeros(3)
    with pytest.raises(ValueError, match="no native function"):
        native.wide_elementary("no_such_function", wide, wide, wide.copy())
    with pytest.raises(ValueError, match="same length"):
        native.wide_elementary("exp", wide, wide, np.zeros(2))
