"""Products of transposed tensors, which the runtime reads where they lie, and which it saves as FusedMatMul."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from support.floating_models import reals
from support.fused_models import optimised
from support.onnx_models import Checks, build, check, natively, needs_measured

pytestmark = needs_measured


def random_model(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    """Operands of any rank, each perhaps behind a transposition; a factor behind the product."""
    m, k, n = (int(v) for v in rng.choice([1, 2, 3, 5, 17, 40], 3))
    batch = [int(v) for v in rng.integers(1, 4, rng.integers(0, 3))]
    right = batch if rng.random() < 0.6 else []
    wanted = [(*batch, m, k), (*right, k, n)]
    if rng.random() < 0.15:
        wanted[1] = (k,)
    nodes: list[NodeProto] = []
    inputs, constants, names = {}, {}, []
    for name, shape in zip("ab", wanted, strict=True):
        rank, source = len(shape), reals(rng, shape)
        if rank > 1 and rng.random() < 0.7:
            swapped = [*range(rank - 2), rank - 1, rank - 2]
            batched = [rank - 2, *range(rank - 2), rank - 1]
            both = [rank - 1, *range(rank - 2), rank - 2]
            order = [swapped, swapped, batched, both, list(rng.permutation(rank))][rng.integers(5)]
            source = np.ascontiguousarray(source.transpose(order))
            nodes.append(helper.make_node("Transpose", [name], [f"{name}t"], perm=[int(v) for v in np.argsort(order)]))
        names.append(nodes[-1].output[0] if nodes and nodes[-1].input[0] == name else name)
        (constants if name == "b" and rng.random() < 0.4 else inputs)[name] = source
    nodes.append(helper.make_node("MatMul", names, ["p"]))
    if rng.random() < 0.4:
        constants["f"] = np.float32(rng.uniform(-2, 2))
        nodes.append(helper.make_node("Mul", ["p", "f"], ["y"]))
    else:
        nodes.append(helper.make_node("Identity", ["p"], ["y"]))
    return build(nodes, inputs, {"y": TensorProto.FLOAT}, constants, opset=17)


@pytest.mark.parametrize("level", ["", "EXTENDED"])
def test_random_models(request: pytest.FixtureRequest, level: str) -> None:
    """As written, and as the runtime saves them."""
    checks = Checks(request)
    for rng in checks:
        content, feeds = random_model(rng)
        checks.add(optimised(content, level, off=()) if level else content, feeds)
    assert "equal" in checks.outcomes


def test_readers_that_become_one() -> None:
    """A normalization of several nodes reads the product twice until it is joined: only then is it transposed."""
    rng = np.random.default_rng(3)
    given = {"a": reals(rng, (1, 37)), "b": reals(rng, (16, 37))}
    constants = {"c": reals(rng, (16,)), "scale": reals(rng, (16,)), "two": np.float32(2), "small": np.float32(1e-3)}
    nodes = [
        helper.make_node("Transpose", ["b"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["a", "t"], ["p"]),
        helper.make_node("Add", ["p", "c"], ["x"]),
        helper.make_node("Pow", ["x", "two"], ["square"]),
        helper.make_node("ReduceMean", ["square"], ["mean"], axes=[1]),
        helper.make_node("Add", ["mean", "small"], ["sum"]),
        helper.make_node("Sqrt", ["sum"], ["root"]),
        helper.make_node("Div", ["x", "root"], ["quotient"]),
        helper.make_node("Mul", ["scale", "quotient"], ["y"]),
    ]
    assert check(*build(nodes, given, {"y": TensorProto.FLOAT}, constants, opset=17)) == "equal"


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("saved", [False, True])
def test_long_columns_run_natively(batch: tuple[int, ...], constant: bool, saved: bool) -> None:
    """More terms than a block has, more rows than are worked on together: maps of images that become tokens."""
    rng = np.random.default_rng(5)
    given, right = {"a": reals(rng, (*batch, 300, 70))}, {"b": reals(rng, (300, 5))}
    order = [*range(len(batch)), len(batch) + 1, len(batch)]
    nodes = [
        helper.make_node("Transpose", ["a"], ["t"], perm=order),
        helper.make_node("MatMul", ["t", "b"], ["p"]),
        helper.make_node("Relu", ["p"], ["y"]),
    ]
    inputs, constants = (given, right) if constant else ({**given, **right}, {})
    content, feeds = build(nodes, inputs, {"y": TensorProto.FLOAT}, constants, opset=17)
    content = optimised(content, "EXTENDED", off=()) if saved else content
    assert check(content, feeds) == "equal"
    natively(content, feeds)
