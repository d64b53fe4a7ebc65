"""How causes are looked for: B's own steps first, what fits sorted, an end to the search; other files' operators."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue import numerics
from bittrue.compare.hypotheses import Case
from bittrue.compare.hypotheses.rows import places, used_slots, with_rules
from bittrue.compare.segments import segments
from bittrue.compare.verdict import Explainer, told_apart
from bittrue.runtime.trace import write_trace
from compare.test_planted_faults import layer_and_model, random_inputs, segment_of
from support import faulty_device as device
from support.build import T, chain, single

LITERT = numerics.find("litert")


def test_rules_of_the_other_step_come_first() -> None:
    """Where few elements differ, many rules fit: what B's own model is planned with is the one, without others."""
    _, content = layer_and_model("conv", seed=3, size=(33, 40))
    part, ports = segment_of(content)
    values = random_inputs(ports, 1)
    other = numerics.find("xnnpack")
    plan = part.plan(other)
    theirs = [part.run(values[0], plan)]
    told = Explainer(LITERT, other).explain(part, values, theirs, "", rules=plan.steps[-1].rules)
    assert 0 < told.differing < 24
    assert [cause.name for cause in told.causes] == ["rescale=binary32_multiply_even"]
    assert told.causes[0].numerics == ("xnnpack",)
    assert (told.also, told.alike) == ((), ())
    device_alone = Explainer(LITERT, None).explain(part, values, theirs, "")
    assert device_alone.also or device_alone.alike, "without that, several fit"


def test_what_fits_is_sorted_by_whether_more_inputs_tell() -> None:
    """Rules that differ only where a left shift wraps give the same on other inputs; two roundings do not."""
    _, content = layer_and_model("conv", seed=3, size=(33, 40))
    part, ports = segment_of(content)
    values = random_inputs(ports, 1)
    theirs = [part.run(values[0], part.plan(numerics.find("single-rounding")))]
    case = Case(part, values, theirs)
    rules = {h.cause.rule: (h,) for h in used_slots(case) if h.cause.slot == "rescale"}
    chosen = {name: rules[name] for name in ("q31_one_step_up_wrap", "q31_two_step_up_up")}
    assert told_apart(case, rules["q31_one_step_up"], chosen) == (("q31_two_step_up_up",), ("q31_one_step_up_wrap",))
    found = Explainer(LITERT, None).explain(part, values, theirs, "")
    assert "rescale=q31_one_step_up" in (found.causes[0].name, *found.alike)
    assert not found.also
    assert "more inputs" not in found.text
    assert f"{len(found.alike)} others give the same on further random inputs, too" in found.text


def test_rules_that_no_numerics_has_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What took a search on the first tensor takes one computation on the next."""
    _, content = layer_and_model("conv", size=(33, 40), filters=16)
    part, ports = segment_of(content)
    values = random_inputs(ports, 1)
    row = {"rescale": "q30_floor_plus_one"}
    case = Case(part, values, [part.run(values[0])])
    (place,) = places(case)
    theirs = [part.run(values[0], part.plan(with_rules(case.base, place, row)))]
    changed = [part.run(v, part.plan(with_rules(case.base, place, row))) for v in random_inputs(ports, 2)]
    explainer = Explainer(LITERT, None)
    tried = []
    predict = Case.predict
    monkeypatch.setattr(Case, "predict", lambda self, h, k: (tried.append(h), predict(self, h, k))[1])
    found = explainer.explain(part, values, theirs, "")
    assert found.exact
    assert found.differing >= 24
    first, name = len(tried), found.causes[0].name
    tried.clear()
    again = explainer.explain(part, random_inputs(ports, 2), changed, "")
    assert again.exact
    assert again.causes[0].name == name
    assert len(tried) < first / 3


def test_the_search_ends(tmp_path: Path) -> None:
    """A fault that would be found is not looked for when nothing of the budget is left, and that is said."""
    layer, content = layer_and_model("conv")
    part, ports = segment_of(content)
    values = random_inputs(ports, 1)
    theirs = [without_bias(layer, values[0]["x"])]
    whole = Explainer(LITERT, None)
    assert whole.explain(part, values, theirs, "").exact
    assert not whole.unfinished
    short = Explainer(LITERT, None, 0)
    found = short.explain(part, values, theirs, "")
    assert not found.exact
    assert short.unfinished == [part.name]
    # The same in a comparison: the note names the tensor.
    (tmp_path / "a.tflite").write_bytes(content)
    _, changed = layer_and_model("conv", bias=np.zeros_like(layer.bias))
    write_trace(tmp_path / "dump", (session := bittrue.load(changed).prepare()).plan, session.trace(values[0]))
    result = bittrue.compare_models(tmp_path / "a.tflite", f"trace:{tmp_path / 'dump'}", search=0)
    assert result.unexplained
    (note,) = [note for note in result.notes if "ended early" in note]
    assert "'y'" in note
    assert "not to the end: faults," in note


def without_bias(layer: device.Layer, x: np.ndarray) -> np.ndarray:
    return device.run(replace(layer, bias=np.zeros_like(layer.bias)), x)


def test_parts_carry_their_own_tensors_alone() -> None:
    """Planning a part must not cost what planning the model costs; nodes keep their positions."""
    shape, scale = (1, 4, 4, 2), 0.1
    tensors = [T("s8", shape, scale, 0, name=f"t{i}") for i in range(7)]
    nodes = [("RELU", None, [a], [b], 2) for a, b in pairwise(tensors)]
    model = bittrue.load(chain(nodes))
    session = model.prepare("litert")
    found = list(segments(model.graph, session.plan, LITERT, [t.name for t in tensors]))
    assert [part.node.index for part in found] == list(range(6))
    assert [part.name for part in found] == [f"t{i}" for i in range(1, 7)]
    assert all(len(part.graph.tensors) == 2 for part in found)


def pool_files(folder: Path, scale: float, count_include_pad: int = 0) -> tuple[Path, Path]:
    """An average pool with padding, as .tflite on integers and as .onnx between DequantizeLinear and QuantizeLinear."""
    shape, parameters = (1, 33, 31, 5), (0.05, 7)
    options = {"padding": 0, "strideW": 1, "strideH": 1, "filterWidth": 3, "filterHeight": 3}
    x, y = (T("s8", shape, *parameters, name=name) for name in "xy")
    (folder / "pool.tflite").write_bytes(single("AVERAGE_POOL_2D", ("Pool2DOptions", options), [x], [y], version=2))
    kind = TensorProto.INT8
    first = shape[0], shape[3], shape[1], shape[2]
    constants = [numpy_helper.from_array(np.float32(parameters[0]), "s"), numpy_helper.from_array(np.int8(7), "z")]
    constants.append(numpy_helper.from_array(np.float32(scale), "sy"))
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["real"]),
        helper.make_node(
            "AveragePool",
            ["real"],
            ["mean"],
            kernel_shape=[3, 3],
            pads=[1, 1, 1, 1],
            count_include_pad=count_include_pad,
        ),
        helper.make_node("QuantizeLinear", ["mean", "sy", "z"], ["y"]),
    ]
    ends = [[helper.make_tensor_value_info(name, kind, first)] for name in "xy"]
    graph = helper.make_graph(nodes, "pool", *ends, constants)
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(content)
    (folder / "pool.onnx").write_bytes(content.SerializeToString())
    return folder / "pool.tflite", folder / "pool.onnx"


def test_operators_of_another_file_are_put_to_the_test(tmp_path: Path) -> None:
    """Without weights and with equal scales, B's own operators are the cause; a window that counts padding is none."""
    result = bittrue.compare_models(*pool_files(tmp_path, 0.05))
    (pair,) = [p for p in result.pairs if p.node is not None]
    assert pair.isolated is not None
    assert pair.isolated.differing, "means in binary32 and in integers part at ties"
    assert pair.verdict is not None
    assert pair.verdict.exact
    assert pair.verdict.benign
    assert "onnxruntime" in pair.verdict.causes[0].numerics
    counted = bittrue.compare_models(*pool_files(tmp_path, 0.05, count_include_pad=1))
    (pair,) = [p for p in counted.pairs if p.node is not None]
    assert pair.verdict is not None
    assert not pair.verdict.benign


def test_other_scales_are_no_other_way_to_compute(tmp_path: Path) -> None:
    """B's graph gives its own bits here, too; the scale differs between the files, so that says nothing."""
    result = bittrue.compare_models(*pool_files(tmp_path, 0.055))
    (pair,) = [p for p in result.pairs if p.node is not None]
    assert pair.verdict is None or not any(c.name.startswith("operators=") for c in pair.verdict.causes)
