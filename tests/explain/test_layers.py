"""Explanations of accumulating layers end at the quantized value of the trace, for random elements."""

from __future__ import annotations

import numpy as np
import pytest

import bittrue
from bittrue.explain import explain_element
from support.differential import random_values
from support.layer_models import LAYERS


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_explanations_end_at_the_trace(name: str) -> None:
    content, numerics = LAYERS[name]()
    session = bittrue.load(content).prepare(numerics)
    rng = np.random.default_rng(11)
    values = session.trace({p.name: random_values(rng, p.dtype, p.shape) for p in session.inputs})
    told = 0
    for step in session.plan.steps:
        tensor = session.plan.tensors[step.outputs[0]].name
        for _ in range(10):
            element = tuple(int(rng.integers(size)) for size in values[tensor].shape)
            found = explain_element(session, values, tensor, element)
            assert found.stored == values[tensor][element]
            assert found.lines[-1].label == "stored"
            assert found.element == element
            told += "accumulator" in found.numbers
    assert told >= 10 or "real" in name


def test_sixteen_bit_pairs_lose_something_and_say_so() -> None:
    content, numerics = LAYERS["qlinear_conv, pairs of 16 bits"]()
    session = bittrue.load(content).prepare(numerics)
    values = session.trace(np.full(session.inputs[0].shape, 255, np.uint8))
    tensor = session.outputs[0].name
    lines = [
        line
        for element in np.ndindex(values[tensor].shape)
        for line in explain_element(session, values, tensor, element).lines
        if line.label == "accumulator"
    ]
    assert any("clamped to 16 bits" in line.remark for line in lines)
