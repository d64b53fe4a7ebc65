"""Verdicts on whole models: two arithmetics of one network, all differing elements accounted for; and their texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue import numerics
from bittrue.compare.segments import segments
from bittrue.compare.verdict import Explainer
from bittrue.plan.declared import rewritten_graph
from compare.test_planted_faults import layer_and_model, pair_model, random_inputs, segment_of, verdict
from support import faulty_device as device
from support.build import T, single
from support.shared import needs_shared, shared_models

# Operators whose differences must all be explained.
ALL_EXPLAINED = {
    "conv",
    "fully_connected",
    "add",
    "mul",
    "average_pool",
    "max_pool",
    "mean",
    "quantize",
    "softmax",
}
# This model's state has a type that the runtime takes for another one: no numerics here runs it.
NOT_RUN = "tflm_keyword_scrambled_8bit"


@pytest.mark.in_turns(6)
@needs_shared
@pytest.mark.parametrize("path", [p for p in shared_models() if NOT_RUN not in p.name], ids=lambda p: p.stem)
@pytest.mark.parametrize("other", ["xnnpack", "litert-optimized"])
@pytest.mark.parametrize("told", [True, False], ids=["told", "device"])
def test_shared_models(path: Path, other: str, told: bool) -> None:
    """Every isolated difference is explained, whether B's arithmetic is named or B is a device."""
    own = numerics.find("litert")
    model = bittrue.load(path)
    ours, theirs = model.prepare("litert"), model.prepare(other)
    rng = np.random.default_rng(7)
    inputs = {}
    for port in ours.inputs:
        if port.dtype.kind == "f":
            inputs[port.name] = rng.normal(size=port.shape).astype(port.dtype)
        else:
            ends = np.iinfo(port.dtype)
            inputs[port.name] = rng.integers(ends.min, ends.max + 1, port.shape).astype(port.dtype)
    shown = theirs.trace(inputs)
    graph, _ = rewritten_graph(model.graph, own)
    explainer = Explainer(own, numerics.find(other) if told else None)
    differing, unexplained = Counter[str](), Counter[str]()
    for part in segments(graph, ours.plan, own, shown):
        found = explainer.explain(part, [shown], [shown[part.name]], "")
        differing[part.node.operator] += found.differing
        unexplained[part.node.operator] += found.unexplained
        if found.differing:
            assert sum(c.elements for c in found.causes) + found.unexplained >= found.differing
            assert found.exact == (found.unexplained == 0)
            assert found.witness["theirs"] != found.witness["stored"]
    print(f"{path.name} against {other}: {dict(+differing)} differing, {dict(+unexplained)} unexplained")
    assert not {k for k, v in unexplained.items() if v} & ALL_EXPLAINED


def test_the_text_of_the_issue() -> None:
    """The sentence that a reader gets, with its witness."""
    layer, content = layer_and_model("conv", seed=3, size=(33, 40))
    part, ports = segment_of(content)
    values = random_inputs(ports, 1)
    found = verdict(part, values, [device.run(layer, values[0]["x"], rounding=device.real_even)], "xnnpack")
    assert found.text.startswith(
        f"{found.differing} of 4,080 elements differ, all by 1; "
        "all are explained by `rescale = binary32_multiply_even` instead of "
        "`q31_two_step_up_away`: another rounding scheme, benign"
    )
    (cause,) = found.causes
    assert (cause.slot, cause.rule, cause.instead) == ("rescale", "binary32_multiply_even", "q31_two_step_up_away")
    assert "xnnpack" in cause.numerics
    assert (cause.kind, cause.benign, cause.elements) == ("rounding", True, found.differing)
    assert cause.formula
    element = ",".join(map(str, found.witness["element"]))
    assert found.command == f"bittrue explain m.tflite --tensor y --element {element}"
    assert found.witness["stored"] == part.run(values[0])[tuple(found.witness["element"])]
    assert found.witness["other"]["stored"] == found.witness["theirs"]
    assert abs(found.witness["theirs"] - found.witness["stored"]) == 1


def test_accumulators_and_ties() -> None:
    layer, content = layer_and_model("conv", seed=3, size=(33, 40))
    part, ports = segment_of(content)
    values = random_inputs(ports, 1)
    theirs = device.run(layer, values[0]["x"], rounding=device.real_even)
    found = verdict(part, values, [theirs])
    acc = device.sums(layer, values[0]["x"]) + layer.bias
    assert found.accumulators is not None
    assert found.accumulators[:2] == (acc.min(), acc.max())
    assert found.accumulators[2] >= np.abs(acc).max()
    assert len(found.ties) == 512
    # Other roundings differ next to ties, and nowhere else.
    differing = [distance for distance, apart in found.ties if apart]
    assert len(differing) == found.differing
    assert max(differing) < 0.02
    assert max(distance for distance, apart in found.ties if not apart) > 0.4


def test_equal_tensors() -> None:
    part, ports = segment_of(pair_model("ADD"))
    values = random_inputs(ports, 1)
    found = verdict(part, values, [part.run(values[0])])
    assert found.exact
    assert (found.differing, found.causes, found.text) == (0, (), "equal")


def test_a_rule_and_some_noise() -> None:
    """What the rule gives is counted for it; the flipped elements stay unexplained."""
    layer, content = layer_and_model("conv", seed=3, size=(33, 40))
    part, ports = segment_of(content)
    values = random_inputs(ports, 1)
    theirs = device.run(layer, values[0]["x"], rounding=device.floored)
    ours = part.run(values[0])
    theirs[0, 3, 4, 1] ^= 16
    theirs[1, 2, 7, 5] ^= 32
    found = verdict(part, values, [theirs])
    assert not found.exact
    assert found.unexplained == 2
    assert found.differing == int((ours != theirs).sum())
    assert [cause.name for cause in found.causes] == ["exact product, floor"]
    assert found.causes[0].elements == found.differing - 2
    assert "unexplained: 2 of" in found.text


def test_a_fault_in_one_channel() -> None:
    layer, content = layer_and_model("conv", bias=np.int32([900, -4000, 3000, 20000, 70, -15000]))
    part, ports = segment_of(content)
    values = random_inputs(ports, 1)
    good = device.run(layer, values[0]["x"])
    wrong = good.copy()
    wrong[..., 3] = device.run(replace(layer, bias=layer.bias * 0), values[0]["x"])[..., 3]
    found = verdict(part, values, [wrong])
    assert found.exact, found.text
    assert [cause.name for cause in found.causes] == ["bias dropped"]
    assert "(in channel 3)" in found.text


def test_different_causes_in_different_channels() -> None:
    layer, content = layer_and_model("conv", bias=np.int32([900, 14000, 3000, 20000, 70, -15000]))
    part, ports = segment_of(content)
    values = random_inputs(ports, 1)
    x = values[0]["x"]
    wrong = device.run(layer, x)
    wrong[..., 1] = device.run(replace(layer, bias=layer.bias * 0), x)[..., 1]
    wrong[..., 4] = device.run(replace(layer, in_zero=0), x)[..., 4]
    found = verdict(part, values, [wrong])
    assert found.exact, found.text
    assert {cause.name for cause in found.causes} == {"bias dropped", "input zero point ignored"}
    assert sum(cause.elements for cause in found.causes) == found.differing


@pytest.mark.parametrize("seed", range(24))
def test_random_layers_under_other_arithmetics(seed: int) -> None:
    """The planted rule is named, or among those that fit: no other one in its place."""
    rng = np.random.default_rng(seed)
    kind = ("conv", "depthwise", "dense")[seed % 3]
    fields = {} if kind == "dense" else {"size": (int(rng.integers(9, 30)), int(rng.integers(9, 30)))}
    _, content = layer_and_model(kind, seed=seed, **fields)
    part, ports = segment_of(content)
    values = random_inputs(ports, seed, sets=2)
    own = numerics.find("litert")
    names = ("xnnpack", "litert-optimized", "single-rounding", "tvm-qnn", "tvm-qnn-float32")
    other = numerics.find(names[int(rng.integers(len(names)))])
    plan = part.plan(other)
    theirs = [part.run(v, plan) for v in values]
    for told in (other, None):
        found = Explainer(own, told).explain(part, values, theirs, "")
        if not found.differing:
            continue
        assert found.exact, found.text
        planted = {f"{slot}={rule}" for slot, rule in plan.steps[-1].rules.items()}
        named = {atom for cause in found.causes for atom in cause.name.split(" + ")}
        others = {atom for name in (*found.also, *found.alike) for atom in name.split(" + ")}
        assert named <= planted or planted & others, (found.text, found.also)
        assert found.benign


def test_what_a_row_records_is_not_unexplained(tmp_path: Path) -> None:
    """LiteRT's reference kernel misreads sums of s8; another number there is named with the row, not searched for."""
    x, axes = T("s8", (4, 16), 0.5, name="x"), T("s32", (1,), data=np.int32([1]))
    path = tmp_path / "sum.tflite"
    path.write_bytes(single("SUM", ("ReducerOptions", {"keepDims": False}), [x, axes], [T("s8", (4,), 8.0, name="y")]))
    model = bittrue.load(path)
    own, values = numerics.find("xnnpack"), {"x": np.arange(64, dtype=np.int8).reshape(4, 16)}
    shown = model.prepare("xnnpack").trace(values)
    theirs = shown["y"] ^ np.int8(37)
    graph, _ = rewritten_graph(model.graph, own)
    (part,) = segments(graph, model.prepare("xnnpack").plan, own, shown)
    found = Explainer(own, numerics.find("litert")).explain(part, [shown], [theirs], "")
    assert (found.inexact, found.exact, found.unexplained, found.causes) == (True, False, 0, ())
    assert "inexact here: numerics 'litert' records" in found.text
    # Of a device nothing of the kind is recorded.
    found = Explainer(own, None).explain(part, [shown], [theirs], "")
    assert (found.inexact, found.unexplained) == (False, found.differing)
    assert "unexplained" in found.text
