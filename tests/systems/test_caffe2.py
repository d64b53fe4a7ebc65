"""Caffe2: recorded vectors, networks from files in both forms, and what the importer refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import bittrue
from bittrue.conformance.recorded import caffe2_case
from bittrue.conformance.recorded.replay import replay
from bittrue.conformance.recorded.vectors import read_vectors
from support.caffe2_nets import add, argument, classifier, fill, new
from support.replays import replays
from support.shared import SHARED

VECTORS = SHARED / "golden" / "caffe2"
RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded" / "caffe2"
IMAGE = np.random.default_rng(5).normal(0, 2, (2, 8, 8, 3)).astype(np.float32)


def quantized(scale: float = 0.5, zero_point: int = 3) -> dict[str, Any]:
    return {"Y_scale": scale, "Y_zero_point": zero_point}


def computed(session: Any, *feeds: np.ndarray) -> list[np.ndarray]:
    return list(session.run(*feeds).values())


@pytest.mark.skipif(not VECTORS.is_dir(), reason=f"the recorded vectors are not at {VECTORS}")
def test_golden_vectors(record_property: Callable[[str, object], None]) -> None:
    for executor, result in replays(VECTORS, ["native", "reference"]).items():
        assert [str(outcome) for outcome in result.outcomes if not outcome.equal] == []
        assert set(result.numerics) == {"caffe2", "caffe2-dnnlowp"}
        values = sum(outcome.values for outcome in result.outcomes)
        record_property("compared", f"Caffe2, {executor}: {result.equal} cases, {values} values equal")


@pytest.mark.parametrize("executor", ["native", "reference"])
def test_recorded_vectors(executor: str) -> None:
    """Recorded from PyTorch 1.8.1 for this repository: every operator of the default engine."""
    result = replay(RECORDED, executor=executor)
    assert [str(outcome) for outcome in result.outcomes if not outcome.equal] == []
    assert result.equal == 91


def test_other_parameters_are_a_difference(tmp_path: Path) -> None:
    """The scale and the zero point of results are compared, too."""
    text = (RECORDED / "manifest.json").read_text()
    (tmp_path / "values.npz").write_bytes((RECORDED / "values.npz").read_bytes())
    for name in ('"zero_point":', '"scale_hex":'):
        before, outputs, after = text.rpartition('"outputs"')
        rest = after.replace(name, f'{name}"0x1p-3","was":' if "hex" in name else f'{name}1,"was":')
        (tmp_path / "manifest.json").write_text(before + outputs + rest)
        outcome = replay(tmp_path, executor="reference").outcomes[-1]
        assert outcome.differing == 1
        assert outcome.first is not None
        assert outcome.first.output == ("Y:scale" if "hex" in name else "Y:zero_point")


@pytest.mark.parametrize("engine", ["", "DNNLOWP"])
def test_binary_and_text_files_give_the_same(tmp_path: Path, engine: str) -> None:
    predict, init = classifier(engine)
    (tmp_path / "predict_net.pb").write_bytes(predict.SerializeToString())
    (tmp_path / "init_net.pb").write_bytes(init.SerializeToString())
    (tmp_path / "predict_net.pbtxt").write_text(text_format.MessageToString(predict))
    (tmp_path / "init_net.pbtxt").write_text(text_format.MessageToString(init))
    results = []
    for name in ("predict_net.pb", "predict_net.pbtxt"):
        model = bittrue.load(tmp_path / name)
        for executor in ("native", "reference"):
            session = model.prepare(executor=executor, shapes={"data": IMAGE.shape})
            assert session.plan.numerics == "caffe2"
            (probabilities,) = computed(session, IMAGE)
            results.append(probabilities)
    assert results[0].shape == (2, 5)
    assert results[0].dtype == np.float32
    assert all(result.tobytes() == results[0].tobytes() for result in results)
    assert float(results[0].sum(axis=1).min()) > 0.98


def test_engines_differ_and_follow_the_file() -> None:
    answers = []
    for engine in ("", "DNNLOWP"):
        predict, init = classifier(engine)
        predict.external_output.append("s")
        model = bittrue.load(predict.SerializeToString(), init.SerializeToString())
        answers.append([computed(model.prepare(name, shapes={"data": IMAGE.shape}), IMAGE)[1] for name in ENGINES])
    default, server = answers
    # A file of the server engine runs as such either way; one of the default engine only where it is asked to.
    assert server[0].tobytes() == server[1].tobytes()
    assert default[0].tobytes() != default[1].tobytes()
    assert default[0].tobytes() != server[0].tobytes()


ENGINES = ("caffe2", "caffe2-dnnlowp")


def test_blobs_may_be_overwritten() -> None:
    predict, init = new(), new()
    predict.external_input.append("x")
    predict.external_output.append("x")
    add(init, "Int8GivenTensorFill", "", "x", shape=[2, 2], **quantized())
    add(predict, "Int8Relu", "x", "x", **quantized())
    add(predict, "Int8Flatten", "x", "x", axis=0, **quantized())
    model = bittrue.load(predict.SerializeToString(), init.SerializeToString())
    session = model.prepare()
    assert computed(session, np.uint8([[0, 3], [9, 2]]))[0].tolist() == [[3, 3, 9, 3]]


def test_a_fill_without_values_declares_an_input() -> None:
    predict, init = new(), new()
    add(init, "Int8GivenTensorFill", "", "x", shape=[3], Y_scale=0.25, Y_zero_point=7)
    add(predict, "Int8Dequantize", "x", "y")
    predict.external_input.append("x")
    session = bittrue.load(predict.SerializeToString(), init.SerializeToString()).prepare()
    assert computed(session, np.uint8([7, 8, 3]))[0].tolist() == [0.0, 0.25, -1.0]
    with pytest.raises(bittrue.BittrueError, match="no Int8 tensor"):
        bittrue.load(predict.SerializeToString())


def test_constants_of_the_predict_net_and_results_without_a_list() -> None:
    predict = new()
    add(predict, "Int8GivenTensorFill", "", "c", shape=[2], values=b"\x05\xff", **quantized())
    add(predict, "Int8Dequantize", "c", "y")
    assert computed(bittrue.load(predict.SerializeToString()).prepare())[0].tolist() == [1.0, 126.0]


def test_other_engines_fall_back_where_the_server_has_no_operator() -> None:
    predict, init = new(), new()
    predict.external_input.append("x")
    add(init, "Int8GivenTensorFill", "", "x", shape=[4], **quantized(0.1, 128))
    add(predict, "Int8LeakyRelu", "x", "y", "DNNLOWP", alpha=0.25, **quantized(0.1, 128))
    model = bittrue.load(predict.SerializeToString(), init.SerializeToString())
    answers = [computed(model.prepare(name), np.uint8([0, 127, 128, 200]))[0].tolist() for name in ENGINES]
    assert answers == [[96, 128, 128, 200]] * 2


def layer(**changes: Any) -> Callable[[], tuple[Any, Any]]:
    """A convolution with changed arguments; None removes one."""

    def build() -> tuple[Any, Any]:
        predict, init = new(), new()
        predict.external_input.extend(["x", "w", "b"])
        add(init, "Int8GivenTensorFill", "", "x", shape=[1, 4, 4, 2], **quantized())
        fill(init, "w", np.ones((2, 3, 3, 2), np.uint8), 0.125, 1)
        fill(init, "b", np.zeros(2, np.int32), 0.0625)
        arguments = {"order": "NHWC", "kernel": 3, "pad": 1, **quantized(1.0), **changes}
        kept = {name: value for name, value in arguments.items() if value is not None}
        add(predict, "Int8Conv", "x w b", "y", **kept)
        return predict, init

    return build


def unary(kind: str, shape: list[int], scale: float = 0.5, engine: str = "", **arguments: Any) -> Callable[[], Any]:
    def build() -> tuple[Any, Any]:
        predict, init = new(), new()
        predict.external_input.append("x")
        add(init, "Int8GivenTensorFill", "", "x", shape=shape, **quantized(scale))
        add(predict, kind, "x", "y", engine, **arguments)
        return predict, init

    return build


POOL = {"order": "NHWC", "kernel": 2}
REFUSED: list[tuple[str, Callable[[], tuple[Any, Any]]]] = [
    ("BT-CAFFE2-ORDER", layer(order="NCHW")),
    ("BT-CAFFE2-ORDER", layer(order=None)),
    ("BT-MULTIPLIER", layer(Y_scale=0.0625)),
    ("BT-CAFFE2-WINDOW", layer(kernel=2)),
    ("BT-CAFFE2-WINDOW", layer(pad=-1)),
    ("BT-CAFFE2-WINDOW", layer(legacy_pad=1)),
    ("BT-CAFFE2-WINDOW", layer(strides=[1, 1, 1])),
    ("BT-WINDOW", layer(stride=0)),
    ("BT-CONV-CHANNELS", layer(group=2)),
    ("BT-CAFFE2-ARGUMENT", layer(what=1)),
    ("BT-CAFFE2-ARGUMENT", layer(Y_scale=1)),
    ("BT-CAFFE2-ARGUMENT", layer(pad=2**40)),
    ("BT-QUANT-SCALE", layer(Y_scale=float("nan"))),
    ("BT-QUANT-SCALE", layer(Y_scale=-1.0)),
    ("BT-QUANT-ZERO-POINT", layer(Y_zero_point=256)),
    ("BT-QUANT-SAME", unary("Int8Relu", [3], **quantized(0.25))),
    ("BT-QUANT-SAME", unary("Int8Transpose", [3, 2], axes=[1, 0], **quantized(0.5, 4))),
    ("BT-QUANT-SAME", unary("Int8MaxPool", [1, 4, 4, 1], **POOL, **quantized(0.25))),
    ("BT-WINDOW", unary("Int8MaxPool", [1, 4, 4, 1], order="NHWC", kernel=1, **quantized())),
    ("BT-WINDOW", unary("Int8AveragePool", [1, 4, 4, 1], order="NHWC", kernel=1, **quantized())),
    ("BT-MULTIPLIER", unary("Int8AveragePool", [1, 4, 4, 1], 1e-3, **POOL, **quantized(4.0))),
    ("BT-QUANT-OUTPUT", unary("Int8Sigmoid", [3], **quantized(0.25, 0))),
    ("BT-QUANT-OUTPUT", unary("Int8Softmax", [3, 2], **quantized(1 / 256, 1))),
    ("BT-ALPHA", unary("Int8LeakyRelu", [3], alpha=1.0, **quantized())),
    ("BT-CAFFE2-GROUPS", unary("Int8ChannelShuffle", [1, 2, 2, 4], order="NHWC", group=1, **quantized())),
    ("BT-RESHAPE", unary("Int8ChannelShuffle", [1, 2, 2, 5], order="NHWC", group=2, **quantized())),
    ("BT-SLICE", unary("Int8Slice", [4, 4], starts=[1, 1], ends=[-1, -1], **quantized())),
    ("BT-SLICE", unary("Int8Slice", [4, 4], starts=[3, 0], ends=[1, -1], **quantized())),
    ("BT-CAFFE2-ARGUMENT", unary("Int8Slice", [4, 4], starts=[3, 0], **quantized())),
    ("BT-CAFFE2-ARGUMENT", unary("Int8Reshape", [4, 4], **quantized())),
    ("BT-SHAPE-AXIS", unary("Int8Flatten", [4, 4], axis=3, **quantized())),
    ("BT-CAFFE2-OPERATOR", unary("Int8GroupNorm", [4, 4])),
    ("BT-CAFFE2-OPERATOR", unary("Conv", [4, 4])),
    ("BT-CAFFE2-ENGINE", unary("Int8Relu", [4], engine="DNNLOWP_ACC16", **quantized())),
    ("BT-NODE-TYPE", unary("Int8Quantize", [4], **quantized())),
    ("BT-NODE-ARITY", unary("Int8Mul", [4], **quantized())),
    ("BT-RESIZE-SIZE", unary("Int8ResizeNearest", [1, 2, 2, 1], width_scale=0.0, **quantized())),
]


@pytest.mark.parametrize(("code", "build"), REFUSED, ids=[f"{i}-{code}" for i, (code, _) in enumerate(REFUSED)])
def test_refused(code: str, build: Callable[[], tuple[Any, Any]]) -> None:
    predict, init = build()
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(predict.SerializeToString(), init.SerializeToString()).prepare()
    assert caught.value.code == code, caught.value
    assert caught.value.place


def test_additions_of_other_forms_are_refused() -> None:
    for shapes, scales, code in (
        (([3], [1]), (1.0, 1.0), "BT-SHAPE-BROADCAST"),
        (([3], [3]), (1.0, 300.0), "BT-MULTIPLIER"),
        (([3], [3]), (2.0**-15, 1.0), "BT-MULTIPLIER"),
        (([3], [3], [3]), (1.0, 1.0, 1.0), "BT-OPERATOR"),
    ):
        predict, init = new(), new()
        names = "abc"[: len(shapes)]
        for name, shape, scale in zip(names, shapes, scales, strict=True):
            add(init, "Int8GivenTensorFill", "", name, shape=shape, **quantized(scale))
        predict.external_input.extend(names)
        add(predict, "Int8Sum", " ".join(names), "y", **quantized(1.0))
        with pytest.raises(bittrue.BittrueError) as caught:
            bittrue.load(predict.SerializeToString(), init.SerializeToString()).prepare("caffe2")
        assert caught.value.code == code


def damaged() -> list[tuple[str, Callable[[Any, Any], None]]]:
    def twice(predict: Any, init: Any) -> None:
        argument(predict.op[0], "Y_scale", 1.0)

    return [
        ("BT-CAFFE2-ARGUMENT", twice),
        ("BT-NODE-ORDER", lambda predict, init: predict.op[1].input.__setitem__(0, "nowhere")),
        ("BT-CAFFE2-NAME", lambda predict, init: predict.external_output.append("nowhere")),
        ("BT-CAFFE2-NAME", lambda predict, init: predict.external_input.append("data")),
        ("BT-CAFFE2-NAME", lambda predict, init: predict.op[0].ClearField("output")),
        (
            "BT-CAFFE2-DATA",
            lambda predict, init: init.op[0].arg[1].ClearField("s") or setattr(init.op[0].arg[1], "s", b"1"),
        ),
        ("BT-CAFFE2-SHAPE", lambda predict, init: init.op[0].arg[0].ints.__setitem__(0, -1)),
        ("BT-CAFFE2-OPERATOR", lambda predict, init: setattr(init.op[0], "type", "XavierFill")),
        ("BT-CAFFE2-NET", lambda predict, init: setattr(predict, "type", "rnn")),
        ("BT-CAFFE2-DEVICE", lambda predict, init: setattr(predict.device_option, "device_type", 1)),
        ("BT-MODEL-EMPTY", lambda predict, init: predict.ClearField("op")),
    ]


@pytest.mark.parametrize(("code", "damage"), damaged())
def test_contradictions(code: str, damage: Callable[[Any, Any], None]) -> None:
    from bittrue.importers.caffe2 import read_caffe2

    predict, init = classifier()
    damage(predict, init)
    with pytest.raises(bittrue.BittrueError) as caught:
        read_caffe2(*(np.frombuffer(net.SerializeToString(), np.uint8) for net in (predict, init)))
    assert caught.value.code == code, caught.value


# What recorded operators are read as.
STEMS = {
    "Int8Add": ["add"],
    "Int8AveragePool": ["average_pool"],
    "Int8ChannelShuffle": ["reshape", "transpose", "reshape"],
    "Int8ConvTranspose": ["conv_transpose"],
    "Int8FC": ["flatten", "fully_connected"],
    "Int8MaxPoolRelu": ["max_pool"],
    "Int8ResizeNearest": ["resize_nearest"],
    "Int8RoIAlign": ["roi_align"],
    "Int8Slice": ["slice_axes"],
}


@pytest.mark.parametrize("operator", STEMS)
def test_operators_are_read_as_ours(operator: str) -> None:
    case = next(case for case in read_vectors(RECORDED).cases if case.operator == operator)
    predict, init = caffe2_case.nets(case)
    (graph,) = bittrue.load(predict.SerializeToString(), init.SerializeToString()).graphs
    assert [node.operator for node in graph.nodes] == STEMS[operator]
    assert all(node.attributes["engine"] == "" for node in graph.nodes)


def test_sums_of_other_counts_are_operators_of_their_own() -> None:
    for engine, count, stem in (("", 1, "add_n"), ("DNNLOWP", 3, "add_n"), ("DNNLOWP", 2, "add")):
        predict, init = new(), new()
        names = "abc"[:count]
        for name in names:
            add(init, "Int8GivenTensorFill", "", name, shape=[3], **quantized())
        predict.external_input.extend(names)
        add(predict, "Int8Sum", " ".join(names), "y", engine, **quantized())
        (graph,) = bittrue.load(predict.SerializeToString(), init.SerializeToString()).graphs
        assert [node.operator for node in graph.nodes] == [stem]


def test_depthwise_filters_are_turned() -> None:
    predict, init = classifier()
    (graph,) = bittrue.load(predict.SerializeToString(), init.SerializeToString()).graphs
    (node,) = (node for node in graph.nodes if node.attributes.get("filter_layout") == "ISO")
    assert graph.tensors[node.inputs[1] or 0].shape == (1, 3, 3, 8)
    assert node.attributes["pads"] == (1, 1, 1, 1)


def test_normalization_is_read_as_ours() -> None:
    predict, init = new(), new()
    add(init, "Int8GivenTensorFill", "", "x", shape=[1, 2, 2, 3], **quantized())
    for name in "sbmv":
        fill(init, name, np.ones(3, np.float32))
    predict.external_input.extend("xsbmv")
    add(predict, "Int8SpatialBN", "x s b m v", "y", "DNNLOWP", order="NHWC", is_test=1, epsilon=1e-5, **quantized(0.25))
    model = bittrue.load(predict.SerializeToString(), init.SerializeToString())
    assert [node.operator for node in model.graphs[0].nodes] == ["batch_normalization"]
    for executor in ("native", "reference"):
        (y,) = computed(model.prepare(executor=executor), np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3))
        assert y.shape == (1, 2, 2, 3)
    predict.op[0].engine = ""
    other = bittrue.load(predict.SerializeToString(), init.SerializeToString())
    with pytest.raises(bittrue.BittrueError, match="none for what this node asks for"):
        other.prepare("caffe2")


@pytest.mark.parametrize("samples", [0, 1, 3])
def test_boxes_are_native(samples: int, request: pytest.FixtureRequest) -> None:
    """Boxes inside, beside and across the border, of several images: every kernel gives the reference's bytes."""
    rng = np.random.default_rng(request.config.option.seed)
    for _ in range(12):
        predict, init = new(), new()
        shape = [int(v) for v in rng.integers(1, (4, 12, 12, 20))]
        add(init, "Int8GivenTensorFill", "", "x", shape=shape, **quantized(0.03, int(rng.integers(0, 256))))
        predict.external_input.extend(["x", "boxes"])
        bins = {"pooled_h": int(rng.integers(1, 5)), "pooled_w": int(rng.integers(1, 5))}
        ends = {"Y_scale": 0.05, "Y_zero_point": int(rng.integers(0, 256))}
        arguments = {"order": "NHWC", "spatial_scale": 0.5, "sampling_ratio": samples, **bins, **ends}
        add(predict, "Int8RoIAlign", "x boxes", "y", **arguments)
        model = bittrue.load(predict.SerializeToString(), init.SerializeToString())
        corners = np.sort(rng.uniform(-6, 30, (7, 2, 2)), axis=1).reshape(7, 4)
        boxes = np.concatenate([rng.integers(0, shape[0], (7, 1)), corners], axis=1).astype(np.float32)
        x = rng.integers(0, 256, shape, np.uint8)
        shapes = {"boxes": boxes.shape}
        (expected,) = computed(model.prepare(executor="reference", shapes=shapes), x, boxes)
        for isa in bittrue.isas():
            session = model.prepare(isa=isa, threads=2, shapes=shapes)
            assert "runs on the reference" not in str(session.plan)
            (found,) = computed(session, x, boxes)
            assert found.tobytes() == expected.tobytes(), isa
