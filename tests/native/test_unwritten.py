"""No kernel reads scratch memory or results that it has not written, and none leaves a part of its results as it was:
runs whose memory was filled with different bytes before every step give equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.plan.loading import load_plan
from support.graphs import growing, nested_loops, staged, stream
from support.seeds import built_by_tests
from support.shared import shared_models
from support.system_plans import plan_files

pytestmark = pytest.mark.skipif(not bittrue.isas(), reason="the C++ core is not built")

FILLS = ("0", "165", "255")


def _values(rng: np.random.Generator, port: bittrue.Port) -> np.ndarray:
    if port.dtype.kind in "iub" and port.dtype.itemsize == 1:
        top = 2 if port.dtype.kind == "b" else 256
        return rng.integers(0, top, port.shape).astype(np.uint8).view(port.dtype)
    if port.dtype.kind in "iu":
        return rng.integers(0, 3, port.shape).astype(port.dtype)
    return rng.standard_normal(port.shape).astype(port.dtype)


def _outcome(session: bittrue.Session) -> object:
    rng = np.random.default_rng(0)
    feed = {port.name: _values(rng, port) for port in session.inputs}
    try:
        return [[(n, v.tobytes()) for n, v in session.run(feed).items()] for _ in range(2)]
    except bittrue.BittrueError as error:
        return error.code


def _check(prepares: Iterable[Callable[[str], bittrue.Session]], monkeypatch: pytest.MonkeyPatch) -> int:
    ran = 0
    for prepare in prepares:
        for isa in bittrue.isas():
            outcomes = []
            for fill in FILLS:
                monkeypatch.setenv("BITTRUE_DEBUG_FILL", fill)
                try:
                    session = prepare(isa)
                except bittrue.BittrueError:
                    break
                outcomes.append(_outcome(session))
                ran += 1
            if any(outcome != outcomes[0] for outcome in outcomes):
                raise AssertionError(f"{isa}: results depend on what was in memory before\n{str(session.plan)[:2000]}")
    return ran


def _of_model(content: bytes | Path) -> Callable[[str], bittrue.Session]:
    return lambda isa: bittrue.load(content).prepare(isa=isa, executor="native")


def _of_plan(content: bytes, path: Path) -> Callable[[str], bittrue.Session]:
    def prepare(isa: str) -> bittrue.Session:
        path.write_bytes(content)
        return bittrue.api.Session(load_plan(path), isa=isa, executor="native")

    return prepare


def test_operators(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `--deep` of all operators that tests make models of."""
    found = [nested_loops(), growing(3, True), staged(), stream()]
    if request.config.getoption("--deep"):
        found += [content for contents in built_by_tests(1).values() for content in contents]
    assert _check(map(_of_model, found), monkeypatch) > len(found)


def test_operators_of_systems(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    found = plan_files(tmp_path)[:: 1 if request.config.getoption("--deep") else 8]
    assert _check((_of_plan(content, tmp_path / "one.plan") for content in found), monkeypatch) > len(found)


def test_shared_models(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = request.config.getoption("--deep")
    small = [path for path in shared_models() if deep or path.stat().st_size < 1 << 20]
    _check(map(_of_model, small), monkeypatch)
