"""What has kernels for bf16 and f16 that compute: Sign, normalizations, streams of hyper-connections.

Stems: layer_normalization, mix_streams, reduce_streams, sign.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, load_from_string

from support.contributed_models import NARROW, streams
from support.onnx_models import MICROSOFT, Checks, build, check, single
from support.onnx_narrow import run_memory

BRAIN = np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("kind", [BRAIN, np.dtype(np.float16)])
def test_sign_of_every_number(kind: np.dtype) -> None:
    """NaN gives 0."""
    x = np.arange(1 << 16, dtype=np.uint16).view(kind)
    content, feeds = single("Sign", {"x": x}, [helper.np_dtype_to_tensor_dtype(kind)])
    assert check(content, feeds, expected=lambda: run_memory(content, feeds)) == "equal"


def _model(rng: np.random.Generator, operator: str) -> tuple[bytes, list[np.ndarray]]:
    skip, simple = "Skip" in operator, "Simplified" in operator
    shape = tuple(int(v) for v in rng.integers(1, 30, 3))
    axis, row = -1 if skip else int(rng.integers(-3, 0)), shape[-1:]

    def some(*sizes: int) -> np.ndarray:
        return np.asarray(rng.standard_normal(sizes) * np.exp2(rng.uniform(-3, 3)), BRAIN)

    inputs: dict[str, np.ndarray | None] = {"x": some(*shape)}
    if skip:
        inputs["skip"] = some(*(shape if rng.random() < 0.7 else shape[1:]))
    part = row if skip or rng.random() < 0.2 else shape[axis:]
    inputs["scale"] = some(*part)
    if not simple:
        # The kernel that does not skip ends the process without it.
        inputs["bias"] = some(*part) if not skip or rng.random() < 0.7 else None
    if skip and rng.random() < 0.5:
        inputs["row"] = some(*row)
    outputs = [TensorProto.BFLOAT16, *[TensorProto.FLOAT] * (0 if skip else int(rng.integers(0, 3 - simple)))]
    attributes = {"epsilon": 1e-5} if skip else {"epsilon": 1e-5, "axis": axis}
    constants = [name for name, array in inputs.items() if array is not None and name != "x" and rng.random() < 0.5]
    domain = MICROSOFT if skip else ""
    content, feeds = single(operator, inputs, outputs, attributes, domain=domain, constants=constants)
    if skip and rng.random() < 0.5:
        model = load_from_string(content)
        model.graph.node[0].output.extend(["", "", "sum"])
        model.graph.output.append(helper.make_tensor_value_info("sum", TensorProto.BFLOAT16, None))
        content = model.SerializeToString()
    return content, feeds


@pytest.mark.parametrize("skip", ["", "Skip"])
@pytest.mark.parametrize("kind", ["Layer", "SimplifiedLayer"])
def test_normalizations(request: pytest.FixtureRequest, skip: str, kind: str) -> None:
    checks = Checks(request, usual=10, only="equal")
    for rng in checks:
        content, feeds = _model(rng, f"{skip}{kind}Normalization")
        checks.add(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f))


@pytest.mark.parametrize("kind", [BRAIN, np.dtype(np.float16)])
def test_streams(request: pytest.FixtureRequest, kind: np.dtype) -> None:
    """Gates are of the streams' type, or of binary32 numbers."""
    checks = Checks(request, usual=8, only="equal")
    number = helper.np_dtype_to_tensor_dtype(kind)
    for rng in checks:
        content, feeds = streams(rng)
        model = load_from_string(content)
        whole = rng.random() < 0.5
        for place, info in enumerate(model.graph.input):
            if whole or info.name in ("x", "block"):
                info.type.tensor_type.elem_type, feeds[place] = number, feeds[place].astype(kind)
        model.graph.output[0].type.tensor_type.elem_type = number
        content = model.SerializeToString()
        checks.add(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f))


def test_kernels_store_one_nan() -> None:
    """A cast keeps a NaN's sign, a kernel that rounds its result does not."""
    x = np.array([[1, 2, 3, 4], [1, 2, 3, 0]], np.uint16).view(BRAIN)
    x[:, 3] = np.array([0xFFC5, 0x7F80], np.uint16).view(BRAIN)
    nodes = [
        helper.make_node("SimplifiedLayerNormalization", ["x", "s"], ["a"]),
        helper.make_node("ScaledSiLU", ["x"], ["b"], domain=MICROSOFT),
        helper.make_node("HyperConnectionPreMix", ["x", "x"], ["c"], domain=MICROSOFT, num_branches=2),
    ]
    content, feeds = build(nodes, {"x": x}, dict.fromkeys("abc", TensorProto.BFLOAT16), {"s": np.ones(4, BRAIN)})
    assert check(content, feeds, expected=lambda: run_memory(content, feeds)) == "equal"


@pytest.mark.parametrize("operator", NARROW)
def test_streams_that_round(request: pytest.FixtureRequest, operator: str) -> None:
    """Operators of streams with scales of their type, or of another one."""
    checks = Checks(request, usual=8, only="equal")
    make, kinds = NARROW[operator]
    for rng in checks:
        content, feeds = make(rng, kinds[rng.integers(len(kinds))])
        checks.add(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f))


@pytest.mark.parametrize("operator", NARROW)
def test_streams_between_nodes_without_kernels(operator: str) -> None:
    """The whole operator is widened then: nothing of it is rounded to binary16."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 3, 4, 5)).astype(np.float16)
    operands = {
        "BranchwiseRMSNorm": ["a", "s"],
        "EngramGate": ["a", "a", "b", "s", "s"],
        "ScaledSiLU": ["a"],
    }[operator]
    nodes = [
        helper.make_node("Exp", ["x"], ["a"]),
        helper.make_node("Exp", ["v"], ["b"]),
        helper.make_node(operator, operands, ["c"], domain=MICROSOFT),
        helper.make_node("Tanh", ["c"], ["y"]),
    ]
    inputs = {"x": x, "v": x[:, :, 0]}
    scales = {"s": rng.standard_normal((4, 5)).astype(np.float16)}
    content, feeds = build(nodes, inputs, {"y": TensorProto.FLOAT16}, scales)
    assert check(content, feeds) == "equal"


@pytest.mark.parametrize(
    ("operator", "operands", "attributes"),
    [
        ("SkipLayerNormalization", "a b s s s", {}),
        ("SkipSimplifiedLayerNormalization", "a b s", {}),
        ("GatedAdd", "a b one", {}),
        ("Max", "a b s", {}),
        ("Min", "s a b a", {}),
        (
            "GroupQueryAttention",
            "a b b - - lengths total cosines cosines",
            {"num_heads": 2, "kv_num_heads": 2, "do_rotary": 1},
        ),
    ],
)
def test_operators_of_several_nodes_between_nodes_without_kernels(
    operator: str, operands: str, attributes: dict[str, int]
) -> None:
    """Inside of them nothing is rounded to binary16, either, where the runtime widens the operator."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1, 3, 32)).astype(np.float16)
    nodes = [
        helper.make_node("Sin", ["x"], ["a"]),
        helper.make_node("Exp", ["x"], ["b"]),
        helper.make_node("Sigmoid", ["x1"], ["one"]),
        helper.make_node(
            operator,
            [name.strip("-") for name in operands.split()],
            ["c"],
            domain="" if operator in ("Max", "Min") else MICROSOFT,
            **attributes,
        ),
        helper.make_node("Tanh", ["c"], ["y"]),
    ]
    constants = {
        "s": rng.standard_normal(32).astype(np.float16),
        "lengths": np.array([2], np.int32),
        "total": np.array(3, np.int32),
        "cosines": rng.standard_normal((8, 8)).astype(np.float16),
    }
    used = {name: value for name, value in constants.items() if name in operands.split()}
    content, feeds = build(nodes, {"x": x, "x1": x[..., :1]}, {"y": TensorProto.FLOAT16}, used, opset=17)
    assert check(content, feeds) == "equal"
