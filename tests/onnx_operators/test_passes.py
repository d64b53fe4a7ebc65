"""Graphs aimed at single passes of ONNX Runtime's optimiser: its bytes, all of its optimisers at work."""

from __future__ import annotations

import numpy as np
import pytest

import bittrue
from support.differential import assert_same
from support.onnx_models import HERE, cases, needs_wide, run_runtime
from support.pass_graphs import PASSES

# Few of each; --deep and --examples make more.
_USUAL = 25


@needs_wide
@pytest.mark.parametrize("aim", PASSES)
def test_bytes(request: pytest.FixtureRequest, aim: str) -> None:
    for rng in cases(request, usual=_USUAL):
        content, feeds = PASSES[aim](rng).model()
        theirs = run_runtime(content, feeds)
        if not isinstance(theirs, dict):
            continue
        model = bittrue.load(content)
        names = [model.graph.tensors[index].name for index in model.graph.inputs]
        shapes = {name: array.shape for name, array in zip(names, feeds, strict=True)}
        ours = model.prepare(HERE, shapes=shapes).run(*feeds)
        for name, value in theirs.items():
            assert_same(name, ours[name], np.asarray(value))
