"""Attention and what goes with it: random one-node models against ONNX Runtime.

Stems: attention rotary_embedding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

import bittrue
from support.attention_models import GENERATORS, HALVES, normal
from support.onnx_models import MICROSOFT, Checks, build, check, natively, needs_wide, single


@pytest.mark.parametrize("operator", GENERATORS)
def test_random_models(request: pytest.FixtureRequest, operator: str) -> None:
    checks = Checks(request, usual=9)
    for rng in checks:
        checks.add(*GENERATORS[operator](rng))
    assert "equal" in checks.outcomes


@pytest.mark.parametrize("operator", HALVES)
def test_random_models_of_halves(request: pytest.FixtureRequest, operator: str) -> None:
    """Scores and their softmax stay binary32; what is turned is rounded first."""
    checks = Checks(request, usual=6)
    for rng in checks:
        checks.add(*HALVES[operator](rng))
    assert "equal" in checks.outcomes


@needs_wide
@pytest.mark.parametrize("odd", [0.0, np.inf, -np.inf, np.nan])
def test_many_keys_in_blocks(odd: float) -> None:
    """Heads of 1000 and 300 columns leave room for 50 keys."""
    rng = np.random.default_rng(3)
    query, key, value = normal(rng, 1, 5, 1000), normal(rng, 1, 120, 1000), normal(rng, 1, 120, 300)
    key[0, 60, 0] = odd
    inputs = {"q": query, "k": key, "v": value}
    assert (
        check(*single("MultiHeadAttention", inputs, [TensorProto.FLOAT], {"num_heads": 1}, domain=MICROSOFT)) == "equal"
    )


def _node(operator: str, inputs: str, outputs: str, domain: str = "", **attributes: Any) -> NodeProto:
    """Operands by name, ``-`` for omitted ones."""
    names = [["" if name == "-" else name for name in side.split()] for side in (inputs, outputs)]
    return helper.make_node(operator, *names, domain=domain, **attributes)


_ATTENTION = _node("Attention", "a w b", "c", MICROSOFT, num_heads=2)


@pytest.mark.parametrize(
    "nodes",
    [
        [_node("Mul", "x half", "a"), _ATTENTION],
        [_node("Transpose", "turned", "a", perm=[0, 2, 1]), _ATTENTION],
        [_node("Relu", "x", "a"), _ATTENTION, _node("Mul", "c half", "y")],
        [_node("DequantizeLinear", "q half", "d"), _node("Attention", "x d b", "y", MICROSOFT, num_heads=2)],
        [
            _node("Relu", "x", "a"),
            _ATTENTION,
            _node("Add", "c x", "d"),
            _node("LayerNormalization", "d scale bias", "y"),
        ],
        [_node("Relu", "x", "a"), _ATTENTION, _node("MultiHeadAttention", "c x x", "y", MICROSOFT, num_heads=2)],
        [
            _node("MatMul", "x v", "a"),
            _node("Mul", "a half", "d"),
            _node("MultiHeadAttention", "d x x", "y", MICROSOFT, num_heads=2),
        ],
    ],
)
def test_attention_among_other_nodes(nodes: list[NodeProto]) -> None:
    """No rewrite takes the product of a projection for one of the file's."""
    rng = np.random.default_rng(8)
    inputs = {"x": normal(rng, 2, 5, 12), "turned": normal(rng, 2, 12, 5)}
    constants = {"w": normal(rng, 12, 36), "b": normal(rng, 36), "half": np.float32(0.5), "v": normal(rng, 12, 12)}
    constants |= {"scale": normal(rng, 12), "bias": normal(rng, 12)}
    constants["q"] = rng.integers(-128, 128, (12, 36)).astype(np.int8)
    used = {name for node in nodes for name in node.input}
    model = build(
        nodes,
        {name: value for name, value in inputs.items() if name in used},
        {nodes[-1].output[0]: TensorProto.FLOAT},
        {name: value for name, value in constants.items() if name in used},
    )
    assert check(*model) == "equal"


@pytest.mark.parametrize(("queries", "past"), [(6, 0), (1, 5)])
def test_a_layer_of_a_language_model(queries: int, past: int) -> None:
    """Lengths come from the attention mask, as exporters of language models write it."""
    rng = np.random.default_rng(9)
    nodes = [
        _node("ReduceSum", "mask one", "counts", keepdims=1),
        _node("Sub", "counts one", "last"),
        _node("Cast", "last", "lengths", to=TensorProto.INT32),
        _node("Shape", "mask", "shape"),
        _node("Gather", "shape index", "all"),
        _node("Cast", "all", "total", to=TensorProto.INT32),
        _node("MatMul", "x w", "qkv"),
        _node(
            "GroupQueryAttention",
            "qkv - - past_key past_value lengths total cos sin",
            "a key value",
            MICROSOFT,
            num_heads=4,
            kv_num_heads=2,
            do_rotary=1,
        ),
        _node("MatMul", "a v", "m"),
        _node("SkipSimplifiedLayerNormalization", "x m scale", "y - - sum", MICROSOFT, epsilon=1e-5),
    ]
    inputs = {
        "x": normal(rng, 2, queries, 64),
        "mask": np.ones((2, queries + past), np.int64),
        "past_key": normal(rng, 2, 2, past, 16),
        "past_value": normal(rng, 2, 2, past, 16),
    }
    constants = {
        "one": np.int64([1]),
        "index": np.asarray(1, np.int64),
        "w": normal(rng, 64, 128),
        "v": normal(rng, 64, 64),
        "cos": normal(rng, 20, 8),
        "sin": normal(rng, 20, 8),
        "scale": normal(rng, 64),
    }
    outputs = dict.fromkeys(("y", "sum", "key", "value"), int(TensorProto.FLOAT))
    assert check(*build(nodes, inputs, outputs, constants)) == "equal"


def test_a_single_query_behind_past_keys_sees_all_new_ones() -> None:
    rng = np.random.default_rng(10)
    inputs = {name: normal(rng, 1, 2, length, 4) for name, length in (("q", 1), ("k", 5), ("v", 5))}
    past = {"mask": None, "past_key": normal(rng, 1, 2, 3, 4), "past_value": normal(rng, 1, 2, 3, 4)}
    model = single("Attention", {**inputs, **past}, [TensorProto.FLOAT] * 3, {"is_causal": 1}, opset=23)
    assert check(*model) == "equal"


_LATER = {
    "numbers": None,
    "infinite value": (2, 100, np.inf),
    "infinite key": (1, 100, np.inf),
    "far key": (1, 100, 3e37),
}


@pytest.mark.parametrize("odd", _LATER)
@pytest.mark.parametrize("operator", ["Attention", "Attention of com.microsoft", "GroupQueryAttention"])
def test_keys_that_no_query_of_a_block_sees(operator: str, odd: str) -> None:
    """They are left out, but where they would show: a sum of -0 that meets +0, numbers that are not finite, or huge."""
    rng = np.random.default_rng(12)
    q, k, v = (normal(rng, 1, 2, 110, 8) for _ in range(3))
    v[..., 0] = 0
    v[..., :60, 1], v[..., 60:, 1] = -1e-45, 1
    change = _LATER[odd]
    if operator == "Attention of com.microsoft" and "infinite" in odd:
        pytest.skip("its product with weights of 0 makes all numbers NaN")
    if change is not None:
        which, row, value = change
        (q, k, v)[which][0, 0, row, 2] = value
    flat = [np.ascontiguousarray(x.transpose(0, 2, 1, 3).reshape(1, 110, 16)) for x in (q, k, v)]
    if operator == "Attention":
        model = single(operator, {"q": q, "k": k, "v": v}, [TensorProto.FLOAT], {"is_causal": 1}, opset=23)
    elif operator == "GroupQueryAttention":
        inputs = {**dict(zip("qkv", flat, strict=True)), "past_key": None, "past_value": None}
        lengths = {"lengths": np.int32([109]), "total": np.asarray(110, np.int32)}
        attributes = {"num_heads": 2, "kv_num_heads": 2}
        model = single(operator, inputs | lengths, [TensorProto.FLOAT] * 3, attributes, domain=MICROSOFT)
    else:
        inputs = {"x": np.concatenate(flat, axis=2), "w": np.eye(48, dtype=np.float32), "b": np.zeros(48, np.float32)}
        attributes = {"num_heads": 2, "unidirectional": 1}
        model = single("Attention", inputs, [TensorProto.FLOAT], attributes, domain=MICROSOFT, constants=("w", "b"))
    assert check(*model) == "equal"
    natively(*model, "onnxruntime-avx2")


def test_an_encoder_of_speech_fits_into_memory() -> None:
    """Half a minute of Whisper: 1500 rows, of which one head's scores are held at a time."""
    inputs = {name: np.zeros((1, 1500, 6 * 64), np.float32) for name in "qkv"}
    content, _ = single("MultiHeadAttention", inputs, [TensorProto.FLOAT], {"num_heads": 6}, domain=MICROSOFT)
    assert bittrue.load(content).prepare("onnxruntime").plan.steps
