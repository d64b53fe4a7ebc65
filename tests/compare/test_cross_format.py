"""One network as .tflite and as .onnx with channels first: inputs, matching, layouts, isolated differences, causes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from support.build import T, chain

RNG = np.random.default_rng(21)
# Height, width and channels of the input, filters of the three layers.
SIZE, CHANNELS, FILTERS = (9, 7), 3, (6, 6, 4)
SCALES = (0.05, 0.11, 0.07, 0.09)
ZEROS = (-11, 4, -128, 9)
TAPS = (3, 1, 3)
WEIGHTS = [
    RNG.integers(-127, 128, (f, t, t, c)).astype(np.int8)
    for f, t, c in zip(FILTERS, TAPS, (CHANNELS, *FILTERS), strict=False)
]
WEIGHT_SCALES = [RNG.uniform(0.003, 0.01, f).astype(np.float32) for f in FILTERS]
BIASES = [RNG.integers(-2000, 2000, f).astype(np.int32) for f in FILTERS]
# The second layer has a fused ReLU: its zero point is the smallest quantized value.
RELU = (False, True, False)


def as_tflite() -> bytes:
    tensors = [T("s8", (1, *SIZE, CHANNELS), SCALES[0], ZEROS[0], name="image")]
    nodes = []
    for i, (weights, scales, bias) in enumerate(zip(WEIGHTS, WEIGHT_SCALES, BIASES, strict=True)):
        count = len(bias)
        w = T("s8", weights.shape, scales.tolist(), [0] * count, data=weights)
        b = T("s32", (count,), (scales * np.float32(SCALES[i])).tolist(), [0] * count, data=bias)
        tensors.append(T("s8", (1, *SIZE, count), SCALES[i + 1], ZEROS[i + 1], name=f"layer{i}"))
        options = {"padding": 0, "strideH": 1, "strideW": 1, "fusedActivationFunction": int(RELU[i])}
        options |= {"dilationHFactor": 1, "dilationWFactor": 1}
        nodes.append(("CONV_2D", ("Conv2DOptions", options), [tensors[-2], w, b], [tensors[-1]], 3))
    return chain(nodes)


def as_onnx(names: dict[int, str], real_input: bool = False, wrong_bias: bool = False) -> bytes:
    """Channels first, in the form of converters: DequantizeLinear, Conv, Relu, QuantizeLinear."""
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(name: str, value: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def parameters(i: int) -> list[str]:
        return [
            constant(f"s{len(constants)}", np.float32(SCALES[i])),
            constant(f"z{len(constants)}", np.int8(ZEROS[i])),
        ]

    kind = TensorProto.FLOAT if real_input else TensorProto.INT8
    source = helper.make_tensor_value_info("x", kind, (1, CHANNELS, *SIZE))
    stored = "x"
    if real_input:
        nodes.append(helper.make_node("QuantizeLinear", ["x", *parameters(0)], ["stored"]))
        stored = "stored"
    for i, (weights, scales, bias) in enumerate(zip(WEIGHTS, WEIGHT_SCALES, BIASES, strict=True)):
        w = constant(f"w{i}", np.ascontiguousarray(weights.transpose(0, 3, 1, 2)))
        b = constant(f"b{i}", bias + (wrong_bias and i == 1) * 700 * np.arange(len(bias), dtype=np.int32))
        ws, zeros = constant(f"ws{i}", scales), constant(f"wz{i}", np.zeros(len(bias), np.int8))
        bs = constant(f"bs{i}", scales * np.float32(SCALES[i]))
        bz = constant(f"bz{i}", np.zeros(len(bias), np.int32))
        nodes.append(helper.make_node("DequantizeLinear", [stored, *parameters(i)], [f"real{i}"]))
        nodes.append(helper.make_node("DequantizeLinear", [w, ws, zeros], [f"real_w{i}"], axis=0))
        nodes.append(helper.make_node("DequantizeLinear", [b, bs, bz], [f"real_b{i}"], axis=0))
        pads = [TAPS[i] // 2] * 4
        nodes.append(helper.make_node("Conv", [f"real{i}", f"real_w{i}", f"real_b{i}"], [f"sum{i}"], pads=pads))
        if RELU[i]:
            nodes.append(helper.make_node("Relu", [f"sum{i}"], [f"positive{i}"]))
        stored = names.get(i, f"t{i}")
        source_name = f"positive{i}" if RELU[i] else f"sum{i}"
        nodes.append(helper.make_node("QuantizeLinear", [source_name, *parameters(i + 1)], [stored]))
    target = helper.make_tensor_value_info(stored, TensorProto.INT8, (1, FILTERS[-1], *SIZE))
    graph = helper.make_graph(nodes, "net", [source], [target], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


@pytest.fixture
def files(tmp_path: Path) -> Any:
    def write(*arguments: Any, **options: Any) -> tuple[str, str]:
        (tmp_path / "net.tflite").write_bytes(as_tflite())
        (tmp_path / "net.onnx").write_bytes(as_onnx(*arguments, **options))
        return str(tmp_path / "net.tflite"), str(tmp_path / "net.onnx")

    return write


def expected(a: str, b: str, seeds: range) -> tuple[list[int], list[int]]:
    """Cumulative and isolated counts of differing elements per layer, from whole runs and from single layers."""
    ours, theirs = bittrue.load(a).prepare("litert"), bittrue.load(b).prepare("onnxruntime")
    cumulative, isolated = [0, 0, 0], [0, 0, 0]
    for seed in seeds:
        x = np.random.default_rng(seed).integers(-128, 127, ours.inputs[0].shape, dtype=np.int8, endpoint=True)
        one = ours.trace({"image": x})
        two = theirs.trace({"x": np.ascontiguousarray(x.transpose(0, 3, 1, 2))})
        last = x
        for i in range(3):
            mine, its = one[f"layer{i}"], two[f"t{i}"].transpose(0, 2, 3, 1)
            cumulative[i] += int((mine != its).sum())
            alone = bittrue.load(a).prepare("litert", outputs=[f"layer{i}"])
            if i:
                alone = bittrue.load(layer_only(i)).prepare("litert")
            isolated[i] += int((next(iter(alone.run(np.ascontiguousarray(last)).values())) != its).sum())
            last = its
    return cumulative, isolated


def layer_only(i: int) -> bytes:
    count = len(BIASES[i])
    x = T("s8", (1, *SIZE, WEIGHTS[i].shape[3]), SCALES[i], ZEROS[i], name="x")
    w = T("s8", WEIGHTS[i].shape, WEIGHT_SCALES[i].tolist(), [0] * count, data=WEIGHTS[i])
    b = T("s32", (count,), (WEIGHT_SCALES[i] * np.float32(SCALES[i])).tolist(), [0] * count, data=BIASES[i])
    y = T("s8", (1, *SIZE, count), SCALES[i + 1], ZEROS[i + 1], name="y")
    options = {"padding": 0, "strideH": 1, "strideW": 1, "fusedActivationFunction": int(RELU[i])}
    options |= {"dilationHFactor": 1, "dilationWFactor": 1}
    return chain([("CONV_2D", ("Conv2DOptions", options), [x, w, b], [y], 3)])


@pytest.mark.parametrize(
    "names", [{}, {0: "layer0", 1: "layer1", 2: "layer2"}, {0: "layer0_prequant__12", 1: "layer1"}]
)
def test_layers_are_matched_and_laid_out_anew(files: Any, names: dict[int, str]) -> None:
    a, b = files(names)
    seeds = range(12)
    result = bittrue.compare_models(a, b, seeds=seeds)
    assert [(p.a, p.b, p.layout) for p in result.pairs] == [
        ("image", "x", "NCHW to NHWC"),
        *((f"layer{i}", names.get(i, f"t{i}"), "NCHW to NHWC") for i in range(3)),
    ]
    plain = files({})
    cumulative, isolated = expected(*plain, seeds)
    assert sum(isolated) > 0
    assert [p.cumulative.differing for p in result.pairs] == [0, *cumulative]
    assert [p.isolated.differing for p in result.pairs if p.isolated is not None] == isolated
    assert all(p.verdict is None or (p.verdict.exact and p.verdict.benign) for p in result.pairs)
    assert result.unexplained == 0
    for pair in result.pairs[1:]:
        if not pair.cumulative.equal:
            assert len(pair.cumulative.per_channel) == pair.shape[3]
            assert (len(pair.cumulative.plane), len(pair.cumulative.plane[0])) == SIZE


def test_the_other_way_round(files: Any) -> None:
    a, b = files({})
    rng = np.random.default_rng(8)
    inputs = [{"image": rng.integers(-128, 128, (1, *SIZE, CHANNELS)).astype(np.int8)} for _ in range(12)]
    there = bittrue.compare_models(a, b, inputs, explain=False)
    back = bittrue.compare_models(b, a, inputs, explain=False)
    shared = [p for p in back.pairs if p.dtype_a == p.dtype_b == "s8"]
    assert [(p.b, p.a, p.layout) for p in shared] == [(p.a, p.b, "NHWC to NCHW") for p in there.pairs]
    assert [p.cumulative.differing for p in shared] == [p.cumulative.differing for p in there.pairs]
    differing = [p for p in shared if not p.cumulative.equal]
    assert all(len(p.cumulative.per_channel) == p.shape[1] for p in differing)


def test_node_by_node_offers_real_numbers_and_integers_are_taken(files: Any) -> None:
    """Without fusion B shows sums and dequantized values of the same size: none of them takes an integer's place."""
    a, b = files({})
    result = bittrue.compare_models(a, f"{b}@onnx", seeds=range(4), explain=False)
    assert [(p.a, p.b) for p in result.pairs] == [("image", "x"), *((f"layer{i}", f"t{i}") for i in range(3))]


def test_real_inputs_get_the_numbers_that_the_codes_stand_for(files: Any) -> None:
    a, b = files({}, real_input=True)
    result = bittrue.compare_models(a, b, seeds=range(4), explain=False)
    assert (result.pairs[0].a, result.pairs[0].b) == ("image", "x")
    assert result.pairs[0].cumulative.equal
    assert "real numbers" in result.pairs[0].note
    assert any("as real numbers, NHWC to NCHW" in note for note in result.b.notes)
    plain = bittrue.compare_models(*files({}), seeds=range(4), explain=False)
    assert [p.isolated for p in result.pairs[1:]] == [p.isolated for p in plain.pairs[1:]]


def test_a_wrong_bias_does_not_cost_the_match(files: Any) -> None:
    a, b = files({}, wrong_bias=True)
    result = bittrue.compare_models(a, b, seeds=range(4), explain=False)
    by_name = {p.a: p for p in result.pairs}
    assert by_name["layer1"].b == "t1"
    assert by_name["layer1"].isolated is not None
    assert by_name["layer1"].isolated.largest is not None
    assert by_name["layer1"].isolated.largest > 20
    assert by_name["layer2"].b == "t2"


def test_the_match_can_be_overridden(files: Any) -> None:
    a, b = files({})
    result = bittrue.compare_models(a, b, match=[("layer0", "t1")], explain=False)
    found = {p.a: (p.b, p.how) for p in result.pairs}
    assert found["layer0"] == ("t1", "given")
    assert "t1" not in {partner for name, (partner, _) in found.items() if name != "layer0"}
