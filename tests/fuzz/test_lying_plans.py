"""Plan files that lie: typed errors or results only, alike on every executor; no crash, hang or huge allocation."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
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
from watch import changes, made, seeds

pytestmark = pytest.mark.long

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


def models(part: int, parts: int) -> list[bytes]:
    """Models of a part of all operators, and of several graphs."""
    found = [nested_loops(), growing(3, True), staged(), stream()]
    return found + [content for contents in built_by_tests(2, part, parts).values() for content in contents]


def onnx_models(folder: Path, part: int) -> list[bytes]:
    """Whole quantized models again and again, and between them every sixth model of the onnx package's own tests."""
    whole = [quantize(MODELS[name](np.random.default_rng(0)), forms()[form], folder) for name, form in _WHOLE]
    pairs = zip(official()[part::6], itertools.cycle(whole), strict=False)
    return [content for pair in pairs for content in pair]


def plan_file(content: bytes, folder: Path) -> bytes:
    """The plan file of a model that has steps."""
    with suppress(bittrue.BittrueError):
        made = bittrue.load(content).prepare(executor="reference").plan
        made.save(folder / "true.plan")
        return (folder / "true.plan").read_bytes() if made.steps else b""
    return b""


def test_lies(tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    option = request.config.option
    # Another third of the operators in every run.
    contents = models(0, 1) if option.deep else models(option.seed % 3, 3)
    _check(contents, partial(plan_file, folder=tmp_path), tmp_path, request, record_property)


def test_lies_about_onnx_models(
    tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    contents = onnx_models(tmp_path, request.config.option.seed % 6)
    _check(contents, partial(plan_file, folder=tmp_path), tmp_path, request, record_property)


def test_lies_about_systems(
    tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    assert operators_of_plans() >= _OF_SYSTEMS
    _check(plan_files(tmp_path), bytes, tmp_path, request, record_property)


def _check(
    contents: list[bytes],
    make: Callable[[bytes], bytes],
    folder: Path,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    tried = seeds(request, 90, 100 * len(contents))
    result = changes(plan.change, plan.attempt, made(contents, tried, make), tried, folder)
    counts = result["counts"]
    record_property(
        "mutated",
        f"plans of {len(contents)} models: {len(tried)} files, {counts['result']} results, "
        f"slowest {result['slowest']:.2f} s, peak {result['peak'] >> 10} MiB",
    )
    assert counts["result"] > len(tried) // 20
    assert counts["BT-PLAN-FILE"] > len(tried) // 20
