"""Accumulators from the reference kernels equal the sums of products from the layers' definitions, and so do ties."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import bittrue
from bittrue.explain import accumulators, tie_distances
from bittrue.explain.element import inputs_of
from bittrue.explain.rescaling import multiplier_of
from bittrue.explain.site import pick
from bittrue.explain.terms import terms_of
from support.layer_models import LAYERS

HALF = Fraction(1, 2)


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_kernels_equal_definitions(name: str) -> None:
    content, numerics = LAYERS[name]()
    session = bittrue.load(content).prepare(numerics, executor="reference")
    rng = np.random.default_rng(5)
    values = session.trace({p.name: rng.integers(*_ends(p), p.shape, p.dtype) for p in session.inputs})
    told = 0
    for step in session.plan.steps:
        inputs = inputs_of(session.plan, step, values)
        acc = accumulators(session.plan, step, inputs)
        if acc is None:
            continue
        distances = tie_distances(step, acc)
        assert acc.shape == session.plan.tensors[step.outputs[0]].shape
        for _ in range(8):
            element = tuple(int(rng.integers(size)) for size in acc.shape)
            terms = terms_of(step, inputs, element)
            assert terms is not None
            total = int(terms.products.sum()) + int(terms.bias or 0)
            bound = step.accumulator
            assert bound is not None
            assert bound.wraps or acc[element] == total
            assert (acc[element] - total) % 2**32 == 0
            if "rescale" in step.rules:
                scale = multiplier_of(pick(step.arrays, terms.channel), step.rules["rescale"])
                assert scale is not None
                assert distances is not None
                exact = int(acc[element]) * scale
                assert distances[element] == pytest.approx(float(abs(exact - math.floor(exact) - HALF)), abs=1e-8)
            told += 1
    assert told


def _ends(port: bittrue.api.Port) -> tuple[int, int]:
    info = np.iinfo(port.dtype)
    return int(info.min), int(info.max)
