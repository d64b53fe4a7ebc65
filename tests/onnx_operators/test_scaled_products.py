"""Factors behind products of matrices become part of them, as ONNX Runtime has it: equal bytes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from support.onnx_models import Checks, build


def test_random_factors(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=30)
    for rng in checks:
        m, k, n = (int(v) for v in rng.integers(2, 40, 3))
        if rng.random() < 0.2:
            k = int(rng.integers(100, 600))
        if rng.random() < 0.2:
            m, n = (1, n) if rng.random() < 0.5 else (m, 1)
        batch = (int(rng.integers(1, 4)),) if rng.random() < 0.5 else ()
        given = {"a": rng.normal(size=(*batch, m, k)).astype(np.float32)}
        constants = {"s": np.float32(rng.normal()).reshape((1,) if rng.random() < 0.5 else ())}
        right = rng.normal(size=(*batch, k, n)).astype(np.float32)
        (constants if rng.random() < 0.3 else given)["b"] = right
        nodes = [helper.make_node("MatMul", ["a", "b"], ["p"])]
        kind = int(rng.integers(4))
        operands = ["s", "p"] if kind == 0 else ["p", "s"]
        nodes.append(helper.make_node("Div" if kind == 1 else "Mul", operands, ["y" if kind < 3 else "q"]))
        if kind == 3:
            nodes.append(helper.make_node("Div", ["q", "s"], ["y"]))
        content, feeds = build(nodes, given, {"y": TensorProto.FLOAT}, constants)
        checks.add(content, feeds)
