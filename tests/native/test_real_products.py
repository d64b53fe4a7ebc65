"""matmul by the rules of fused blocks: native results are the reference's, on all instruction sets."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import bittrue
from support.native import needs_native
from support.onnx_models import build, cases


@needs_native
@pytest.mark.filterwarnings("ignore::bittrue.InexactWarning")
@pytest.mark.parametrize("numerics", ["onnxruntime", "onnxruntime@aarch64"])
def test_random_products(request: pytest.FixtureRequest, numerics: str) -> None:
    native = 0
    for number, rng in enumerate(cases(request, usual=30)):
        m, n = (1 if rng.random() < 0.2 else int(v) for v in rng.integers(1, 90, 2))
        k = int(rng.integers(1, 600))
        operands = {"a": rng.normal(size=(m, k)).astype(np.float32)}
        if rng.random() < 0.4:
            turned = int(rng.integers(2))
            operands["b"] = rng.normal(size=(n, k) if turned else (k, n)).astype(np.float32)
            shapes: list[tuple[int, ...]] = [(n,), (1, n), (m, n), (m, 1), ()]
            operands["c"] = rng.normal(size=shapes[rng.integers(5)]).astype(np.float32)
            node = helper.make_node("Gemm", ["a", "b", "c"], ["y"], transB=turned)
        else:
            batch = (2, 3) if rng.random() < 0.4 else ()
            operands["a"] = rng.normal(size=(*batch, m, k)).astype(np.float32)
            operands["b"] = rng.normal(size=(*batch, k, n)).astype(np.float32)
            node = helper.make_node("MatMul", ["a", "b"], ["y"])
        if rng.random() < 0.1:
            operands["a"].reshape(-1)[0] = rng.choice([np.nan, np.inf])
        constants = {name: operands[name] for name in ("b", "c") if name in operands and rng.random() < 0.6}
        given = {name: array for name, array in operands.items() if name not in constants}
        content, feeds = build([node], given, {"y": TensorProto.FLOAT}, constants)
        expected = bittrue.load(content).prepare(numerics, executor="reference").run(*feeds)["y"]
        for isa in bittrue.isas():
            session = bittrue.load(content).prepare(numerics, executor="native", isa=isa, threads=1 + number % 2)
            native += not session.missing
            assert session.run(*feeds)["y"].tobytes() == expected.tobytes(), (isa, m, k, n)
    assert native
