"""fold_reals and fuse_reals give ONNX Runtime's bytes for graphs of real operators, all of its optimisers at work."""

from __future__ import annotations

import numpy as np
import pytest

import bittrue
from support.differential import assert_same
from support.onnx_models import HERE, cases, needs_wide, run_runtime
from support.real_graphs import RealGraphMaker


@needs_wide
@pytest.mark.parametrize("part", range(4))
def test_bytes(request: pytest.FixtureRequest, part: int) -> None:
    seen: set[str] = set()
    for rng in cases(request, part, 4):
        maker = RealGraphMaker(rng, opset=int(rng.choice([13, 17, 18])), usual=float(rng.choice([0.95, 0.8, 0.6])))
        maker.grow(int(rng.integers(1, 5)))
        content, feeds = maker.model()
        theirs = run_runtime(content, feeds)
        if not isinstance(theirs, dict):
            # Its optimiser makes an invalid graph of 1 / x times itself in some places.
            assert "Invalid model. Node input 'div" in theirs.message
            continue
        for executor in ("reference", "auto"):
            session = bittrue.load(content).prepare(HERE, executor=executor)
            ours = session.run(*feeds)
            for name, value in theirs.items():
                assert_same(f"{name} ({executor})", ours[name], np.asarray(value))
        seen.update(step.operator for step in session.plan.steps)
    assert {"conv_onto", "gelu", "gemm", "layer_normalization"} <= seen
