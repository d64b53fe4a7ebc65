"""wide_elementary: against the C libraries whose sequences it pins, recorded on aarch64 or at hand."""

from __future__ import annotations

import ctypes
import inspect
import platform
from pathlib import Path

import numpy as np
import pytest

from bittrue.arithmetic import wide_elementary
from support import c_library


def same_bits(ours: np.ndarray, theirs: np.ndarray, *x: np.ndarray) -> None:
    wrong = np.flatnonzero(ours.view(np.uint64) != theirs.view(np.uint64))
    assert not wrong.size, [(v[wrong[0]], ours[wrong[0]], theirs[wrong[0]]) for v in x]


@pytest.mark.parametrize("name", c_library.WIDE)
def test_equal_to_the_c_library_of_aarch64(name: str) -> None:
    with np.load(c_library.AARCH64) as vectors:
        *x, expected = vectors[f"float64 {name}"]
    same_bits(getattr(wide_elementary, name)(*x), expected, *x)


@pytest.mark.parametrize("name", c_library.WIDE)
def test_equal_to_the_c_library_with_fused_multiply_add(name: str, request: pytest.FixtureRequest) -> None:
    """All but the sign of NaNs that arise, which is set on x86-64."""
    if platform.libc_ver() != ("glibc", "2.36") or platform.machine() != "x86_64":
        pytest.skip("the pinned sequences are those of glibc 2.36")
    if " fma " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("a processor without fused multiply-add has others")
    count = 5_000_000 if request.config.getoption("--deep") else 20_000
    x = c_library.two(np.float64, 3, count) if name == "power" else (c_library.arguments(np.float64, 3, count),)
    ours = getattr(wide_elementary, name)(*x)
    theirs = c_library.call(ctypes.CDLL("libm.so.6"), name, *x)
    arises = np.isnan(theirs) & ~np.logical_or.reduce([np.isnan(v) for v in x])
    same_bits(ours, np.where(arises, np.nan, theirs), *x)


@pytest.mark.parametrize("name", c_library.WIDE)
def test_shapes_and_types(name: str) -> None:
    function = getattr(wide_elementary, name)
    x = np.abs(np.random.default_rng(3).standard_normal((3, 4)))
    given = [x] * (2 if name == "power" else 1)
    assert function(*given).shape == (3, 4)
    assert function(*(v.astype(np.float32) for v in given)).dtype == np.float64
    assert function(*(0.5 for _ in given)).shape == ()
    assert function(*(v[:0] for v in given)).shape == (0, 4)


def test_every_function_is_tested_and_named_in_its_source() -> None:
    here = {n: f for n, f in vars(wide_elementary).items() if inspect.isfunction(f) and not n.startswith("_")}
    public = {n for n, f in here.items() if f.__module__ == wide_elementary.__name__}
    assert public == set(c_library.WIDE)
    for name in public:
        assert "Source:" in here[name].__doc__, name
        assert ">>>" in here[name].__doc__, name
