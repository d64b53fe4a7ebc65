"""Layers of every file's form, computed in the one form that hypotheses change: the session's bytes."""

from __future__ import annotations

import numpy as np
import pytest

import bittrue
from bittrue.compare.hypotheses import layers
from bittrue.operators import find, registry
from bittrue.operators.core.roles import seats_of
from support.layer_models import LAYERS
from support.verdicts import random_inputs

# Sums that are not rescaled, losses that come before the sum, windows that lie in the result, rules of single lanes.
APART = {"transpose_conv", "batch_matmul", "conv_integer", "matmul_integer"}
NAMES = [n for n in LAYERS if n.split(",")[0] not in APART and not n.endswith(("real", "lanes", "pairs of 16 bits"))]


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_with_nothing_changed_is_the_session(name: str) -> None:
    content, numerics = LAYERS[name]()
    session = bittrue.load(content).prepare(numerics)
    (feed,) = random_inputs(session.inputs, 3)
    found = layers.run(session.plan, feed, layers.Ways(plain=True))
    (expected,) = session.run(feed).values()
    assert found is not None
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", [n for n in LAYERS if n not in NAMES])
def test_other_layers_have_no_such_form(name: str) -> None:
    content, numerics = LAYERS[name]()
    step = layers.last_layer(bittrue.load(content).prepare(numerics).plan)
    assert step is None or name.endswith("lanes")


def test_roles_name_operands_once() -> None:
    for stem, operator in registry().items():
        taken = [p for role in operator.roles for p in (role.position, role.scale, role.zero_point) if p is not None]
        inputs = [position for position in taken if position >= 0]
        assert len(inputs) == len(set(inputs)), stem
        assert len({role.name for role in operator.roles}) == len(operator.roles), stem
        assert not operator.weights or seats_of(find(stem)) is not None, stem
