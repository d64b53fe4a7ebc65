"""What `inspect` says of numerics is so: those that it names prepare the model, others refuse it by a typed error."""

from __future__ import annotations

import pytest

import bittrue
from bittrue import numerics
from bittrue.conformance.suite import find_suite
from bittrue.errors import BittrueError
from bittrue.plan.able import Able, numerics_able
from support.shared import shared_models

MODELS = shared_models()
OPERATORS = [(suite, operator) for suite in ("litert", "onnx") for operator in find_suite(suite).generators()]


def held_to(content: bytes) -> Able:
    """What is said of a model, each word of it tried out."""
    model = bittrue.load(content)
    able = numerics_able(model.graphs)
    assert able.open is None
    for name in numerics.names():
        if name in able.whole:
            model.prepare(name, executor="reference")
            continue
        with pytest.raises(BittrueError) as refused:
            model.prepare(name, executor="reference")
        if name in able.refused:
            assert (refused.value.code, refused.value.message) == (able.refused[name].code, able.refused[name].message)
    return able


@pytest.mark.in_turns(3)
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_whole_models(path: object) -> None:
    held_to(path.read_bytes())  # type: ignore[attr-defined]


@pytest.mark.in_turns(4, by="operator")
@pytest.mark.parametrize(("suite", "operator"), OPERATORS, ids=["-".join(one) for one in OPERATORS])
def test_models_of_one_operator(suite: str, operator: str) -> None:
    found = find_suite(suite)
    types = found.generators()[operator].types[0]
    case = next(case for case in found.cases([operator], [types]) if not case.rejects)
    able = held_to(case.content)
    assert able.whole
    if len(bittrue.load(case.content).graph.nodes) == 1:
        # Its operator is the whole model.
        assert {name for name, nodes in able.nodes.items() if nodes[0]} == set(able.whole)


def test_a_row_for_the_types_is_not_enough() -> None:
    """Pools and softmax of .tflite have the types of other runtimes' rows, and nothing that these rows go by."""
    for operator in ("AVERAGE_POOL_2D", "SOFTMAX"):
        case = next(case for case in find_suite("litert").cases([operator], ["s8"]) if not case.rejects)
        able = held_to(case.content)
        assert "litert" in able.whole
        assert not any(name.startswith("snps_caffe") for name in able.whole)
        assert able.refused.keys() | set(able.whole) <= set(numerics.names())
