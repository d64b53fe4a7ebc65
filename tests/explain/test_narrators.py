"""Explanations of operators beside layers end at the trace, and none of these falls back to the general form."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import bittrue
from bittrue.explain import explain_element
from support.differential import random_values
from support.narrated_models import NARRATED


@pytest.mark.parametrize("name", sorted(NARRATED))
def test_explanations_end_at_the_trace(name: str) -> None:
    content, numerics = NARRATED[name]()
    session = bittrue.load(content).prepare(numerics)
    rng = np.random.default_rng(21)
    values = session.trace({p.name: random_values(rng, p.dtype, p.shape) for p in session.inputs})
    tensor = session.outputs[0].name
    for _ in range(12):
        element = tuple(int(rng.integers(size)) for size in values[tensor].shape)
        found = explain_element(session, values, tensor, element)
        assert found.stored == values[tensor][element]
        labels = [line.label for line in found.lines]
        assert "result" not in labels or found.operator == "softmax"
        assert all(line.value for line in found.lines)
        if "exact" in found.numbers:
            exact = Fraction(found.numbers["exact"])
            distance = abs(exact - math.floor(exact) - Fraction(1, 2))
            assert found.numbers["tie_distance"] == pytest.approx(float(distance), abs=1e-9)


def test_moved_elements_name_their_origin() -> None:
    content, numerics = NARRATED["TRANSPOSE"]()
    session = bittrue.load(content).prepare(numerics)
    x = np.arange(60).astype(np.int8).reshape(3, 4, 5)
    values = session.trace(x)
    for element in np.ndindex(5, 3, 4):
        line = explain_element(session, values, session.outputs[0].name, element).lines[0]
        assert line.remark.endswith(f"[{element[1]}, {element[2]}, {element[0]}]")


def test_padding_is_called_padding() -> None:
    content, numerics = NARRATED["PAD"]()
    session = bittrue.load(content).prepare(numerics)
    # Every quantized value equals the zero point that pads: only where it comes from tells them apart.
    values = session.trace(np.full((3, 4), 5, np.int8))
    tensor = session.outputs[0].name
    labels = np.array(
        [explain_element(session, values, tensor, e).lines[0].label for e in np.ndindex(*values[tensor].shape)]
    ).reshape(values[tensor].shape)
    expected = np.full(labels.shape, "filled with", dtype=labels.dtype)
    expected[1:4, :4] = "moved from"
    assert (labels == expected).all()


def test_exact_sums_are_those_of_the_scales() -> None:
    content, numerics = NARRATED["ADD litert"]()
    session = bittrue.load(content).prepare(numerics)
    rng = np.random.default_rng(2)
    values = session.trace({p.name: random_values(rng, p.dtype, p.shape) for p in session.inputs})
    first, second = session.inputs
    scales = [Fraction(float(np.float32(s))) for s in (0.021, 0.013, 0.03)]
    for element in ((0, 0, 0, 0), (0, 3, 4, 16), (0, 1, 2, 3)):
        a, b = (int(values[port.name][element]) - int(port.zero_point or 0) for port in (first, second))
        exact = (a * scales[0] + b * scales[1]) / scales[2]
        numbers = explain_element(session, values, session.outputs[0].name, element).numbers
        assert numbers["exact"] == pytest.approx(float(exact), rel=1e-12)
