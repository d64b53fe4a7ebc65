"""Mixtures of experts: random one-node models against ONNX Runtime.

Stems: mixture_of_experts.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

import bittrue
from support.attention_models import normal
from support.expert_models import GENERATORS, qmoe
from support.onnx_models import HERE, MICROSOFT, Checks, check, single


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


@pytest.mark.parametrize("rows", [1, 60])
@pytest.mark.parametrize(("bits", "block"), [(0, 0), (8, 0), (4, 0), (4, 32), (2, 16)])
def test_native(bits: int, block: int, rows: int) -> None:
    """Every way of making real products has a native kernel: of single rows, of more than one panel of columns."""
    rng, experts, hidden, inner = np.random.default_rng(7), 3, 64, 96
    inputs: dict[str, np.ndarray | None] = {"x": normal(rng, rows, hidden), "scores": normal(rng, rows, experts)}
    for name, columns, depth in (("first", 2 * inner, hidden), ("second", hidden, inner)):
        if not bits:
            inputs |= {name: normal(rng, experts, inner if name == "first" else columns, depth), f"{name}_bias": None}
            continue
        inputs[name] = rng.integers(0, 256, (experts, columns, depth * bits // 8)).astype(np.uint8)
        scales = (experts, columns, depth // block) if block else (experts, columns)
        inputs[f"{name}_scale"] = np.exp2(rng.uniform(-6, -3, scales)).astype(np.float32)
        inputs[f"{name}_bias"] = normal(rng, experts, columns)
    attributes = {
        "k": 2,
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
    session = bittrue.load(model).prepare(executor="native")
    assert "1 steps native" in str(session.plan)
