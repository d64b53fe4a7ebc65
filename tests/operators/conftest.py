"""Operator tests run once per numerics that a resolver of the runtime answers for, not only under `litert`.

Every test from which `differential.check` can be reached is repeated: bittrue plans under the numerics, the runtime
runs with the resolver of that name. Tests without the runtime (values by hand, errors) run once. A test whose
statement holds for some numerics only is marked `@pytest.mark.numerics("litert", ...)`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import settings

import bittrue
from support import differential, recorded
from support.runtimes import RUNTIMES

# Derived tables repeat what `litert` has tried at full effort, so a share of the examples does, or so many.
_SHARE, _LEAST = 8, 6


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "compared_numerics" not in metafunc.fixturenames:
        return
    known = [name for name in bittrue.numerics_names() if name in RUNTIMES and RUNTIMES[name].available]
    wanted = metafunc.config.getoption("--numerics")
    marker = metafunc.definition.get_closest_marker("numerics")
    names = ["litert"]
    if _reaches_check(metafunc.function):
        names = [name for name in known if (name in marker.args if marker else not RUNTIMES[name].named_only)]
        names = [name for name in names if not wanted or name in wanted]
    metafunc.parametrize("compared_numerics", names, indirect=True)


@pytest.fixture(autouse=True)
def compared_numerics(request: pytest.FixtureRequest) -> Iterator[str]:
    """The numerics that `check` compares in this test, with the examples that it is worth."""
    name = request.param
    function = request.function
    usual = getattr(function, "_hypothesis_internal_use_settings", None)
    if usual is not None and name != "litert":
        # There is no public way to set the effort of a property per parameter.
        fewer = max(min(usual.max_examples, _LEAST), usual.max_examples // _SHARE)
        function._hypothesis_internal_use_settings = settings(usual, max_examples=fewer)
    differential.COMPARED = name
    try:
        yield name
    finally:
        differential.COMPARED = "litert"
        if usual is not None:
            function._hypothesis_internal_use_settings = usual


@pytest.fixture(scope="session", autouse=True)
def recorder(request: pytest.FixtureRequest) -> Iterator[None]:
    """With BITTRUE_RECORD=folder and --numerics NAME: what the runtime answers is written to folder/NAME.npz."""
    folder, wanted = os.environ.get("BITTRUE_RECORD", ""), request.config.getoption("--numerics")
    if not folder:
        yield
        return
    assert len(wanted) == 1, "recording needs one --numerics"
    differential.RECORDER = recorded.Recorder()
    yield
    differential.RECORDER.write(Path(folder) / f"{wanted[0]}.npz")


def _reaches_check(function: Any) -> bool:
    """Whether `check` is among the names that a test or the helpers of the tests that it names use."""
    waiting, seen = [getattr(getattr(function, "hypothesis", None), "inner_test", function)], set()
    while waiting:
        current = waiting.pop()
        if current is differential.check:
            return True
        if not isinstance(current, FunctionType) or current in seen:
            continue
        seen.add(current)
        if current.__module__.startswith(("test_", "support", "tests.")):
            waiting += [current.__globals__.get(name) for name in _names(current.__code__)]
    return False


def _names(code: CodeType) -> set[str]:
    """Global names of a function, those of its inner functions included."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*(_names(constant) for constant in inner))
