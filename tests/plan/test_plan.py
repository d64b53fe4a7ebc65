"""Plans: text, files, folding, layout, bounds, refusals."""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import bittrue
from bittrue.plan.layout import ALIGNMENT, Lifetime, layout
from support.build import T, chain, single
from support.graphs import nested_loops, staged
from support.runtimes import not_emulated


def demo() -> bittrue.Session:
    return bittrue.load(bittrue.demo_model()).prepare()


def test_text_shows_what_hardware_is_programmed_with() -> None:
    text = str(demo().plan)
    for word in (
        "multiplier",
        "exponent",
        "rescale=q31_two_step_up_away",
        "clamp [",
        "zero points",
        "|acc| <=",
        "arena",
    ):
        assert word in text, word


def test_saved_plan_is_equal_and_reproducible(tmp_path: Path) -> None:
    session = demo()
    session.plan.save(tmp_path / "one.plan")
    demo().plan.save(tmp_path / "two.plan")
    assert (tmp_path / "one.plan").read_bytes() == (tmp_path / "two.plan").read_bytes()
    again = bittrue.load_plan(tmp_path / "one.plan")
    assert str(again.plan) == str(session.plan)
    x = np.arange(64, dtype=np.int8).reshape(1, 8, 8, 1)
    assert again.run(x)[again.outputs[0].name].tobytes() == session.run(x)[session.outputs[0].name].tobytes()


def test_missing_plan_file(tmp_path: Path) -> None:
    with pytest.raises(bittrue.InputError):
        bittrue.load_plan(tmp_path / "none.plan")


@pytest.mark.parametrize("damage", ["truncate", "text", "rule", "operator", "index", "format", "array", "dtype"])
def test_damaged_plan_files(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "demo.plan"
    demo().plan.save(path)
    if damage == "truncate":
        path.write_bytes(path.read_bytes()[:-500])
    elif damage == "text":
        path.write_text("not a plan")
    else:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        description = json.loads(members["plan.json"])
        if damage == "rule":
            description["steps"][0]["rules"]["rescale"] = "no_such_rule"
        elif damage == "operator":
            description["steps"][0]["operator"] = "no_such_operator"
        elif damage == "index":
            description["steps"][1]["inputs"][0] = 10_000
        elif damage == "format":
            description["format"] = "bittrue-plan-0"
        elif damage == "dtype":
            description["tensors"][0]["dtype"] = "q7"
        elif damage == "array":
            del members["a0.npy"]
        members["plan.json"] = json.dumps(description, indent=1).encode()
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    with pytest.raises(bittrue.ModelFormatError):
        bittrue.load_plan(path)


def damaged(path: Path, content: bytes, change: Callable[[dict[str, Any]], object]) -> Path:
    """A plan file of several graphs after `change`."""
    bittrue.load(content).prepare().plan.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    description = json.loads(members["plan.json"])
    change(description)
    members["plan.json"] = json.dumps(description, indent=1).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return path


def call_itself(description: dict[str, Any]) -> None:
    """The body of the outer loop calls the outer loop's graphs."""
    attributes = description["source"]["graphs"][2]["nodes"][0]["attributes"]
    attributes["condition_graph"], attributes["body_graph"] = 1, 2


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(source=None),
        lambda d: d["nested"][0].update(graph=9),
        lambda d: d["nested"][0].update(graph=-1),
        lambda d: d["nested"][1]["plan"].update(inputs=[0]),
        lambda d: d["nested"][1]["plan"]["outputs"].reverse(),
        lambda d: d["nested"][1]["plan"]["tensors"].pop(),
        lambda d: d["source"].update(numerics="none such"),
        lambda d: d["source"]["graphs"][4]["tensors"][1].update(shape=[-2, 3]),
        lambda d: d["source"]["graphs"][4]["tensors"][0].update(dtype="q7"),
        lambda d: d["source"]["graphs"][4]["nodes"][0].update(inputs=[77, 1]),
        lambda d: d["source"]["graphs"][4]["nodes"][0].update(operator="none_such"),
        lambda d: d["source"]["graphs"].pop(),
        call_itself,
    ],
)
def test_damaged_plans_of_several_graphs(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = damaged(tmp_path / "damaged.plan", nested_loops(), change)
    with pytest.raises(bittrue.ModelFormatError):
        bittrue.load_plan(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(source=None),
        lambda d: d["outputs"].pop(),
        lambda d: d["later"]["graph"]["inputs"].pop(),
        lambda d: d["later"]["graph"]["nodes"].reverse(),
        lambda d: d["later"]["graph"]["nodes"][0].update(outputs=[1000]),
        lambda d: d["later"]["graph"]["tensors"][2].update(shape_signature=[-1]),
        lambda d: d["later"]["graph"]["nodes"][0].update(operator="none_such"),
    ],
)
def test_damaged_plans_of_stages(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = damaged(tmp_path / "damaged.plan", staged(), change)
    with pytest.raises(bittrue.ModelFormatError):
        bittrue.load_plan(path)


lifetimes = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(-1, 20), st.integers(0, 8)).map(
        lambda t: Lifetime(t[0], t[1], t[1] + t[2])
    ),
    max_size=40,
)


@given(lifetimes)
def test_layout_never_overlaps_what_lives_together(items: list[Lifetime]) -> None:
    offsets, arena = layout(items)
    for i, one in enumerate(items):
        assert offsets[i] % ALIGNMENT == 0
        assert offsets[i] + one.size <= arena
        for j, two in enumerate(items[:i]):
            if one.first <= two.last and two.first <= one.last and one.size and two.size:
                apart = offsets[i] + one.size <= offsets[j] or offsets[j] + two.size <= offsets[i]
                assert apart, (one, two)


def test_layout_reuses_memory() -> None:
    _, arena = layout([Lifetime(1000, i, i + 1) for i in range(10)])
    assert arena <= 2 * 1024


def convolution(weight: int, channels: int, bias: int) -> bytes:
    x = T("s8", (1, 1, 1, channels), 0.5, -128)
    w = T("s8", (1, 1, 1, channels), 0.5, 0, 0, np.full((1, 1, 1, channels), weight))
    b = T("s32", (1,), 0.25, 0, 0, np.array([bias]))
    y = T("s8", (1, 1, 1, 1), 4.0, 0)
    return single("CONV_2D", ("Conv2DOptions", {"strideW": 1, "strideH": 1, "padding": 1}), [x, w, b], [y])


def test_accumulator_bound_is_proven_from_the_weights() -> None:
    step = bittrue.load(convolution(-3, 10, 7)).prepare().plan.steps[0]
    assert step.accumulator is not None
    assert step.accumulator.magnitude == 10 * 3 * 255 + 7
    assert not step.accumulator.wraps
    step = bittrue.load(convolution(-3, 10, 2**31 - 1)).prepare().plan.steps[0]
    assert step.accumulator is not None
    assert step.accumulator.wraps


def test_all_unsupported_operators_are_named_at_once() -> None:
    x, y, z = T("f32", (2, 2)), T("f32", (2, 2)), T("f32", (2, 2))
    content = chain([("STABLEHLO_FLOOR", None, [x], [y]), ("STABLEHLO_RSQRT", None, [y], [z])])
    with pytest.raises(bittrue.UnsupportedError) as caught:
        bittrue.load(content).prepare()
    assert "STABLEHLO_FLOOR" in str(caught.value)
    assert "STABLEHLO_RSQRT" in str(caught.value)


def test_unsupported_types_name_the_supported_ones() -> None:
    x = T("s64", (1, 4, 4, 1))
    w, b, y = (
        T("s8", (1, 1, 1, 1), 0.5, data=np.ones((1, 1, 1, 1))),
        T("s32", (1,), 0.5, data=np.ones(1)),
        T("s8", (), 0.5),
    )
    content = single("CONV_2D", ("Conv2DOptions", {"strideW": 1, "strideH": 1}), [x, w, b], [y])
    with pytest.raises(bittrue.UnsupportedError, match="implemented for") as caught:
        bittrue.load(content).prepare()
    assert "s8 s8|s4 s32 -> s8" in str(caught.value)


@not_emulated
def test_work_at_plan_time_is_bounded() -> None:
    """Products of constants that a small file asks for again and again; shapes are worked out all the same."""
    rows = 400
    nodes = [helper.make_node("ConstantOfShape", ["size"], ["c"], value=helper.make_tensor("one", 1, [1], [1.0]))]
    # Of nodes that are alike one is left.
    nodes += [helper.make_node("MatMul", [f"p{i - 1}" if i else "c", "c"], [f"p{i}"]) for i in range(30)]
    nodes += [
        helper.make_node("Sum", ["x", *(f"p{i}" for i in range(30))], ["s"]),
        helper.make_node("Shape", ["s"], ["shape"]),
        helper.make_node("Add", ["shape", "none"], ["same"]),
        helper.make_node("Reshape", ["s", "same"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info(name, 1, [rows, rows]) for name in "xy"]
    constants = {"size": np.int64([rows, rows]), "none": np.int64([0])}
    graph = helper.make_graph(
        nodes, "g", ports[:1], ports[1:], [numpy_helper.from_array(value, name) for name, value in constants.items()]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    started = time.process_time()
    plan = bittrue.load(model.SerializeToString()).prepare().plan
    assert time.process_time() - started < 10
    assert 20 < len(plan.steps) < 33
    assert "same" in {tensor.name for tensor in plan.tensors if tensor.value is not None}
