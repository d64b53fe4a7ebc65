"""Models that the operator tests build, without running those tests: seeds for mutated files.

Every test is called with a few examples and stops as soon as it prepares a model or asks the runtime; what was built
until then is kept.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from _pytest.mark import ParameterSet
from _pytest.outcomes import Failed, Skipped
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import HypothesisException

import bittrue

from . import build
from .oracle import Oracle

_FOLDER = Path(__file__).resolve().parents[1] / "operators"
# Larger ones are slow to mutate and hold nothing but more of the same.
_LARGEST = 20_000


class _Enough(Exception):
    """What a test built is known."""


@cache
def built_by_tests(examples: int = 2, part: int = 0, parts: int = 1) -> dict[str, list[bytes]]:
    """Models by test file, each once, of `examples` examples per property and of every fixed case.

    part, parts: of the files one in so many, beginning with this one.
    """
    sys.path.insert(0, str(_FOLDER))
    try:
        return {
            path.stem.removeprefix("test_"): _built_by(importlib.import_module(path.stem), examples)
            for path in sorted(_FOLDER.glob("test_*.py"))[part::parts]
        }
    finally:
        sys.path.remove(str(_FOLDER))


def operators_of(content: bytes) -> set[str]:
    """Stems of all operators of a model; none when it cannot be read."""
    try:
        return {node.operator for graph in bittrue.load(content).graphs for node in graph.nodes}
    except bittrue.BittrueError:
        return set()


def _built_by(module: Any, examples: int) -> list[bytes]:
    found: dict[bytes, None] = {}
    several = build.several

    def record(*graphs: build.G) -> bytes:
        content = several(*graphs)
        if len(content) <= _LARGEST:
            found[content] = None
        return content

    def stop(*_: object, **__: object) -> None:
        raise _Enough

    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(build, "several", record))
        # Some tests build graphs themselves.
        if hasattr(module, "several"):
            patches.enter_context(mock.patch.object(module, "several", record))
        patches.enter_context(mock.patch.object(bittrue.Model, "prepare", stop))
        patches.enter_context(mock.patch.object(Oracle, "run", stop))
        for name, test in list(vars(module).items()):
            if name.startswith("test_") and inspect.isfunction(test):
                _call(test, examples)
    return list(found)


def _call(test: Any, examples: int) -> None:
    inner = getattr(getattr(test, "hypothesis", None), "inner_test", None)
    if inner is None:
        for arguments in _cases(test):
            _quietly(test)(**arguments)
        return
    usual = test._hypothesis_internal_use_settings
    test.hypothesis.inner_test = _quietly(inner)
    test._hypothesis_internal_use_settings = settings(
        usual,
        max_examples=examples,
        phases=[Phase.explicit, Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    try:
        for arguments in _cases(test):
            with suppress(TypeError):
                test(**arguments)
    finally:
        test.hypothesis.inner_test = inner
        test._hypothesis_internal_use_settings = usual


def _quietly(function: Callable[..., object]) -> Callable[..., None]:
    def call(*arguments: object, **named: object) -> None:
        try:
            function(*arguments, **named)
        except HypothesisException:
            raise
        except (Exception, Failed, Skipped):
            # That it was stopped, or that it saw another error than it expects.
            return

    return call


def _cases(test: Any) -> Iterator[dict[str, object]]:
    """Arguments that `pytest.mark.parametrize` gives; tests that need fixtures as well fail and build nothing."""
    choices: list[list[dict[str, object]]] = []
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            names, rows = mark.args[:2]
            alone = isinstance(names, str)
            values = [row.values if isinstance(row, ParameterSet) else (row,) if alone else row for row in rows]
            names = [names] if alone else names
            choices.append([dict(zip(names, row, strict=True)) for row in values])
    for parts in itertools.product(*choices):
        yield {name: value for part in parts for name, value in part.items()}
