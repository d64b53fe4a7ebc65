"""cast_halves and cast_last give ONNX Runtime's bytes for graphs of binary16 numbers, all of its optimisers at work."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state

import bittrue
from bittrue.rewrites.onnxruntime_optimizer.inserted_casts import SINCE
from support.differential import assert_same
from support.half_models import fed, halved
from support.onnx_models import HERE, build, cases, needs_wide, run_runtime
from support.quantized_graphs import GraphMaker
from support.real_graphs import RealGraphMaker

_HALF = "tensor(float16)"
_FUNCTIONS = (
    "Elu Gelu HardSigmoid HardSwish LeakyRelu LogSoftmax Mish ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp"
    " ReduceSumSquare Relu Selu Softmax Softplus Softsign Swish ThresholdedRelu"
).split()


def _check(content: bytes, feeds: list[np.ndarray]) -> bool:
    theirs = run_runtime(content, feeds)
    if not isinstance(theirs, dict):
        return False
    ours = bittrue.load(content).prepare(HERE).run(*feeds)
    for name, value in theirs.items():
        assert_same(name, ours[name], np.asarray(value))
    return True


@needs_wide
def test_bytes(request: pytest.FixtureRequest) -> None:
    """Whole graphs of binary16 numbers, and graphs with casts of their own around some nodes."""
    ran = 0
    for rng in cases(request, usual=50):
        maker = RealGraphMaker(rng, opset=int(rng.choice([13, 17, 18, 20, 22])), usual=float(rng.choice([0.95, 0.6])))
        maker.grow(int(rng.integers(1, 4)))
        content, feeds = maker.model()
        content = halved(content, rng, float(rng.choice([1, 0.7, 0.4])))
        ran += _check(content, fed(content, feeds))
    assert ran > 10


@needs_wide
def test_pairs(request: pytest.FixtureRequest) -> None:
    """Quantizations and dequantizations with binary16 scales."""
    ran = 0
    for rng in cases(request, usual=20):
        maker = GraphMaker(rng, opset=int(rng.choice([17, 21])), usual=0.9)
        while not maker.outputs:
            maker.grow(int(rng.integers(1, 6)))
        content, feeds = maker.model()
        content = halved(content, rng, float(rng.choice([1, 0.4])))
        ran += _check(content, fed(content, feeds))
    assert ran > 5


@needs_wide
def test_lone_nodes() -> None:
    """A node with a kernel between nodes without one is widened; behind casts of the file it keeps its rounding."""
    x = np.linspace(-3, 3, 40).astype(np.float32).reshape(5, 8)
    for kernel, reads_before in itertools.product(("Round", "Clip", "Neg", "Transpose"), (False, True)):
        nodes = [
            helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16),
            helper.make_node("Sin" if reads_before else "Round", ["h"], ["b"]),
            helper.make_node(kernel, ["b"], ["k"]),
            helper.make_node("Exp", ["k"], ["e"]),
            helper.make_node("Cast", ["e"], ["y"], to=TensorProto.FLOAT),
        ]
        assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT}))


@needs_wide
@pytest.mark.parametrize("opset", [14, 17, 18, 20, 24])
def test_operators_that_others_define(opset: int) -> None:
    """Which ones the runtime replaces by their definitions depends on the operator set."""
    ran, x = 0, np.linspace(-4, 4, 48).astype(np.float16).reshape(1, 3, 16)
    for name in _FUNCTIONS:
        # Defined by binary64 numbers there, which have no rows.
        if (name, opset) == ("ReduceLogSumExp", 18):
            continue
        feeds = {"x": abs(x) if "Log" in name else x}
        ran += _check(*build([helper.make_node(name, ["x"], ["y"])], feeds, {"y": TensorProto.FLOAT16}, opset=opset))
    assert ran > 10


def test_kernels() -> None:
    """The runtime has registered the kernels that the rewrite takes for granted."""
    kernels: dict[str, int] = {}
    for kernel in onnxruntime_pybind11_state.get_all_opkernel_def():
        kinds = {kind for allowed in kernel.type_constraints.values() for kind in allowed}
        if kernel.provider == "CPUExecutionProvider" and _HALF in kinds:
            first = kernel.version_range[0]
            kernels[kernel.op_name] = min(kernels.get(kernel.op_name, first), first)
    for name, since in SINCE.items():
        # It is replaced by a cast.
        if name != "CastLike":
            assert since in (1, kernels[name])
