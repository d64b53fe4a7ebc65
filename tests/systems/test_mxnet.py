"""MXNet: recorded calls and models give the recorded bytes; symbols and parameters of all versions; what is refused."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from bittrue.conformance.recorded import mxnet_case
from bittrue.conformance.recorded.replay import replay
from bittrue.conformance.recorded.vectors import read_vectors
from bittrue.errors import BittrueError
from bittrue.importers.mxnet_params import read_params
from bittrue.numerics import find
from bittrue.plan import make_plan
from bittrue.runtime import ReferenceExecutor
from support.mxnet_models import Network, residual
from support.shared import SHARED

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded" / "mxnet"
GOLDEN = SHARED / "golden" / "mxnet"
needs_golden = pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"the recorded vectors are not at {GOLDEN}")


# -- recorded results ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("executor", ["auto", "reference"])
def test_recorded_calls(executor: str, record_property: Callable[[str, object], None]) -> None:
    result = replay(RECORDED, executor=executor)
    record_property("replayed", f"{result.equal} of {len(result.outcomes)} calls recorded from MXNet 1.9.1")
    assert [str(o.first or o.refusal) for o in result.outcomes if not o.equal] == []
    assert len(result.outcomes) == 77


@pytest.mark.parametrize("executor", ["auto", "reference"])
def test_recorded_calls_of_quantize_asym(executor: str) -> None:
    """Ties and what is next to them, NaN and infinities, ranges of the data, of one value, and the wrong way round."""
    result = replay(RECORDED.with_name("mxnet_asymmetric"), executor=executor)
    assert [str(o.first or o.refusal) for o in result.outcomes if not o.equal] == []
    assert len(result.outcomes) == 28


@pytest.mark.parametrize("executor", ["auto", "reference"])
def test_recorded_layers_of_a_processor_without_vnni(executor: str) -> None:
    """Full range: pairs of u8 data saturate, but of depthwise filters and where quantized_conv has no fours; an odd
    number of channels begins anew at every tap; weights of s8 images have half of their scale.
    """
    folder = RECORDED.with_name("mxnet-avx2")
    result = replay(folder, executor=executor)
    assert [str(o.first or o.refusal) for o in result.outcomes if not o.equal] == []
    assert len(result.outcomes) == 104
    assert replay(folder, "mxnet", executor=executor).equal < 30


def test_sums_without_a_bias_become_binary32_numbers_without_vnni() -> None:
    """3,000 products of 255 and 63, and one of 1 less: 48194999 lies between two binary32 numbers."""
    weights = np.full((5, 3000, 1, 1), 63, np.int8)
    x = np.full((1, 3000, 1, 1), 255, np.uint8)
    x[0, 0, 0, 0] = 254
    weights[:, 0] = 62
    exact = int((x.astype(np.int64) * weights[:1]).sum())
    net = Network()
    ends = [("low", 0), ("high", 1), ("weight_low", -1), ("weight_high", 1)]
    given = [net.variable("data"), net.variable("weight", weights)]
    given += [net.variable(name, np.array([end], np.float32)) for name, end in ends]
    node = net.add(
        "_contrib_quantized_conv", "c", given, kernel="(1, 1)", num_filter="5", no_bias="True", layout="NCHW"
    )
    model = bittrue.load(net.symbol([node, 0, 0]), net.weights())
    assert int(np.float32(exact)) != exact
    for numerics, expected in (("mxnet-avx2", int(np.float32(exact))), ("mxnet", exact)):
        for executor in ("auto", "reference"):
            session = model.prepare(numerics, shapes={"data": x.shape}, executor=executor)
            assert session.run(x)["c_output"].reshape(-1).tolist() == [expected] * 5


@pytest.mark.parametrize(
    ("channels", "groups", "differs"), [(4, 1, False), (4, 4, False), (4, 2, True), (1100, 1, True)]
)
def test_what_differs_without_vnni_is_said(channels: int, groups: int, differs: bool) -> None:
    """Groups of several channels, and sums of s8 data that may leave what binary32 numbers hold."""
    net = Network()
    weights = np.ones((4, channels // groups, 1, 1), np.float32)
    names = [net.variable("data"), net.variable("weight", weights)]
    ends = [net.variable(name, np.array([end], np.float32)) for name, end in (("low", -1), ("high", 1))]
    given = {"kernel": "(1, 1)", "num_filter": "4", "num_group": str(groups), "no_bias": "True"}
    calibrated = {"min_calib_range": "-1.0", "max_calib_range": "1.0"}
    node = net.add("_sg_mkldnn_conv", "c", [*names, *ends], [("Convolution", given)], quantized="true", **calibrated)
    graph = bittrue.load(net.symbol([node, 0, 0]), net.weights()).graph
    for numerics, said in (("mxnet", False), ("mxnet-avx2", differs)):
        plan = make_plan(graph, find(numerics), shapes={"data": (1, channels, 2, 2)})
        assert any(step.inexact for step in plan.steps) == said


def test_quantize_asym_of_other_ranks() -> None:
    """The runtime's process ends."""
    net = Network()
    node = net.add("_contrib_quantize_asym", "q", [net.variable("x")])
    model = bittrue.load(net.symbol([node, 0, 0]), net.weights())
    assert model.prepare(shapes={"x": (1, 2, 3)}).run(np.zeros((1, 2, 3), np.float32))["q_output"].dtype == np.uint8
    for shape in ((6,), (2, 3), (1, 1, 2, 3)):
        with pytest.raises(BittrueError, match="of other than three axes"):
            model.prepare(shapes={"x": shape})


def test_recorded_networks() -> None:
    """Networks that MXNet's quantizer made: calibrated with scales per channel, and not calibrated at all."""
    result = replay(RECORDED.with_name("mxnet_models"))
    assert [f"{o.case}: {o.first or o.refusal}" for o in result.outcomes if not o.equal] == []
    assert sum(outcome.values for outcome in result.outcomes) > 30_000


def test_layers_that_were_left_out_of_quantization() -> None:
    """A fused node of real numbers is its operators, one by one."""
    rng = np.random.default_rng(2)
    net = Network()
    weights, bias = rng.standard_normal((3, 5)).astype(np.float32), rng.standard_normal(3).astype(np.float32)
    inputs = [net.variable("x"), net.variable("w", weights), net.variable("b", bias)]
    layer = ("FullyConnected", {"num_hidden": "3"})
    node = net.add(
        "_sg_mkldnn_fully_connected", "fc", inputs, [layer, ("Activation", {"act_type": "relu"})], with_eltwise="True"
    )
    x = rng.standard_normal((2, 5)).astype(np.float32)
    found = bittrue.load(net.symbol([node, 0, 0]), net.weights()).prepare(shapes={"x": x.shape}).run(x)
    exact = x.astype(np.float64) @ weights.T.astype(np.float64) + bias
    assert (found["fc_output"] == np.maximum(exact, 0).astype(np.float32)).all()


@needs_golden
@pytest.mark.parametrize("folder", ["", "models"])
def test_golden(folder: str, record_property: Callable[[str, object], None]) -> None:
    result = replay(GOLDEN / folder)
    values = sum(outcome.values for outcome in result.outcomes)
    record_property(
        "replayed", f"{result.equal} of {len(result.outcomes)} cases of golden/mxnet/{folder}, {values:,} values"
    )
    assert [f"{o.case}: {o.first or o.refusal}" for o in result.outcomes if not o.equal] == []
    assert len(result.outcomes) == (28 if folder else 1158)
    if not folder:
        assert [len(cases) for cases in result.apart().values()] == [2]


def test_what_is_known_late_gives_the_same() -> None:
    """Weights and ranges as inputs: everything that the planner folds is done while running."""
    cases = [case for case in read_vectors(RECORDED).cases if case.operator.startswith("_sg_")]
    for case in cases[::3]:
        inputs = [given for given in case.inputs() if given is not None]
        attributes = dict(case.attributes)
        fused = attributes.pop("fused_ops")
        names = [given.name for given in inputs]
        content = mxnet_case.symbol(case.operator, attributes, inputs, names, len(case.outputs()), fused, case.identity)
        graph = bittrue.load(content).file.graphs[0]
        plan = make_plan(graph, find("mxnet"), shapes={given.name: given.value.shape for given in inputs})
        results = ReferenceExecutor(plan).run({i: g.value for i, g in zip(graph.inputs, inputs, strict=True)})
        found = dict(zip(plan.results, results, strict=True))
        for index, expected in zip(graph.outputs, case.outputs(), strict=True):
            assert expected is not None
            assert found[index].tobytes() == expected.value.tobytes(), case.identity


def _run(session: bittrue.Session, x: np.ndarray) -> np.ndarray:
    (result,) = session.run(x).values()
    return result


# -- whole networks --------------------------------------------------------------------------------------------------
def _load(net: Network) -> bittrue.Model:
    return bittrue.load(net.symbol([len(net.nodes) - 1, 0, 0]), net.weights())


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("channels", [3, 4, 5])
def test_native_equals_reference(channels: int, deep: bool) -> None:
    model = _load(residual(channels, deep))
    rng = np.random.default_rng(1)
    shapes = {"data": (2, channels, 4, 4)}
    reference = model.prepare(executor="reference", shapes=shapes)
    sessions = [model.prepare(shapes=shapes, isa=isa) for isa in bittrue.isas()]
    for _ in range(3):
        x = (rng.standard_normal(shapes["data"]) * 2).astype(np.float32)
        expected = _run(reference, x)
        assert np.unique(expected).size > 1
        for session in sessions:
            assert _run(session, x).tobytes() == expected.tobytes(), session.isa


def test_fused_layers_run_on_native_kernels() -> None:
    if not bittrue.isas():
        pytest.skip("the native module is not built")
    session = _load(residual()).prepare(shapes={"data": (1, 4, 4, 4)})
    text = str(session.plan)
    for node in ("c0", "fc"):
        assert f"{node}_output" in text
    left = [line for line in text.splitlines() if "runs on the reference" in line]
    assert not [line for line in left if "_sg_mkldnn" in line], left


def test_shapes_that_the_file_leaves_open(tmp_path: Path) -> None:
    net = residual()
    with pytest.raises(BittrueError) as caught:
        _load(net).prepare()
    assert caught.value.code == "BT-INPUT-OPEN"
    assert "[?, 4, ?, ?]" in str(caught.value)
    assert "--shape data=N,4,N,N" in str(caught.value)
    (tmp_path / "net-symbol.json").write_bytes(net.symbol([len(net.nodes) - 1, 0, 0]))
    (tmp_path / "net-0003.params").write_bytes(net.weights())
    path = str(tmp_path / "net-symbol.json")
    run = CliRunner().invoke(cli, ["run", path, "--shape", "data=1,4,4,4"])
    assert run.exit_code == 0, run.output
    inspected = CliRunner().invoke(cli, ["inspect", path])
    assert inspected.exit_code == 0, inspected.output
    assert "?, 4, ?, ?" in inspected.output.replace("\n", "")


def test_a_shape_in_the_file_is_enough() -> None:
    net = residual()
    net.nodes[0]["attrs"] = {"__shape__": "(1, 4, 4, 4)", "__dtype__": "0", "__init__": "zeros", "data_lr_mult": "2"}
    assert _load(net).prepare().inputs[0].shape == (1, 4, 4, 4)
    # 0 is a dimension that is not known.
    net.nodes[0]["attrs"] = {"__shape__": "(0, 4, 4, 4)"}
    assert _load(net).prepare().inputs[0].shape == (1, 4, 4, 4)


# -- files of other versions -----------------------------------------------------------------------------------------
def test_older_spellings_mean_the_same() -> None:
    net = residual()
    head = [len(net.nodes) - 1, 0, 0]
    x = np.random.default_rng(3).standard_normal((1, 4, 4, 4)).astype(np.float32)
    shapes = {"data": x.shape}
    expected = _run(bittrue.load(net.symbol(head), net.weights()).prepare(shapes=shapes), x)
    for spelling in ("attr", "param"):
        content = json.loads(net.symbol(head))
        for node in content["nodes"]:
            node[spelling] = node.pop("attrs", {})
            node["inputs"] = [entry[:2] for entry in node["inputs"]]
            node["backward_source_id"] = -1
            for graph in node.get("subgraphs", []):
                for inner in graph["nodes"]:
                    inner[spelling] = inner.pop("attrs", {})
        content["heads"] = [head[:2]]
        content["attrs"] = {"mxnet_version": ["int", 800]}
        model = bittrue.load(json.dumps(content).encode(), net.weights())
        assert _run(model.prepare(shapes=shapes), x).tobytes() == expected.tobytes()
        assert "0.8.0" in model.file.producer


def _one_array(head: bytes, payload: bytes = b"\x01\x02\x03", name: bytes = b"aux:w") -> bytes:
    start = struct.pack("<QQQ", 0x112, 0, 1)
    return start + head + payload + struct.pack("<QQ", 1, len(name)) + name


_PLACE = struct.pack("<iii", 1, 0, 5)
FORMS = {
    "oldest": struct.pack("<II", 1, 3) + _PLACE,
    "first": struct.pack("<Iiq", 0xF993FAC8, 1, 3) + _PLACE,
    "second": struct.pack("<Iiiq", 0xF993FAC9, 0, 1, 3) + _PLACE,
    "scalars": struct.pack("<Iiiq", 0xF993FACA, 0, 1, 3) + _PLACE,
}


@pytest.mark.parametrize("form", sorted(FORMS))
def test_forms_of_arrays(form: str) -> None:
    (tensor,) = read_params(np.frombuffer(_one_array(FORMS[form]), np.uint8)).values()
    assert (tensor.name, tensor.dtype, tensor.values().tolist()) == ("aux:w", "s8", [1, 2, 3])


def test_scalars_and_arrays_without_content() -> None:
    scalar = struct.pack("<Iii", 0xF993FACA, 0, 0) + struct.pack("<iii", 1, 0, 5)
    (tensor,) = read_params(np.frombuffer(_one_array(scalar, b"\x07"), np.uint8)).values()
    assert tensor.shape == ()
    assert tensor.values().tolist() == 7
    for nothing in (
        struct.pack("<Iii", 0xF993FAC9, 0, 0),
        struct.pack("<Iii", 0xF993FACA, 0, -1),
        struct.pack("<I", 0),
    ):
        assert read_params(np.frombuffer(_one_array(nothing, b""), np.uint8)) == {}


DAMAGE = {
    "no magic": (b"\0" * 24, "BT-MXNET-PARAMS"),
    "short": (b"\x12\x01", "BT-MXNET-PARAMS"),
    "sparse": (_one_array(struct.pack("<Iiiq", 0xF993FAC9, 1, 1, 3) + _PLACE), "BT-MXNET-SPARSE"),
    "storage": (_one_array(struct.pack("<Iiiq", 0xF993FAC9, 7, 1, 3) + _PLACE), "BT-MXNET-PARAMS"),
    "rank": (_one_array(struct.pack("<Iii", 0xF993FAC9, 0, 99) + _PLACE), "BT-MXNET-PARAMS"),
    "size": (_one_array(struct.pack("<Iiiq", 0xF993FAC9, 0, 1, -3) + _PLACE), "BT-MXNET-PARAMS"),
    "huge": (_one_array(struct.pack("<Iiiq", 0xF993FAC9, 0, 1, 1 << 60) + _PLACE), "BT-MXNET-PARAMS"),
    "type": (_one_array(struct.pack("<Iiiq", 0xF993FAC9, 0, 1, 3) + struct.pack("<iii", 1, 0, 77)), "BT-MXNET-PARAMS"),
    "count": (struct.pack("<QQQ", 0x112, 0, 1 << 40), "BT-MXNET-PARAMS"),
    "name": (_one_array(FORMS["second"], name=b"\xff\xfe"), "BT-MXNET-PARAMS"),
    "more": (_one_array(FORMS["second"]) + b"\0", "BT-MXNET-PARAMS"),
}


@pytest.mark.parametrize("kind", sorted(DAMAGE))
def test_damaged_parameters(kind: str) -> None:
    content, code = DAMAGE[kind]
    with pytest.raises(BittrueError) as caught:
        read_params(np.frombuffer(content, np.uint8))
    assert caught.value.code == code


# -- what is refused -------------------------------------------------------------------------------------------------
def _changed(change: Callable[[list[dict[str, Any]]], None]) -> bytes:
    content = json.loads(residual().symbol([18, 0, 0]))
    change(content["nodes"])
    return json.dumps(content).encode()


def _node(nodes: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(node for node in nodes if node["name"] == name)


def _inner(nodes: list[dict[str, Any]], name: str, position: int) -> dict[str, Any]:
    found: dict[str, Any] = _node(nodes, name)["subgraphs"][0]["nodes"][position]
    return found


REFUSED: dict[str, tuple[Callable[[list[dict[str, Any]]], None], str]] = {
    "attribute": (lambda n: _node(n, "q")["attrs"].update(round="up"), "BT-MXNET-ATTRIBUTE"),
    "number": (lambda n: _node(n, "q")["attrs"].update(min_calib_range="x"), "BT-MXNET-ATTRIBUTE"),
    "type": (lambda n: _node(n, "q")["attrs"].update(out_type="int4"), "BT-MXNET-ATTRIBUTE"),
    "flag": (lambda n: _node(n, "c0")["attrs"].update(with_bn="maybe"), "BT-MXNET-ATTRIBUTE"),
    "not quantized": (lambda n: _node(n, "c0")["attrs"].update(quantized="false"), "BT-NODE-ARITY"),
    "activation": (lambda n: _inner(n, "c0", 3)["attrs"].update(act_type="tanh"), "BT-MXNET-ACTIVATION"),
    "another chain": (lambda n: _inner(n, "c0", 3).update(op="LeakyReLU"), "BT-MXNET-SUBGRAPH"),
    "no chain": (lambda n: _inner(n, "c0", 3).update(inputs=[[1, 0, 0]]), "BT-MXNET-SUBGRAPH"),
    "filters": (lambda n: _inner(n, "c0", 1)["attrs"].update(num_filter="7"), "BT-MXNET-WEIGHTS"),
    "kernel": (lambda n: _inner(n, "c0", 1)["attrs"].update(kernel="(3,)"), "BT-MXNET-CONVOLUTION"),
    "no kernel": (lambda n: _inner(n, "c0", 1)["attrs"].pop("kernel"), "BT-MXNET-ATTRIBUTE"),
    "inputs": (lambda n: _node(n, "c0")["inputs"].pop(), "BT-NODE-ARITY"),
    "range": (lambda n: _node(n, "fc")["inputs"].__setitem__(3, [12, 0, 0]), "BT-NODE-TYPE"),
    "order": (lambda n: _node(n, "q").update(inputs=[[15, 0, 0]]), "BT-NODE-ORDER"),
    "output": (lambda n: _node(n, "out").update(inputs=[[17, 5, 0]] * 3), "BT-MXNET-OUTPUT"),
    "name": (lambda n: n[3].update(name="c0_weight"), "BT-MXNET-NAME"),
    "structure": (lambda n: _node(n, "q").update(inputs="x"), "BT-MXNET-FORMAT"),
    "operator": (lambda n: _node(n, "q").update(op=5), "BT-MXNET-FORMAT"),
    "shape": (lambda n: n[0].update(attrs={"__shape__": "(1, 'x')"}), "BT-MXNET-FORMAT"),
    "unknown": (lambda n: _node(n, "out").update(op="SoftmaxOutputOfSomething"), "BT-OPERATOR"),
}


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_refusals(kind: str) -> None:
    change, code = REFUSED[kind]
    content = _changed(change)
    with pytest.raises(BittrueError) as caught:
        bittrue.load(content, residual().weights()).prepare("mxnet", shapes={"data": (1, 4, 4, 4)})
    assert caught.value.code == code
    assert caught.value.place or kind == "unknown"


def test_an_empty_range_has_no_multiplier() -> None:
    content = _changed(lambda n: _node(n, "c0")["attrs"].update(max_calib_range="0.0"))
    with pytest.raises(BittrueError) as caught:
        bittrue.load(content, residual().weights()).prepare("mxnet", shapes={"data": (1, 4, 4, 4)})
    assert caught.value.code == "BT-QUANT-OPERAND"
    assert "'c0'" not in str(caught.value)
    assert "_sg_mkldnn_conv" in str(caught.value)


def test_texts_that_are_no_symbols() -> None:
    for content in (
        b'{"nodes": [], "heads": []}',
        b'{"nodes": 1, "op": 2}',
        b'{"nodes": [{"op": "null"}], "heads": []}',
    ):
        with pytest.raises(BittrueError) as caught:
            bittrue.load(content)
        assert caught.value.code == "BT-MXNET-FORMAT"


# Run: what MXNet 1.9.1 gives as the upper end of a calibrated range; binary64 in between would round twice.
@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.0000000596046447753906250000001", 1.0000001192092896),
        ("1.00000017881393432617187499999", 1.0000001192092896),
        ("16777217.0000001", 16777218.0),
        ("7.1e-46", 1.401298464324817e-45),
        ("1e-40", 9.99994610111476e-41),
        ("3.512764", 3.5127639770507812),
    ],
)
def test_ends_of_ranges_are_rounded_once(text: str, number: float) -> None:
    net = Network()
    attributes = {"out_type": "uint8", "min_calib_range": "0.0", "max_calib_range": text}
    node = net.add("_contrib_quantize_v2", "q", [net.variable("x")], **attributes)
    session = bittrue.load(net.symbol([node, 0, 0], [node, 2, 0])).prepare(shapes={"x": (1,)})
    assert float(session.run(np.zeros(1, np.float32))["q_output2"][0]) == number
