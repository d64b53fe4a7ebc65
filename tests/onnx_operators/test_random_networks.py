"""Random networks quantized in random ways: every exact tensor and output is ONNX Runtime's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bittrue
from support.float_models import quantize
from support.fused_models import Tally, all_values, compare_outputs, compare_steps, optimised
from support.native import check_native, same
from support.onnx_models import HERE, Refused, cases, run_runtime
from support.random_models import random_form, random_network

# What the runtime fuses has these names.
_INTEGER = ("conv", "matmul", "add", "mul", "concatenation")


def _counts(session: bittrue.Session) -> dict[str, int]:
    integers = [step.operator for step in session.plan.steps if "real_product" not in step.rules]
    return {name: integers.count(name) for name in _INTEGER}


def test_random_networks(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    tally, compared = Tally(), 0
    for rng in cases(request, usual=8):
        content = quantize(random_network(rng), random_form(rng), tmp_path)
        session = bittrue.load(content).prepare(HERE, executor="reference")
        feeds = [rng.standard_normal(port.shape).astype(np.float32) for port in session.inputs]
        theirs = run_runtime(content, feeds)
        assert not isinstance(theirs, Refused), theirs.message
        model = optimised(content)
        # As many integer layers as the runtime finds.
        assert _counts(session) == _counts(bittrue.load(model).prepare(HERE, executor="reference"))
        names = [port.name for port in session.inputs]
        values = {**all_values(model, feeds), **dict(zip(names, feeds, strict=True))}
        compare_steps(session, values, tally)
        compared += compare_outputs(session, feeds, theirs)
        chosen = bittrue.isas()[int(rng.integers(len(bittrue.isas()))) :][:1] if bittrue.isas() else ()
        check_native(session, [feeds], session.trace(*feeds), threads=(1, 2), isas=chosen)
        session.plan.save(tmp_path / "saved.plan")
        expected = session.run(*feeds)
        for name, value in bittrue.load_plan(tmp_path / "saved.plan").run(*feeds).items():
            same(name, value, expected[name])
    assert tally.tensors > 60
    assert compared > 3
