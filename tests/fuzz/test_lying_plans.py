"""Plan files that lie: typed errors or results only, alike on every executor; no crash, hang or huge allocation."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import bittrue
from support.float_models import MODELS, forms, quantize
from support.graphs import growing, nested_loops, staged, stream
from support.seeds import built_by_tests
from support.system_plans import operators_of_plans, plan_files

sys.path.insert(0, str(Path(__file__).parent))  # spawned workers import it by name, too
import numpy as np
from targets import plan
from test_mutated_onnx import official
from watch import changes

# Whole quantized models: dense and dynamic ones, all kinds of convolutions, both formats.
_WHOLE = (
    ("attention", "pairs_s8s8"),
    ("branches", "operators_s8s8_per_channel"),
    ("branches", "pairs_u8s8"),
    ("dense", "dynamic_s8"),
    ("dense", "pairs_u16"),
    ("inverted", "operators_u8u8"),
)
# Operators with a native kernel that only the systems that are gone have.
_OF_SYSTEMS = {
    "add_n",
    "finish_sums",
    "range_of",
}


def models() -> list[bytes]:
    """Models of every operator, and of several graphs."""
    found = [nested_loops(), growing(3, True), staged(), stream()]
    return found + [content for contents in built_by_tests().values() for content in contents]


def onnx_models(folder: Path) -> list[bytes]:
    """Whole quantized models again and again, and between them every sixth model of the onnx package's own tests."""
    whole = [quantize(MODELS[name](np.random.default_rng(0)), forms()[form], folder) for name, form in _WHOLE]
    return [
        content for one, other in zip(official()[::6], itertools.cycle(whole), strict=False) for content in (one, other)
    ]


def plans(contents: list[bytes], folder: Path) -> list[bytes]:
    """The plan files of models, as far as they have steps."""
    found, path = [], folder / "true.plan"
    for content in contents:
        with suppress(bittrue.BittrueError):
            made = bittrue.load(content).prepare(executor="reference").plan
            made.save(path)
            found += [path.read_bytes()] * bool(made.steps)
    return found


def test_lies(tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    _check(plans(models(), tmp_path), tmp_path, request, record_property)


def test_lies_about_onnx_models(
    tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    _check(plans(onnx_models(tmp_path), tmp_path), tmp_path, request, record_property)


def test_every_operator_of_systems_has_a_plan() -> None:
    assert operators_of_plans() >= _OF_SYSTEMS


def test_lies_about_systems(
    tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    _check(plan_files(tmp_path), tmp_path, request, record_property, each=4)


def _check(
    contents: list[bytes],
    folder: Path,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
    each: int = 1,
) -> None:
    count = len(contents) * each * (100 if request.config.getoption("--deep") else 1)
    result = changes(plan.change, plan.attempt, contents, range(count), folder)
    counts = result["counts"]
    record_property(
        "mutated",
        f"plans of {len(contents)} models: {count} files, {counts['result']} results, "
        f"slowest {result['slowest']:.2f} s, peak {result['peak'] >> 10} MiB",
    )
    assert counts["result"] > count // 20
    assert counts["BT-PLAN-FILE"] > count // 20
