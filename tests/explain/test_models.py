"""Whole models: random elements of every computed tensor, and errors for what is not explained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.explain import (
    accumulators,
    closest_to_tie,
    explain_element,
    explain_under,
    first_different,
    numerics_against,
    step_of,
)
from bittrue.explain.element import inputs_of
from support import graphs, long_models
from support.differential import random_values
from support.layer_models import LAYERS
from support.shared import needs_shared, shared_models

# Another numerics whose rows hold no defined result for a model, or models that only microcontrollers run.
_REFUSED = "BT-UNDEFINED"


def _values(session: bittrue.Session, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return session.trace({p.name: random_values(rng, p.dtype, p.shape) for p in session.inputs})


@needs_shared
@pytest.mark.in_turns(2)
@pytest.mark.parametrize("path", shared_models(), ids=lambda path: path.stem)
@pytest.mark.parametrize("numerics", ["litert", "xnnpack", "litert-optimized"])
def test_every_tensor_of_a_shared_model(path: Path, numerics: str) -> None:
    try:
        session = bittrue.load(path).prepare(numerics)
    except bittrue.UnsupportedError as error:
        if error.code == _REFUSED:
            pytest.skip(f"{error}")
        raise
    values = _values(session, 4)
    rng = np.random.default_rng(5)
    steps = session.plan.steps
    # Under the others a few steps of large models.
    most = len(steps) if numerics == "litert" and len(steps) < 100 else 10
    for step in (steps[i] for i in sorted(rng.permutation(len(steps))[:most])):
        for index in step.outputs:
            tensor = session.plan.tensors[index].name
            element = tuple(int(rng.integers(size)) for size in values[tensor].shape)
            found = explain_element(session, values, tensor, element)
            assert found.stored == values[tensor][element]


@needs_shared
def test_a_model_on_two_runtimes_parts_where_the_ties_are() -> None:
    path = next(path for path in shared_models() if "person_detect" in path.stem)
    model = bittrue.load(path)
    session = model.prepare("litert")
    values = _values(session, 0)
    name = next(session.plan.tensors[s.outputs[0]].name for s in session.plan.steps if s.operator == "conv")
    step, _ = step_of(session.plan, name)
    other = model.prepare(numerics_against(session.plan, step, "q31_one_step_up")).plan
    element, why = closest_to_tie(session.plan, values, name)
    assert "smallest distance to a tie" in why
    first = explain_element(session, values, name, element)
    assert first.numbers["tie_distance"] < 1e-3
    second = explain_under(other, values, first)
    assert second.numbers["accumulator"] == first.numbers["accumulator"]
    assert abs(int(second.stored) - int(first.stored)) <= 1
    acc = accumulators(session.plan, step, inputs_of(session.plan, step, values))
    assert acc is not None
    assert acc[element] == first.numbers["accumulator"]


def test_called_graphs_are_refused_by_name() -> None:
    session = bittrue.load(graphs.loop((0,), 3)).prepare()
    values = session.trace(*(np.zeros(port.shape, port.dtype) for port in session.inputs))
    nested = next(name for name in values if "::" in name)
    with pytest.raises(bittrue.InputError, match="only tensors of the main graph"):
        explain_element(session, values, nested, (0,))
    loop = session.outputs[0].name
    with pytest.raises(bittrue.BittrueError) as caught:
        explain_element(session, values, loop, (0,) * values[loop].ndim)
    assert caught.value.code.startswith("BT-EXPLAIN")


def test_missing_and_wrong_values_are_refused() -> None:
    session = bittrue.load(bittrue.demo_model()).prepare()
    values = _values(session, 1)
    tensor = session.plan.tensors[session.plan.steps[0].outputs[0]].name
    with pytest.raises(bittrue.InputError, match="no value for"):
        explain_element(session, {}, tensor, (0, 0, 0, 0))
    wrong = {**values, session.inputs[0].name: np.zeros(3, np.int8)}
    with pytest.raises(bittrue.InputError, match="must be int8"):
        explain_element(session, wrong, tensor, (0, 0, 0, 0))


@pytest.mark.parametrize("executor", ["reference", *(["native"] if bittrue.isas() else [])])
def test_recurrent_models_are_left_as_they_were(executor: str) -> None:
    """Explaining runs the session where it must, and moves no state on; what began before the run is refused."""
    content, feed = long_models.writes_then_works(8)
    wanted = [bittrue.load(content).prepare(executor="reference").trace(*feed)]
    session = bittrue.load(content).prepare(executor=executor)
    inputs = {port.name: array for port, array in zip(session.inputs, feed, strict=True)}
    name = session.outputs[0].name
    for _ in range(2):
        assert explain_element(session, inputs, name, (0,)).stored == wanted[0][name][0]
    for name, value in session.trace(inputs).items():
        assert value.tobytes() == wanted[0][name].tobytes()
    name = session.outputs[0].name
    for give in (lambda: inputs, lambda: session.trace(inputs)):
        with pytest.raises(bittrue.UnsupportedError, match="BT-EXPLAIN-STATE"):
            explain_element(session, give(), name, (0,))
    session.reset()
    assert explain_element(session, inputs, name, (0,)).stored == wanted[0][name][0]


def test_nothing_runs_when_the_inputs_of_a_step_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    session = bittrue.load(bittrue.demo_model()).prepare()
    values = _values(session, 1)
    first, second = (session.plan.tensors[step.outputs[0]].name for step in session.plan.steps[:2])
    seen: list[str] = []
    observe = session.observe
    monkeypatch.setattr(
        session, "observe", lambda see, *given, **more: (seen.append("run"), observe(see, *given, **more))
    )
    inputs = {session.inputs[0].name: values[session.inputs[0].name]}
    assert explain_element(session, inputs, first, (0, 0, 0, 0)).stored == values[first][0, 0, 0, 0]
    assert not seen
    assert explain_element(session, inputs, second, (0, 0, 0, 0)).stored == values[second][0, 0, 0, 0]
    assert seen == ["run"]


def test_numerics_that_rewrite_differently_are_told_apart() -> None:
    content, numerics = LAYERS["conv2d s8"]()
    session = bittrue.load(content).prepare(numerics)
    values = _values(session, 3)
    explained = explain_element(session, values, session.outputs[0].name, (0, 0, 0, 0))
    other = bittrue.load(bittrue.demo_model()).prepare(numerics).plan
    with pytest.raises(bittrue.UnsupportedError, match="does not come from the same tensors"):
        explain_under(other, values, explained)
    with pytest.raises(bittrue.UnsupportedError, match="does not come from the same tensors"):
        first_different(session.plan, other, values, explained.tensor)
