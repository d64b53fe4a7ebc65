"""Graphs as ONNX Runtime saves them after optimising: opened again, and optimised once more, with its bytes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bittrue
from support.differential import assert_same
from support.fused_models import optimised
from support.onnx_models import HERE, Refused, cases, needs_wide, run_runtime
from support.quantized_graphs import GraphMaker
from support.real_graphs import RealGraphMaker

Make = Callable[[np.random.Generator], tuple[bytes, list[np.ndarray]]]


def _real(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    maker = RealGraphMaker(rng, opset=int(rng.choice([13, 17, 18])), usual=0.95)
    maker.grow(int(rng.integers(1, 5)))
    return maker.model()


def _quantized(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    maker = GraphMaker(rng, opset=int(rng.choice([13, 17, 21])), usual=0.95)
    while not maker.outputs:
        maker.grow(int(rng.integers(1, 6)))
    return maker.model()


@needs_wide
@pytest.mark.parametrize("level", ["BASIC", "EXTENDED"])
@pytest.mark.parametrize("make", [_real, _quantized])
def test_bytes(request: pytest.FixtureRequest, level: str, make: Make) -> None:
    compared = 0
    for rng in cases(request, usual=24):
        content, feeds = make(rng)
        if isinstance(run_runtime(content, feeds), Refused):
            continue
        saved = optimised(content, level, off=())
        theirs = run_runtime(saved, feeds)
        if isinstance(theirs, Refused):
            continue
        session = bittrue.load(saved).prepare(HERE)
        ours = session.run(*feeds)
        for name, value in theirs.items():
            assert_same(name, ours[name], np.asarray(value))
            compared += 1
    assert compared
