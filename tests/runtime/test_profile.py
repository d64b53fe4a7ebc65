"""Profiles: every executed step has a time, the arithmetic on it is right, and the session is as it was before."""

from __future__ import annotations

import json

import numpy as np
import pytest

import bittrue
from bittrue.operators import find
from bittrue.runtime import profile
from bittrue.runtime.profile import Profile, StepTime
from support.layer_models import LAYERS
from support.shared import SHARED, needs_shared
from support.system_plans import made_plans


@pytest.fixture(scope="module")
def session() -> bittrue.Session:
    return bittrue.load(bittrue.demo_model()).prepare(executor="reference")


def image() -> np.ndarray:
    return np.random.default_rng(0).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)


def test_every_step_has_a_time(session: bittrue.Session) -> None:
    found = session.profile(image(), rounds=4)
    assert [step.position for step in found.steps] == list(range(len(session.plan.steps)))
    assert all(step.seconds > 0 for step in found.steps)
    assert found.seconds == pytest.approx(sum(step.seconds for step in found.steps))
    assert found.rounds == 4
    assert found.multiply_adds == sum(s.work for s in session.plan.steps if s.operator in ("conv", "fully_connected"))
    first = session.plan.steps[0]
    tensors = [session.plan.tensors[i] for i in {*first.inputs, *first.outputs} - {None}]
    assert found.steps[0].bytes == sum(t.bytes for t in tensors)


def test_it_prints_and_is_plain_data(session: bittrue.Session) -> None:
    found = session.profile({session.inputs[0].name: image()}, rounds=1)
    lines = str(found).splitlines()
    assert sum(line.startswith("#") for line in lines) == len(session.plan.steps)
    for word in ("GMAC/s", "of peak", "GB/s", "share", "executor reference"):
        assert word in str(found)
    described = json.loads(json.dumps(found.to_dict()))
    assert len(described["steps"]) == len(session.plan.steps)
    assert described["seconds"] == found.seconds


def test_rates_by_hand() -> None:
    step = StepTime(0, "#0", "conv", "y", "s8[1,4]", 2e-6, 4000, 1000)
    elementwise = StepTime(1, "#1", "add", "z", "s8[1,4]", 1e-6, 500, 2000)
    found = Profile("g", (step, elementwise), 6, "native", "x", 2, 4e9)
    assert step.multiply_adds_per_second == pytest.approx(2e9)
    assert step.bytes_per_second == pytest.approx(5e8)
    assert elementwise.multiply_adds_per_second is None
    # Two threads could do twice the peak of one core.
    assert found.fraction_of_peak(step.multiply_adds_per_second) == pytest.approx(0.25)
    assert found.fraction_of_peak(None) is None
    # Without a rate of copies only arithmetic counts; with one, what takes longer.
    assert found.roof(elementwise) == (0, "arithmetic")
    bounded = Profile("g", (step, elementwise), 6, "native", "x", 2, 4e9, 2e9)
    assert bounded.roof(step) == (pytest.approx(5e-7), "arithmetic")
    assert bounded.roof(elementwise) == (pytest.approx(5e-7), "memory")
    assert bounded.fraction_of_roof(bounded.steps) == pytest.approx(1 / 3)
    assert Profile("g", (step,), 6, "native").fraction_of_roof([step]) is None
    assert bounded.to_dict()["steps"][1]["bound"] == "memory"
    assert "2.00 GB/s in its caches" in str(bounded)
    assert found.multiply_adds == 4000
    text = str(found)
    assert "25.0 %" in text
    assert "measured peak of one core 4.00 GMAC/s" in text
    assert "66.7 %" in text


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_products_of_layers_are_counted_in_every_format(name: str) -> None:
    content, numerics = LAYERS[name]()
    plan = bittrue.load(content).prepare(numerics, executor="reference").plan
    times = [profile.step_time(plan, position, 1.0) for position in range(len(plan.steps))]
    for time, step in zip(times, plan.steps, strict=True):
        operator = find(step.operator)
        assert operator is not None
        assert time.multiply_adds == (step.work if operator.multiplies else 0)
    assert sum(time.multiply_adds for time in times) >= 5 * np.prod(plan.tensors[plan.outputs[0]].shape)


def test_products_are_counted_in_systems_that_are_gone() -> None:
    counted = {
        step.operator
        for plan in made_plans()
        for position, step in enumerate(plan.steps)
        if profile.step_time(plan, position, 1.0).multiply_adds
    }
    assert counted >= {
        *("conv", "conv_transpose", "fully_connected", "matmul"),
    }


def test_medians_are_per_step() -> None:
    runs = [[0.0, 1.0, 3.0], [10.0, 12.0, 13.0], [20.0, 29.0, 39.0]]
    assert profile.step_medians(runs) == [2.0, 2.0]


def test_long_names_keep_their_end() -> None:
    step = StepTime(0, "#0", "conv", "a/very/long/name/" * 5 + "Conv2D_17", "", 1.0, 1, 1)
    assert "Conv2D_17" in str(Profile("g", (step,), 1, "reference"))


def test_peak_is_absent_without_the_native_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "native_module", lambda: None)
    assert profile.machine_peak(None) is None


def test_peak_comes_from_the_native_part(monkeypatch: pytest.MonkeyPatch) -> None:
    class Native:
        @staticmethod
        def peak_multiply_adds(isa: str | None) -> int:
            return {"avx2": 10, None: 20}[isa]

    monkeypatch.setattr(profile, "native_module", lambda: Native)
    assert profile.machine_peak("avx2") == 10.0
    assert profile.machine_peak(None) == 20.0


def test_wrong_arguments(session: bittrue.Session) -> None:
    with pytest.raises(bittrue.InputError) as caught:
        session.profile(image(), rounds=0)
    assert caught.value.code == "BT-ROUNDS"
    with pytest.raises(bittrue.InputError):
        session.profile(image().astype(np.float32))


def test_isa_is_for_executors_that_have_some() -> None:
    with pytest.raises(bittrue.InputError) as caught:
        bittrue.load(bittrue.demo_model()).prepare(executor="reference", isa="avx2")
    assert caught.value.code == "BT-ISA"


@needs_shared
def test_recurrent_state_is_kept() -> None:
    path = SHARED / "models" / "coral_keras_lstm_mnist_ptq.tflite"
    value = np.random.default_rng(5).integers(0, 256, (1, 28, 28)).astype(np.uint8)
    plain, profiled = (bittrue.load(path).prepare(executor="reference") for _ in range(2))
    for run in range(2):
        one, two = plain.run(value), profiled.run(value)
        assert all(one[name].tobytes() == two[name].tobytes() for name in one), run
        profiled.profile(value, rounds=2)
