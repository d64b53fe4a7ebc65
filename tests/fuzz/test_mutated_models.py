"""Mutated model files: typed errors or results only; no crash, no more than 5 s of processor time and 1 GiB."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bittrue import numerics
from support.graphs import growing, nested_loops, staged, stream
from support.seeds import built_by_tests, operators_of
from support.shared import REPOSITORY, shared_models

sys.path.insert(0, str(Path(__file__).parent))  # spawned workers import it by name, too
from oracle import ran_natively
from targets import tflite
from watch import changes, seeds

pytestmark = pytest.mark.long
DEMO = REPOSITORY / "src" / "bittrue" / "data" / "demo" / "digits_int8.tflite"
FILES = [DEMO, *shared_models()]


@pytest.mark.in_turns(4)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_mutations(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    tried = seeds(request, 22, 200_000 // len(FILES))
    result = changes(tflite.change, ran_natively, [path.read_bytes()], tried, tmp_path)
    typed = sum(n for outcome, n in result["counts"].items() if outcome.startswith("BT-"))
    results, planned = result["counts"].get("result", 0), result["counts"].get("planned", 0)
    kinds = len([outcome for outcome in result["counts"] if outcome.startswith("BT-")])
    record_property(
        "mutated",
        f"{path.stem}: {len(tried)} files, {results} results, {planned} planned only (too large), "
        f"{typed} typed errors of {kinds} kinds, "
        f"slowest {result['slowest']:.2f} s, peak {result['peak'] >> 10} MiB",
    )
    assert typed > 0


@pytest.mark.parametrize(
    "make", [nested_loops, lambda: growing(3, True), staged, stream], ids=["loops", "growing", "staged", "stream"]
)
def test_mutations_of_several_graphs(make: Callable[[], bytes], tmp_path: Path, request: pytest.FixtureRequest) -> None:
    counts = changes(tflite.change, tflite.attempt, [make()], seeds(request, 22, 6000), tmp_path)["counts"]
    assert any(outcome.startswith("BT-") for outcome in counts)


def test_mutations_of_every_operator(
    tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    """What the operators' own tests build: a few models of every operator, type and option; another third of the
    operators in every run, the one whose plans test_lying_plans.py takes.
    """
    option = request.config.option
    built = built_by_tests() if option.deep else built_by_tests(2, option.seed % 3, 3)
    readable = [content for found in built.values() for content in found if operators_of(content)]
    met = set().union(*map(operators_of, readable))
    known = set(numerics.find("litert").operators())
    missing = (known if option.deep else known & built.keys()) - met
    assert not missing, f"no test builds {sorted(missing)}"
    tried = seeds(request, 120, 100 * len(readable))
    result = changes(tflite.change, tflite.attempt, readable, tried, tmp_path)
    counts = result["counts"]
    record_property(
        "mutated",
        f"{len(readable)} models of {len(met)} operators: {len(tried)} files, {counts['result']} results, slowest "
        f"{result['slowest']:.2f} s, peak {result['peak'] >> 10} MiB",
    )
    assert counts["result"] > len(tried) // 10
