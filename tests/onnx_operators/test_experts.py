"""Mixtures of experts: random one-node models against ONNX Runtime.

Stems: mixture_of_experts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from support.attention_models import normal
from support.differential import assert_same
from support.expert_models import GENERATORS, qmoe
from support.native import check_native
from support.onnx_models import HERE, MICROSOFT, Checks, check, run_runtime, single


@pytest.mark.parametrize("operator", GENERATORS)
def test_random_models(request: pytest.FixtureRequest, operator: str) -> None:
    checks = Checks(request, usual=9)
    for rng in checks:
        checks.add(*GENERATORS[operator](rng))
    assert "equal" in checks.outcomes


def test_weights_in_blocks(request: pytest.FixtureRequest) -> None:
    """Constant scales of whole blocks: kernels of products with such weights."""
    checks = Checks(request, usual=6, only="equal")
    for rng in checks:
        checks.add(*qmoe(rng, by_blocks=True))


def test_experts_of_few_rows_come_first() -> None:
    """Of gated products with weights in blocks; 40 experts are more than an insertion sort orders."""
    rng, experts = np.random.default_rng(4), 40
    inputs: dict[str, np.ndarray | None] = {"x": normal(rng, 50, 32), "scores": normal(rng, 50, experts)}
    for name, columns in (("first", 64), ("second", 32)):
        inputs[name] = rng.integers(0, 256, (experts, columns, 16)).astype(np.uint8)
        inputs[f"{name}_scale"] = np.exp2(rng.uniform(-6, -3, (experts, columns, 1))).astype(np.float32)
        inputs[f"{name}_bias"] = None
    attributes = {"k": 5, "activation_type": "swiglu", "swiglu_fusion": 1, "expert_weight_bits": 4, "block_size": 32}
    constants = [name for name in inputs if name.startswith(("first", "second")) and inputs[name] is not None]
    model = single("QMoE", inputs, [TensorProto.FLOAT], attributes, domain=MICROSOFT, constants=constants)
    assert check(*model) == "equal"


def test_blocks_without_tables_are_refused() -> None:
    rng = np.random.default_rng(5)
    inputs = {"x": rng.standard_normal((2, 1024)).astype(np.float32), "scores": np.zeros((2, 1), np.float32)}
    for name, shape in (("first", (1, 128, 1024)), ("second", (1, 1024, 128))):
        inputs[name] = rng.integers(0, 256, (*shape[:2], shape[2] // 4)).astype(np.uint8)
        inputs[f"{name}_scale"] = np.ones((*shape[:2], 1), np.float32)
        inputs[f"{name}_bias"] = None
    attributes = {"k": 1, "expert_weight_bits": 2, "block_size": 1024}
    outcome = check(*single("QMoE", inputs, [TensorProto.FLOAT], attributes, domain=MICROSOFT))
    # On aarch64 there are no tables.
    assert outcome == ("equal" if HERE.endswith("@aarch64") else "refused")


@pytest.mark.parametrize("attributes", [{}, {"normalize_routing_weights": 1}])
@pytest.mark.parametrize("operator", ["MoE", "QMoE"])
def test_scores_that_are_no_numbers(operator: str, attributes: dict[str, int]) -> None:
    """A row with NaN asks whom comparisons let through; experts that count NaN are not asked."""
    rng = np.random.default_rng(2)
    scores = rng.standard_normal((4, 5)).astype(np.float32)
    scores[0, 1] = scores[1, 0] = scores[2, 4] = np.nan
    scores[2, 2], scores[3] = np.inf, -np.inf
    inputs = {"x": rng.standard_normal((4, 8)).astype(np.float32), "scores": scores}
    for name, shape in (("first", (5, 16, 8)), ("second", (5, 8, 16))):
        if operator == "MoE":
            inputs[name] = rng.standard_normal(shape).astype(np.float32)
            continue
        inputs[name] = rng.integers(0, 256, (*shape[:2], shape[2] // 2)).astype(np.uint8)
        inputs[f"{name}_scale"] = rng.standard_normal(shape[:2]).astype(np.float32)
        inputs[f"{name}_bias"] = rng.standard_normal(shape[:2]).astype(np.float32)
    if operator == "MoE":
        inputs = {name: inputs[name] for name in ("x", "scores", "first", "second")}
        order = {"x": None, "scores": None, "first": None, "first_bias": None, "second": None}
        inputs = {name: inputs.get(name) for name in order}
    attributes = {"k": 2, **attributes}
    assert check(*single(operator, inputs, [TensorProto.FLOAT], attributes, domain=MICROSOFT)) == "equal"


def test_scores_that_differ_and_have_one_share() -> None:
    """Of experts with one share the later one is asked first, whatever their scores are."""
    rng = np.random.default_rng(4)
    scores = rng.standard_normal((7, 4)).astype(np.float32) * np.float32(1e-30)
    inputs = {"x": rng.standard_normal((7, 8)).astype(np.float32), "scores": scores}
    inputs |= {"first": rng.standard_normal((4, 16, 8)).astype(np.float32), "first_bias": None}
    inputs["second"] = rng.standard_normal((4, 8, 16)).astype(np.float32)
    assert check(*single("MoE", inputs, [TensorProto.FLOAT], {"k": 2}, domain=MICROSOFT)) == "equal"


@pytest.mark.parametrize(
    "attributes",
    [
        {"k": 0},
        {"k": 6},
        {"k": 3, "use_sparse_mixer": 1},
        {"k": 1, "activation_type": "tanh"},
        {"k": 1, "activation_type": "swiglu"},
        {"k": 1, "activation_type": "swiglu", "swiglu_fusion": 2},
    ],
)
def test_what_the_runtime_refuses(attributes: dict[str, int | str]) -> None:
    rng = np.random.default_rng(3)
    inputs = {
        name: None if shape is None else rng.standard_normal(shape).astype(np.float32)
        for name, shape in (("x", (2, 8)), ("scores", (2, 5)), ("a", (5, 4, 8)), ("none", None), ("b", (5, 8, 4)))
    }
    assert check(*single("MoE", inputs, [TensorProto.FLOAT], attributes, domain=MICROSOFT)) == "refused"


WAYS = {
    "reals": (0, 0, 0),
    "bytes": (8, 0, 0),
    "half bytes": (4, 0, 0),
    "half bytes in blocks": (4, 32, 0),
    "pairs of bits": (2, 16, 0),
    "tables": (2, 32, 0),
    "tables of long blocks": (2, 128, 0),
    **{
        f"integers of {bits} bits in blocks of {block}": (bits, block, 4)
        for bits in (4, 8)
        for block in (16, 32, 64, 128)
    },
}


@pytest.mark.parametrize("pointed", [False, True])
@pytest.mark.parametrize("rows", [1, 7, 60])
@pytest.mark.parametrize("way", WAYS)
def test_native(way: str, rows: int, pointed: bool) -> None:
    """Every way of making products has a native kernel: of single rows, of more than one panel of columns."""
    bits, block, level = WAYS[way]
    rng, experts, hidden, inner = np.random.default_rng(7), 3, 128, 256
    inputs: dict[str, np.ndarray | None] = {"x": normal(rng, rows, hidden), "scores": normal(rng, rows, experts)}
    for name, columns, depth in (("first", 2 * inner, hidden), ("second", hidden, inner)):
        if not bits:
            inputs |= {name: normal(rng, experts, inner if name == "first" else columns, depth), f"{name}_bias": None}
            continue
        inputs[name] = rng.integers(0, 256, (experts, columns, depth * bits // 8)).astype(np.uint8)
        scales = (experts, columns, depth // block) if block else (experts, columns)
        inputs[f"{name}_scale"] = np.exp2(rng.uniform(-6, -3, scales)).astype(np.float32)
        inputs[f"{name}_bias"] = normal(rng, experts, columns)
    if pointed and block:
        inputs |= dict.fromkeys(("-0", "-1", "-2"))
        for name, columns, depth in (("first", 2 * inner, hidden), ("second", hidden, inner)):
            points = (experts, columns, -(-depth * bits // block // 8))
            inputs[f"{name}_point"] = rng.integers(0, 256, points).astype(np.uint8)
    attributes = {
        "k": 2,
        "accuracy_level": level,
        "activation_type": "swiglu",
        "swiglu_fusion": 1,
        "expert_weight_bits": bits,
        "block_size": block,
    }
    if not bits:
        attributes = {"k": 2, "activation_type": "silu"}
    elif not block:
        del attributes["block_size"]
    constants = [name for name in inputs if name.startswith(("first", "second")) and inputs[name] is not None]
    model, feeds, *rest = single(
        "QMoE" if bits else "MoE", inputs, [TensorProto.FLOAT], attributes, domain=MICROSOFT, constants=constants
    )
    assert check(model, feeds, *rest) == "equal"
    for numerics in (HERE, "onnxruntime-avx2"):
        session = bittrue.load(model).prepare(numerics, executor="reference")
        check_native(session, [feeds], session.trace(*feeds), threads=(1, 3))
        if not HERE.endswith("@aarch64"):
            native = bittrue.load(model).prepare(numerics, executor="native")
            assert "1 steps native" in str(native.plan)


# Around a MoE that reads "rows": nodes, results beside what it gives, and whether it overwrites its rows.
_AROUND: dict[str, tuple[list[tuple[str, list[str], str]], list[str], bool]] = {
    "alone": ([("Neg", ["x"], "rows"), ("Neg", ["moe"], "y")], [], True),
    "scores": ([("Neg", ["x"], "rows"), ("MatMul", ["rows", "by"], "found"), ("Neg", ["moe"], "y")], [], True),
    "view before": ([("Neg", ["x"], "a"), ("Reshape", ["a", "sizes"], "rows"), ("Neg", ["moe"], "y")], [], True),
    "view beside": (
        [
            ("Neg", ["x"], "rows"),
            ("Reshape", ["rows", "sizes"], "a"),
            ("MatMul", ["a", "by"], "found"),
            ("Neg", ["moe"], "y"),
        ],
        [],
        True,
    ),
    "operand": ([("Reshape", ["x", "sizes"], "rows"), ("Neg", ["moe"], "y")], [], False),
    "result": ([("Neg", ["x"], "rows"), ("Identity", ["moe"], "y")], ["rows"], False),
    "read later": ([("Neg", ["x"], "rows"), ("Add", ["rows", "moe"], "y")], [], False),
    "gives the result": ([("Neg", ["x"], "rows")], [], False),
}


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("name", _AROUND)
def test_rows_that_are_overwritten(name: str, free: bool) -> None:
    """A result that lies where the rows did is cleared before these are read, unless what counts is normalized."""
    rng = np.random.default_rng(8)
    for attributes in ({}, {"normalize_routing_weights": 1}):
        content, feeds = _between(rng, name, free, attributes)
        if free:
            theirs, ours = run_runtime(content, feeds), bittrue.load(content).prepare(HERE).run(*feeds)
            assert isinstance(theirs, dict)
            for result, array in theirs.items():
                assert_same(result, ours[result], array)
        else:
            assert check(content, feeds) == "equal"
    plan = bittrue.load(_between(rng, name, free, {})[0]).prepare(HERE).plan
    assert ("overwritten" in str(plan)) == _AROUND[name][2]


def test_rows_that_are_perhaps_read_later() -> None:
    """Nothing in the file says what comes first, so the plan says that results may differ."""
    content, _ = _between(np.random.default_rng(9), "alone", False, {}, [("Abs", ["rows"], "z")], ["z"])
    plan = bittrue.load(content).prepare(HERE).plan
    assert len(plan.inexact) > 0
    assert any("overwrites the rows" in note for note in plan.notes)


def test_experts_of_halves(request: pytest.FixtureRequest) -> None:
    """Casts around the node make its rows what nothing else reads."""
    checks = Checks(request, usual=6, only="equal")
    for rng in checks:
        model, feeds, *rest = GENERATORS["MoE"](rng)
        halves = onnx.load_from_string(model)
        for value in (*halves.graph.input, *halves.graph.output):
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
        for tensor in halves.graph.initializer:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
        checks.add(halves.SerializeToString(), [value.astype(np.float16) for value in feeds], *rest)


def _between(
    rng: np.random.Generator,
    name: str,
    free: bool,
    attributes: dict[str, Any],
    more: list[tuple[str, list[str], str]] | None = None,
    results: list[str] | None = None,
) -> tuple[bytes, list[np.ndarray]]:
    """A model of a MoE with such nodes around it, and its inputs."""
    experts, rows, hidden, inner = 4, 5, 8, 6
    around, given, _ = _AROUND[name]
    around = [*around, *(more or [])]
    written = {output for _, _, output in around}
    constants = {
        "first": normal(rng, experts, inner, hidden),
        "first_bias": normal(rng, experts, inner),
        "second": normal(rng, experts, hidden, inner),
        "second_bias": normal(rng, experts, hidden),
        "by": normal(rng, hidden, experts),
        "sizes": np.array([0, hidden]),
    }
    scores = "found" if "found" in written else "scores"
    moe = helper.make_node(
        "MoE",
        ["rows", scores, *list(constants)[:4]],
        ["moe"],
        domain=MICROSOFT,
        k=2,
        activation_type="relu",
        **attributes,
    )
    nodes = [helper.make_node(kind, inputs, [output]) for kind, inputs, output in around]
    place = next(i for i, node in enumerate([*nodes, moe]) if i == len(nodes) or "moe" in node.input)
    nodes.insert(place, moe)
    size = "rows" if free else rows
    feeds = {"x": normal(rng, rows, hidden)} | ({} if scores == "found" else {"scores": normal(rng, rows, experts)})
    outputs = ["y" if "y" in written else "moe", *given, *(results or [])]
    graph = helper.make_graph(
        nodes,
        "experts",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [size, v.shape[1]]) for n, v in feeds.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        [numpy_helper.from_array(value, n) for n, value in constants.items()],
    )
    sets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8)
    return bytes(model.SerializeToString()), list(feeds.values())
